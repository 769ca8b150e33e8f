/**
 * What comes after what when files are dropped: take the drop, begin the load, do the tasks of one stage after the other, commit, tell. Which stages there are, and when one comes again,
 * the function that loads says (`contracts/schemas/ingest-answer.schema.json`); here is only how it is asked.
 *
 * Tasks of a stage run in a Distributed Map. Its executions are of the standard kind: an express one ends after five minutes, and a task may take the function's fifteen, and be tried
 * again when the function dies. A task may run twice, also at the same time; what it writes is the same.
 *
 * What must never happen: that a load ends and nobody is told. Whatever is caught ends the load (`Abandon`), and what became of it is told from there; if even that fails, the
 * failure is told.
 */
import { Duration } from "aws-cdk-lib";
import type * as lambda from "aws-cdk-lib/aws-lambda";
import * as sfn from "aws-cdk-lib/aws-stepfunctions";
import * as tasks from "aws-cdk-lib/aws-stepfunctions-tasks";
import type { Construct } from "constructs";
import { PASSES, patiently } from "./retry.ts";

/** What it needs. */
export interface IngestMachineProps {
  /** Takes drops. */
  readonly intake: lambda.IFunction;
  /** Loads. */
  readonly load: lambda.IFunction;
  /** Tells. */
  readonly report: lambda.IFunction;
  /** Most tasks at the same time. */
  readonly concurrency: number;
  /** The longest that the function that loads takes. */
  readonly timeout: Duration;
}

/** A function that was killed, such as for its memory: tried again, since an environment may have been used up by the task before. */
const DIES = [...PASSES, "Runtime.ExitError", "Runtime.OutOfMemory"];
/** Beyond the function's own time, for Lambda to find a place for it. */
const MARGIN = Duration.minutes(1);

export function ingest(scope: Construct, props: IngestMachineProps): sfn.IChainable {
  const { stringAt, numberAt, objectAt } = sfn.JsonPath;
  const loadId = stringAt("$.at.loadId");
  const round = numberAt("$.at.round");

  const completed = new sfn.Succeed(scope, "Loaded", { outputPath: "$.told" });
  const failed = new sfn.Fail(scope, "Not loaded", {
    errorPath: stringAt("$.told.status"),
    causePath: stringAt("$.told.message"),
  });
  const end = new sfn.Choice(scope, "Completed?")
    .when(sfn.Condition.stringEquals("$.told.status", "LOAD_COMPLETED"), completed)
    .otherwise(failed);
  const tell = (id: string, comment: string, payload: Record<string, unknown>): sfn.IChainable =>
    control(scope, id, comment, props.report, payload, "$.told").next(end);
  const load = objectAt("$.load");
  const report = tell("Report", "Puts the report of the load beside the dropped files", {
    kind: "ended",
    load,
    ended: { status: stringAt("$.at.status"), report: stringAt("$.at.report") },
  });
  const refused = tell("Report the refusal", "Says why it is not loaded", {
    kind: "refused",
    load,
    reason: stringAt("$.reason"),
  });
  const lost = tell("Report the failure", "Says what was caught: nothing better is known", {
    kind: "failed",
    load,
    error: objectAt("$.error"),
  });

  const which = new sfn.Choice(scope, "Which stage?");
  const abandon = step(scope, props, "Abandon", "Nothing of it becomes visible, if it is not yet", {
    payload: abandoned("$.load.loadId", "$.error"),
  });
  // What was caught first is what the report has to say: of a load that never began, this only hears that there is none.
  abandon.addCatch(lost, { errors: ["States.ALL"], resultPath: "$.notAbandoned" });
  abandon.next(which);
  const guard = <T extends tasks.LambdaInvoke | sfn.DistributedMap>(state: T): T => {
    state.addCatch(abandon, { errors: ["States.ALL"], resultPath: "$.error" });
    return state;
  };
  const begin = guard(
    step(scope, props, "Begin", "Lists the files, looks at their heads, and divides them", {
      inputPath: "$.begin",
    }),
  );
  const work = guard(doTasks(scope, props));
  const next = guard(
    step(scope, props, "Next", "All tasks of the stage are done", {
      payload: { step: "next", loadId, stage: stringAt("$.at.stage"), round },
    }),
  );
  const commit = guard(
    step(scope, props, "Commit", "One record of the log makes all of it visible", {
      payload: { step: "commit", loadId, round },
    }),
  );
  const isAt = (stage: string): sfn.Condition => sfn.Condition.stringEquals("$.at.stage", stage);
  // A stage that there is not is refused by the function, as a task of it.
  which
    .when(isAt("ended"), report)
    .when(isAt("commit"), commit.next(which))
    .otherwise(work.next(next).next(which));

  const take = control(
    scope,
    "Take the drop",
    "Reads the mark, gives the load its id, and notes whose it is",
    props.intake,
    { execution: sfn.JsonPath.executionId, input: objectAt("$") },
    "$",
  );
  const isOutcome = (outcome: string): sfn.Condition => sfn.Condition.stringEquals("$.outcome", outcome);
  const what = new sfn.Choice(scope, "What is it?")
    .when(isOutcome("load"), begin.next(which))
    .when(isOutcome("refused"), refused)
    .when(isOutcome("already"), new sfn.Succeed(scope, "Taken already"))
    .otherwise(new sfn.Succeed(scope, "No drop"));
  return take.next(what);
}

