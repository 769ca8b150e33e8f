/**
 * Settles a load whose execution ended without telling: somebody stopped it, or it took longer than it may. The load is abandoned, so that whoever asks for it hears how it ended, and
 * gets its report.
 *
 * Steps that the execution had asked for run on for a while, and nobody hears of them: a commit among them may still make the load visible, and others would write behind one that was
 * abandoned. So it waits as long as a step may run, and then looks again: meanwhile somebody may have had the execution go on.
 *
 * What must never happen: that a load is told to have failed while a step of it may still commit it.
 */
import { Duration } from "aws-cdk-lib";
import * as sfn from "aws-cdk-lib/aws-stepfunctions";
import type { Construct } from "constructs";
import { abandoned, control, type IngestMachineProps, longestStep, step } from "./ingest.ts";

/** What it needs. */
export type SettleMachineProps = Pick<IngestMachineProps, "load" | "report" | "timeout">;

/** The longest that it may take: a wait, and a step that is tried again and again. */
export const SETTLE_TIMEOUT = Duration.hours(3);

export function settle(scope: Construct, props: SettleMachineProps): sfn.IChainable {
  const { stringAt, objectAt } = sfn.JsonPath;
  const look = (id: string, comment: string): sfn.TaskStateBase => {
    const payload = { kind: "stopped", event: objectAt("$"), longestSeconds: longestStep(props).toSeconds() };
    return control(scope, id, comment, props.report, payload, "$.found");
  };
  const told = new sfn.Succeed(scope, "Told", { outputPath: "$.told" });
  const nothing = new sfn.Succeed(scope, "Nothing to tell");
  const load = objectAt("$.found.load");
  const tell = (id: string, comment: string, payload: Record<string, unknown>): sfn.IChainable =>
    control(scope, id, comment, props.report, payload, "$.told").next(told);
  const report = tell("Report", "Puts the report of the load beside the dropped files", {
    kind: "ended",
    load,
    ended: { status: stringAt("$.at.status"), report: stringAt("$.at.report") },
  });
  const failed = tell("Report the end", "The load had not begun, or its end could not be written down", {
    kind: "failed",
    load,
    error: objectAt("$.found.error"),
  });
  const abandon = step(scope, props, "Abandon", "Nothing of it becomes visible, if it is not yet", {
    payload: abandoned("$.found.load.loadId", "$.found.error"),
  });
  abandon.addCatch(failed, { errors: ["States.ALL"], resultPath: "$.caught" });
  const isOpen = sfn.Condition.stringEquals("$.found.outcome", "open");
  const still = new sfn.Choice(scope, "Still open?").when(isOpen, abandon.next(report)).otherwise(nothing);
  const wait = new sfn.Wait(scope, "Steps may run on", {
    time: sfn.WaitTime.secondsPath("$.found.waitSeconds"),
  });
  const again = look("Look again", "It may go on meanwhile, or have told");
  const open = new sfn.Choice(scope, "Open?").when(isOpen, wait.next(again).next(still)).otherwise(nothing);
  return look("Look", "Which load it had, and whether that is told of").next(open);
}
