/**
 * IAM's simulation of policies, which moto does not have, in front of the policies that moto's IAM stores. Requests and
 * answers have the forms of AWS's reference of `SimulatePrincipalPolicy` and `SimulateCustomPolicy`; `test/evaluation.ts`
 * decides.
 */
import assert from "node:assert/strict";
import * as iam from "@aws-sdk/client-iam";
import { type Document, type Evaluation, evaluate, type Policy, type Request } from "../test/evaluation.ts";
import { REGION } from "./create.ts";

/** What is outside of the account, and what IAM refuses. */
export interface Organization {
  /** The service control policy of the organization, besides the one that allows everything. */
  controls: Document | undefined;
  /** Actions that IAM simulates only alone. */
  apart: ReadonlySet<string>;
}

const EVERYTHING: Document = { Statement: { Effect: "Allow", Action: "*", Resource: "*" } };

/** Policies that decide about requests. */
interface Policies {
  readonly identity: readonly Policy[];
  readonly boundary?: Policy;
  readonly controls?: Document | undefined;
}

/** What an answer says of one request. */
interface Decided {
  readonly evaluation: Evaluation;
  readonly isWithinBoundary?: boolean;
  readonly isWithinControls?: boolean;
}

/** An answer that is a fault: its status, its code and its message. */
export class Fault extends Error {
  readonly status: number;
  readonly code: string;

  constructor(status: number, code: string, message: string) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

export class Simulation {
  readonly #endpoint: string;
  #reader: Promise<iam.IAMClient> | undefined;
  /** The policies of roles, by their ARNs, since the test has last said that it changed some. */
  readonly #known = new Map<string, Promise<Policies>>();
  /** How many simulations were asked for. */
  asked = 0;

  constructor(endpoint: string) {
    this.#endpoint = endpoint;
  }

