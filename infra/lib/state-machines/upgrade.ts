/**
 * Upgrades the fleet to the release and the settings of the deployment: machines of another release, and those that the
 * group started from another version of its launch template, are replaced, the first one alone, then several at once; then the workers start with the definition of the deployment, and the queries of the API go to the new version of the query
 * function. The function decides what comes next from the map and from the group's machines
 * (`engine-core/cluster/src/upgrade/`), so an execution that was stopped anywhere is resumed by the next one.
 *
 * The group starts machines more, which join with the new release and settings. Then, each in a round of this loop, the machine
 * `drain` moves the replicas of as many old nodes, which answer until others have them; the machine of each ends when the
 * node holds nothing, and the group starts the next ones in their place, until none is left. The function marks all of
 * these nodes as draining, and one execution of `drain` moves the replicas of all of them, because a plan is one of the
 * whole fleet and its lease allows one execution at a time.
 *
 * The first new machine is the canary: before its predecessor ends, the execution waits and looks at the alarms. It looks
 * at them before each step, and stops if one is on, without undoing anything. An execution that replaces several at once
 * lets one serve before, also if it resumes an upgrade.
 *
 * Input: `{ "release": "0.2.0" }`, and `atOnce` to replace another number of machines at once than the deployment says.
 *
 * The history of an execution has at most 25,000 events, so after `ROUNDS` rounds the execution starts the next one. A
 * test adds up the events.
 */
import { Duration } from "aws-cdk-lib";
import type * as lambda from "aws-cdk-lib/aws-lambda";
import * as sfn from "aws-cdk-lib/aws-stepfunctions";
import * as tasks from "aws-cdk-lib/aws-stepfunctions-tasks";
import type { Construct } from "constructs";
import { statement } from "../statement.ts";
import { drained, lookAtGroup, ofGroup } from "./group.ts";
import { invocation } from "./invocation.ts";
import { patiently, unnamed } from "./retry.ts";

/** Settings of the machine. */
export interface UpgradeMachineProps {
  readonly function: lambda.IFunction;
  readonly drain: sfn.IStateMachine;
  readonly groupName: string;
  readonly groupArn: string;
  /** Whether the group chooses among types of machines, and so has its launch template in a policy. */
  readonly areTypesMixed: boolean;
  /** ARN of this machine, which starts its successor, and those of its executions. */
  readonly machineArn: string;
  readonly executionArns: string;
  /** Number of machines that are replaced at once, where the input does not say it. */
  readonly atOnce: number;
  /** Names of the alarms that stop it. */
  readonly alarms: readonly string[];
  /** How long the canary serves before its predecessor ends. */
  readonly soak: Duration;
  /** How long nothing may happen before it stops. */
  readonly patience: Duration;
  /** The query function. */
  readonly query: {
    readonly name: string;
    readonly arn: string;
    /** The alias that the API invokes. */
    readonly alias: string;
    /** The version that was deployed last. */
    readonly version: string;
  };
  /** The workers' service, if there is one. */
  readonly workers:
    | {
        readonly cluster: string;
        readonly service: string;
        readonly serviceArn: string;
        /** What registers the definition of their tasks. */
        readonly definition: {
          readonly function: lambda.IFunction;
          readonly clusterName: string;
          readonly family: string;
          readonly definitionArn: string;
        };
        /** ARNs of the roles that ECS gives to a task, and to what starts it. */
        readonly roleArns: string[];
      }
    | undefined;
}

/** Why an upgrade stops because of alarms. */
const ALARMS_ARE_ON = "States.Format('alarms are on: {}', States.JsonToString($.alarms.names))";
/** Time between two rounds. */
export const ROUND = Duration.seconds(30);
/** Time from the end of a machine to the next round, which may end another one. */
const END = Duration.seconds(5);
/** Maximum number of rounds of one execution. */
export const ROUNDS = 500;
/** Maximum number of machines that are replaced at once (`engine-core/cluster/src/upgrade/steps.rs`). */
export const MOST_AT_ONCE = 16;
/** Maximum number of alarm names in a request. */
const MOST_ALARMS = 100;
/** The share of the queries that the new version of the query function answers at first. */
const CANARY = 0.1;
/** Rounds in which workers may be replaced: an hour. */
const WORKER_ROUNDS = 120;

const { stringAt, numberAt, objectAt } = sfn.JsonPath;
const MINUTE = Duration.minutes(1);

