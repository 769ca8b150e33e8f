/**
 * The alarms of a fleet that cannot heal: what looks after it does not run, its moves fail, machines that come or go are
 * not noticed, or its secret is not rotated.
 *
 * One success of the detector needs its rule, its permissions, the function and the map. So the absence of successes
 * stands for the errors and throttles of all of them, and costs one metric.
 */
import { Duration } from "aws-cdk-lib";
import { ComparisonOperator, type IMetric, TreatMissingData } from "aws-cdk-lib/aws-cloudwatch";
import { sum, undelivered } from "./counts.ts";
import type { Rebalance } from "./rebalance.ts";
import type { Rotation } from "./rotation.ts";
import type { StorageNodes } from "./storage-nodes.ts";

/** An alarm, as `Watch` adds it. */
export interface MoveAlarm {
  readonly id: string;
  readonly description: string;
  readonly metric: IMetric;
  readonly threshold: number;
  readonly periods: number;
  readonly comparison?: ComparisonOperator;
  readonly missing?: TreatMissingData;
}

/** The detector starts a machine that failed again after ten minutes at the latest. */
const SEVERAL_TRIES = Duration.minutes(30);
/** The detector runs each minute. */
const LOOKS = Duration.minutes(5);

/** Returns the alarms. */
export function moveAlarms(
  rebalance: Rebalance,
  nodes: StorageNodes,
  rotation: Rotation | undefined,
): MoveAlarm[] {
  const { heal, scaleOut, drain, detect } = rebalance;
  const all: MoveAlarm[] = [
    {
      id: "MovesFail",
      description:
        "Replicas cannot be moved: attempts failed repeatedly, or one did not end. Look at the log groups heal, scale-out and drain.",
      // One failure is not told, because the next attempt follows by itself. Somebody who stops an execution knows of it.
      metric: sum(
        "failed moves of replicas",
        {
          heal_failed: heal.metricFailed(),
          heal_timed_out: heal.metricTimedOut(),
          scale_out_failed: scaleOut.metricFailed(),
          scale_out_timed_out: scaleOut.metricTimedOut(),
          drain_failed: drain.metricFailed(),
          drain_timed_out: drain.metricTimedOut(),
        },
        SEVERAL_TRIES,
        // An execution may take hours, and the next one would take as long.
        { heal_timed_out: 2, scale_out_timed_out: 2, drain_timed_out: 2 },
      ),
      threshold: 1,
      periods: 1,
    },
    {
      id: "MovesUnchecked",
      description:
        "For ten minutes nothing has checked whether replicas have to move, so lost ones stay lost: look at the log groups detect and rebalance.",
      metric: detect.metricSucceeded({ period: LOOKS }),
      threshold: 1,
      comparison: ComparisonOperator.LESS_THAN_THRESHOLD,
      periods: 2,
      missing: TreatMissingData.BREACHING,
    },
    {
      id: "MachinesUnheard",
      description:
        "A machine started or was terminated, and EventBridge could not start the state machine that lets it join or drains it.",
      metric: sum("events of machines without an execution", {
        launched: undelivered(nodes.launched),
        taken_away: undelivered(rebalance.away),
      }),
      threshold: 0,
      periods: 1,
    },
  ];
  if (rotation) {
    all.push({
      id: "SecretNotRotated",
      description: "The function that rotates the secret of the fleet fails: look at the log group rotation.",
      metric: rotation.function.metricErrors({ period: Duration.hours(1) }),
      threshold: 0,
      periods: 1,
    });
  }
  return all;
}
