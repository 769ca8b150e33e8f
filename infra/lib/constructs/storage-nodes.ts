/**
 * The storage nodes: an Auto Scaling group across the zones, of Graviton machines with local NVMe. Each runs
 * `tidegraph-node serve` with both roles, so each is a candidate for the sequencer.
 *
 * The group replaces a lost machine; a new machine is in service once its daemon is up (`join`). The group never
 * terminates a machine by itself, because other nodes must have its replicas first. Only a person, or the machines that
 * upgrade and resize the fleet, can tell.
 */
import { Duration, Stack } from "aws-cdk-lib";
import * as autoscaling from "aws-cdk-lib/aws-autoscaling";
import * as ec2 from "aws-cdk-lib/aws-ec2";
import * as events from "aws-cdk-lib/aws-events";
import * as targets from "aws-cdk-lib/aws-events-targets";
import * as iam from "aws-cdk-lib/aws-iam";
import type * as logs from "aws-cdk-lib/aws-logs";
import type { IBucket } from "aws-cdk-lib/aws-s3";
import { Asset } from "aws-cdk-lib/aws-s3-assets";
import type { ISecret } from "aws-cdk-lib/aws-secretsmanager";
import { Construct } from "constructs";
import type { Bundle } from "../bundle.ts";
import { InvalidProp, nodeInstanceType, whole } from "../check.ts";
import { processLog } from "../log-group.ts";
import { explain, explainWildcard } from "../nag.ts";
import { Join } from "../state-machines/join.ts";
import { MOST_AT_ONCE } from "../state-machines/upgrade.ts";
import { readSecret, statement, useKey, useKeyOf, useObjects } from "../statement.ts";
import type { NodesScalingProps } from "./autoscaling.ts";
import type { ArchivePlace } from "./backup.ts";
import type { IGraphState } from "./graph-state.ts";
import type { Graphs } from "./graphs.ts";
import { FLEET_PORT, nodeSetup } from "./node-setup.ts";
import { Teardown } from "./teardown.ts";
import { sendTraces, type TracesProps } from "./traces.ts";

/** Settings of storage nodes. */
export interface NodesProps {
  /**
   * Number of nodes: at least the number of replicas of a partition, and ideally a multiple of the number of zones.
   *
   * @default 3
   */
  readonly count?: number;
  /**
   * Largest number of nodes. If it is given, `count` is the least number: the fleet gets a node more while its nodes are
   * busy, and one fewer while they are idle.
   *
   * @default the number of nodes is fixed
   */
  readonly most?: number;
  /**
   * When nodes come and go, with `most`.
   *
   * @default above 60 % of the processors or 75 % of the memory, and below half of both
   */
  readonly scaling?: NodesScalingProps;
  /**
   * Instance type of the machines: Graviton with local NVMe.
   *
   * @default "i4g.xlarge"
   */
  readonly instanceType?: string;
  /**
   * Types that a machine may have where a zone has no capacity for `instanceType`, the best one first. Each node gets
   * as many replicas as another one, so that these need at least its processors, memory and disk.
   *
   * @default none: a launch without capacity fails, and is tried again
   */
  readonly fallbackInstanceTypes?: string[];
  /**
   * The image of the machines: Linux for arm64 with what docs/deploy.md#an-image-of-your-own lists. An image that has the
   * packages of a machine lets it start without downloading them.
   *
   * @default the newest Amazon Linux 2023 at each deployment
   */
  readonly machineImage?: ec2.IMachineImage;
  /**
   * Whether people whose policies allow it may open a shell on the machines, by AWS Systems Manager. The VPC gets two
   * interface endpoints for it, if the deployment makes endpoints.
   *
   * @default false
   */
  readonly sessionManager?: boolean;
  /**
   * How long a new machine may take until its daemon is up.
   *
   * @default 20 minutes
   */
  readonly joinPatience?: Duration;
  /**
   * How many replicas a node restores at once. A restore uses about one processor, at a lower priority than queries.
   *
   * @default half of the processors of its machine, at least 2
   */
  readonly restoresAtOnce?: number;
  /**
   * How many parts of checkpoints, of 8 MiB each, all restores of a node together read at once and hold in memory.
   *
   * @default 16
   */
  readonly restoreReads?: number;
  /**
   * Largest bandwidth of all restores of a node together, in MiB a second, so that queries keep the rest.
   *
   * @default no limit
   */
  readonly restoreBandwidth?: number;
}

