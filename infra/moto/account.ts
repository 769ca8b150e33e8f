/**
 * An account in which the example is deployed: moto, and in front of it a server with the operations that moto does not
 * have (stacks, quotas, limits of Lambda, topics and configurations of MSK, simulations of policies) and the
 * deployment's API. Their answers have the forms that AWS documents. Everything else reaches moto, with its IAM.
 */
import { createHash, createHmac } from "node:crypto";
import {
  createServer,
  request as httpRequest,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from "node:http";
import type { AddressInfo } from "node:net";
import { ACCOUNT, type Creation, REGION, stackId } from "./create.ts";
import { Moto } from "./server.ts";
import { Fault, type Organization, Simulation } from "./simulation.ts";
import type { Template } from "./templates.ts";

/** What the test changes. */
export interface Situation extends Organization {
  /** State and protection of the stacks. */
  stackStatus: string;
  protects: boolean;
  /** Processors of machines, and of tasks on Fargate, that the account may have. */
  quota: number;
  fargate: number;
  functions: number;
  topic: { partitions: number; copies: number; configs: string } | undefined;
  brokerSettings: string;
  clusterState: string;
  /** The names of MSK's configurations, by their ARNs. */
  readonly configurations?: Map<string, string>;
  /** API Gateway: the role with which it writes logs, and APIs. moto has it only with a package more. */
  readonly gateway: { role: string; apis: { id: string }[] };
  /** Whether the drop bucket tells EventBridge, which moto's answer leaves out. */
  eventBridge: boolean;
  /** Workers that run, which moto never starts. */
  workers: number;
  /** The answer of `/status`. */
  status: { code: number; body: unknown };
  /** Actions that AWS refuses, of the operations that moto does not have. */
  denied: Set<string>;
  /** Seconds that AWS's clock is ahead of the one here. */
  ahead: number;
}

/** A deployment that is as it should be, without workers. */
function usual(): Situation {
  return {
    stackStatus: "CREATE_COMPLETE",
    protects: true,
    quota: 64,
    fargate: 64,
    functions: 1000,
    topic: undefined,
    brokerSettings: "",
    clusterState: "ACTIVE",
    gateway: { role: "", apis: [] },
    eventBridge: true,
    workers: 0,
    status: { code: 200, body: {} },
    denied: new Set(),
    ahead: 0,
    controls: undefined,
    apart: new Set(),
  };
}

/** The names of the deployed stacks, by those of the templates. */
export const STACKS = { State: "tidegraph-state", Service: "tidegraph-service" } as const;

interface Asked {
  readonly service: string;
  readonly operation: string;
  readonly parameters: URLSearchParams;
  readonly path: string;
  /** Whether the service has JSON in requests and answers. */
  readonly isJson: boolean;
  readonly body: string;
}

/** An answer: its status, its type and its text. */
type Answer = readonly [code: number, type: string, text: string];

export class Account {
  readonly situation: Situation;
  readonly moto: Moto;
  readonly simulation: Simulation;
  readonly #server: Server;
  #templates: Readonly<Record<string, Template>> = {};
  creation: Creation | undefined;
  /** The caller's secret key, with which requests to the API are to be signed. */
  secret = "test";
  /** Requests to the API whose signature was wrong. */
  readonly unsigned: string[] = [];

  private constructor(moto: Moto, situation: Situation) {
    this.moto = moto;
    this.situation = situation;
    this.simulation = new Simulation(moto.endpoint);
    this.#server = createServer((request, response) => {
      this.#serve(request, response).catch((error: unknown) => {
        response.statusCode = 500;
        response.end(String(error));
      });
    });
  }

  /** Starts an account in the usual situation, but for what is given. The test may change that object later. */
  static async start(given: Partial<Situation>): Promise<Account> {
    const situation = Object.assign(given, { ...usual(), ...given });
    const account = new Account(await Moto.start(), situation);
    await new Promise<void>((done) => account.#server.listen(0, "127.0.0.1", done));
    return account;
  }

  /** Has stacks of these templates. Their resources are made when somebody first asks for them. */
  deploy(templates: Readonly<Record<string, Template>>, creation: Creation): void {
    this.#templates = templates;
    this.creation = creation;
  }

  get endpoint(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async stop(): Promise<void> {
    this.#server.close();
    this.#server.closeAllConnections();
    await this.simulation.destroy();
    await this.moto.stop();
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await read(request);
    const asked = understood(request, body);
    response.setHeader("date", new Date(Date.now() + this.situation.ahead * 1000).toUTCString());
    const own = await this.#own(asked, request);
    if (own !== undefined) {
      const [code, type, text] = own;
      response.writeHead(code, { "content-type": type });
      response.end(text);
      return;
    }
    const answer = await this.#pass(request, body);
    const bytes = await read(answer);
    const isMended = asked.service === "kafka" || asked.service === "ecs";
    let text = isMended ? Buffer.from(this.#mended(bytes.toString())) : bytes;
    if (asked.operation === "DescribeAlarms") text = askedAlarms(text, body);
    for (const [name, value] of Object.entries(answer.headers)) {
      if (!/^(connection|content-length|date|transfer-encoding)$/.test(name) && value !== undefined)
        response.setHeader(name, value);
    }
    response.statusCode = answer.statusCode ?? 500;
    response.end(asked.isJson ? denialAsJson(text) : text);
  }

  /** Passes a request on to moto as it is: it is signed for this server's address. */
  #pass({ headers, method, url }: IncomingMessage, body: Buffer): Promise<IncomingMessage> {
    const { hostname, port } = new URL(this.moto.endpoint);
    return new Promise((done, failed) => {
      const passed = httpRequest({ hostname, port, path: url, method, headers }, done);
      passed.on("error", failed);
      passed.end(body);
    });
  }

  /** moto leaves clusters in the state CREATING, writes times without a zone, and starts no tasks. */
  #mended(text: string): string {
    return text
      .replace(/"creationTime": ?"([^"Z+]+)"/, '"creationTime": "$1Z"')
      .replace(/"state": ?"CREATING"/, `"state": "${this.situation.clusterState}"`)
      .replace(/"runningCount": ?\d+/, `"runningCount": ${this.situation.workers}`)
      .replace(/"pendingCount": ?\d+/, '"pendingCount": 0');
  }

  async #own(asked: Asked, request: IncomingMessage): Promise<Answer | undefined> {
    const { service, operation, path } = asked;
    const { situation } = this;
    const action = `${service}:${operation}`;
    if (situation.denied.has(action)) return refused(asked);
    switch (action) {
      case "cloudformation:DescribeStacks":
      case "cloudformation:ListStackResources":
      case "cloudformation:GetTemplate":
        return this.#ofStacks(asked);
      case "iam:SimulatePrincipalPolicy":
      case "iam:SimulateCustomPolicy":
        return this.#simulated(asked);
      case "servicequotas:GetServiceQuota":
        return this.#quota(JSON.parse(asked.body));
      case "lambda:GetAccountSettings": {
        const { functions } = situation;
        const limit = { ConcurrentExecutions: functions, UnreservedConcurrentExecutions: functions };
        return json({ AccountLimit: limit });
      }
      case "kafka:DescribeTopic": {
        if (situation.topic === undefined)
          return json({ message: "no such topic" }, 404, "NotFoundException");
        const { partitions, copies, configs } = situation.topic;
        return json({
          topicArn: `arn:aws:kafka:${REGION}:${ACCOUNT}:topic/x/y/z`,
          topicName: path.split("/").at(-1),
          partitionCount: partitions,
          replicationFactor: copies,
          configs: Buffer.from(configs).toString("base64"),
          status: "ACTIVE",
        });
      }
      case "kafka:GetBootstrapBrokers":
        return json({ bootstrapBrokerStringSaslIam: "b-1.example:9098,b-2.example:9098" });
      case "kafka:ListConfigurations":
        return json({
          configurations: [...(situation.configurations ?? [])].map(([arn, name]) => ({ arn, name })),
        });
      case "kafka:DeleteConfiguration": {
        const arn = decodeURIComponent(path.split("/configurations/")[1] ?? "");
        const isThere = situation.configurations?.delete(arn) ?? false;
        return isThere ? json({ arn, state: "DELETING" }) : json({}, 404, "NotFoundException");
      }
      case "kafka:DescribeConfigurationRevision":
        return json({
          arn: "arn:configuration",
          revision: 1,
          serverProperties: Buffer.from(situation.brokerSettings).toString("base64"),
        });
      case "apigateway:GetAccount":
        return json({
          ...(situation.gateway.role && { cloudwatchRoleArn: situation.gateway.role }),
          features: [],
        });
      case "apigateway:UpdateAccount": {
        const [{ op, path: what, value } = {}] = JSON.parse(asked.body).patchOperations;
        if (op !== "replace" || what !== "/cloudwatchRoleArn") return json({ message: what }, 400);
        situation.gateway.role = value;
        return json({ features: [] });
      }
      case "apigateway:GetRestApis": {
        const { apis: item } = situation.gateway;
        // Without the header, lists have another form.
        const isPlain = request.headers.accept === "application/json";
        return json(isPlain ? { item } : { _embedded: { item } });
      }
      case "apigateway:GetApis":
        return json({ items: [] });
      case "s3:GetBucketNotification": {
        const told = situation.eventBridge ? "<EventBridgeConfiguration/>" : "";
        const namespace = "http://s3.amazonaws.com/doc/2006-03-01/";
        const text = `<NotificationConfiguration xmlns="${namespace}">${told}</NotificationConfiguration>`;
        return [200, "application/xml", text];
      }
      case "execute-api:Invoke": {
        if (!isSigned(request, this.secret)) {
          this.unsigned.push(path);
          return json({ message: "Missing Authentication Token" }, 403);
        }
        return json(situation.status.body, situation.status.code);
      }
      default:
        return undefined;
    }
  }

  #quota({ ServiceCode, QuotaCode }: { ServiceCode: string; QuotaCode: string }): Answer {
    const { quota, fargate } = this.situation;
    const quotas: Readonly<Record<string, number>> = {
      "ec2/L-1216C47A": quota,
      "fargate/L-3032A538": fargate,
    };
    const Value = quotas[`${ServiceCode}/${QuotaCode}`];
    if (Value === undefined)
      return json({ Message: `no quota ${QuotaCode} of ${ServiceCode}` }, 400, "NoSuchResourceException");
    return json({ Quota: { ServiceCode, QuotaCode, Value } });
  }

  async #simulated({ operation, parameters }: Asked): Promise<Answer> {
    try {
      return xml(operation, await this.simulation.answer(parameters, this.situation), IAM_NAMESPACE);
    } catch (error) {
      if (!(error instanceof Fault)) throw error;
      return [error.status, "text/xml", fault(error.code, error.message, IAM_NAMESPACE)];
    }
  }

  async #ofStacks({ operation, parameters }: Asked): Promise<Answer> {
    const name = parameters.get("StackName") ?? "";
    const [stack] = Object.entries(STACKS).find(([, deployed]) => deployed === name) ?? [];
    if (stack === undefined) {
      const message = `Stack with id ${name} does not exist`;
      return [400, "text/xml", fault("ValidationError", message)];
    }
    const template = this.#templates[stack] as Template;
    if (operation === "GetTemplate")
      return xml(operation, `<TemplateBody>${escaped(JSON.stringify(template))}</TemplateBody>`);
    if (operation === "DescribeStacks") return xml(operation, await this.#described(stack, name, template));
    const members = await Promise.all(
      Object.entries(template.Resources).map(async ([id, { Type }]) => {
        const physical = await this.creation?.physical(stack, id);
        return `<member><LogicalResourceId>${id}</LogicalResourceId><PhysicalResourceId>${escaped(physical ?? id)}</PhysicalResourceId><ResourceType>${Type}</ResourceType><ResourceStatus>CREATE_COMPLETE</ResourceStatus><LastUpdatedTimestamp>2026-01-01T00:00:00Z</LastUpdatedTimestamp></member>`;
      }),
    );
    return xml(operation, `<StackResourceSummaries>${members.join("")}</StackResourceSummaries>`);
  }

  async #described(stack: string, name: string, { Outputs = {} }: Template): Promise<string> {
    const outputs = await Promise.all(
      Object.entries(Outputs).map(async ([key, { Value, Export }]) => {
        const isApi = /Endpoint[0-9A-F]{8}$/.test(key) && !key.includes("Worker");
        const value = isApi ? `${this.endpoint}/graph/` : await this.creation?.value(stack, Value);
        const name = Export && (await this.creation?.value(stack, Export.Name));
        const exported = name === undefined ? "" : `<ExportName>${escaped(String(name))}</ExportName>`;
        return `<member><OutputKey>${key}</OutputKey><OutputValue>${escaped(String(value))}</OutputValue>${exported}</member>`;
      }),
    );
    const { stackStatus, protects } = this.situation;
    return `<Stacks><member><StackName>${name}</StackName><StackId>${stackId(stack)}</StackId><StackStatus>${stackStatus}</StackStatus><EnableTerminationProtection>${protects}</EnableTerminationProtection><CreationTime>2026-01-01T00:00:00Z</CreationTime><Outputs>${outputs.join("")}</Outputs></member></Stacks>`;
  }
}

