/** Sums of metrics that count failures, for alarms. */
import { Duration } from "aws-cdk-lib";
import * as cloudwatch from "aws-cdk-lib/aws-cloudwatch";
import type { IRule } from "aws-cdk-lib/aws-events";
import type { IStateMachine } from "aws-cdk-lib/aws-stepfunctions";

const MINUTE = Duration.minutes(1);

/**
 * Returns the sum of metrics. Services write many metrics only when there is something to count, and a sum with a
 * missing summand is missing: so a missing one counts as zero.
 */
export function sum(
  label: string,
  metrics: Readonly<Record<string, cloudwatch.IMetric>>,
  period: Duration = MINUTE,
  weights: Readonly<Record<string, number>> = {},
): cloudwatch.MathExpression {
  const summands = Object.keys(metrics).map((id) => {
    const weight = weights[id] ?? 1;
    return weight === 1 ? `FILL(${id}, 0)` : `${weight} * FILL(${id}, 0)`;
  });
  return new cloudwatch.MathExpression({
    label,
    expression: `SUM([${summands.join(", ")}])`,
    usingMetrics: { ...metrics },
    period,
  });
}

/** Returns how many executions of a machine ended without success: they failed, took too long, or were stopped. */
export function unsuccessful(machine: IStateMachine): Record<string, cloudwatch.IMetric> {
  return {
    failed: machine.metricFailed({ period: MINUTE }),
    timed_out: machine.metricTimedOut({ period: MINUTE }),
    aborted: machine.metricAborted({ period: MINUTE }),
  };
}

/** Returns how many events EventBridge gave up to deliver to the target of a rule. */
export function undelivered(rule: IRule): cloudwatch.Metric {
  return new cloudwatch.Metric({
    namespace: "AWS/Events",
    metricName: "FailedInvocations",
    dimensionsMap: { RuleName: rule.ruleName },
    period: MINUTE,
    statistic: "Sum",
  });
}
