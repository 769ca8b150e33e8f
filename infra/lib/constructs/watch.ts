/**
 * Monitoring: alarms and rules that publish to one topic, and one dashboard. The description of each alarm says what to
 * look at.
 *
 * Metrics of nodes arrive as log events that AWS's agent writes (`node-setup.ts`). Nodes need an endpoint for logs
 * anyway, so this saves one for metrics. Workers write such events themselves. The metrics of the API, the functions, the
 * balancer, the table and the brokers are AWS's own.
 */
import { Duration, Stack } from "aws-cdk-lib";
import * as cloudwatch from "aws-cdk-lib/aws-cloudwatch";
import { SnsAction } from "aws-cdk-lib/aws-cloudwatch-actions";
import * as dynamodb from "aws-cdk-lib/aws-dynamodb";
import * as events from "aws-cdk-lib/aws-events";
import * as targets from "aws-cdk-lib/aws-events-targets";
import * as iam from "aws-cdk-lib/aws-iam";
import { Key } from "aws-cdk-lib/aws-kms";
import * as logs from "aws-cdk-lib/aws-logs";
import * as sns from "aws-cdk-lib/aws-sns";
import type { IStateMachine } from "aws-cdk-lib/aws-stepfunctions";
import { Construct } from "constructs";
import { UNTOLD } from "../state-machines/heal.ts";
import type { Backup } from "./backup.ts";
import { sum, undelivered, unsuccessful } from "./counts.ts";
import type { Encryption } from "./encryption.ts";
import type { IGraphState } from "./graph-state.ts";
import type { Graphs } from "./graphs.ts";
import type { Ingest } from "./ingest.ts";
import { METRICS } from "./metrics.ts";
import { moveAlarms } from "./move-alarms.ts";
import type { QueryApi } from "./query-api.ts";
import type { QueryFunction } from "./query-function.ts";
import type { Rebalance } from "./rebalance.ts";
import type { Rotation } from "./rotation.ts";
import type { StorageNodes } from "./storage-nodes.ts";
import type { Workers } from "./workers.ts";

/** The resources to monitor. */
export interface WatchProps {
  readonly state: IGraphState;
  readonly graphs: Graphs;
  readonly api: QueryApi;
  readonly query: QueryFunction;
  readonly nodes: StorageNodes;
  readonly rebalance: Rebalance;
  /** `undefined` if people rotate the secret. */
  readonly rotation: Rotation | undefined;
  readonly ingest: Ingest;
  readonly workers: Workers | undefined;
  readonly backup: Backup | undefined;
  readonly encryption: Encryption | undefined;
  /** The topic that receives alarms, if one is given. */
  readonly topic: sns.ITopic | undefined;
}

const MINUTE = Duration.minutes(1);
/** Alarms that say nothing about the release of nodes and workers. */
const GOES_ON =
  /^(Loads|Drops|Backup|NoBackup|NotArchived|Upgrade|Certificates|Secret|PartitionsLarge|Nodes(Full|NotResized|NotReplaced))/;
/** A larger replica takes a node minutes to restore (docs/split.md). */
const LARGEST_REPLICA_BYTES = 10_000_000_000;
/** A certificate is valid for a week, and is renewed when it has five days left. */
const LEAST_LEFT = Duration.days(2);
/** How much later than usual an archive may come, besides twice its time. */
const LATE_ARCHIVE = Duration.minutes(10);
/** The DynamoDB operations that the daemons use. */
const OPERATIONS = [
  dynamodb.Operation.GET_ITEM,
  dynamodb.Operation.QUERY,
  dynamodb.Operation.PUT_ITEM,
  dynamodb.Operation.UPDATE_ITEM,
  dynamodb.Operation.TRANSACT_GET_ITEMS,
  dynamodb.Operation.TRANSACT_WRITE_ITEMS,
];

