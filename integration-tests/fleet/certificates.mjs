/**
 * A part of `npm test -- --fleet`: certificates of a fleet under load. A fleet without TLS gets certificates, goes to
 * required TLS, has its certificates renewed, and changes its authority. The function of the deployment (`infra/issuer/`)
 * issues, Secrets Manager is moto's. Processes follow their documents; one worker follows files instead. At each step a
 * node is started again, so that it connects to processes that have the step before. No request may fail.
 */
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import {
  CreateSecretCommand,
  GetSecretValueCommand,
  PutSecretValueCommand,
} from "@aws-sdk/client-secrets-manager";
import { tsImport } from "tsx/esm/api";
import { Cluster } from "../../scripts/lib/cluster/cluster.mjs";
import { freePort } from "../../scripts/lib/cluster/processes.mjs";
import { READ, SteadyLoad } from "../../scripts/lib/cluster/steady-load.mjs";
import { LambdaFunction, restEvent } from "../../scripts/lib/lambda/runtime.mjs";
import { buildFleet } from "../../scripts/lib/programs.mjs";
import { Secrets } from "../../scripts/lib/secrets.mjs";

const NODES = 3;
const PATIENCE_MS = 120_000;
/** A day and an hour: longer than the least time between two steps. */
const DAY_MS = 25 * 3_600_000;
const KINDS = ["nodes", "workers", "functions"];
const HUNDRED = { status: 200, body: { results: [{ n: 100 }] } };

const { run } = await tsImport("../../infra/issuer/issuer.ts", import.meta.url);
const { nodeBinary, workerBinary, lambdaBinary } = await buildFleet("dev");
const home = mkdtempSync(join(tmpdir(), "tidegraph-certificates-"));
const secrets = await Secrets.start("the-secret-of-the-fleet-0123456789");
const { client } = secrets;
const metricsPorts = await Promise.all(Array.from({ length: NODES }, freePort));
const cluster = new Cluster({
  home: join(home, "cluster"),
  nodeBinary,
  workerBinary,
  ...{ nodes: NODES, rf: 2, partitions: 8, brokers: 1, port: 0 },
  secret: secrets.environment,
  flagsOfNode: (number) => ["--metrics-listen", `127.0.0.1:${metricsPorts[number]}`],
});
process.on("exit", () => cluster.processes.kill());
for (const signal of /** @type {const} */ (["SIGINT", "SIGTERM", "SIGHUP"]))
  process.on(signal, () => process.exit(130));

/** Processes that were started without certificates, which the issuer waits for. */
const without = new Set([...Array.from({ length: NODES }, (_, number) => `node-${number}`), "worker"]);

/** Secrets of an issuer, as the deployment makes them: without a first version. */
class Issuer {
  /** @param {{ state: string, documents: Record<string, string> }} parts */
  constructor(parts) {
    this.settings = { fleet: "test", mode: "accept", ...parts };
  }

  /** @param {string} name */
  static async make(name) {
    const secret = async (/** @type {string} */ kind) =>
      (await client.send(new CreateSecretCommand({ Name: `${name}-${kind}` }))).ARN ?? "";
    const documents = Object.fromEntries(
      await Promise.all(KINDS.map(async (kind) => [kind, await secret(kind)])),
    );
    return new Issuer({ state: await secret("state"), documents });
  }

  /** Runs as the schedule does, a day after the last step. @param {boolean} [replaces] */
  async run(replaces = false) {
    const state = await read(this.settings.state);
    if (state !== undefined) {
      const earlier = new Date(Date.now() - DAY_MS).toISOString();
      if (state.modeSince) state.modeSince = earlier;
      if (state.next?.trustedSince) state.next.trustedSince = earlier;
      if (state.previous?.unusedSince) state.previous.unusedSince = earlier;
      await put(this.settings.state, JSON.stringify(state));
    }
    const processes = async () => [...without];
    const machines = async () => [...without].filter((name) => name.startsWith("node-"));
    const surroundings = { client, settings: this.settings, now: new Date(), machines, processes };
    return await run(surroundings, replaces);
  }

  /** Variables by which a kind of processes follows its document. @param {string} kind */
  environment(kind) {
    return {
      TIDEGRAPH_LOG: "info",
      TIDEGRAPH_TLS_SECRET: this.settings.documents[kind] ?? "",
      TIDEGRAPH_TLS_POLL_MS: "200",
    };
  }
}

/** @param {string} SecretId */
async function read(SecretId) {
  const answer = await client.send(new GetSecretValueCommand({ SecretId })).catch(() => undefined);
  return answer?.SecretString === undefined ? undefined : JSON.parse(answer.SecretString);
}

