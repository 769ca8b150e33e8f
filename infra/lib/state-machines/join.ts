/**
 * Admits a new machine once its daemon is up. The launch hook of the Auto Scaling group waits for this state machine,
 * which checks the node's item in the map every 15 seconds and then tells the group to continue. It gives up a machine
 * that is not up in time, and the group starts another one.
 *
 * No code of ours runs here: Step Functions calls DynamoDB and Auto Scaling itself.
 */
import { Duration, Stack } from "aws-cdk-lib";
import * as iam from "aws-cdk-lib/aws-iam";
import type * as logs from "aws-cdk-lib/aws-logs";
import * as sfn from "aws-cdk-lib/aws-stepfunctions";
import * as tasks from "aws-cdk-lib/aws-stepfunctions-tasks";
import { Construct } from "constructs";
import type { IGraphState } from "../constructs/graph-state.ts";
import { machineLog } from "../log-group.ts";
import { explain, explainWildcard } from "../nag.ts";
import { useKey } from "../statement.ts";

/** Settings of the machine. */
export interface JoinProps {
  readonly state: IGraphState;
  /** Name of the Auto Scaling group. Its ARN would be a circular reference, since the group depends on this. */
  readonly groupName: string;
  /** How long a machine may take until its daemon is up. */
  readonly patience: Duration;
  readonly retention: logs.RetentionDays;
}

/** Time between two checks. */
const STEP = Duration.seconds(15);

export class Join extends Construct {
  readonly stateMachine: sfn.StateMachine;

  constructor(scope: Construct, id: string, props: JoinProps) {
    super(scope, id);
    const logGroup = machineLog(this, "Logs", props.state, "join", props.retention);
    this.stateMachine = new sfn.StateMachine(this, "StateMachine", {
      comment: "Admits a machine to the fleet once its daemon is up",
      definitionBody: sfn.DefinitionBody.fromChainable(this.definition(props)),
      role: this.role(props),
      timeout: props.patience.plus(Duration.minutes(5)),
      logs: { destination: logGroup, level: sfn.LogLevel.ALL, includeExecutionData: true },
    });
    explain(this.stateMachine, "SF2", "Its steps are look-ups and waits; its log has each of them.");
  }

  private definition(props: JoinProps): sfn.IChainable {
    const { state, patience } = props;
    const { table } = state.map;
    const instance = sfn.JsonPath.stringAt("$.detail.EC2InstanceId");
    const start = new sfn.Pass(this, "Begin", {
      result: sfn.Result.fromObject({ looks: 0 }),
      resultPath: "$.count",
    });
    const look = new tasks.DynamoGetItem(this, "Look", {
      comment: "The node's item in the partition map",
      table,
      key: {
        graph: tasks.DynamoAttributeValue.fromString(state.graph),
        item: tasks.DynamoAttributeValue.fromString(sfn.JsonPath.format("map#node#{}", instance)),
      },
      consistentRead: true,
      resultPath: "$.node",
    });
    look.addRetry({ maxAttempts: 5, interval: Duration.seconds(2) });
    const tell = (name: string, result: string): tasks.CallAwsService => {
      const task = new tasks.CallAwsService(this, name, {
        service: "autoscaling",
        action: "completeLifecycleAction",
        parameters: {
          AutoScalingGroupName: sfn.JsonPath.stringAt("$.detail.AutoScalingGroupName"),
          LifecycleHookName: sfn.JsonPath.stringAt("$.detail.LifecycleHookName"),
          LifecycleActionToken: sfn.JsonPath.stringAt("$.detail.LifecycleActionToken"),
          LifecycleActionResult: result,
        },
        iamAction: "autoscaling:CompleteLifecycleAction",
        iamResources: [this.groupArn(props)],
        resultPath: sfn.JsonPath.DISCARD,
      });
      task.addRetry({ maxAttempts: 3, interval: Duration.seconds(2) });
      return task;
    };
    const wait = new sfn.Wait(this, "Wait", { time: sfn.WaitTime.duration(STEP) });
    const count = new sfn.Pass(this, "Count", {
      parameters: { "looks.$": "States.MathAdd($.count.looks, 1)" },
      resultPath: "$.count",
    });
    const most = Math.floor(patience.toSeconds() / STEP.toSeconds());
    const path = "$.node.Item.state.S";
    const isUp = sfn.Condition.and(sfn.Condition.isPresent(path), sfn.Condition.stringEquals(path, "up"));
    const choice = new sfn.Choice(this, "Up?")
      .when(isUp, tell("Let in", "CONTINUE"))
      .when(
        sfn.Condition.numberGreaterThanEquals("$.count.looks", most),
        tell("Give up", "ABANDON").next(
          new sfn.Fail(this, "Not up in time", {
            error: "NotUp",
            cause: `the node was not up in the partition map after ${patience.toMinutes()} minutes; its log says why`,
          }),
        ),
      )
      .otherwise(wait.next(count).next(look));
    return start.next(look).next(choice);
  }

  /** Returns the ARN of the group with a wildcard for the unique id, which is known only after the group is created. */
  private groupArn({ groupName }: JoinProps): string {
    const { partition, region, account } = Stack.of(this);
    return `arn:${partition}:autoscaling:${region}:${account}:autoScalingGroup:*:autoScalingGroupName/${groupName}`;
  }

  private role(props: JoinProps): iam.Role {
    const role = new iam.Role(this, "Role", {
      assumedBy: new iam.ServicePrincipal("states.amazonaws.com"),
      description: `Lets machines into the fleet of ${props.state.name}`,
    });
    role.addToPolicy(useKey(this, props.state.key, ["dynamodb"]));
    explainWildcard(
      role,
      this.groupArn(props),
      "One group; the id in its ARN is drawn when it is made, after this.",
    );
    explainWildcard(
      role,
      "*",
      "Step Functions sets up the delivery of its log by actions that know no resources.",
    );
    return role;
  }
}
