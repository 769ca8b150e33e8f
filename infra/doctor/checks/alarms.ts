/** The alarms: those that are on, those that tell nobody, and who is told. */
import { type CompositeAlarm, DescribeAlarmsCommand, type MetricAlarm } from "@aws-sdk/client-cloudwatch";
import { ListSubscriptionsByTopicCommand } from "@aws-sdk/client-sns";
import type { Context } from "../context.ts";
import { absent, type Check, type Finding, failed, ok, some } from "../finding.ts";
import { revertDrift } from "./by-hand.ts";

const DESCRIBE = "cloudwatch:DescribeAlarms";
const NONE = absent("none of the stacks has alarms");
/** The most names in one request. */
const BATCH = 100;

/** The types of alarms that the templates have. */
const TYPES = ["AWS::CloudWatch::Alarm", "AWS::CloudWatch::CompositeAlarm"];

interface Named {
  readonly alarm: MetricAlarm | CompositeAlarm | undefined;
  readonly stack: string;
  /** The name of the alarm in AWS. */
  readonly name: string;
  /** The name of its section in the runbook. */
  readonly section: string;
  /** Whether the template has it tell somebody. Others are read by a state machine, or are parts of another alarm. */
  readonly tells: boolean;
}

/** Returns the alarms of the deployment with what CloudWatch says of each. */
function alarmsOf(context: Context): Promise<Named[]> {
  return context.once("alarms", async () => {
    const resources = TYPES.flatMap((type) => context.deployment.all(type));
    const found = new Map<string, MetricAlarm | CompositeAlarm>();
    for (let at = 0; at < resources.length; at += BATCH) {
      const asked = new DescribeAlarmsCommand({
        AlarmNames: resources.slice(at, at + BATCH).map(({ id }) => id),
        // Without types, CloudWatch leaves composite alarms out.
        AlarmTypes: ["MetricAlarm", "CompositeAlarm"],
        MaxRecords: BATCH,
      });
      const { MetricAlarms = [], CompositeAlarms = [] } = await context.clients.cw.send(asked);
      for (const alarm of [...MetricAlarms, ...CompositeAlarms]) found.set(alarm.AlarmName ?? "", alarm);
    }
    return resources.map(({ id, stack, logicalId, properties }) => ({
      alarm: found.get(id),
      stack,
      name: id,
      section: section(logicalId),
      tells: (properties.AlarmActions ?? []).length > 0,
    }));
  });
}

/**
 * Returns the name of an alarm in the runbook, by its logical id: `LogFull` of `ServiceWatchLogFull1BAF63A74`. A number at
 * its end is that of a broker or of a window.
 */
export function section(logicalId: string): string {
  return logicalId
    .replace(/[0-9A-F]{8}$/, "")
    .replace(/^.*(Watch|Objectives|Autoscaling)/, "")
    .replace(/\d+$/, "");
}

const now: Check = {
  id: "alarms.now",
  actions: [DESCRIBE],
  async look(context) {
    const alarms = await alarmsOf(context);
    if (alarms.length === 0) return NONE;
    const on = alarms.filter(({ alarm }) => alarm?.StateValue === "ALARM");
    const telling = on.filter(({ tells }) => tells);
    if (telling.length === 0) {
      const others = some(on.map(({ name }) => name));
      const also = on.length > 0 ? `; on, and meant to tell nobody: ${others}` : "";
      return ok(`none of ${alarms.filter(({ tells }) => tells).length}${also}`);
    }
    return telling.map(({ alarm, name, section }) =>
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
    const topic = context.deployment.output("AlarmTopic");
    const telling = alarms.filter(({ tells }) => tells);
    const gone = alarms.filter(({ alarm }) => alarm === undefined);
    const off = telling.filter(({ alarm }) => alarm?.ActionsEnabled === false);
    const silent = telling.filter(({ alarm }) => {
      const told = alarm?.AlarmActions ?? [];
      return alarm !== undefined && (topic === undefined ? told.length === 0 : !told.includes(topic));
    });
    const list = (named: readonly Named[]) => some(named.map(({ name }) => name));
    const findings: Finding[] = [];
    if (off.length > 0)
      findings.push(
        failed(`actions are off: ${list(off)}`, {
          wanted: "on",
          remedy: `aws cloudwatch enable-alarm-actions --alarm-names ${off.map(({ name }) => name).join(" ")}`,
        }),
      );
    const stacks = [...new Set([...gone, ...silent].map(({ stack }) => stack))];
    const changed = [
      ...(gone.length > 0 ? [`deleted: ${list(gone)}`] : []),
      ...(silent.length > 0 ? [`do not tell the topic: ${list(silent)}`] : []),
    ];
    if (changed.length > 0)
      findings.push(
        failed(changed.join("; "), {
          wanted: "as the template says",
          remedy: revertDrift(stacks.join(", ")),
        }),
      );
    if (findings.length > 0) return findings;
    const others = alarms.length - telling.length;
    const rest = others > 0 ? `; ${others} others are meant to tell nobody` : "";
    return ok(`all ${telling.length} alarms tell the topic${rest}`);
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
