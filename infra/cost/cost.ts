/**
 * Estimates the monthly cost of the example: `npm run cost`. The resource counts come from the example's template, so
 * the sum follows the example. The usage is assumed here and stated in the table.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { App } from "aws-cdk-lib";
import { METRICS } from "../lib/constructs/metrics.ts";
import { ServiceStack, StateStack } from "../lib/index.ts";
import { temporaryFolder } from "../lib/temporary.ts";
import { PRICES, type Price, REGION } from "./prices.ts";

/** Hours of a month, as AWS's own calculator counts them. */
const HOURS = 730;
const SECONDS = HOURS * 3600;

/** Five stages, each with one task for each of 64 partitions. */
const TASKS = 5 * 64;
/** The execution of a task starts and succeeds. */
const TRANSITIONS_OF_TASK = 2;
/** Take, begin, five stages with `Next` and the choice of the stage, commit, report. */
const TRANSITIONS_OF_LOAD = 22;

/** The monthly usage of a deployment. */
export interface Load {
  readonly name: string;
  /** Millions of queries through the API. */
  readonly queries: number;
  /** Average run time of the function for one query, in seconds. */
  readonly seconds: number;
  /** Average size of an answer, in KB. */
  readonly answerKb: number;
  /** Number of drops that are loaded. */
  readonly loads: number;
  /** Average run time of one task of a load, in seconds. */
  readonly taskSeconds: number;
  /** Size of the stored checkpoints and segments, in GB. */
  readonly objectsGb: number;
  /** Size of what all replicas write in a round of checkpoints, every 5 minutes in which clients write, in GB. */
  readonly rewrittenGb: number;
  /** Fraction of the time in which clients write, so that each replica takes a checkpoint every 5 minutes. */
  readonly writing: number;
  /** Size of the logs and metrics that are written, in GB. */
  readonly logsGb: number;
  /** Traffic between nodes, workers and functions in different zones, in GB. */
  readonly betweenZonesGb: number;
}

export const IDLE: Load = {
  name: "idle",
  queries: 0,
  seconds: 0,
  answerKb: 0,
  loads: 0,
  taskSeconds: 0,
  objectsGb: 1,
  rewrittenGb: 0,
  writing: 0,
  logsGb: 1,
  betweenZonesGb: 0,
};

export const AT_WORK: Load = {
  name: "at work",
  queries: 50,
  seconds: 0.02,
  answerKb: 4,
  loads: 30,
  taskSeconds: 10,
  objectsGb: 300,
  rewrittenGb: 5,
  writing: 0.5,
  logsGb: 40,
  betweenZonesGb: 1000,
};

/** One line of the estimate. */
export interface Line {
  readonly what: string;
  readonly how: string;
  readonly dollars: number;
}

interface Resource {
  readonly Type: string;
  // biome-ignore lint/suspicious/noExplicitAny: templates have no types
  readonly Properties: any;
}

/** Returns the resources of the example with default settings. */
export function exampleResources(): Resource[] {
  const bundle = temporaryFolder("cost");
  const programs = ["bootstrap", "tidegraph", "tidegraph-node", "tidegraph-rebalance", "tidegraph-ingest"];
  for (const program of programs) writeFileSync(join(bundle, program), program);
  const { context } = JSON.parse(readFileSync(join(import.meta.dirname, "..", "cdk.json"), "utf8"));
  const app = new App({
    // The code of functions costs nothing, so bundling is skipped.
    context: { ...context, "aws:cdk:bundling-stacks": [] },
    outdir: temporaryFolder("cost"),
    analyticsReporting: false,
  });
  const { state } = new StateStack(app, "State", { name: "example" });
  new ServiceStack(app, "Service", { state, bundle });
  const assembly = app.synth();
  return ["State", "Service"].flatMap((name) => {
    const { Resources } = assembly.getStackByName(name).template as { Resources: Record<string, Resource> };
    return Object.values(Resources);
  });
}