async function read(request: IncomingMessage): Promise<Buffer<ArrayBuffer>> {
  const parts: Buffer[] = [];
  for await (const part of request) parts.push(part);
  return Buffer.concat(parts);
}

/** Finds out which operation of which service is asked for. */
function understood({ headers, url = "/", method }: IncomingMessage, body: Buffer): Asked {
  const path = new URL(url, "http://localhost").pathname;
  const [, service = ""] = /Credential=[^/]+\/\d+\/[^/]+\/([^/]+)\//.exec(headers.authorization ?? "") ?? [];
  const isQuery = service === "cloudformation" || service === "iam";
  const parameters = new URLSearchParams(isQuery ? body.toString() : "");
  const target =
    String(headers["x-amz-target"] ?? "")
      .split(".")
      .at(-1) ?? "";
  const isJson = String(headers["content-type"]).startsWith("application/x-amz-json");
  const asked = { service, parameters, path, isJson, body: body.toString() };
  if (path.startsWith("/graph/")) return { ...asked, service: "execute-api", operation: "Invoke" };
  if (isQuery) return { ...asked, operation: parameters.get("Action") ?? "" };
  if (service === "apigateway") {
    const own = path === "/account" ? "Account" : path === "/restapis" ? "RestApis" : "Apis";
    return { ...asked, operation: `${method === "PATCH" ? "Update" : "Get"}${own}` };
  }
  if (service === "servicequotas") return { ...asked, operation: target };
  if (service === "monitoring") return { ...asked, operation: target };
  if (service === "lambda" && /\/account-settings\/?$/.test(path))
    return { ...asked, operation: "GetAccountSettings" };
  if (service === "s3" && method === "GET" && /[?&]notification\b/.test(url))
    return { ...asked, operation: "GetBucketNotification" };
  if (service === "kafka" && method === "GET" && path.includes("/topics/"))
    return { ...asked, operation: "DescribeTopic" };
  if (service === "kafka" && /\/configurations(\/[^/]+)?$/.test(path))
    return { ...asked, operation: method === "DELETE" ? "DeleteConfiguration" : "ListConfigurations" };
  if (service === "kafka" && path.endsWith("/bootstrap-brokers"))
    return { ...asked, operation: "GetBootstrapBrokers" };
  if (service === "kafka" && path.includes("/revisions/"))
    return { ...asked, operation: "DescribeConfigurationRevision" };
  return { ...asked, operation: "" };
}

