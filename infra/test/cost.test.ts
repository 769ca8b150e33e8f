/** `docs/cost.md` must equal what the script computes from the example. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { AT_WORK, exampleResources, IDLE, monthly, table, total } from "../cost/cost.ts";
import { PRICES, type Price } from "../cost/prices.ts";

const resources = exampleResources();

test("the document has the table that the script makes", () => {
  const page = readFileSync(join(import.meta.dirname, "..", "..", "docs", "cost.md"), "utf8");
  const made = table(resources);
  assert.ok(page.includes(made), `npm run cost --workspace infra says:\n${made}`);
});

test("unused services cost nothing, and existing resources do", () => {
  const [idle, work] = [monthly(resources, IDLE), monthly(resources, AT_WORK)];
  assert.deepEqual(
    idle.map(({ what }) => what),
    work.map(({ what }) => what),
  );
  const of = (lines: typeof idle, what: string): number | undefined =>
    lines.find((line) => line.what === what)?.dollars;
  assert.equal(of(idle, "API"), 0);
  assert.equal(of(work, "API"), 50 * PRICES.requests.dollars);
  assert.equal(of(idle, "storage nodes"), of(work, "storage nodes"));
  assert.ok(total(idle) < total(work));
  for (const { what, dollars } of work) assert.ok(Number.isFinite(dollars) && dollars > 0, what);
});

test("an instance type without a price is refused by name", () => {
  const others = resources.map((resource) =>
    resource.Type === "AWS::EC2::LaunchTemplate"
      ? { ...resource, Properties: withType(resource.Properties, "i8g.large") }
      : resource,
  );
  assert.throws(() => monthly(others, IDLE), /i8g\.large/);
});

function withType(properties: { LaunchTemplateData: object }, InstanceType: string): object {
  return { ...properties, LaunchTemplateData: { ...properties.LaunchTemplateData, InstanceType } };
}

test("every price has its source and its month", () => {
  const prices: Price[] = Object.values(PRICES).flatMap((one) =>
    "dollars" in one ? [one] : Object.values<Price>(one),
  );
  assert.ok(prices.length > 20);
  for (const { page, read, date, unit } of prices) {
    assert.match(page, /^https:\/\/aws\.amazon\.com\/.*pricing/, unit);
    assert.ok(read.length > 10, unit);
    assert.match(date, /^2026-\d\d$/, unit);
  }
});
