/**
 * Everything that reads a CloudWatch metric names one that somebody writes: AWS, as it documents, or our processes.
 * CloudWatch accepts any namespace, name and dimension; an alarm on a metric that nobody writes stays silent for ever.
 */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { METRICS } from "../lib/constructs/metrics.ts";
import { exampleWithEverything } from "./options.ts";
import { type Series, seriesIn } from "./series.ts";
import { files, flat, ofType, only, type Resource, resources } from "./support.ts";

const ROOT = join(import.meta.dirname, "..", "..");
const read = (...path: string[]): string => readFileSync(join(ROOT, ...path), "utf8");

const { service, state } = exampleWithEverything();
const all = [...seriesIn(service), ...seriesIn(state)];
const known = new Map([...resources(state), ...resources(service)]);

/** Metrics that AWS documents, and the sets of dimensions under which it writes them. */
interface Documented {
  readonly namespace: string;
  readonly names: readonly string[];
  readonly dimensions: readonly (readonly string[])[];
}

/** The metrics of AWS's services that are read here. */
const DOCUMENTED: readonly Documented[] = [
  // https://docs.aws.amazon.com/apigateway/latest/developerguide/api-gateway-metrics-and-dimensions.html
  {
    namespace: "AWS/ApiGateway",
    names: [
      "4XXError",
      "5XXError",
      "CacheHitCount",
      "CacheMissCount",
      "Count",
      "IntegrationLatency",
      "Latency",
    ],
    // Those by method exist with detailed metrics alone.
    dimensions: [["ApiName"], ["ApiName", "Stage"]],
  },
  // https://docs.aws.amazon.com/lambda/latest/dg/monitoring-metrics-types.html and monitoring-metrics-view.html
  {
    namespace: "AWS/Lambda",
    names: ["ConcurrentExecutions", "Duration", "Errors", "Invocations", "Throttles"],
    dimensions: [
      ["FunctionName"],
      ["FunctionName", "Resource"],
      ["FunctionName", "Resource", "ExecutedVersion"],
    ],
  },
  // https://docs.aws.amazon.com/step-functions/latest/dg/procedure-cw-metrics.html
  {
    namespace: "AWS/States",
    names: [
      ...[
        "ExecutionThrottled",
        "ExecutionTime",
        "ExecutionsAborted",
        "ExecutionsFailed",
        "ExecutionsStarted",
      ],
      ...["ExecutionsSucceeded", "ExecutionsTimedOut"],
    ],
    dimensions: [["StateMachineArn"]],
  },
  // https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-monitoring.html: of rules of the default bus
  {
    namespace: "AWS/Events",
    names: ["DeadLetterInvocations", "FailedInvocations", "Invocations", "ThrottledRules", "TriggeredRules"],
    dimensions: [["RuleName"]],
  },
  // https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/metrics-dimensions.html
  {
    namespace: "AWS/DynamoDB",
    names: [
      "ConsumedReadCapacityUnits",
      "ConsumedWriteCapacityUnits",
      "ReadThrottleEvents",
      "WriteThrottleEvents",
    ],
    dimensions: [["TableName"], ["TableName", "GlobalSecondaryIndexName"]],
  },
  {
    namespace: "AWS/DynamoDB",
    names: ["SuccessfulRequestLatency", "SystemErrors", "ThrottledRequests"],
    dimensions: [["TableName", "Operation"]],
  },
  // https://docs.aws.amazon.com/autoscaling/ec2/userguide/ec2-auto-scaling-metrics.html
  {
    namespace: "AWS/AutoScaling",
    names: [
      ...["GroupDesiredCapacity", "GroupInServiceInstances", "GroupMaxSize", "GroupMinSize"],
      ...[
        "GroupPendingInstances",
        "GroupStandbyInstances",
        "GroupTerminatingInstances",
        "GroupTotalInstances",
      ],
    ],
    dimensions: [["AutoScalingGroupName"]],
  },
  // https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/viewing_metrics_with_cloudwatch.html
  {
    namespace: "AWS/EC2",
    names: ["CPUUtilization", "NetworkIn", "NetworkOut"],
    dimensions: [["AutoScalingGroupName"], ["ImageId"], ["InstanceId"], ["InstanceType"]],
  },
  // https://docs.aws.amazon.com/AmazonECS/latest/developerguide/available-metrics.html
  {
    namespace: "AWS/ECS",
    names: ["CPUUtilization", "MemoryUtilization"],
    dimensions: [["ClusterName"], ["ClusterName", "ServiceName"]],
  },
  // https://docs.aws.amazon.com/elasticloadbalancing/latest/network/load-balancer-cloudwatch-metrics.html
  {
    namespace: "AWS/NetworkELB",
    names: ["HealthyHostCount", "UnHealthyHostCount"],
    dimensions: [
      ["LoadBalancer", "TargetGroup"],
      ["AvailabilityZone", "LoadBalancer", "TargetGroup"],
    ],
  },
  // https://docs.aws.amazon.com/msk/latest/developerguide/metrics-details.html: those of the level DEFAULT
  {
    namespace: "AWS/Kafka",
    names: ["ActiveControllerCount", "GlobalPartitionCount", "GlobalTopicCount", "OfflinePartitionsCount"],
    dimensions: [["Cluster Name"]],
  },
  {
    namespace: "AWS/Kafka",
    names: [
      "CpuIdle",
      "CpuSystem",
      "CpuUser",
      "KafkaDataLogsDiskUsed",
      "MemoryFree",
      "UnderReplicatedPartitions",
    ],
    dimensions: [["Cluster Name", "Broker ID"]],
  },
];

