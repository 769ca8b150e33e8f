/**
 * The role with which API Gateway writes logs. An account has one in each region for all its APIs, and each creation of a
 * service makes another one, so that deleted stacks leave some. One that API Gateway does not use is removed. One that it
 * uses is removed, too, and out of its settings, unless the region has other APIs.
 */
import * as iam from "@aws-sdk/client-iam";
import type { Clients } from "../doctor/clients.ts";
import { LOGS_REGION, TAG } from "../lib/names.ts";
import { type Remain, type Search, unlessGone } from "./remains.ts";
import { type Question, Signed } from "./signed.ts";

const KIND = "role of API Gateway's logs";
const PRINCIPAL = "apigateway.amazonaws.com";

/** Returns the roles that may be removed, and tells which one has to stay. */
export async function logsRoles({ clients, region, name, say }: Search): Promise<Remain[]> {
  const ours = await rolesOf(clients.iam, name, region);
  if (ours.length === 0) return [];
  const gateway = new Gateway(clients, region);
  const used = await gateway.role();
  const found: Remain[] = [];
  for (const { Arn, RoleName = "" } of ours) {
    const isUsed = Arn === used;
    if (isUsed && (await gateway.hasApis())) {
      say(`the role ${RoleName} stays: API Gateway writes the logs of other APIs in ${region} with it`);
      continue;
    }
    const remove = async (): Promise<void> => {
      if (isUsed) await gateway.forget();
      await unlessGone(() => removeRole(clients.iam, RoleName));
    };
    found.push({ kind: KIND, id: RoleName, remove });
  }
  return found;
}

/** Returns the roles for API Gateway that have the tags of the deployment and the region. */
async function rolesOf(client: iam.IAMClient, name: string, region: string): Promise<iam.Role[]> {
  const found: iam.Role[] = [];
  for await (const { Roles = [] } of iam.paginateListRoles({ client }, {})) {
    for (const role of Roles) {
      if (!decodeURIComponent(role.AssumeRolePolicyDocument ?? "").includes(PRINCIPAL)) continue;
      const asked = new iam.ListRoleTagsCommand({ RoleName: role.RoleName });
      const { Tags = [] } = await client.send(asked);
      const has = (key: string, value: string) => Tags.some((tag) => tag.Key === key && tag.Value === value);
      if (has(TAG, name) && has(LOGS_REGION, region)) found.push(role);
    }
  }
  return found;
}

async function removeRole(client: iam.IAMClient, RoleName: string): Promise<void> {
  const { AttachedPolicies = [] } = await client.send(new iam.ListAttachedRolePoliciesCommand({ RoleName }));
  for (const { PolicyArn } of AttachedPolicies)
    await unlessGone(() => client.send(new iam.DetachRolePolicyCommand({ RoleName, PolicyArn })));
  await client.send(new iam.DeleteRoleCommand({ RoleName }));
}

/** The settings and APIs of API Gateway in a region. */
class Gateway {
  readonly #signed: Signed;

  constructor(clients: Clients, region: string) {
    this.#signed = new Signed(clients, region, "apigateway", "API_GATEWAY");
  }

  /** Returns the ARN of the role with which it writes logs. */
  async role(): Promise<string | undefined> {
    const { cloudwatchRoleArn } = await this.#ask("GetAccount", { method: "GET", path: "/account" });
    return (cloudwatchRoleArn as string | undefined) || undefined;
  }

  /** Returns whether the region has an API of any kind. */
  async hasApis(): Promise<boolean> {
    const rest = { method: "GET", path: "/restapis", query: { limit: "1" } } as const;
    if (hasItems((await this.#ask("GetRestApis", rest)).item)) return true;
    const others = { method: "GET", path: "/v2/apis", query: { maxResults: "1" } } as const;
    return hasItems((await this.#ask("GetApis", others)).items);
  }

  /** Takes the role out of the settings. */
  async forget(): Promise<void> {
    const patchOperations = [{ op: "replace", path: "/cloudwatchRoleArn", value: "" }];
    const body = JSON.stringify({ patchOperations });
    await this.#ask("UpdateAccount", { method: "PATCH", path: "/account", body });
  }

  async #ask(operation: string, question: Question): Promise<Record<string, unknown>> {
    // Lists have another form otherwise (HAL).
    const headers = { accept: "application/json", "content-type": "application/json" };
    const [status, text] = await this.#signed.ask({ ...question, headers });
    if (status < 300) return JSON.parse(text);
    throw new Error(`apigateway:${operation}: ${status} ${text}`);
  }
}

function hasItems(list: unknown): boolean {
  return Array.isArray(list) && list.length > 0;
}
