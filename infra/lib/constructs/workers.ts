/**
 * Long-lived workers (`tidegraph worker`) on Fargate behind an internal load balancer. They take queries without API
 * Gateway, and bulk loads, which the query function refuses. A client needs the clients' security group to connect. It
 * shows the clients' secret, or signs its requests with one of the access keys of `accessKeys`, as clients of Neptune do.
 *
 * The port speaks HTTP, WebSocket and Bolt: the balancer passes bytes through, or what is inside of TLS.
 */

import { join } from "node:path";
import { CfnDeletionPolicy, Duration, Stack } from "aws-cdk-lib";
import type { ICertificate } from "aws-cdk-lib/aws-certificatemanager";
import * as cloudwatch from "aws-cdk-lib/aws-cloudwatch";
import * as ec2 from "aws-cdk-lib/aws-ec2";
import { DockerImageAsset, Platform } from "aws-cdk-lib/aws-ecr-assets";
import * as ecs from "aws-cdk-lib/aws-ecs";
import * as elb from "aws-cdk-lib/aws-elasticloadbalancingv2";
import * as iam from "aws-cdk-lib/aws-iam";
import type * as logs from "aws-cdk-lib/aws-logs";
import { ARecord, type IHostedZone, RecordTarget } from "aws-cdk-lib/aws-route53";
import { LoadBalancerTarget } from "aws-cdk-lib/aws-route53-targets";
import type { IBucket } from "aws-cdk-lib/aws-s3";
import type { ISecret } from "aws-cdk-lib/aws-secretsmanager";
import { Construct } from "constructs";
import { baseImage } from "../base-image.ts";
import type { Bundle } from "../bundle.ts";
import { dnsName, InvalidProp, whole } from "../check.ts";
import { processLog } from "../log-group.ts";
import { explain, explainWildcard } from "../nag.ts";
import { readSecret, useKey, useObjects } from "../statement.ts";
import type { IGraphState } from "./graph-state.ts";
import type { Graphs } from "./graphs.ts";
import { METRICS } from "./metrics.ts";
import type { Secrets } from "./secrets.ts";
import { addAgent, type TracesProps, traceVariables } from "./traces.ts";

/** A name in a hosted zone. */
export interface WorkersDomain {
  /** The zone, in which a record for the balancer is made: private ones are enough. */
  readonly zone: IHostedZone;
  /** The whole name, such as `graph.example.com`. */
  readonly name: string;
}

/** Settings of workers. */
export interface WorkersProps {
  /**
   * Minimum number of workers.
   *
   * @default 2
   */
  readonly count?: number;
  /**
   * Maximum number of workers; more start when the processors are busy or queries wait.
   *
   * @default the value of count
   */
  readonly most?: number;
  /**
   * Processor units of each worker, as Fargate counts them: 1,024 are one processor.
   *
   * @default 1024
   */
  readonly cpu?: number;
  /**
   * Memory of each worker in MiB: 2 to 8 for each processor unit, in steps of 1,024 (4,096 and 8,192 for the two largest
   * workers), as Fargate offers it.
   *
   * @default 4096
   */
  readonly memoryMib?: number;
  /**
   * A certificate for the balancer. With it, clients connect with TLS, at the ports 443 and 8182, which is Neptune's.
   *
   * @default plain HTTP within the VPC, at the port 8182
   */
  readonly certificate?: ICertificate;
  /**
   * The name by which clients connect. It needs a certificate for this name.
   *
   * @default the balancer's own name, for which nobody can have a certificate
   */
  readonly domain?: WorkersDomain;
  /**
   * A secret with the access keys that clients sign their requests with, in the form of the file of `--sigv4-credentials`
   * (docs/access.md): clients of Neptune then work as they are. Workers read it when they start. It needs a certificate.
   * A secret that a key of yours encrypts has to be imported with this key (`Secret.fromSecretAttributes`).
   *
   * @default clients show the clients' secret
   */
  readonly accessKeys?: ISecret;
  /**
   * Whether workers write metrics into their log once a minute, of which CloudWatch makes metrics (docs/metrics.md). With
   * them the dashboard and alarms know queries, their time and their memory. CloudWatch bills each metric.
   *
   * @default true
   */
  readonly metrics?: boolean;
  /**
   * The base image of the worker's image, given by digest. It needs the C library and certificates of Amazon Linux
   * 2023, and a shell.
   *
   * @default Amazon Linux 2023, minimal
   */
  readonly baseImage?: string;
}