/** Returns the throttled requests of each operation. CDK's own sum of them is missing while one of them is. */
function throttles(table: dynamodb.ITable): Record<string, cloudwatch.IMetric> {
  const of = (Operation: string): cloudwatch.Metric =>
    new cloudwatch.Metric({
      namespace: "AWS/DynamoDB",
      metricName: "ThrottledRequests",
      dimensionsMap: { TableName: table.tableName, Operation },
      period: MINUTE,
      statistic: "Sum",
    });
  return Object.fromEntries(OPERATIONS.map((operation) => [operation.toLowerCase(), of(operation)]));
}

const { GREATER_THAN_THRESHOLD: ABOVE, LESS_THAN_THRESHOLD: BELOW } = cloudwatch.ComparisonOperator;

export class Watch extends Construct {
  readonly topic: sns.ITopic;
  readonly dashboard: cloudwatch.Dashboard;
  /**
   * Names of the alarms about nodes, workers and queries, which stop an upgrade. Loads, drops and backups go on at their
   * own pace.
   */
  readonly stops: string[] = [];
  private readonly props: WatchProps;

  constructor(scope: Construct, id: string, props: WatchProps) {
    super(scope, id);
    this.props = props;
    this.topic = props.topic ?? this.makeTopic();
    this.letAlarmsIn();
    this.ofQueries();
    this.ofFleet();
    this.ofServices();
    this.ofMoves();
    this.ofDrops();
    this.ofBackups();
    this.ofCertificates();
    this.rules();
    this.dashboard = this.draw();
  }

  private makeTopic(): sns.Topic {
    // Imported by ARN: the key's policy, which lets alarms and rules use it, is in the other stack.
    const masterKey = Key.fromKeyArn(this, "Key", this.props.state.key.keyArn);
    const topic = new sns.Topic(this, "Topic", {
      masterKey,
      enforceSSL: true,
      displayName: this.props.state.name,
    });
    return topic;
  }

  /**
   * Lets alarms publish to the topic, also to one of another stack of this app. A topic with a policy of its own, which the
   * rules give it, no longer has the default policy, which admits the account's alarms. Nothing changes the policy of an
   * existing topic.
   */
  private letAlarmsIn(): void {
    this.topic.addToResourcePolicy(
      new iam.PolicyStatement({
        sid: "Alarms",
        principals: [new iam.ServicePrincipal("cloudwatch.amazonaws.com")],
        actions: ["sns:Publish"],
        resources: [this.topic.topicArn],
        conditions: { StringEquals: { "aws:SourceAccount": Stack.of(this).account } },
      }),
    );
  }

  /** Adds an alarm for a metric that is beyond a threshold for some of its periods, which are minutes by default. */
  private alarm(
    id: string,
    alarmDescription: string,
    metric: cloudwatch.IMetric,
    threshold: number,
    options: {
      comparison?: cloudwatch.ComparisonOperator;
      minutes?: number;
      hours?: number;
      missing?: cloudwatch.TreatMissingData;
    } = {},
  ): cloudwatch.Alarm {
    const alarm = new cloudwatch.Alarm(this, id, {
      alarmDescription,
      metric,
      threshold,
      comparisonOperator: options.comparison ?? ABOVE,
      evaluationPeriods: options.hours ?? options.minutes ?? 5,
      datapointsToAlarm: options.hours ?? options.minutes ?? 5,
      treatMissingData: options.missing ?? cloudwatch.TreatMissingData.NOT_BREACHING,
    });
    const action = new SnsAction(this.topic);
    alarm.addAlarmAction(action);
    alarm.addOkAction(action);
    if (!GOES_ON.test(id)) this.stops.push(alarm.alarmName);
    return alarm;
  }

  /** Adds the alarm of machines that a heal could not have replaced, from the states that it enters then. */
  ofHeals(logGroup: logs.ILogGroup): void {
    const name = (state: string) => logs.FilterPattern.stringValue("$.details.name", "=", state);
    const untold = new logs.MetricFilter(this, "Untold", {
      logGroup,
      filterPattern: logs.FilterPattern.all(
        logs.FilterPattern.stringValue("$.type", "=", "PassStateEntered"),
        logs.FilterPattern.any(...UNTOLD.map(name)),
      ),
      // Not that of what processes write: CloudWatch makes this one from a log, and it has no dimensions.
      metricNamespace: `${METRICS.namespace}/Heals`,
      metricName: `${this.props.state.name}-machines-stay`,
    });
    this.alarm(
      "MachinesStay",
      "The machine of a lost node was not reported to the group, which does not replace it: look at the log group heal.",
      untold.metric({ period: MINUTE, statistic: "Sum" }),
      0,
      { minutes: 1 },
    );
  }

