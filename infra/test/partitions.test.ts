/** The alarm on partitions that have grown too large, and the metric that it watches. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { METRICS } from "../lib/constructs/metrics.ts";
import { example, flat, named, ofType } from "./support.ts";

const METRIC = "tidegraph_largest_replica_bytes";
const ROOT = join(import.meta.dirname, "..", "..");

for (const graphs of [[], [{ name: "orders" }]]) {
  const { service } = example({ graphs });

  test(`a replica of more than 10 GB raises an alarm, with ${graphs.length + 1} graphs`, () => {
    const alarm = named(service, "AWS::CloudWatch::Alarm", "ServiceWatchPartitionsLarge").Properties;
    assert.deepEqual(
      [alarm.Namespace, alarm.MetricName, alarm.Statistic, alarm.Threshold, alarm.ComparisonOperator],
      ["Tidegraph", METRIC, "Maximum", 10_000_000_000, "GreaterThanThreshold"],
    );
    // Of all nodes and graphs: one metric, however many there are.
    assert.deepEqual(alarm.Dimensions, [{ Name: "Deployment", Value: "example" }]);
    assert.deepEqual([alarm.Period, alarm.EvaluationPeriods, alarm.DatapointsToAlarm], [60, 15, 15]);
    assert.equal(alarm.TreatMissingData, "notBreaching");
    assert.deepEqual(alarm.AlarmActions, alarm.OKActions);
  });

  test(`the agent sends the metric once, with ${graphs.length + 1} graphs`, () => {
    const data = named(service, "AWS::EC2::LaunchTemplate", "ServiceNodes").Properties.LaunchTemplateData;
    const [, settings = ""] =
      /^cat >\/opt\/tidegraph\/etc\/agent\.json <<'END OF FILE'\n(.*?)^END OF FILE$/ms.exec(
        flat(data.UserData["Fn::Base64"]),
      ) ?? [];
    const { emf_processor } = JSON.parse(settings).logs.metrics_collected.prometheus;
    const declared: { dimensions: string[][]; metric_selectors: string[] }[] =
      emf_processor.metric_declaration;
    const selecting = declared.filter(({ metric_selectors }) => metric_selectors.includes(`^${METRIC}$`));
    assert.deepEqual(
      selecting.map(({ dimensions }) => dimensions),
      [[["Deployment"]]],
    );
  });
}

test("it stops no upgrade, because a split takes hours and an upgrade may be what is needed before", () => {
  const { service } = example();
  const ids = ofType(service, "AWS::CloudWatch::Alarm").map(([id]) => id);
  assert.ok(ids.some((id) => id.startsWith("ServiceWatchPartitionsLarge")));
  const machine = JSON.stringify(named(service, "AWS::StepFunctions::StateMachine", "ServiceUpgrade"));
  assert.ok(machine.includes("ServiceWatchNodesAway"));
  assert.ok(!machine.includes("PartitionsLarge"));
});

test("nodes have each metric that is selected", () => {
  const names = readFileSync(join(ROOT, "engine-core", "platform", "src", "metric.rs"), "utf8");
  const selected = [...METRICS.ofNodes, METRICS.ofCertificates, METRICS.ofArchives];
  for (const name of selected.flatMap((one) => one.names)) assert.ok(names.includes(`= "${name}";`), name);
});