/** @param {string} SecretId @param {string} SecretString */
const put = (SecretId, SecretString) => client.send(new PutSecretValueCommand({ SecretId, SecretString }));

const load = new SteadyLoad();

/** @param {() => Promise<boolean> | boolean} holds @param {string} what */
async function until(holds, what) {
  const end = Date.now() + PATIENCE_MS;
  while (!(await holds())) {
    if (Date.now() > end) throw new Error(`${what} did not happen in ${PATIENCE_MS} ms`);
    await sleep(100);
  }
}

/** Starts a worker with these variables and flags. @param {string} name @param {object} with_ */
async function startWorker(name, with_) {
  const { environment = {}, flags = [] } = /** @type {{ environment?: object, flags?: string[] }} */ (with_);
  cluster.options.secret = { ...secrets.environment, ...environment };
  cluster.tlsFlags = flags;
  try {
    return await cluster.startWorker(name, 0);
  } finally {
    cluster.options.secret = { ...secrets.environment, ...ofNodes };
    cluster.tlsFlags = [];
  }
}

/** Starts a worker that has to answer, and gives it its share of the load. @param {string} name @param {object} with_ */
async function addWorker(name, with_) {
  const endpoint = await startWorker(name, with_);
  assert.deepEqual(await load.ask(endpoint, READ, load.bookmark()), HUNDRED, name);
  load.endpoints.push(endpoint);
}

/** Variables of nodes, besides those of the secret. */
let ofNodes = /** @type {Record<string, string>} */ ({});
/** Processes that follow certificates. */
const followers = /** @type {string[]} */ ([]);
const taken = (/** @type {string} */ name) => {
  const log = cluster.processes.all.get(name)?.log ?? "";
  return readFileSync(log, "utf8").split("new certificates are used").length - 1;
};

/** The worker whose certificates are in files. */
const FILES = ["authorities", "certificate", "key"];
const file = (/** @type {string} */ name) => join(home, `${name}.pem`);

/** Writes the workers' document into files, one after the other, each by renaming. */
async function writeFiles() {
  const document = await read(issuer.settings.documents.workers ?? "");
  for (const name of FILES) {
    writeFileSync(`${file(name)}.new`, document[name], { mode: 0o600 });
    renameSync(`${file(name)}.new`, file(name));
  }
}

/** Carries out a step of the issuer, and waits until all processes use what it issued. @param {() => Promise<unknown>} act */
async function step(act) {
  const before = new Map(followers.map((name) => [name, taken(name)]));
  await act();
  await writeFiles();
  for (const [name, count] of before)
    await until(() => taken(name) > count, `${name} takes its new certificates`);
}

const functions = /** @type {LambdaFunction[]} */ ([]);
process.on("exit", () => {
  for (const one of functions) one.signal("SIGKILL");
});

/** Starts the query function, and asks all that run. */
async function askFunctions() {
  const environment = {
    ...cluster.workerEnvironment(),
    ...secrets.environment,
    ...issuer.environment("functions"),
    TIDEGRAPH_FLEET_TOKEN_FILE: "",
  };
  const one = new LambdaFunction(lambdaBinary, join(home, `function-${functions.length}.log`), environment);
  functions.push(one);
  await one.start();
  for (const [number, each] of functions.entries()) {
    const event = restEvent("GET", "/openCypher", { query: { query: READ }, headers: load.bookmark() });
    const { status, body } = await each.invoke(event);
    assert.deepEqual({ status, body: JSON.parse(body.toString()) }, HUNDRED, `function ${number}`);
  }
}

/** Returns the value of a metric of a node; 0 if it has none. @param {number} node @param {string} name */
async function metric(node, name) {
  const text = await (await fetch(`http://127.0.0.1:${metricsPorts[node]}/metrics`)).text();
  return Number(text.match(new RegExp(`^${name} (\\S+)$`, "m"))?.[1] ?? 0);
}

const issuer = await Issuer.make("fleet");
const OTHER = await Issuer.make("other");

