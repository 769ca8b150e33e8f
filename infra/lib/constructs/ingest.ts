/**
 * The parts that load dropped files: the rule that reacts to a mark in the drop bucket, the state machine, the function
 * that loads, and three small functions around it. One takes drops, one reports how they ended, and one looks every
 * hour for drops that nobody completed. A second rule and machine settle loads whose execution ended without a report.
 * `docs/ingest.md` says what users see, and draws the machines.
 *
 * One function performs all steps of loading: tasks and the steps between them are the same program with the same
 * permissions and the same access to the fleet, and both get their processor share from the memory setting. The small
 * functions are outside the VPC: they use S3, their own table and X-Ray at the public endpoints.
 */
import { Duration, Fn, RemovalPolicy, Stack } from "aws-cdk-lib";
import * as dynamodb from "aws-cdk-lib/aws-dynamodb";
import type * as ec2 from "aws-cdk-lib/aws-ec2";
import * as events from "aws-cdk-lib/aws-events";
import * as targets from "aws-cdk-lib/aws-events-targets";
import * as iam from "aws-cdk-lib/aws-iam";
import { Key } from "aws-cdk-lib/aws-kms";
import * as lambda from "aws-cdk-lib/aws-lambda";
import type * as logs from "aws-cdk-lib/aws-logs";
import type { ISecret } from "aws-cdk-lib/aws-secretsmanager";
import * as sfn from "aws-cdk-lib/aws-stepfunctions";
import { Construct } from "constructs";
import type { Architecture, Bundle } from "../bundle.ts";
import { InvalidProp, whole } from "../check.ts";
import { machineLog, processLog } from "../log-group.ts";
import { explain, explainWildcard } from "../nag.ts";
import { ingest } from "../state-machines/ingest.ts";
import { SETTLE_TIMEOUT, settle } from "../state-machines/settle.ts";
import { statement, useKey } from "../statement.ts";
import { typescriptFunction } from "../typescript-function.ts";
import { INGEST_KEPT } from "./buckets.ts";
import { fleetFunction, processor } from "./fleet-function.ts";
import type { IGraphState } from "./graph-state.ts";
import type { Graphs } from "./graphs.ts";
import { METRICS } from "./metrics.ts";

/** Settings of loads of dropped files. */
export interface IngestProps {
  /**
   * Maximum number of concurrent tasks of a load, each in its own environment of the function that loads.
   *
   * @default 64
   */
  readonly concurrency?: number;
  /**
   * Number of concurrent environments that are reserved for the function that loads, and which all loads together have at
   * most: at least `concurrency`. Further tasks wait for a place, for hours if they have to. Lambda refuses a reservation
   * that leaves fewer than 100 for all other functions of the account.
   *
   * @default none: several loads at once may take all functions that the account allows
   */
  readonly reservedConcurrency?: number;
  /**
   * Memory of the function that loads, in MiB. The program needs a few hundred; the share of processors grows with it,
   * with one full processor at 1,769.
   *
   * @default 1769
   */
  readonly memoryMib?: number;
  /**
   * The maximum time of a load, from the mark to its report.
   *
   * @default 1 day
   */
  readonly longest?: Duration;
  /**
   * How long a folder without a mark may go without a new file before it is reported as stale.
   *
   * @default 6 hours
   */
  readonly staleAfter?: Duration;
  /**
   * The log filter of the function that loads, such as `tidegraph_load=debug`.
   *
   * @default "info"
   */
  readonly log?: string;
}

/** Settings and resources that this construct needs. */
interface Parts extends IngestProps {
  readonly state: IGraphState;
  readonly graphs: Graphs;
  readonly bundle: Bundle;
  /** The processor of the query function; all functions use the same one. */
  readonly architecture: Architecture;
  readonly fleetSecret: ISecret;
  readonly certificates: ISecret | undefined;
  readonly retention: logs.RetentionDays;
}

/** Lambda's limit. */
const TIMEOUT = Duration.minutes(15);
/** Time limit of the small functions. */
const CONTROL_TIMEOUT = Duration.minutes(1);
const HOUR = Duration.hours(1);
/** The root of the repository. Its lock file pins the versions of the packages that are bundled. */

