/** The brokers of the log on MSK: the cluster, the topic of the graph, and the disks. */
import { GetMetricDataCommand } from "@aws-sdk/client-cloudwatch";
import {
  type Cluster,
  DescribeClusterV2Command,
  DescribeConfigurationRevisionCommand,
  DescribeTopicCommand,
} from "@aws-sdk/client-kafka";
import type { Context } from "../context.ts";
import type { Resource } from "../deployment.ts";
import { absent, CallFailed, type Check, failed, ok, unknown, warning } from "../finding.ts";
import { revertDrift } from "./by-hand.ts";
import { isFinding, mapOf } from "./map.ts";

const DESCRIBE = "kafka:DescribeClusterV2";
const NONE = absent("the brokers are not of this deployment: it has no cluster of MSK");

/**
 * Settings of the topic without which records can be lost: those that the log refuses otherwise
 * (`engine-core/log/src/kafka/topic.rs`). Brokers have most of them under a name with a prefix.
 */
const SETTINGS: readonly (readonly [ofTopic: string, ofBroker: string, wanted: string])[] = [
  ["cleanup.policy", "log.cleanup.policy", "delete"],
  ["retention.ms", "log.retention.ms", "-1"],
  ["retention.bytes", "log.retention.bytes", "-1"],
  ["unclean.leader.election.enable", "unclean.leader.election.enable", "false"],
];
const IN_SYNC = "min.insync.replicas";
const COPIES = 3;
const COPIES_IN_SYNC = 2;

/** Percent of a disk: disks grow from the first on, and the alarm `LogFull` goes off at the second. */
const GROWS_AT = 60;
const FULL_AT = 75;

const found = ({ deployment }: Context): Resource | undefined =>
  deployment.one("AWS::MSK::Cluster", "LogCluster");

function clusterOf(context: Context, { id: ClusterArn }: Resource): Promise<Cluster> {
  return context.once("cluster", async () => {
    const { ClusterInfo } = await context.clients.kafka.send(new DescribeClusterV2Command({ ClusterArn }));
    if (ClusterInfo === undefined) throw new Error(`MSK told nothing about ${ClusterArn}`);
    return ClusterInfo;
  });
}

const cluster: Check = {
  id: "log.cluster",
  actions: [DESCRIBE],
  async look(context) {
    const resource = found(context);
    if (resource === undefined) return NONE;
    const { ClusterName = "", State = "?", StateInfo, Provisioned } = await clusterOf(context, resource);
    const { NumberOfBrokerNodes: brokers, CurrentBrokerSoftwareInfo: software } = Provisioned ?? {};
    const rest = {
      subject: ClusterName,
      wanted: "ACTIVE",
      remedy: `aws kafka list-cluster-operations-v2 --cluster-arn ${resource.id}; docs/runbook.md#logoffline`,
    };
    if (State === "ACTIVE")
      return ok(`ACTIVE, ${brokers} brokers, Kafka ${software?.KafkaVersion}`, ClusterName);
    // Brokers are changed one after the other, and serve meanwhile.
    const passes = ["UPDATING", "MAINTENANCE", "REBOOTING_BROKER", "HEALING"].includes(State);
    const seen = StateInfo?.Message ? `${State}: ${StateInfo.Message}` : State;
    return passes ? warning(seen, rest) : failed(seen, rest);
  },
};

const settings: Check = {
  id: "log.settings",
  actions: [DESCRIBE, "kafka:DescribeConfigurationRevision"],
  async look(context) {
    const resource = found(context);
    if (resource === undefined) return NONE;
    const { ClusterName = "" } = await clusterOf(context, resource);
    const there = await brokerSettings(context, resource);
    if (there === undefined) return unknown("the cluster names no configuration");
    const wanted = [
      ...SETTINGS.map(([, name, value]) => [name, value] as const),
      ["auto.create.topics.enable", "false"] as const,
    ];
    const wrong = wanted.flatMap(([name, value]) =>
      there.get(name) === value ? [] : [`${name} is ${there.get(name) ?? "not set"}`],
    );
    const copies = Number(there.get("default.replication.factor"));
    if (!(copies >= COPIES)) wrong.push(`default.replication.factor is ${copies}`);
    const inSync = Number(there.get(IN_SYNC));
    if (!(inSync >= COPIES_IN_SYNC)) wrong.push(`${IN_SYNC} is ${inSync}`);
    if (wrong.length === 0) return ok("as deployed", ClusterName);
    return failed(wrong.join(", "), {
      subject: ClusterName,
      wanted: `${wanted.map(([name, value]) => `${name}=${value}`).join(", ")}, at least ${COPIES} copies with ${COPIES_IN_SYNC} in sync`,
      remedy: revertDrift(resource.stack),
    });
  },
};

async function brokerSettings(
  context: Context,
  resource: Resource,
): Promise<Map<string, string> | undefined> {
  const { Provisioned } = await clusterOf(context, resource);
  const { ConfigurationArn: Arn, ConfigurationRevision: Revision } =
    Provisioned?.CurrentBrokerSoftwareInfo ?? {};
  if (Arn === undefined || Revision === undefined) return undefined;
  return context.once("brokerSettings", async () => {
    const asked = new DescribeConfigurationRevisionCommand({ Arn, Revision });
    const { ServerProperties } = await context.clients.kafka.send(asked);
    return properties(new TextDecoder().decode(ServerProperties));
  });
}

