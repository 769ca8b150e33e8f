/**
 * Alarms on objectives of the API (SLO): how many requests may fail, and how long they may take. An alarm on single errors
 * tells of too much; these tell when the errors of a month's budget are used up too fast, after the method of multiple
 * windows and burn rates (https://sre.google/workbook/alerting-on-slos/).
 */
import { Duration } from "aws-cdk-lib";
import type { Stage } from "aws-cdk-lib/aws-apigateway";
import * as cloudwatch from "aws-cdk-lib/aws-cloudwatch";
import { SnsAction } from "aws-cdk-lib/aws-cloudwatch-actions";
import type { ITopic } from "aws-cdk-lib/aws-sns";
import { Construct } from "constructs";
import { InvalidProp, whole } from "../check.ts";

/** Objectives of the API. */
export interface ObjectivesProps {
  /**
   * Percent of the requests of a month that do not fail with 5xx.
   *
   * @default 99.9
   */
  readonly availability?: number;
  /**
   * The time within which 99 of 100 requests are answered.
   *
   * @default none: what a query takes is up to the query
   */
  readonly latency?: Duration;
}

/**
 * How fast the budget burns, and in which windows: 14.4 uses up 2 % of a month's budget in an hour, 6 uses up 5 % in six
 * hours. The short window ends the alarm soon after the errors end.
 */
const BURNS = [
  { id: "BudgetBurnsFast", name: "budget-burns-fast", rate: 14.4, minutes: [60, 5] },
  { id: "BudgetBurnsSlowly", name: "budget-burns-slowly", rate: 6, minutes: [360, 30] },
] as const;

/** Fewer requests in a window say nothing about a share of them. */
const LEAST_REQUESTS = 20;

export class Objectives extends Construct {
  constructor(
    scope: Construct,
    id: string,
    props: ObjectivesProps & {
      /** The name of the deployment. */
      readonly name: string;
      readonly stage: Stage;
      readonly topic: ITopic;
    },
  ) {
    super(scope, id);
    const { stage, topic, latency } = props;
    const availability = props.availability ?? 99.9;
    if (!(availability >= 90 && availability < 100))
      throw new InvalidProp("objectives.availability", availability, "percent, from 90 to below 100");
    const budget = 1 - availability / 100;
    const action = new SnsAction(topic);
    for (const { id, name, rate, minutes } of BURNS) {
      const windows = minutes.map((length) => this.window(`${id}${length}`, stage, length, rate * budget));
      const both = new cloudwatch.CompositeAlarm(this, id, {
        // CDK's own name has only ids of constructs, which another deployment in the account may have too.
        compositeAlarmName: `${props.name}-${name}`,
        alarmDescription: `Requests fail ${rate} times as often as ${availability} % of availability allow: look at the log groups access and query.`,
        alarmRule: cloudwatch.AlarmRule.allOf(...windows),
      });
      both.addAlarmAction(action);
      both.addOkAction(action);
    }
    if (latency === undefined) return;
    const ms = whole("objectives.latency", latency.toMilliseconds(), 1, 290_000);
    const slow = new cloudwatch.Alarm(this, "ApiSlow", {
      alarmDescription:
        "More than one of 100 requests takes longer than objectives.latency: look at the log group access.",
      metric: stage.metricLatency({ period: Duration.minutes(5), statistic: "p99" }),
      threshold: ms,
      comparisonOperator: cloudwatch.ComparisonOperator.GREATER_THAN_THRESHOLD,
      evaluationPeriods: 6,
      datapointsToAlarm: 3,
      treatMissingData: cloudwatch.TreatMissingData.NOT_BREACHING,
    });
    slow.addAlarmAction(action);
    slow.addOkAction(action);
  }

  /** Makes an alarm, which tells nobody, on the share of requests that fail in a window. */
  private window(id: string, stage: Stage, minutes: number, above: number): cloudwatch.Alarm {
    const period = Duration.minutes(minutes);
    return new cloudwatch.Alarm(this, id, {
      alarmDescription: `A part of another alarm: the share of requests that failed in ${minutes} minutes.`,
      metric: new cloudwatch.MathExpression({
        expression: `IF(requests >= ${LEAST_REQUESTS}, errors / requests, 0)`,
        usingMetrics: {
          errors: stage.metricServerError({ period, statistic: "Sum" }),
          requests: stage.metricCount({ period, statistic: "SampleCount" }),
        },
        period,
      }),
      threshold: above,
      comparisonOperator: cloudwatch.ComparisonOperator.GREATER_THAN_THRESHOLD,
      evaluationPeriods: 1,
      treatMissingData: cloudwatch.TreatMissingData.NOT_BREACHING,
    });
  }
}
