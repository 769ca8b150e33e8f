/**
 * The parts that move replicas: the function with the steps, one state machine each for heal, scale-out and drain, one
 * that checks every minute whether any of them is needed, and the rule that drains a machine before it is terminated.
 * `docs/rebalance.md` draws the machines.
 *
 * The function is outside the VPC: it uses only the map, at DynamoDB's public endpoint.
 */
import { Duration, Fn, Stack } from "aws-cdk-lib";
import * as events from "aws-cdk-lib/aws-events";
import * as targets from "aws-cdk-lib/aws-events-targets";
import * as iam from "aws-cdk-lib/aws-iam";
import { Key } from "aws-cdk-lib/aws-kms";
import * as lambda from "aws-cdk-lib/aws-lambda";
import type * as logs from "aws-cdk-lib/aws-logs";
import type * as sfn from "aws-cdk-lib/aws-stepfunctions";
import { Construct } from "constructs";
import type { Architecture, Bundle } from "../bundle.ts";
import { InvalidProp, whole } from "../check.ts";
import { processLog } from "../log-group.ts";
import { explainWildcard } from "../nag.ts";
import { detect } from "../state-machines/detect.ts";
import { drain } from "../state-machines/drain.ts";
import { heal } from "../state-machines/heal.ts";
import { stateMachine } from "../state-machines/machine.ts";
import { MOVES } from "../state-machines/moves.ts";
import { scaleOut } from "../state-machines/scale-out.ts";
import { statement, useKey } from "../statement.ts";
import type { IGraphState } from "./graph-state.ts";
import type { Graphs } from "./graphs.ts";
import { LEAVES, type StorageNodes } from "./storage-nodes.ts";

/** Settings of moves. */
export interface RebalanceProps {
  /**
   * How long a lost node has to come back before its replicas are restored on other nodes.
   *
   * @default 2 minutes
   */
  readonly patience?: Duration;
  /**
   * Maximum number of replicas that move at the same time, to at most 32 nodes. More of them finish sooner, and take
   * more network and processor time from queries.
   *
   * @default `restoresPerNode` for each node, from 32 to 256
   */
  readonly moves?: number;
  /**
   * Maximum number of replicas that one node is assigned at the same time.
   *
   * @default 16
   */
  readonly restoresPerNode?: number;
  /**
   * Number of concurrent environments that are reserved for the function that moves replicas, and which it has at most:
   * it heals also while loads and queries take all others. It needs up to 8 for the moves of a graph and 2 beside them;
   * with fewer it waits for itself. Lambda refuses a reservation that leaves fewer than 100 for all other functions of the
   * account: where the account allows as few, keep `ingest.concurrency` below what it allows instead.
   *
   * @default none: it shares the account's limit with all others
   */
  readonly concurrency?: number;
}

/** Settings and resources that this construct needs. */
interface Parts extends RebalanceProps {
  readonly state: IGraphState;
  readonly graphs: Graphs;
  readonly bundle: Bundle;
  /** The processor of the query function; all functions use the same one. */
  readonly architecture: Architecture;
  readonly nodes: StorageNodes;
  readonly retention: logs.RetentionDays;
}

/** Time limit of a step. Most read and change the map; `detect` watches for signs of life for some seconds. */
const STEP_TIMEOUT = Duration.seconds(60);
/** Maximum number of replicas that one node is assigned at the same time. */
const RESTORES = 16;
/** The largest `restoresPerNode`, which the function takes. */
const MOST_RESTORES = 64;
/** Maximum number of replicas that move at the same time in a small fleet. */
const LEAST_MOVES = 32;
/** A node without a sign of life for this long is lost. */
const SILENCE = Duration.seconds(15);
/** Longer than any wait of a state machine between two steps. */
const LEASE = Duration.seconds(120);
/**
 * Time limit of an execution: ten plans whose lots are checked six times each, 15 s apart, plus the patience before
 * them.
 */
const LONGEST = Duration.hours(6);

export class Rebalance extends Construct {
  readonly function: lambda.Function;
  readonly heal: sfn.StateMachine;
  /** Where executions that heal say what they did. */
  readonly healLog: logs.ILogGroup;
  readonly scaleOut: sfn.StateMachine;
  readonly drain: sfn.StateMachine;
  readonly detect: sfn.StateMachine;
  /** The rule that drains machines that are terminated. */
  readonly away: events.Rule;
  private readonly parts: Parts;

