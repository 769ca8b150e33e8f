/**
 * The REST API, the only part that is reachable from outside. It is regional, accepts only signed requests (IAM),
 * throttles, writes an access log line for each request, and streams answers. It has one proxy resource, because the
 * service's router handles the paths.
 */
import { RemovalPolicy } from "aws-cdk-lib";
import * as api from "aws-cdk-lib/aws-apigateway";
import * as iam from "aws-cdk-lib/aws-iam";
import type * as logs from "aws-cdk-lib/aws-logs";
import { Construct } from "constructs";
import { whole } from "../check.ts";
import { processLog } from "../log-group.ts";
import { explain } from "../nag.ts";
import type { QueryFunction, QueryProps } from "./query-function.ts";
import type { GraphState } from "./state.ts";

/**
 * Answers that API Gateway gives itself. They have the shape and the codes of all other failed requests
 * (contracts/errors.json). As in Neptune, a missing, wrong or expired signature gets 403.
 */
const REFUSALS: readonly (readonly [type: api.ResponseType, status: number, code: string])[] = [
  [api.ResponseType.MISSING_AUTHENTICATION_TOKEN, 403, "AccessDeniedException"],
  [api.ResponseType.INVALID_SIGNATURE, 403, "AccessDeniedException"],
  [api.ResponseType.EXPIRED_TOKEN, 403, "AccessDeniedException"],
  [api.ResponseType.ACCESS_DENIED, 403, "AccessDeniedException"],
  [api.ResponseType.WAF_FILTERED, 403, "AccessDeniedException"],
  [api.ResponseType.REQUEST_TOO_LARGE, 413, "RequestTooLargeException"],
  [api.ResponseType.THROTTLED, 429, "TooManyRequestsException"],
  [api.ResponseType.QUOTA_EXCEEDED, 429, "TooManyRequestsException"],
  [api.ResponseType.INTEGRATION_TIMEOUT, 408, "TimeLimitExceededException"],
  [api.ResponseType.INTEGRATION_FAILURE, 503, "ServiceUnavailableException"],
  [api.ResponseType.API_CONFIGURATION_ERROR, 500, "InternalFailureException"],
  [api.ResponseType.AUTHORIZER_FAILURE, 500, "InternalFailureException"],
  [api.ResponseType.AUTHORIZER_CONFIGURATION_ERROR, 500, "InternalFailureException"],
  [api.ResponseType.DEFAULT_4XX, 400, "BadRequestException"],
  [api.ResponseType.DEFAULT_5XX, 500, "InternalFailureException"],
];

/** Settings and resources that the API needs. */
interface Parts extends QueryProps {
  readonly state: GraphState;
  readonly query: QueryFunction;
  readonly retention: logs.RetentionDays;
  /** Whether this app creates the account's role with which API Gateway writes logs. */
  readonly ownsAccountRole: boolean;
}

export class QueryApi extends Construct {
  readonly api: api.RestApi;

  constructor(scope: Construct, id: string, props: Parts) {
    super(scope, id);
    const { state, query } = props;
    const throttlingRateLimit = whole("query.requestsPerSecond", props.requestsPerSecond ?? 500, 1);
    const throttlingBurstLimit = whole("query.burst", props.burst ?? 1000, 1);
    const access = processLog(this, "Access", state, "access", props.retention);
    const integration = new api.LambdaIntegration(query.live, {
      responseTransferMode: api.ResponseTransferMode.STREAM,
      timeout: query.timeout,
      allowTestInvoke: false,
    });
    this.api = new api.RestApi(this, "Api", {
      restApiName: state.name,
      description: `Queries of the graph ${state.graph}`,
      endpointTypes: [api.EndpointType.REGIONAL],
      cloudWatchRole: false,
      // Bodies of these types are bytes; others are text for API Gateway.
      binaryMediaTypes: ["application/vnd.graphbinary-v1.0"],
      // Handles the root and everything below it.
      defaultIntegration: integration,
      defaultMethodOptions: { authorizationType: api.AuthorizationType.IAM },
      deployOptions: {
        stageName: "graph",
        throttlingRateLimit,
        throttlingBurstLimit,
        // Metrics of single methods are paid for. Those of the stage, which the alarms need, are not.
        metricsEnabled: false,
        loggingLevel: api.MethodLoggingLevel.ERROR,
        // Queries and answers are private to the users.
        dataTraceEnabled: false,
        accessLogDestination: new api.LogGroupLogDestination(access),
        accessLogFormat: accessLogFormat(),
      },
    });
    this.api.root.addProxy({ anyMethod: true });
    for (const [type, status, code] of REFUSALS) this.refuse(type, status, code);
    if (props.ownsAccountRole) this.letApiGatewayLog();
    this.explain();
  }

  /** Adds an answer that API Gateway gives without invoking a function. */
  private refuse(type: api.ResponseType, status: number, code: string): void {
    // `messageString` is already an escaped JSON string in quotation marks.
    const message = "$context.error.messageString";
    const body = `{"requestId":"$context.requestId","code":"${code}","detailedMessage":${message},"message":${message}}`;
    this.api.addGatewayResponse(type.responseType, {
      type,
      statusCode: String(status),
      templates: { "application/json": body },
    });
  }

  /** The ARN of everything that a caller can invoke. */
  get everything(): string {
    return this.api.arnForExecuteApi("*", "/*", this.api.deploymentStage.stageName);
  }

  /** Sets the role of the account without which none of its APIs can write logs. */
  private letApiGatewayLog(): void {
    const role = new iam.Role(this, "LogsRole", {
      assumedBy: new iam.ServicePrincipal("apigateway.amazonaws.com"),
      managedPolicies: [
        iam.ManagedPolicy.fromAwsManagedPolicyName("service-role/AmazonAPIGatewayPushToCloudWatchLogs"),
      ],
    });
    const account = new api.CfnAccount(this, "Account", { cloudWatchRoleArn: role.roleArn });
    // Other APIs of the account use the role too.
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

/** One line of JSON for each request: caller, path, duration and result, but not the query. */
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