/** Settings and resources that the nodes need. */
interface Parts extends NodesProps {
  readonly state: IGraphState;
  readonly bundle: Bundle;
  readonly fleetSecret: ISecret;
  /** The secret with certificates of nodes; `undefined` for none. */
  readonly certificates: ISecret | undefined;
  readonly brokers: string;
  readonly graphs: Graphs;
  readonly retention: logs.RetentionDays;
  /** The bucket of backups that the graph is restored from, if it is. */
  readonly restoreFrom: IBucket | undefined;
  /** Where the sequencer's node archives the log; `undefined` for nowhere. */
  readonly archives: ArchivePlace | undefined;
  /** Traces of nodes; `undefined` for none. */
  readonly traces: TracesProps | undefined;
}

/**
 * How long a terminating machine waits while none of its replicas moves. After that it is terminated, drained or not,
 * because the log has everything. The machine that drains prolongs it while replicas move, until AWS's limit of 48 hours.
 */
const LEAVE = Duration.hours(2);

/**
 * The longest time of a lifecycle hook that Auto Scaling takes: "from 30 to 7200 seconds"
 * (https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_PutLifecycleHook.html).
 */
const LONGEST_HOOK = Duration.hours(2);

/** Most types of a group: the limit of Auto Scaling for overrides of a template. */
const MOST_TYPES = 40;

/** Largest number of nodes. */
const MOST_NODES = 300;
/**
 * The largest size of the group: all nodes, and as many machines more as an upgrade may have. It does not depend on the
 * number of nodes, because Auto Scaling lowers the desired size of a group to a largest size below it, and machines that
 * are protected stay. What starts machines has bounds of its own.
 */
const MOST_MACHINES = MOST_NODES + MOST_AT_ONCE;

/** The actions of sessions. */
const CHANNELS = ["CreateControl", "CreateData", "OpenControl", "OpenData"];

/** Names of the lifecycle hooks. */
const JOINS = "joins";
export const LEAVES = "leaves";

export class StorageNodes extends Construct {
  readonly group: autoscaling.AutoScalingGroup;
  readonly groupName: string;
  readonly securityGroup: ec2.SecurityGroup;
  readonly join: Join;
  /** The rule that lets new machines join. */
  readonly launched: events.Rule;
  /** Empties the group before it is deleted. What reacts to machines depends on it, to be deleted earlier. */
  readonly teardown: Teardown;
  readonly program: Asset;
  readonly count: number;
  /** Whether the group chooses among types of machines. */
  readonly areTypesMixed: boolean;

  constructor(scope: Construct, id: string, props: Parts) {
    super(scope, id);
    const { state } = props;
    const { vpc, subnets } = state.network;
    this.count = whole("nodes.count", props.count ?? 3, 1, MOST_NODES);
    const patience = props.joinPatience ?? Duration.minutes(20);
    if (patience.toSeconds() < 60 || patience.toSeconds() > 7200) {
      throw new InvalidProp("nodes.joinPatience", patience.toHumanString(), "from 1 minute to 2 hours");
    }
    this.groupName = groupOfNodes(state);
    this.securityGroup = new ec2.SecurityGroup(this, "SecurityGroup", {
      vpc,
      description: "Storage nodes: each other, workers and the query function come in",
      allowAllOutbound: false,
    });
    this.program = new Asset(this, "Program", { path: props.bundle.path("tidegraph-node") });
    const types = instanceTypes(props);
    this.areTypesMixed = types.length > 1;
    const template = this.launchTemplate(props, types[0]);
    this.group = new autoscaling.AutoScalingGroup(this, "Group", {
      autoScalingGroupName: this.groupName,
      vpc,
      vpcSubnets: { subnets },
      ...launchesOf(template, types),
      minCapacity: this.count,
      maxCapacity: MOST_MACHINES,
      newInstancesProtectedFromScaleIn: true,
      healthChecks: autoscaling.HealthChecks.ec2({ gracePeriod: patience }),
      groupMetrics: [autoscaling.GroupMetrics.all()],
    });
    explain(
      this.group,
      "AS3",
      "Failed launches and machines that are taken away reach the topic of alarms by a rule of EventBridge, which can write to an encrypted one.",
    );
    const { retention } = props;
    this.join = new Join(this, "Join", { state, groupName: this.groupName, patience, retention });
    this.launched = this.hook(patience);
    const { group, groupName } = this;
    this.teardown = new Teardown(this, "Teardown", { state, group, groupName, retention });
  }