  constructor(scope: Construct, id: string, props: Parts) {
    super(scope, id);
    this.parts = props;
    const patience = props.patience ?? Duration.minutes(2);
    if (patience.toSeconds() > 3600) {
      throw new InvalidProp("rebalance.patience", patience.toHumanString(), "at most 1 hour");
    }
    const byNodes = (props.restoresPerNode ?? RESTORES) * props.nodes.count;
    const moves = whole(
      "rebalance.moves",
      props.moves ?? Math.min(MOVES, Math.max(LEAST_MOVES, byNodes)),
      1,
      MOVES,
    );
    const restores = whole(
      "rebalance.restoresPerNode",
      props.restoresPerNode ?? Math.min(RESTORES, moves),
      1,
      Math.min(moves, MOST_RESTORES),
    );
    if (props.concurrency !== undefined) whole("rebalance.concurrency", props.concurrency, 2, 1000);
    this.function = this.steps(moves, restores);
    const { function: fn } = this;
    const { groupName } = props.nodes;
    const groupArn = props.nodes.groupArn;
    const { areSeveral } = props.graphs;
    this.heal = this.machine("Heal", "Restores missing replicas", (inner) =>
      heal(inner, { function: fn, groupName, groupArn, areSeveral }),
    );
    this.healLog = this.node.findChild("HealLogs") as logs.LogGroup;
    this.scaleOut = this.machine("ScaleOut", "Gives all nodes their share", (inner) =>
      scaleOut(inner, { function: fn, areSeveral }),
    );
    this.drain = this.machine("Drain", "Empties a node before it is taken away", (inner) =>
      drain(inner, { function: fn, groupName, groupArn, hookName: LEAVES, areSeveral }),
    );
    for (const { role } of [this.heal, this.drain]) {
      explainWildcard(
        role,
        groupArn,
        "One group; the id in its ARN is drawn when it is made, and differs in each deployment.",
      );
    }
    const { heal: healing, scaleOut: scaling, drain: draining } = this;
    this.detect = this.machine(
      "Detect",
      "Checks whether replicas have to move",
      (inner) =>
        detect(inner, {
          function: fn,
          heal: healing,
          scaleOut: scaling,
          drain: draining,
          patience,
          areSeveral,
        }),
      true,
    );
    if (areSeveral) this.explainExecutionsOf(draining);
    this.away = this.rules();
  }

  /** CDK lets a machine with a Distributed Map start, describe and stop its own executions. */
  private explainExecutionsOf(machine: sfn.StateMachine): void {
    const name = Fn.select(6, Fn.split(":", machine.stateMachineArn));
    const { partition, region, account } = Stack.of(this);
    for (const below of ["", "/*"]) {
      const own = `arn:${partition}:states:${region}:${account}:execution:${name}${below}:*`;
      explainWildcard(machine, own, "Executions for each graph, which are named while it runs.");
    }
  }

  private rules(): events.Rule {
    const minute = new events.Rule(this, "EachMinute", {
      description: "Checks every minute whether replicas have to move",
      schedule: events.Schedule.rate(Duration.minutes(1)),
      targets: [new targets.SfnStateMachine(this.detect, { retryAttempts: 0 })],
    });
    const { groupName } = this.parts.nodes;
    const away = new events.Rule(this, "TakenAway", {
      description: "A machine of the fleet is being terminated: drains it first",
      eventPattern: {
        source: ["aws.autoscaling"],
        detailType: ["EC2 Instance-terminate Lifecycle Action"],
        detail: { AutoScalingGroupName: [groupName], LifecycleHookName: [LEAVES] },
      },
      targets: [
        new targets.SfnStateMachine(this.drain, {
          input: events.RuleTargetInput.fromObject({
            node: events.EventField.fromPath("$.detail.EC2InstanceId"),
          }),
          retryAttempts: 10,
        }),
      ],
    });
    // Deleted before the group is emptied: nobody drains or heals while all nodes leave.
    for (const rule of [minute, away]) rule.node.addDependency(this.parts.nodes.teardown);
    return away;
  }

  /** Creates the function with the steps. */
  private steps(moves: number, restores: number): lambda.Function {
    const { state, bundle, nodes, architecture, concurrency } = this.parts;
    const logGroup = processLog(this, "Logs", state, "rebalance", this.parts.retention);
    const role = new iam.Role(this, "Role", {
      assumedBy: new iam.ServicePrincipal("lambda.amazonaws.com"),
      description: `Moves replicas of ${state.name}`,
    });
    for (const allowed of state.map.changes(...this.parts.graphs.names)) role.addToPolicy(allowed);
    role.addToPolicy(
      statement("WriteLog", ["logs:CreateLogStream", "logs:PutLogEvents"], [logGroup.logGroupArn]),
    );
    role.addToPolicy(useKey(this, state.key, ["dynamodb", "lambda"]));
    return new lambda.Function(this, "Function", {
      description: `Moves replicas of ${this.parts.graphs.words}`,
      runtime: lambda.Runtime.PROVIDED_AL2023,
      architecture: architecture === "arm64" ? lambda.Architecture.ARM_64 : lambda.Architecture.X86_64,
      handler: "bootstrap",
      code: lambda.Code.fromAsset(bundle.functionFolder("tidegraph-rebalance", architecture)),
      memorySize: 128,
      timeout: STEP_TIMEOUT,
      ...(concurrency !== undefined && { reservedConcurrentExecutions: concurrency }),
      role,
      logGroup,
      environmentEncryption: Key.fromKeyArn(this, "Key", state.key.keyArn),
      environment: {
        TIDEGRAPH_GRAPH: this.parts.graphs.variable,
        TIDEGRAPH_TABLE_PREFIX: state.map.prefix,
        TIDEGRAPH_NODES: String(nodes.count),
        TIDEGRAPH_MOVES: String(moves),
        // Nodes limit how many replicas they restore at once. The others wait at the node, instead of for the next
        // plan.
        TIDEGRAPH_RESTORES_PER_NODE: String(restores),
        TIDEGRAPH_SILENCE_MS: String(SILENCE.toMilliseconds()),
        TIDEGRAPH_LEASE_MS: String(LEASE.toMilliseconds()),
        TIDEGRAPH_LOG: "info",
      },
    });
  }

  private machine(
    id: string,
    comment: string,
    definition: (scope: Construct) => sfn.IChainable,
    isExpress = false,
  ): sfn.StateMachine {
    const { state, retention } = this.parts;
    const timeout = isExpress ? Duration.minutes(4) : LONGEST;
    return stateMachine(this, id, {
      state,
      comment,
      definition,
      function: this.function,
      timeout,
      retention,
      isExpress,
    });
  }
}