/** Returns the monthly cost of these resources under a load, line by line. */
export function monthly(resources: readonly Resource[], load: Load): Line[] {
  const lines: Line[] = [];
  const add = (what: string, how: string, count: number, price: Price): void => {
    lines.push({ what, how: `${how} × $${price.dollars} per ${price.unit}`, dollars: count * price.dollars });
  };
  const of = (type: string): Resource[] => resources.filter((resource) => resource.Type === type);
  const one = (type: string): Resource["Properties"] => {
    const [first] = of(type);
    if (first === undefined) throw new Error(`the example has no ${type}`);
    return first.Properties;
  };
  const nodes = Number(one("AWS::AutoScaling::AutoScalingGroup").MinSize);
  const template = one("AWS::EC2::LaunchTemplate").LaunchTemplateData;
  add(
    "storage nodes",
    `${nodes} ${template.InstanceType} × ${HOURS} h`,
    nodes * HOURS,
    known(PRICES.nodes, template.InstanceType),
  );
  const gb = Number(template.BlockDeviceMappings[0].Ebs.VolumeSize);
  add("their system disks", `${nodes} × ${gb} GB`, nodes * gb, PRICES.ebs);

  const cluster = one("AWS::MSK::Cluster");
  const { InstanceType, StorageInfo } = cluster.BrokerNodeGroupInfo;
  const brokers = Number(cluster.NumberOfBrokerNodes);
  add(
    "brokers of the log",
    `${brokers} ${InstanceType} × ${HOURS} h`,
    brokers * HOURS,
    known(PRICES.brokers, InstanceType),
  );
  const disk = Number(StorageInfo.EBSStorageInfo.VolumeSize);
  add("their disks", `${brokers} × ${disk} GB`, brokers * disk, PRICES.brokerStorage);

  const task = one("AWS::ECS::TaskDefinition");
  const workers = Number(one("AWS::ECS::Service").DesiredCount);
  const [vcpu, memory] = [Number(task.Cpu) / 1024, Number(task.Memory) / 1024];
  add(
    "workers: processors",
    `${workers} × ${vcpu} vCPU × ${HOURS} h`,
    workers * vcpu * HOURS,
    PRICES.fargateProcessor,
  );
  add(
    "workers: memory",
    `${workers} × ${memory} GB × ${HOURS} h`,
    workers * memory * HOURS,
    PRICES.fargateMemory,
  );
  add("balancer", `1 × ${HOURS} h`, HOURS, PRICES.balancer);

  const endpoints = of("AWS::EC2::VPCEndpoint").filter(
    ({ Properties }) => Properties.VpcEndpointType === "Interface",
  );
  const zones = endpoints.reduce((sum, { Properties }) => sum + Properties.SubnetIds.length, 0);
  add(
    "interface endpoints",
    `${endpoints.length} in ${zones / endpoints.length} zones × ${HOURS} h`,
    zones * HOURS,
    PRICES.endpoint,
  );
  add("data through them", `${load.logsGb} GB`, load.logsGb, PRICES.endpointData);

  const millions = load.queries;
  add("API", `${millions} million`, millions, PRICES.requests);
  add("function: invocations", `${millions} million`, millions, PRICES.invocations);
  /** Finds the function that has an environment variable. */
  const having = (variable: string): Resource["Properties"] =>
    of("AWS::Lambda::Function").find(({ Properties }) => Properties.Environment?.Variables?.[variable])
      ?.Properties;
  const size = Number(having("TIDEGRAPH_QUERY_TIMEOUT_MS")?.MemorySize) / 1024;
  const used = millions * 1e6 * load.seconds * size;
  add(
    "function: time",
    `${millions} million × ${load.seconds} s × ${size.toFixed(2)} GB`,
    used,
    PRICES.duration,
  );
  // The detector watches for signs of life once a minute.
  const moves = having("TIDEGRAPH_SILENCE_MS");
  const watched = Number(moves?.Environment.Variables.TIDEGRAPH_SILENCE_MS) / 1000 + 1;
  const watches = SECONDS / 60;
  const mib = Number(moves?.MemorySize);
  add(
    "looking for lost nodes",
    `${Math.round(watches / 1000)} thousand × ${watched} s × ${mib} MB`,
    (watches * watched * mib) / 1024,
    PRICES.duration,
  );
  const ofLoads = Number(having("TIDEGRAPH_OBJECTS")?.MemorySize) / 1024;
  const tasks = load.loads * TASKS;
  add(
    "loads: functions",
    `${load.loads} × ${TASKS} tasks × ${load.taskSeconds} s × ${ofLoads.toFixed(2)} GB`,
    tasks * load.taskSeconds * ofLoads,
    PRICES.duration,
  );
  const transitions = (tasks * TRANSITIONS_OF_TASK + load.loads * TRANSITIONS_OF_LOAD) / 1000;
  add("loads: state machine", `${transitions.toFixed(1)} thousand`, transitions, PRICES.transitions);
  const outward = (millions * 1e6 * load.answerKb) / 1e6;
  add("answers", `${outward} GB`, outward, PRICES.outward);
  add(
    "between zones, both ways",
    `${load.betweenZonesGb} GB × 2`,
    load.betweenZonesGb * 2,
    PRICES.betweenZones,
  );

  // From docs/partition-map.md: a node or worker polls every second, for half a unit; a node sends a heartbeat every
  // second, for one unit. Every 300 ms the holder of a lease renews it and the other nodes read it, for one unit each.
  const looks = ((nodes + workers) * SECONDS * 0.5) / 1e6;
  const waiting = ((nodes - 1) * SECONDS) / 0.3 / 1e6;
  add("map: reads", `${(looks + waiting).toFixed(1)} million`, looks + waiting, PRICES.mapReads);
  const writes = (nodes * SECONDS + SECONDS / 0.3) / 1e6;
  add("map: writes", `${writes.toFixed(1)} million`, writes, PRICES.mapWrites);
  add("checkpoints and segments", `${load.objectsGb} GB`, load.objectsGb, PRICES.objects);

  // What newer checkpoints replaced stays as long as the data bucket's rule says.
  const buckets = of("AWS::S3::Bucket").filter(
    ({ Properties }) => Properties.VersioningConfiguration?.Status === "Enabled",
  );
  const rules = buckets.flatMap(({ Properties }) => Properties.LifecycleConfiguration.Rules);
  const kept = Math.max(
    ...rules.map((rule) => Number(rule.NoncurrentVersionExpiration?.NoncurrentDays ?? 0)),
  );
  const rounds = load.writing * 12 * 24;
  add(
    "deleted checkpoints",
    `${load.rewrittenGb} GB × ${rounds} a day × ${kept} day`,
    load.rewrittenGb * rounds * kept,
    PRICES.objects,
  );

  // 64 partitions with two replicas, and two objects for each checkpoint.
  const puts = (load.writing * 64 * 2 * 2 * SECONDS) / 300 / 1000;
  add("writing them", `${puts.toFixed(0)} thousand`, puts, PRICES.puts);

  add("key", "1", of("AWS::KMS::Key").length, PRICES.key);
  const secrets = of("AWS::SecretsManager::Secret").length;
  add("secrets", `${secrets}`, secrets, PRICES.secret);
  const ofNodes: Readonly<Record<string, readonly string[]>> = {
    outcome: METRICS.outcomes,
    what: METRICS.refusals,
  };
  const own = METRICS.ofNodes.map((selected) => countOf(selected, ofNodes));
  own.push(METRICS.ofIngest.names.length);
  own.push(workers > 0 ? metricsOfWorkers() : 0);
  // Detailed monitoring of a machine produces seven metrics.
  const metrics = own.reduce((sum, count) => sum + count, 0) + nodes * 7;
  add("metrics", `${metrics}`, metrics, PRICES.metric);
  // An alarm on several metrics costs as much as an alarm on each.
  const ofAlarms = of("AWS::CloudWatch::Alarm").map(({ Properties: { Metrics } }) =>
    Metrics ? Metrics.filter(({ MetricStat }: { MetricStat?: unknown }) => MetricStat).length : 1,
  );
  const alarms = ofAlarms.reduce((all, count) => all + count, 0);
  add("alarms", `${alarms} metrics`, alarms, PRICES.alarm);
  add("logs", `${load.logsGb} GB`, load.logsGb, PRICES.logs);
  return lines;
}

