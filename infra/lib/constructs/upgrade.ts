/**
 * The state machine that upgrades the fleet to the release and the settings of the deployment (`docs/upgrade.md`). A deployment
 * changes what new machines and new workers run, and publishes a version of the query function, but changes nothing that
 * runs already; this machine does.
 */
import { Duration, Stack } from "aws-cdk-lib";
import type * as logs from "aws-cdk-lib/aws-logs";
import type * as sfn from "aws-cdk-lib/aws-stepfunctions";
import { Construct } from "constructs";
import { InvalidProp, whole } from "../check.ts";
import { explainGroup, explainWildcard } from "../nag.ts";
import { stateMachine } from "../state-machines/machine.ts";
import { CONCURRENCY } from "../state-machines/moves.ts";
import { MOST_AT_ONCE, upgrade } from "../state-machines/upgrade.ts";
import type { IGraphState } from "./graph-state.ts";
import type { QueryFunction } from "./query-function.ts";
import type { Rebalance } from "./rebalance.ts";
import type { StorageNodes } from "./storage-nodes.ts";
import type { Watch } from "./watch.ts";
import type { Workers } from "./workers.ts";

/** Settings of upgrades. */
export interface UpgradeProps {
  /**
   * How many machines are replaced at once after the first one. The group has as many machines more meanwhile, and none
   * of their predecessors ends before others have its replicas. The input `atOnce` of an execution overrides it.
   *
   * @default the same number in each zone, at most a quarter of the nodes and at most 8; 1 in a fleet with less than four
   * nodes in each zone
   */
  readonly atOnce?: number;
  /**
   * How long the first machine of a release serves, and alarms are waited for, before its predecessor ends. For the same
   * time the query function answers only a tenth of the queries, before it gets all of them.
   *
   * @default 10 minutes
   */
  readonly soak?: Duration;
  /**
   * How long nothing may happen before an upgrade stops: no machine starts, joins, is emptied or ends.
   *
   * @default 2 hours
   */
  readonly patience?: Duration;
}

/** Settings and resources that this construct needs. */
interface Parts extends UpgradeProps {
  readonly state: IGraphState;
  readonly nodes: StorageNodes;
  readonly rebalance: Rebalance;
  readonly workers: Workers | undefined;
  readonly query: QueryFunction;
  readonly watch: Watch;
  readonly retention: logs.RetentionDays;
}

/**
 * The most machines that are replaced at once by default: an execution that drains looks after the moves to as many nodes
 * at the same time.
 */
const USUAL_AT_ONCE = CONCURRENCY;

/** Time limit of an execution, which starts the next one after as many rounds as its history can have. */
const LONGEST = Duration.days(30);

export class Upgrade extends Construct {
  readonly machine: sfn.StateMachine;

  constructor(scope: Construct, id: string, props: Parts) {
    super(scope, id);
    const { state, nodes, rebalance, workers, query, watch, retention } = props;
    const soak = props.soak ?? Duration.minutes(10);
    const patience = props.patience ?? Duration.hours(2);
    if (soak.toSeconds() > 86_400) {
      throw new InvalidProp("upgrade.soak", soak.toHumanString(), "at most 1 day");
    }
    if (patience.toSeconds() < 1800 || patience.toSeconds() > 86_400) {
      throw new InvalidProp("upgrade.patience", patience.toHumanString(), "from 30 minutes to 1 day");
    }
    const atOnce = whole(
      "upgrade.atOnce",
      props.atOnce ?? usualAtOnce(nodes.count, state.network.subnets.length),
      1,
      Math.min(nodes.count, MOST_AT_ONCE),
    );
    const { partition, region, account } = Stack.of(this);
    const name = `${state.name}-upgrade`;
    const arn = (kind: string): string => `arn:${partition}:states:${region}:${account}:${kind}:${name}`;
    const executionArns = `${arn("execution")}:*`;
    const { groupName, groupArn } = nodes;
    this.machine = stateMachine(this, "Upgrade", {
      state,
      name,
      comment: "Upgrades the fleet to the release and the settings of the deployment",
      definition: (inner) =>
        upgrade(inner, {
          function: rebalance.function,
          drain: rebalance.drain,
          groupName,
          groupArn,
          areTypesMixed: nodes.areTypesMixed,
          machineArn: arn("stateMachine"),
          executionArns,
          atOnce,
          alarms: watch.stops,
          soak,
          patience,
          workers: workers && {
            cluster: workers.cluster.clusterArn,
            service: workers.service.serviceName,
            serviceArn: workers.service.serviceArn,
            definition: workers.definition,
            roleArns: workers.roles.map(({ roleArn }) => roleArn),
          },
          query: {
            name: query.function.functionName,
            arn: query.function.functionArn,
            alias: query.live.aliasName,
            version: query.version.version,
          },
        }),
      function: rebalance.function,
      timeout: LONGEST,
      retention,
    });
    const { role } = this.machine;
    explainGroup(role, groupArn, rebalance.drain);
    if (workers) {
      const { functionArn } = workers.definition.function;
      explainWildcard(role, `${functionArn}:*`, "Versions of the one function that registers definitions.");
    }
    explainWildcard(role, executionArns, "Its own executions, whose names are made when they start.");
    watch.ofUpgrades(this.machine);
    // Deleted before the group is emptied: nobody starts machines while all nodes leave.
    this.machine.node.addDependency(nodes.teardown);
  }
}

/** Returns how many machines are replaced at once: whole zones, so that the zones stay even, and a quarter at most. */
function usualAtOnce(nodes: number, zones: number): number {
  const most = Math.min(Math.floor(nodes / 4), USUAL_AT_ONCE);
  return Math.max(1, Math.floor(most / zones) * zones);
}
