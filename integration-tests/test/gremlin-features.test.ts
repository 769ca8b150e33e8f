/** TinkerPop's Gherkin scenarios in bytecode, through gremlin-python over WebSocket. */

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { type TestContext, test } from "node:test";
import { fileURLToPath } from "node:url";
import { python, script } from "../src/python.ts";
import { Server } from "../src/server.ts";

/** The graphs that scenarios name. Each has a server of its own. */
const GRAPHS = ["classic", "crew", "empty", "grateful", "modern", "sink"];
const TEXTS = fileURLToPath(
  new URL("../../engine-core/engine/tests/gremlin_features/graphs", import.meta.url),
);

/** Returns the path that a variable of `npm test` names. */
function kit(variable: string): string {
  const path = process.env[variable];
  assert.ok(path, `${variable} is not set; \`npm test\` sets it`);
  return path;
}

/** Starts the server of a graph; returns the graph's name and where it is. */
async function start(t: TestContext, name: string): Promise<string> {
  const server = await Server.start(t);
  return `${name}=${server.endpoint}`;
}

/** Runs the scenarios of a version with the Python that has its driver. */
async function run(t: TestContext, program: string, version: string, features: string): Promise<void> {
  const servers = await Promise.all(GRAPHS.map((name) => start(t, name)));
  const list = script(`gremlin_features/expected_failures_${version.replace(".", "_")}.txt`);
  const files = [features, kit("GREMLIN_GRATEFUL"), TEXTS, list];
  const args = [script("gremlin_features"), version, ...files, ...servers];
  const child = spawn(program, args, { stdio: ["ignore", "pipe", "pipe"] });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.on("data", (chunk) => {
      output += chunk;
    });
  }
  const [code] = await once(child, "close");
  t.diagnostic(output);
  assert.equal(code, 0, output);
}

test("scenarios of 3.7 in the bytecode of gremlin-python 3.7", (t) =>
  run(t, python(), "3.7", kit("GREMLIN_FEATURES")));

test("scenarios of 3.8 in the bytecode of gremlin-python 3.8", (t) =>
  run(t, kit("TIDEGRAPH_PYTHON_GREMLIN_3_8"), "3.8", kit("GREMLIN_3_8_FEATURES")));