  /** The ARN of the group with a wildcard for the unique id, which is known only after the group is created. */
  get groupArn(): string {
    const { partition, region, account } = Stack.of(this);
    return `arn:${partition}:autoscaling:${region}:${account}:autoScalingGroup:*:autoScalingGroupName/${this.groupName}`;
  }

  /** Lets a security group connect to the nodes, at the fleet's port. */
  allow(other: ec2.SecurityGroup, what: string): void {
    other.connections.allowTo(this.securityGroup, ec2.Port.tcp(FLEET_PORT), what);
  }

  /**
   * Adds the lifecycle hooks to the group itself, because hooks that are created after the group miss its first
   * machines.
   */
  private hook(patience: Duration): events.Rule {
    const group = this.group.node.defaultChild as autoscaling.CfnAutoScalingGroup;
    group.lifecycleHookSpecificationList = [
      {
        lifecycleHookName: JOINS,
        lifecycleTransition: "autoscaling:EC2_INSTANCE_LAUNCHING",
        // Slightly longer than the state machine waits, so that its log gives the reason.
        heartbeatTimeout: Math.min(patience.toSeconds() + 120, LONGEST_HOOK.toSeconds()),
        defaultResult: "ABANDON",
      },
      {
        lifecycleHookName: LEAVES,
        lifecycleTransition: "autoscaling:EC2_INSTANCE_TERMINATING",
        heartbeatTimeout: LEAVE.toSeconds(),
        defaultResult: "CONTINUE",
      },
    ];
    const launched = new events.Rule(this, "Launched", {
      description: "A machine of the fleet started: admits it once its daemon is up",
      eventPattern: {
        source: ["aws.autoscaling"],
        detailType: ["EC2 Instance-launch Lifecycle Action"],
        detail: { AutoScalingGroupName: [this.groupName], LifecycleHookName: [JOINS] },
      },
      targets: [new targets.SfnStateMachine(this.join.stateMachine, { retryAttempts: 10 })],
    });
    // The first machines start while the group is created, so the rule and the machine must exist before.
    group.node.addDependency(launched, this.join);
    return launched;
  }

  private launchTemplate(props: Parts, type: ec2.InstanceType): ec2.LaunchTemplate {
    const { state } = props;
    const groups = [
      processLog(this, "Logs", state, "nodes", props.retention),
      processLog(this, "Metrics", state, "metrics", props.retention),
    ] as const;
    const userData = nodeSetup({
      region: Stack.of(this).region,
      graphs: props.graphs,
      tablePrefix: state.map.prefix,
      objects: state.objects,
      brokers: props.brokers,
      fleetSecretArn: props.fleetSecret.secretArn,
      certificatesArn: props.certificates?.secretArn,
      logReplication: state.log.copies,
      logInSync: state.log.copiesInSync,
      logVariables: state.log.variables,
      awaitsRestore: props.restoreFrom !== undefined,
      program: { url: this.program.s3ObjectUrl, checksum: props.bundle.checksum("tidegraph-node") },
      logGroup: groups[0].logGroupName,
      metricsLogGroup: groups[1].logGroupName,
      deployment: state.name,
      traces: props.traces,
      restores: restoreVariables(props),
      archives: props.archives && {
        TIDEGRAPH_ARCHIVE_TO: `s3://${props.archives.bucket.bucketName}`,
        TIDEGRAPH_ARCHIVE_EVERY_S: String(props.archives.everySeconds),
        ...(props.archives.region !== undefined && { TIDEGRAPH_BACKUPS_REGION: props.archives.region }),
      },
    });
    const volume = ec2.BlockDeviceVolume.ebs(16, {
      encrypted: true,
      volumeType: ec2.EbsDeviceVolumeType.GP3,
    });
    const template = new ec2.LaunchTemplate(this, "Template", {
      instanceType: type,
      machineImage:
        props.machineImage ??
        ec2.MachineImage.latestAmazonLinux2023({ cpuType: ec2.AmazonLinuxCpuType.ARM_64 }),
      role: this.role(props, groups),
      securityGroup: this.securityGroup,
      userData,
      requireImdsv2: true,
      httpPutResponseHopLimit: 1,
      detailedMonitoring: true,
      associatePublicIpAddress: false,
      // The system only; data is on the machine's local NVMe.
      blockDevices: [{ deviceName: "/dev/xvda", volume }],
    });
    // The parameters by which AWS tells its newest images name the processor.
    const image = JSON.stringify(Stack.of(this).resolve(template.imageId));
    if (template.osType !== ec2.OperatingSystemType.LINUX || /x86_?64/i.test(image))
      throw new InvalidProp("nodes.machineImage", image, "an image of Linux for arm64");
    return template;
  }