/** Settings and resources that the workers need. */
interface Parts extends WorkersProps {
  readonly state: IGraphState;
  readonly graphs: Graphs;
  readonly bundle: Bundle;
  readonly secrets: Secrets;
  /** The secret with certificates of workers, for connections to nodes; `undefined` for none. */
  readonly certificates: ISecret | undefined;
  readonly loadFrom: readonly IBucket[];
  readonly retention: logs.RetentionDays;
  /** Whether records of the log say what they change. */
  readonly streams: boolean;
  /** Traces of workers; `undefined` for none. */
  readonly traces: TracesProps | undefined;
}

/** The port of the service, the same as Neptune's. */
export const WORKER_PORT = 8182;

/** The sizes that Fargate offers: for each number of processor units the least and most memory, and its steps, in GiB. */
const SIZES = new Map([
  [256, { least: 0.5, most: 2, step: 0.5 }],
  [512, { least: 1, most: 4, step: 1 }],
  [1024, { least: 2, most: 8, step: 1 }],
  [2048, { least: 4, most: 16, step: 1 }],
  [4096, { least: 8, most: 30, step: 1 }],
  [8192, { least: 16, most: 60, step: 4 }],
  [16_384, { least: 32, most: 120, step: 8 }],
]);

/** Checks that Fargate has a worker of this size. */
function checkSize(cpu: number, memory: number): void {
  const size = SIZES.get(cpu);
  if (size === undefined) throw new InvalidProp("workers.cpu", cpu, `one of ${[...SIZES.keys()].join(", ")}`);
  const { least, most, step } = size;
  const fits = memory >= least * 1024 && memory <= most * 1024 && memory % (step * 1024) === 0;
  // The smallest size has 0.5, 1 and 2.
  if (!fits || memory === 1536) {
    const values =
      cpu === 256
        ? "512, 1024 or 2048"
        : `a multiple of ${step * 1024} from ${least * 1024} to ${most * 1024}`;
    throw new InvalidProp("workers.memoryMib", memory, `${values}, with ${cpu} of cpu`);
  }
}

/** Checks that there is a certificate where TLS is needed, and that a name is in its zone. */
function checkEndpoint({ certificate, domain, accessKeys }: WorkersProps): void {
  if (domain !== undefined) {
    const { name, zone } = domain;
    dnsName("workers.domain.name", name, zone.zoneName);
    if (certificate === undefined)
      throw new InvalidProp("workers.domain.name", name, "given with workers.certificate, for this name");
  }
  if (accessKeys !== undefined && certificate === undefined) {
    // Who reads a signed request can send it again.
    throw new InvalidProp("workers.accessKeys", "a secret", "given with workers.certificate");
  }
}

/** Returns the flags with which a worker writes metrics. */
function metricsFlags(deployment: string): string[] {
  const { dimension, ofWorkers } = METRICS;
  return [
    ...["--metrics-log-seconds", String(ofWorkers.everySeconds)],
    ...["--metrics-log-dimension", `${dimension}=${deployment}`],
    ...["--metrics-log-dimension", `service=${ofWorkers.service}`],
  ];
}

const FILES = join(import.meta.dirname, "..", "..", "worker");

/** The folders of the data bucket that workers use. Checkpoints are not among them: only nodes use those. */
const FOLDERS = ["jobs", "loads", "resets"];

/** Queries that wait in a worker, on average, above which there should be more workers. */
const WAITING = 1;