/** One of the small functions. */
interface Control {
  readonly name: "intake" | "report" | "stale";
  readonly what: string;
  readonly memoryMib?: number;
  readonly timeout?: Duration;
  readonly environment?: Record<string, string>;
}

/** One of the state machines. */
interface Machine {
  readonly id: string;
  /** Suffix of the name of its log group. */
  readonly logs: string;
  readonly comment: string;
  readonly timeout: Duration;
  /** The functions that it invokes. */
  readonly invokes: readonly lambda.IFunction[];
  readonly definition: (scope: Construct) => sfn.IChainable;
}

export class Ingest extends Construct {
  /** The function that loads. */
  readonly function: lambda.Function;
  readonly securityGroup: ec2.SecurityGroup;
  readonly intake: lambda.Function;
  readonly report: lambda.Function;
  readonly stale: lambda.Function;
  readonly machine: sfn.StateMachine;
  /** Settles loads whose execution ended without a report. */
  readonly settle: sfn.StateMachine;
  /** Reacts to marks. */
  readonly rule: events.Rule;
  /**
   * Notes which execution has taken which load, and where the search for stale drops stopped. Nothing else is lost if
   * the table is.
   */
  readonly taken: dynamodb.Table;
  private readonly parts: Parts;
  private readonly architecture: lambda.Architecture;

  constructor(scope: Construct, id: string, props: Parts) {
    super(scope, id);
    this.parts = props;
    const concurrency = whole("ingest.concurrency", props.concurrency ?? 64, 1, 1000);
    const { reservedConcurrency } = props;
    if (reservedConcurrency !== undefined)
      whole("ingest.reservedConcurrency", reservedConcurrency, concurrency, 10_000);
    const memorySize = whole("ingest.memoryMib", props.memoryMib ?? 1769, 256, 10_240);
    const most = INGEST_KEPT.minus(Duration.days(1));
    const { dropExpiration } = props.state;
    const longest = within("ingest.longest", props.longest ?? Duration.days(1), Duration.minutes(30), most);
    if (dropExpiration?.isUnresolved() === false && dropExpiration.toSeconds() <= longest.toSeconds()) {
      const what = `shorter than the state's dropExpiration (${dropExpiration.toHumanString()}), which deletes the files of loads`;
      throw new InvalidProp("ingest.longest", longest.toHumanString(), what);
    }
    const staleAfter = within(
      "ingest.staleAfter",
      props.staleAfter ?? Duration.hours(6),
      HOUR,
      Duration.days(30),
    );
    this.architecture = processor("query.architecture", props.architecture);
    const { state, graphs } = props;
    const dropped = graphs.names.map((name) => `s3://${state.buckets.drop.bucketName}/drop/${name}/`);
    const {
      function: fn,
      securityGroup,
      role,
    } = fleetFunction(this, {
      state,
      graphs,
      name: "ingest",
      description: `Loads dropped files into ${graphs.words}`,
      code: props.bundle.functionFolder("tidegraph-ingest", props.architecture),
      architecture: props.architecture,
      memorySize,
      timeout: TIMEOUT,
      concurrency: reservedConcurrency,
      fleetSecret: props.fleetSecret,
      certificates: props.certificates,
      retention: props.retention,
      log: props.log ?? "info",
      keyServices: ["s3"],
      environment: {
        TIDEGRAPH_OBJECTS: state.objects,
        TIDEGRAPH_LOAD_FROM: dropped.join(","),
      },
    });
    this.function = fn;
    this.securityGroup = securityGroup;
    this.useBuckets(role);
    this.taken = this.makeTable();
    const table = { TIDEGRAPH_TAKEN_TABLE: this.taken.tableName };
    this.intake = this.takesDrops(table);
    this.report = this.tells();
    this.stale = this.looks(table, staleAfter);
    this.machine = this.makeMachine(concurrency, longest);
    this.settle = this.makeSettle();
    this.rule = this.hears();
    this.hearsOfEnds();
    new events.Rule(this, "EachHour", {
      description: "Looks every hour for drops that nobody completed",
      schedule: events.Schedule.rate(HOUR),
      targets: [new targets.LambdaFunction(this.stale, { retryAttempts: 0 })],
    });
  }

