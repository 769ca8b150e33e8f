/**
 * The deployment that the tests of `aws/` use. `aws/deploy.mjs` creates it and passes its description. Without it the
 * tests fail, so that they cannot run by accident.
 */
import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { python, script } from "./python.ts";

/** The region that LocalStack claims. */
export const REGION = "eu-west-3";

/** Description of the deployment. */
export interface Deployed {
  /** The URL of the REST API, with its stage. */
  readonly api: string;
  /** The folder with the files of Air Routes. */
  readonly airRoutes: string;
  /** The endpoint of LocalStack, for all services. */
  readonly endpoint: string;
  /** The drop bucket. */
  readonly drop: string;
  /** The table of the partition map. */
  readonly table: string;
  /** The output of the query function's environments, one file for each. */
  readonly functionLogs: string;
  /** The folder with the templates. */
  readonly templates: string;
  /** Secrets that must not occur in any log. */
  readonly secrets: readonly string[];
  /** The graphs; the first one has the paths without a name. */
  readonly graphs: readonly string[];
  /** Graphs that were taken out of the deployment. */
  readonly taken: readonly string[];
  /** The folder in which the broker has its topics. */
  readonly topics: string;
  /** ARNs of the state machines. */
  readonly machines: Readonly<Record<string, string>>;
  /** The storage nodes' processes, with the ports at which they serve the fleet and their metrics. */
  readonly nodes: readonly {
    readonly name: string;
    readonly pid: number;
    readonly fleetPort: number;
    readonly metricsPort: number;
    /** The ARN of the secret with their certificates, if they have any. */
    readonly certificates?: string;
  }[];
  /** The function that issues certificates, and the secrets that it writes, if connections are encrypted. */
  readonly certificates?: Readonly<
    Record<"function" | "authority" | "nodes" | "workers" | "functions", string>
  >;
}

/** Returns the description of the deployment. */
export function deployed(): Deployed {
  const { TIDEGRAPH_AWS: text } = process.env;
  assert.ok(text, "TIDEGRAPH_AWS says where the deployment is; `npm run aws` makes one");
  return JSON.parse(text) as Deployed;
}

/** An answer of the API. */
export interface Answer {
  readonly status: number;
  /** Headers by name, in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** Sends requests one after another, signed by botocore. */
export class Signer {
  readonly #child: ChildProcess;
  readonly #answers: AsyncIterator<string>;

  constructor(api: string) {
    this.#child = spawn(python(), [script("signed_requests.py"), api, REGION], {
      stdio: ["pipe", "pipe", "inherit"],
    });
    assert.ok(this.#child.stdout);
    this.#answers = createInterface({ input: this.#child.stdout })[Symbol.asyncIterator]();
  }

  /** Sends a POST with JSON, or a GET if there is no body. */
  async ask(path: string, body?: object, headers: Record<string, string> = {}): Promise<Answer> {
    const json = { "content-type": "application/json", ...headers };
    const request =
      body === undefined
        ? { method: "GET", path, headers }
        : { method: "POST", path, headers: json, body: JSON.stringify(body) };
    this.#child.stdin?.write(`${JSON.stringify(request)}\n`);
    const { value, done } = await this.#answers.next();
    assert.ok(!done, "the signer has ended");
    return JSON.parse(value) as Answer;
  }

  end(): void {
    this.#child.stdin?.end();
  }
}

/** Sends a request to one of LocalStack's services that use JSON. */
export async function ask(service: string, target: string, body: object): Promise<Answer> {
  const answer = await fetch(deployed().endpoint, {
    method: "POST",
    headers: {
      "content-type": "application/x-amz-json-1.0",
      "x-amz-target": target,
      authorization: authorization(service),
    },
    body: JSON.stringify(body),
  });
  return { status: answer.status, headers: Object.fromEntries(answer.headers), body: await answer.text() };
}

/** Converts an item of DynamoDB to plain values. */
export function plainItem(attributes: Readonly<Record<string, Attribute>>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(attributes).map(([name, value]) => [name, plainAttribute(value)]));
}

/** An attribute with its type, restricted to the types that our items have. */
type Attribute =
  | { readonly S: string }
  | { readonly N: string }
  | { readonly BOOL: boolean }
  | { readonly L: readonly Attribute[] }
  | { readonly M: Readonly<Record<string, Attribute>> };

function plainAttribute(value: Attribute): unknown {
  if ("S" in value) return value.S;
  if ("N" in value) return Number(value.N);
  if ("BOOL" in value) return value.BOOL;
  if ("L" in value) return value.L.map(plainAttribute);
  if ("M" in value) return plainItem(value.M);
  throw new Error(`an attribute of another type: ${JSON.stringify(value)}`);
}

/** Returns a header that names the service of a request. LocalStack does not verify the signature. */
export function authorization(service: string): string {
  const scope = `000000000000/20260101/${REGION}/${service}/aws4_request`;
  return `AWS4-HMAC-SHA256 Credential=${scope}, SignedHeaders=host, Signature=0`;
}
