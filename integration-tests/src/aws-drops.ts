/** Drops of files into a deployment, and the reports about them. */
import assert from "node:assert/strict";
import { authorization, deployed } from "./aws.ts";
import { eventually } from "./server.ts";

/** Longer than a load of a test's files takes on a busy machine on which each function has to start. */
export const LOAD_MS = 600_000;

/** The parts of a report that the tests use. */
export interface Report {
  readonly loadId: string;
  readonly status: string;
  readonly version?: number | null;
  readonly totalRecords: number;
  readonly totalDuplicates: number;
  readonly parsingErrors: number;
  readonly datatypeMismatchErrors: number;
  readonly insertErrors: number;
  readonly message?: string | null;
  readonly errorLogs: readonly {
    readonly errorMessage: string;
    readonly fileName: string;
    readonly recordNum: number;
    readonly value?: string;
  }[];
}

/** Sends a request about the bucket of drops to S3's REST API. */
export async function s3(method: string, path: string, body?: string): Promise<string> {
  const { drop, endpoint } = deployed();
  const answer = await fetch(`${endpoint}/${drop}${path}`, {
    method,
    headers: { authorization: authorization("s3") },
    ...(body !== undefined && { body }),
  });
  const text = await answer.text();
  assert.ok(answer.ok, `${method} ${path}: ${answer.status} ${text}`);
  return text;
}

export const put = (key: string, content = ""): Promise<string> => s3("PUT", `/${key}`, content);

/** The drops of a graph. */
export class Drops {
  readonly #graph: string;

  constructor(graph: string) {
    this.#graph = graph;
  }

  /** Puts a file of a drop. */
  put(name: string, file: string, content: string): Promise<string> {
    return put(`drop/${this.#graph}/${name}/${file}`, content);
  }

  /** Puts files, and the mark that says that they are complete. */
  async drop(name: string, files: Record<string, string>, mark?: object): Promise<void> {
    for (const [file, content] of Object.entries(files)) await this.put(name, file, content);
    await this.complete(name, mark);
  }

  complete(name: string, mark?: object): Promise<string> {
    return this.put(name, "_SUCCESS", mark === undefined ? "" : JSON.stringify(mark));
  }

  /** Returns the keys of the reports of a drop. */
  async keys(name: string): Promise<string[]> {
    const prefix = encodeURIComponent(`reports/${this.#graph}/${name}/`);
    const listed = await s3("GET", `?list-type=2&prefix=${prefix}`);
    return [...listed.matchAll(/<Key>([^<]+)<\/Key>/g)].map(([, key]) => key ?? "");
  }

  /** Waits for a new report of a drop, besides those in `before`. */
  async report(name: string, before: readonly string[] = []): Promise<Report> {
    const key = await eventually(
      `a report of ${name}`,
      async () => (await this.keys(name)).find((one) => !before.includes(one)),
      LOAD_MS,
    );
    return JSON.parse(await s3("GET", `/${key}`));
  }
}