export function upgrade(scope: Construct, props: UpgradeMachineProps): sfn.IChainable {
  return new Upgrade(scope, props).chain();
}

/** Creates the states; all share a scope, a function and the way to stop. */
class Upgrade {
  private readonly scope: Construct;
  private readonly props: UpgradeMachineProps;
  /** Every error after the upgrade has begun leads here. */
  private readonly stop: sfn.State;

  constructor(scope: Construct, props: UpgradeMachineProps) {
    this.scope = scope;
    this.props = props;
    this.stop = this.stopped();
  }

  chain(): sfn.IChainable {
    const { scope, props } = this;
    const wait = new sfn.Wait(scope, "Wait", { time: sfn.WaitTime.duration(ROUND) });
    const look = this.alarms("Look at the alarms");
    const quiet = new sfn.Choice(scope, "An alarm?");
    const template = props.areTypesMixed ? "templateOfTypes" : "template";
    const group = this.guard(
      lookAtGroup(scope, "Look at the group", props.groupName, ["desired", "instances", template]),
    );
    const next = this.guard(
      this.step(
        "Next",
        "Decides from the map and the group's machines",
        {
          step: "upgrade-next",
          holder: sfn.JsonPath.executionId,
          desired: numberAt("$.group.desired"),
          instances: objectAt("$.group.instances"),
          template: objectAt("$.group.template"),
          atOnce: numberAt("$.atOnce"),
          served: objectAt("$.count.served"),
        },
        "$.next",
      ),
    );
    const count = this.count("Count the round", { "idle.$": "$.count.idle" });
    const idle = this.count("Count the wait", { "idle.$": "States.MathAdd($.count.idle, 1)" });
    const progress = this.count("Something happened", { idle: 0 });
    const ended = this.count("A machine ended", { idle: 0 });
    const patience = new sfn.Choice(scope, "Out of patience?")
      .when(
        sfn.Condition.numberGreaterThanEquals("$.count.idle", this.patientRounds()),
        this.because("Nothing happened", "States.Format('nothing happened for too long: {}', $.next.reason)"),
      )
      .otherwise(wait);
    const isOver = sfn.Condition.numberGreaterThanEquals("$.count.rounds", ROUNDS);
    const rounds = new sfn.Choice(scope, "Too many rounds?").when(isOver, this.successor()).otherwise(look);

    wait.next(rounds);
    look.next(quiet);
    quiet.when(sfn.Condition.isPresent("$.alarms.names[0]"), this.alarmed()).otherwise(group);
    group.next(next).next(this.choice(count, idle, progress, ended));
    count.next(wait);
    idle.next(patience);
    progress.next(wait);
    ended
      .next(
        new sfn.Wait(scope, "Let the group see it", {
          comment: "Others that hold nothing end one after the other, without a long wait",
          time: sfn.WaitTime.duration(END),
        }),
      )
      .next(rounds);
    return this.beginning(look);
  }

  /** What the answer of the function leads to. */
  private choice(count: sfn.Pass, idle: sfn.Pass, progress: sfn.Pass, ended: sfn.Pass): sfn.Choice {
    const is = (action: string): sfn.Condition => sfn.Condition.stringEquals("$.next.action", action);
    return new sfn.Choice(this.scope, "What next?")
      .when(is("launch"), this.launch().next(progress))
      .when(is("drain"), this.drain(idle).next(count))
      .when(is("end"), this.ending(ended, idle))
      .when(is("done"), this.workers())
      .otherwise(idle);
  }

