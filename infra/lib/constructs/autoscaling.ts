/**
 * Nodes that come and go with the load (`nodes.most`): two alarms about it, which tell nobody, and the state machine that
 * looks at them every five minutes and gives the fleet a node more or one fewer (`docs/rebalance.md`).
 *
 * The load is what the nodes' processors and memory have in proportion to `cpuPercent` and `memoryPercent`, whichever is
 * more: 100 means busy. A fleet is idle below half of that, so that a node fewer does not make it busy, even if one of two
 * goes.
 */
import { Duration, Stack } from "aws-cdk-lib";
import * as cloudwatch from "aws-cdk-lib/aws-cloudwatch";
import * as events from "aws-cdk-lib/aws-events";
import * as targets from "aws-cdk-lib/aws-events-targets";
import type * as logs from "aws-cdk-lib/aws-logs";
import type * as sfn from "aws-cdk-lib/aws-stepfunctions";
import { Construct } from "constructs";
import { InvalidProp, whole } from "../check.ts";
import { explainGroup } from "../nag.ts";
import { stateMachine } from "../state-machines/machine.ts";
import { resize } from "../state-machines/resize.ts";
import type { IGraphState } from "./graph-state.ts";
import { METRICS } from "./metrics.ts";
import type { Rebalance } from "./rebalance.ts";
import type { NodesProps, StorageNodes } from "./storage-nodes.ts";
import type { Watch } from "./watch.ts";

/** When nodes come and go. */
export interface NodesScalingProps {
  /**
   * Processor use above which the fleet gets a node, in percent, on average over all nodes and for five minutes.
   *
   * @default 60
   */
  readonly cpuPercent?: number;
  /**
   * Use of the memory for graph data above which the fleet gets a node, in percent, of the node that uses most and for
   * five minutes. With several graphs, that of the graph that uses most of its part.
   *
   * @default 75
   */
  readonly memoryPercent?: number;
  /**
   * How long nothing changes after a change.
   *
   * @default 10 minutes
   */
  readonly cooldown?: Duration;
}

/** Settings and resources that this construct needs. */
interface Parts extends NodesScalingProps {
  readonly state: IGraphState;
  readonly nodes: StorageNodes;
  readonly rebalance: Rebalance;
  readonly watch: Watch;
  readonly most: number;
  readonly retention: logs.RetentionDays;
}

/** Time between two looks at the load. */
const LOOK = Duration.minutes(5);
const MINUTE = Duration.minutes(1);
/** The time limit of an execution: what a node with everything takes to be drained. */
const LONGEST = Duration.days(7);

/** Returns the bounds of the fleet, or `undefined` if its size is fixed. */
export function boundsOf({
  count = 3,
  most,
  scaling,
}: NodesProps): { least: number; most: number } | undefined {
  if (most === undefined) {
    if (scaling !== undefined) throw new InvalidProp("nodes.scaling", "given", "given with nodes.most");
    return undefined;
  }
  return { least: count, most: whole("nodes.most", most, count + 1, 300) };
}

export class Autoscaling extends Construct {
  readonly machine: sfn.StateMachine;
  /** The load; 100 is busy. */
  readonly load: cloudwatch.IMetric;