try {
  await cluster.start();
  assert.equal(
    (await load.ask(cluster.endpoint, "UNWIND range(1, 100) AS n CREATE (:Start {n: n})")).status,
    200,
  );
  load.endpoints.push(cluster.endpoint);
  load.start(3);

  // Certificates come to a fleet that has none. Nodes accept both kinds of connections, and open those without TLS.
  await issuer.run();
  await writeFiles();
  ofNodes = issuer.environment("nodes");
  cluster.options.secret = { ...secrets.environment, ...ofNodes };
  for (let number = 0; number < NODES; number += 1) {
    await cluster.restartNode(number, PATIENCE_MS);
    without.delete(`node-${number}`);
    followers.push(`node-${number}`);
  }
  await addWorker("by-secret", { environment: issuer.environment("workers") });
  // The worker with files requires TLS from its start on, which nodes accept.
  const flags = FILES.flatMap((name) => [`--tls-${name}`, file(name)]);
  flags.push("--tls-server-name", "nodes.tidegraph.internal");
  await addWorker("by-files", { environment: { TIDEGRAPH_LOG: "info" }, flags });
  followers.push("by-secret", "by-files");
  await askFunctions();
  // The first worker has no certificates.
  load.endpoints.shift();

  // To required TLS: first all connections are opened with it, once each process has certificates.
  issuer.settings.mode = "require";
  const { mode, waitsFor } = await issuer.run();
  assert.deepEqual([mode, waitsFor], ["accept", ["worker"]]);
  await cluster.processes.end(["worker"], 30_000);
  without.delete("worker");
  await step(async () => assert.equal((await issuer.run()).mode, "prefer"));
  await cluster.restartNode(0, PATIENCE_MS);
  await askFunctions();
  await step(async () => assert.equal((await issuer.run()).mode, "require"));
  await cluster.restartNode(1, PATIENCE_MS);
  await addWorker("third", { environment: issuer.environment("workers") });
  followers.push("third");
  await askFunctions();
  const plain = await startWorker("plain", {});
  assert.notEqual((await load.ask(plain, READ)).status, 200, "a worker without TLS is refused");

  // Broken documents change nothing, and a metric tells of them. Then new certificates come.
  const { nodes = "", workers = "", functions: ofFunctions = "" } = issuer.settings.documents;
  const whole = JSON.stringify(await read(nodes));
  await put(nodes, whole.slice(0, whole.length / 2));
  for (let number = 0; number < NODES; number += 1) {
    await until(
      async () => (await metric(number, "tidegraph_certificates_unusable_total")) > 0,
      `node-${number} reads a broken document`,
    );
    const log = readFileSync(cluster.processes.all.get(`node-${number}`)?.log ?? "", "utf8");
    assert.match(log, /new certificates cannot be used.*is not a document/);
    assert.ok(!log.includes("PRIVATE KEY"));
  }
  await put(workers, "{}");
  await put(ofFunctions, "{}");
  await step(() => issuer.run());
  await cluster.restartNode(2, PATIENCE_MS);
  for (let number = 0; number < NODES; number += 1) {
    const left = await metric(number, "tidegraph_certificate_left_seconds");
    assert.ok(left > 6.9 * 86_400 && left <= 7 * 86_400, `node-${number}: ${left} s`);
  }

  // Another authority: trusted, then signing, then alone.
  const authorities = /** @type {number[]} */ ([]);
  await step(async () => authorities.push((await issuer.run(true)).authorities));
  await cluster.restartNode(0, PATIENCE_MS);
  await step(async () => authorities.push((await issuer.run()).authorities));
  await cluster.restartNode(1, PATIENCE_MS);
  await addWorker("fourth", { environment: issuer.environment("workers") });
  followers.push("fourth");
  await askFunctions();
  await step(async () => authorities.push((await issuer.run()).authorities));
  assert.deepEqual(authorities, [2, 2, 1]);
  await cluster.restartNode(2, PATIENCE_MS);
  await addWorker("fifth", { environment: issuer.environment("workers") });
  await askFunctions();

  await load.stop();
  assert.deepEqual(load.failed, []);
  assert.ok(load.answered.reads > 100 && load.answered.writes > 30, JSON.stringify(load.answered));
  const count = await load.ask(
    load.endpoints[0] ?? "",
    "MATCH (m:Made) RETURN count(m) AS n",
    load.bookmark(),
  );
  assert.deepEqual(count.body, { results: [{ n: load.answered.writes }] });

  // A process that knows the secret, and has a certificate of another authority.
  await OTHER.run();
  const [ours, theirs] = [await read(workers), await read(OTHER.settings.documents.workers ?? "")];
  const both = `${theirs.authorities}\n${ours.authorities}`;
  await put(
    OTHER.settings.documents.workers ?? "",
    JSON.stringify({ ...theirs, authorities: both, mode: "require" }),
  );
  const stranger = await startWorker("stranger", { environment: OTHER.environment("workers") });
  assert.notEqual(
    (await load.ask(stranger, READ)).status,
    200,
    "a certificate of another authority is refused",
  );
  console.log(
    `TLS came to a fleet, its certificates and its authority were replaced: ${load.answered.reads} reads and ${load.answered.writes} writes were answered, none failed`,
  );
} finally {
  load.stopping = true;
  for (const one of functions) await one.stop();
  await cluster.stop();
  secrets.stop();
}
rmSync(home, { recursive: true, force: true });
