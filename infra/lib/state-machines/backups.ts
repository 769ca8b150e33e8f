/**
 * Backs up several graphs, some of them at the same time. A graph whose backup fails does not keep others from theirs; the
 * execution fails at its end, and names it.
 */
import * as sfn from "aws-cdk-lib/aws-stepfunctions";
import type { Construct } from "constructs";

/** A graph, and the command that backs it up. */
export interface BackupOf {
  readonly graph: string;
  readonly command: readonly string[];
}

/** Graphs that are backed up at the same time. */
export const AT_ONCE = 4;

/** @param run backs up a graph by the command at `$.command` */
export function backups(scope: Construct, all: readonly BackupOf[], run: sfn.TaskStateBase): sfn.IChainable {
  const list = new sfn.Pass(scope, "List the graphs", { result: sfn.Result.fromObject({ graphs: all }) });
  const each = new sfn.Map(scope, "Each graph", {
    itemsPath: sfn.JsonPath.stringAt("$.graphs"),
    maxConcurrency: AT_ONCE,
    resultSelector: { "areFailed.$": "$[*].isFailed", "outcomes.$": "$[*].outcome" },
    resultPath: "$.ended",
  });
  const ended = (id: string, isFailed: boolean, outcome: string): sfn.Pass =>
    new sfn.Pass(scope, id, {
      parameters: { isFailed, "outcome.$": `States.Format('{}: ${outcome}', $.graph)` },
    });
  const done = ended("Backed up", false, "backed up");
  const failed = ended("Not backed up", true, "failed");
  run.addCatch(failed, { errors: ["States.ALL"], resultPath: "$.error" });
  each.itemProcessor(run.next(done));
  // A path that filters finds nothing where nothing failed, and engines differ in what that is.
  const sum = new sfn.Pass(scope, "Find failures", {
    parameters: {
      "isAnyFailed.$": "States.ArrayContains($.ended.areFailed, true)",
      "outcomes.$": "$.ended.outcomes",
    },
  });
  const end = new sfn.Choice(scope, "All?")
    .when(
      sfn.Condition.booleanEquals("$.isAnyFailed", true),
      new sfn.Fail(scope, "Some failed", {
        error: "NotBackedUp",
        causePath: sfn.JsonPath.format(
          "some graphs have no new backup: {}",
          sfn.JsonPath.jsonToString(sfn.JsonPath.objectAt("$.outcomes")),
        ),
      }),
    )
    .otherwise(new sfn.Succeed(scope, "All are backed up"));
  return list.next(each).next(sum).next(end);
}