  /** Adds the alarm of the machine that upgrades. */
  ofUpgrades(machine: IStateMachine): void {
    this.alarm(
      "UpgradeStopped",
      "An upgrade was stopped, or did not begin: look at its execution, and at the log group upgrade.",
      sum("upgrades without success", unsuccessful(machine)),
      0,
      { minutes: 1 },
    );
  }

  /** Adds the alarms of a fleet whose nodes come and go, and its load to the dashboard. */
  ofSize(machine: IStateMachine, rule: events.IRule, load: cloudwatch.IMetric): void {
    this.alarm(
      "NodesFull",
      "The nodes have been busy for an hour: the fleet has nodes.most nodes, or cannot grow. Look at the log group resize.",
      load,
      100,
      { minutes: 60 },
    );
    this.alarm(
      "NodesNotResized",
      "The fleet did not get a node more or fewer: look at the log groups resize and drain.",
      sum("changes of size without success", { ...unsuccessful(machine), unheard: undelivered(rule) }),
      0,
      { minutes: 1 },
    );
    // `NodesAway` knows the least number of nodes only. An upgrade that replaces several machines has fewer than it wants for a
    // while, so this alarm waits for an hour, and does not stop one.
    this.alarm(
      "NodesNotReplaced",
      "For an hour there have been fewer storage nodes than the fleet had grown to: look at the group's activities, and at the log groups join and nodes.",
      new cloudwatch.MathExpression({
        label: "nodes that are missing",
        expression: "desired - in_service",
        usingMetrics: {
          desired: this.ofGroup("GroupDesiredCapacity"),
          in_service: this.ofGroup("GroupInServiceInstances"),
        },
        period: MINUTE,
      }),
      0,
      { minutes: 60 },
    );
    this.dashboard.addWidgets(
      new cloudwatch.GraphWidget({ title: "Load of nodes, % of busy", left: [load], width: 8 }),
    );
  }

  /** Returns a metric of the group of nodes. */
  private ofGroup(metricName: string): cloudwatch.Metric {
    return new cloudwatch.Metric({
      namespace: "AWS/AutoScaling",
      metricName,
      dimensionsMap: { AutoScalingGroupName: this.props.nodes.groupName },
      period: MINUTE,
      statistic: "Minimum",
    });
  }

  private ofQueries(): void {
    const { api, query, workers } = this.props;
    const stage = api.api.deploymentStage;
    this.alarm(
      "ApiErrors",
      "Requests fail with 5xx: look at the log groups access and query.",
      stage.metricServerError({ period: MINUTE, statistic: "Average" }),
      0.01,
    );
    this.alarm(
      "QueryErrors",
      "The query function fails or runs out of time: look at the log group query.",
      query.function.metricErrors({ period: MINUTE }),
      0,
      { minutes: 3 },
    );
    this.alarm(
      "QueryThrottles",
      "More queries arrive than the function may run at once: raise query.concurrency, or the account's limit.",
      query.function.metricThrottles({ period: MINUTE }),
      0,
    );
    if (workers === undefined) return;
    const { metrics } = workers.targets;
    const most = { period: MINUTE, statistic: "Maximum" };
    const away = this.alarm(
      "WorkersAway",
      "Workers do not accept connections, or there are none: look at the log group workers.",
      new cloudwatch.MathExpression({
        label: "workers that are unhealthy, or 1 for none",
        expression: "IF(FILL(healthy, 0) < 1, 1, 0) + FILL(unhealthy, 0)",
        usingMetrics: {
          healthy: metrics.healthyHostCount(most),
          unhealthy: metrics.unHealthyHostCount(most),
        },
        period: MINUTE,
      }),
      0,
      // A balancer without targets has neither metric.
      { missing: cloudwatch.TreatMissingData.BREACHING },
    );
    // It does not go off while a deployment makes the first workers.
    away.node.addDependency(workers.service);
    if (!workers.hasMetrics) return;
    this.alarm(
      "WorkersMemory",
      "Workers refuse queries because all of them together need more memory than they may have: look at the log group workers.",
      this.ofWorkers("tidegraph_query_memory_refusals_total"),
      0,
      { minutes: 3 },
    );
    this.alarm(
      "WorkersUnavailable",
      "Workers cannot answer queries: nodes or the sequencer are not reachable, or writes are stopped. Look at the log group workers.",
      this.ofWorkers("tidegraph_queries_total", { outcome: "unavailable" }),
      0,
      { minutes: 3 },
    );
  }

