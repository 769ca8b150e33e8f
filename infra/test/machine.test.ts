/**
 * What machines and workers are started with. The scripts run here with stubs in place of the programs; the units are
 * checked against our flags.
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { Stack } from "aws-cdk-lib";
import { checkedGraph, Graphs } from "../lib/constructs/graphs.ts";
import { nodeSetup } from "../lib/constructs/node-setup.ts";
import { temporaryFolder } from "../lib/temporary.ts";
import { flat, hasFlag } from "./support.ts";

const INFRA = join(import.meta.dirname, "..");
const SOURCES = join(INFRA, "..", "services", "storage", "src");

const LIMITS = { zones: 3, nodes: 3 };

const userData = nodeSetup({
  region: "eu-west-1",
  tablePrefix: "example-",
  objects: "s3://example-data",
  brokers: Array.from(
    { length: 3 },
    (_, index) => `b-${index}.example.abcdef.c2.kafka.eu-west-1.amazonaws.com:9098`,
  ).join(),
  fleetSecretArn: `arn:aws:secretsmanager:eu-west-1:111122223333:secret:${"x".repeat(60)}`,
  graphs: new Graphs(checkedGraph("", "people", { gremlin: { ids: "typed" } }, LIMITS), [], LIMITS),
  restores: {
    TIDEGRAPH_RESTORES_AT_ONCE: "8",
    TIDEGRAPH_RESTORE_READS: "32",
    TIDEGRAPH_RESTORE_BANDWIDTH: "500",
  },
  logReplication: 3,
  logInSync: 2,
  logVariables: { TIDEGRAPH_KAFKA_IAM_REGION: "eu-west-1" },
  awaitsRestore: false,
  program: { url: `s3://cdk-assets-111122223333-eu-west-1/${"f".repeat(64)}`, checksum: "ab".repeat(32) },
  logGroup: "/tidegraph/example/nodes",
  metricsLogGroup: "/tidegraph/example/metrics",
  deployment: "example",
});
const script = flat(new Stack().resolve(userData.render()));

/** Returns the files that the script writes, by path. */
function written(): Map<string, string> {
  const found = new Map<string, string>();
  for (const [, path = "", content = ""] of script.matchAll(
    /^cat >(\S+) <<'END OF FILE'\n(.*?)^END OF FILE$/gms,
  )) {
    found.set(path, content);
  }
  return found;
}

test("EC2 accepts the user data, which turns the units on without using the network", () => {
  // EC2 accepts at most 16 KiB.
  assert.ok(Buffer.byteLength(script) < 15_000, `${Buffer.byteLength(script)} bytes`);
  const checked = spawnSync("bash", ["-n"], { input: script, encoding: "utf8" });
  assert.equal(checked.status, 0, checked.stderr);
  const own = script.replaceAll(/^cat >\S+ <<'END OF FILE'\n.*?^END OF FILE$/gms, "");
  assert.doesNotMatch(own, /aws|dnf|curl/);
  const enable = own.match(/^systemctl enable --now --no-block (.*)$/m)?.[1]?.split(" ");
  const services = ["install.service", "prepare.service", "node.service", "leave.timer"];
  assert.deepEqual(
    enable,
    services.map((name) => `tidegraph-${name}`),
  );
  assert.match(script, /^set -euo pipefail$/m);
});

test("every file of the folder is on the machine, unchanged", () => {
  const files = written();
  const names = ["install.sh", "prepare.sh", "leave.sh"];
  for (const name of names) {
    assert.equal(
      files.get(`/opt/tidegraph/bin/${name}`),
      readFileSync(join(INFRA, "node", name), "utf8"),
      name,
    );
  }
  for (const name of names) {
    const checked = spawnSync("bash", ["-n", join(INFRA, "node", name)], { encoding: "utf8" });
    assert.equal(checked.status, 0, `${name}: ${checked.stderr}`);
  }
});

test("the daemon knows the flags and variables of the units", () => {
  const files = written();
  const unit = files.get("/etc/systemd/system/tidegraph-node.service") ?? "";
  const source = ["serve.rs", "serve/copies.rs", "serve/restores.rs", "admin.rs", "connect.rs"]
    .map((name) => readFileSync(join(SOURCES, name), "utf8"))
    .join("\n");
  const flags = [...unit.matchAll(/ --([a-z-]+)/g)].map(([, name = ""]) => name);
  assert.ok(flags.length >= 10, flags.join());
  for (const name of flags) {
    assert.ok(hasFlag(source, name), `--${name}`);
  }
  const environment = (files.get("/opt/tidegraph/etc/fleet.env") ?? "").trim().split("\n");
  const names = environment.map((line) => line.slice(0, line.indexOf("=")));
  for (const name of names.filter((one) => one.startsWith("TIDEGRAPH_"))) {
    assert.ok(source.includes(`env = "${name}"`), name);
  }
  // Every variable that units use in flags is set.
  const machine = readFileSync(join(INFRA, "node", "prepare.sh"), "utf8");
  for (const [, name = ""] of unit.matchAll(/\$\{([A-Z_]+)\}/g)) {
    assert.ok(names.includes(name) || machine.includes(`\n${name}=`), name);
  }
});

