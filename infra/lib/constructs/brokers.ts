/**
 * The addresses of MSK's brokers. CloudFormation does not know them, so a function asks MSK at a deployment
 * (`infra/brokers/`). If machines asked themselves, they would need another endpoint.
 *
 * CDK's own function for custom resources is not used: it may create log groups, and so makes its log group again after
 * the stack deleted it, and it fails a deployment when IAM does not know its new policy yet.
 */
import { CustomResource, Duration } from "aws-cdk-lib";
import * as iam from "aws-cdk-lib/aws-iam";
import * as lambda from "aws-cdk-lib/aws-lambda";
import { RetentionDays } from "aws-cdk-lib/aws-logs";
import { Construct } from "constructs";
import { processLog } from "../log-group.ts";
import { statement } from "../statement.ts";
import { typescriptFunction } from "../typescript-function.ts";
import type { IGraphState } from "./graph-state.ts";

/** Time of a run: a minute in which refusals are not believed, and one more. */
const TIMEOUT = Duration.minutes(2);

export class Brokers extends Construct {
  /** `host:port` of some brokers, separated by commas. */
  readonly addresses: string;

  /** @param cluster the ARN of the cluster */
  constructor(scope: Construct, id: string, state: IGraphState, cluster: string) {
    super(scope, id);
    const logGroup = processLog(this, "Logs", state, "deployment", RetentionDays.ONE_MONTH);
    const role = new iam.Role(this, "Role", {
      assumedBy: new iam.ServicePrincipal("lambda.amazonaws.com"),
      description: `Asks for the brokers of ${state.name}`,
    });
    role.addToPolicy(statement("AskForBrokers", ["kafka:GetBootstrapBrokers"], [cluster]));
    role.addToPolicy(
      statement("WriteLog", ["logs:CreateLogStream", "logs:PutLogEvents"], [logGroup.logGroupArn]),
    );
    const asks = typescriptFunction(this, "brokers", {
      description: `Asks MSK for the addresses of the brokers of ${state.name}`,
      architecture: lambda.Architecture.ARM_64,
      memorySize: 256,
      timeout: TIMEOUT,
      role,
      logGroup,
    });
    const resource = new CustomResource(this, "Asked", {
      serviceToken: asks.functionArn,
      resourceType: "Custom::TidegraphBrokers",
      properties: { ClusterArn: cluster },
      serviceTimeout: TIMEOUT.plus(Duration.minutes(1)),
    });
    // Its permissions are there when it runs.
    resource.node.addDependency(asks);
    this.addresses = resource.getAttString("Addresses");
  }
}
