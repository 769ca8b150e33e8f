/**
 * The addresses of MSK's brokers. CloudFormation does not know them, so one of CDK's own functions asks MSK at
 * deployment. If machines asked themselves, they would need another endpoint.
 */
import { RetentionDays } from "aws-cdk-lib/aws-logs";
import { AwsCustomResource, AwsCustomResourcePolicy, PhysicalResourceId } from "aws-cdk-lib/custom-resources";
import { Construct } from "constructs";
import { PROVIDER } from "../cost-tag.ts";
import { processLog } from "../log-group.ts";
import { explain } from "../nag.ts";
import { statement } from "../statement.ts";
import type { IGraphState } from "./graph-state.ts";

/** The field of MSK's answer with the addresses for IAM clients. */
const OF_IAM = "BootstrapBrokerStringSaslIam";

export class Brokers extends Construct {
  /** `host:port` of some brokers, separated by commas. */
  readonly addresses: string;

  /** @param cluster the ARN of the cluster */
  constructor(scope: Construct, id: string, state: IGraphState, cluster: string) {
    super(scope, id);
    const resource = new AwsCustomResource(this, "Ask", {
      onUpdate: {
        service: "Kafka",
        action: "GetBootstrapBrokers",
        parameters: { ClusterArn: cluster },
        physicalResourceId: PhysicalResourceId.of(cluster),
        outputPaths: [OF_IAM],
      },
      policy: AwsCustomResourcePolicy.fromStatements([
        statement("AskForBrokers", ["kafka:GetBootstrapBrokers"], [cluster]),
      ]),
      installLatestAwsSdk: false,
      logGroup: processLog(this, "Logs", state, "deployment", RetentionDays.ONE_MONTH),
      resourceType: "Custom::TidegraphBrokers",
    });
    this.addresses = resource.getResponseField(OF_IAM);
  }

  /** Explains the findings about CDK's function for custom resources. CDK creates it once, at the top of the stack. */
  static explainProvider(stack: Construct): void {
    for (const child of stack.node.children) {
      if (!child.node.id.startsWith(PROVIDER)) continue;
      explain(
        child,
        "IAM4[Policy::arn:<AWS::Partition>:iam::aws:policy/service-role/AWSLambdaBasicExecutionRole]",
        "CDK's own function for custom resources: it writes its log, and runs at deployments only.",
      );
    }
  }
}
