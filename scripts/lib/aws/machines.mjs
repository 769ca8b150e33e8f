/**
 * Storage nodes that run like the deployed machines. Their variables and commands come from the deployed user data, and
 * they fetch the secret from Secrets Manager. Only the addresses are this machine's.
 */
import { execFile } from "node:child_process";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { freePort } from "../cluster/processes.mjs";
import { commandOf, words } from "../cluster/unit.mjs";

const START_MS = 180_000;
const execute = promisify(execFile);

/**
 * @typedef {{ nodes: { state: string }[], partitions: { replicas: { state: string }[] }[] }} PartitionMap
 *   the output of `tidegraph-node map`
 */

/** Parses a file of variables as systemd does. @param {string} text */
function variables(text) {
  const lines = text.split("\n").filter((line) => line.includes("="));
  return Object.fromEntries(
    lines.map((line) => [line.slice(0, line.indexOf("=")), line.slice(line.indexOf("=") + 1)]),
  );
}

export class Machines {
  /**
   * @param {{
   *   home: string, deployment: import("./deployment.mjs").Deployment,
   *   processes: import("../cluster/processes.mjs").Processes, nodeBinary: string
   * }} options
   */
  constructor({ home, deployment, processes, nodeBinary }) {
    this.home = home;
    this.deployment = deployment;
    this.processes = processes;
    this.nodeBinary = nodeBinary;
    /** The secret that processes of the fleet show each other. */
    this.secret = "";
    /** @type {string[]} */
    this.stopped = [];
    /** @type {Map<string, Record<string, string>>} */
    this.started = new Map();
  }

  /**
   * Starts the stopped nodes again, or else as many as the template asks for, spread over three zones, and places the
   * partitions on them.
   */
  async start() {
    const { stopped } = this;
    const names = stopped.length
      ? stopped
      : Array.from({ length: this.deployment.nodes() }, (_, number) => `i-${number}`);
    const fleet = await this.join(names, names.length);
    await this.deployment.execute("ServiceRebalanceHeal", { patienceSeconds: 0 });
    const serve = (/** @type {PartitionMap} */ { partitions }) =>
      partitions.every(
        ({ replicas }) =>
          replicas.filter(({ state }) => state === "serving").length >= Number(fleet.REPLICATION),
      );
    await this.until("all replicas serve", serve);
  }

  /**
   * Starts nodes, and waits until `up` nodes are up. The number in a name determines the zone.
   *
   * @param {string[]} names
   * @param {number} up
   */
  async join(names, up) {
    const { localstack } = this.deployment;
    const files = this.deployment.machineFiles();
    const fleet = variables(files.get("/opt/tidegraph/etc/fleet.env") ?? "");
    const get = ["secretsmanager", "get-secret-value", "--secret-id", fleet.TIDEGRAPH_FLEET_SECRET ?? ""];
    this.secret = (await localstack.aws(get)).SecretString;
    const unit = files.get("/etc/systemd/system/tidegraph-node.service") ?? "";
    for (const name of names) {
      const run = join(this.home, name);
      mkdirSync(join(run, "spill"), { recursive: true });
      /** @type {Record<string, string>} */
      const environment = {
        ...fleet,
        // What `prepare.sh` determines on a machine.
        TIDEGRAPH_NODE: name,
        TIDEGRAPH_ZONE: `zone-${Number(name.slice(2)) % 3}`,
        ADDRESS: "127.0.0.1",
        MEMORY_BUDGET: String(256 << 20),
        // All nodes share one network here, so each needs ports of its own.
        FLEET_PORT: String(await freePort()),
        METRICS_PORT: String(await freePort()),
        TIDEGRAPH_RUN: run,
        TIDEGRAPH_NODE_PROGRAM: this.nodeBinary,
        ...definite(localstack.environment),
      };
      const here = { program: this.nodeBinary, run, environment };
      const [program = "", ...flags] = words(commandOf(unit, "ExecStartPre", " init "), here);
      await execute(program, flags, { env: { ...process.env, ...environment }, timeout: START_MS });
      const [daemon = "", ...how] = words(commandOf(unit, "ExecStart", " serve "), here);
      this.processes.start(name, daemon, how, environment);
      this.started.set(name, environment);
    }
    await Promise.all(names.map((name) => this.processes.said(name, "listens on", START_MS)));
    const areUp = (/** @type {PartitionMap} */ { nodes }) =>
      nodes.filter(({ state }) => state === "up").length === up;
    await this.until("all nodes are up", areUp);
    return fleet;
  }

  /**
   * Waits until the map fulfils a condition.
   *
   * @param {string} what
   * @param {(map: PartitionMap) => boolean} isSo
   */
  async until(what, isSo) {
    const env = { ...process.env, ...[...this.started.values()][0] };
    const end = Date.now() + START_MS;
    for (;;) {
      const { stdout } = await execute(this.nodeBinary, ["map"], { env, maxBuffer: 64 << 20 });
      if (isSo(JSON.parse(stdout))) return;
      if (Date.now() > end) throw new Error(`after ${START_MS} ms it is not so that ${what}: ${stdout}`);
      await sleep(500);
    }
  }

  /** Ends the nodes in order. */
  async stop() {
    this.stopped = [...this.started.keys()].filter((name) => !this.processes.all.get(name)?.ended);
    await this.processes.end(this.stopped, 30_000);
    this.started.clear();
  }
}

/** @param {Record<string, string | undefined>} variables @returns {Record<string, string>} */
function definite(variables) {
  return Object.fromEntries(
    Object.entries(variables).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])),
  );
}
