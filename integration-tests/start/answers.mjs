/**
 * Checks that `npm start` does what the README says: it comes up on a free port, answers a query in each language from the
 * sample graph, and stops when it is told to. Only the process started here is stopped.
 */
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { root } from "../../scripts/lib/run.mjs";

const READY_TIMEOUT_MS = 900_000;
const STOP_TIMEOUT_MS = 30_000;

/** @returns {Promise<number>} */
function freePort() {
  return new Promise((done, fail) => {
    const server = createServer();
    server.on("error", fail);
    server.listen(0, "127.0.0.1", () => {
      const address = server.address();
      const port = typeof address === "object" && address !== null ? address.port : 0;
      server.close(() => done(port));
    });
  });
}

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

const port = await freePort();
const home = mkdtempSync(join(tmpdir(), "tidegraph-start-"));
const endpoint = `http://127.0.0.1:${port}`;
const child = spawn(process.execPath, ["scripts/start.mjs"], {
  cwd: root,
  env: { ...process.env, TIDEGRAPH_PORT: String(port), TIDEGRAPH_HOME: home },
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
  const cypher = await ask(`${endpoint}/openCypher`, {
    query: "MATCH (g:GoldenEntity) RETURN count(g) AS n",
  });
  if (cypher.results?.[0]?.n !== 200) throw new Error(`openCypher: expected 200: ${JSON.stringify(cypher)}`);
  const gremlin = await ask(`${endpoint}/gremlin`, { gremlin: "g.V().hasLabel('GoldenEntity').count()" });
  const counted = gremlin.result?.data?.["@value"]?.[0]?.["@value"];
  if (counted !== 200) throw new Error(`Gremlin: expected 200: ${JSON.stringify(gremlin)}`);
  console.log("npm start answers 200 in openCypher and in Gremlin");
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
} finally {
  child.kill("SIGTERM");
  const stopped = await Promise.race([ended.then(() => true), sleep(STOP_TIMEOUT_MS, false)]);
  if (!stopped) {
    console.error(`npm start did not stop within ${STOP_TIMEOUT_MS} ms of SIGTERM`);
    child.kill("SIGKILL");
    process.exitCode = 1;
  }
}
rmSync(home, { recursive: true, force: true });
process.exit();