/** The operations that the dimension `Operation` of DynamoDB names, on the same page. */
const OPERATIONS = [
  ...["PutItem", "DeleteItem", "UpdateItem", "GetItem", "BatchGetItem", "Scan", "Query", "BatchWriteItem"],
  ...["TransactWriteItems", "TransactGetItems", "ExecuteTransaction", "BatchExecuteStatement"],
  "ExecuteStatement",
];

/** Returns the resource that the text of a reference names: `<ID>`, or `<ID.ATTRIBUTE>` with that attribute. */
function referred(text: string, attribute?: string): Resource | undefined {
  const [, id = "", of] = /^<(\w+)(?:\.(\w+))?>$/.exec(text) ?? [];
  if (of !== attribute) return undefined;
  // What another stack exports has a hash more.
  return known.get(id) ?? known.get(id.replace(/[0-9A-F]{8}$/, ""));
}

const refersTo =
  (type: string, attribute?: string) =>
  (value: string): boolean =>
    referred(value, attribute)?.Type === type;

/** Returns the text of a property of the only resource of a type. */
function property(type: string, name: string): string {
  const [[, found] = ["", undefined], ...more] = [...known].filter(([, { Type }]) => Type === type);
  assert.deepEqual(more, [], type);
  // One stack imports the id of the other.
  return flat(found?.Properties[name]).replaceAll(/\{"Ref":"AWS::StackId"\}/g, "STACK");
}

const isProperty =
  (type: string, name: string) =>
  (value: string): boolean =>
    value.replaceAll(/\{"Fn::ImportValue":"State:ExportsOutputRefAWSStackId\w+"\}/g, "STACK") ===
    property(type, name);

/** Returns whether a value is `net/NAME/ID`, out of the ARN of a listener. */
function isBalancer(value: string): boolean {
  const [, id = ""] = /"Ref":"(\w+)"/.exec(value) ?? [];
  const part = (index: number) =>
    JSON.stringify({ "Fn::Select": [index, { "Fn::Split": ["/", { Ref: id }] }] });
  return (
    known.get(id)?.Type === "AWS::ElasticLoadBalancingV2::Listener" && value === [1, 2, 3].map(part).join("/")
  );
}

