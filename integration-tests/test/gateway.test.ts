/**
 * The package `tidegraph-neptune` with boto3, awswrangler, gremlin-python, langchain-aws and graph-notebook, before a
 * server that checks signatures for `execute-api` as Amazon API Gateway does. The table of `docs/neptune-clients.md` must
 * say what the clients did; the variable `TIDEGRAPH_UPDATE_TABLES` writes it.
 */
import assert from "node:assert/strict";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { load } from "../src/client.ts";
import { dataUri } from "../src/data.ts";
import { type Client, clientTable, lines, variable } from "../src/neptune-clients.ts";
import { servePython } from "../src/python.ts";
import { Server } from "../src/server.ts";
import { checkTable } from "../src/tables.ts";

const REGION = "eu-central-1";
const MANIFEST = new URL("../../package.json", import.meta.url);

test("Neptune's clients in Python with signatures for API Gateway", async (t) => {
  const folder = await mkdtemp(join(tmpdir(), "tidegraph-test-"));
  t.after(() => rm(folder, { recursive: true, force: true }));
  const certificate = join(folder, "certificate.pem");
  const server = await Server.start(t);
  const library = { source: dataUri("gremlin/"), format: "csv" } as const;
  assert.equal((await load(server, library)).overallStatus.status, "LOAD_COMPLETED");
  const gateway = await servePython(t, "api_gateway.py", server.endpoint, REGION, certificate);
  const { version } = JSON.parse(await readFile(MANIFEST, "utf8"));
  const env = {
    PYTHONPATH: variable("TIDEGRAPH_NEPTUNE_PACKAGE"),
    TIDEGRAPH_VERSION: version,
    AWS_ACCESS_KEY_ID: "ASIAROLE",
    AWS_SECRET_ACCESS_KEY: "a-secret-of-the-role",
    AWS_SESSION_TOKEN: "a-session-token",
    // Not the region of the API, which its URL tells.
    AWS_REGION: "us-west-2",
    AWS_DEFAULT_REGION: "us-west-2",
    // Neither files of this machine nor its role.
    AWS_CONFIG_FILE: join(folder, "none"),
    AWS_SHARED_CREDENTIALS_FILE: join(folder, "none"),
    AWS_EC2_METADATA_DISABLED: "true",
    AWS_CA_BUNDLE: certificate,
    REQUESTS_CA_BUNDLE: certificate,
  };
  const rows: Client[] = [];
  for (const [name, python] of [
    ["gateway_frameworks.py", "TIDEGRAPH_PYTHON_FRAMEWORKS"],
    ["gateway_notebook.py", "TIDEGRAPH_PYTHON_NOTEBOOK"],
  ] as const) {
    await t.test(name, async () => {
      const written = await lines(name, variable(python), [gateway.line, REGION], env);
      rows.push(...(written as Client[]));
    });
  }
  await t.test("the table of the document says what the clients did", () =>
    checkTable("gateway", clientTable(rows)),
  );
});
