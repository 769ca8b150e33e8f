/** A bucket in memory for tests, with the order of keys and the pages of S3. */
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { contractPath } from "../../../../contracts/src/paths.ts";
import { loadSchemas } from "../../../../contracts/src/validate.ts";
import type { Below, Objects, Page } from "../src/objects.ts";

export class Memory implements Objects {
  readonly bucket: string;
  readonly kept = new Map<string, { content: string; modified: Date }>();
  /** Number of requests so far. */
  requests = 0;
  private readonly pageSize: number;

  constructor(bucket: string, pageSize = 1000) {
    this.bucket = bucket;
    this.pageSize = pageSize;
  }

  /** Stores an object. */
  put(key: string, content = "", modified = new Date(0)): void {
    checkKey(key);
    this.kept.set(key, { content, modified });
  }

  /** Returns the JSON of an object. */
  json(key: string): Record<string, unknown> {
    return JSON.parse(this.kept.get(key)?.content ?? "null");
  }

  async etag(key: string): Promise<string | undefined> {
    this.requests += 1;
    checkKey(key);
    const content = this.kept.get(key)?.content;
    return content === undefined ? undefined : createHash("md5").update(content).digest("hex");
  }

  async read(key: string, most: number): Promise<Uint8Array | "tooLarge" | undefined> {
    this.requests += 1;
    const content = this.kept.get(key)?.content;
    if (content === undefined) return undefined;
    const bytes = Buffer.from(content, "latin1");
    return bytes.length > most ? "tooLarge" : bytes;
  }

  async list({ prefix, folders, after = "", next }: Below): Promise<Page> {
    this.requests += 1;
    const keys = [...this.kept.keys()].toSorted().filter((key) => key.startsWith(prefix) && key > after);
    const names = keys.map((key) => {
      const slash = key.indexOf("/", prefix.length);
      return folders && slash >= 0 ? key.slice(0, slash + 1) : key;
    });
    const all = [...new Set(names)];
    const from = next === undefined ? 0 : all.indexOf(next);
    const page = all.slice(from, from + this.pageSize);
    return {
      objects: page
        .filter((name) => this.kept.has(name))
        .map((key) => ({ key, modified: this.kept.get(key)?.modified ?? new Date(0) })),
      folders: page.filter((name) => !this.kept.has(name)),
      next: all[from + this.pageSize],
    };
  }

  async write(key: string, content: string): Promise<void> {
    this.put(key, content);
  }

  async writeOnce(key: string, content: string): Promise<boolean> {
    if (this.kept.has(key)) return false;
    this.put(key, content);
    return true;
  }
}

/** Refuses a key that S3 refuses, also of an object that does not exist. */
function checkKey(key: string): void {
  const bytes = Buffer.byteLength(key);
  if (bytes > 1024) throw new Error(`KeyTooLongError: ${bytes} bytes`);
}

/** The golden examples, which the tests of Rust and of the schemas use too. */
export const golden: Record<string, unknown[]> = JSON.parse(
  readFileSync(contractPath("golden/ingest.json"), "utf8"),
);

const schemas = loadSchemas({ strict: true });

/** Returns why a schema refuses a value, or nothing if it accepts the value. */
export function problem(name: string, value: unknown): string | undefined {
  const check = schemas.getSchema(`${name}.schema.json`);
  if (check === undefined) throw new Error(`there is no schema ${name}`);
  return check(value) ? undefined : `${JSON.stringify(value)}: ${JSON.stringify(check.errors)}`;
}