/**
 * Adds workers while queries wait for a slot: those that wait for nodes leave the processors idle. Only the load of the
 * processors takes workers away, because the metric is missing until a query has waited.
 */
function scaleOnWaiting(scaling: ecs.ScalableTaskCount, deployment: string): void {
  const { namespace, dimension, ofWorkers } = METRICS;
  scaling.scaleToTrackCustomMetric("Waiting", {
    metric: new cloudwatch.Metric({
      namespace,
      metricName: "tidegraph_queries_waiting",
      dimensionsMap: { [dimension]: deployment, service: ofWorkers.service },
      period: Duration.minutes(1),
      statistic: "Average",
    }),
    targetValue: WAITING,
    disableScaleIn: true,
  });
}

export class Workers extends Construct implements ec2.IConnectable {
  readonly service: ecs.FargateService;
  /** Name of the task definition, without its revision. */
  readonly family: string;
  /** The roles of a task, and of what starts it. */
  readonly roles: iam.IRole[];
  readonly cluster: ecs.Cluster;
  readonly balancer: elb.NetworkLoadBalancer;
  readonly targets: elb.NetworkTargetGroup;
  readonly securityGroup: ec2.SecurityGroup;
  /** Clients that have this security group may connect to the balancer. */
  readonly clients: ec2.SecurityGroup;
  /** Whether workers write metrics. */
  readonly hasMetrics: boolean;
  /** The balancer, at the first of its ports. */
  readonly connections: ec2.Connections;

  constructor(scope: Construct, id: string, props: Parts) {
    super(scope, id);
    const { state } = props;
    const { vpc, subnets } = state.network;
    const count = whole("workers.count", props.count ?? 2, 1);
    const most = whole("workers.most", props.most ?? count, count);
    const group = (name: string, description: string): ec2.SecurityGroup =>
      new ec2.SecurityGroup(this, name, { vpc, description, allowAllOutbound: false });
    this.securityGroup = group("SecurityGroup", "Workers: the balancer comes in");
    this.clients = group("Clients", "Carried by who may speak with workers");
    const front = group("Front", "The balancer of workers: clients come in");
    checkEndpoint(props);
    const [first] = this.listenPorts(props);
    this.connections = new ec2.Connections({ securityGroups: [front], defaultPort: ec2.Port.tcp(first) });
    for (const port of this.listenPorts(props))
      this.clients.connections.allowTo(front, ec2.Port.tcp(port), "Queries and loads");
    front.connections.allowTo(this.securityGroup, ec2.Port.tcp(WORKER_PORT), "Queries and loads");

    this.cluster = new ecs.Cluster(this, "Cluster", {
      vpc,
      containerInsightsV2: ecs.ContainerInsights.DISABLED,
    });
    explain(
      this.cluster,
      "ECS4",
      "Container Insights is paid for, and no alarm or graph needs it: ECS's own metrics have processors and memory.",
    );
    this.family = `${state.name}-workers`;
    this.hasMetrics = props.metrics ?? true;
    const taskDefinition = this.task(props);
    this.roles = [taskDefinition.taskRole, taskDefinition.obtainExecutionRole()];
    this.service = new ecs.FargateService(this, "Service", {
      cluster: this.cluster,
      taskDefinition,
      // A deployment that changes the service must not undo what the load asked for. ECS starts one worker at first, and the
      // scalable target brings it to `count`.
      ...(most > count ? {} : { desiredCount: count }),
      minHealthyPercent: 100,
      maxHealthyPercent: 200,
      circuitBreaker: { rollback: true },
      vpcSubnets: { subnets },
      securityGroups: [this.securityGroup],
      assignPublicIp: false,
      healthCheckGracePeriod: Duration.seconds(60),
      propagateTags: ecs.PropagatedTagSource.SERVICE,
    });
    this.keepsRunning(taskDefinition);
    if (most > count) {
      const scaling = this.service.autoScaleTaskCount({ minCapacity: count, maxCapacity: most });
      scaling.scaleOnCpuUtilization("Busy", { targetUtilizationPercent: 60 });
      if (this.hasMetrics) scaleOnWaiting(scaling, state.name);
    }
    this.balancer = new elb.NetworkLoadBalancer(this, "Balancer", {
      vpc,
      vpcSubnets: { subnets },
      internetFacing: false,
      crossZoneEnabled: true,
      securityGroups: [front],
    });
    explain(
      this.balancer,
      "ELB2",
      "A network balancer logs TLS connections only; workers count and log requests themselves.",
    );
    const { certificate, domain } = props;
    const tls = certificate && { certificates: [certificate], sslPolicy: elb.SslPolicy.RECOMMENDED_TLS };
    const [port, ...others] = this.listenPorts(props);
    const listener = this.balancer.addListener("Queries", { port, ...tls });
    this.targets = listener.addTargets("Workers", {
      port: WORKER_PORT,
      protocol: elb.Protocol.TCP,
      targets: [this.service],
      // A worker that is told to stop finishes its running queries within 30 s.
      deregistrationDelay: Duration.seconds(30),
      // `/status` requires the clients' secret, which a balancer does not have.
      healthCheck: { protocol: elb.Protocol.TCP, interval: Duration.seconds(10) },
    });
    for (const other of others) {
      const targets = { defaultTargetGroups: [this.targets] };
      this.balancer.addListener(`Queries${other}`, { port: other, ...tls, ...targets });
    }
    if (domain) {
      const target = RecordTarget.fromAlias(new LoadBalancerTarget(this.balancer));
      new ARecord(this, "Name", { zone: domain.zone, recordName: `${domain.name}.`, target });
    }
  }

