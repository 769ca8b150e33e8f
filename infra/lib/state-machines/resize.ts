/**
 * Gives a busy fleet one node more, and an idle one a node fewer. It starts every few minutes and looks at two alarms about
 * the load; the function decides from the map and the group's machines what is done (`engine-core/cluster/src/scaling.rs`).
 *
 * A node goes in three steps: the machine `drain` empties it while it answers; the function sees that it holds nothing;
 * then exactly its machine ends, with one machine fewer in the group. A node that cannot be emptied, or that is needed
 * again meanwhile, is kept.
 *
 * After a change the execution waits, and while it runs no other one changes anything: that is the cooldown. Its input is
 * not read.
 */
import { Duration } from "aws-cdk-lib";
import type * as lambda from "aws-cdk-lib/aws-lambda";
import * as sfn from "aws-cdk-lib/aws-stepfunctions";
import * as tasks from "aws-cdk-lib/aws-stepfunctions-tasks";
import type { Construct } from "constructs";
import { drained, lookAtGroup, ofGroup } from "./group.ts";
import { invocation } from "./invocation.ts";
import { patiently, unnamed } from "./retry.ts";

/** Settings of the machine. */
export interface ResizeProps {
  readonly function: lambda.IFunction;
  readonly drain: sfn.IStateMachine;
  readonly groupName: string;
  readonly groupArn: string;
  /** ARN of this machine, whose executions exclude each other. */
  readonly machineArn: string;
  /** Least and largest number of nodes. */
  readonly least: number;
  readonly most: number;
  /** Names of the alarms that are on while the fleet is busy, and while it is idle. */
  readonly busy: string;
  readonly idle: string;
  /** How long an execution waits after a change. */
  readonly cooldown: Duration;
}

/** Maximum number of executions of `drain` for one node. */
export const DRAINS = 20;

const { stringAt, numberAt } = sfn.JsonPath;
const MINUTE = Duration.minutes(1);

export function resize(scope: Construct, props: ResizeProps): sfn.IChainable {
  return new Resize(scope, props).chain();
}

/** Creates the states; all share a scope and the function. */
class Resize {
  private readonly scope: Construct;
  private readonly props: ResizeProps;
  /** Every error after the first look leads here. */
  private readonly failed: sfn.State;

  constructor(scope: Construct, props: ResizeProps) {
    this.scope = scope;
    this.props = props;
    this.failed = this.failure();
  }

  chain(): sfn.IChainable {
    const { scope, props } = this;
    const zero = new sfn.Pass(scope, "Count from zero", {
      result: sfn.Result.fromObject({ drains: 0 }),
      resultPath: "$.count",
    });
    const others = this.others();
    const look = this.alarms("Look at the load");
    const group = this.guard(
      lookAtGroup(scope, "Look at the group", props.groupName, ["desired", "ids", "states"]),
    );
    const next = this.guard(
      this.step(
        "Next",
        "Decides from the map and the group's machines",
        {
          step: "scale-next",
          wanted: stringAt("$.load.wanted"),
          least: props.least,
          most: props.most,
          desired: numberAt("$.group.desired"),
          ids: sfn.JsonPath.listAt("$.group.ids"),
          states: sfn.JsonPath.listAt("$.group.states"),
        },
        "$.next",
      ),
    );
    const is = (action: string): sfn.Condition => sfn.Condition.stringEquals("$.next.action", action);
    const cool = new sfn.Wait(scope, "Cool down", {
      comment: "Another execution changes nothing meanwhile",
      time: sfn.WaitTime.duration(props.cooldown),
    });
    cool.next(new sfn.Succeed(scope, "Resized"));
    const choice = new sfn.Choice(scope, "What next?")
      .when(is("launch"), this.launch().next(cool))
      .when(is("drain"), this.drain(group))
      .when(is("end"), this.end().next(cool))
      .otherwise(this.nothing());
    group.next(next).next(choice);
    zero.next(others);
    const alone = new sfn.Choice(scope, "Another one?")
      .when(
        sfn.Condition.numberGreaterThan("$.others.running", 1),
        new sfn.Succeed(scope, "Another one resizes"),
      )
      .otherwise(look);
    others.next(alone);
    look.next(
      this.load("How is the load?", this.want("Busy", "more", group), this.want("Idle", "fewer", group)),
    );
    return zero;
  }

  /** Looks which executions of this machine run, this one included. */
  private others(): tasks.CallAwsService {
    const { machineArn } = this.props;
    const look = new tasks.CallAwsService(this.scope, "Look for another one", {
      service: "sfn",
      action: "listExecutions",
      parameters: { StateMachineArn: machineArn, StatusFilter: "RUNNING", MaxResults: 2 },
      iamAction: "states:ListExecutions",
      iamResources: [machineArn],
      resultSelector: { "running.$": "States.ArrayLength($.Executions)" },
      resultPath: "$.others",
      taskTimeout: sfn.Timeout.duration(MINUTE),
    });
    look.addRetry(patiently(unnamed("Sfn")));
    return this.guard(look);
  }

  private alarms(id: string): tasks.CallAwsService {
    const { busy, idle } = this.props;
    const look = new tasks.CallAwsService(this.scope, id, {
      comment: "The alarms that say whether the fleet is busy or idle",
      service: "cloudwatch",
      action: "describeAlarms",
      parameters: { AlarmNames: [busy, idle], StateValue: "ALARM" },
      iamAction: "cloudwatch:DescribeAlarms",
      iamResources: ["*"],
      resultSelector: { "names.$": "States.JsonToString($.MetricAlarms[*].AlarmName)" },
      resultPath: "$.alarms",
      taskTimeout: sfn.Timeout.duration(MINUTE),
    });
    look.addRetry(patiently(unnamed("CloudWatch")));
    return this.guard(look);
  }