  private ofFleet(): void {
    const { nodes } = this.props;
    this.alarm(
      "NodesAway",
      "There are fewer storage nodes than there should be: look at the log groups join and nodes.",
      this.ofGroup("GroupInServiceInstances"),
      nodes.count,
      { comparison: BELOW, minutes: 15, missing: cloudwatch.TreatMissingData.BREACHING },
    );
    const silent = this.ofNodes("tidegraph_version", {}, "SampleCount");
    this.alarm(
      "NodesSilent",
      "No node reports metrics: look at the log groups nodes and metrics.",
      silent,
      1,
      { comparison: BELOW, minutes: 15, missing: cloudwatch.TreatMissingData.BREACHING },
    );
    this.alarm(
      "CommitsUnavailable",
      "Commits fail because the log or the lease is unreachable: look at the log groups nodes and brokers.",
      this.ofNodes("tidegraph_commits_total", { outcome: "unavailable" }),
      0,
      { minutes: 3 },
    );
    this.alarm(
      "WritesStopped",
      "No replica of a partition can apply a record, so writes stop: look at the log group nodes, which names the record.",
      this.ofNodes("tidegraph_halted_version", {}, "Maximum"),
      0,
      { minutes: 3 },
    );
    for (const what of METRICS.refusals) {
      // What a damaged copy lacks is read from the bucket.
      if (what === "connection" || what === "copy") continue;
      this.alarm(
        `Refused-${what}`,
        `A node refused a ${what.replace("_", " ")}: something is damaged; its log names it.`,
        this.ofNodes("tidegraph_refused_total", { what }),
        0,
        { minutes: 1 },
      );
    }
    this.alarm(
      "PartitionsLarge",
      "A replica has more than 10 GB, so that a node takes long to restore it: split its graph into more partitions.",
      this.ofNodes("tidegraph_largest_replica_bytes", {}, "Maximum"),
      LARGEST_REPLICA_BYTES,
      { minutes: 15 },
    );
    this.alarm(
      "Strangers",
      "A process that does not belong to the fleet connects to the nodes' port.",
      this.ofNodes("tidegraph_refused_total", { what: "connection" }),
      10,
    );
  }

  private ofServices(): void {
    const { state, nodes } = this.props;
    for (const { id, description, metric, above, minutes } of state.log.alarms()) {
      this.alarm(id, description, metric, above, minutes === undefined ? {} : { minutes });
    }
    this.alarm(
      "MapThrottled",
      "DynamoDB throttles the partition map.",
      sum(
        "throttled requests",
        {
          ...throttles(state.map.table),
          // CloudWatch keeps the state of an alarm on metrics of DynamoDB while all of them are missing, whatever the alarm
          // says. Beats write to the map each second, so this one is there, and adds nothing.
          consumed: state.map.table.metricConsumedWriteCapacityUnits({ period: MINUTE, statistic: "Sum" }),
        },
        MINUTE,
        { consumed: 0 },
      ),
      0,
    );
    this.alarm(
      "JoinFailed",
      "A machine did not become a node: look at the log groups join and nodes.",
      sum("joins without success", unsuccessful(nodes.join.stateMachine)),
      0,
      { minutes: 1 },
    );
  }