  /**
   * Creates the role of a node, with access to the map, the log, its bucket, its secret, its log groups and its own
   * program.
   */
  private role(props: Parts, groups: readonly logs.ILogGroup[]): iam.Role {
    const { state } = props;
    const { names } = props.graphs;
    const topics = names.map((name) => state.topicOf(name));
    const role = new iam.Role(this, "Role", {
      assumedBy: new iam.ServicePrincipal("ec2.amazonaws.com"),
      description: `Storage nodes of ${state.name}`,
    });
    for (const allowed of [...state.map.changes(...names), ...state.log.uses(...topics)]) {
      role.addToPolicy(allowed);
    }
    const ours = "Objects of a bucket that is this deployment's alone; their names are made while it runs.";
    useObjects(role, "Data", state.buckets.data, "write", ours);
    role.addToPolicy(useKey(this, state.key, ["dynamodb", "s3", "secretsmanager"]));
    role.addToPolicy(readSecret(props.fleetSecret, props.certificates));
    if (props.restoreFrom) this.letRestore(role, props.restoreFrom);
    if (props.archives) this.letArchive(role, props.archives.bucket, names);
    const write = ["logs:CreateLogStream", "logs:DescribeLogStreams", "logs:PutLogEvents"];
    role.addToPolicy(
      statement(
        "WriteLogs",
        write,
        groups.map((group) => group.logGroupArn),
      ),
    );
    if (props.traces) sendTraces(role);
    if (props.sessionManager) {
      // What the agent, which Amazon Linux has, needs for sessions. Its actions know no resources.
      const agent = [
        "ssm:UpdateInstanceInformation",
        ...CHANNELS.map((verb) => `ssmmessages:${verb}Channel`),
      ];
      role.addToPolicy(statement("OpenSessions", agent, ["*"]));
      explainWildcard(role, "*", "Sessions of Systems Manager: their actions know no resources.");
    }
    const program = this.program.bucket.arnForObjects(this.program.s3ObjectKey);
    role.addToPolicy(statement("ReadProgram", ["s3:GetObject"], [program]));
    this.letDecryptProgram(role, program);
    return role;
  }

  /**
   * Lets a node decrypt its program where the account was bootstrapped with a key of its own (`cdk bootstrap
   * --bootstrap-kms-key-id`), which this app does not know: any key, but for this object only. S3 names the object, or its
   * bucket if that has a bucket key, when it asks KMS
   * (https://docs.aws.amazon.com/AmazonS3/latest/userguide/UsingKMSEncryption.html#encryption-context).
   */
  private letDecryptProgram(role: iam.Role, program: string): void {
    const { partition, region, urlSuffix } = Stack.of(this);
    const keys = `arn:${partition}:kms:${region}:*:key/*`;
    role.addToPolicy(
      statement("DecryptProgram", ["kms:Decrypt"], [keys], {
        StringEquals: {
          "kms:ViaService": `s3.${region}.${urlSuffix}`,
          "kms:EncryptionContext:aws:s3:arn": [program, this.program.bucket.bucketArn],
        },
      }),
    );
    explainWildcard(role, keys, "The key of the bootstrap, for the object with the program alone.");
  }

  /** Lets a node read backups. */
  private letRestore(role: iam.Role, bucket: IBucket): void {
    useObjects(role, "Backups", bucket, "read", "Backups, whose names were made while they ran.");
    const use = { sid: "ReadBackups", actions: ["kms:Decrypt"] };
    for (const allowed of useKeyOf(this, bucket, use)) role.addToPolicy(allowed);
  }

