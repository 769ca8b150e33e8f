/**
 * The order of steps when files are dropped: take the drop, begin the load, do the tasks of one stage after another,
 * commit, report. The function that loads decides which stages there are and when one is repeated
 * (`contracts/schemas/ingest-answer.schema.json`); this file only defines how it is invoked.
 *
 * The tasks of a stage run in a Distributed Map. Its executions are of the standard kind, because an express execution
 * ends after five minutes. A task may take the function's limit of fifteen minutes, and is retried if the function
 * dies. A task may run twice, even concurrently; both runs write the same.
 *
 * A load must never end without a report. Any error that is caught ends the load (`Abandon`), whose outcome is then
 * reported. If even that fails, the error is reported.
 */
import { Duration } from "aws-cdk-lib";
import type * as lambda from "aws-cdk-lib/aws-lambda";
import * as sfn from "aws-cdk-lib/aws-stepfunctions";
import * as tasks from "aws-cdk-lib/aws-stepfunctions-tasks";
import type { Construct } from "constructs";
import { PASSES, retry } from "./retry.ts";

/** Settings of the machine. */
export interface IngestMachineProps {
  /** The function that takes drops. */
  readonly intake: lambda.IFunction;
  /** The function that loads. */
  readonly load: lambda.IFunction;
  /** The function that reports. */
  readonly report: lambda.IFunction;
  /** Maximum number of concurrent tasks. */
  readonly concurrency: number;
  /** Time limit of the function that loads. */
  readonly timeout: Duration;
  /** Whether there are several graphs: each step names that of the load. */
  readonly areSeveral: boolean;
}

/**
 * Errors of a function that was killed, for example for its memory use. They are retried, because an earlier task may
 * have exhausted the environment.
 */
const DIES = [...PASSES, "Runtime.ExitError", "Runtime.OutOfMemory"];
/** Extra time, beyond the function's own limit, for Lambda to place the invocation. */
const MARGIN = Duration.minutes(1);

export function ingest(scope: Construct, props: IngestMachineProps): sfn.IChainable {
  const { stringAt, numberAt, objectAt } = sfn.JsonPath;
  const loadId = stringAt("$.at.loadId");
  const round = numberAt("$.at.round");
  const graph = graphAt(props, "$.load.graph");

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
  const report = tell("Report", "Copies the report of the load to the drop bucket", {
    kind: "ended",
    load,
    ended: { status: stringAt("$.at.status"), report: stringAt("$.at.report") },
  });
  const refused = tell("Report the refusal", "Reports why the drop is not loaded", {
    kind: "refused",
    load,
    reason: stringAt("$.reason"),
  });
  const lost = tell("Report the failure", "Reports the caught error, because nothing else is known", {
    kind: "failed",
    load,
    error: objectAt("$.error"),
  });

  const which = new sfn.Choice(scope, "Which stage?");
  const abandon = step(scope, props, "Abandon", "Nothing of the load becomes visible, unless it is already", {
    payload: { ...abandoned("$.load.loadId", "$.error"), ...graphAt(props, "$.load.graph") },
  });
  // The report has to give the error that was caught first. If the load never began, this step only learns that there
  // is no load.
  abandon.addCatch(lost, { errors: ["States.ALL"], resultPath: "$.notAbandoned" });
  abandon.next(which);
  const guard = <T extends tasks.LambdaInvoke | sfn.DistributedMap>(state: T): T => {
    state.addCatch(abandon, { errors: ["States.ALL"], resultPath: "$.error" });
    return state;
  };
  const begin = guard(
    step(scope, props, "Begin", "Lists the files, reads their headers, and divides them", {
      inputPath: "$.begin",
    }),
  );
  const work = guard(doTasks(scope, props));
  const next = guard(
    step(scope, props, "Next", "All tasks of the stage are done", {
      payload: { step: "next", loadId, stage: stringAt("$.at.stage"), round, ...graph },
    }),
  );
  const commit = guard(
    step(scope, props, "Commit", "One record of the log makes all of it visible", {
      payload: { step: "commit", loadId, round, ...graph },
    }),
  );
  const isAt = (stage: string): sfn.Condition => sfn.Condition.stringEquals("$.at.stage", stage);
  // The function refuses an unknown stage when it is invoked with a task of it.
  which
    .when(isAt("ended"), report)
    .when(isAt("commit"), commit.next(which))
    .otherwise(work.next(next).next(which));

  const take = control(
    scope,
    "Take the drop",
    "Reads the mark, gives the load its id, and notes its execution",
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

/** Returns the maximum run time of a step, measured from its invocation. */
export function longestStep({ timeout }: Pick<IngestMachineProps, "timeout">): Duration {
  return timeout.plus(MARGIN);
}

/** Returns the part of a payload that names the graph, if there are several. */
export function graphAt(
  { areSeveral }: Pick<IngestMachineProps, "areSeveral">,
  path: string,
): Record<string, string> {
  return areSeveral ? { graph: sfn.JsonPath.stringAt(path) } : {};
}

/** Returns the payload that abandons a load after an error, given the paths of the load and of the error. */
export function abandoned(loadId: string, error: string): Record<string, unknown> {
  const { stringAt } = sfn.JsonPath;
  return {
    step: "abandon",
    loadId: stringAt(loadId),
    error: stringAt(`${error}.Error`),
    cause: stringAt(`${error}.Cause`),
  };
}

/**
 * A step of one of the functions around the load. All errors are retried, because these functions answer refusals
 * instead of failing.
 */
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
  retry(task, ["States.ALL"]);
  return task;
}

/** A step of the function that loads. Its answer says where the load is. */
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
  retry(task, DIES);
  return task;
}

/**
 * The tasks of a stage. Each is an execution of its own, so that the history of this execution does not limit their
 * number. A Map that fails says only that some of its tasks failed. So a task that fails for good reports its error
 * itself, and the first error stays in the report.
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
      ...graphAt(props, "$.load.graph"),
    },
    maxConcurrency: props.concurrency,
    resultPath: sfn.JsonPath.DISCARD,
  });
  const one = new tasks.LambdaInvoke(scope, "Do a task", {
    comment: "Its output is in the data bucket",
    lambdaFunction: props.load,
    payloadResponseOnly: true,
    // Without this, Step Functions would collect the answers of all tasks in one state, which has a size limit, before
    // discarding them.
    outputPath: sfn.JsonPath.DISCARD,
    retryOnServiceExceptions: false,
    taskTimeout: sfn.Timeout.duration(longestStep(props)),
  });
  retry(one, DIES);
  const failed = new sfn.Fail(scope, "Task failed", {
    errorPath: sfn.JsonPath.stringAt("$.error.Error"),
    causePath: sfn.JsonPath.stringAt("$.error.Cause"),
  });
  const say = step(scope, props, "Say what failed", "Only the task knows its error", {
    payload: { ...abandoned("$.loadId", "$.error"), ...graphAt(props, "$.graph") },
    resultPath: sfn.JsonPath.DISCARD,
  });
  say.addCatch(failed, { errors: ["States.ALL"], resultPath: sfn.JsonPath.DISCARD });
  one.addCatch(say.next(failed), { errors: ["States.ALL"], resultPath: "$.error" });
  map.itemProcessor(one);
  return map;
}
