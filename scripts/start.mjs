/**
 * `npm start`: builds the service, or takes it from a release archive in the repository's folder, generates a small
 * identity graph once, serves it, and prints example commands.
 *
 * Data stays in `.tidegraph/` and is there at the next start. `TIDEGRAPH_HOME` selects another folder, `TIDEGRAPH_PORT`
 * another port than 8182.
 */
import { spawn } from "node:child_process";
import { existsSync, mkdirSync, renameSync, rmSync } from "node:fs";
import { join, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { findArchive, unpack } from "./lib/archives.mjs";
import { buildBinary } from "./lib/programs.mjs";
import { root, run } from "./lib/run.mjs";

const READY_TIMEOUT_MS = 60_000;
/** Longest wait for one answer. Without it, `fetch` of Node.js 20 may never end if the first connection is closed at once. */
const POLL_MS = 5_000;
const port = process.env.TIDEGRAPH_PORT ?? "8182";
const endpoint = `http://127.0.0.1:${port}`;
const home = resolve(process.env.TIDEGRAPH_HOME ?? join(root, ".tidegraph"));
const data = join(home, "data");
const drop = join(home, "drop");
const sample = join(home, "sample");

const binary = await serviceBinary().catch((/** @type {unknown} */ error) => {
  console.error(error instanceof Error ? error.message : error);
  process.exit(1);
});
mkdirSync(drop, { recursive: true });
await generateSample();

// What follows `--` goes to the service, such as `--load-from FOLDER`.
const flags = [
  "--port",
  port,
  "--data",
  data,
  "--drop",
  drop,
  "--load-from",
  sample,
  ...process.argv.slice(2),
];
const server = spawn(binary, ["serve", ...flags], {
  cwd: root,
  stdio: "inherit",
});
/** @type {Promise<number>} */
const ended = new Promise((done) => {
  server.on("error", (error) => {
    console.error(`cannot run ${binary}: ${error.message}`);
    done(1);
  });
  server.on("exit", (code, signal) => done(code ?? (signal === null ? 1 : 0)));
});
let stopping = false;
for (const signal of /** @type {const} */ (["SIGINT", "SIGTERM"])) {
  process.on(signal, () => {
    stopping = true;
    server.kill(signal === "SIGINT" ? "SIGTERM" : signal);
  });
}

try {
  await Promise.race([
    ready(),
    ended.then((code) => Promise.reject(new Error(`the service ended with ${code}`))),
  ]);
  const count = await countVertices();
  if (count === 0) await loadSample();
  await sayWhatToTry();
} catch (error) {
  if (!stopping) {
    console.error(error instanceof Error ? error.message : error);
    process.exitCode = 1;
  }
  server.kill("SIGTERM");
}
const code = await ended;
process.exitCode ||= code;

/**
 * Returns the program from a release archive if there is one, so that trying it does not need Rust; otherwise builds
 * it.
 */
async function serviceBinary() {
  const archive = process.env.TIDEGRAPH_BINARY ? undefined : findArchive();
  if (!archive) return buildBinary();
  console.log(`using the programs of ${archive}`);
  return join(await unpack(archive), "tidegraph");
}

async function generateSample() {
  if (existsSync(sample)) return;
  const unfinished = `${sample}.unfinished`;
  rmSync(unfinished, { recursive: true, force: true });
  const args = ["--scale", "200", "--seed", "7", "--format", "gremlin-csv", "--out", unfinished];
  await run(binary, ["generate", "identity", ...args], { quiet: true });
  renameSync(unfinished, sample);
  console.log(`a small identity graph is in ${sample}`);
}

async function ready() {
  const deadline = Date.now() + READY_TIMEOUT_MS;
  while (Date.now() < deadline && !stopping) {
    const signal = AbortSignal.timeout(POLL_MS);
    const answer = await fetch(`${endpoint}/status`, { signal }).catch(() => undefined);
    await answer?.body?.cancel();
    if (answer?.ok) return;
    await sleep(100);
  }
  if (!stopping) throw new Error(`${endpoint}/status did not answer within ${READY_TIMEOUT_MS} ms`);
}

/**
 * @param {string} path
 * @param {object} body
 */
async function post(path, body) {
  const answer = await fetch(`${endpoint}${path}`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  const text = await answer.text();
  if (!answer.ok) throw new Error(`POST ${path}: ${answer.status} ${text}`);
  return JSON.parse(text);
}

async function countVertices() {
  const { results } = await post("/openCypher", { query: "MATCH (n) RETURN count(n) AS n" });
  return Number(results[0].n);
}

async function loadSample() {
  const { payload } = await post("/loader", {
    source: `file://${sample}`,
    format: "csv",
    failOnError: "TRUE",
  });
  for (;;) {
    /** @type {any} */
    const status = await (await fetch(`${endpoint}/loader/${payload.loadId}`)).json();
    const state = status.payload.overallStatus.status;
    if (state === "LOAD_COMPLETED") return;
    if (!["LOAD_NOT_STARTED", "LOAD_IN_QUEUE", "LOAD_IN_PROGRESS"].includes(state)) {
      throw new Error(`loading the sample graph ended with ${state}: ${JSON.stringify(status)}`);
    }
    await sleep(100);
  }
}

async function sayWhatToTry() {
  const count = await countVertices();
  const { results } = await post("/openCypher", {
    query: "MATCH (g:GoldenEntity) RETURN g.first_name AS name, id(g) AS id ORDER BY id LIMIT 1",
  });
  const id = results[0]?.id ?? "ID";
  const elsewhere = port === "8182" ? "" : ` --endpoint ${endpoint}`;
  console.log(`
Tidegraph answers at ${endpoint}; the graph has ${count} vertices. Try:

  curl ${endpoint}/openCypher -d 'query=MATCH (g:GoldenEntity)-->(p:Partner) RETURN p.type AS type, count(*) AS n ORDER BY n DESC LIMIT 5'

  curl ${endpoint}/gremlin -H 'content-type: application/json' \\
       -d '{"gremlin": "g.V(\\"${id}\\").out(\\"HAS_PARTNER\\").elementMap(\\"type\\")"}'

  ${binary} query${elsewhere}      (a prompt; --help says more)

Load your own: copy CSV files (Gremlin's or openCypher's headers) into ${drop}/NAME/,
then say that they are complete: touch ${drop}/NAME/_SUCCESS
Or start with  npm start -- --load-from FOLDER  and load with  ${binary} load${elsewhere} FOLDER/FILES
Stop with Ctrl-C; what is in the graph stays in ${data}.
`);
}
