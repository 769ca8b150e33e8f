/**
 * The REST API, the only thing that can be reached from outside: regional, signed requests only (IAM), throttled, each request in the access log,
 * answers streamed. One proxy resource; paths are the router's business.
 */
import { RemovalPolicy } from "aws-cdk-lib";
import * as api from "aws-cdk-lib/aws-apigateway";
import * as iam from "aws-cdk-lib/aws-iam";
import * as logs from "aws-cdk-lib/aws-logs";
import { Construct } from "constructs";
import { whole } from "../check.ts";
import { explain } from "../nag.ts";
import type { QueryFunction, QueryProps } from "./query-function.ts";
import type { GraphState } from "./state.ts";

/** What the API needs. */
interface Parts extends QueryProps {
  readonly state: GraphState;
  readonly query: QueryFunction;
  readonly retention: logs.RetentionDays;
  /** Whether the account's role for logs of API Gateway is made here. */
  readonly ownsAccountRole: boolean;
}

export class QueryApi extends Construct {
  readonly api: api.RestApi;

  constructor(scope: Construct, id: string, props: Parts) {
    super(scope, id);
    const { state, query } = props;
    const throttlingRateLimit = whole("query.requestsPerSecond", props.requestsPerSecond ?? 500, 1);
    const throttlingBurstLimit = whole("query.burst", props.burst ?? 1000, 1);
    const access = new logs.LogGroup(this, "Access", {
      logGroupName: `${state.logPrefix}access`,
      encryptionKey: state.key,
      retention: props.retention,
      removalPolicy: RemovalPolicy.DESTROY,
    });
    const integration = new api.LambdaIntegration(query.function, {
      responseTransferMode: api.ResponseTransferMode.STREAM,
      timeout: query.timeout,
      allowTestInvoke: false,
    });
    this.api = new api.RestApi(this, "Api", {
      restApiName: state.name,
      description: `Queries of the graph ${state.graph}`,
      endpointTypes: [api.EndpointType.REGIONAL],
      cloudWatchRole: false,
      // Of the root and of everything below it.
      defaultIntegration: integration,
      defaultMethodOptions: { authorizationType: api.AuthorizationType.IAM },
      deployOptions: {
        stageName: "graph",
        throttlingRateLimit,
        throttlingBurstLimit,
        metricsEnabled: true,
        loggingLevel: api.MethodLoggingLevel.ERROR,
        // Queries and answers are the users' own.
        dataTraceEnabled: false,
        accessLogDestination: new api.LogGroupLogDestination(access),
        accessLogFormat: accessLogFormat(),
      },
    });
    this.api.root.addProxy({ anyMethod: true });
    if (props.ownsAccountRole) this.letApiGatewayLog();
    this.explain();
  }

  /** ARN of everything that a caller can ask for. */
  get everything(): string {
    return this.api.arnForExecuteApi("*", "/*", this.api.deploymentStage.stageName);
  }

  /** The account's setting without which no API of it can log. */
  private letApiGatewayLog(): void {
    const role = new iam.Role(this, "LogsRole", {
      assumedBy: new iam.ServicePrincipal("apigateway.amazonaws.com"),
      managedPolicies: [
        iam.ManagedPolicy.fromAwsManagedPolicyName("service-role/AmazonAPIGatewayPushToCloudWatchLogs"),
      ],
    });
    const account = new api.CfnAccount(this, "Account", { cloudWatchRoleArn: role.roleArn });
    // Other APIs of the account use it too.
    account.applyRemovalPolicy(RemovalPolicy.RETAIN);
    role.applyRemovalPolicy(RemovalPolicy.RETAIN);
    this.api.deploymentStage.node.addDependency(account);
    explain(
      role,
      "IAM4[Policy::arn:<AWS::Partition>:iam::aws:policy/service-role/AmazonAPIGatewayPushToCloudWatchLogs]",
      "The account's role for logs of all its APIs: AWS's own policy for it names what API Gateway needs.",
    );
  }

  private explain(): void {
    explain(
      this.api,
      "APIG2",
      "Requests are texts in two languages: the router checks them within a limit of bytes, and says by name and place what is wrong.",
    );
    explain(
      this.api,
      "APIG3",
      "Unsigned requests end at API Gateway, and those that are signed are throttled. Whoever wants a web ACL associates one with the stage.",
    );
    explain(this.api, "COG4", "Callers are IAM principals and sign each request; there is no user pool.");
  }
}

/** One line of JSON for each request: who, what, how long, and what came out, but no query. */
function accessLogFormat(): api.AccessLogFormat {
  const { AccessLogField: field } = api;
  return api.AccessLogFormat.custom(
    JSON.stringify({
      requestId: field.contextRequestId(),
      time: field.contextRequestTime(),
      ip: field.contextIdentitySourceIp(),
      caller: field.contextIdentityUserArn(),
      method: field.contextHttpMethod(),
      path: field.contextPath(),
      status: field.contextStatus(),
      error: field.contextErrorMessage(),
      bytes: field.contextResponseLength(),
      latencyMs: field.contextResponseLatency(),
      functionMs: field.contextIntegrationLatency(),
    }),
  );
}
