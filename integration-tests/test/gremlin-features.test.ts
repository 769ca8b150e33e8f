/** TinkerPop's Gherkin scenarios in bytecode, through gremlin-python over WebSocket. */

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { copyFile, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { fileURLToPath } from "node:url";
import { python, script } from "../src/python.ts";
import { Server } from "../src/server.ts";

/** The graphs that scenarios name. Each has a server of its own. */
const GRAPHS = ["classic", "crew", "empty", "grateful", "modern", "sink"];
const TEXTS = fileURLToPath(
  new URL("../../engine-core/engine/tests/gremlin_features/graphs", import.meta.url),
);

/** Those of the scenarios that presuppose settings of TinkerGraph (`settings.txt`), and the arguments that give them to a graph. */
const OF_TINKERGRAPH = ["empty", "modern"];
const SETTINGS = ["--ids", "typed", "--default-cardinality", "single"];
/** The files that scenarios read, by their names in TinkerPop's distribution, and where its kit has them. */
const FILES = {
  "tinkerpop-modern.json": "graphson/tinkerpop-modern-v3.json",
  "tinkerpop-modern.xml": "graphml/tinkerpop-modern.xml",
  "tinkerpop-modern.kryo": "gryo/tinkerpop-modern-v3.kryo",
};

/** Returns the path that a variable of `npm test` names. */
function kit(variable: string): string {
  const path = process.env[variable];
  assert.ok(path, `${variable} is not set; \`npm test\` sets it`);
  return path;
}

/** Starts the server of a graph, which may read a folder; returns the graph's name and where it is. */
async function start(t: TestContext, name: string, folder: string, graph: string[] = []): Promise<string> {
  const server = await Server.start(t, { graph, loadFrom: [folder] });
  return `${name}=${server.endpoint}`;
}

/** Copies the files that scenarios read into a folder. */
async function files(t: TestContext, features: string): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "tidegraph-features-"));
  t.after(() => rm(folder, { recursive: true }));
  const kit = join(features, "..", "..", "structure", "io");
  await Promise.all(
    Object.entries(FILES).map(([name, from]) => copyFile(join(kit, from), join(folder, name))),
  );
  return folder;
}

/** Runs the scenarios of a version with the Python that has its driver. */
async function run(t: TestContext, program: string, version: string, features: string): Promise<void> {
  const folder = await files(t, features);
  const servers = await Promise.all([
    ...GRAPHS.map((name) => start(t, name, folder)),
    ...OF_TINKERGRAPH.map((name) => start(t, `${name}-of-tinkergraph`, folder, SETTINGS)),
  ]);
  const list = script(`gremlin_features/expected_failures_${version.replace(".", "_")}.txt`);
  const places = [features, kit("GREMLIN_GRATEFUL"), TEXTS, list, folder];
  const args = [script("gremlin_features"), version, ...places, ...servers];
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