test("the daemon's user owns no folder in which root writes", () => {
  assert.match(script, /^umask 022$/m);
  assert.match(script, /^mkdir -p .* \/var\/log\/tidegraph$/m);
  const prepare = readFileSync(join(INFRA, "node", "prepare.sh"), "utf8");
  const given = [...script.matchAll(/^\s*(?:chown|chgrp|setfacl|install -o) .*$/gm)].map(([line]) =>
    line.trim(),
  );
  // In `prepare.sh`: a folder of the daemon alone, below one of root's.
  assert.deepEqual(given, ['chown tidegraph:tidegraph "$MOUNT/spill"']);
  assert.match(prepare, /^MOUNT=.*:-\/var\/lib\/tidegraph\}$/m);
  const unit = written().get("/etc/systemd/system/tidegraph-node.service") ?? "";
  assert.match(unit, /^User=tidegraph$/m);
  assert.match(unit, /^ProtectSystem=strict$/m);
  const writable = unit.match(/^(?:ReadWritePaths|LogsDirectory|StateDirectory)=.*$/gm);
  assert.deepEqual(writable, ["ReadWritePaths=/var/lib/tidegraph/spill"]);
  // systemd opens these as root, before it changes the user.
  for (const stream of ["Output", "Error"]) {
    assert.ok(unit.includes(`\nStandard${stream}=append:/var/log/tidegraph/node.log\n`), stream);
  }
  // The agent has a user of its own, so files that logrotate makes keep the mode of those that it copies.
  const rotation = written().get("/etc/logrotate.d/tidegraph") ?? "";
  assert.match(rotation, /^ {2}copytruncate$/m);
  assert.doesNotMatch(rotation, /^\s*(su|create)\b/m);
});

test("systemd accepts the units", () => {
  const folder = temporaryFolder("units");
  const units = [...written()].filter(([path]) => path.startsWith("/etc/systemd/system/"));
  assert.equal(units.length, 5);
  // The machine's programs and users do not exist here.
  const paths = units.map(([path, content]) => {
    const file = join(folder, path.slice(path.lastIndexOf("/") + 1));
    writeFileSync(file, content.replaceAll(/\/opt\/tidegraph\/bin\/[a-z.-]+/g, "/bin/true"));
    return file;
  });
  const verified = spawnSync("systemd-analyze", ["verify", ...paths], { encoding: "utf8" });
  assert.ifError(verified.error);
  const ours = verified.stderr.split("\n").filter((line) => /tidegraph-/.test(line));
  assert.deepEqual(ours, []);
});

test("the agent's settings are JSON, and name the namespace and the log groups", () => {
  const agent = JSON.parse(written().get("/opt/tidegraph/etc/agent.json") ?? "");
  const { prometheus } = agent.logs.metrics_collected;
  assert.equal(prometheus.log_group_name, "/tidegraph/example/metrics");
  assert.equal(prometheus.emf_processor.metric_namespace, "Tidegraph");
  const scraped = written().get("/opt/tidegraph/etc/prometheus.yaml") ?? "";
  assert.match(scraped, /targets: \["127\.0\.0\.1:9600"\]/);
  assert.match(scraped, /Deployment: example/);
});

/** What the stubs of `install.sh` keep, and how often each of them fails at first. */
interface Installation {
  readonly folder: string;
  readonly environment: NodeJS.ProcessEnv;
}