  /** Begins the upgrade, or resumes one whose execution ended. */
  private beginning(first: sfn.IChainable): sfn.IChainable {
    const { scope, props } = this;
    const holder = sfn.JsonPath.executionId;
    const zero = new sfn.Pass(scope, "Count from zero", {
      result: sfn.Result.fromObject({ rounds: 0, idle: 0, looks: 0, served: false }),
      resultPath: "$.count",
    });
    const usual = new sfn.Pass(scope, "As the deployment says", {
      result: sfn.Result.fromNumber(props.atOnce),
      resultPath: "$.atOnce",
    });
    const refused = new sfn.Fail(scope, "Refused", {
      comment: "The release was skipped, is older, or is not the one of the deployed programs",
      errorPath: stringAt("$.error.Error"),
      causePath: stringAt("$.error.Cause"),
    });
    const running = new sfn.Fail(scope, "Another one upgrades", {
      error: "AnotherUpgrade",
      causePath: sfn.JsonPath.format(
        "{} upgrades this fleet: wait for its end, or stop it",
        stringAt("$.upgrade.holder"),
      ),
    });
    const event = {
      step: "upgrade-begin",
      holder,
      release: stringAt("$.release"),
      desired: numberAt("$.group.desired"),
      least: numberAt("$.group.least"),
      atOnce: numberAt("$.atOnce"),
    };
    const size = lookAtGroup(scope, "Look at the group's size", props.groupName, ["desired", "least"]);
    size.addCatch(refused, { errors: ["States.ALL"], resultPath: "$.error" });
    const begin = this.step("Begin", "Or see who upgrades already", event, "$.upgrade");
    begin.addCatch(refused, { errors: ["States.ALL"], resultPath: "$.error" });
    const lives = new tasks.CallAwsService(scope, "Does its execution run?", {
      service: "sfn",
      action: "describeExecution",
      parameters: { ExecutionArn: stringAt("$.upgrade.holder") },
      iamAction: "states:DescribeExecution",
      iamResources: [props.executionArns],
      resultSelector: { "status.$": "$.Status" },
      resultPath: "$.other",
      taskTimeout: sfn.Timeout.duration(MINUTE),
    });
    lives.addRetry(patiently(unnamed("Sfn")));
    const over = this.step(
      "Take it over",
      "The execution that had it ended without saying so",
      { ...event, over: stringAt("$.upgrade.holder") },
      "$.upgrade",
    );
    over.addCatch(refused, { errors: ["States.ALL"], resultPath: "$.error" });
    // An execution that is older than the retention of executions.
    lives.addCatch(over, {
      errors: ["Sfn.ExecutionDoesNotExistException"],
      resultPath: sfn.JsonPath.DISCARD,
    });
    lives.addCatch(refused, { errors: ["States.ALL"], resultPath: "$.error" });
    const isOurs = sfn.Condition.booleanEquals("$.upgrade.ours", true);
    const late = new sfn.Choice(scope, "Ours now?").when(isOurs, first).otherwise(running);
    const alive = new sfn.Choice(scope, "Does it?")
      .when(sfn.Condition.stringEquals("$.other.status", "RUNNING"), running)
      .otherwise(over.next(late));
    const ours = new sfn.Choice(scope, "Ours?").when(isOurs, first).otherwise(lives.next(alive));
    size.next(begin).next(ours);
    const asked = new sfn.Choice(scope, "Does the input say how many at once?")
      .when(sfn.Condition.isPresent("$.atOnce"), size)
      .otherwise(usual.next(size));
    return zero.next(asked);
  }