/** What the value of each dimension of AWS's metrics has to be. */
const VALUES: Readonly<Record<string, (value: string) => boolean>> = {
  ApiName: isProperty("AWS::ApiGateway::RestApi", "Name"),
  Stage: refersTo("AWS::ApiGateway::Stage"),
  FunctionName: refersTo("AWS::Lambda::Function"),
  StateMachineArn: refersTo("AWS::StepFunctions::StateMachine"),
  RuleName: refersTo("AWS::Events::Rule"),
  TableName: refersTo("AWS::DynamoDB::Table"),
  Operation: (value) => OPERATIONS.includes(value),
  AutoScalingGroupName: isProperty("AWS::AutoScaling::AutoScalingGroup", "AutoScalingGroupName"),
  ClusterName: refersTo("AWS::ECS::Cluster"),
  ServiceName: refersTo("AWS::ECS::Service", "Name"),
  LoadBalancer: isBalancer,
  TargetGroup: refersTo("AWS::ElasticLoadBalancingV2::TargetGroup", "TargetGroupFullName"),
  "Cluster Name": isProperty("AWS::MSK::Cluster", "ClusterName"),
  // MSK numbers brokers from 1.
  "Broker ID": (value) =>
    Number(value) >= 1 && Number(value) <= Number(property("AWS::MSK::Cluster", "NumberOfBrokerNodes")),
};

/** Returns what is wrong with the use of a metric of AWS, or nothing. */
function wrongOfAws({ namespace, name, dimensions }: Series): string | undefined {
  const found = DOCUMENTED.filter((one) => one.namespace === namespace && one.names.includes(name));
  if (found.length === 0) return "AWS documents no such metric";
  const names = Object.keys(dimensions).toSorted().join();
  if (!found.some((one) => one.dimensions.some((set) => set.toSorted().join() === names)))
    return `AWS does not write it by ${names}`;
  const wrong = Object.entries(dimensions).find(([key, value]) => !VALUES[key]?.(value));
  return wrong && `${wrong.join(" ")} is not what AWS has there`;
}

/** Names of our metrics by the constants of the programs. */
const CONSTANTS = new Map(
  [
    ...read("engine-core", "platform", "src", "metric.rs").matchAll(/^pub const (\w+): &str = "(\w+)";/gm),
  ].map(([, constant = "", name = ""]) => [constant, name]),
);

/** Returns the arguments of a macro, whose parenthesis opens before `at`. */
function argumentsAt(source: string, at: number): string {
  let end = at;
  for (let open = 1; open > 0 && end < source.length; end += 1)
    open += { "(": 1, ")": -1 }[source[end] ?? ""] ?? 0;
  return source.slice(at, end - 1);
}

