/**
 * Backups on a schedule: a rule starts a state machine, which runs `tidegraph-node backup` as a task on Fargate and waits
 * for its end. The task reads the map, the log and the data bucket, and writes only to the bucket of backups. Between two
 * backups the sequencer's node archives the log there.
 *
 * The bucket of backups and its key outlive the stack, and nothing else of the graph is needed to restore it. A bucket of
 * another account, given as a prop, survives the loss of this account.
 */
import { join } from "node:path";
import { ArnFormat, Duration, RemovalPolicy, Stack, Tags, Token } from "aws-cdk-lib";
import * as ec2 from "aws-cdk-lib/aws-ec2";
import { DockerImageAsset, Platform } from "aws-cdk-lib/aws-ecr-assets";
import * as ecs from "aws-cdk-lib/aws-ecs";
import * as events from "aws-cdk-lib/aws-events";
import * as targets from "aws-cdk-lib/aws-events-targets";
import * as iam from "aws-cdk-lib/aws-iam";
import * as kms from "aws-cdk-lib/aws-kms";
import type * as logs from "aws-cdk-lib/aws-logs";
import * as s3 from "aws-cdk-lib/aws-s3";
import * as sfn from "aws-cdk-lib/aws-stepfunctions";
import * as tasks from "aws-cdk-lib/aws-stepfunctions-tasks";
import { Construct } from "constructs";
import type { Bundle } from "../bundle.ts";
import { InvalidProp, text, whole } from "../check.ts";
import { asFlags } from "../daemon-flags.ts";
import { checkImage, imageOf } from "../given-image.ts";
import { machineLog, processLog } from "../log-group.ts";
import { explain, explainWildcard } from "../nag.ts";
import { BACKUPS, PART } from "../names.ts";
import { AT_ONCE, type BackupOf, backups } from "../state-machines/backups.ts";
import { useKey, useKeyOf, useObjects } from "../statement.ts";
import { BackupTeardown } from "./backup-teardown.ts";
import type { IGraphState } from "./graph-state.ts";
import type { Graphs } from "./graphs.ts";

/** Settings of backups. */
export interface BackupProps {
  /**
   * The bucket of backups. A bucket of another account needs a policy that lets the task's role in, and the nodes' role for
   * archives (docs/backup.md#another-account). Its region has to be that of the graph if this app makes the VPC, because
   * such a VPC has no route to other regions.
   *
   * @default a new bucket with a key of its own; both are kept when the stack is deleted
   */
  readonly bucket?: s3.IBucket;
  /**
   * ARN of the KMS key that encrypts `bucket`, so that the roles may use it. The key's policy has to let them, too.
   *
   * @default the key with which the bucket was imported (`Bucket.fromBucketAttributes`); none with `Bucket.fromBucketName`
   */
  readonly keyArn?: string;
  /**
   * Time between two backups, in whole hours.
   *
   * @default 1 day
   */
  readonly every?: Duration;
  /**
   * Time after which a committed write is in an archive of the log, so that the graph can be restored to it: from 10 seconds
   * to 1 hour. `Duration.seconds(0)` archives nothing. The nodes' role lists and reads the bucket and adds archives; it
   * deletes nothing. A bucket of another account has to let that role in, too.
   *
   * @default 5 minutes
   */
  readonly archiveEvery?: Duration;
  /**
   * Number of backups that are kept. Each is whole and has all data of the graph.
   *
   * @default 14
   */
  readonly keep?: number;
  /**
   * How long a backup may take. A machine copies some hundred megabytes a second.
   *
   * @default 6 hours
   */
  readonly longest?: Duration;
  /**
   * Processor units of the task, as Fargate counts them. They also decide how fast its network is.
   *
   * @default 2048
   */
  readonly cpu?: 1024 | 2048 | 4096 | 8192;
  /**
   * An image that exists already, in place of one that Docker builds when the app is deployed
   * (docs/deploy.md#images-that-exist): for arm64, of the same release, given by its digest or by the tag of the release. A
   * VPC that this app makes has a way to Amazon ECR in its region only.
   *
   * @default an image that is built
   */
  readonly image?: ecs.ContainerImage;
  /**
   * The base image of the task's image, given by digest. It needs the C library and certificates of Amazon Linux 2023.
   *
   * @default Amazon Linux 2023, minimal
   */
  readonly baseImage?: string;
}

/** Settings and resources that this construct needs. */
interface Parts extends BackupProps {
  readonly state: IGraphState;
  readonly graphs: Graphs;
  readonly bundle: Bundle;
  readonly brokers: string;
  readonly retention: logs.RetentionDays;
}