  private ofMoves(): void {
    const { rebalance, nodes, rotation } = this.props;
    for (const of of moveAlarms(rebalance, nodes, rotation)) {
      const { id, description, metric, threshold, periods: minutes, comparison, missing } = of;
      this.alarm(id, description, metric, threshold, {
        minutes,
        ...(comparison && { comparison }),
        ...(missing && { missing }),
      });
    }
  }

  private ofDrops(): void {
    const { ingest } = this.props;
    const failures =
      "look at the reports in the drop bucket, and at the log groups ingest-machine and ingest.";
    this.alarm(
      "LoadsFailed",
      `Dropped files were refused, or their load failed: ${failures}`,
      ingest.machine.metricFailed({ period: MINUTE }),
      0,
      { minutes: 1 },
    );
    this.alarm(
      "LoadsTooLong",
      `A load exceeded its time limit and was stopped: ${failures}`,
      ingest.machine.metricTimedOut({ period: MINUTE }),
      0,
      { minutes: 1 },
    );
    this.alarm(
      "LoadsUntold",
      "A load ended without a report: look at the log groups ingest-settle and ingest, and start the machine Settle again.",
      sum("settlements without success", unsuccessful(ingest.settle)),
      0,
      { minutes: 1 },
    );
    // EventBridge gave up after a day, and nothing else knows of that drop.
    const again = "No load started for a drop: upload its _SUCCESS again.";
    this.alarm("DropsUnheard", again, undelivered(ingest.rule), 0, { minutes: 1 });
    // The function counts stale drops every hour, so the alarm lasts until the drop is completed or deleted.
    const stale = this.ofIngest("tidegraph_drops_stale", "Maximum", Duration.hours(1));
    const what =
      "Files were dropped without _SUCCESS: look for stale.json below reports/ in the drop bucket.";
    this.alarm("DropsStale", what, stale, 0, { minutes: 1 });
  }

  private ofBackups(): void {
    const { backup } = this.props;
    if (backup === undefined) return;
    this.alarm(
      "BackupFailed",
      "A backup failed, with all its attempts, took too long or was stopped: look at the log groups backup and backup-machine.",
      sum("backups without success", unsuccessful(backup.machine)),
      0,
      { minutes: 1 },
    );
    // Two hours more than the time between two backups: one for a backup that takes long, one for the hour that runs.
    this.alarm(
      "NoBackup",
      "No backup succeeded for longer than backup.every: look at the log group backup-machine, and start the machine by hand.",
      backup.machine.metricSucceeded({ period: Duration.hours(1) }),
      1,
      { comparison: BELOW, hours: backup.hours + 2, missing: cloudwatch.TreatMissingData.BREACHING },
    );
    if (backup.archives === undefined) return;
    // Longer than an archive takes that is due, and than a new sequencer takes to begin.
    this.alarm(
      "NotArchived",
      "Committed writes have waited for longer than backup.archiveEvery to be archived: look at the log group nodes, and make a backup if it says so.",
      this.ofNodes("tidegraph_archive_lag_seconds", {}, "Maximum"),
      backup.archives.everySeconds * 2 + LATE_ARCHIVE.toSeconds(),
      // Each node that archives writes the metric, and 0 while another one leads. So if it is missing, no node archives.
      { minutes: 5, missing: cloudwatch.TreatMissingData.BREACHING },
    );
  }

  private ofCertificates(): void {
    const { encryption } = this.props;
    if (encryption === undefined) return;
    this.alarm(
      "CertificatesExpire",
      "A node has a certificate that expires within two days: look at the log groups certificates and nodes.",
      this.ofNodes("tidegraph_certificate_left_seconds", {}, "Minimum"),
      LEAST_LEFT.toSeconds(),
      { comparison: BELOW, minutes: 15 },
    );
    this.alarm(
      "CertificatesUnmade",
      "The function that makes certificates fails: look at the log group certificates.",
      encryption.function.metricErrors({ period: Duration.hours(1) }),
      0,
      { hours: 1 },
    );
  }

  /** Returns a metric of the functions around loads of dropped files. */
  private ofIngest(metricName: string, statistic = "Sum", period = MINUTE): cloudwatch.Metric {
    const { namespace, dimension, ofIngest } = METRICS;
    const dimensionsMap = { [dimension]: this.props.state.name, service: ofIngest.service };
    return new cloudwatch.Metric({ namespace, metricName, dimensionsMap, period, statistic });
  }

