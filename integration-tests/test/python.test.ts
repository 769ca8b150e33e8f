/** Unmodified Python clients against the service. */

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { test } from "node:test";
import { dataUri } from "../src/data.ts";
import { python, script } from "../src/python.ts";
import { Server } from "../src/server.ts";

test("boto3's neptunedata client", async (t) => {
  const server = await Server.start(t, { args: ["--streams"] });
  const args = [script("neptunedata_client.py"), server.endpoint, dataUri("gremlin/")];
  const child = spawn(python(), args, { stdio: ["ignore", "pipe", "pipe"] });
  let output = "";
  child.stdout.on("data", (chunk) => {
    output += chunk;
  });
  child.stderr.on("data", (chunk) => {
    output += chunk;
  });
  const code = await new Promise((done) => child.on("close", done));
  assert.equal(code, 0, output);
});
