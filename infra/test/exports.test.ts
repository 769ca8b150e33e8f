/** What the state exports for the service: a deployment of the service alone may change its props at any time. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { GraphServiceProps } from "../lib/index.ts";
import { example } from "./support.ts";

/** Returns the names of the state's exports. */
function exported(props: Partial<GraphServiceProps>): string[] {
  const { Outputs } = example(props).state.toJSON();
  return Object.values<{ Export?: { Name: string } }>(Outputs)
    .flatMap(({ Export }) => (Export ? [Export.Name] : []))
    .toSorted();
}

test("the exports of the state do not depend on the props of the service", () => {
  // `cdk deploy Service` deploys the state first. It cannot delete an export that the deployed service imports.
  const all = exported({ backup: {}, encryption: {}, graphs: [{ name: "orders" }] });
  assert.ok(all.length > 15, all.join());
  const without: Partial<GraphServiceProps>[] = [
    { endpoints: false },
    { endpoints: false, workers: false, secretRotation: false },
  ];
  for (const props of without) assert.deepEqual(exported(props), all, JSON.stringify(props));
});
