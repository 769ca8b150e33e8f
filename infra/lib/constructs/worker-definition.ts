/**
 * What keeps a deployment from replacing workers: their service names the family of their tasks, in which only upgrades
 * register revisions (`infra/definition/`). A deployment makes a definition of another family, of which the function here
 * registers copies: the first one before the service is made, and the others when the machine `upgrade` replaces
 * workers (ADR 0051).
 */
import { ArnFormat, CustomResource, Duration, Stack } from "aws-cdk-lib";
import type * as ecs from "aws-cdk-lib/aws-ecs";
import * as iam from "aws-cdk-lib/aws-iam";
import * as lambda from "aws-cdk-lib/aws-lambda";
import type * as logs from "aws-cdk-lib/aws-logs";
import { Construct } from "constructs";
import { processLog } from "../log-group.ts";
import { explainWildcard } from "../nag.ts";
import { statement } from "../statement.ts";
import { typescriptFunction } from "../typescript-function.ts";
import type { IGraphState } from "./graph-state.ts";

/** Settings and resources that this construct needs. */
export interface WorkerDefinitionProps {
  readonly state: IGraphState;
  readonly cluster: ecs.Cluster;
  /** The definition of this deployment. */
  readonly task: ecs.FargateTaskDefinition;
  /** The family that the service names. */
  readonly family: string;
  readonly retention: logs.RetentionDays;
}

/** Time of a run: a minute in which refusals are not believed, and one more. */
const TIMEOUT = Duration.minutes(2);

export class WorkerDefinition extends Construct {
  readonly function: lambda.Function;
  readonly clusterName: string;
  /** The family that the service names. */
  readonly family: string;
  /** The definition of this deployment. */
  readonly definitionArn: string;

  constructor(scope: Construct, id: string, props: WorkerDefinitionProps) {
    super(scope, id);
    const { cluster, family, task } = props;
    this.function = this.makeFunction(props);
    this.clusterName = cluster.clusterName;
    this.family = family;
    this.definitionArn = task.taskDefinitionArn;
    const resource = new CustomResource(this, "Resource", {
      serviceToken: this.function.functionArn,
      resourceType: "Custom::TidegraphWorkerDefinition",
      properties: { Cluster: this.clusterName, Family: family, Definition: this.definitionArn },
      serviceTimeout: TIMEOUT.plus(Duration.minutes(1)),
    });
    // Its permissions are there when it runs.
    resource.node.addDependency(this.function);
  }

  private makeFunction(props: WorkerDefinitionProps): lambda.Function {
    const { state, retention } = props;
    const logGroup = processLog(this, "Logs", state, "worker-definition", retention);
    return typescriptFunction(this, "definition", {
      description: `Registers what workers of ${state.name} run`,
      architecture: lambda.Architecture.ARM_64,
      memorySize: 256,
      timeout: TIMEOUT,
      role: this.role(props, logGroup),
      logGroup,
    });
  }

  private role({ state, cluster, task, family }: WorkerDefinitionProps, logGroup: logs.ILogGroup): iam.Role {
    const role = new iam.Role(this, "Role", {
      assumedBy: new iam.ServicePrincipal("lambda.amazonaws.com"),
      description: `Registers what workers of ${state.name} run`,
    });
    const definitions = ["Deregister", "Describe", "List", "Register"].map(
      (verb) => `ecs:${verb}TaskDefinition${verb === "List" ? "s" : ""}`,
    );
    role.addToPolicy(statement("CopyDefinitions", definitions, ["*"]));
    const stack = Stack.of(this);
    const arn = (resource: string, resourceName: string): string =>
      stack.formatArn({
        ...{ service: "ecs", resource, resourceName },
        arnFormat: ArnFormat.SLASH_RESOURCE_NAME,
      });
    const revisions = arn("task-definition", `${family}:*`);
    role.addToPolicy(statement("TagCopies", ["ecs:TagResource"], [revisions]));
    const services = arn("service", `${cluster.clusterName}/*`);
    role.addToPolicy(statement("SeeService", ["ecs:DescribeServices"], [services]));
    role.addToPolicy(
      statement("ListServices", ["ecs:ListServices"], ["*"], {
        ArnEquals: { "ecs:cluster": cluster.clusterArn },
      }),
    );
    // Registering a definition is passing its roles to ECS.
    const passed = [task.taskRole, task.obtainExecutionRole()].map(({ roleArn }) => roleArn);
    role.addToPolicy(
      statement("PassRolesOfWorkers", ["iam:PassRole"], passed, {
        StringEquals: { "iam:PassedToService": "ecs-tasks.amazonaws.com" },
      }),
    );
    role.addToPolicy(
      statement("WriteLog", ["logs:CreateLogStream", "logs:PutLogEvents"], [logGroup.logGroupArn]),
    );
    explainWildcard(
      role,
      "*",
      "Definitions of tasks are registered, listed and described without resources.",
    );
    explainWildcard(role, revisions, "Revisions of the one family, which ECS numbers.");
    explainWildcard(
      role,
      services,
      "The service of the cluster, whose name CloudFormation draws after this policy.",
    );
    return role;
  }
}
