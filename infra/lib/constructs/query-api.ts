/**
 * The REST API, the only part that is reachable from outside, unless it is private. It accepts only signed requests (IAM),
 * throttles, writes an access log line for each request, and streams answers. It has one proxy resource, because the
 * service's router handles the paths.
 */
import { RemovalPolicy, Stack, Tags } from "aws-cdk-lib";
import * as api from "aws-cdk-lib/aws-apigateway";
import * as ec2 from "aws-cdk-lib/aws-ec2";
import * as iam from "aws-cdk-lib/aws-iam";
import type * as logs from "aws-cdk-lib/aws-logs";
import { ARecord, RecordTarget } from "aws-cdk-lib/aws-route53";
import { ApiGatewayDomain } from "aws-cdk-lib/aws-route53-targets";
import { CfnWebACLAssociation } from "aws-cdk-lib/aws-wafv2";
import { Construct } from "constructs";
import { dnsName, InvalidProp, placeOf, samePlace, text, whole } from "../check.ts";
import { processLog } from "../log-group.ts";
import { explain } from "../nag.ts";
import { LOGS_REGION } from "../names.ts";
import type { IGraphState } from "./graph-state.ts";
import type { Graphs } from "./graphs.ts";
import type { QueryDomain, QueryFunction, QueryProps } from "./query-function.ts";
import { sample, type TracesProps } from "./traces.ts";

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

/** The stage, with which paths begin at API Gateway's own name. */
export const STAGE = "graph";

/** Paths that take a query (contracts/openapi.yaml). */
const QUERIES = ["openCypher", "opencypher", "gremlin"].flatMap((path) => [
  path,
  `${path}/explain`,
  ...(path === "gremlin" ? ["gremlin/profile"] : []),
]);

/** Paths that read with GET: no query writes that comes with GET. Lists of running queries are not among them: they cancel. */
const READS = [
  ...QUERIES,
  ...["pg", "propertygraph"].flatMap((path) =>
    ["statistics", "statistics/summary", "stream"].map((of) => `${path}/${of}`),
  ),
  ...["gremlin/stream", "summary", "status"],
];

/** Settings and resources that the API needs. */
interface Parts extends QueryProps {
  readonly state: IGraphState;
  readonly graphs: Graphs;
  readonly query: QueryFunction;
  readonly retention: logs.RetentionDays;
  /** Whether this app creates the account's role with which API Gateway writes logs. */
  readonly ownsAccountRole: boolean;
  /** Traces of requests; `undefined` for none. */
  readonly traces: TracesProps | undefined;
}

export class QueryApi extends Construct {
  readonly api: api.RestApi;
  /** Clients that have this security group reach a private API through the endpoint that is made for it. */
  readonly clients: ec2.SecurityGroup | undefined;
  /** The address of the API. */
  readonly url: string;

