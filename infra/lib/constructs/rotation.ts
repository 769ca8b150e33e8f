/**
 * The rotation of the fleet's secret on a schedule, by Secrets Manager and a function (`infra/rotation/`). Processes take
 * the current and the previous version, and read them at run time, so nothing is restarted.
 */
import { Duration, Stack } from "aws-cdk-lib";
import * as iam from "aws-cdk-lib/aws-iam";
import * as lambda from "aws-cdk-lib/aws-lambda";
import type * as logs from "aws-cdk-lib/aws-logs";
import { CfnRotationSchedule, type ISecret } from "aws-cdk-lib/aws-secretsmanager";
import { Construct } from "constructs";
import { wholeDays } from "../check.ts";
import { processLog } from "../log-group.ts";
import { statement, useKey } from "../statement.ts";
import { typescriptFunction } from "../typescript-function.ts";
import type { IGraphState } from "./graph-state.ts";

/** Settings of the rotation. */
export interface RotationProps {
  readonly state: IGraphState;
  readonly secret: ISecret;
  /** Time between two rotations. */
  readonly every: Duration;
  readonly retention: logs.RetentionDays;
}

/** Secrets Manager's limit. */
const MOST_DAYS = 1000;

export class Rotation extends Construct {
  readonly function: lambda.Function;

  constructor(scope: Construct, id: string, props: RotationProps) {
    super(scope, id);
    const { state, secret } = props;
    const days = wholeDays("secretRotation", props.every, MOST_DAYS);
    const logGroup = processLog(this, "Logs", state, "rotation", props.retention);
    this.function = typescriptFunction(this, "rotation", {
      description: `Rotates the secret of the fleet of the graph ${state.graph}`,
      architecture: lambda.Architecture.ARM_64,
      memorySize: 256,
      timeout: Duration.minutes(1),
      role: this.role(props, logGroup),
      logGroup,
    });
    this.function.addPermission("SecretsManager", {
      principal: new iam.ServicePrincipal("secretsmanager.amazonaws.com"),
      sourceAccount: Stack.of(this).account,
    });
    const schedule = new CfnRotationSchedule(this, "Schedule", {
      secretId: secret.secretArn,
      rotationLambdaArn: this.function.functionArn,
      rotationRules: { automaticallyAfterDays: days },
      // A deployment does not rotate.
      rotateImmediatelyOnUpdate: false,
    });
    // Secrets Manager calls the function when the schedule is made.
    schedule.node.addDependency(this.function);
  }

  private role({ state, secret }: RotationProps, logGroup: logs.ILogGroup): iam.Role {
    const role = new iam.Role(this, "Role", {
      assumedBy: new iam.ServicePrincipal("lambda.amazonaws.com"),
      description: `Rotates the secret of the fleet of ${state.name}`,
    });
    const actions = ["DescribeSecret", "GetSecretValue", "PutSecretValue", "UpdateSecretVersionStage"];
    const name = (action: string): string => `secretsmanager:${action}`;
    role.addToPolicy(statement("RotateSecret", actions.map(name), [secret.secretArn]));
    role.addToPolicy(useKey(this, state.key, ["secretsmanager"]));
    role.addToPolicy(
      statement("WriteLog", ["logs:CreateLogStream", "logs:PutLogEvents"], [logGroup.logGroupArn]),
    );
    return role;
  }
}