/** Returns the number of metrics that workers write, each with each value of its dimension. */
function metricsOfWorkers(): number {
  const values: Readonly<Record<string, readonly string[]>> = METRICS.ofWorkers.values;
  const series = METRICS.ofWorkers.series.map((selected) => countOf(selected, values));
  return series.reduce((sum, count) => sum + count, 0);
}

/** Returns the number of metrics of a selection: of each name, one for each combination of its dimensions' values. */
function countOf(
  { names, dimensions }: { readonly names: readonly string[]; readonly dimensions: readonly string[] },
  values: Readonly<Record<string, readonly string[]>>,
): number {
  return dimensions.reduce((count, dimension) => count * (values[dimension]?.length ?? 1), names.length);
}

/** Returns the price of an instance type, or throws an error that names the missing type. */
function known(prices: Readonly<Record<string, Price>>, kind: string): Price {
  const found = prices[kind];
  if (found === undefined)
    throw new Error(`there is no price of ${kind} in prices.ts, only of ${Object.keys(prices).join(", ")}`);
  return found;
}

export function total(lines: readonly Line[]): number {
  return lines.reduce((sum, { dollars }) => sum + dollars, 0);
}

/** Returns the estimate as a Markdown table, as docs/cost.md contains it. */
export function table(resources: readonly Resource[]): string {
  const [idle, work] = [monthly(resources, IDLE), monthly(resources, AT_WORK)];
  const amount = (dollars: number): string => dollars.toFixed(2);
  const rows = work.map(({ what, how, dollars }, index) => {
    const before = idle[index]?.dollars ?? 0;
    return `| ${what} | ${how} | ${amount(before)} | ${amount(dollars)} |`;
  });
  return [
    `| ${REGION}, dollars a month | at work | idle | at work |`,
    "|---|---|---|---|",
    ...rows,
    `| **sum** | | **${amount(total(idle))}** | **${amount(total(work))}** |`,
  ].join("\n");
}

if (process.argv[1] === import.meta.filename) console.log(table(exampleResources()));
