/**
 * Settles a load whose execution ended without a report, because somebody stopped it or it exceeded its time limit. It
 * abandons the load, so that a status request shows how the load ended, and writes its report.
 *
 * Steps that the execution had started keep running for a while, and nobody receives their answers: a commit among them
 * may still make the load visible, and others would write after the load was abandoned. So this machine waits for the
 * maximum run time of a step and then checks again, because somebody may have redriven the execution meanwhile.
 *
 * A load must never be reported as failed while one of its steps may still commit it.
 */
import { Duration } from "aws-cdk-lib";
import * as sfn from "aws-cdk-lib/aws-stepfunctions";
import type { Construct } from "constructs";
import { abandoned, control, graphAt, type IngestMachineProps, longestStep, step } from "./ingest.ts";

/** Settings of the machine. */
export type SettleMachineProps = Pick<IngestMachineProps, "load" | "report" | "timeout" | "areSeveral">;

/** Time limit of the machine: one wait, and one step with all its retries. */
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
  const report = tell("Report", "Copies the report of the load to the drop bucket", {
    kind: "ended",
    load,
    ended: { status: stringAt("$.at.status"), report: stringAt("$.at.report") },
  });
  const failed = tell("Report the end", "The load had not begun, or its end could not be recorded", {
    kind: "failed",
    load,
    error: objectAt("$.found.error"),
  });
  const abandon = step(scope, props, "Abandon", "Nothing of the load becomes visible, unless it is already", {
    payload: {
      ...abandoned("$.found.load.loadId", "$.found.error"),
      ...graphAt(props, "$.found.load.graph"),
    },
  });
  abandon.addCatch(failed, { errors: ["States.ALL"], resultPath: "$.caught" });
  const isOpen = sfn.Condition.stringEquals("$.found.outcome", "open");
  const still = new sfn.Choice(scope, "Still open?").when(isOpen, abandon.next(report)).otherwise(nothing);
  const wait = new sfn.Wait(scope, "Steps may run on", {
    time: sfn.WaitTime.secondsPath("$.found.waitSeconds"),
  });
  const again = look("Look again", "It may be running again, or have written its report");
  const open = new sfn.Choice(scope, "Open?").when(isOpen, wait.next(again).next(still)).otherwise(nothing);
  return look("Look", "Finds its load, and whether that has a report").next(open);
}