  constructor(scope: Construct, id: string, props: Parts) {
    super(scope, id);
    const { state, graphs, query } = props;
    const throttlingRateLimit = whole("query.requestsPerSecond", props.requestsPerSecond ?? 500, 1);
    const throttlingBurstLimit = whole("query.burst", props.burst ?? 1000, 1);
    check(props);
    const { certificate } = props.domain ?? {};
    if (certificate)
      samePlace(
        "query.domain.certificate",
        certificate.certificateArn,
        placeOf(certificate.certificateArn),
        this,
      );
    if (props.webAcl !== undefined) samePlace("query.webAcl", props.webAcl, placeOf(props.webAcl), this);
    const own = props.privateAccess && !props.vpcEndpoint ? this.makeEndpoint(props) : undefined;
    this.clients = own?.clients;
    const access = processLog(this, "Access", state, "access", props.retention);
    const integration = new api.LambdaIntegration(query.live, {
      responseTransferMode: api.ResponseTransferMode.STREAM,
      timeout: query.timeout,
      allowTestInvoke: false,
    });
    this.api = new api.RestApi(this, "Api", {
      restApiName: state.name,
      description: `Queries of ${graphs.words}`,
      ...reachedBy(own?.endpoint ?? props.vpcEndpoint),
      cloudWatchRole: false,
      // Bodies of these types are bytes; others are text for API Gateway.
      binaryMediaTypes: ["application/vnd.graphbinary-v1.0"],
      // Handles the root and everything below it.
      defaultIntegration: integration,
      defaultMethodOptions: { authorizationType: api.AuthorizationType.IAM },
      deployOptions: {
        stageName: STAGE,
        tracingEnabled: props.traces !== undefined,
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
    if (props.traces) sample(this, props.traces, state.name, STAGE);
    for (const [type, status, code] of REFUSALS) this.refuse(type, status, code);
    if (props.ownsAccountRole) this.letApiGatewayLog();
    if (props.webAcl !== undefined) {
      const resourceArn = this.api.deploymentStage.stageArn;
      new CfnWebACLAssociation(this, "WebAcl", { resourceArn, webAclArn: props.webAcl });
    }
    this.url = props.domain ? this.name(props.domain) : this.api.url;
    this.explain();
  }

  /** Gives the API a name, below which paths begin without the stage. */
  private name({ name, certificate, zone }: QueryDomain): string {
    const domain = new api.DomainName(this, "Domain", {
      domainName: name,
      certificate,
      endpointType: api.EndpointType.REGIONAL,
      securityPolicy: api.SecurityPolicy.TLS_1_2,
      mapping: this.api,
    });
    if (zone) {
      const target = RecordTarget.fromAlias(new ApiGatewayDomain(domain));
      new ARecord(this, "Name", { zone, recordName: `${name}.`, target });
    }
    return `https://${name}/`;
  }

  /** Makes the endpoint of a private API, and the group of its clients. */
  private makeEndpoint({ state }: Parts): { endpoint: ec2.IVpcEndpoint; clients: ec2.SecurityGroup } {
    const { vpc, subnets } = state.network;
    const group = (id: string, description: string): ec2.SecurityGroup =>
      new ec2.SecurityGroup(this, id, { vpc, description, allowAllOutbound: false });
    const front = group("Front", "The endpoint of the private API: its clients come in");
    const clients = group("Clients", "Carried by who may reach the private API");
    clients.connections.allowTo(front, ec2.Port.tcp(443), "Queries");
    const endpoint = new ec2.InterfaceVpcEndpoint(this, "Endpoint", {
      vpc,
      service: ec2.InterfaceVpcEndpointAwsService.APIGATEWAY,
      subnets: { subnets },
      securityGroups: [front],
      open: false,
    });
    return { endpoint, clients };
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
    return this.calls("*", "/*");
  }

  /** Returns the ARN of all calls whose path names a graph. */
  everythingOf(graph: string): string {
    return this.calls("*", `/graph/${graph}/*`);
  }

  /** The ARNs of calls that read. */
  get reads(): string[] {
    return this.readsBelow("");
  }

  /** Returns the ARNs of calls that read, of those whose path names a graph. */
  readsOf(graph: string): string[] {
    return this.readsBelow(`/graph/${graph}`);
  }

  /** The ARNs of calls that read or write by a query. */
  get writes(): string[] {
    return [...this.reads, ...this.queriesBelow("")];
  }

  /** Returns the ARNs of calls that read or write by a query, of those whose path names a graph. */
  writesOf(graph: string): string[] {
    return [...this.readsOf(graph), ...this.queriesBelow(`/graph/${graph}`)];
  }

  private readsBelow(prefix: string): string[] {
    return READS.map((path) => this.calls("GET", `${prefix}/${path}`));
  }

  private queriesBelow(prefix: string): string[] {
    return QUERIES.map((path) => this.calls("POST", `${prefix}/${path}`));
  }

  /** The ARN of the calls with a method and a path, both of which may be patterns. */
  private calls(method: string, path: string): string {
    return this.api.arnForExecuteApi(method, path, this.api.deploymentStage.stageName);
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
    // Other APIs of the account use the role too. `tidegraph-remove` removes it when none does.
    account.applyRemovalPolicy(RemovalPolicy.RETAIN);
    role.applyRemovalPolicy(RemovalPolicy.RETAIN);
    Tags.of(role).add(LOGS_REGION, Stack.of(this).region);
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

/** Checks settings of how the API is reached. */
function check({ domain, webAcl, privateAccess, vpcEndpoint }: QueryProps): void {
  if (domain) {
    const { name, zone } = domain;
    dnsName("query.domain.name", name, zone?.zoneName);
    if (privateAccess) throw new InvalidProp("query.domain.name", name, "given without query.privateAccess");
  }
  const regional = /^arn:[a-z-]+:wafv2:[a-z0-9-]+:\d{12}:regional\/webacl\/.+$/;
  if (webAcl !== undefined) text("query.webAcl", webAcl, regional, "the ARN of a regional web ACL");
  if (vpcEndpoint && !privateAccess)
    throw new InvalidProp("query.vpcEndpoint", "an endpoint", "given with query.privateAccess");
}

/**
 * Returns by what an API is reached: the internet, or an endpoint of the VPC. The policy of a private API only denies what
 * comes by another way. It allows nobody anything: callers need a policy of their own, as with a regional API.
 */
function reachedBy(
  endpoint: ec2.IVpcEndpoint | undefined,
): Pick<api.RestApiProps, "endpointConfiguration" | "policy"> {
  if (endpoint === undefined) return { endpointConfiguration: { types: [api.EndpointType.REGIONAL] } };
  const elsewhere = new iam.PolicyStatement({
    sid: "ElsewhereFrom",
    effect: iam.Effect.DENY,
    principals: [new iam.AnyPrincipal()],
    actions: ["execute-api:Invoke"],
    resources: ["execute-api:/*"],
    conditions: { StringNotEquals: { "aws:SourceVpce": endpoint.vpcEndpointId } },
  });
  return {
    endpointConfiguration: { types: [api.EndpointType.PRIVATE], vpcEndpoints: [endpoint] },
    policy: new iam.PolicyDocument({ statements: [elsewhere] }),
  };
}

/**
 * One line of JSON for each request: caller, path, duration and result, but not the query. Of an answer that API Gateway gives
 * itself it has the type. The message would tell the query and the session token of a request whose signature is wrong, and
 * where there is none, API Gateway writes a dash, which is no JSON without quotation marks.
 */
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
      error: field.contextErrorResponseType(),
      bytes: field.contextResponseLength(),
      latencyMs: field.contextResponseLatency(),
      functionMs: field.contextIntegrationLatency(),
    }),
  );
}