  async destroy(): Promise<void> {
    (await this.#reader)?.destroy();
  }

  /** Reads the roles again. */
  forget(): void {
    this.#known.clear();
  }

  /** Returns the element `…Result` of an answer. What IAM would refuse is thrown as `Fault`. */
  async answer(parameters: URLSearchParams, { controls, apart }: Organization): Promise<string> {
    this.asked += 1;
    const actions = members(parameters, "ActionNames");
    const alone = actions.filter((action) => apart.has(action));
    if (alone.length > 0 && actions.length > 1) {
      const others = actions.filter((action) => !apart.has(action));
      const message = `Invalid Input Actions: [${alone}] and [${others}] require different authorization information.`;
      throw new Fault(400, "InvalidInput", message);
    }
    const source = parameters.get("PolicySourceArn");
    const given = members(parameters, "PolicyInputList").map((text, at) =>
      policy(`PolicyInputList.${at + 1}`, text),
    );
    const policies: Policies =
      source === null ? { identity: given } : { ...(await this.#policiesOf(source)), controls };
    const resources = members(parameters, "ResourceArns");
    const context = contextIn(parameters);
    const results = actions.map((action) => result(policies, { action, context }, resources));
    return `<IsTruncated>false</IsTruncated><EvaluationResults>${results.join("")}</EvaluationResults>`;
  }

  /** Returns a client that may read everything when moto enforces policies too. */
  async #makeReader(): Promise<iam.IAMClient> {
    const options = { endpoint: this.#endpoint, region: REGION };
    const credentials = { accessKeyId: "test", secretAccessKey: "test" };
    const client = new iam.IAMClient({ ...options, credentials });
    const UserName = "simulation";
    await client.send(new iam.CreateUserCommand({ UserName }));
    const PolicyDocument = JSON.stringify({ Version: "2012-10-17", Statement: [EVERYTHING.Statement] });
    const given = { UserName, PolicyName: "all", PolicyDocument };
    await client.send(new iam.PutUserPolicyCommand(given));
    const { AccessKey } = await client.send(new iam.CreateAccessKeyCommand({ UserName }));
    client.destroy();
    const { AccessKeyId: accessKeyId = "", SecretAccessKey: secretAccessKey = "" } = AccessKey ?? {};
    return new iam.IAMClient({ ...options, credentials: { accessKeyId, secretAccessKey } });
  }

  #policiesOf(arn: string): Promise<Policies> {
    const known = this.#known.get(arn) ?? this.#read(arn);
    this.#known.set(arn, known);
    return known;
  }

  /** Reads the policies of a role as moto has them. */
  async #read(arn: string): Promise<Policies> {
    this.#reader ??= this.#makeReader();
    const client = await this.#reader;
    const RoleName = arn.split("/").at(-1) ?? "";
    const { Role } = await client.send(new iam.GetRoleCommand({ RoleName })).catch((error: unknown) => {
      if (!(error instanceof iam.NoSuchEntityException)) throw error;
      throw new Fault(404, "NoSuchEntity", `The role with name ${RoleName} cannot be found.`);
    });
    assert.equal(Role?.Arn, arn);
    const { PolicyNames = [] } = await client.send(new iam.ListRolePoliciesCommand({ RoleName }));
    const inline = PolicyNames.map(async (PolicyName): Promise<Policy> => {
      const found = await client.send(new iam.GetRolePolicyCommand({ RoleName, PolicyName }));
      return policy(`role_${RoleName}_${PolicyName}`, decodeURIComponent(found.PolicyDocument ?? ""));
    });
    const boundary = Role?.PermissionsBoundary?.PermissionsBoundaryArn;
    return {
      identity: await Promise.all(inline),
      ...(boundary && { boundary: await managed(client, boundary) }),
    };
  }
}

/** Reads a managed policy. */
async function managed(client: iam.IAMClient, PolicyArn: string): Promise<Policy> {
  const { Policy: found } = await client.send(new iam.GetPolicyCommand({ PolicyArn }));
  const VersionId = found?.DefaultVersionId;
  const { PolicyVersion } = await client.send(new iam.GetPolicyVersionCommand({ PolicyArn, VersionId }));
  return policy(PolicyArn, decodeURIComponent(PolicyVersion?.Document ?? ""));
}

const policy = (name: string, text: string): Policy => ({ name, document: JSON.parse(text) });

/** Returns a list of the query protocol: `NAME.member.1` and so on. */
function members(parameters: URLSearchParams, name: string): string[] {
  const found: string[] = [];
  for (let at = 1; ; at += 1) {
    const one = parameters.get(`${name}.member.${at}`);
    if (one === null) return found;
    found.push(one);
  }
}

function contextIn(parameters: URLSearchParams): Map<string, string[]> {
  const context = new Map<string, string[]>();
  for (let at = 1; ; at += 1) {
    const entry = `ContextEntries.member.${at}`;
    const key = parameters.get(`${entry}.ContextKeyName`);
    if (key === null) return context;
    assert.match(parameters.get(`${entry}.ContextKeyType`) ?? "", /^(string|stringList|boolean)$/);
    context.set(key.toLowerCase(), members(parameters, `${entry}.ContextKeyValues`));
  }
}

function decide({ identity, boundary, controls }: Policies, request: Request): Decided {
  const parts: { isWithinBoundary?: boolean; isWithinControls?: boolean } = {};
  if (controls !== undefined) {
    const all = [EVERYTHING, controls].map((document) => ({ name: "", document }));
    const { decision } = evaluate(all, request);
    parts.isWithinControls = decision === "allowed";
    // The evaluation ends here, and names no policies of the organization.
    if (decision !== "allowed") return { ...parts, evaluation: { decision, policies: [], missing: [] } };
  }
  const own = evaluate(identity, request);
  if (boundary === undefined) return { ...parts, evaluation: own };
  const limit = evaluate([boundary], request);
  parts.isWithinBoundary = limit.decision === "allowed";
  const missing = [...new Set([...own.missing, ...limit.missing])];
  const decides = own.decision === "allowed" ? limit : own;
  const policies = own.decision === limit.decision ? own.policies : decides.policies;
  return { ...parts, evaluation: { ...decides, policies, missing } };
}

/** The result of one action, with a part for each resource if there were any in the request. */
function result(
  policies: Policies,
  { action, context }: Omit<Request, "resource">,
  resources: readonly string[],
): string {
  const about = resources.length > 0 ? resources : ["*"];
  const decided = about.map((resource) => decide(policies, { action, resource, context }));
  const strictest =
    ["explicitDeny", "implicitDeny"].find((one) =>
      decided.some(({ evaluation }) => evaluation.decision === one),
    ) ?? "allowed";
  const whole = decided.find(({ evaluation }) => evaluation.decision === strictest);
  assert.ok(whole);
  const parts = resources.map((resource, at) => {
    const part = decided[at];
    assert.ok(part);
    const decision = `<EvalResourceDecision>${part.evaluation.decision}</EvalResourceDecision>`;
    return `<member>${details(part)}${decision}<EvalResourceName>${escaped(resource)}</EvalResourceName></member>`;
  });
  const isWithin = whole.isWithinControls;
  const organization =
    isWithin === undefined
      ? ""
      : `<OrganizationsDecisionDetail><AllowedByOrganizations>${isWithin}</AllowedByOrganizations></OrganizationsDecisionDetail>`;
  // AWS documents the form of an ARN here, and not the ARN that was asked about.
  const template = `arn:\${Partition}:${action.split(":")[0]}:\${Region}:\${Account}:\${Resource}`;
  const specific =
    parts.length > 0 ? `<ResourceSpecificResults>${parts.join("")}</ResourceSpecificResults>` : "";
  return `<member><EvalDecisionDetails/>${organization}${details(whole)}<EvalResourceName>${template}</EvalResourceName><EvalDecision>${strictest}</EvalDecision><EvalActionName>${action}</EvalActionName>${specific}</member>`;
}

function details({ evaluation, isWithinBoundary }: Decided): string {
  const position = (at: number) => `<Line>1</Line><Column>${at}</Column>`;
  const statements = evaluation.policies.map(
    (name) =>
      `<member><SourcePolicyId>${escaped(name)}</SourcePolicyId><SourcePolicyType>IAM Policy</SourcePolicyType><StartPosition>${position(1)}</StartPosition><EndPosition>${position(9)}</EndPosition></member>`,
  );
  const missing = evaluation.missing.map((key) => `<member>${escaped(key)}</member>`);
  const boundary =
    isWithinBoundary === undefined
      ? ""
      : `<PermissionsBoundaryDecisionDetail><AllowedByPermissionsBoundary>${isWithinBoundary}</AllowedByPermissionsBoundary></PermissionsBoundaryDecisionDetail>`;
  return `${boundary}<MatchedStatements>${statements.join("")}</MatchedStatements><MissingContextValues>${missing.join("")}</MissingContextValues>`;
}

const escaped = (text: string): string => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
