/** The two requests to CloudWatch Logs. */
import type { Clients } from "../doctor/clients.ts";
import { Signed } from "./signed.ts";

export class Logs {
  readonly #signed: Signed;

  constructor(clients: Clients, region: string) {
    this.#signed = new Signed(clients, region, "logs", "CLOUDWATCH_LOGS");
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
    const [status, text] = await this.#signed.ask({
      method: "POST",
      path: "/",
      headers: {
        "content-type": "application/x-amz-json-1.1",
        "x-amz-target": `Logs_20140328.${operation}`,
      },
      body: JSON.stringify(input),
    });
    if (status < 300) return text === "" ? {} : JSON.parse(text);
    if (passes !== undefined && text.includes(passes)) return {};
    throw new Error(`logs:${operation}: ${status} ${text}`);
  }
}
