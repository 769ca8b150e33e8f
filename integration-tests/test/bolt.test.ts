/** Neo4j's drivers of four languages, unmodified, against the service: without a token, and with one as the password. */

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { python } from "../src/python.ts";
import { Server } from "../src/server.ts";

/** Longest time of one driver's checks; generous, since other programs may keep the machine busy. */
const PATIENCE_MS = 600_000;
const TOKEN = "a token for drivers";

function client(name: string): string {
  return fileURLToPath(new URL(`../clients/${name}`, import.meta.url));
}

function variable(name: string): string {
  const value = process.env[name];
  assert.ok(value, `${name} is missing; \`npm test\` sets it`);
  return value;
}

const DRIVERS: Readonly<Record<string, () => readonly string[]>> = {
  Python: () => [python(), client("neo4j_driver.py")],
  JavaScript: () => [process.execPath, client("neo4j_driver.mjs")],
  Java: () => ["java", "-cp", variable("TIDEGRAPH_JAVA_DRIVERS"), client("java/Neo4jDriver.java")],
  Go: () => [variable("TIDEGRAPH_GO_CLIENT")],
};

for (const [language, command] of Object.entries(DRIVERS)) {
  for (const token of ["", TOKEN]) {
    test(`Neo4j's driver for ${language} ${token ? "with" : "without"} a password`, async (t) => {
      const folder = await mkdtemp(join(tmpdir(), "tidegraph-test-"));
      t.after(() => rm(folder, { recursive: true, force: true }));
      const file = join(folder, "token");
      await writeFile(file, `${TOKEN}\n`, { mode: 0o600 });
      const server = await Server.start(t, { args: token ? ["--token-file", file] : [] });
      const [program = "", ...rest] = command();
      const child = spawn(program, [...rest, `127.0.0.1:${server.port}`, token], {
        stdio: ["ignore", "pipe", "pipe"],
        timeout: PATIENCE_MS,
      });
      let output = "";
      for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk) => (output += chunk));
      const code = await new Promise((done) => child.on("close", done));
      assert.equal(code, 0, output);
    });
  }
}
