/** Drivers that others wrote, in languages whose packages neither npm nor pip has: Java's from Maven Central, Go's from its proxy. */
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { chmodSync, readdirSync, writeFileSync } from "node:fs";
import { arch, platform } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { installed, jars } from "./installed.mjs";
import { root, run } from "./run.mjs";

const clients = join(root, "integration-tests", "clients");

/** The programs that use Go's drivers. */
const GO_CLIENTS = ["gremlin", "neo4j"];
const GO_VERSION = "1.26.8";
/** SHA-256 of Go's own module of the toolchain, by system. */
const GO_HASHES = {
  "linux-amd64": "30c2b1bf7dcc88d3eb0a1364e47ddd9128edb3110a30e8a0ef61cd5856b31de7",
  "linux-arm64": "02b36b6787b3ac767668f630e2998df45a3b1f9ffee08d1bf3ef6487cd658d99",
  "darwin-amd64": "fe99a2009e5bb51e06d7784f1a486478673512041c2671157bd382806e2aedcf",
  "darwin-arm64": "0aad5fb52b88498885290178adc0bcfe429bc63012621af9f83282eb640bd9c7",
};
/** The oldest Go that the driver is built with. */
const OLDEST_GO = [1, 24];

/**
 * Installs the drivers, unless they are installed.
 *
 * @returns {Promise<Record<string, string>>} Variables that tell the tests where they are.
 */
export async function drivers() {
  const [jars, go] = [await javaDrivers(), await goClients()];
  return { TIDEGRAPH_JAVA_DRIVERS: jars, TIDEGRAPH_GO_CLIENTS: go };
}

/** @returns {Promise<string>} The class path. */
async function javaDrivers() {
  const pom = join(clients, "java", "pom.xml");
  const into = await installed("clients", "java", [pom], (into) => jars(pom, join(into, "lib")));
  return join(into, "lib", "*");
}

/**
 * Installs Neo4j's shell.
 *
 * @returns {Promise<Record<string, string>>} A variable with its class path.
 */
export async function cypherShell() {
  const pom = join(clients, "java", "cypher-shell.xml");
  const into = await installed("clients", "cypher-shell", [pom], (into) => jars(pom, join(into, "lib")));
  return { TIDEGRAPH_CYPHER_SHELL: join(into, "lib", "*") };
}

/** @returns {Promise<string>} The folder of the programs that use Go's drivers. */
async function goClients() {
  const folder = join(clients, "go");
  const files = ["go.mod", "go.sum", ...GO_CLIENTS.map((name) => join(name, "main.go"))].map((name) =>
    join(folder, name),
  );
  return await installed("clients", "go", files, async (into) => {
    const go = await goProgram();
    for (const name of GO_CLIENTS) {
      await run(go, ["build", "-trimpath", "-o", join(into, name), `./${name}`], {
        cwd: folder,
        // Neither another version of Go nor what the user's workspace says.
        env: { GOTOOLCHAIN: "local", GOWORK: "off", GOFLAGS: "-mod=readonly" },
      });
    }
  });
}

/** @returns {Promise<string>} The Go of this machine, or one that is installed for the tests. */
async function goProgram() {
  const there = await promisify(execFile)("go", ["env", "GOVERSION"]).catch(() => undefined);
  const [major = 0, minor = 0] = there?.stdout.trim().replace(/^go/, "").split(".").map(Number) ?? [];
  const [oldestMajor = 0, oldestMinor = 0] = OLDEST_GO;
  if (major > oldestMajor || (major === oldestMajor && minor >= oldestMinor)) return "go";
  const system = `${platform()}-${arch() === "x64" ? "amd64" : arch()}`;
  const expected = GO_HASHES[/** @type {keyof typeof GO_HASHES} */ (system)];
  if (!expected) throw new Error(`there is no Go on the path, and none to install for ${system}`);
  const name = `v0.0.1-go${GO_VERSION}.${system}`;
  const into = await installed("go", name, [join(root, "scripts", "lib", "clients.mjs")], async (into) => {
    const answer = await fetch(`https://proxy.golang.org/golang.org/toolchain/@v/${name}.zip`);
    if (!answer.ok) throw new Error(`${answer.url} answered ${answer.status}`);
    const bytes = new Uint8Array(await answer.arrayBuffer());
    const found = createHash("sha256").update(bytes).digest("hex");
    if (found !== expected) throw new Error(`${answer.url} has the checksum ${found} instead of ${expected}`);
    const archive = join(into, "go.zip");
    writeFileSync(archive, bytes);
    await run("python3", ["-m", "zipfile", "-e", archive, into]);
    // Modules carry no permissions.
    const home = join(into, "golang.org", `toolchain@${name}`);
    for (const folder of ["bin", join("pkg", "tool", system.replace("-", "_"))]) {
      for (const file of readdirSync(join(home, folder))) chmodSync(join(home, folder, file), 0o755);
    }
  });
  return join(into, "golang.org", `toolchain@${name}`, "bin", "go");
}
