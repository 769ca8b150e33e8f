/**
 * What the state machines that move replicas are made of: take the lease, plan, let moves run, plan again until nothing is left, verify, give the lease back.
 * The steps are those of the function (`services/rebalance`); here is only what comes after what, how long it waits, and what is tried again.
 *
 * A machine may be stopped anywhere: the next execution takes the lease when it stood still, and goes on with what the map says was begun.
 *
 * The history of an execution has at most 25,000 events. So it ends after `ROUNDS` plans with at most `MOVES` lots each, which are looked at `LOOKS` times; the
 * detector starts the next one while something is left. A test adds it up.
 */
import { Duration } from "aws-cdk-lib";
import type * as lambda from "aws-cdk-lib/aws-lambda";
import * as sfn from "aws-cdk-lib/aws-stepfunctions";
import * as tasks from "aws-cdk-lib/aws-stepfunctions-tasks";
import type { Construct } from "constructs";
import { patiently } from "./retry.ts";

/** Most moves of one plan that run at the same time. */
export const MOVES = 32;
/** Lots of them that are looked at at the same time. */
export const CONCURRENCY = 8;
/** Plans of one execution. */
export const ROUNDS = 10;
/** How often a lot is looked at before it is planned anew, which goes on with it. */
export const LOOKS = 6;
/** Between two looks. */
const LOOK = Duration.seconds(15);
/** Between two plans: nodes that start come up meanwhile. */
const BREATH = Duration.seconds(5);

/** One of the machines. */
export interface MovesProps {
  readonly function: lambda.IFunction;
  /** What is planned for. */
  readonly goal: "repair" | "balance";
  /** Whether the input names a node that is to be emptied. */
  readonly drains: boolean;
  /** What to do when another execution has the lease. */
  readonly busy: sfn.IChainable;
  /** What to do when all is as it should be. */
  readonly whole: sfn.IChainable;
}

/** States that share a scope and what they call. */
export class Moves {
  private readonly scope: Construct;
  private readonly props: MovesProps;

  constructor(scope: Construct, props: MovesProps) {
    this.scope = scope;
    this.props = props;
  }

  /** A step of the function. What passes by itself is tried again. */
  step(
    id: string,
    comment: string,
    payload: Record<string, unknown>,
    resultPath: string,
  ): tasks.LambdaInvoke {
    const task = new tasks.LambdaInvoke(this.scope, id, {
      comment,
      lambdaFunction: this.props.function,
      payload: sfn.TaskInput.fromObject(payload),
      payloadResponseOnly: true,
      resultPath,
      retryOnServiceExceptions: false,
      taskTimeout: sfn.Timeout.duration(Duration.minutes(2)),
    });
    task.addRetry(patiently());
    return task;
  }

  /** From the lease to the end. */
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
    const acquire = this.step("Take the lease", "Or hear who has it", { step: "acquire", holder }, "$.lease");
    const still = new sfn.Wait(scope, "Wait for a sign of its holder", {
      time: sfn.WaitTime.secondsPath("$.lease.waitSeconds"),
    });
    const again = this.step(
      "Take it if it stood still",
      "Its holder is dead then",
      { step: "acquire", holder, seen: sfn.JsonPath.objectAt("$.lease.lease") },
      "$.lease",
    );
    const plan = guard(
      this.step(
        "Plan",
        "What has to move, and what of it now",
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
        "Whether all is as it should be",
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
      "The next one needs not wait",
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
    move.next(breathe).next(count).next(plan).next(left);
    const isOurs = sfn.Condition.booleanEquals("$.lease.ours", true);
    const late = new sfn.Choice(scope, "Ours now?").when(isOurs, plan).otherwise(props.busy);
    still.next(again).next(late);
    return begin.next(acquire).next(new sfn.Choice(scope, "Ours?").when(isOurs, plan).otherwise(still));
  }

  /** Lots of moves, some at a time. Each is looked at until it is over; one that takes long is planned anew, and gone on with. */
  private lots(holder: string): sfn.Map {
    const { scope } = this;
    const map = new sfn.Map(scope, "Move", {
      comment: "Nodes restore what the map gives them; the old replica is dropped when enough others answer",
      itemsPath: sfn.JsonPath.stringAt("$.plan.lots"),
      itemSelector: { "moves.$": "$$.Map.Item.Value.moves", looks: 0 },
      maxConcurrency: CONCURRENCY,
      resultPath: sfn.JsonPath.DISCARD,
    });
    const advance = this.step(
      "Go on",
      "Does what is next of each move",
      {
        step: "move",
        holder,
        moves: sfn.JsonPath.objectAt("$.moves"),
        looks: sfn.JsonPath.numberAt("$.looks"),
      },
      "$",
    );
    const wait = new sfn.Wait(scope, "Wait for nodes", { time: sfn.WaitTime.duration(LOOK) });
    const isOver = sfn.Condition.or(
      sfn.Condition.booleanEquals("$.done", true),
      sfn.Condition.numberGreaterThanEquals("$.looks", LOOKS),
    );
    const over = new sfn.Choice(scope, "Over?")
      .when(isOver, new sfn.Succeed(scope, "Over"))
      .otherwise(wait.next(advance));
    map.itemProcessor(advance.next(over));
    return map;
  }

  /** The lease is given back, and the execution fails with what was wrong. */
  private failed(holder: string): sfn.IChainable {
    const release = this.step(
      "Give the lease back after a failure",
      "The next one needs not wait",
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