/** CloudWatch looks back 7 days at most, and the alarm leaves an hour more than the time between two backups. */
const MOST_HOURS = 166;
/** The sizes of the task: processor units, and the memory in MiB. */
const SIZES = new Map([
  [1024, 4096],
  [2048, 8192],
  [4096, 8192],
  [8192, 16_384],
]);

/** Where nodes archive the log. */
export interface ArchivePlace {
  readonly bucket: s3.IBucket;
  /** Seconds after which a write is in an archive. */
  readonly everySeconds: number;
  /** The region of the bucket, if it is not that of the stack. */
  readonly region?: string;
}

const FILES = join(import.meta.dirname, "..", "..", "backup");

export class Backup extends Construct {
  readonly bucket: s3.IBucket;
  readonly machine: sfn.StateMachine;
  readonly securityGroup: ec2.SecurityGroup;
  readonly rule: events.Rule;
  /** Hours between two backups. */
  readonly hours: number;
  /** Where nodes archive the log, if they do. */
  readonly archives: ArchivePlace | undefined;
  /** The role of the task. */
  readonly taskRole: iam.Role;
  /** The region of the bucket, if it is known not to be that of the stack. */
  private readonly bucketRegion: string | undefined;

  constructor(scope: Construct, id: string, props: Parts) {
    super(scope, id);
    const { state } = props;
    const every = props.every ?? Duration.days(1);
    this.hours = every.toHours({ integral: false });
    if (!Number.isInteger(this.hours) || this.hours < 1 || this.hours > MOST_HOURS) {
      throw new InvalidProp("backup.every", every.toHumanString(), `whole hours, from 1 to ${MOST_HOURS}`);
    }
    const longest = props.longest ?? Duration.hours(6);
    if (longest.toSeconds() < 600 || longest.toSeconds() > 14 * 86_400) {
      throw new InvalidProp("backup.longest", longest.toHumanString(), "from 10 minutes to 14 days");
    }
    const keep = whole("backup.keep", props.keep ?? 14, 1, 10_000);
    this.bucket = this.chosenBucket(props) ?? this.makeBucket();
    this.bucketRegion = this.foreignRegion(props);
    const everySeconds = archiveSeconds(props.archiveEvery ?? Duration.minutes(5));
    this.archives =
      everySeconds === 0
        ? undefined
        : { bucket: this.bucket, everySeconds, ...(this.bucketRegion && { region: this.bucketRegion }) };
    this.securityGroup = new ec2.SecurityGroup(this, "SecurityGroup", {
      vpc: state.network.vpc,
      description: "The task that writes backups",
      allowAllOutbound: false,
    });
    state.log.letIn(this, this.securityGroup);
    const cluster = new ecs.Cluster(this, "Cluster", {
      vpc: state.network.vpc,
      containerInsightsV2: ecs.ContainerInsights.DISABLED,
    });
    explain(cluster, "ECS4", "Container Insights is paid for; the state machine knows how each task ended.");
    this.taskRole = this.role(props);
    const [task, container] = this.task(props, keep);
    const run = this.run(props, cluster, task, container, longest);
    this.machine = this.stateMachine(props, task, run, { keep, longest });
    this.rule = new events.Rule(this, "Schedule", {
      description: `Backs up ${props.graphs.words}`,
      schedule: events.Schedule.rate(Duration.hours(this.hours)),
      targets: [new targets.SfnStateMachine(this.machine, { retryAttempts: 3 })],
    });
    const { machine, securityGroup } = this;
    const { retention } = props;
    const teardown = new BackupTeardown(this, "Teardown", {
      state,
      machine,
      cluster,
      securityGroup,
      retention,
    });
    this.rule.node.addDependency(teardown);
  }

  /** Returns the given bucket, if there is one, with the key that encrypts it. */
  private chosenBucket({ bucket, keyArn }: Parts): s3.IBucket | undefined {
    if (keyArn === undefined) return bucket;
    if (bucket === undefined || bucket.encryptionKey !== undefined)
      throw new InvalidProp("backup.keyArn", keyArn, "with a bucket that is given without its key");
    const form = /^arn:[a-z-]+:kms:[a-z0-9-]+:\d{12}:key\/\S+$/;
    if (!Token.isUnresolved(keyArn)) text("backup.keyArn", keyArn, form, "the ARN of a key, not of an alias");
    const { bucketName, env } = bucket;
    const encryptionKey = kms.Key.fromKeyArn(this, "GivenKey", keyArn);
    return s3.Bucket.fromBucketAttributes(this, "Given", { bucketName, region: env.region, encryptionKey });
  }

