/** Requests to services whose clients are not among the packages of this repository, signed here. */
import { SignatureV4 } from "@smithy/signature-v4";
import { Sha256 } from "../doctor/checks/api.ts";
import type { Clients } from "../doctor/clients.ts";

const ANSWER_MS = 20_000;

/** What is asked of a service. */
export interface Question {
  readonly method: "GET" | "PATCH" | "POST";
  readonly path: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

/** Sends requests to a service in a region. */
export class Signed {
  readonly #url: URL;
  readonly #signer: SignatureV4;

  /**
   * @param service the service as signatures name it, which is its name in the address too
   * @param variable the end of the variable `AWS_ENDPOINT_URL_…` that names another address
   */
  constructor(clients: Clients, region: string, service: string, variable: string) {
    const domain = region.startsWith("cn-") ? "amazonaws.com.cn" : "amazonaws.com";
    const own = process.env[`AWS_ENDPOINT_URL_${variable}`] ?? process.env.AWS_ENDPOINT_URL;
    this.#url = new URL(own ?? `https://${service}.${region}.${domain}`);
    const { credentials } = clients.sts.config;
    this.#signer = new SignatureV4({ service, region, credentials, sha256: Sha256 });
  }

  /** Returns the answer's status and text. */
  async ask({ method, path, query = {}, headers: given = {}, body }: Question): Promise<[number, string]> {
    const { protocol, hostname, port, host } = this.#url;
    const { headers } = await this.#signer.sign({
      ...{ method, protocol, hostname, path, query },
      ...(port !== "" && { port: Number(port) }),
      headers: { host, ...given },
      ...(body !== undefined && { body }),
    });
    const url = new URL(path, this.#url);
    url.search = new URLSearchParams(query).toString();
    const signal = AbortSignal.timeout(ANSWER_MS);
    const request = {
      method,
      headers,
      redirect: "error",
      signal,
      ...(body !== undefined && { body }),
    } as const;
    const answer = await fetch(url, request);
    return [answer.status, await answer.text()];
  }
}
