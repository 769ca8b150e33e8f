/**
 * Drivers of Neo4j and of TinkerPop in four languages, unmodified, against the service: without a token, with one as the
 * password, and some of them over TLS.
 */

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { python } from "../src/python.ts";
import { Server } from "../src/server.ts";
import { checkTable, markdown } from "../src/tables.ts";

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

/** @param name the class of the program */
function java(name: string): readonly string[] {
  return ["java", "-cp", variable("TIDEGRAPH_JAVA_DRIVERS"), client(`java/${name}.java`)];
}

/** Returns the version that a file pins: the first group of the pattern. */
function pinned(file: string, pattern: RegExp): string {
  const text = readFileSync(fileURLToPath(new URL(`../${file}`, import.meta.url)), "utf8");
  const version = text.match(pattern)?.[1];
  assert.ok(version, `${file} has nothing like ${pattern}`);
  return version;
}

const REQUIREMENTS = "python/requirements.in";
const PACKAGES = "package.json";
const POM = "clients/java/pom.xml";
const MODULES = "clients/go/go.mod";

/** The versions of the drivers. */
const VERSIONS: Readonly<Record<string, string>> = {
  "Neo4j's driver for Python": pinned(REQUIREMENTS, /^neo4j==(.+)$/m),
  "Neo4j's driver for JavaScript": pinned(PACKAGES, /"neo4j-driver": "(.+)"/),
  "Neo4j's driver for Java": pinned(POM, /neo4j-java-driver<\/artifactId>\s*<version>(.+)</),
  "Neo4j's driver for Go": pinned(MODULES, /neo4j-go-driver\/v\d+ v(\S+)/),
  "TinkerPop's driver for Python": pinned(REQUIREMENTS, /^gremlinpython==(.+)$/m),
  "TinkerPop's driver 3.7 for JavaScript": pinned(PACKAGES, /"gremlin": "(.+)"/),
  "TinkerPop's driver 3.8 for JavaScript": pinned(PACKAGES, /"npm:gremlin@(.+)"/),
  "TinkerPop's driver for Java": pinned(POM, /gremlin-driver<\/artifactId>\s*<version>(.+)</),
  "TinkerPop's driver for Go": pinned(MODULES, /gremlin-go\/v\d+ v(\S+)/),
};

const DRIVERS: Readonly<Record<string, () => readonly string[]>> = {
  "Neo4j's driver for Python": () => [python(), client("neo4j_driver.py")],
  "Neo4j's driver for JavaScript": () => [process.execPath, client("neo4j_driver.mjs")],
  "Neo4j's driver for Java": () => java("Neo4jDriver"),
  "Neo4j's driver for Go": () => [join(variable("TIDEGRAPH_GO_CLIENTS"), "neo4j")],
  "TinkerPop's driver for Python": () => [python(), client("gremlin_driver.py")],
  "TinkerPop's driver 3.7 for JavaScript": () => [process.execPath, client("gremlin_driver.mjs"), "gremlin"],
  "TinkerPop's driver 3.8 for JavaScript": () => [
    process.execPath,
    client("gremlin_driver.mjs"),
    "gremlin-3.8",
  ],
  "TinkerPop's driver for Java": () => java("GremlinDriver"),
  "TinkerPop's driver for Go": () => [join(variable("TIDEGRAPH_GO_CLIENTS"), "gremlin")],
};

/** Drivers that take the file of a certificate. */
const OVER_TLS = new Set([
  "Neo4j's driver for Python",
  "Neo4j's driver for JavaScript",
  "TinkerPop's driver for Python",
  "TinkerPop's driver 3.7 for JavaScript",
]);

interface Door {
  readonly name: string;
  readonly token: string;
  readonly tls: boolean;
}

const DOORS: readonly Door[] = [
  { name: "without a password", token: "", tls: false },
  { name: "with a password", token: TOKEN, tls: false },
  { name: "with a password over TLS", token: TOKEN, tls: true },
];

/** The doors through which each driver has worked. */
const passed = new Map<string, string[]>();

for (const [driver, command] of Object.entries(DRIVERS)) {
  for (const { name, token, tls } of DOORS.filter(({ tls }) => !tls || OVER_TLS.has(driver))) {
    test(`${driver} ${name}`, async (t) => {
      const folder = await mkdtemp(join(tmpdir(), "tidegraph-test-"));
      t.after(() => rm(folder, { recursive: true, force: true }));
      const file = join(folder, "token");
      await writeFile(file, `${TOKEN}\n`, { mode: 0o600 });
      const certificate = join(folder, "certificate.pem");
      const args = [
        // A driver reads a million rows as fast as the machine lets it.
        ...["--query-timeout-ms", String(PATIENCE_MS)],
        ...(token ? ["--token-file", file] : []),
        ...(tls ? ["--listen-tls-self-signed", certificate] : []),
      ];
      const server = await Server.start(t, { args });
      const [program = "", ...rest] = command();
      const child = spawn(
        program,
        [...rest, `127.0.0.1:${server.port}`, token, ...(tls ? [certificate] : [])],
        {
          // TinkerPop's driver for JavaScript trusts what Node trusts.
          env: { ...process.env, ...(tls ? { NODE_EXTRA_CA_CERTS: certificate } : {}) },
          stdio: ["ignore", "pipe", "pipe"],
          timeout: PATIENCE_MS,
        },
      );
      let output = "";
      for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk) => (output += chunk));
      const code = await new Promise((done) => child.on("close", done));
      assert.equal(code, 0, output);
      passed.set(driver, [...(passed.get(driver) ?? []), name]);
    });
  }
}

test("the table of the document says what the drivers did", async () => {
  const rows = Object.keys(DRIVERS).map((driver) => [
    driver,
    VERSIONS[driver] ?? "",
    (passed.get(driver) ?? []).join("; "),
  ]);
  await checkTable("drivers", markdown(["driver", "version", "works"], rows));
});