  /**
   * Lets running workers be when a deployment makes a new revision of their task: the service names the family only,
   * and the machine `upgrade` replaces workers, after the nodes. The revision before stays, because workers run it. A
   * deployment that changes the service itself gives it the newest revision: CloudFormation sends the family with each
   * change, and cannot be told which revision runs. `docs/deploy.md` says which props these are.
   */
  private keepsRunning(task: ecs.FargateTaskDefinition): void {
    (this.service.node.findChild("Service") as ecs.CfnService).taskDefinition = this.family;
    this.service.node.addDependency(task);
    const revision = task.node.defaultChild as ecs.CfnTaskDefinition;
    revision.cfnOptions.updateReplacePolicy = CfnDeletionPolicy.RETAIN;
    revision.cfnOptions.deletionPolicy = CfnDeletionPolicy.DELETE;
  }

  /** The ports that clients connect to. */
  private listenPorts(props: WorkersProps): [number, ...number[]] {
    return props.certificate ? [443, WORKER_PORT] : [WORKER_PORT];
  }

  /** The address of the workers. */
  endpoint(props: WorkersProps): string {
    const scheme = props.certificate ? "https" : "http";
    const host = props.domain?.name ?? this.balancer.loadBalancerDnsName;
    return `${scheme}://${host}:${this.listenPorts(props)[0]}`;
  }

