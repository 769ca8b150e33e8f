/**
 * Installs the databases that benchmarks run beside, and writes the commands that run them.
 *
 * Peers are installed into the cache from the package registries, with the versions that `scripts/peers/` pins: Maven
 * artefacts and compiled drivers for peers on the JVM, a virtual environment for Python. They are installed once, and
 * again when a pinned list or a source changes. If a peer cannot be installed, the file of commands says why, and the
 * benchmark decides whether that is an error.
 */
import { mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { freemem } from "node:os";
import { delimiter, join } from "node:path";
import { installed, jars } from "./lib/installed.mjs";
import { cache, root, run } from "./lib/run.mjs";

const folder = join(root, "scripts", "peers");

/** Heap size of a server. */
const heap = process.env.TIDEGRAPH_PEER_HEAP ?? "2g";

/** Heap size of a node of a cluster. */
const nodeHeap = process.env.TIDEGRAPH_PEER_NODE_HEAP ?? "1g";

/** The peers of each workload. PostgreSQL is missing, because benchmarks use the server that the machine has. */
const workloads = {
  identity: ["gremlin", "neo4j"],
  drivers: ["gremlin", "neo4j"],
  pokec: ["neo4j", "kuzu"],
  lsqb: ["neo4j", "kuzu"],
  snb: ["neo4j"],
  load: ["gremlin", "neo4j", "kuzu"],
  ycsb: ["cassandra", "cassandra-durable", "cassandra-cluster"],
};

/**
 * Installs the jars and compiles the drivers of a peer on the JVM.
 *
 * @param {"gremlin" | "neo4j" | "cassandra"} name
 * @returns {Promise<string>} The class path.
 */
async function jvm(name) {
  const pom = join(folder, name, "pom.xml");
  const sources = ["common", name].flatMap((part) => {
    const of = join(folder, "java", part);
    return readdirSync(of)
      .filter((file) => file.endsWith(".java"))
      .map((file) => join(of, file));
  });
  const into = await installed("peers", name, [pom, ...sources], async (into) => {
    const [lib, classes] = [join(into, "lib"), join(into, "classes")];
    await jars(pom, lib);
    await run("javac", ["-cp", join(lib, "*"), "-d", classes, ...sources]);
  });
  return [join(into, "classes"), join(into, "lib", "*")].join(delimiter);
}

/**
 * Flags of Cassandra on Java 17, from its `jvm-server.options` and `jvm17-server.options`, without those for the heap
 * and for JMX, and without `-ea`, which makes it slower.
 */
const tuned = [
  "-XX:+UseG1GC",
  "-XX:+ParallelRefProcEnabled",
  "-XX:MaxTenuringThreshold=1",
  "-XX:G1HeapRegionSize=16m",
  "-XX:G1RSetUpdatingPauseTimePercent=5",
  "-XX:MaxGCPauseMillis=300",
  "-XX:InitiatingHeapOccupancyPercent=70",
  "-XX:+AlwaysPreTouch",
  "-XX:+PerfDisableSharedMem",
  "-Xss256k",
  "-Djava.net.preferIPv4Stack=true",
  "-Dio.netty.tryReflectionSetAccessible=true",
  "-Dio.netty.allocator.useCacheForAllThreads=true",
  "-Dio.netty.allocator.maxOrder=11",
];

/** Packages of Java that Cassandra accesses, from its `jvm17-server.options`. */
const opened = [
  "-Djdk.attach.allowAttachSelf=true",
  ...[
    "java.base/jdk.internal.misc",
    "java.management.rmi/com.sun.jmx.remote.internal.rmi",
    "java.rmi/sun.rmi.registry",
    "java.rmi/sun.rmi.server",
    "java.rmi/sun.rmi.transport.tcp",
    "java.sql/java.sql",
    "java.base/java.lang.ref",
    "java.base/jdk.internal.ref",
    "java.base/sun.nio.ch",
    "jdk.unsupported/sun.misc",
  ].map((name) => `--add-exports=${name}=ALL-UNNAMED`),
  ...[
    "java.base/java.io",
    "java.base/java.lang",
    "java.base/java.lang.module",
    "java.base/java.lang.reflect",
    "java.base/java.math",
    "java.base/java.net",
    "java.base/java.nio",
    "java.base/java.util",
    "java.base/java.util.concurrent",
    "java.base/java.util.concurrent.atomic",
    "java.base/jdk.internal.loader",
    "java.base/jdk.internal.math",
    "java.base/jdk.internal.module",
    "java.base/jdk.internal.ref",
    "java.base/jdk.internal.reflect",
    "java.base/jdk.internal.util.jar",
    "java.base/sun.nio.ch",
    "jdk.management/com.sun.management.internal",
  ].map((name) => `--add-opens=${name}=ALL-UNNAMED`),
];

/** Free memory that a cluster of Cassandra needs: for its nodes, and for everything that the run starts later. */
const CLUSTER_GIB = 12;

/**
 * Installs Apache Cassandra and returns the commands of one node or of a cluster.
 *
 * @param {"periodic" | "batch"} sync its `commitlog_sync`
 * @param {number} nodes
 * @param {string} memory size of each node's heap
 */
async function cassandra(sync, nodes, memory) {
  const free = freemem() / 2 ** 30;
  if (nodes > 1 && free < CLUSTER_GIB)
    throw new Error(
      `${nodes} nodes need ${CLUSTER_GIB} GiB of free memory, but only ${free.toFixed(1)} GiB are free`,
    );
  const classpath = await jvm("cassandra");
  const java = (/** @type {string[]} */ flags) => [
    "java",
    `-Dlogback.configurationFile=${join(folder, "cassandra", "logback.xml")}`,
    ...flags,
    ...opened,
    "-cp",
    classpath,
    "CassandraPeer",
  ];
  const size = [`-Xms${memory}`, `-Xmx${memory}`];
  const servers = Array.from({ length: nodes }, (_, index) => [
    ...java([...size, ...tuned]),
    ...["server", sync, String(index + 1), String(nodes)],
  ]);
  const [server = [], ...others] = servers;
  return { server, others, client: [...java(["-Xmx512m"]), "client", sync, String(nodes)] };
}

/** @type {Record<string, () => Promise<Record<string, string[] | string[][]>>>} */
const peers = {
  gremlin: async () => {
    const classpath = await jvm("gremlin");
    const files = join(folder, "gremlin");
    const java = (/** @type {string} */ memory) => [
      "java",
      `-Xmx${memory}`,
      `-Dlogback.configurationFile=${join(files, "logback.xml")}`,
      "-cp",
      classpath,
      "GremlinPeer",
    ];
    return { server: [...java(heap), "server", files], client: [...java("512m"), "client"] };
  },
  neo4j: async () => {
    const classpath = await jvm("neo4j");
    const java = (/** @type {string} */ memory, /** @type {string} */ command) => [
      "java",
      `-Xmx${memory}`,
      "-cp",
      classpath,
      "Neo4jPeer",
      command,
    ];
    return {
      server: java(heap, "server"),
      client: java("512m", "client"),
      prepare: java("256m", "prepare"),
      import: java(heap, "import"),
    };
  },
  cassandra: () => cassandra("periodic", 1, heap),
  "cassandra-durable": () => cassandra("batch", 1, heap),
  "cassandra-cluster": () => cassandra("periodic", 3, nodeHeap),
  kuzu: async () => {
    const requirements = join(folder, "kuzu", "requirements.txt");
    const into = await installed("peers", "kuzu", [requirements], async (into) => {
      await run("python3", ["-m", "venv", into]);
      const pip = ["-m", "pip", "install", "--quiet", "--no-deps", "-r", requirements];
      await run(join(into, "bin", "python"), pip);
    });
    return { client: [join(into, "bin", "python"), join(folder, "kuzu", "kuzu_peer.py")] };
  },
};

/**
 * Returns the peers to install for a run.
 *
 * @param {readonly string[]} args The arguments after `npm run bench --`.
 * @returns {string[]}
 */
export function wanted(args) {
  const known = workloads[/** @type {keyof typeof workloads} */ (args.find((arg) => arg in workloads))] ?? [];
  if (args.includes("--help")) return [];
  const flag = "--peers";
  const at = args.findIndex((arg) => arg === flag || arg.startsWith(`${flag}=`));
  if (at < 0) return known;
  const list = args[at] === flag ? args[at + 1] : args[at]?.slice(flag.length + 1);
  const named = (list ?? "").split(",");
  return known.filter((peer) => named.includes(peer));
}

/**
 * Installs peers and writes the file that the benchmark reads.
 *
 * @param {readonly string[]} names
 * @returns {Promise<string>} Its path.
 */
export async function installPeers(names) {
  /** @type {Record<string, object>} */
  const commands = {};
  for (const name of names) {
    try {
      commands[name] = (await peers[name]?.()) ?? {};
    } catch (error) {
      commands[name] = { missing: error instanceof Error ? error.message : String(error) };
    }
  }
  mkdirSync(join(cache, "peers"), { recursive: true });
  const file = join(cache, "peers", `commands-${process.pid}.json`);
  writeFileSync(file, JSON.stringify(commands, null, 2));
  return file;
}
