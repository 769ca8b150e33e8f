/**
 * What machines and workers are started with. The scripts run here with stubs in place of the programs; the units are
 * checked against our flags.
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { Stack } from "aws-cdk-lib";
import { nodeSetup } from "../lib/constructs/node-setup.ts";
import { temporaryFolder } from "../lib/temporary.ts";
import { flat, hasFlag } from "./support.ts";

const INFRA = join(import.meta.dirname, "..");
const SOURCES = join(INFRA, "..", "services", "storage", "src");

const userData = nodeSetup({
  region: "eu-west-1",
  graph: "people",
  tablePrefix: "example-",
  objects: "s3://example-data",
  brokers: Array.from(
    { length: 3 },
    (_, index) => `b-${index}.example.abcdef.c2.kafka.eu-west-1.amazonaws.com:9098`,
  ).join(),
  fleetSecretArn: `arn:aws:secretsmanager:eu-west-1:111122223333:secret:${"x".repeat(60)}`,
  partitions: 64,
  shards: 1,
  replication: 2,
  logReplication: 3,
  logInSync: 2,
  logVariables: { TIDEGRAPH_KAFKA_IAM_REGION: "eu-west-1" },
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

test("EC2 accepts the user data, which downloads the program before it starts the daemon", () => {
  // EC2 accepts at most 16 KiB.
  assert.ok(Buffer.byteLength(script) < 15_000, `${Buffer.byteLength(script)} bytes`);
  const checked = spawnSync("bash", ["-n"], { input: script, encoding: "utf8" });
  assert.equal(checked.status, 0, checked.stderr);
  const order = ["aws s3 cp", "sha256sum --check --strict", "systemctl enable --now"];
  const places = order.map((words) => script.indexOf(words));
  assert.ok(places.every((place) => place > 0));
  assert.deepEqual(
    places,
    [...places].sort((a, b) => a - b),
  );
  assert.match(script, /^set -euo pipefail$/m);
});

test("every file of the folder is on the machine, unchanged", () => {
  const files = written();
  const names = ["prepare.sh", "fetch-token.sh", "leave.sh"];
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
  const source = ["serve.rs", "admin.rs", "connect.rs"]
    .map((name) => readFileSync(join(SOURCES, name), "utf8"))
    .join("\n");
  const flags = [...unit.matchAll(/ --([a-z-]+)/g)].map(([, name = ""]) => name);
  assert.ok(flags.length >= 11, flags.join());
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

test("systemd accepts the units", () => {
  const folder = temporaryFolder("units");
  const units = [...written()].filter(([path]) => path.startsWith("/etc/systemd/system/"));
  assert.equal(units.length, 4);
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

/**
 * Runs `leave.sh` of `i-1` with stubs in place of our programs, systemd's, and those that query the machine; returns
 * whether the daemon was stopped.
 */
function leaves(target: string, holders: readonly string[]): boolean {
  const run = temporaryFolder("leave");
  const partitions = holders.map((node, partition) => ({
    partition,
    replicas: [{ node, state: "serving" }],
  }));
  const programs = {
    curl: `#!/bin/sh\ncase "$*" in *api/token*) echo session;; *) echo ${target};; esac\n`,
    systemctl: `#!/bin/sh\necho "$@" >>${run}/stopped\n`,
    "tidegraph-node": `#!/bin/sh\necho '${JSON.stringify({ nodes: [], partitions })}'\n`,
  };
  for (const [name, text] of Object.entries(programs)) writeFileSync(join(run, name), text, { mode: 0o755 });
  const script = readFileSync(join(INFRA, "node", "leave.sh"), "utf8");
  const done = spawnSync("bash", ["-c", script.replaceAll("/opt/tidegraph/bin", run)], {
    encoding: "utf8",
    env: { PATH: `${run}:${process.env.PATH}`, TIDEGRAPH_NODE: "i-1" },
  });
  assert.equal(done.status, 0, done.stderr);
  return existsSync(join(run, "stopped"));
}

test("a machine that is terminated stops its daemon once it holds no replica", () => {
  assert.equal(leaves("InService", []), false);
  assert.equal(leaves("Terminated", ["i-2", "i-1"]), false);
  assert.equal(leaves("Terminated", ["i-2", "i-3"]), true);
});

test("the worker gets its secrets as private files and not as variables", () => {
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
      FLEET_TOKEN: "the secret of the fleet",
      CLIENT_TOKEN: "the secret of clients",
    },
  });
  assert.equal(done.status, 0, done.stderr);
  const [flags = "", ...environment] = done.stdout.split("\n");
  const files = ["fleet-token", "client-token"].map((name) => join(folder, "secrets", name));
  assert.equal(flags, `worker --fleet-token-file ${files[0]} --token-file ${files[1]} --host 0.0.0.0`);
  assert.doesNotMatch(environment.join("\n"), /secret of/);
  const [fleet = "", client = ""] = files;
  assert.equal(readFileSync(fleet, "utf8"), "the secret of the fleet\n");
  assert.equal(readFileSync(client, "utf8"), "the secret of clients\n");
  for (const file of files) assert.equal(statSync(file).mode & 0o777, 0o600);
});