  /** Returns a metric that workers write. */
  private ofWorkers(
    metricName: string,
    dimensions: Record<string, string> = {},
    statistic = "Sum",
    label?: string,
  ): cloudwatch.Metric {
    const { namespace, dimension, ofWorkers } = METRICS;
    const of = { [dimension]: this.props.state.name, service: ofWorkers.service };
    const dimensionsMap = { ...of, ...dimensions };
    return new cloudwatch.Metric({ namespace, metricName, dimensionsMap, period: MINUTE, statistic, label });
  }

  /** Adds the rules that publish events as they happen. */
  private rules(): void {
    const { nodes, workers } = this.props;
    const tell = (id: string, description: string, eventPattern: events.EventPattern): void => {
      const rule = new events.Rule(this, id, { description, eventPattern });
      rule.addTarget(new targets.SnsTopic(this.topic));
    };
    tell("MachinesChange", "Machines that could not start, or were terminated", {
      source: ["aws.autoscaling"],
      detailType: [
        "EC2 Instance Launch Unsuccessful",
        "EC2 Instance Terminate Successful",
        "EC2 Instance Terminate Unsuccessful",
      ],
      detail: { AutoScalingGroupName: [nodes.groupName] },
    });
    if (workers === undefined) return;
    tell("WorkersFail", "A deployment of workers that failed", {
      source: ["aws.ecs"],
      detailType: ["ECS Deployment State Change"],
      resources: [workers.service.serviceArn],
      detail: { eventName: ["SERVICE_DEPLOYMENT_FAILED"] },
    });
  }

  /** Returns a metric that nodes publish. */
  private ofNodes(
    metricName: string,
    dimensions: Record<string, string> = {},
    statistic = "Sum",
  ): cloudwatch.Metric {
    return new cloudwatch.Metric({
      namespace: METRICS.namespace,
      metricName,
      dimensionsMap: { [METRICS.dimension]: this.props.state.name, ...dimensions },
      period: MINUTE,
      statistic,
    });
  }

  /** Returns the newest and the oldest version of each graph. */
  private versions(): cloudwatch.Metric[] {
    const { areSeveral, names } = this.props.graphs;
    const dimensions = areSeveral ? names.map((name) => ({ [METRICS.graph]: name })) : [{}];
    const extremes = ["Maximum", "Minimum"];
    return dimensions.flatMap((of) =>
      extremes.map((statistic) => this.ofNodes("tidegraph_version", of, statistic)),
    );
  }

  /** Draws the metrics that workers write: queries first, then requests and connections. */
  private drawWorkers(): cloudwatch.IWidget[][] {
    if (!this.props.workers?.hasMetrics) return [];
    const { values } = METRICS.ofWorkers;
    const graph = (title: string, ...left: cloudwatch.IMetric[]): cloudwatch.GraphWidget =>
      new cloudwatch.GraphWidget({ title: `Workers: ${title}`, left, width: 8 });
    const most = (name: string): cloudwatch.IMetric => this.ofWorkers(name, {}, "Maximum");
    const times = ["p50", "p99"].map((statistic) =>
      this.ofWorkers("tidegraph_query_duration_seconds", {}, statistic, statistic),
    );
    return [
      [
        graph(
          "queries by outcome",
          ...values.outcome.map((outcome) => this.ofWorkers("tidegraph_queries_total", { outcome })),
        ),
        graph("time of queries, s", ...times),
        graph(
          "memory of queries in one worker, and its limit",
          most("tidegraph_query_memory_bytes"),
          most("tidegraph_query_memory_limit_bytes"),
        ),
      ],
      [
        graph(
          "HTTP requests by status",
          ...values.class.map((status) => this.ofWorkers("tidegraph_http_requests_total", { class: status })),
        ),
        graph(
          "queries that run and wait in one worker, and refusals",
          most("tidegraph_queries_running"),
          most("tidegraph_queries_waiting"),
          this.ofWorkers("tidegraph_query_memory_refusals_total"),
          this.ofWorkers("tidegraph_authentication_failures_total"),
        ),
        graph(
          "connections to one worker",
          ...values.protocol.map((protocol) =>
            this.ofWorkers("tidegraph_connections", { protocol }, "Maximum"),
          ),
        ),
      ],
    ];
  }