/** Returns the labels that the programs give each metric, by its name. */
function labels(): Map<string, Set<string>> {
  const source = read("engine-core", "platform", "src", "metric.rs");
  const found = new Map<string, Set<string>>();
  for (const macro of source.matchAll(/\b(?:counter|gauge|histogram)!\(/g)) {
    const given = argumentsAt(source, macro.index + macro[0].length);
    const name = CONSTANTS.get(/^\w+/.exec(given)?.[0] ?? "");
    assert.ok(name, given);
    const own = [...given.matchAll(/"(\w+)" =>|\("(\w+)",/g)].map(([, one, other]) => one ?? other ?? "");
    const ofGraph = given.includes("of_graph(") ? ["graph"] : [];
    found.set(name, new Set([...(found.get(name) ?? []), ...own, ...ofGraph]));
  }
  return found;
}
const LABELS = labels();

/** Where the programs have the values of the labels that become dimensions. */
const SOURCES: Readonly<Record<string, readonly string[]>> = {
  tidegraph_commits_total: ["engine-core", "fleet", "src", "role", "mod.rs"],
  tidegraph_refused_total: ["engine-core", "platform", "src", "metric.rs"],
  tidegraph_queries_total: ["engine-core", "platform", "src", "metric.rs"],
  tidegraph_connections: ["engine-core", "platform", "src", "metric.rs"],
};

/** Returns whether a program gives a metric a label with this value. */
function hasValue(name: string, label: string, value: string): boolean {
  if (label === METRICS.graph) return ["people", "orders"].includes(value);
  const source = read(...(SOURCES[name] ?? assert.fail(`${name} by ${label}`)));
  // Code, and not a comment that tells of it.
  return source.split("\n").some((line) => !/^\s*\/\//.test(line) && line.includes(`"${value}"`));
}

/** The declarations of AWS's agent beside a node: which metrics become metrics of CloudWatch, and under which labels. */
function declared(): { dimensions: string[][]; metric_selectors: string[] }[] {
  const agent = JSON.parse(files(service).get("/opt/tidegraph/etc/agent.json") ?? "");
  const { metric_namespace, metric_declaration } = agent.logs.metrics_collected.prometheus.emf_processor;
  assert.equal(metric_namespace, METRICS.namespace);
  return metric_declaration;
}
const DECLARED = declared();
/** The label that the agent gives everything that it reads from the daemon. */
const DEPLOYMENT = /^ +Deployment: (\S+)$/m.exec(
  files(service).get("/opt/tidegraph/etc/prometheus.yaml") ?? "",
)?.[1];

/** Returns what is wrong with the use of a metric of nodes. */
function wrongOfNodes({ name, dimensions }: Series): string | undefined {
  const { [METRICS.dimension]: deployment, ...rest } = dimensions;
  if (deployment !== DEPLOYMENT) return `the deployment is ${DEPLOYMENT}`;
  const names = Object.keys(dimensions).toSorted().join();
  const isDeclared = DECLARED.some(
    (one) =>
      one.metric_selectors.some((selector) => new RegExp(selector).test(name)) &&
      one.dimensions.some((set) => set.toSorted().join() === names),
  );
  if (!isDeclared) return `the agent does not write it by ${names}`;
  const labels = LABELS.get(name);
  if (labels === undefined) return "no program writes it";
  for (const [label, value] of Object.entries(rest)) {
    if (!labels.has(label)) return `no program writes it with the label ${label}`;
    if (!hasValue(name, label, value)) return `no program writes it with ${label} ${value}`;
  }
  return undefined;
}

/** The selection of workers: the label that becomes a dimension, by the name of the metric. */
const SELECTED = new Map(
  [
    ...read("services", "query", "src", "metrics", "selection.rs").matchAll(
      /^ {4}selected\(metric::(\w+), "\w+", By::(\w+)(?:\("(\w+)"\))?\)/gm,
    ),
  ].map(([, constant = "", by, label]) => [CONSTANTS.get(constant) ?? "", by === "Class" ? "class" : label]),
);

/** Returns the dimensions that workers give everything, by their flags. */
function ofWorkers(): Record<string, string> {
  const task = [...known].find(
    ([id, { Type }]) => Type === "AWS::ECS::TaskDefinition" && id.includes("Workers"),
  );
  const worker = task?.[1].Properties.ContainerDefinitions.find(
    ({ Command }: { Command?: unknown }) => Command,
  );
  const command: string[] = worker.Command.map(flat);
  const given = command.filter((_, index) => command[index - 1] === "--metrics-log-dimension");
  return Object.fromEntries(given.map((one) => one.split("=")));
}
const OF_WORKERS = ofWorkers();

/** Returns what is wrong with the use of a metric of workers. */
function wrongOfWorkers({ name, dimensions }: Series): string | undefined {
  if (!SELECTED.has(name)) return "workers do not select it";
  const label = SELECTED.get(name);
  const given = Object.entries(OF_WORKERS);
  if (!given.every(([key, value]) => dimensions[key] === value)) return `workers have ${given.join("; ")}`;
  const rest = Object.entries(dimensions).filter(([key]) => !(key in OF_WORKERS));
  if (rest.map(([key]) => key).join() !== (label ?? ""))
    return `workers write it by ${label ?? "nothing else"}`;
  const isKnown = rest.every(([key, value]) =>
    key === "class" ? /^[1-5]xx$/.test(value) : hasValue(name, key, value),
  );
  return isKnown ? undefined : `no worker writes it with ${rest.join()}`;
}

/** Returns the dimensions under which the functions around loads write a metric, from a line that one of them writes. */
function ofFunctions(): Record<string, string> {
  const named = ["POWERTOOLS_METRICS_NAMESPACE", "POWERTOOLS_SERVICE_NAME", "TIDEGRAPH_DEPLOYMENT"];
  const found = ofType(service, "AWS::Lambda::Function").flatMap(([, { Properties }]) => {
    const variables = Properties.Environment?.Variables ?? {};
    return "POWERTOOLS_METRICS_NAMESPACE" in variables
      ? [Object.fromEntries(named.map((name) => [name, flat(variables[name])]))]
      : [];
  });
  const [variables] = found;
  assert.ok(found.length >= 2);
  for (const others of found) assert.deepEqual(others, variables);
  const code =
    'const { metrics } = await import("./observe.ts"); metrics.addMetric("it", "Count", 1); metrics.publishStoredMetrics();';
  const written = execFileSync(process.execPath, ["--import", "tsx", "--input-type=module", "--eval", code], {
    cwd: join(ROOT, "services", "ingest", "control", "src"),
    env: { PATH: process.env.PATH, AWS_REGION: "eu-west-1", TIDEGRAPH_DROP_BUCKET: "any", ...variables },
    encoding: "utf8",
  });
  const { _aws: described, ...values } = JSON.parse(written);
  const [{ Namespace, Dimensions }] = described.CloudWatchMetrics;
  assert.deepEqual([Namespace, Dimensions.length], [METRICS.namespace, 1]);
  return Object.fromEntries(Dimensions[0].map((name: string) => [name, values[name]]));
}
const OF_FUNCTIONS = ofFunctions();
const OF_INGEST = [
  ...read("services", "ingest", "control", "src", "metrics.ts").matchAll(/^export const \w+ = "(\w+)";/gm),
].map(([, name]) => name);

/** Returns what is wrong with the use of a metric of the functions around loads. */
function wrongOfFunctions({ name, dimensions }: Series): string | undefined {
  if (!OF_INGEST.includes(name)) return "no function writes it";
  const sorted = (one: object) => JSON.stringify(Object.entries(one).toSorted());
  return sorted(dimensions) === sorted(OF_FUNCTIONS) ? undefined : `functions write ${sorted(OF_FUNCTIONS)}`;
}

/** Returns what is wrong with the use of a metric that CloudWatch makes of a log. */
function wrongOfLogs({ namespace, name, dimensions }: Series): string | undefined {
  const made = ofType(service, "AWS::Logs::MetricFilter").flatMap(
    ([, { Properties }]) => Properties.MetricTransformations,
  );
  const found = made.find((one) => one.MetricNamespace === namespace && one.MetricName === name);
  if (found === undefined) return "no filter of a log makes it";
  const names = (found.Dimensions ?? []).map(({ Key }: { Key: string }) => Key);
  return names.join() === Object.keys(dimensions).join() ? undefined : "the filter has other dimensions";
}

/** Returns what is wrong with the use of a metric, or nothing. */
function wrong(series: Series): string | undefined {
  const { namespace, dimensions } = series;
  if (namespace.startsWith("AWS/")) return wrongOfAws(series);
  if (namespace !== METRICS.namespace) return wrongOfLogs(series);
  if (dimensions.service === METRICS.ofWorkers.service) return wrongOfWorkers(series);
  if (dimensions.service === METRICS.ofIngest.service) return wrongOfFunctions(series);
  return wrongOfNodes(series);
}

test("alarms, graphs and policies read metrics that somebody writes, under their dimensions", () => {
  assert.deepEqual(
    all.flatMap((series) => {
      const what = wrong(series);
      return what === undefined ? [] : [`${series.reader}: ${series.namespace} ${series.name}: ${what}`];
    }),
    [],
  );
  // Each kind is there, so that nothing was left out.
  for (const namespace of [
    ...new Set(DOCUMENTED.map((one) => one.namespace)),
    METRICS.namespace,
    "Tidegraph/Heals",
  ])
    assert.ok(
      all.some((series) => series.namespace === namespace),
      namespace,
    );
  const readers = new Set(all.map(({ reader }) => reader));
  for (const [id] of ofType(service, "AWS::CloudWatch::Alarm"))
    assert.ok(readers.has(id.replace(/[0-9A-F]{8}$/, "")), id);
});

test("a wrong name, dimension or value of any metric is found", () => {
  for (const series of all) {
    const { reader, name, dimensions } = series;
    assert.ok(wrong({ ...series, name: `${name}s` }), `${reader}: another name`);
    assert.ok(
      wrong({ ...series, dimensions: { ...dimensions, Zone: "a" } }),
      `${reader}: one dimension more`,
    );
    for (const [key, value] of Object.entries(dimensions)) {
      const { [key]: _, ...others } = dimensions;
      const where = `${reader}: ${name} by ${key}`;
      assert.ok(
        wrong({ ...series, dimensions: { ...others, [key]: `${value}x` } }),
        `${where}: another value`,
      );
      // AWS and nodes write some metrics with fewer dimensions too: those are others, and not wrong.
      if (!/^(Stage|ServiceName|graph)$/.test(key))
        assert.ok(wrong({ ...series, dimensions: others }), `${where}: without it`);
    }
  }
});

test("metrics are written as often as they are read", () => {
  for (const { reader, namespace, name, period } of all) {
    assert.ok(period >= 60 && period % 60 === 0, `${reader}: ${name} each ${period} s`);
    // Without detailed monitoring, EC2 writes each five minutes.
    if (namespace === "AWS/EC2" && period < 300)
      assert.equal(
        only(service, "AWS::EC2::LaunchTemplate").Properties.LaunchTemplateData.Monitoring.Enabled,
        true,
      );
  }
  // Auto Scaling writes only what the group asks for.
  const [{ Granularity, Metrics }] = only(service, "AWS::AutoScaling::AutoScalingGroup").Properties
    .MetricsCollection;
  assert.equal(Granularity, "1Minute");
  for (const { namespace, name } of all)
    if (namespace === "AWS/AutoScaling") assert.ok(Metrics === undefined || Metrics.includes(name), name);
  // MSK writes those of the level DEFAULT without charge, and others at higher levels only.
  assert.equal(only(state, "AWS::MSK::Cluster").Properties.EnhancedMonitoring, "DEFAULT");
  assert.match(files(service).get("/opt/tidegraph/etc/prometheus.yaml") ?? "", /^ {2}scrape_interval: 1m$/m);
  assert.ok(METRICS.ofWorkers.everySeconds <= 60);
});

test("no alarm looks back for longer than CloudWatch does", () => {
  // https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_PutMetricAlarm.html: a day, and seven days for
  // periods of an hour and more.
  for (const [id, { Properties }] of ofType(service, "AWS::CloudWatch::Alarm")) {
    const name = id.replace(/[0-9A-F]{8}$/, "");
    const periods = all.filter(({ reader }) => reader === name).map(({ period }) => period);
    assert.equal(new Set(periods).size, 1, `${name}: one period`);
    const [period = 0] = periods;
    const seconds = period * Properties.EvaluationPeriods;
    assert.ok(seconds <= (period < 3600 ? 86_400 : 604_800), `${name}: ${seconds} s`);
    assert.ok(
      Properties.DatapointsToAlarm === undefined ||
        Properties.DatapointsToAlarm <= Properties.EvaluationPeriods,
    );
    // An alarm reads ten metrics at most.
    assert.ok(periods.length <= 10, `${name}: ${periods.length} metrics`);
  }
});
