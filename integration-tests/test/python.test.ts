/** Real Python clients, unmodified, against the service. */

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { dataUri } from "../src/data.ts";
import { Server } from "../src/server.ts";

const python = process.env.TIDEGRAPH_PYTHON;
const skip = python ? false : "TIDEGRAPH_PYTHON names no Python; `npm test` makes one";

test("boto3's neptunedata client", { skip }, async (t) => {
  const server = await Server.start(t);
  const script = fileURLToPath(new URL("../python/neptunedata_client.py", import.meta.url));
  const child = spawn(python ?? "", [script, server.endpoint, dataUri("gremlin/")], {
    stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  child.stdout.on("data", (chunk) => {
    output += chunk;
  });
  child.stderr.on("data", (chunk) => {
    output += chunk;
  });
  const code = await new Promise((done) => child.on("exit", done));
  assert.equal(code, 0, output);
});