/** moto returns alarms of all types. AWS returns those of the types that are named, and metric alarms if none is. */
function askedAlarms(answer: Buffer<ArrayBuffer>, request: Buffer): Buffer<ArrayBuffer> {
  const { AlarmTypes: types = ["MetricAlarm"] } = JSON.parse(request.toString());
  const found = JSON.parse(answer.toString());
  for (const type of ["MetricAlarm", "CompositeAlarm"]) if (!types.includes(type)) delete found[`${type}s`];
  return Buffer.from(JSON.stringify(found));
}

/** moto refuses in XML, whatever the service speaks. */
function denialAsJson(text: Buffer): Buffer | string {
  const [, code, message] =
    /^<\?xml[\s\S]*<Code>([^<]+)<\/Code>\s*<Message>([^<]+)<\/Message>/.exec(text.toString()) ?? [];
  if (code === undefined) return text;
  return JSON.stringify({ __type: `${code}Exception`, message });
}

const XML_NAMESPACE = "http://cloudformation.amazonaws.com/doc/2010-05-15/";
const IAM_NAMESPACE = "https://iam.amazonaws.com/doc/2010-05-08/";

function xml(operation: string, result: string, namespace = XML_NAMESPACE): Answer {
  const text = `<${operation}Response xmlns="${namespace}"><${operation}Result>${result}</${operation}Result><ResponseMetadata><RequestId>1</RequestId></ResponseMetadata></${operation}Response>`;
  return [200, "text/xml", text];
}

