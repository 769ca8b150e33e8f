/**
 * Clients and frameworks that others wrote for Amazon Neptune, unmodified but for host, port and certificate, against one
 * service without TLS and one with it. Then the tables of `docs/neptune-clients.md` must say what the clients did; the
 * variable `TIDEGRAPH_UPDATE_TABLES` writes them.
 */

import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { load } from "../src/client.ts";
import { dataUri } from "../src/data.ts";
import { type Client, clientTable, lines, variable } from "../src/neptune-clients.ts";
import { Server } from "../src/server.ts";
import { checkTable, markdown } from "../src/tables.ts";

/** Scripts, and the program that runs each. */
const SCRIPTS: readonly (readonly [string, () => string])[] = [
  ["boto3_operations.py", () => variable("TIDEGRAPH_PYTHON_FRAMEWORKS")],
  ["awswrangler_neptune.py", () => variable("TIDEGRAPH_PYTHON_FRAMEWORKS")],
  ["langchain_graphs.py", () => variable("TIDEGRAPH_PYTHON_FRAMEWORKS")],
  ["llama_index_stores.py", () => variable("TIDEGRAPH_PYTHON_FRAMEWORKS")],
  ["mcp_server.py", () => variable("TIDEGRAPH_PYTHON_FRAMEWORKS")],
  ["graph_explorer_requests.mjs", () => process.execPath],
  ["cypher_shell.mjs", () => variable("TIDEGRAPH_CYPHER_SHELL") && process.execPath],
  // Last, because its seeds fill the graph.
  ["graph_notebook_client.py", () => variable("TIDEGRAPH_PYTHON_NOTEBOOK")],
];

/** What the operations of an SDK's model gave: `works`, or a code and a reason. */
interface Operations {
  readonly service: string;
  readonly version: string;
  readonly operations: Readonly<Record<string, string>>;
}

/** One line for each outcome, with all operations that have it. */
function operationTable(all: readonly Operations[]): string {
  const rows: string[][] = [];
  for (const { service, version, operations } of all) {
    const byOutcome = new Map<string, string[]>();
    for (const [name, outcome] of Object.entries(operations)) {
      const shown = outcome.replace(/^(\w+Exception): /, "`$1`: ");
      byOutcome.set(shown, [...(byOutcome.get(shown) ?? []), name]);
    }
    // What works comes first.
    const order = ([outcome]: [string, unknown]) => (outcome === "works" ? "" : outcome);
    const outcomes = [...byOutcome].sort((a, b) => (order(a) < order(b) ? -1 : 1));
    for (const [outcome, names] of outcomes) {
      rows.push([`\`${service}\` ${version}`, outcome, names.map((name) => `\`${name}\``).join(" ")]);
    }
  }
  return markdown(["SDK", "outcome", "operations"], rows);
}

test("clients and frameworks of Neptune", async (t) => {
  const folder = await mkdtemp(join(tmpdir(), "tidegraph-test-"));
  t.after(() => rm(folder, { recursive: true, force: true }));
  const certificate = join(folder, "certificate.pem");
  const plain = await Server.start(t, { args: ["--streams"] });
  const tls = await Server.start(t, { args: ["--listen-tls-self-signed", certificate, "--streams"] });
  const env = {
    // Frameworks want to sign their requests.
    AWS_ACCESS_KEY_ID: "test",
    AWS_SECRET_ACCESS_KEY: "test",
    AWS_REGION: "eu-central-1",
    AWS_DEFAULT_REGION: "eu-central-1",
    AWS_EC2_METADATA_DISABLED: "true",
    AWS_CA_BUNDLE: certificate,
    REQUESTS_CA_BUNDLE: certificate,
    SSL_CERT_FILE: certificate,
    // llama-index has no parameter for the endpoint of Analytics, which puts the graph into the host's name.
    AWS_ENDPOINT_URL_NEPTUNE_GRAPH: plain.endpoint,
    AWS_DISABLE_HOST_PREFIX_INJECTION: "true",
  };
  const args = [plain.endpoint, `https://127.0.0.1:${tls.port}`, dataUri("gremlin/")];
  // The first script loads it over TLS.
  const library = { source: dataUri("gremlin/"), format: "csv" } as const;
  assert.equal((await load(plain, library)).overallStatus.status, "LOAD_COMPLETED");
  const rows: Client[] = [];
  const operations: Operations[] = [];
  for (const [name, program] of SCRIPTS) {
    await t.test(name, async () => {
      for (const line of await lines(name, program(), args, env)) {
        if (Object.hasOwn(line as object, "operations")) operations.push(line as Operations);
        else rows.push(line as Client);
      }
    });
  }
  await t.test("the tables of the document say what the clients did", async () => {
    await checkTable("clients", clientTable(rows));
    await checkTable("operations", operationTable(operations));
  });
});