  private launch(): tasks.CallAwsService {
    const { groupName, groupArn } = this.props;
    return this.guard(
      ofGroup(this.scope, "Start machines", "The group starts each in the zone that has the fewest", {
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

  /**
   * Drains a node by the machine for that, and all others that the function marked as draining: one plan moves the
   * replicas of all of them. What it could not move, a later round drains.
   */
  private drain(idle: sfn.IChainable): sfn.TaskStateBase {
    const comment = "They answer until other nodes have their replicas";
    const drain = drained(this.scope, "Drain the nodes", comment, this.props.drain, "$.next.node");
    drain.addCatch(idle, { errors: ["States.TaskFailed", "States.Timeout"], resultPath: "$.drained" });
    return this.guard(drain);
  }

  /** Ends a machine that holds nothing; after the first one, the new release shows that it serves. */
  private ending(ended: sfn.IChainable, idle: sfn.IChainable): sfn.IChainable {
    const { scope, props } = this;
    const end = ofGroup(scope, "End the machine", "It holds nothing", {
      action: "terminateInstanceInAutoScalingGroup",
      parameters: {
        InstanceId: stringAt("$.next.node"),
        "ShouldDecrementDesiredCapacity.$": "$.next.isLast",
      },
      iamAction: "autoscaling:TerminateInstanceInAutoScalingGroup",
      iamResources: [props.groupArn],
    });
    // The group refuses what an earlier attempt did, whose answer was lost. The next round looks at the group.
    end.addCatch(idle, { errors: ["States.ALL"], resultPath: "$.ended" });
    const soak = new sfn.Wait(scope, "Let the canary serve", { time: sfn.WaitTime.duration(props.soak) });
    const look = this.alarms("Look at the alarms again");
    const served = new sfn.Pass(scope, "The canary serves", {
      comment: "Others may be replaced at once",
      result: sfn.Result.fromBoolean(true),
      resultPath: "$.count.served",
    });
    end.next(ended);
    const quiet = new sfn.Choice(scope, "An alarm now?")
      .when(sfn.Condition.isPresent("$.alarms.names[0]"), this.alarmed())
      .otherwise(served.next(end));
    soak.next(look).next(quiet);
    return new sfn.Choice(scope, "The first one?")
      .when(sfn.Condition.booleanEquals("$.next.isCanary", true), soak)
      .otherwise(end);
  }

  /** Gives the new version of the query function a tenth of the queries, then all, and finishes the upgrade. */
  private query(): sfn.IChainable {
    const { scope, props } = this;
    const { version } = props.query;
    const finish = this.guard(
      this.step(
        "Finish",
        "No process of an earlier release joins any more",
        this.endEvent(),
        sfn.JsonPath.DISCARD,
      ),
    );
    finish.next(new sfn.Succeed(scope, "Upgraded"));
    const look = this.ofAlias("Look at the query function", "Which version the API has", "getAlias", {
      // The number of the version, which is known at the deployment, is a key of the weights.
      resultSelector: { "version.$": "$.FunctionVersion", weights: `{"${version}": ${CANARY}}` },
      resultPath: "$.query",
    });
    const before = { FunctionVersion: stringAt("$.query.version") };
    const none = { RoutingConfig: { AdditionalVersionWeights: {} } };
    const some = this.ofAlias("Give the new function a tenth", "It is the canary", "updateAlias", {
      more: {
        ...before,
        RoutingConfig: { "AdditionalVersionWeights.$": "States.StringToJson($.query.weights)" },
      },
    });
    const all = this.ofAlias("Give the new function all queries", "At once", "updateAlias", {
      more: { FunctionVersion: version, ...none },
    });
    // Two versions with different roles cannot share an alias.
    const catches = { errors: ["Lambda.InvalidParameterValueException"], resultPath: sfn.JsonPath.DISCARD };
    some.addCatch(all, catches);
    const back = this.ofAlias(
      "Take the queries back",
      "The version before has all of them again",
      "updateAlias",
      {
        more: { ...before, ...none },
      },
    );
    for (const task of [look, some, all, back]) this.guard(task);
    const soak = new sfn.Wait(scope, "Let the new function answer", {
      time: sfn.WaitTime.duration(props.soak),
    });
    const alarms = this.alarms("Look at the alarms at last");
    const quiet = new sfn.Choice(scope, "An alarm at last?")
      .when(sfn.Condition.isPresent("$.alarms.names[0]"), back.next(this.alarmed()))
      .otherwise(all.next(finish));
    some.next(soak).next(alarms).next(quiet);
    const isNewest = sfn.Condition.stringEquals("$.query.version", version);
    return look.next(
      new sfn.Choice(scope, "Is the function upgraded?").when(isNewest, finish).otherwise(some),
    );
  }

  /** A call about the alias that the API invokes. */
  private ofAlias(
    id: string,
    comment: string,
    action: "getAlias" | "updateAlias",
    rest: { more?: object; resultSelector?: Record<string, unknown>; resultPath?: string },
  ): tasks.CallAwsService {
    const { name, arn, alias } = this.props.query;
    const { more, ...result } = rest;
    const task = new tasks.CallAwsService(this.scope, id, {
      resultPath: sfn.JsonPath.DISCARD,
      ...result,
      comment,
      service: "lambda",
      action,
      parameters: { FunctionName: name, Name: alias, ...more },
      iamAction: action === "getAlias" ? "lambda:GetAlias" : "lambda:UpdateAlias",
      iamResources: [arn],
      taskTimeout: sfn.Timeout.duration(MINUTE),
    });
    // In a conflict another change of the function is under way.
    const named = ["ServiceException", "TooManyRequestsException", "ResourceConflictException"];
    task.addRetry(patiently([...unnamed("Lambda"), ...named.map((error) => `Lambda.${error}`)]));
    return task;
  }

  /**
   * Starts the workers again, with the image of the release; the query function follows. If they fail or an alarm goes off
   * meanwhile, they get the definition back that they had, and the new one is withdrawn.
   */
  private workers(): sfn.IChainable {
    const { scope } = this;
    const { workers } = this.props;
    const following = this.query();
    if (workers === undefined) return following;
    const { cluster, service, serviceArn, definition, roleArns } = workers;
    const ofService = { Cluster: definition.clusterName, Family: definition.family };
    const publish = this.guard(
      invocation(scope, "Publish the workers' definition", {
        function: definition.function,
        comment: "A copy of the deployed one, in the family that the service names",
        payload: { step: "publish", ...ofService, Definition: definition.definitionArn },
        resultPath: "$.workers",
      }),
    );
    const withdraw = invocation(scope, "Take the definition back", {
      function: definition.function,
      comment: "Unless the service runs it",
      payload: { step: "withdraw", ...ofService },
      resultPath: sfn.JsonPath.DISCARD,
    });
    // What was said before is why it stops.
    withdraw.addCatch(this.stop, { errors: ["States.ALL"], resultPath: sfn.JsonPath.DISCARD });
    withdraw.next(this.stop);
    const give = (id: string, comment: string, parameters: Record<string, unknown>): tasks.CallAwsService =>
      new tasks.CallAwsService(scope, id, {
        comment,
        service: "ecs",
        action: "updateService",
        parameters: { Cluster: cluster, Service: service, ...parameters },
        iamAction: "ecs:UpdateService",
        iamResources: [serviceArn],
        // Naming a definition of a task is passing its roles to ECS.
        additionalIamStatements: [
          statement("PassRolesOfWorkers", ["iam:PassRole"], roleArns, {
            StringEquals: { "iam:PassedToService": "ecs-tasks.amazonaws.com" },
          }),
        ],
        resultPath: sfn.JsonPath.DISCARD,
        taskTimeout: sfn.Timeout.duration(MINUTE),
      });
    const start = give("Replace the workers", "A worker at a time", {
      ForceNewDeployment: true,
      TaskDefinition: stringAt("$.workers.task"),
    });
    start.addCatch(withdraw, { errors: ["States.ALL"], resultPath: "$.error" });
    // Nothing happens if ECS went back already.
    const back = give("Give the workers back", "They get the definition that they had", {
      TaskDefinition: stringAt("$.workers.before"),
    });
    back.addCatch(withdraw, { errors: ["States.ALL"], resultPath: sfn.JsonPath.DISCARD });
    back.next(withdraw);
    const look = this.guard(
      new tasks.CallAwsService(scope, "Look at the workers", {
        service: "ecs",
        action: "describeServices",
        parameters: { Cluster: cluster, Services: [service] },
        iamAction: "ecs:DescribeServices",
        iamResources: [serviceArn],
        resultSelector: {
          "state.$": "$.Services[0].Deployments[0].RolloutState",
          "task.$": "$.Services[0].TaskDefinition",
        },
        resultPath: "$.seen",
        taskTimeout: sfn.Timeout.duration(MINUTE),
      }),
      back,
    );
    for (const task of [start, back, look])
      task.addRetry(patiently([...unnamed("Ecs"), "Ecs.ServerException"]));
    const wait = new sfn.Wait(scope, "Wait for workers", { time: sfn.WaitTime.duration(ROUND) });
    const count = new sfn.Pass(scope, "Count the look", {
      parameters: {
        rounds: numberAt("$.count.rounds"),
        idle: 0,
        "looks.$": "States.MathAdd($.count.looks, 1)",
      },
      resultPath: "$.count",
    });
    const is = (state: string): sfn.Condition => sfn.Condition.stringEquals("$.seen.state", state);
    const fails = this.because(
      "Workers fail",
      "States.Format('the deployment of workers is {}, with {} in the place of {}', $.seen.state, $.seen.task, $.workers.task)",
      back,
    );
    const isLate = sfn.Condition.numberGreaterThanEquals("$.count.looks", WORKER_ROUNDS);
    // A deployment that failed is rolled back by ECS: what is complete then has the definition before.
    const isOurs = sfn.Condition.stringEqualsJsonPath("$.seen.task", "$.workers.task");
    const choice = new sfn.Choice(scope, "Are the workers replaced?")
      .when(sfn.Condition.and(is("COMPLETED"), isOurs), following)
      .when(sfn.Condition.or(is("FAILED"), is("COMPLETED"), isLate), fails)
      .otherwise(wait);
    const alarms = this.alarms("Look at the alarms meanwhile", back);
    const alarmed = this.because("An alarm is on meanwhile", ALARMS_ARE_ON, back);
    const quiet = new sfn.Choice(scope, "An alarm meanwhile?")
      .when(sfn.Condition.isPresent("$.alarms.names[0]"), alarmed)
      .otherwise(look);
    start.next(wait);
    wait.next(count).next(alarms).next(quiet);
    look.next(choice);
    return publish.next(start);
  }

  /** Starts another execution, and gives it the upgrade. */
  private successor(): sfn.IChainable {
    const { scope, props } = this;
    const hand = this.guard(
      this.step(
        "Give the upgrade to the next execution",
        "The history of an execution is bounded",
        { ...this.endEvent(), stopped: "the next execution goes on" },
        sfn.JsonPath.DISCARD,
      ),
    );
    const start = new tasks.CallAwsService(scope, "Start the next execution", {
      service: "sfn",
      action: "startExecution",
      parameters: {
        StateMachineArn: props.machineArn,
        Input: sfn.JsonPath.jsonToString(sfn.JsonPath.objectAt("$$.Execution.Input")),
      },
      iamAction: "states:StartExecution",
      iamResources: [props.machineArn],
      resultPath: sfn.JsonPath.DISCARD,
      taskTimeout: sfn.Timeout.duration(MINUTE),
    });
    start.addRetry(patiently(unnamed("Sfn")));
    return hand.next(start).next(new sfn.Succeed(scope, "The next execution goes on"));
  }

  /** Stops because of the alarms that are on. */
  private alarmed(): sfn.IChainable {
    this.alarmStop ??= this.because("An alarm is on", ALARMS_ARE_ON);
    return this.alarmStop;
  }
  private alarmStop: sfn.Pass | undefined;

  /** Stops for a reason, which is an intrinsic function, after another step if one is given. */
  private because(id: string, reason: string, before: sfn.State = this.stop): sfn.Pass {
    const pass = new sfn.Pass(this.scope, id, {
      parameters: { Error: "UpgradeStopped", "Cause.$": reason },
      resultPath: "$.error",
    });
    pass.next(before);
    return pass;
  }

  /** Writes down why the upgrade stops, and fails the execution with it. */
  private stopped(): sfn.State {
    const stop = this.step(
      "Stop",
      "What was done stays; the next execution goes on from there",
      { ...this.endEvent(), stopped: stringAt("$.error.Cause") },
      sfn.JsonPath.DISCARD,
    );
    const fail = new sfn.Fail(this.scope, "Stopped", {
      errorPath: stringAt("$.error.Error"),
      causePath: stringAt("$.error.Cause"),
    });
    stop.addCatch(fail, { errors: ["States.ALL"], resultPath: sfn.JsonPath.DISCARD });
    stop.next(fail);
    return stop;
  }

  private endEvent(): Record<string, unknown> {
    return { step: "upgrade-end", holder: sfn.JsonPath.executionId };
  }

  /** Counts a round; `idle` is how many of them passed in which nothing happened. */
  private count(id: string, idle: Record<string, unknown>): sfn.Pass {
    return new sfn.Pass(this.scope, id, {
      parameters: {
        "rounds.$": "States.MathAdd($.count.rounds, 1)",
        ...idle,
        looks: 0,
        "served.$": "$.count.served",
      },
      resultPath: "$.count",
    });
  }

  private patientRounds(): number {
    return Math.ceil(this.props.patience.toSeconds() / ROUND.toSeconds());
  }

  private alarms(id: string, before: sfn.State = this.stop): tasks.CallAwsService {
    const look = new tasks.CallAwsService(this.scope, id, {
      comment: "Those about nodes, workers and queries",
      service: "cloudwatch",
      action: "describeAlarms",
      parameters: {
        AlarmNames: this.props.alarms.slice(0, MOST_ALARMS),
        StateValue: "ALARM",
        MaxRecords: MOST_ALARMS,
      },
      iamAction: "cloudwatch:DescribeAlarms",
      iamResources: ["*"],
      resultSelector: { "names.$": "$.MetricAlarms[*].AlarmName" },
      resultPath: "$.alarms",
      taskTimeout: sfn.Timeout.duration(MINUTE),
    });
    look.addRetry(patiently(unnamed("CloudWatch")));
    return this.guard(look, before);
  }

  private step(
    id: string,
    comment: string,
    payload: Record<string, unknown>,
    resultPath: string,
  ): tasks.LambdaInvoke {
    return invocation(this.scope, id, { function: this.props.function, comment, payload, resultPath });
  }

  /** Lets an error of a task stop the upgrade, after another step if one is given. */
  private guard<T extends sfn.TaskStateBase>(state: T, before: sfn.State = this.stop): T {
    state.addCatch(before, { errors: ["States.ALL"], resultPath: "$.error" });
    return state;
  }
}
