/**
 * The common states of the machines that move replicas: take the lease, plan, run the moves, plan again until nothing
 * is left, verify, and release the lease. The function implements the steps (`services/rebalance`); this file only
 * defines their order, waits and retries.
 *
 * A machine may be stopped at any point. The next execution takes over the lease once it sees no sign of its holder,
 * and continues what the map says was begun.
 *
 * The history of an execution has at most 25,000 events. So an execution ends after `ROUNDS` plans with at most `LOTS`
 * lots each, which are checked `LOOKS` times; the detector starts the next execution while something is left. A test
 * adds up the events.
 */
import { Duration } from "aws-cdk-lib";
import type * as lambda from "aws-cdk-lib/aws-lambda";
import * as sfn from "aws-cdk-lib/aws-stepfunctions";
import type * as tasks from "aws-cdk-lib/aws-stepfunctions-tasks";
import type { Construct } from "constructs";
import { invocation } from "./invocation.ts";

/** Maximum number of lots of one plan: the moves to one node each (`services/rebalance/src/event.rs`). */
export const LOTS = 32;
/** Maximum number of moves of one plan, which the function takes. */
export const MOVES = 256;
/** Number of lots that are checked concurrently. */
export const CONCURRENCY = 8;
/** Maximum number of plans of one execution. */
export const ROUNDS = 10;
/** How often a lot is checked before the next plan, which continues it. */
export const LOOKS = 6;
/** Time between two checks. */
const LOOK = Duration.seconds(15);
/** Time between two plans, in which starting nodes can come up. */
const BREATH = Duration.seconds(5);

/** What differs between the machines. */
export interface MovesProps {
  readonly function: lambda.IFunction;
  /** The goal of the plan. */
  readonly goal: "repair" | "balance";
  /** Whether the input names a node that is to be drained. */
  readonly drains: boolean;
  /** Whether there are several graphs: the input names the one that these moves are about. */
  readonly areSeveral: boolean;
  /** The next state if another execution has the lease. */
  readonly busy: sfn.IChainable;
  /** The next state if the map is as it should be. */
  readonly whole: sfn.IChainable;
  /** Makes a state that follows each round of moves, and leads to the given one. */
  readonly moved?: (next: sfn.IChainable) => sfn.IChainable;
}

/** Creates the states; all share a scope and a function. */
export class Moves {
  private readonly scope: Construct;
  private readonly props: MovesProps;

  constructor(scope: Construct, props: MovesProps) {
    this.scope = scope;
    this.props = props;
  }

  /** Returns a step of the function. Transient errors are retried. */
  step(
    id: string,
    comment: string,
    payload: Record<string, unknown>,
    resultPath: string,
  ): tasks.LambdaInvoke {
    const of = this.props.areSeveral ? { ...payload, graph: sfn.JsonPath.stringAt("$.graph") } : payload;
    return invocation(this.scope, id, { function: this.props.function, comment, payload: of, resultPath });
  }