  /** Permissions of the function that loads, for objects. */
  private useBuckets(role: iam.Role): void {
    const { data, drop } = this.parts.state.buckets;
    // For all names: S3 answers "not found" only to principals that may list the bucket, and it ignores prefixes for
    // that.
    role.addToPolicy(statement("List", ["s3:ListBucket"], [data.bucketArn, drop.bucketArn]));
    role.addToPolicy(statement("ReadDropped", ["s3:GetObject"], [`${drop.bucketArn}/drop/*`]));
    explainWildcard(role, `${drop.bucketArn}/drop/*`, "Users choose the names of the files that they drop.");
    const change = ["s3:GetObject", "s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload"];
    const prefixes = this.parts.graphs.paths("ingest", "loads", "jobs");
    const below = prefixes.map((prefix) => `${data.bucketArn}/${prefix}/*`);
    role.addToPolicy(statement("ChangeLoads", change, below));
    const reason = "What loads work with and leave: objects whose names are made while they run.";
    for (const prefix of prefixes) explainWildcard(role, `${data.bucketArn}/${prefix}/*`, reason);
  }

  /** Reads marks, and checks for the files that they name and for reports. */
  private takesDrops(environment: Record<string, string>): lambda.Function {
    const made = this.control({ name: "intake", what: "Takes drops", environment });
    const { drop } = this.parts.state.buckets;
    const role = made.role as iam.Role;
    role.addToPolicy(statement("List", ["s3:ListBucket"], [drop.bucketArn]));
    const below = ["drop", "reports"].map((prefix) => `${drop.bucketArn}/${prefix}/*`);
    role.addToPolicy(statement("ReadDropped", ["s3:GetObject"], below));
    explainWildcard(role, `${drop.bucketArn}/drop/*`, "Users name the files and marks that they drop.");
    explainWildcard(
      role,
      `${drop.bucketArn}/reports/*`,
      "Reports of loads, by ids that are made while it runs.",
    );
    // AWS Lambda Powertools needs these for idempotency.
    const actions = ["dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:UpdateItem", "dynamodb:DeleteItem"];
    role.addToPolicy(statement("NoteWhoTook", actions, [this.taken.tableArn], items("drop#*")));
    return made;
  }

  /** Copies reports from the data bucket to the drop bucket, and finds loads without a report. */
  private tells(): lambda.Function {
    const { data, drop } = this.parts.state.buckets;
    const environment = { TIDEGRAPH_DATA_BUCKET: data.bucketName };
    // The memory suffices for a report of 10,000 rows, which is the maximum.
    const made = this.control({
      name: "report",
      what: "Reports the results of drops",
      memoryMib: 512,
      environment,
    });
    const role = made.role as iam.Role;
    role.addToPolicy(statement("List", ["s3:ListBucket"], [data.bucketArn, drop.bucketArn]));
    const reports = this.parts.graphs.paths("ingest/*/report.json");
    const of = reports.map((path) => `${data.bucketArn}/${path}`);
    role.addToPolicy(statement("ReadReports", ["s3:GetObject"], of));
    // To check whether a report exists.
    role.addToPolicy(statement("LookForReports", ["s3:GetObject"], [`${drop.bucketArn}/reports/*`]));
    const reason = "Reports of loads, by ids that are made while it runs.";
    for (const path of reports) explainWildcard(role, `${data.bucketArn}/${path}`, reason);
    this.writesReports(role);
    return made;
  }

  /** Looks for drops that nobody completed. */
  private looks(table: Record<string, string>, staleAfter: Duration): lambda.Function {
    const { drop } = this.parts.state.buckets;
    const environment = { ...table, TIDEGRAPH_STALE_SECONDS: String(staleAfter.toSeconds()) };
    const made = this.control({
      name: "stale",
      what: "Looks for stale drops",
      timeout: TIMEOUT,
      environment,
    });
    const role = made.role as iam.Role;
    role.addToPolicy(statement("List", ["s3:ListBucket"], [drop.bucketArn]));
    // To check whether a mark exists.
    role.addToPolicy(statement("LookForMarks", ["s3:GetObject"], [`${drop.bucketArn}/drop/*`]));
    explainWildcard(role, `${drop.bucketArn}/drop/*`, "Marks in folders that people name as they like.");
    this.writesReports(role);
    const actions = ["dynamodb:GetItem", "dynamodb:PutItem"];
    role.addToPolicy(statement("NoteWhereItStopped", actions, [this.taken.tableArn], items("stale#*")));
    return made;
  }

