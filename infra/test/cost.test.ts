/** `docs/cost.md` must equal what the script computes from the example. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { Duration } from "aws-cdk-lib";
import { AT_WORK, exampleResources, IDLE, monthly, table, total } from "../cost/cost.ts";
import { PRICES, type Price } from "../cost/prices.ts";
import { example } from "./support.ts";

const resources = exampleResources();
const page = readFileSync(join(import.meta.dirname, "..", "..", "docs", "cost.md"), "utf8");

test("the document has the table that the script makes", () => {
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

test("the document has what a second graph adds, and what its queries cost", () => {
  const [, part = ""] = /\*\*A second graph\*\*(.*?)\n- /s.exec(page) ?? [];
  const dollars = (lines: typeof work, ...names: string[]): number =>
    total(lines.filter(({ what }) => names.includes(what)));
  const [idle, work] = [monthly(resources, IDLE), monthly(resources, AT_WORK)];
  const map = dollars(idle, "map: reads", "map: writes");
  assert.ok(part.includes(`($${map.toFixed(2)})`), `the map costs ${map}`);
  for (const name of ["API", "function: invocations", "function: time"]) {
    const million = dollars(work, name) / AT_WORK.queries;
    assert.ok(part.includes(`$${million.toFixed(2)} for `), `${name} costs ${million}`);
  }
  const [one, two] = [example(), example({ graphs: [{ name: "orders" }] })].map(({ service, state }) =>
    [service, state].flatMap((stack) =>
      Object.entries<{ Type: string }>(stack.toJSON().Resources).map(([id, { Type }]) => `${Type} ${id}`),
    ),
  );
  const added = (two ?? []).filter((resource) => !one?.includes(resource));
  const kinds =
    /^AWS::(Lambda::Function|StepFunctions::\w+|ApiGateway::Method|CloudWatch::\w+|EC2::VPCEndpoint|S3::\w+) /;
  assert.deepEqual(
    added.filter((resource) => kinds.test(resource)).map((resource) => resource.replace(/[0-9A-F]{8}$/, "")),
    [
      "AWS::Lambda::Function ServiceRemovalFunction",
      "AWS::StepFunctions::StateMachine ServiceRemovalMachineStateMachine",
    ],
  );
});

test("the document has the alarms that settings add", () => {
  const read = (props: Parameters<typeof example>[0]): number[] =>
    Object.values<{ Type: string; Properties: { Metrics?: { MetricStat?: unknown }[] } }>(
      example(props).service.toJSON().Resources,
    )
      .filter(({ Type }) => Type === "AWS::CloudWatch::Alarm")
      .map(({ Properties: { Metrics } }) => Metrics?.filter(({ MetricStat }) => MetricStat).length ?? 1);
  const sum = (counts: number[]): number => counts.reduce((before, count) => before + count, 0);
  const without = read({});
  const added = (
    props: Parameters<typeof example>[0],
  ): { alarms: number; metrics: number; dollars: string } => {
    const counts = read(props);
    const metrics = sum(counts) - sum(without);
    const dollars = (metrics * PRICES.alarm.dollars).toFixed(2);
    return { alarms: counts.length - without.length, metrics, dollars };
  };
  const sizes = added({ nodes: { most: 9 } });
  const deploy = readFileSync(join(import.meta.dirname, "..", "..", "docs", "deploy.md"), "utf8");
  for (const text of [page, deploy])
    assert.ok(
      text.includes(`${sizes.alarms} alarms, which read ${sizes.metrics} metrics ($${sizes.dollars})`),
      JSON.stringify(sizes),
    );
  // That of the archive is told apart, with its metric.
  const backups = added({ backup: { archiveEvery: Duration.seconds(0) } });
  assert.equal(backups.alarms, 2);
  assert.ok(page.includes(`$${backups.dollars} for two alarms`), JSON.stringify(backups));
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
