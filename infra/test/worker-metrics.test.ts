/** The metrics that workers write: what they are started with, what CloudWatch makes of it, and what shows it. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import type { Template } from "aws-cdk-lib/assertions";
import { exampleResources, IDLE, monthly } from "../cost/cost.ts";
import { METRICS } from "../lib/constructs/metrics.ts";
import { example, flat, ofType, only } from "./support.ts";

const ROOT = join(import.meta.dirname, "..", "..");
const { ofWorkers } = METRICS;

/** Returns the values of a flag of the workers. */
function values(template: Template, flag: string): string[] {
  const [container] = only(template, "AWS::ECS::TaskDefinition").Properties.ContainerDefinitions;
  const command: string[] = container.Command.map(flat);
  return command.filter((_, index) => command[index - 1] === flag);
}

/** Returns the names of the alarms about metrics that workers write. */
function alarms(template: Template): string[] {
  return ofType(template, "AWS::CloudWatch::Alarm")
    .filter(([, { Properties }]) =>
      Properties.Dimensions?.some(({ Value }: { Value: unknown }) => Value === ofWorkers.service),
    )
    .map(([id]) => id.replace(/^ServiceWatch|[0-9A-F]{8}$/g, ""));
}

test("workers write their metrics each minute, under the deployment", () => {
  const { service } = example();
  assert.deepEqual(values(service, "--metrics-log-seconds"), ["60"]);
  const nodes = ofType(service, "AWS::CloudWatch::Alarm").map(([, { Properties }]) => Properties.Dimensions);
  const [deployment] = nodes
    .flat()
    .filter((dimension) => dimension?.Name === METRICS.dimension)
    .map(({ Value }) => flat(Value));
  assert.deepEqual(values(service, "--metrics-log-dimension"), [
    `${METRICS.dimension}=${deployment}`,
    `service=${ofWorkers.service}`,
  ]);
  assert.deepEqual(alarms(service).toSorted(), ["WorkersMemory", "WorkersUnavailable"]);
});

test("without their metrics workers have neither flags nor alarms nor graphs of them", () => {
  const { service } = example({ workers: { metrics: false } });
  for (const flag of ["--metrics-log-seconds", "--metrics-log-dimension"])
    assert.deepEqual(values(service, flag), [], flag);
  assert.deepEqual(alarms(service), []);
  const body = flat(only(service, "AWS::CloudWatch::Dashboard").Properties.DashboardBody);
  for (const { names } of ofWorkers.series) for (const name of names) assert.ok(!body.includes(name), name);
  assert.ok(body.includes("AWS/ECS"), "their processors and memory stay");
});

test("the selection is that of the program", () => {
  const read = (...path: string[]): string => readFileSync(join(ROOT, ...path), "utf8");
  const names = new Map(
    [
      ...read("engine-core", "platform", "src", "metric.rs").matchAll(/^pub const (\w+): &str = "(\w+)";/gm),
    ].map(([, constant, name]) => [constant, name]),
  );
  const selection = read("services", "query", "src", "metrics", "selection.rs");
  assert.equal(selection.match(/NAMESPACE: &str = "(\w+)"/)?.[1], METRICS.namespace);
  const selected = [
    ...selection.matchAll(/^ {4}selected\(metric::(\w+), "\w+", By::(\w+)(?:\("(\w+)"\))?\)/gm),
  ].map(([, constant, by, label]) =>
    [names.get(constant), by === "Class" ? "class" : (label ?? "")].join(" "),
  );
  const ours = ofWorkers.series.flatMap(({ names, dimensions }) =>
    names.map((name) => [name, dimensions[1] ?? ""].join(" ")),
  );
  assert.deepEqual(selected.toSorted(), ours.toSorted());
  const pages = read("docs", "metrics.md");
  for (const value of Object.values(ofWorkers.values).flat())
    assert.ok(pages.includes(`\`${value}\``), value);
});

test("each value of a dimension is a metric that costs", () => {
  const resources = exampleResources();
  const count = (of: typeof resources): number => {
    const line = monthly(of, IDLE).find(({ what }) => what === "metrics");
    return Number.parseInt(line?.how ?? "", 10);
  };
  const none = resources.map((resource) =>
    resource.Type === "AWS::ECS::Service"
      ? { ...resource, Properties: { ...resource.Properties, DesiredCount: 0 } }
      : resource,
  );
  // Seven without a further dimension, three classes, four outcomes, four protocols.
  assert.equal(count(resources) - count(none), 7 + 3 + 4 + 4);
});

test("workers are added while queries wait, and taken away by the load of processors alone", () => {
  const policies = (workers: object) =>
    ofType(example({ workers }).service, "AWS::ApplicationAutoScaling::ScalingPolicy").map(
      ([, { Properties }]) => Properties.TargetTrackingScalingPolicyConfiguration,
    );
  const [busy, waiting, ...more] = policies({ most: 6 });
  assert.deepEqual(more, []);
  assert.equal(busy.PredefinedMetricSpecification.PredefinedMetricType, "ECSServiceAverageCPUUtilization");
  const { MetricName, Namespace, Dimensions, Statistic } = waiting.CustomizedMetricSpecification;
  assert.deepEqual(
    [Namespace, MetricName, Statistic],
    [METRICS.namespace, "tidegraph_queries_waiting", "Average"],
  );
  assert.deepEqual([waiting.DisableScaleIn, busy.DisableScaleIn ?? false], [true, false]);
  // One of the series that workers write, under the same dimensions.
  const series = ofWorkers.series.find(({ names }) => names.includes(MetricName));
  assert.deepEqual(
    Dimensions.map(({ Name }: { Name: string }) => Name),
    [METRICS.dimension, ...(series?.dimensions ?? [])],
  );
  assert.equal(
    policies({ most: 6, metrics: false }).length,
    1,
    "without the metric there is nothing to follow",
  );
});