function fault(code: string, message: string, namespace = XML_NAMESPACE): string {
  return `<ErrorResponse xmlns="${namespace}"><Error><Type>Sender</Type><Code>${code}</Code><Message>${escaped(message)}</Message></Error><RequestId>1</RequestId></ErrorResponse>`;
}

function json(body: unknown, code = 200, type?: string): Answer {
  const text = JSON.stringify(type === undefined ? body : { ...(body as object), __type: type });
  return [code, "application/json", text];
}

function refused({ service, operation }: Asked): Answer {
  const message = `User: arn:aws:iam::${ACCOUNT}:user/someone is not authorized to perform: ${service}:${operation} because no identity-based policy allows the ${service}:${operation} action`;
  if (service === "cloudformation") return [403, "text/xml", fault("AccessDenied", message)];
  if (service === "iam") return [403, "text/xml", fault("AccessDenied", message, IAM_NAMESPACE)];
  const name = service === "kafka" ? "ForbiddenException" : "AccessDeniedException";
  return json({ message, Message: message, __type: name }, 403, name);
}

const escaped = (text: string): string =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");

/**
 * Whether a request for the API is signed with a secret key, by AWS's description of signature version 4: as API
 * Gateway would check it.
 */
function isSigned({ headers, method, url = "/" }: IncomingMessage, secret: string): boolean {
  const form =
    /^AWS4-HMAC-SHA256 Credential=[^/]+\/(\d+)\/([^/]+)\/execute-api\/aws4_request, SignedHeaders=([^,]+), Signature=([0-9a-f]{64})$/;
  const [, date = "", region = "", signed = "", signature] = form.exec(headers.authorization ?? "") ?? [];
  if (signature === undefined || region !== REGION) return false;
  const hex = (text: string) => createHash("sha256").update(text).digest("hex");
  const mac = (key: string | Buffer, text: string) => createHmac("sha256", key).update(text).digest();
  const canonical = [
    method,
    url,
    "",
    ...signed.split(";").map((name) => `${name}:${headers[name]}`),
    "",
    signed,
    headers["x-amz-content-sha256"] ?? hex(""),
  ].join("\n");
  const scope = `${date}/${region}/execute-api/aws4_request`;
  const text = ["AWS4-HMAC-SHA256", headers["x-amz-date"], scope, hex(canonical)].join("\n");
  const key = ["execute-api", "aws4_request"].reduce(mac, mac(mac(`AWS4${secret}`, date), region));
  return mac(key, text).toString("hex") === signature;
}