/** Returns the settings in a text with a line `name=value` for each. */
function properties(text: string): Map<string, string> {
  return new Map(
    text.split("\n").flatMap((line) => {
      const [, name = "", value = ""] = /^\s*([^#=\s]+)\s*=\s*(.*?)\s*$/.exec(line) ?? [];
      return name === "" ? [] : [[name, value] as [string, string]];
    }),
  );
}

const topic: Check = {
  id: "log.topic",
  isOfGraph: true,
  actions: [
    "kafka:DescribeTopic",
    ...["Connect", "DescribeTopic", "DescribeTopicDynamicConfiguration"].map(
      (verb) => `kafka-cluster:${verb}`,
    ),
  ],
  async look(context) {
    const resource = found(context);
    if (resource === undefined) return NONE;
    const map = await mapOf(context);
    if (isFinding(map)) return map;
    const TopicName = `tidegraph-${context.graph}`;
    const asked = new DescribeTopicCommand({ ClusterArn: resource.id, TopicName });
    const answer = await context.clients.kafka.send(asked).catch((error: unknown): undefined => {
      if (!(error instanceof CallFailed && error.isMissing)) throw error;
    });
    if (answer === undefined) {
      return failed("the topic does not exist, and the map has a graph", {
        subject: TopicName,
        wanted: "the log of the graph",
        remedy: "docs/durability.md#when-the-brokers-lost-the-log",
      });
    }
    const { ReplicationFactor: copies = 0, PartitionCount: partitions = 0, Configs = "" } = answer;
    const own = properties(Buffer.from(Configs, "base64").toString());
    // What the topic does not set, it has from the brokers.
    const needed = [...SETTINGS.map(([name]) => name), IN_SYNC].some((name) => !own.has(name));
    const ofBrokers = needed ? await brokerSettings(context, resource) : undefined;
    const wrong = SETTINGS.flatMap(([name, ofBroker, wanted]) => {
      const value = own.get(name) ?? ofBrokers?.get(ofBroker);
      return value === wanted ? [] : [`${name} is ${value ?? "not set"}`];
    });
    const inSync = Number(own.get(IN_SYNC) ?? ofBrokers?.get(IN_SYNC));
    if (!(inSync >= COPIES_IN_SYNC)) wrong.push(`${IN_SYNC} is ${inSync}`);
    if (copies < COPIES) wrong.push(`there are ${copies} copies`);
    const { shards } = map.graph;
    if (partitions !== shards) wrong.push(`there are ${partitions} partitions`);
    const wanted = `${shards} partitions, ${COPIES} copies, ${COPIES_IN_SYNC} in sync, no deletion by time or size`;
    if (wrong.length === 0) return ok(wanted, TopicName);
    return failed(wrong.join(", "), {
      subject: TopicName,
      wanted,
      remedy:
        "kafka-configs.sh --alter sets the topic's settings back, kafka-reassign-partitions.sh its copies; find out who changed them. A topic with other partitions is another graph's",
    });
  },
};

const disks: Check = {
  id: "log.disks",
  actions: [DESCRIBE, "cloudwatch:GetMetricData"],
  async look(context) {
    const resource = found(context);
    if (resource === undefined) return NONE;
    const { ClusterName = "", Provisioned } = await clusterOf(context, resource);
    const brokers = Provisioned?.NumberOfBrokerNodes ?? 0;
    const volume = Provisioned?.BrokerNodeGroupInfo?.StorageInfo?.EbsStorageInfo?.VolumeSize;
    const used = await diskUsed(context, ClusterName, brokers);
    const most = context.deployment.one("AWS::ApplicationAutoScaling::ScalableTarget", "LogDisks")?.properties
      .MaxCapacity as number | undefined;
    const size = `of ${volume} GiB${most === undefined ? "" : `, which grow up to ${most} GiB`}`;
    if (used.size === 0) {
      return unknown(
        `CloudWatch has no KafkaDataLogsDiskUsed of the last hour for ${ClusterName}`,
        "wait for half an hour after the cluster was made; otherwise look at its log group brokers",
      );
    }
    const percent = Math.max(...used.values());
    const seen = `${[...used].map(([broker, value]) => `broker ${broker} ${value.toFixed(0)} %`).join(", ")} ${size}`;
    const rest = {
      subject: ClusterName,
      wanted: `below ${FULL_AT} %, with room to grow`,
      remedy: "raise log.mostVolumeGib, and see why the log is not trimmed: docs/runbook.md#logfull",
    };
    if (percent >= FULL_AT) return failed(seen, rest);
    const isAtMost = volume !== undefined && most !== undefined && volume >= most;
    return percent >= GROWS_AT && isAtMost ? warning(seen, rest) : ok(seen, ClusterName);
  },
};

async function diskUsed(context: Context, cluster: string, brokers: number): Promise<Map<number, number>> {
  const now = Date.now();
  const ids = Array.from({ length: brokers }, (_, index) => index + 1);
  const asked = new GetMetricDataCommand({
    StartTime: new Date(now - 3_600_000),
    EndTime: new Date(now),
    ScanBy: "TimestampDescending",
    MetricDataQueries: ids.map((broker) => ({
      Id: `b${broker}`,
      MetricStat: {
        Metric: {
          Namespace: "AWS/Kafka",
          MetricName: "KafkaDataLogsDiskUsed",
          Dimensions: [
            { Name: "Cluster Name", Value: cluster },
            { Name: "Broker ID", Value: String(broker) },
          ],
        },
        Period: 300,
        Stat: "Maximum",
      },
    })),
  });
  const { MetricDataResults = [] } = await context.clients.cw.send(asked);
  return new Map(
    MetricDataResults.flatMap(({ Id = "", Values: [newest] = [] }) =>
      newest === undefined ? [] : [[Number(Id.slice(1)), newest] as [number, number]],
    ),
  );
}

export const LOG: readonly Check[] = [cluster, settings, topic, disks];
