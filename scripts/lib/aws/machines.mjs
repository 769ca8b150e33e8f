/**
 * Storage nodes that run like the deployed machines. Their variables and commands come from the deployed user data, and
 * they fetch the secret from Secrets Manager. Only the addresses are this machine's.
 */
import { execFile } from "node:child_process";
import { mkdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
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
    // All at once: the rule that runs every minute would start those of graphs that have to wait.
    const heal = (/** @type {string} */ graph) =>
      this.deployment.execute("ServiceRebalanceHeal", {
        patienceSeconds: 0,
        ...(fleet.graphs.length > 1 && { graph }),
      });
    await Promise.all(fleet.graphs.map(heal));
    const serve = (/** @type {PartitionMap} */ { partitions }) =>
      partitions.every(
        ({ replicas }) => replicas.filter(({ state }) => state === "serving").length >= fleet.replication,
      );
    await this.until("all replicas serve", serve);
  }

  /**
   * Starts nodes, and waits until `up` nodes are up in each graph. The number in a name determines the zone.
   *
   * @param {string[]} names
   * @param {number} up
   * @returns {Promise<{ graphs: string[], replication: number }>} the graphs, and the replicas of their partitions
   */
  async join(names, up) {
    const { localstack } = this.deployment;
    const files = this.deployment.machineFiles();
    const fleet = variables(files.get("/opt/tidegraph/etc/fleet.env") ?? "");
    const get = ["secretsmanager", "get-secret-value", "--secret-id", fleet.TIDEGRAPH_FLEET_SECRET ?? ""];
    this.secret = (await localstack.aws(get)).SecretString;
    const unit = files.get("/etc/systemd/system/tidegraph-node.service") ?? "";
    // Where there are several graphs, a unit of its own makes them.
    const list = files.get("/opt/tidegraph/etc/graphs");
    const opt = join(this.home, "opt");
    if (list !== undefined && !this.started.size) {
      mkdirSync(join(opt, "bin"), { recursive: true });
      mkdirSync(join(opt, "etc"), { recursive: true });
      writeFileSync(join(opt, "etc", "graphs"), list);
      writeFileSync(join(opt, "bin", "make-graphs.sh"), files.get("/opt/tidegraph/bin/make-graphs.sh") ?? "");
      rmSync(join(opt, "bin", "tidegraph-node"), { force: true });
      symlinkSync(this.nodeBinary, join(opt, "bin", "tidegraph-node"));
    }
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
      const [program = "", ...flags] =
        list === undefined
          ? words(commandOf(unit, "ExecStartPre", " init "), here)
          : ["bash", join(opt, "bin", "make-graphs.sh")];
      const env = { ...process.env, ...environment, TIDEGRAPH_HOME: opt };
      await execute(program, flags, { env, timeout: START_MS });
      const [daemon = "", ...how] = words(commandOf(unit, "ExecStart", " serve "), here);
      this.processes.start(name, daemon, how, environment);
      this.started.set(name, environment);
    }
    await Promise.all(names.map((name) => this.processes.said(name, "listens on", START_MS)));
    const areUp = (/** @type {PartitionMap} */ { nodes }) =>
      nodes.filter(({ state }) => state === "up").length === up;
    await this.until("all nodes are up", areUp);
    const replication = fleet.REPLICATION ?? /--replication (\d+)/.exec(list ?? "")?.[1];
    return { graphs: this.graphs(), replication: Number(replication) };
  }

  /** Returns the graphs that the nodes serve. */
  graphs() {
    return ([...this.started.values()][0]?.TIDEGRAPH_GRAPH ?? "").split(",");
  }

  /**
   * Waits until the map of each graph fulfils a condition.
   *
   * @param {string} what
   * @param {(map: PartitionMap) => boolean} isSo
   */
  async until(what, isSo) {
    const env = { ...process.env, ...[...this.started.values()][0] };
    const end = Date.now() + START_MS;
    for (const graph of this.graphs()) {
      for (;;) {
        const args = ["map", "--graph", graph];
        const { stdout } = await execute(this.nodeBinary, args, { env, maxBuffer: 64 << 20 });
        if (isSo(JSON.parse(stdout))) break;
        if (Date.now() > end)
          throw new Error(`after ${START_MS} ms it is not so in the graph ${graph} that ${what}: ${stdout}`);
        await sleep(500);
      }
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