  private writesReports(role: iam.Role): void {
    const { drop } = this.parts.state.buckets;
    role.addToPolicy(statement("WriteReports", ["s3:PutObject"], [`${drop.bucketArn}/reports/*`]));
    explainWildcard(
      role,
      `${drop.bucketArn}/reports/*`,
      "Reports of loads, by ids that are made while it runs.",
    );
  }

  /** Creates one of the small functions, bundled by esbuild from the repository's packages. */
  private control({
    name,
    what,
    memoryMib = 256,
    timeout = CONTROL_TIMEOUT,
    environment,
  }: Control): lambda.Function {
    const { state, retention } = this.parts;
    const scope = new Construct(
      this,
      name.replace(/^./, (letter) => letter.toUpperCase()),
    );
    const logGroup = processLog(scope, "Logs", state, `ingest-${name}`, retention);
    const role = new iam.Role(scope, "Role", {
      assumedBy: new iam.ServicePrincipal("lambda.amazonaws.com"),
      description: `${what}: ${state.name}`,
    });
    const write = ["logs:CreateLogStream", "logs:PutLogEvents"];
    role.addToPolicy(statement("WriteLog", write, [logGroup.logGroupArn]));
    role.addToPolicy(useKey(scope, state.key, ["dynamodb", "lambda", "s3"]));
    explainWildcard(role, "*", "Traces are sent to X-Ray, which knows no resources for that.");
    return typescriptFunction(scope, name, {
      description: `${what} of ${this.parts.graphs.words}`,
      architecture: this.architecture,
      memorySize: memoryMib,
      timeout,
      role,
      logGroup,
      tracing: lambda.Tracing.ACTIVE,
      environmentEncryption: Key.fromKeyArn(scope, "Key", state.key.keyArn),
      environment: {
        POWERTOOLS_SERVICE_NAME: METRICS.ofIngest.service,
        POWERTOOLS_METRICS_NAMESPACE: METRICS.namespace,
        TIDEGRAPH_DEPLOYMENT: state.name,
        TIDEGRAPH_GRAPH: this.parts.graphs.variable,
        TIDEGRAPH_DROP_BUCKET: state.buckets.drop.bucketName,
        ...environment,
      },
    });
  }

  private makeTable(): dynamodb.Table {
    const table = new dynamodb.Table(this, "Taken", {
      partitionKey: { name: "id", type: dynamodb.AttributeType.STRING },
      timeToLiveAttribute: "expiration",
      billingMode: dynamodb.BillingMode.PAY_PER_REQUEST,
      encryption: dynamodb.TableEncryption.CUSTOMER_MANAGED,
      encryptionKey: Key.fromKeyArn(this, "TableKey", this.parts.state.key.keyArn),
      removalPolicy: RemovalPolicy.DESTROY,
    });
    explain(
      table,
      "DDB3",
      "It notes which execution began a load, for a month. A report in the drop bucket says the same for longer.",
    );
    return table;
  }

  private makeMachine(concurrency: number, longest: Duration): sfn.StateMachine {
    const { intake, report, function: load } = this;
    const { areSeveral } = this.parts.graphs;
    const machine = this.stateMachine({
      id: "Machine",
      logs: "ingest-machine",
      comment: "Loads dropped files",
      timeout: longest,
      invokes: [intake, load, report],
      definition: (scope) =>
        ingest(scope, { intake, load, report, concurrency, timeout: TIMEOUT, areSeveral }),
    });
    // CDK lets a machine with a Distributed Map start, describe and stop its own executions.
    for (const below of ["", "/*"]) {
      const own = this.executionsOf(machine, below);
      explainWildcard(machine, own, "Executions of its own tasks, which are named while it runs.");
    }
    return machine;
  }