/** The longest that a step runs, from when it is asked for. */
export function longestStep({ timeout }: Pick<IngestMachineProps, "timeout">): Duration {
  return timeout.plus(MARGIN);
}

/** What the function that loads is asked when something was caught, by the paths of the load and of what was. */
export function abandoned(loadId: string, error: string): Record<string, unknown> {
  const { stringAt } = sfn.JsonPath;
  return {
    step: "abandon",
    loadId: stringAt(loadId),
    error: stringAt(`${error}.Error`),
    cause: stringAt(`${error}.Cause`),
  };
}

/** One of the functions around the load. Whatever it fails for is tried again: what it refuses it answers. */
export function control(
  scope: Construct,
  id: string,
  comment: string,
  lambdaFunction: lambda.IFunction,
  payload: Record<string, unknown>,
  resultPath: string,
): tasks.LambdaInvoke {
  const task = new tasks.LambdaInvoke(scope, id, {
    comment,
    lambdaFunction,
    payload: sfn.TaskInput.fromObject(payload),
    payloadResponseOnly: true,
    resultPath,
    retryOnServiceExceptions: false,
    taskTimeout: sfn.Timeout.duration(Duration.minutes(2)),
  });
  task.addRetry(patiently(["States.ALL"]));
  return task;
}

/** A step of the function that loads; what it answers is where the load is at. */
export function step(
  scope: Construct,
  props: Pick<IngestMachineProps, "load" | "timeout">,
  id: string,
  comment: string,
  asked: ({ readonly payload: Record<string, unknown> } | { readonly inputPath: string }) & {
    readonly resultPath?: string;
  },
): tasks.LambdaInvoke {
  const task = new tasks.LambdaInvoke(scope, id, {
    comment,
    lambdaFunction: props.load,
    ...("payload" in asked
      ? { payload: sfn.TaskInput.fromObject(asked.payload) }
      : { inputPath: asked.inputPath }),
    payloadResponseOnly: true,
    resultPath: asked.resultPath ?? "$.at",
    retryOnServiceExceptions: false,
    taskTimeout: sfn.Timeout.duration(longestStep(props)),
  });
  task.addRetry(patiently(DIES));
  return task;
}

/**
 * The tasks of a stage, each an execution of its own, so that their number is not bounded by the history of this one. A Map that fails says only that tasks of it did; so a task that
 * fails for good says itself what for, and what is said first stays in the report.
 */
function doTasks(scope: Construct, props: IngestMachineProps): sfn.DistributedMap {
  const map = new sfn.DistributedMap(scope, "Work", {
    comment: "Tasks of one stage",
    mapExecutionType: sfn.StateMachineType.STANDARD,
    itemsPath: sfn.JsonPath.stringAt("$.at.tasks"),
    itemSelector: {
      step: "work",
      loadId: sfn.JsonPath.stringAt("$.at.loadId"),
      stage: sfn.JsonPath.stringAt("$.at.stage"),
      round: sfn.JsonPath.numberAt("$.at.round"),
      task: sfn.JsonPath.numberAt("$$.Map.Item.Value"),
    },
    maxConcurrency: props.concurrency,
    resultPath: sfn.JsonPath.DISCARD,
  });
  const one = new tasks.LambdaInvoke(scope, "Do a task", {
    comment: "What it wrote is in the data bucket",
    lambdaFunction: props.load,
    payloadResponseOnly: true,
    // What all tasks answer would be put together to one state, which has its limit, before it is thrown away.
    outputPath: sfn.JsonPath.DISCARD,
    retryOnServiceExceptions: false,
    taskTimeout: sfn.Timeout.duration(longestStep(props)),
  });
  one.addRetry(patiently(DIES));
  const failed = new sfn.Fail(scope, "Task failed", {
    errorPath: sfn.JsonPath.stringAt("$.error.Error"),
    causePath: sfn.JsonPath.stringAt("$.error.Cause"),
  });
  const say = step(scope, props, "Say what failed", "Nobody else knows", {
    payload: abandoned("$.loadId", "$.error"),
    resultPath: sfn.JsonPath.DISCARD,
  });
  say.addCatch(failed, { errors: ["States.ALL"], resultPath: sfn.JsonPath.DISCARD });
  one.addCatch(say.next(failed), { errors: ["States.ALL"], resultPath: "$.error" });
  map.itemProcessor(one);
  return map;
}