  constructor(scope: Construct, id: string, props: Parts) {
    super(scope, id);
    const { state, nodes, rebalance, watch, most, retention } = props;
    const cpu = whole("nodes.scaling.cpuPercent", props.cpuPercent ?? 60, 10, 90);
    const memory = whole("nodes.scaling.memoryPercent", props.memoryPercent ?? 75, 10, 90);
    const cooldown = props.cooldown ?? Duration.minutes(10);
    if (cooldown.toSeconds() < 60 || cooldown.toSeconds() > 86_400) {
      throw new InvalidProp("nodes.scaling.cooldown", cooldown.toHumanString(), "from 1 minute to 1 day");
    }
    this.load = this.loadOf(props, cpu, memory, MINUTE);
    const busy = this.alarm("NodesBusy", `${state.name}-nodes-busy`, {
      alarmDescription: "The nodes are busy, so the fleet gets one more, unless it has nodes.most.",
      metric: this.load,
      threshold: 100,
      evaluationPeriods: 5,
      comparisonOperator: cloudwatch.ComparisonOperator.GREATER_THAN_THRESHOLD,
    });
    const idle = this.alarm("NodesIdle", `${state.name}-nodes-idle`, {
      alarmDescription: "The nodes are idle, so the fleet gets one fewer, unless it has nodes.count.",
      metric: this.loadOf(props, cpu, memory, LOOK),
      threshold: 50,
      evaluationPeriods: 6,
      comparisonOperator: cloudwatch.ComparisonOperator.LESS_THAN_THRESHOLD,
    });
    const { partition, region, account } = Stack.of(this);
    const name = `${state.name}-resize`;
    const machineArn = `arn:${partition}:states:${region}:${account}:stateMachine:${name}`;
    const { groupName, groupArn, count } = nodes;
    this.machine = stateMachine(this, "Resize", {
      state,
      name,
      comment: "Gives a busy fleet a node more, and an idle one a node fewer",
      definition: (inner) =>
        resize(inner, {
          ...{ function: rebalance.function, drain: rebalance.drain, groupName, groupArn, machineArn },
          ...{ least: count, most, busy, idle, cooldown },
        }),
      function: rebalance.function,
      timeout: LONGEST,
      retention,
    });
    const { role } = this.machine;
    explainGroup(role, groupArn, rebalance.drain);
    const rule = new events.Rule(this, "EachFewMinutes", {
      description: "Looks at the load of the nodes",
      schedule: events.Schedule.rate(LOOK),
      targets: [new targets.SfnStateMachine(this.machine, { retryAttempts: 0 })],
    });
    // Deleted before the group is emptied: nobody starts machines while all nodes leave.
    rule.node.addDependency(nodes.teardown);
    this.machine.node.addDependency(nodes.teardown);
    watch.ofSize(this.machine, rule, this.load);
  }

  /** Makes an alarm that tells nobody, and returns its name. */
  private alarm(id: string, alarmName: string, props: cloudwatch.AlarmProps): string {
    new cloudwatch.Alarm(this, id, {
      ...props,
      alarmName,
      datapointsToAlarm: props.evaluationPeriods,
      treatMissingData: cloudwatch.TreatMissingData.NOT_BREACHING,
    });
    return alarmName;
  }

  /** Returns the load. Where the daemons say nothing of their memory, there is none, and no node leaves. */
  private loadOf({ state, nodes }: Parts, cpu: number, memory: number, period: Duration): cloudwatch.IMetric {
    // Of the node and graph that uses most of its budget.
    const used = new cloudwatch.Metric({
      namespace: METRICS.namespace,
      metricName: "tidegraph_memory_used_ratio",
      dimensionsMap: { [METRICS.dimension]: state.name },
      period,
      statistic: "Maximum",
    });
    const processors = new cloudwatch.Metric({
      namespace: "AWS/EC2",
      metricName: "CPUUtilization",
      dimensionsMap: { AutoScalingGroupName: nodes.groupName },
      period,
      statistic: "Average",
    });
    const share = (
      expression: string,
      usingMetrics: Record<string, cloudwatch.IMetric>,
    ): cloudwatch.IMetric => new cloudwatch.MathExpression({ expression, usingMetrics, period });
    return new cloudwatch.MathExpression({
      label: "load of nodes, % of what is busy",
      // A sum with a missing summand is missing.
      expression: "MAX([processor_load, memory_load]) + 0 * memory_load",
      usingMetrics: {
        processor_load: share(`100 * processors / ${cpu}`, { processors }),
        memory_load: share(`10000 * used / ${memory}`, { used }),
      },
      period,
    });
  }
}
