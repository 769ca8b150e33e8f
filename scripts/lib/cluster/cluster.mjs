/**
 * A cluster on this machine: Kafka, DynamoDB Local, storage nodes, a worker. All of them are real processes that listen
 * on 127.0.0.1 at free ports.
 */
import { execFile } from "node:child_process";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { dynamodbClasspath } from "../dynamodb.mjs";
import { kafkaClasspath } from "../kafka.mjs";
import { certificates } from "./certificates.mjs";
import { connected, freePort, Processes, writable } from "./processes.mjs";

const START_MS = 180_000;
const execute = promisify(execFile);

/**
 * @typedef {object} ClusterOptions
 * @property {string} home an empty folder for data and logs
 * @property {string} nodeBinary
 * @property {string} workerBinary built with the feature `fleet`
 * @property {number} nodes
 * @property {number} rf replicas of each partition
 * @property {number} partitions
 * @property {number} [shards] shards of the log; 1 by default
 * @property {number} brokers
 * @property {number} port port of the worker; 0 for a free one
 * @property {boolean} [shares] whether to use the servers that `TIDEGRAPH_TEST_KAFKA` and `TIDEGRAPH_TEST_DYNAMODB`
 * name, if they are set, with a graph of its own
 * @property {boolean} [measured] whether Java compiles the brokers fully, as in production; otherwise they start and
 * end faster
 * @property {boolean} [tls] whether nodes and workers authenticate with certificates
 * @property {readonly string[]} [nodeFlags] further flags of every node
 * @property {(number: number) => readonly string[]} [flagsOfNode] further flags of one node
 * @property {readonly string[]} [workerFlags] further flags of the worker
 * @property {readonly string[]} [graphs] graphs of nodes and workers. Only the first one is made at the start; others are made
 * with `makeGraph`
 * @property {Record<string, string> | undefined} [secret] variables by which nodes and workers read the fleet's secret
 * from Secrets Manager; from a file by default
 */

export class Cluster {
  /** @param {ClusterOptions} options */
  constructor(options) {
    this.options = options;
    rmSync(options.home, { recursive: true, force: true });
    mkdirSync(join(options.home, "objects"), { recursive: true });
    this.processes = new Processes(options.home);
    this.brokerPorts = /** @type {number[]} */ ([]);
    this.dynamodbPort = 0;
    this.endpoint = "";
    const { TIDEGRAPH_TEST_KAFKA: kafka, TIDEGRAPH_TEST_DYNAMODB: dynamodb } = process.env;
    /** Servers that several clusters share, if any. */
    this.shared = options.shares && kafka && dynamodb ? { kafka, dynamodb } : undefined;
    this.graph = options.graphs?.[0] ?? (this.shared ? `g-${crypto.randomUUID()}` : "default");
    /** Flags by which processes authenticate with certificates, besides the token. */
    this.tlsFlags = /** @type {string[]} */ ([]);
  }

  /** Starts everything; returns once the worker accepts queries. */
  async start() {
    const { home, rf, partitions, shards = 1, brokers } = this.options;
    const token = join(home, "fleet-token");
    writeFileSync(token, `${crypto.randomUUID()}\n`, { mode: 0o600 });
    if (this.options.tls) this.tlsFlags = await certificates(join(home, "certificates"));
    await Promise.all([this.startDynamodb(), this.startKafka()]);
    const replication = ["--log-replication", String(brokers), "--log-in-sync", String(Math.min(2, brokers))];
    const sizes = [
      "--partitions",
      String(partitions),
      "--shards",
      String(shards),
      "--replication",
      String(rf),
    ];
    await this.admin([
      "init",
      ...this.mapFlags(),
      ...this.logFlags(),
      ...sizes,
      ...replication,
      "--create-tables",
    ]);
    await this.startProcesses();
  }

  /** Starts the nodes of a graph, places its partitions, and starts a worker, which knows a sequencer in the end. */
  async startProcesses() {
    const { nodes, port } = this.options;
    const names = Array.from({ length: nodes }, (_, number) => `node-${number}`);
    for (const number of names.keys()) this.startNode(number);
    await Promise.all(names.map((name) => this.processes.said(name, "listens on", START_MS)));
    await this.admin(["place", ...this.mapFlags(), "--nodes", String(nodes), "--timeout-s", "120"]);
    await writable(await this.startWorker("worker", port), START_MS);
  }

  mapFlags(graph = this.graph) {
    return ["--graph", graph, ...this.tableFlags()];
  }

  tableFlags() {
    return ["--dynamodb-endpoint", `http://127.0.0.1:${this.dynamodbPort}`, "--dynamodb-local"];
  }

  /** Flags of nodes and workers, which may have several graphs. */
  graphsFlags() {
    const { graphs = [this.graph] } = this.options;
    return [...graphs.flatMap((graph) => ["--graph", graph]), ...this.tableFlags()];
  }

