/** The alarms: those that are on, those that tell nobody, and who is told. */
import { DescribeAlarmsCommand, type MetricAlarm } from "@aws-sdk/client-cloudwatch";
import { ListSubscriptionsByTopicCommand } from "@aws-sdk/client-sns";
import type { Context } from "../context.ts";
import { absent, type Check, failed, ok, some } from "../finding.ts";

const DESCRIBE = "cloudwatch:DescribeAlarms";
const NONE = absent("none of the stacks has alarms");
/** The most names in one request. */
const BATCH = 100;

interface Named {
  readonly alarm: MetricAlarm | undefined;
  /** The name of the alarm in AWS. */
  readonly name: string;
  /** The name of its section in the runbook. */
  readonly section: string;
}

/** Returns the alarms of the deployment with what CloudWatch says of each. */
function alarmsOf(context: Context): Promise<Named[]> {
  return context.once("alarms", async () => {
    const resources = context.deployment.all("AWS::CloudWatch::Alarm");
    const found = new Map<string, MetricAlarm>();
    for (let at = 0; at < resources.length; at += BATCH) {
      const AlarmNames = resources.slice(at, at + BATCH).map(({ id }) => id);
      const asked = new DescribeAlarmsCommand({ AlarmNames, MaxRecords: BATCH });
      const { MetricAlarms = [] } = await context.clients.cw.send(asked);
      for (const alarm of MetricAlarms) found.set(alarm.AlarmName ?? "", alarm);
    }
    return resources.map(({ id, logicalId }) => ({
      alarm: found.get(id),
      name: id,
      section: section(logicalId),
    }));
  });
}

/** Returns the name of an alarm in the runbook, by its logical id: `LogFull` of `ServiceWatchLogFull1BAF63A74`. */
export function section(logicalId: string): string {
  return logicalId
    .replace(/[0-9A-F]{8}$/, "")
    .replace(/^.*Watch/, "")
    .replace(/\d+$/, "");
}

const now: Check = {
  id: "alarms.now",
  actions: [DESCRIBE],
  async look(context) {
    const alarms = await alarmsOf(context);
    if (alarms.length === 0) return NONE;
    const on = alarms.filter(({ alarm }) => alarm?.StateValue === "ALARM");
    if (on.length === 0) return ok(`none of ${alarms.length}`);
    return on.map(({ alarm, name, section }) =>
      failed(`on since ${alarm?.StateUpdatedTimestamp?.toISOString() ?? "?"}: ${alarm?.StateReason ?? ""}`, {
        subject: name,
        wanted: "off",
        remedy: `docs/runbook.md, section ${section}: ${alarm?.AlarmDescription ?? ""}`,
      }),
    );
  },
};

const actions: Check = {
  id: "alarms.actions",
  actions: [DESCRIBE],
  async look(context) {
    const alarms = await alarmsOf(context);
    if (alarms.length === 0) return NONE;
    const silent = alarms.filter(({ alarm }) => alarm && (alarm.AlarmActions ?? []).length === 0);
    const off = alarms.filter(({ alarm }) => alarm?.ActionsEnabled === false);
    const gone = alarms.filter(({ alarm }) => alarm === undefined);
    const list = (named: readonly Named[]) => some(named.map(({ name }) => name));
    const seen = [
      ...(gone.length > 0 ? [`deleted: ${list(gone)}`] : []),
      ...(off.length > 0 ? [`actions are off: ${list(off)}`] : []),
      ...(silent.length > 0 ? [`without actions: ${list(silent)}`] : []),
    ];
    if (seen.length === 0) return ok(`all ${alarms.length} alarms have actions`);
    const names = off.map(({ name }) => name).join(" ");
    return failed(seen.join("; "), {
      wanted: "each alarm tells the topic",
      remedy:
        off.length > 0
          ? `aws cloudwatch enable-alarm-actions --alarm-names ${names}`
          : "deploy the service again: somebody changed or deleted these alarms",
    });
  },
};

const topic: Check = {
  id: "alarms.topic",
  actions: ["sns:ListSubscriptionsByTopic"],
  async look({ clients, deployment }) {
    const TopicArn = deployment.output("AlarmTopic");
    if (TopicArn === undefined) return absent("none of the stacks has a topic of alarms");
    const { Subscriptions = [] } = await clients.sns.send(new ListSubscriptionsByTopicCommand({ TopicArn }));
    const confirmed = Subscriptions.filter(({ SubscriptionArn }) => SubscriptionArn?.startsWith("arn:"));
    const kinds = confirmed.map(({ Protocol = "" }) => Protocol);
    const rest = {
      subject: TopicArn,
      wanted: "at least one confirmed subscription",
      remedy: `aws sns subscribe --topic-arn ${TopicArn} --protocol email --notification-endpoint YOU, and follow the link in the mail`,
    };
    if (confirmed.length > 0)
      return ok(`${confirmed.length} subscriptions (${[...new Set(kinds)].join(", ")})`, TopicArn);
    if (Subscriptions.length > 0) return failed("no subscription is confirmed", rest);
    return failed("nobody is told: there is no subscription", rest);
  },
};

export const ALARMS: readonly Check[] = [now, actions, topic];
