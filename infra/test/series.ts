/** The CloudWatch metrics that templates read: in alarms, on dashboards and for the number of workers. */
import type { Template } from "aws-cdk-lib/assertions";
import { flat, ofType } from "./support.ts";

/** A metric that something reads. */
export interface Series {
  readonly namespace: string;
  readonly name: string;
  /** Values by the names of dimensions, as text. */
  readonly dimensions: Readonly<Record<string, string>>;
  readonly statistic: string;
  /** Seconds. */
  readonly period: number;
  /** What reads it: the logical id of an alarm, or the title of a graph. */
  readonly reader: string;
}

// biome-ignore lint/suspicious/noExplicitAny: templates have no types
type Properties = any;

const dimensionsIn = (all: { Name: string; Value: unknown }[] = []): Record<string, string> =>
  Object.fromEntries(all.map(({ Name, Value }) => [Name, flat(Value)]));

/** Returns the metrics that an alarm reads: one, or those of its expressions. */
export function ofAlarm(reader: string, properties: Properties): Series[] {
  const {
    Namespace,
    MetricName,
    Dimensions,
    Period,
    Statistic,
    ExtendedStatistic,
    Metrics = [],
  } = properties;
  const one = {
    MetricStat: {
      Metric: { Namespace, MetricName, Dimensions },
      Period,
      Stat: Statistic ?? ExtendedStatistic,
    },
  };
  const all = MetricName === undefined ? Metrics : [one];
  return all.flatMap(({ MetricStat }: Properties) =>
    MetricStat === undefined
      ? []
      : {
          namespace: MetricStat.Metric.Namespace,
          name: MetricStat.Metric.MetricName,
          dimensions: dimensionsIn(MetricStat.Metric.Dimensions),
          statistic: MetricStat.Stat,
          period: MetricStat.Period,
          reader,
        },
  );
}

/** Returns the metrics of a dashboard's graphs. Its body is JSON as text, with references between the parts. */
function ofDashboard({ "Fn::Join": [, parts] }: Properties): Series[] {
  const text = (part: unknown) => (typeof part === "string" ? part : JSON.stringify(flat(part)).slice(1, -1));
  const { widgets }: Properties = JSON.parse(parts.map(text).join(""));
  return widgets.flatMap(({ properties: { title, metrics } }: Properties) =>
    metrics.flatMap((metric: unknown[]) => {
      const options = metric.filter((part) => typeof part === "object") as Properties[];
      const [namespace = "", name = "", ...pairs] = metric.filter((part) => typeof part === "string");
      const { expression, stat = "Average", period = 300 } = Object.assign({}, ...options);
      if (expression !== undefined) return [];
      const dimensions = Object.fromEntries(
        pairs.flatMap((key, at) => (at % 2 === 0 ? [[key, pairs[at + 1] ?? ""]] : [])),
      );
      return { namespace, name, dimensions, statistic: stat, period, reader: title };
    }),
  );
}

/** Returns all metrics that a template reads. */
export function seriesIn(template: Template): Series[] {
  const alarms = ofType(template, "AWS::CloudWatch::Alarm").flatMap(([id, { Properties }]) =>
    ofAlarm(id.replace(/[0-9A-F]{8}$/, ""), Properties),
  );
  const dashboards = ofType(template, "AWS::CloudWatch::Dashboard").flatMap(([, { Properties }]) =>
    ofDashboard(Properties.DashboardBody),
  );
  const followed = ofType(template, "AWS::ApplicationAutoScaling::ScalingPolicy").flatMap(
    ([id, { Properties }]) => {
      const { CustomizedMetricSpecification: metric } = Properties.TargetTrackingScalingPolicyConfiguration;
      return metric === undefined ? [] : ofAlarm(id.replace(/[0-9A-F]{8}$/, ""), { Period: 60, ...metric });
    },
  );
  return [...alarms, ...dashboards, ...followed];
}
