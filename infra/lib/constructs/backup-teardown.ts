/**
 * The custom resource that lets backups be removed while one runs: before CloudFormation deletes the cluster, the state
 * machine and the security group, it stops what runs (`infra/teardown/backups.ts`). Creating and updating it does nothing.
 *
 * The schedule depends on this resource, so it is deleted before and starts nothing meanwhile.
 */
import { CustomResource, Duration, Stack } from "aws-cdk-lib";
import type { ISecurityGroup } from "aws-cdk-lib/aws-ec2";
import type { ICluster } from "aws-cdk-lib/aws-ecs";
import * as iam from "aws-cdk-lib/aws-iam";
import * as lambda from "aws-cdk-lib/aws-lambda";
import type * as logs from "aws-cdk-lib/aws-logs";
import type { StateMachine } from "aws-cdk-lib/aws-stepfunctions";
import { Construct } from "constructs";
import { processLog } from "../log-group.ts";
import { explainWildcard } from "../nag.ts";
import { statement } from "../statement.ts";
import { typescriptFunction } from "../typescript-function.ts";
import type { IGraphState } from "./graph-state.ts";
import { executionsOf } from "./operator.ts";

/** Settings of the removal. */
export interface BackupTeardownProps {
  readonly state: IGraphState;
  /** The machine that backs up. */
  readonly machine: StateMachine;
  /** The cluster in which its tasks run. */
  readonly cluster: ICluster;
  /** The security group of the tasks. */
  readonly securityGroup: ISecurityGroup;
  readonly retention: logs.RetentionDays;
}

/** Lambda's limit. A task ends within two minutes. */
const TIMEOUT = Duration.minutes(15);
/** How long CloudFormation waits for an answer, if the function dies. */
const PATIENCE = Duration.minutes(17);

export class BackupTeardown extends Construct {
  constructor(scope: Construct, id: string, props: BackupTeardownProps) {
    super(scope, id);
    const { machine, cluster, securityGroup, state, retention } = props;
    const logGroup = processLog(this, "Logs", state, "backup-teardown", retention);
    const stops = typescriptFunction(this, "backupTeardown", {
      description: `Stops backups of ${state.name} before what they run in is deleted`,
      architecture: lambda.Architecture.ARM_64,
      memorySize: 256,
      timeout: TIMEOUT,
      role: this.role(props, logGroup),
      logGroup,
    });
    const resource = new CustomResource(this, "Resource", {
      serviceToken: stops.functionArn,
      resourceType: "Custom::TidegraphBackupTeardown",
      // The references make CloudFormation create this after them, and delete it before.
      properties: { Machine: machine.stateMachineArn, Cluster: cluster.clusterArn },
      serviceTimeout: PATIENCE,
    });
    // Its permissions are there when it runs, and the security group is deleted after the tasks that have it.
    resource.node.addDependency(stops, securityGroup);
  }

  private role({ state, machine, cluster }: BackupTeardownProps, logGroup: logs.ILogGroup): iam.Role {
    const role = new iam.Role(this, "Role", {
      assumedBy: new iam.ServicePrincipal("lambda.amazonaws.com"),
      description: `Stops backups of ${state.name}`,
    });
    const stack = Stack.of(this);
    const executions = executionsOf(this, machine);
    const tasks = stack.formatArn({
      service: "ecs",
      resource: "task",
      resourceName: `${cluster.clusterName}/*`,
    });
    role.addToPolicy(statement("SeeExecutions", ["states:ListExecutions"], [machine.stateMachineArn]));
    role.addToPolicy(statement("StopExecutions", ["states:StopExecution"], [executions]));
    const here = { ArnEquals: { "ecs:cluster": cluster.clusterArn } };
    role.addToPolicy(statement("SeeTasks", ["ecs:ListTasks"], ["*"], here));
    role.addToPolicy(statement("StopTasks", ["ecs:DescribeTasks", "ecs:StopTask"], [tasks]));
    role.addToPolicy(
      statement("WriteLog", ["logs:CreateLogStream", "logs:PutLogEvents"], [logGroup.logGroupArn]),
    );
    explainWildcard(role, executions, "Executions of one machine, whose names are drawn when they start.");
    explainWildcard(role, tasks, "Tasks of one cluster, whose ids are drawn when they start.");
    explainWildcard(
      role,
      "*",
      "Listing the tasks of a cluster knows no resource but a condition, which it has.",
    );
    return role;
  }
}