  /**
   * Lets a node find and read the backups and archives of its graphs, and add archives. It may delete nothing there and write
   * no backup: what a node in wrong hands overwrites of the archives, the bucket keeps for a while.
   */
  private letArchive(role: iam.Role, bucket: IBucket, graphs: readonly string[]): void {
    const { bucketArn } = bucket;
    const paths = (below: string): string[] => graphs.map((graph) => `/${graph}/${below}*`);
    const [read, written] = [paths(""), paths("archives/")];
    const below = (all: readonly string[]): string[] => all.map((path) => `${bucketArn}${path}`);
    role.addToPolicy(statement("ListArchives", ["s3:ListBucket"], [bucketArn]));
    role.addToPolicy(statement("ReadArchives", ["s3:GetObject"], below(read)));
    role.addToPolicy(statement("AddArchives", ["s3:PutObject", "s3:AbortMultipartUpload"], below(written)));
    const reason = "Backups and archives of its own graphs, whose names are made while it runs.";
    for (const path of [...read, ...written]) explainWildcard(role, `${bucketArn}${path}`, reason);
    const use = { sid: "UseKeyOfArchives", actions: ["kms:Decrypt", "kms:GenerateDataKey"] };
    for (const allowed of useKeyOf(this, bucket, use)) role.addToPolicy(allowed);
  }
}

/** Returns the name of the group of a deployment's machines. */
export function groupOfNodes(state: IGraphState): string {
  return `${state.name}-nodes`;
}

/** Returns the types of the machines, the preferred one first. */
function instanceTypes(props: NodesProps): readonly [ec2.InstanceType, ...ec2.InstanceType[]] {
  const first = nodeInstanceType("nodes.instanceType", props.instanceType ?? "i4g.xlarge");
  const others = props.fallbackInstanceTypes ?? [];
  if (others.length >= MOST_TYPES) {
    throw new InvalidProp("nodes.fallbackInstanceTypes", others.length, `at most ${MOST_TYPES - 1} types`);
  }
  for (const [index, type] of others.entries()) {
    const prop = `nodes.fallbackInstanceTypes[${index}]`;
    nodeInstanceType(prop, type);
    if (type === first || others.indexOf(type) < index) {
      throw new InvalidProp(prop, type, "a type that is not given before");
    }
  }
  const [preferred, ...rest] = [first, ...others].map((type) => new ec2.InstanceType(type));
  return [preferred as ec2.InstanceType, ...rest];
}

/** Returns what a group launches: the template as it is, or with the first of several types that has capacity. */
function launchesOf(
  launchTemplate: ec2.LaunchTemplate,
  types: readonly ec2.InstanceType[],
): Pick<autoscaling.AutoScalingGroupProps, "launchTemplate" | "mixedInstancesPolicy"> {
  if (types.length === 1) return { launchTemplate };
  return {
    mixedInstancesPolicy: {
      launchTemplate,
      launchTemplateOverrides: types.map((instanceType) => ({ instanceType })),
      instancesDistribution: {
        onDemandAllocationStrategy: autoscaling.OnDemandAllocationStrategy.PRIORITIZED,
        // A machine that is taken away at two minutes' notice would move its replicas each time.
        onDemandPercentageAboveBaseCapacity: 100,
      },
    },
  };
}

/** The settings of restores, as variables of the daemon. A setting that is not given has none. */
function restoreVariables(props: NodesProps): Record<string, string> {
  const settings = [
    ["nodes.restoresAtOnce", "TIDEGRAPH_RESTORES_AT_ONCE", props.restoresAtOnce, 1_024],
    ["nodes.restoreReads", "TIDEGRAPH_RESTORE_READS", props.restoreReads, 1_024],
    ["nodes.restoreBandwidth", "TIDEGRAPH_RESTORE_BANDWIDTH", props.restoreBandwidth, 100_000],
  ] as const;
  const given: Record<string, string> = {};
  for (const [prop, variable, value, most] of settings) {
    if (value !== undefined) given[variable] = String(whole(prop, value, 1, most));
  }
  return given;
}