  /**
   * Makes a graph beside the first one, and waits until the nodes serve it.
   *
   * @param {string} graph
   * @param {readonly string[]} flags
   */
  async makeGraph(graph, flags) {
    const log = [...this.logFlags(), "--log-replication", "1", "--log-in-sync", "1"];
    const objects = ["--objects", join(this.options.home, "objects"), "--share-objects"];
    await this.admin(["init", ...this.mapFlags(graph), ...log, ...objects, ...flags]);
    const nodes = ["--nodes", String(this.options.nodes), "--timeout-s", "120"];
    await this.admin(["place", ...this.mapFlags(graph), ...nodes]);
  }

  logFlags() {
    return ["--kafka-brokers", this.brokerPorts.map((port) => `127.0.0.1:${port}`).join(",")];
  }

  /** @param {readonly string[]} args */
  async admin(args) {
    try {
      const { stdout } = await execute(this.options.nodeBinary, [...args], { maxBuffer: 64 << 20 });
      return stdout;
    } catch (error) {
      throw new Error(`tidegraph-node ${args[0]}: ${error instanceof Error ? error.message : error}`);
    }
  }

  /** Returns the map as `tidegraph-node map` prints it. */
  async map() {
    return JSON.parse(await this.admin(["map", ...this.mapFlags()]));
  }

  async startDynamodb() {
    if (this.shared) {
      this.dynamodbPort = Number(new URL(this.shared.dynamodb).port);
      return;
    }
    const classpath = await dynamodbClasspath();
    this.dynamodbPort ||= await freePort();
    const libraries = classpath.slice(0, -2);
    const args = ["-Xmx256m", "-XX:+UseSerialGC", `-Djava.library.path=${libraries}`, "-cp", classpath];
    const main = "com.amazonaws.services.dynamodbv2.local.main.ServerRunner";
    const dir = join(this.options.home, "dynamodb");
    mkdirSync(dir, { recursive: true });
    const flags = ["-dbPath", dir, "-sharedDb", "-port", String(this.dynamodbPort), "-disableTelemetry"];
    this.processes.start("dynamodb", "java", [...args, main, ...flags]);
    await listens(this.dynamodbPort, this.processes, "dynamodb");
  }

  async startKafka() {
    if (this.shared) {
      this.brokerPorts = [Number(this.shared.kafka.split(":")[1])];
      return;
    }
    const { brokers, measured = false } = this.options;
    const ports = await Promise.all(Array.from({ length: brokers }, freePort));
    const controllers = await Promise.all(Array.from({ length: brokers }, freePort));
    this.brokerPorts = ports;
    const voters = controllers.map((port, index) => `${index + 1}@127.0.0.1:${port}`).join(",");
    const classpath = await kafkaClasspath();
    const fast = measured ? ["-Xmx1g", "-Xms1g"] : ["-Xmx384m", "-Xms256m", "-XX:TieredStopAtLevel=1"];
    const java = [...fast, "-XX:+UseSerialGC", "-cp", classpath];
    for (const [index, port] of ports.entries()) {
      const dir = join(this.options.home, `kafka-${index}`);
      mkdirSync(dir, { recursive: true });
      const settings = {
        "process.roles": "broker,controller",
        "node.id": index + 1,
        "controller.quorum.voters": voters,
        listeners: `PLAINTEXT://127.0.0.1:${port},CONTROLLER://127.0.0.1:${controllers[index]}`,
        "advertised.listeners": `PLAINTEXT://127.0.0.1:${port}`,
        "controller.listener.names": "CONTROLLER",
        "inter.broker.listener.name": "PLAINTEXT",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "log.dirs": join(dir, "data"),
        "auto.create.topics.enable": false,
        "group.initial.rebalance.delay.ms": 0,
        "offsets.topic.replication.factor": brokers,
        "transaction.state.log.replication.factor": brokers,
        "transaction.state.log.min.isr": Math.min(2, brokers),
        "min.insync.replicas": Math.min(2, brokers),
        "broker.session.timeout.ms": 2000,
        "broker.heartbeat.interval.ms": 400,
        "controller.quorum.election.timeout.ms": 500,
        "controller.quorum.fetch.timeout.ms": 1000,
      };
      const file = join(dir, "server.properties");
      writeFileSync(
        file,
        Object.entries(settings)
          .map(([name, value]) => `${name}=${value}\n`)
          .join(""),
      );
      const format = ["kafka.tools.StorageTool", "format", "-t", "MkU3OEVBNTcwNTJENDM2Qg", "-c", file];
      await execute("java", [...java, ...format]);
    }
    this.kafkaCommand = java;
    for (const index of ports.keys()) this.startBroker(index);
    await Promise.all([...ports.keys()].map((index) => this.brokerListens(index)));
  }