  /** Returns the region of the bucket if it is a given one and not the stack's. */
  private foreignRegion({ bucket, state }: Parts): string | undefined {
    const { region } = bucket?.env ?? {};
    const here = Stack.of(this).region;
    if (region === undefined || Token.isUnresolved(region) || region === here) return undefined;
    if (state.network.isOwn && !Token.isUnresolved(here)) {
      const fix = `a bucket in ${here}: the VPC of the deployment has no route to other regions. See docs/backup.md`;
      throw new InvalidProp("backup.bucket", region, fix);
    }
    return region;
  }

  /** Makes the bucket, with a key of its own, so that the backups can be read when the key of the graph is lost. */
  private makeBucket(): s3.Bucket {
    const key = new kms.Key(this, "Key", {
      description: "Backups of a graph database",
      enableKeyRotation: true,
      removalPolicy: RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE,
    });
    const bucket = new s3.Bucket(this, "Bucket", {
      blockPublicAccess: s3.BlockPublicAccess.BLOCK_ALL,
      objectOwnership: s3.ObjectOwnership.BUCKET_OWNER_ENFORCED,
      enforceSSL: true,
      minimumTLSVersion: 1.2,
      encryption: s3.BucketEncryption.KMS,
      encryptionKey: key,
      bucketKeyEnabled: true,
      // A backup that is removed by mistake can be recovered for a week.
      versioned: true,
      lifecycleRules: [
        {
          abortIncompleteMultipartUploadAfter: Duration.days(1),
          noncurrentVersionExpiration: Duration.days(7),
          expiredObjectDeleteMarker: true,
        },
      ],
      removalPolicy: RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE,
    });
    for (const one of [key, bucket]) Tags.of(one).add(PART, BACKUPS);
    explain(bucket, "S1", "Its access log would need a policy of the state's bucket that names this one.");
    return bucket;
  }

  private task(props: Parts, keep: number): [ecs.FargateTaskDefinition, ecs.ContainerDefinition] {
    const { state } = props;
    const cpu = props.cpu ?? 2048;
    const memoryLimitMiB = SIZES.get(cpu);
    if (memoryLimitMiB === undefined) {
      throw new InvalidProp("backup.cpu", cpu, `one of ${[...SIZES.keys()].join(", ")}`);
    }
    const task = new ecs.FargateTaskDefinition(this, "Task", {
      cpu,
      memoryLimitMiB,
      runtimePlatform: {
        cpuArchitecture: ecs.CpuArchitecture.ARM64,
        operatingSystemFamily: ecs.OperatingSystemFamily.LINUX,
      },
      taskRole: this.taskRole,
      executionRole: this.starter(state),
    });
    const build = (base: string): DockerImageAsset =>
      new DockerImageAsset(this, "Image", {
        directory: props.bundle.folderWith("tidegraph-node", [join(FILES, "Dockerfile")]),
        platform: Platform.LINUX_ARM64,
        buildArgs: { BASE: base },
      });
    const logGroup = processLog(this, "Logs", state, "backup", props.retention);
    const container = task.addContainer("backup", {
      image: imageOf("backup", props, build),
      readonlyRootFilesystem: true,
      command: this.command(props, keep, state.graph),
      logging: ecs.LogDriver.awsLogs({ logGroup, streamPrefix: "backup" }),
    });
    if (props.image) checkImage("backup.image", container, state, true);
    return [task, container];
  }

  /** Returns the command that backs up a graph. */
  private command({ state, brokers }: Parts, keep: number, graph: string): string[] {
    return [
      "backup",
      ...["--graph", graph, "--table-prefix", state.map.prefix, "--objects", state.objects],
      ...["--kafka-brokers", brokers, ...asFlags(state.log.variables)],
      ...["--to", `s3://${this.bucket.bucketName}`, "--keep", String(keep)],
      ...(this.bucketRegion === undefined ? [] : ["--backups-region", this.bucketRegion]),
    ];
  }

  private commands(props: Parts, keep: number): BackupOf[] {
    return props.graphs.names.map((graph) => ({ graph, command: this.command(props, keep, graph) }));
  }

  /** Creates the role of the task: it reads the graph, and writes to the bucket of backups. */
  private role({ state, graphs }: Parts): iam.Role {
    const topics = graphs.names.map((name) => state.topicOf(name));
    const role = new iam.Role(this, "Role", {
      assumedBy: new iam.ServicePrincipal("ecs-tasks.amazonaws.com"),
      description: `Backs up ${state.name}`,
    });
    for (const allowed of [...state.map.reads(...graphs.names), ...state.log.reads(...topics)]) {
      role.addToPolicy(allowed);
    }
    const ours = "Objects of a bucket that is this deployment's alone; their names are made while it runs.";
    useObjects(role, "Data", state.buckets.data, "read", ours);
    useObjects(role, "Backups", this.bucket, "write", "Backups, whose names are made while it runs.");
    role.addToPolicy(useKey(this, state.key, ["dynamodb", "s3"]));
    const use = { sid: "UseKeyOfBackups", actions: ["kms:Decrypt", "kms:GenerateDataKey"] };
    for (const allowed of useKeyOf(this, this.bucket, use)) role.addToPolicy(allowed);
    return role;
  }