  private draw(): cloudwatch.Dashboard {
    const { state, api, query, nodes, ingest, workers } = this.props;
    const disks = state.log.disks();
    const stage = api.api.deploymentStage;
    const graph = (title: string, ...left: cloudwatch.IMetric[]): cloudwatch.GraphWidget =>
      new cloudwatch.GraphWidget({ title, left, width: 8 });
    const period = MINUTE;
    const latency = ["p50", "p99"].map((statistic) =>
      stage.metricLatency({ period, statistic, label: statistic }),
    );
    const commits = METRICS.outcomes.map((outcome) => this.ofNodes("tidegraph_commits_total", { outcome }));
    const refusals = METRICS.refusals.map((what) => this.ofNodes("tidegraph_refused_total", { what }));
    return new cloudwatch.Dashboard(this, "Dashboard", {
      dashboardName: `${state.name}-${state.graph}`,
      widgets: [
        [
          graph(
            "Requests",
            stage.metricCount({ period }),
            stage.metricClientError({ period }),
            stage.metricServerError({ period }),
          ),
          graph("Time of requests, ms", ...latency),
          graph(
            "Query function",
            query.function.metric("ConcurrentExecutions", { period, statistic: "Maximum" }),
            query.function.metricErrors({ period }),
            query.function.metricThrottles({ period }),
          ),
        ],
        [
          new cloudwatch.GraphWidget({
            title: "Commits by outcome, and the version at which writes stopped",
            left: commits,
            right: [this.ofNodes("tidegraph_halted_version", {}, "Maximum")],
            width: 8,
          }),
          graph("Version: newest and oldest of all replicas", ...this.versions()),
          graph("Input refused by nodes", ...refusals),
        ],
        [
          new cloudwatch.GraphWidget({
            title: "Memory of a node: bytes, spilled bytes and the largest replica, and part of the budget",
            left: [
              this.ofNodes("tidegraph_memory_bytes", {}, "Maximum"),
              this.ofNodes("tidegraph_spilled_bytes", {}, "Maximum"),
              this.ofNodes("tidegraph_largest_replica_bytes", {}, "Maximum"),
            ],
            right: [this.ofNodes("tidegraph_memory_used_ratio", {}, "Maximum")],
            width: 8,
          }),
          graph("Calls to nodes", this.ofNodes("tidegraph_remote_calls_total")),
          graph(
            "Processors of nodes, %",
            new cloudwatch.Metric({
              namespace: "AWS/EC2",
              metricName: "CPUUtilization",
              dimensionsMap: { AutoScalingGroupName: nodes.groupName },
              period,
              statistic: "Maximum",
            }),
          ),
        ],
        [
          graph("Dropped files", ...METRICS.ofIngest.names.slice(0, 4).map((name) => this.ofIngest(name))),
          graph("Their rows", ...METRICS.ofIngest.names.slice(4).map((name) => this.ofIngest(name))),
          graph(
            "Function that loads",
            ingest.function.metric("ConcurrentExecutions", { period, statistic: "Maximum" }),
            ingest.function.metricErrors({ period }),
            ingest.function.metricThrottles({ period }),
          ),
        ],
        [
          ...(disks.length === 0 ? [] : [graph("Disk of brokers, %", ...disks)]),
          graph(
            "Units of the map",
            state.map.table.metricConsumedReadCapacityUnits({ period }),
            state.map.table.metricConsumedWriteCapacityUnits({ period }),
          ),
          ...(workers === undefined
            ? []
            : [
                graph(
                  "Workers",
                  workers.service.metricCpuUtilization({ period }),
                  workers.service.metricMemoryUtilization({ period }),
                ),
              ]),
        ],
        ...this.drawWorkers(),
      ],
    });
  }
}
