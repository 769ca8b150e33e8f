/**
 * The custom resource that lets the service be removed, and a failed creation be rolled back, without help: before
 * CloudFormation deletes the group of storage nodes, it empties it (`infra/teardown/`). Creating and updating it does
 * nothing.
 *
 * Rules that react to machines depend on this resource, so they are deleted before it runs: nothing drains or heals
 * while all nodes leave.
 *
 * The path of this construct must not change: CloudFormation would take it for another resource, remove the old one, and
 * with it the machines of a group that stays.
 */
import { CustomResource, Duration, Stack } from "aws-cdk-lib";
import type { AutoScalingGroup } from "aws-cdk-lib/aws-autoscaling";
import * as iam from "aws-cdk-lib/aws-iam";
import * as lambda from "aws-cdk-lib/aws-lambda";
import type * as logs from "aws-cdk-lib/aws-logs";
import { Construct } from "constructs";
import { processLog } from "../log-group.ts";
import { explainWildcard } from "../nag.ts";
import { statement } from "../statement.ts";
import { typescriptFunction } from "../typescript-function.ts";
import type { IGraphState } from "./graph-state.ts";

/** Settings of the removal. */
export interface TeardownProps {
  readonly state: IGraphState;
  readonly group: AutoScalingGroup;
  /** The name of the group, by which policies select it. */
  readonly groupName: string;
  readonly retention: logs.RetentionDays;
}

/** Lambda's limit. The function deletes the group by force five minutes before. */
const TIMEOUT = Duration.minutes(15);
/** How long CloudFormation waits for an answer, if the function dies. */
const PATIENCE = Duration.minutes(17);

export class Teardown extends Construct {
  readonly function: lambda.Function;

  constructor(scope: Construct, id: string, props: TeardownProps) {
    super(scope, id);
    this.function = this.makeFunction(props);
    const resource = new CustomResource(this, "Resource", {
      serviceToken: this.function.functionArn,
      resourceType: "Custom::TidegraphTeardown",
      // The reference makes CloudFormation create this after the group, and delete it before.
      properties: { GroupName: props.group.autoScalingGroupName },
      serviceTimeout: PATIENCE,
    });
    // Its permissions are there when it runs.
    resource.node.addDependency(this.function);
  }

  private makeFunction(props: TeardownProps): lambda.Function {
    const { state, retention } = props;
    const logGroup = processLog(this, "Logs", state, "teardown", retention);
    return typescriptFunction(this, "teardown", {
      description: `Empties the group of storage nodes of the graph ${state.graph} before it is deleted`,
      architecture: lambda.Architecture.ARM_64,
      memorySize: 256,
      timeout: TIMEOUT,
      role: this.role(props, logGroup),
      logGroup,
    });
  }

  private role({ state, groupName }: TeardownProps, logGroup: logs.ILogGroup): iam.Role {
    const role = new iam.Role(this, "Role", {
      assumedBy: new iam.ServicePrincipal("lambda.amazonaws.com"),
      description: `Removes the storage nodes of ${state.name}`,
    });
    const { partition, region, account } = Stack.of(this);
    const group = `arn:${partition}:autoscaling:${region}:${account}:autoScalingGroup:*:autoScalingGroupName/${groupName}`;
    const change = [
      "DeleteAutoScalingGroup",
      "DeleteLifecycleHook",
      "SetInstanceProtection",
      "SuspendProcesses",
      "UpdateAutoScalingGroup",
    ];
    const name = (action: string): string => `autoscaling:${action}`;
    role.addToPolicy(statement("EmptyGroup", change.map(name), [group]));
    const look = ["DescribeAutoScalingGroups", "DescribeLifecycleHooks"];
    role.addToPolicy(statement("SeeGroup", look.map(name), ["*"]));
    role.addToPolicy(
      statement("WriteLog", ["logs:CreateLogStream", "logs:PutLogEvents"], [logGroup.logGroupArn]),
    );
    explainWildcard(role, group, "One group; the id in its ARN is drawn when it is made.");
    explainWildcard(role, "*", "Describing groups and their lifecycle hooks knows no resources.");
    return role;
  }
}