  /** Returns the whole chain, from taking the lease to the end. */
  chain(): sfn.IChainable {
    const { scope, props } = this;
    const holder = sfn.JsonPath.executionId;
    const failed = this.failed(holder);
    const guard = <T extends sfn.TaskStateBase | sfn.Map>(state: T): T => {
      state.addCatch(failed, { errors: ["States.ALL"], resultPath: "$.error" });
      return state;
    };
    const begin = new sfn.Pass(scope, "Count rounds", {
      result: sfn.Result.fromObject({ rounds: 0 }),
      resultPath: "$.count",
    });
    const acquire = this.step("Take the lease", "Or see who has it", { step: "acquire", holder }, "$.lease");
    const still = new sfn.Wait(scope, "Wait for a sign of its holder", {
      time: sfn.WaitTime.secondsPath("$.lease.waitSeconds"),
    });
    const again = this.step(
      "Take it if it stood still",
      "Its holder is dead in that case",
      { step: "acquire", holder, seen: sfn.JsonPath.objectAt("$.lease.lease") },
      "$.lease",
    );
    const plan = guard(
      this.step(
        "Plan",
        "Finds all moves, and those to start now",
        {
          step: "plan",
          holder,
          goal: props.goal,
          ...(props.drains && { drain: sfn.JsonPath.stringAt("$.node") }),
        },
        "$.plan",
      ),
    );
    const move = guard(this.lots(holder));
    const breathe = new sfn.Wait(scope, "Breathe", { time: sfn.WaitTime.duration(BREATH) });
    const count = new sfn.Pass(scope, "Next round", {
      parameters: { "rounds.$": "States.MathAdd($.count.rounds, 1)" },
      resultPath: "$.count",
    });
    const verify = guard(
      this.step(
        "Verify",
        "Checks that the map is as it should be",
        {
          step: "verify",
          goal: props.goal,
          ...(props.drains && { drain: sfn.JsonPath.stringAt("$.node") }),
        },
        "$.verified",
      ),
    );
    const release = this.step(
      "Give the lease back",
      "So that the next execution need not wait",
      { step: "release", holder },
      sfn.JsonPath.DISCARD,
    );
    const whole = new sfn.Choice(scope, "Whole?")
      .when(sfn.Condition.booleanEquals("$.verified.whole", true), props.whole)
      .when(
        sfn.Condition.numberGreaterThanEquals("$.count.rounds", ROUNDS),
        new sfn.Succeed(scope, "More is left", {
          comment: "The history of an execution is bounded; the detector starts the next one",
        }),
      )
      .otherwise(
        new sfn.Fail(scope, "Not whole", {
          error: "NotWhole",
          causePath: sfn.JsonPath.stringAt("$.verified.reason"),
        }),
      );
    verify.next(release).next(whole);
    const isDone = sfn.Condition.and(
      sfn.Condition.booleanEquals("$.plan.done", true),
      sfn.Condition.numberEquals("$.plan.coming", 0),
    );
    const left = new sfn.Choice(scope, "Anything left?")
      .when(sfn.Condition.or(isDone, sfn.Condition.numberGreaterThanEquals("$.count.rounds", ROUNDS)), verify)
      .otherwise(move);
    move.next(props.moved?.(breathe) ?? breathe);
    breathe.next(count).next(plan).next(left);
    const isOurs = sfn.Condition.booleanEquals("$.lease.ours", true);
    const late = new sfn.Choice(scope, "Ours now?").when(isOurs, plan).otherwise(props.busy);
    still.next(again).next(late);
    return begin.next(acquire).next(new sfn.Choice(scope, "Ours?").when(isOurs, plan).otherwise(still));
  }

  /**
   * Runs the lots of moves, some of them concurrently. Each is checked until it is over; one that takes long is planned
   * again, and the new plan continues it.
   */
  private lots(holder: string): sfn.Map {
    const { scope } = this;
    // The answer to a step takes the place of what was asked, except for the graph.
    const at = this.props.areSeveral ? "$.at" : "$";
    const lot = { "moves.$": "$$.Map.Item.Value.moves", looks: 0 };
    const map = new sfn.Map(scope, "Move", {
      comment: "Nodes restore what the map gives them; the old replica is dropped when enough others answer",
      itemsPath: sfn.JsonPath.stringAt("$.plan.lots"),
      itemSelector: this.props.areSeveral ? { at: lot, "graph.$": "$.graph" } : lot,
      maxConcurrency: CONCURRENCY,
      resultPath: sfn.JsonPath.DISCARD,
    });
    const advance = this.step(
      "Go on",
      "Does the next step of each move",
      {
        step: "move",
        holder,
        moves: sfn.JsonPath.objectAt(`${at}.moves`),
        looks: sfn.JsonPath.numberAt(`${at}.looks`),
      },
      at,
    );
    const wait = new sfn.Wait(scope, "Wait for nodes", { time: sfn.WaitTime.duration(LOOK) });
    const isOver = sfn.Condition.or(
      sfn.Condition.booleanEquals(`${at}.done`, true),
      sfn.Condition.numberGreaterThanEquals(`${at}.looks`, LOOKS),
    );
    const over = new sfn.Choice(scope, "Over?")
      .when(isOver, new sfn.Succeed(scope, "Over"))
      .otherwise(wait.next(advance));
    map.itemProcessor(advance.next(over));
    return map;
  }

  /** Releases the lease, and fails the execution with the error. */
  private failed(holder: string): sfn.IChainable {
    const release = this.step(
      "Give the lease back after a failure",
      "So that the next execution need not wait",
      { step: "release", holder },
      sfn.JsonPath.DISCARD,
    );
    const fail = new sfn.Fail(this.scope, "Failed", {
      errorPath: sfn.JsonPath.stringAt("$.error.Error"),
      causePath: sfn.JsonPath.stringAt("$.error.Cause"),
    });
    release.addCatch(fail, { errors: ["States.ALL"], resultPath: sfn.JsonPath.DISCARD });
    return release.next(fail);
  }
}