  /** Creates the role with which ECS starts the task: it needs the image and the log. */
  private starter(state: IGraphState): iam.Role {
    const role = new iam.Role(this, "Starter", {
      assumedBy: new iam.ServicePrincipal("ecs-tasks.amazonaws.com"),
      description: `What starts backups of ${state.name}`,
    });
    explainWildcard(role, "*", "Logging in at a registry (ecr:GetAuthorizationToken) knows no resources.");
    return role;
  }

  /** Returns the step that runs the task; with several graphs, with the command that the step before gave. */
  private run(
    { state, graphs }: Parts,
    cluster: ecs.Cluster,
    taskDefinition: ecs.FargateTaskDefinition,
    containerDefinition: ecs.ContainerDefinition,
    longest: Duration,
  ): tasks.EcsRunTask {
    const command = sfn.JsonPath.listAt("$.command");
    const run = new tasks.EcsRunTask(this, "Back up", {
      comment: "Copies the graph to the bucket of backups, and removes old backups",
      integrationPattern: sfn.IntegrationPattern.RUN_JOB,
      cluster,
      taskDefinition,
      ...(graphs.areSeveral && { containerOverrides: [{ containerDefinition, command }] }),
      launchTarget: new tasks.EcsFargateLaunchTarget({ platformVersion: ecs.FargatePlatformVersion.LATEST }),
      assignPublicIp: false,
      subnets: { subnets: [...state.network.subnets] },
      securityGroups: [this.securityGroup],
      taskTimeout: sfn.Timeout.duration(longest),
      resultPath: sfn.JsonPath.DISCARD,
    });
    // A backup that failed left nothing that the next one needs. Two attempts more outlast a restart of brokers or nodes.
    run.addRetry({
      errors: ["States.ALL"],
      interval: Duration.minutes(5),
      backoffRate: 2,
      maxAttempts: 2,
    });
    return run;
  }

  private stateMachine(
    props: Parts,
    taskDefinition: ecs.FargateTaskDefinition,
    run: tasks.EcsRunTask,
    { keep, longest }: { keep: number; longest: Duration },
  ): sfn.StateMachine {
    const { state, graphs } = props;
    const role = new iam.Role(this, "MachineRole", {
      assumedBy: new iam.ServicePrincipal("states.amazonaws.com"),
      description: `Runs backups of ${state.name}`,
    });
    explainWildcard(
      role,
      "*",
      "The task's ARN is drawn when it starts, and the delivery of the machine's log knows no resources.",
    );
    // The statement that CDK makes for starting the task.
    const stack = Stack.of(this);
    const arnFormat = ArnFormat.SLASH_RESOURCE_NAME;
    const family = stack.formatArn({
      ...stack.splitArn(taskDefinition.taskDefinitionArn, arnFormat),
      arnFormat,
    });
    explainWildcard(role, `${family}:*`, "Revisions of the one task that it starts.");
    const machine = new sfn.StateMachine(this, "Machine", {
      comment: `Backs up ${props.graphs.words}`,
      definitionBody: sfn.DefinitionBody.fromChainable(
        graphs.areSeveral ? backups(this, this.commands(props, keep), run) : run,
      ),
      role,
      timeout: Duration.seconds((longest.toSeconds() * 3 + 3600) * Math.ceil(graphs.names.length / AT_ONCE)),
      logs: {
        destination: machineLog(this, "MachineLogs", state, "backup-machine", props.retention),
        level: sfn.LogLevel.ALL,
        includeExecutionData: true,
      },
    });
    explain(machine, "SF2", "It has one step; its log has each attempt.");
    return machine;
  }
}

/** Returns the time until a write is archived, in whole seconds; 0 for never. */
function archiveSeconds(every: Duration): number {
  const seconds = every.toSeconds({ integral: false });
  if (seconds === 0 || (Number.isInteger(seconds) && seconds >= 10 && seconds <= 3600)) return seconds;
  const fix = "whole seconds, from 10 seconds to 1 hour, or Duration.seconds(0) for no archive";
  throw new InvalidProp("backup.archiveEvery", every.toHumanString(), fix);
}