/** Makes stubs of the programs that `install.sh` calls; each fails as often as `failures` says. */
function installation(failures: Record<string, number>): Installation {
  const folder = temporaryFolder("install");
  mkdirSync(join(folder, "home", "bin"), { recursive: true });
  const program = "the program\n";
  const checksum = createHash("sha256").update(program).digest("hex");
  /** Writes a stub, in which `$n` is the number of failures that are left. */
  const stub = (name: string, text: string): void => {
    const count = `${folder}/${name}.fails`;
    const next = `next() { n=$(cat ${count}); echo $((n - 1)) >${count}; }`;
    writeFileSync(join(folder, `${name}.fails`), `${failures[name] ?? 0}\n`);
    const head = `#!/bin/bash\necho "${name} $*" >>${folder}/calls\n${next}\n`;
    writeFileSync(join(folder, name), `${head}${text}\n`, { mode: 0o755 });
  };
  const download = [
    `if [[ $4 != s3://program ]]; then cp "$4" ${folder}/sent; exit; fi`,
    "next",
    "if [[ $n -gt 1 ]]; then exit 1; fi",
    // The last failure is a download of other content.
    'if [[ $n -eq 1 ]]; then echo half >"$5"; else echo "the program" >"$5"; fi',
  ];
  stub("aws", download.join("\n"));
  stub("dnf", `next; [[ $n -le 0 ]] && touch ${folder}/installed`);
  stub("rpm", `[[ -e ${folder}/installed ]]`);
  stub("agent", "next; [[ $n -le 0 ]]");
  stub("sleep", "exit 0");
  return {
    folder,
    environment: {
      PATH: `${folder}:${process.env.PATH}`,
      HOSTNAME: "i-1",
      TIDEGRAPH_HOME: join(folder, "home"),
      TIDEGRAPH_AGENT: join(folder, "agent"),
      TIDEGRAPH_START_LOG: join(folder, "log", "start.log"),
      TIDEGRAPH_OBJECTS: "s3://data",
      PROGRAM_URL: "s3://program",
      PROGRAM_SHA256: checksum,
      PACKAGES: "amazon-cloudwatch-agent mdadm",
    },
  };
}

test("the start of a machine repeats what fails, and tells of it where there is no agent", () => {
  const { folder, environment } = installation({ aws: 4, dnf: 3, agent: 2 });
  const run = () =>
    spawnSync("bash", [join(INFRA, "node", "install.sh")], { encoding: "utf8", env: environment });
  const done = run();
  assert.equal(done.status, 0, done.stdout + done.stderr);
  const program = join(folder, "home", "bin", "tidegraph-node");
  assert.equal(readFileSync(program, "utf8"), "the program\n");
  assert.equal(statSync(program).mode & 0o777, 0o755);
  const calls = readFileSync(join(folder, "calls"), "utf8").trim().split("\n");
  const of = (beginning: string): string[] => calls.filter((call) => call.startsWith(beginning));
  assert.deepEqual(of("dnf").at(-1), "dnf install -y -q amazon-cloudwatch-agent mdadm");
  assert.equal(of("dnf").length, 4);
  assert.equal(of("agent").length, 3);
  assert.equal(of("aws s3 cp --only-show-errors s3://program").length, 5);
  // Its pauses grow.
  assert.deepEqual(of("sleep").slice(0, 3), ["sleep 1", "sleep 2", "sleep 4"]);
  const log = readFileSync(join(folder, "log", "start.log"), "utf8");
  for (const said of ["packages failed", "packages is done", "program is done"])
    assert.ok(log.includes(said), log);
  assert.match(readFileSync(join(folder, "sent"), "utf8"), /packages failed/);
  assert.ok(of("aws").some((call) => call.endsWith("s3://data/machines/i-1.log")));
  // At the next boot everything is there.
  writeFileSync(join(folder, "calls"), "");
  assert.equal(run().status, 0);
  const again = readFileSync(join(folder, "calls"), "utf8");
  assert.doesNotMatch(again, /^(aws|dnf|sleep)/m);
});

/** Runs the function of `prepare.sh` that finds the device, with stubs. */
function device(disks: readonly string[], known: Record<string, string>): { found: string; calls: string } {
  const folder = temporaryFolder("disks");
  mkdirSync(join(folder, "by-id"));
  for (const [index, disk] of disks.entries()) {
    writeFileSync(join(folder, disk), "");
    symlinkSync(
      join(folder, disk),
      join(folder, "by-id", `nvme-Amazon_EC2_NVMe_Instance_Storage_AWS${index}`),
    );
  }
  const lines = Object.entries(known).map(([disk, raid]) => `${folder}/${disk}) echo "${raid} raid0";;`);
  const programs = {
    lsblk: `#!/bin/bash\necho "\${@: -1} disk"\ncase "\${@: -1}" in ${lines.join(" ")} esac\n`,
    mdadm: `#!/bin/bash\necho "mdadm $*" >>${folder}/calls\n[[ $1 == --create ]]\n`,
  };
  for (const [name, text] of Object.entries(programs))
    writeFileSync(join(folder, name), text, { mode: 0o755 });
  const script = readFileSync(join(INFRA, "node", "prepare.sh"), "utf8");
  const functions = script.slice(0, script.indexOf("\nmount_disk\n"));
  const done = spawnSync("bash", ["-c", `${functions}\ndevice`], {
    encoding: "utf8",
    env: { PATH: `${folder}:${process.env.PATH}`, TIDEGRAPH_DISKS: join(folder, "by-id") },
  });
  assert.equal(done.status, 0, done.stderr);
  const calls = existsSync(join(folder, "calls")) ? readFileSync(join(folder, "calls"), "utf8") : "";
  return { found: done.stdout.trim().replace(`${folder}/`, ""), calls };
}