  /**
   * Waits until a broker takes connections.
   *
   * @param {number} index
   */
  async brokerListens(index) {
    await listens(this.brokerPorts[index] ?? 0, this.processes, `kafka-${index}`);
  }

  /** @param {number} index */
  startBroker(index) {
    const file = join(this.options.home, `kafka-${index}`, "server.properties");
    this.processes.start(`kafka-${index}`, "java", [...(this.kafkaCommand ?? []), "kafka.Kafka", file]);
  }

  /**
   * Stops a node in order, starts it again, and waits until all nodes are up and all replicas serve.
   * @param {number} number
   * @param {number} patienceMs
   */
  async restartNode(number, patienceMs) {
    const name = `node-${number}`;
    await this.processes.end([name], 30_000);
    this.startNode(number);
    await this.processes.said(name, "listens on", patienceMs);
    const end = Date.now() + patienceMs;
    for (;;) {
      const { nodes, partitions } = await this.map();
      const isUp = nodes.every((/** @type {{ state: string }} */ { state }) => state === "up");
      const serve = partitions.every((/** @type {{ replicas: { state: string }[] }} */ { replicas }) =>
        replicas.every(({ state }) => state === "serving"),
      );
      if (isUp && serve) return;
      if (Date.now() > end) throw new Error(`${name} does not serve again: ${JSON.stringify(partitions)}`);
      await sleep(200);
    }
  }

  /** @param {number} number */
  startNode(number) {
    const { home, nodeBinary, nodeFlags = [], flagsOfNode = () => [] } = this.options;
    const place = ["--node", `node-${number}`, "--zone", `zone-${number % 3}`];
    const files = ["--objects", join(home, "objects"), ...this.tokenFlags("--token-file")];
    const args = [
      "serve",
      ...this.graphsFlags(),
      ...this.logFlags(),
      ...place,
      ...files,
      ...this.tlsFlags,
      ...nodeFlags,
      ...flagsOfNode(number),
    ];
    const env = { TIDEGRAPH_LOG: "info", ...this.options.secret };
    return this.processes.start(`node-${number}`, nodeBinary, args, env);
  }

  /** @param {string} flag */
  tokenFlags(flag) {
    return this.options.secret ? [] : [flag, join(this.options.home, "fleet-token")];
  }

  /**
   * @param {string} name
   * @param {number} port
   */
  async startWorker(name, port) {
    const { home, workerBinary, workerFlags = [] } = this.options;
    const files = ["--objects", join(home, "objects"), ...this.tokenFlags("--fleet-token-file")];
    const flags = [...this.graphsFlags(), ...files, ...this.tlsFlags];
    const args = ["worker", ...flags, "--port", String(port), ...workerFlags];
    this.processes.start(name, workerBinary, args, this.options.secret);
    const { match } = await this.processes.said(name, /Tidegraph listens on (http:\S+)/, START_MS);
    const endpoint = Array.isArray(match) ? (match[1] ?? "") : "";
    await connected(endpoint, START_MS);
    if (name === "worker") this.endpoint = endpoint;
    return endpoint;
  }

  /**
   * Variables of a function that uses this cluster. As in Lambda, credentials come from variables; DynamoDB Local
   * accepts any.
   */
  workerEnvironment() {
    return {
      AWS_ACCESS_KEY_ID: "AKIDEXAMPLE",
      AWS_SECRET_ACCESS_KEY: "secret",
      AWS_SESSION_TOKEN: "session",
      AWS_REGION: "eu-west-3",
      TIDEGRAPH_DYNAMODB_ENDPOINT: `http://127.0.0.1:${this.dynamodbPort}`,
      TIDEGRAPH_FLEET_TOKEN_FILE: join(this.options.home, "fleet-token"),
      TIDEGRAPH_GRAPH: this.graph,
    };
  }

  /** Ends everything: each process before those that it uses. */
  async stop() {
    const names = [...this.processes.all.keys()];
    const rank = (/** @type {string} */ name) =>
      ["worker", "node", "kafka", "dynamodb"].indexOf(name.split("-")[0] ?? "");
    await this.processes.end(
      names.sort((a, b) => rank(a) - rank(b)),
      20_000,
    );
  }
}

/**
 * Waits until a port takes connections.
 *
 * @param {number} port
 * @param {Processes} processes
 * @param {string} name
 */
async function listens(port, processes, name) {
  const end = Date.now() + START_MS;
  while (Date.now() < end) {
    if (processes.all.get(name)?.ended) await processes.said(name, /$^/, 0);
    const taken = await new Promise((done) => {
      const socket = connect(port, "127.0.0.1");
      socket.on("connect", () => {
        socket.destroy();
        done(true);
      });
      socket.on("error", () => done(false));
    });
    if (taken) return;
    await sleep(100);
  }
  throw new Error(`${name} does not listen on port ${port}`);
}
