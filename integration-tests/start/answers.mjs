/**
 * Checks that `npm start` does what the README says: it comes up on a free port, answers a query in each language from
 * the sample graph, and stops when told to. Then it does the same from a release archive, and refuses an archive with a
 * wrong checksum. The script stops only processes that it started.
 */
import { execFileSync, spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { archiveName, CHECKSUMS } from "../../scripts/lib/archives.mjs";
import { freePort } from "../../scripts/lib/cluster/processes.mjs";
import { program } from "../../scripts/lib/programs.mjs";
import { root } from "../../scripts/lib/run.mjs";

const READY_TIMEOUT_MS = 900_000;
const STOP_TIMEOUT_MS = 120_000;

/**
 * @param {string} url
 * @param {object} body
 * @returns {Promise<any>}
 */
async function ask(url, body) {
  const answer = await fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  if (!answer.ok) throw new Error(`${url}: ${answer.status} ${await answer.text()}`);
  return answer.json();
}

/**
 * Starts the service, sends queries and stops it.
 *
 * @param {Record<string, string>} env
 * @param {string} [announces] a text that it must print before it answers
 */
async function answers(env, announces) {
  const port = await freePort();
  const home = mkdtempSync(join(tmpdir(), "tidegraph-start-"));
  const endpoint = `http://127.0.0.1:${port}`;
  const child = spawn(process.execPath, ["scripts/start.mjs"], {
    cwd: root,
    env: { ...process.env, ...env, TIDEGRAPH_PORT: String(port), TIDEGRAPH_HOME: home },
    stdio: ["ignore", "pipe", "inherit"],
  });
  /** @type {Promise<void>} */
  const ended = new Promise((done) => child.on("exit", () => done()));
  let output = "";
  child.stdout.on("data", (chunk) => {
    process.stdout.write(chunk);
    output += chunk;
  });
  try {
    const deadline = Date.now() + READY_TIMEOUT_MS;
    while (!output.includes(`answers at ${endpoint}`)) {
      if (child.exitCode !== null) throw new Error(`npm start ended with ${child.exitCode}`);
      if (Date.now() > deadline) throw new Error("npm start did not say that it answers");
      await sleep(200);
    }
    if (announces && !output.includes(announces)) throw new Error(`npm start did not say: ${announces}`);
    const cypher = await ask(`${endpoint}/openCypher`, {
      query: "MATCH (g:GoldenEntity) RETURN count(g) AS n",
    });
    if (cypher.results?.[0]?.n !== 200)
      throw new Error(`openCypher: expected 200: ${JSON.stringify(cypher)}`);
    const gremlin = await ask(`${endpoint}/gremlin`, { gremlin: "g.V().hasLabel('GoldenEntity').count()" });
    const counted = gremlin.result?.data?.["@value"]?.[0]?.["@value"];
    if (counted !== 200) throw new Error(`Gremlin: expected 200: ${JSON.stringify(gremlin)}`);
    console.log("npm start answers 200 in openCypher and in Gremlin");
  } finally {
    child.kill("SIGTERM");
    const stopped = await Promise.race([ended.then(() => true), sleep(STOP_TIMEOUT_MS, false)]);
    if (!stopped) {
      console.error(`npm start did not stop within ${STOP_TIMEOUT_MS} ms of SIGTERM`);
      child.kill("SIGKILL");
      process.exitCode = 1;
    }
    rmSync(home, { recursive: true, force: true });
  }
}

/** Packs the program that `npm start` has just built, as a release does. @param {string} folder */
async function packRelease(folder) {
  const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  const name = archiveName(version, process.arch === "arm64" ? "arm64" : "x86_64");
  const inside = name.replace(/\.tar\.gz$/, "");
  mkdirSync(join(folder, inside));
  copyFileSync(program("tidegraph", "release"), join(folder, inside, "tidegraph"));
  const archive = join(folder, name);
  execFileSync("tar", ["-C", folder, "-czf", archive, inside]);
  const sum = createHash("sha256").update(readFileSync(archive)).digest("hex");
  writeFileSync(join(folder, CHECKSUMS), `${sum}  ${name}\n`);
  return archive;
}

const folder = mkdtempSync(join(tmpdir(), "tidegraph-archives-"));
try {
  await answers({ TIDEGRAPH_ARCHIVES: folder });
  if (process.platform === "linux") {
    const archive = await packRelease(folder);
    await answers({ TIDEGRAPH_ARCHIVES: folder }, `using the programs of ${archive}`);
    writeFileSync(join(folder, CHECKSUMS), `${"0".repeat(64)}  ${basename(archive)}\n`);
    const refused = await answers({ TIDEGRAPH_ARCHIVES: folder }).then(
      () => false,
      () => true,
    );
    if (!refused) throw new Error("npm start ran a program whose checksum is wrong");
  }
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
} finally {
  rmSync(folder, { recursive: true, force: true });
}
process.exit();