test("several disks are one device, which keeps its data when the kernel gives it another name", () => {
  assert.deepEqual(device(["nvme1n1"], {}), { found: "nvme1n1", calls: "" });
  const made = device(["nvme1n1", "nvme2n1"], {});
  assert.equal(made.found, "/dev/md/tidegraph");
  assert.match(made.calls, /^mdadm --assemble .*\nmdadm --create \/dev\/md\/tidegraph .*--raid-devices=2 /);
  const found = device(["nvme1n1", "nvme2n1"], { nvme1n1: "/dev/md127", nvme2n1: "/dev/md127" });
  assert.deepEqual(found, { found: "/dev/md127", calls: "" });
});

/**
 * Runs `leave.sh` of `i-1` with stubs in place of our programs, systemd's, and those that query the machine; returns
 * whether the daemon was stopped. `holders`: the nodes that have replicas, by graph.
 */
function leaves(target: string, holders: Record<string, readonly string[]>): boolean {
  const run = temporaryFolder("leave");
  const maps = Object.entries(holders).map(([graph, nodes]) => {
    const partitions = nodes.map((node, partition) => ({
      partition,
      replicas: [{ node, state: "serving" }],
    }));
    return `"map --graph ${graph}") echo '${JSON.stringify({ nodes: [], partitions })}';;\n`;
  });
  const programs = {
    curl: `#!/bin/sh\ncase "$*" in *api/token*) echo session;; *) echo ${target};; esac\n`,
    systemctl: `#!/bin/sh\necho "$@" >>${run}/stopped\n`,
    "tidegraph-node": `#!/bin/sh\ncase "$*" in\n${maps.join("")}*) exit 1;;\nesac\n`,
  };
  for (const [name, text] of Object.entries(programs)) writeFileSync(join(run, name), text, { mode: 0o755 });
  const script = readFileSync(join(INFRA, "node", "leave.sh"), "utf8");
  const done = spawnSync("bash", ["-c", script.replaceAll("/opt/tidegraph/bin", run)], {
    encoding: "utf8",
    env: {
      PATH: `${run}:${process.env.PATH}`,
      TIDEGRAPH_NODE: "i-1",
      TIDEGRAPH_GRAPH: Object.keys(holders).join(),
    },
  });
  assert.equal(done.status, 0, done.stderr);
  return existsSync(join(run, "stopped"));
}

test("a machine that is terminated stops its daemon once it holds no replica", () => {
  assert.equal(leaves("InService", { people: [] }), false);
  assert.equal(leaves("Terminated", { people: ["i-2", "i-1"] }), false);
  assert.equal(leaves("Terminated", { people: ["i-2", "i-3"] }), true);
  assert.equal(leaves("Terminated", { people: ["i-2", "i-3"], orders: ["i-1"] }), false);
  assert.equal(leaves("Terminated", { people: ["i-2", "i-3"], orders: ["i-3"] }), true);
});

for (const [variable, flag, name] of [
  ["CLIENT_TOKEN", "--token-file", "client-token"],
  ["ACCESS_KEYS", "--sigv4-credentials", "access-keys"],
] as const) {
  test(`the worker gets ${variable} as a private file and not as a variable`, () =>
    startsWorker(variable, flag, name));
}

function startsWorker(variable: string, flag: string, name: string): void {
  const folder = temporaryFolder("worker");
  mkdirSync(join(folder, "secrets"));
  const program = join(folder, "tidegraph");
  writeFileSync(program, `#!/bin/sh\necho "$@"\nenv\n`);
  chmodSync(program, 0o755);
  const done = spawnSync("sh", [join(INFRA, "worker", "start-worker.sh"), "--host", "0.0.0.0"], {
    encoding: "utf8",
    env: {
      PATH: process.env.PATH,
      TIDEGRAPH_PROGRAM: program,
      TIDEGRAPH_SECRETS: join(folder, "secrets"),
      [variable]: "the secret of clients",
    },
  });
  assert.equal(done.status, 0, done.stderr);
  const [flags = "", ...environment] = done.stdout.split("\n");
  const file = join(folder, "secrets", name);
  assert.equal(flags, `worker ${flag} ${file} --host 0.0.0.0`);
  assert.doesNotMatch(environment.join("\n"), /secret of/);
  assert.equal(readFileSync(file, "utf8"), "the secret of clients\n");
  assert.equal(statSync(file).mode & 0o777, 0o600);
}
