/** Alarms on objectives of the API: thresholds, windows, and whom they tell. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Duration } from "aws-cdk-lib";
import { InvalidProp } from "../lib/check.ts";
import { example, flat, named, ofType } from "./support.ts";

test("without objectives there are no such alarms", () => {
  example().service.resourceCountIs("AWS::CloudWatch::CompositeAlarm", 0);
});

test("errors that use up the budget too fast are told once, by two windows each", () => {
  const { service } = example({ objectives: { availability: 99.5 } });
  for (const [id, name, rate, windows] of [
    ["BudgetBurnsFast", "example-budget-burns-fast", 14.4, [60, 5]],
    ["BudgetBurnsSlowly", "example-budget-burns-slowly", 6, [360, 30]],
  ] as const) {
    const both = named(service, "AWS::CloudWatch::CompositeAlarm", `ServiceObjectives${id}`).Properties;
    assert.match(flat(both.AlarmActions[0]), /^<ServiceWatchTopic/);
    assert.equal(both.AlarmName, name, "two deployments in an account have different ones");
    const rule = flat(both.AlarmRule);
    assert.match(rule, / AND /);
    for (const minutes of windows) {
      // The logical id ends in eight digits of a hash.
      const found = ofType(service, "AWS::CloudWatch::Alarm").filter(([window]) =>
        new RegExp(`^ServiceObjectives${id}${minutes}[0-9A-F]{8}$`).test(window),
      );
      const [[window, { Properties }] = ["", { Properties: {} }], ...more] = found;
      assert.deepEqual(more, []);
      assert.ok(rule.includes(window), rule);
      assert.ok(Math.abs(Properties.Threshold - rate * 0.005) < 1e-9, String(Properties.Threshold));
      assert.equal(Properties.AlarmActions, undefined, "only both together tell");
      const periods = Properties.Metrics.flatMap(
        ({ MetricStat: metric }: { MetricStat?: { Period: number } }) => (metric ? [metric.Period] : []),
      );
      assert.deepEqual(periods, [minutes * 60, minutes * 60]);
    }
  }
  // What takes hours to end stops no upgrade.
  const upgrade = JSON.stringify(
    named(service, "AWS::StepFunctions::StateMachine", "ServiceUpgrade").Properties,
  );
  assert.ok(!upgrade.includes("ServiceObjectives"));
  assert.ok(ofType(service, "AWS::CloudWatch::Alarm").every(([id]) => !id.includes("ApiSlow")));
});

test("requests that take longer than the objective are told", () => {
  const { service } = example({ objectives: { latency: Duration.seconds(2) } });
  const slow = named(service, "AWS::CloudWatch::Alarm", "ServiceObjectivesApiSlow").Properties;
  assert.deepEqual([slow.Threshold, slow.ExtendedStatistic, slow.Period], [2000, "p99", 300]);
  assert.deepEqual([slow.DatapointsToAlarm, slow.EvaluationPeriods], [3, 6]);
});

test("impossible objectives are refused", () => {
  for (const availability of [0, 89, 100, 99.9 / 100, Number.NaN])
    assert.throws(
      () => example({ objectives: { availability } }),
      (error) => error instanceof InvalidProp && error.prop === "objectives.availability",
      String(availability),
    );
  for (const latency of [Duration.millis(0), Duration.minutes(5)])
    assert.throws(
      () => example({ objectives: { latency } }),
      (error) => error instanceof InvalidProp && error.prop === "objectives.latency",
      latency.toString(),
    );
});
