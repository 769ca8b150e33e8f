/** The API: one signed request for `/status`. */
import { createHash, createHmac } from "node:crypto";
import { performance } from "node:perf_hooks";
import { SignatureV4 } from "@smithy/signature-v4";
import type { Context } from "../context.ts";
import { absent, type Check, failed, ok, warning } from "../finding.ts";
import { together } from "./releases.ts";

/** A cold start and a table that is read take some seconds; API Gateway gives up after the function's time limit. */
const PATIENCE_MS = 30_000;
const SLOW_MS = 5_000;
/** Most bytes of an answer that are read. */
const MOST_BYTES = 1 << 20;

/** SHA-256 of Node in the form that the signer needs. */
export class Sha256 {
  readonly #hash;

  constructor(secret?: string | ArrayBuffer | ArrayBufferView) {
    this.#hash = secret === undefined ? createHash("sha256") : createHmac("sha256", bytesOf(secret));
  }

  update(data: string | ArrayBuffer | ArrayBufferView): void {
    this.#hash.update(bytesOf(data));
  }

  async digest(): Promise<Uint8Array> {
    return this.#hash.digest();
  }

  reset(): void {}
}

function bytesOf(data: string | ArrayBuffer | ArrayBufferView): Uint8Array {
  if (typeof data === "string") return Buffer.from(data);
  return ArrayBuffer.isView(data)
    ? new Uint8Array(data.buffer, data.byteOffset, data.byteLength)
    : new Uint8Array(data);
}

const status: Check = {
  id: "api.status",
  actions: ["execute-api:Invoke"],
  async look(context) {
    const endpoint = context.deployment.output("Endpoint");
    if (endpoint === undefined) return absent("none of the stacks has an API");
    const url = new URL("status", endpoint.endsWith("/") ? endpoint : `${endpoint}/`);
    const began = performance.now();
    const rest = {
      subject: url.href,
      wanted: "200, healthy",
      remedy: "the log groups access and query say why; docs/runbook.md#apierrors",
    };
    let answer: Awaited<ReturnType<typeof get>>;
    try {
      answer = await get(context, url);
    } catch (error) {
      return failed(`no answer: ${reasonOf(error)}`, rest);
    }
    const took = Math.round(performance.now() - began);
    const { code, text } = answer;
    if (code === 403 && /not authorized/i.test(text)) {
      return {
        status: "unknown",
        subject: url.href,
        seen: "the caller may not execute-api:Invoke",
        wanted: "a policy that allows execute-api:Invoke",
        remedy: "service.grantQuery(role), or add the policy that --policy prints to the caller's role",
        denied: "execute-api:Invoke",
      };
    }
    const { status, dbEngineVersion: release = "?" } = parsed(text);
    const seen = `${code}, ${status ?? text.slice(0, 200)}, release ${release}, ${took} ms`;
    if (code !== 200 || status === undefined) return failed(`${code}: ${text.slice(0, 200)}`, rest);
    if (status !== "healthy") return failed(seen, rest);
    if (!together(line(release), line(context.release)))
      return warning(seen, {
        ...rest,
        wanted: `a release that works with ${context.release}`,
        remedy: "install the package @tidegraph/cdk of the release of the deployment, and look again",
      });
    if (took > SLOW_MS) {
      return warning(seen, {
        ...rest,
        wanted: `an answer within ${SLOW_MS} ms`,
        remedy:
          "look again: a first request starts the function. Otherwise see the log group query (Init Duration, Duration)",
      });
    }
    return ok(seen, url.href);
  },
};

const line = (release: string): string => release.split(".").slice(0, 2).join(".");

async function get({ clients, region }: Context, url: URL): Promise<{ code: number; text: string }> {
  const signer = new SignatureV4({
    service: "execute-api",
    region,
    // Those of the other requests.
    credentials: clients.sts.config.credentials,
    sha256: Sha256,
  });
  const { headers } = await signer.sign({
    method: "GET",
    protocol: url.protocol,
    hostname: url.hostname,
    ...(url.port !== "" && { port: Number(url.port) }),
    path: url.pathname,
    query: {},
    headers: { host: url.host },
  });
  const answer = await fetch(url, { headers, redirect: "error", signal: AbortSignal.timeout(PATIENCE_MS) });
  return { code: answer.status, text: await beginning(answer) };
}

/** Reads an answer up to a limit. */
async function beginning(answer: Response): Promise<string> {
  const parts: Uint8Array[] = [];
  let bytes = 0;
  for await (const part of answer.body ?? []) {
    parts.push(part);
    bytes += part.byteLength;
    if (bytes > MOST_BYTES) break;
  }
  return Buffer.concat(parts).toString();
}

function parsed(text: string): { status?: string; dbEngineVersion?: string } {
  try {
    const body = JSON.parse(text);
    return typeof body === "object" && body !== null ? body : {};
  } catch {
    return {};
  }
}

function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { cause } = error;
  return cause instanceof Error ? `${error.message}: ${cause.message}` : error.message;
}

export const API: readonly Check[] = [status];