  /** Tells a busy fleet from an idle one. Busy counts if both alarms are on, because the other one looks further back. */
  private load(id: string, busy: sfn.IChainable, idle: sfn.IChainable): sfn.Choice {
    return new sfn.Choice(this.scope, id)
      .when(this.isOn(this.props.busy), busy)
      .when(this.isOn(this.props.idle), idle)
      .otherwise(new sfn.Succeed(this.scope, "Neither busy nor idle"));
  }

  private isOn(alarm: string): sfn.Condition {
    return sfn.Condition.stringMatches("$.alarms.names", `*"${alarm}"*`);
  }

  private want(id: string, wanted: "more" | "fewer", next: sfn.IChainable): sfn.IChainable {
    const pass = new sfn.Pass(this.scope, id, {
      result: sfn.Result.fromObject({ wanted }),
      resultPath: "$.load",
    });
    pass.next(next);
    return pass;
  }

  private launch(): tasks.CallAwsService {
    const { groupName, groupArn } = this.props;
    return this.guard(
      ofGroup(this.scope, "Start a machine", "The group starts it in the zone that has the fewest", {
        action: "setDesiredCapacity",
        parameters: {
          AutoScalingGroupName: groupName,
          DesiredCapacity: numberAt("$.next.capacity"),
          HonorCooldown: false,
        },
        iamAction: "autoscaling:SetDesiredCapacity",
        iamResources: [groupArn],
      }),
    );
  }

  private end(): tasks.CallAwsService {
    return this.guard(
      ofGroup(this.scope, "End the machine", "It holds nothing, and the group gets one machine fewer", {
        action: "terminateInstanceInAutoScalingGroup",
        parameters: { InstanceId: stringAt("$.next.node"), ShouldDecrementDesiredCapacity: true },
        iamAction: "autoscaling:TerminateInstanceInAutoScalingGroup",
        iamResources: [this.props.groupArn],
      }),
    );
  }

  /** Drains a node until it holds nothing, unless the fleet gets busy or the node cannot be emptied. */
  private drain(group: sfn.IChainable): sfn.IChainable {
    const { scope, props } = this;
    const count = new sfn.Pass(scope, "Count the drain", {
      parameters: { "drains.$": "States.MathAdd($.count.drains, 1)", "node.$": "$.next.node" },
      resultPath: "$.count",
    });
    const often = new sfn.Choice(scope, "Too often?");
    const comment = "It answers until other nodes have its replicas";
    const drain = this.guard(drained(scope, "Drain the node", comment, props.drain, "$.count.node"));
    const look = this.alarms("Look at the load meanwhile");
    const busy = new sfn.Choice(scope, "Busy again?")
      .when(this.isOn(props.busy), this.keeping())
      .otherwise(group);
    drain.next(look).next(busy);
    const late = new sfn.Pass(scope, "It does not get empty", {
      parameters: {
        Error: "NotDrained",
        "Cause.$": `States.Format('node {} still holds replicas after ${DRAINS} executions of drain', $.count.node)`,
      },
      resultPath: "$.error",
    });
    late.next(this.failed);
    often.when(sfn.Condition.numberGreaterThan("$.count.drains", DRAINS), late).otherwise(drain);
    return count.next(often);
  }

  /** Ends, and keeps the node that was drained, if there is one. */
  private nothing(): sfn.IChainable {
    return new sfn.Choice(this.scope, "Was one drained?")
      .when(sfn.Condition.isPresent("$.count.node"), this.keeping())
      .otherwise(new sfn.Succeed(this.scope, "Not now", { comment: "`next.reason` says why" }));
  }

  /** Ends the draining of the node; it gets its share again. */
  private keeping(): sfn.IChainable {
    if (this.kept === undefined) {
      this.kept = this.step(
        "Keep the node",
        "It is needed, or cannot go now; it gets its share again",
        { step: "keep", node: stringAt("$.count.node") },
        sfn.JsonPath.DISCARD,
      );
      this.kept.next(new sfn.Succeed(this.scope, "Kept"));
    }
    return this.kept;
  }
  private kept: tasks.LambdaInvoke | undefined;

  /** Keeps the node that was drained, if there is one, and fails the execution with the error. */
  private failure(): sfn.State {
    const fail = new sfn.Fail(this.scope, "Failed", {
      errorPath: stringAt("$.error.Error"),
      causePath: stringAt("$.error.Cause"),
    });
    const keep = this.step(
      "Keep the node after a failure",
      "It gets its share again",
      { step: "keep", node: stringAt("$.count.node") },
      sfn.JsonPath.DISCARD,
    );
    keep.addCatch(fail, { errors: ["States.ALL"], resultPath: sfn.JsonPath.DISCARD });
    keep.next(fail);
    return new sfn.Choice(this.scope, "Was one drained before it failed?")
      .when(sfn.Condition.isPresent("$.count.node"), keep)
      .otherwise(fail);
  }

  private step(
    id: string,
    comment: string,
    payload: Record<string, unknown>,
    resultPath: string,
  ): tasks.LambdaInvoke {
    return invocation(this.scope, id, { function: this.props.function, comment, payload, resultPath });
  }

  private guard<T extends sfn.TaskStateBase>(state: T): T {
    state.addCatch(this.failed, { errors: ["States.ALL"], resultPath: "$.error" });
    return state;
  }
}