  private task(props: Parts): ecs.FargateTaskDefinition {
    const { state, secrets, accessKeys } = props;
    const cpu = props.cpu ?? 1024;
    const memory = props.memoryMib ?? 4096;
    checkSize(cpu, memory);
    const logGroup = processLog(this, "Logs", state, "workers", props.retention);
    const task = new ecs.FargateTaskDefinition(this, "Task", {
      family: this.family,
      cpu,
      memoryLimitMiB: memory,
      runtimePlatform: {
        cpuArchitecture: ecs.CpuArchitecture.ARM64,
        operatingSystemFamily: ecs.OperatingSystemFamily.LINUX,
      },
      taskRole: this.role(props),
      executionRole: this.starter(props),
    });
    task.addContainer("worker", {
      image: ecs.ContainerImage.fromDockerImageAsset(this.image(props)),
      readonlyRootFilesystem: true,
      // Passed as flags instead of variables. Both are visible to everyone who may describe the task definition, but
      // nobody mistakes flags for secrets.
      command: [
        // TLS, if there is any, ends at the balancer: only its security group reaches this port, which has none. Callers
        // still prove themselves with the clients' secret or an access key (`start-worker.sh`).
        ...["--host", "0.0.0.0", "--insecure", "--port", String(WORKER_PORT)],
        ...(accessKeys ? ["--sigv4-region", Stack.of(this).region] : []),
        ...props.graphs.workerFlags,
        ...["--table-prefix", state.map.prefix, "--objects", state.objects],
        ...["--fleet-token-secret", secrets.fleet.secretArn],
        ...(props.certificates ? ["--tls-secret", props.certificates.secretArn] : []),
        ...(props.streams ? ["--streams"] : []),
        ...(this.hasMetrics ? metricsFlags(state.name) : []),
        // The buckets that its role may read.
        ...[state.buckets.drop, ...props.loadFrom].flatMap(({ bucketName }) => [
          "--load-from",
          `s3://${bucketName}`,
        ]),
      ],
      secrets: accessKeys
        ? { ACCESS_KEYS: ecs.Secret.fromSecretsManager(accessKeys) }
        : { CLIENT_TOKEN: ecs.Secret.fromSecretsManager(secrets.client) },
      ...(props.traces && { environment: traceVariables(props.traces) }),
      portMappings: [{ containerPort: WORKER_PORT }],
      logging: ecs.LogDriver.awsLogs({ logGroup, streamPrefix: "worker" }),
      stopTimeout: Duration.seconds(60),
      ulimits: [{ name: ecs.UlimitName.NOFILE, softLimit: 65_536, hardLimit: 65_536 }],
    });
    if (props.traces) addAgent(task, props.traces, logGroup);
    return task;
  }

  private image(props: Parts): DockerImageAsset {
    return new DockerImageAsset(this, "Image", {
      directory: props.bundle.folderWith("tidegraph", [
        join(FILES, "Dockerfile"),
        join(FILES, "start-worker.sh"),
      ]),
      platform: Platform.LINUX_ARM64,
      buildArgs: { BASE: baseImage("workers.baseImage", props.baseImage) },
    });
  }

  /** Creates the role of the worker itself. */
  private role({ state, graphs, secrets, certificates, loadFrom }: Parts): iam.Role {
    const role = new iam.Role(this, "Role", {
      assumedBy: new iam.ServicePrincipal("ecs-tasks.amazonaws.com"),
      description: `Workers of ${state.name}`,
    });
    for (const allowed of state.map.reads(...graphs.names)) role.addToPolicy(allowed);
    const { data, drop } = state.buckets;
    const ours = "Segments and jobs of loads, and tokens of resets: their names are made while it runs.";
    useObjects(role, "Data", data, "write", ours, graphs.paths(...FOLDERS));
    for (const [index, bucket] of [drop, ...loadFrom].entries()) {
      const reason = "Files to load: people choose their names.";
      useObjects(role, `Source${index}`, bucket, "read", reason);
    }
    role.addToPolicy(readSecret(secrets.fleet, certificates));
    role.addToPolicy(useKey(this, state.key, ["dynamodb", "s3", "secretsmanager"]));
    return role;
  }

  /**
   * Creates the role with which ECS starts a worker: it needs the image, the clients' secret and the log. CDK adds the
   * statements where each of them is used.
   */
  private starter({ state }: Parts): iam.Role {
    const role = new iam.Role(this, "Starter", {
      assumedBy: new iam.ServicePrincipal("ecs-tasks.amazonaws.com"),
      description: `What starts workers of ${state.name}`,
    });
    explainWildcard(role, "*", "Logging in at a registry (ecr:GetAuthorizationToken) knows no resources.");
    role.addToPolicy(useKey(this, state.key, ["secretsmanager"]));
    return role;
  }
}
