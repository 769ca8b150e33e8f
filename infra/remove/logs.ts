/** The two requests to CloudWatch Logs, signed here: its client is not among the packages of this repository. */
import { SignatureV4 } from "@smithy/signature-v4";
import { Sha256 } from "../doctor/checks/api.ts";
import type { Clients } from "../doctor/clients.ts";

const ANSWER_MS = 20_000;

export class Logs {
  readonly #clients: Clients;
  readonly #region: string;

  constructor(clients: Clients, region: string) {
    this.#clients = clients;
    this.#region = region;
  }

  /** Returns the names of the log groups that begin with a prefix. */
  async groups(logGroupNamePrefix: string): Promise<string[]> {
    const names: string[] = [];
    let nextToken: string | undefined;
    do {
      const page = await this.#ask("DescribeLogGroups", {
        logGroupNamePrefix,
        ...(nextToken && { nextToken }),
      });
      const groups = (page.logGroups ?? []) as { logGroupName: string }[];
      names.push(...groups.map(({ logGroupName }) => logGroupName));
      nextToken = page.nextToken as string | undefined;
    } while (nextToken);
    return names;
  }

  /** Deletes a log group, unless it is gone already. */
  async delete(logGroupName: string): Promise<void> {
    await this.#ask("DeleteLogGroup", { logGroupName }, "ResourceNotFoundException");
  }

  async #ask(operation: string, input: object, passes?: string): Promise<Record<string, unknown>> {
    const domain = this.#region.startsWith("cn-") ? "amazonaws.com.cn" : "amazonaws.com";
    const { AWS_ENDPOINT_URL_CLOUDWATCH_LOGS: own, AWS_ENDPOINT_URL: all } = process.env;
    const url = new URL(own ?? all ?? `https://logs.${this.#region}.${domain}`);
    const body = JSON.stringify(input);
    const signer = new SignatureV4({
      service: "logs",
      region: this.#region,
      credentials: this.#clients.sts.config.credentials,
      sha256: Sha256,
    });
    const { headers } = await signer.sign({
      method: "POST",
      protocol: url.protocol,
      hostname: url.hostname,
      ...(url.port !== "" && { port: Number(url.port) }),
      path: "/",
      query: {},
      headers: {
        host: url.host,
        "content-type": "application/x-amz-json-1.1",
        "x-amz-target": `Logs_20140328.${operation}`,
      },
      body,
    });
    const signal = AbortSignal.timeout(ANSWER_MS);
    const answer = await fetch(url, { method: "POST", headers, body, redirect: "error", signal });
    const text = await answer.text();
    if (answer.ok) return text === "" ? {} : JSON.parse(text);
    if (passes !== undefined && text.includes(passes)) return {};
    throw new Error(`logs:${operation}: ${answer.status} ${text}`);
  }
}