  private makeSettle(): sfn.StateMachine {
    const { machine, report, function: load } = this;
    const { areSeveral } = this.parts.graphs;
    const executions = this.executionsOf(machine);
    // A policy of its own, to avoid a cycle: the function waits for the role's default policy, and the machine waits
    // for the function.
    const policy = new iam.Policy(this, "SeeExecutions", {
      statements: [
        statement("SeeExecutions", ["states:DescribeExecution", "states:GetExecutionHistory"], [executions]),
      ],
      roles: [report.role as iam.Role],
    });
    explainWildcard(
      policy,
      executions,
      "Executions of the machine that loads, which are named while it runs.",
    );
    return this.stateMachine({
      id: "Settle",
      logs: "ingest-settle",
      comment: "Settles loads whose execution ended without a report",
      timeout: SETTLE_TIMEOUT,
      invokes: [load, report],
      definition: (scope) => settle(scope, { load, report, timeout: TIMEOUT, areSeveral }),
    });
  }

  /** Returns the ARN pattern of a machine's executions; `below` selects the executions of its Map. */
  private executionsOf(machine: sfn.StateMachine, below = ""): string {
    const name = Fn.select(6, Fn.split(":", machine.stateMachineArn));
    const { partition, region, account } = Stack.of(this);
    return `arn:${partition}:states:${region}:${account}:execution:${name}${below}:*`;
  }

  private stateMachine({ id, logs, comment, timeout, invokes, definition }: Machine): sfn.StateMachine {
    const { state, retention } = this.parts;
    const scope = new Construct(this, id);
    const role = new iam.Role(scope, "Role", {
      assumedBy: new iam.ServicePrincipal("states.amazonaws.com"),
      description: `${comment}: ${state.name}`,
    });
    const machine = new sfn.StateMachine(scope, "StateMachine", {
      comment,
      stateMachineType: sfn.StateMachineType.STANDARD,
      definitionBody: sfn.DefinitionBody.fromChainable(definition(scope)),
      role,
      timeout,
      tracingEnabled: true,
      logs: {
        destination: machineLog(this, `${id}Logs`, state, logs, retention),
        level: sfn.LogLevel.ALL,
        includeExecutionData: true,
      },
    });
    const unnamed =
      "Step Functions sets up the delivery of its log, and sends traces, by actions that know no resources.";
    explainWildcard(role, "*", unnamed);
    for (const { functionArn } of invokes) {
      explainWildcard(role, `${functionArn}:*`, "Versions of the functions that this invokes.");
    }
    return machine;
  }

  /**
   * Matches every mark below `drop/`. The intake function decides which of them belong to a load, so that it can report
   * a wrong one.
   */
  private hears(): events.Rule {
    return new events.Rule(this, "Dropped", {
      description: "Dropped files are complete",
      eventPattern: {
        source: ["aws.s3"],
        detailType: ["Object Created"],
        detail: {
          bucket: { name: [this.parts.state.buckets.drop.bucketName] },
          object: { key: [{ wildcard: "drop/*/_SUCCESS" }] },
        },
      },
      targets: [new targets.SfnStateMachine(this.machine)],
    });
  }

  /**
   * Matches every unsuccessful end. A load that failed in order has its report, which the machine sees at once. The
   * tasks of the Map do not match, because they are executions of another name.
   */
  private hearsOfEnds(): void {
    new events.Rule(this, "Ended", {
      description: "The execution of a load failed, and may have left no report",
      eventPattern: {
        source: ["aws.states"],
        detailType: ["Step Functions Execution Status Change"],
        detail: {
          stateMachineArn: [this.machine.stateMachineArn],
          status: ["ABORTED", "FAILED", "TIMED_OUT"],
        },
      },
      targets: [new targets.SfnStateMachine(this.settle)],
    });
  }
}

/** Restricts a statement to items whose key matches a pattern. */
function items(like: string): Record<string, Record<string, string[]>> {
  return { "ForAllValues:StringLike": { "dynamodb:LeadingKeys": [like] } };
}

/** Checks for a duration within inclusive bounds. */
function within(prop: string, value: Duration, least: Duration, most: Duration): Duration {
  const seconds = value.toSeconds();
  if (seconds < least.toSeconds() || seconds > most.toSeconds()) {
    throw new InvalidProp(
      prop,
      value.toHumanString(),
      `from ${least.toHumanString()} to ${most.toHumanString()}`,
    );
  }
  return value;
}
