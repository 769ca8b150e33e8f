/** Invalid props are refused at synth, with their name, their value and the allowed values. */
import assert from "node:assert/strict";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { Duration, Stack } from "aws-cdk-lib";
import * as ec2 from "aws-cdk-lib/aws-ec2";
import { InvalidProp } from "../lib/check.ts";
import { GraphService, type GraphServiceProps } from "../lib/constructs/service.ts";
import { GraphState, type GraphStateProps } from "../lib/constructs/state.ts";
import { temporaryFolder } from "../lib/temporary.ts";
import { example, named, only, placeholders, testApp, workerEndpoint } from "./support.ts";

/** Expects that a prop is refused, with these words in the message. */
function refused(what: () => unknown, prop: string, ...words: string[]): void {
  assert.throws(what, (error) => {
    assert.ok(error instanceof InvalidProp, String(error));
    assert.equal(error.prop, prop);
    for (const word of [prop, ...words]) assert.ok(error.message.includes(word), error.message);
    return true;
  });
}

function state(props: Partial<GraphStateProps>): GraphState {
  return new GraphState(new Stack(testApp(), "Stack"), "State", { name: "example", ...props });
}

test("names", () => {
  for (const name of ["", "A", "my_graph", "9lives", "a", "ends-", `a${"b".repeat(32)}`, "räksmörgås"]) {
    refused(() => state({ name }), "name", JSON.stringify(name), "lower-case");
  }
  for (const graph of ["", "a b", "a/b", "a.b", "-a", "x".repeat(65)]) {
    refused(() => state({ graph }), "graph", JSON.stringify(graph));
  }
});

test("zones", () => {
  for (const zones of [0, 1, 4, -3, 2.5]) {
    refused(() => state({ network: { zones } }), "network.zones", String(zones), "from 2 to 3");
  }
  refused(() => state({ network: { availabilityZones: ["eu-west-1a"] } }), "network.zones", "1");
  const twice = ["eu-west-1a", "eu-west-1a", "eu-west-1b"];
  refused(() => state({ network: { availabilityZones: twice } }), "network.availabilityZones", "different");
  for (const cidr of ["10.0.0.0", "10.0.0.0/28", "10.0.0.0/8", "fd00::/56"]) {
    refused(() => state({ network: { cidr } }), "network.cidr", cidr);
  }
  const stack = new Stack(testApp(), "Stack");
  const subnetConfiguration = [{ name: "open", subnetType: ec2.SubnetType.PUBLIC }];
  const vpc = new ec2.Vpc(stack, "Vpc", { natGateways: 0, subnetConfiguration });
  const open = () => new GraphState(stack, "State", { name: "example", network: { vpc } });
  refused(open, "network.vpc", "private or isolated");
});

test("brokers", () => {
  for (const brokers of [0, -3, 1, 2]) {
    refused(() => state({ log: { brokers } }), "log.brokers", String(brokers), "from 3");
  }
  refused(() => state({ log: { brokers: 4 } }), "log.brokers", "4", "3 zones");
  refused(() => state({ network: { zones: 2 }, log: { brokers: 3 } }), "log.brokers", "from 4");
  for (const volumeGib of [0, -1, 1.5]) refused(() => state({ log: { volumeGib } }), "log.volumeGib");
  for (const mostVolumeGib of [0, 99, 16_385, 100.5]) {
    refused(() => state({ log: { mostVolumeGib } }), "log.mostVolumeGib", String(mostVolumeGib), "from 100");
  }
  for (const instanceType of ["", "m7g.large", "express.m7g.large", "kafka.m7g"]) {
    refused(() => state({ log: { instanceType } }), "log.instanceType", "kafka.m7g.large");
  }
});

const bundle = placeholders();

function service(props: Partial<GraphServiceProps>, of: Partial<GraphStateProps> = {}): GraphService {
  return new GraphService(new Stack(testApp(), "Stack"), "Service", { state: state(of), bundle, ...props });
}

test("partitions, shards and replicas", () => {
  for (const partitions of [3, 63, 65])
    refused(() => service({ partitions }), "partitions", "a power of two");
  for (const partitions of [0, -64, 65_536, 1.5]) refused(() => service({ partitions }), "partitions");
  refused(() => service({ partitions: 4, shards: 8 }), "shards", "8", "at most partitions, 4");
  for (const shards of [0, -1]) refused(() => service({ shards }), "shards");
  service({ partitions: 4, shards: 4 });
  for (const replication of [0, -1, 1.5]) refused(() => service({ replication }), "replication");
  refused(() => service({ replication: 4, nodes: { count: 6 } }), "replication", "zones, 3");
  refused(() => service({ replication: 3 }, { network: { zones: 2 } }), "replication", "zones, 2");
  refused(() => service({ replication: 3, nodes: { count: 2 } }), "replication", "nodes.count, 2");
});

test("what Gremlin means", () => {
  refused(() => service({ gremlin: { ids: "uuids" } }), "gremlin.ids", "strings, typed or longs");
  const defaultCardinality = "bag";
  refused(
    () => service({ gremlin: { defaultCardinality } }),
    "gremlin.defaultCardinality",
    "single, set or list",
  );
  service({ gremlin: { ids: "typed", defaultCardinality: "single" } });
});

test("nodes", () => {
  for (const count of [0, -3, 2.5, 301])
    refused(() => service({ nodes: { count } }), "nodes.count", String(count));
  for (const instanceType of ["m7g.large", "i4i.large", "i4g", "r7g.xlarge", "", "I4G.LARGE"]) {
    refused(() => service({ nodes: { instanceType } }), "nodes.instanceType", instanceType, "NVMe");
  }
  for (const instanceType of ["i4g.large", "i8g.16xlarge", "im4gn.xlarge", "r8gd.4xlarge"]) {
    service({ nodes: { instanceType } });
  }
  const fallback = (fallbackInstanceTypes: string[]) => () =>
    service({ nodes: { instanceType: "i8g.xlarge", fallbackInstanceTypes } });
  const first = "nodes.fallbackInstanceTypes[0]";
  refused(fallback(["m7g.large"]), first, "m7g.large", "NVMe");
  refused(fallback(["i8g.xlarge"]), first, "i8g.xlarge", "not given before");
  refused(fallback(["i4g.xlarge", "i4g.xlarge"]), "nodes.fallbackInstanceTypes[1]", "not given before");
  refused(fallback(Array(40).fill("i4g.xlarge")), "nodes.fallbackInstanceTypes", "at most 39");
  fallback(["i4g.xlarge", "im4gn.xlarge"])();
  for (const joinPatience of [Duration.seconds(0), Duration.seconds(30), Duration.hours(3)]) {
    refused(() => service({ nodes: { joinPatience } }), "nodes.joinPatience", "from 1 minute");
  }
});

test("Auto Scaling takes the times of the hooks for each patience", () => {
  for (const seconds of [60, 7140, 7200]) {
    const joinPatience = Duration.seconds(seconds);
    const { service } = example({ nodes: { joinPatience } });
    const group = only(service, "AWS::AutoScaling::AutoScalingGroup").Properties;
    const times = Object.fromEntries(
      group.LifecycleHookSpecificationList.map(
        (hook: { LifecycleHookName: string; HeartbeatTimeout: number }) => [
          hook.LifecycleHookName,
          hook.HeartbeatTimeout,
        ],
      ),
    );
    assert.deepEqual(Object.keys(times), ["joins", "leaves"]);
    for (const time of Object.values<number>(times)) assert.ok(time >= 30 && time <= 7200, `${time}`);
    // The hook never ends before the state machine that watches the machine.
    assert.ok(times.joins >= seconds, `${times.joins} with ${seconds}`);
  }
});

test("queries", () => {
  for (const wrong of [0, -1, 0.5]) {
    refused(() => service({ query: { requestsPerSecond: wrong } }), "query.requestsPerSecond", String(wrong));
    refused(() => service({ query: { burst: wrong } }), "query.burst", String(wrong));
    refused(() => service({ query: { concurrency: wrong } }), "query.concurrency", String(wrong));
  }
  for (const memoryMib of [0, 127, 10_241])
    refused(() => service({ query: { memoryMib } }), "query.memoryMib");
  // An idle stream of a regional API ends after 5 minutes, so no query may take that long.
  for (const timeoutSeconds of [0, 291, 300, 900])
    refused(() => service({ query: { timeoutSeconds } }), "query.timeoutSeconds", "from 1 to 290");
  service({ query: { timeoutSeconds: 290 } });
  const { certificate, zone } = workerEndpoint();
  const named =
    (name: string, more: object = {}) =>
    () =>
      service({ query: { domain: { name, certificate, zone }, ...more } });
  refused(named("Graph.example.com"), "query.domain.name", "such as graph.example.com");
  refused(named("graph.example.org"), "query.domain.name", "in the zone example.com");
  refused(
    named("graph.example.com", { privateAccess: true }),
    "query.domain.name",
    "without query.privateAccess",
  );
  for (const webAcl of ["", "graph", "arn:aws:wafv2:us-east-1:111122223333:global/webacl/graph/1"])
    refused(() => service({ query: { webAcl } }), "query.webAcl", JSON.stringify(webAcl), "regional web ACL");
  const vpcEndpoint = { vpcEndpointId: "vpce-1" } as ec2.IVpcEndpoint;
  refused(() => service({ query: { vpcEndpoint } }), "query.vpcEndpoint", "query.privateAccess");
  // The type cast stands for a value from the command line.
  const architecture = "amd64" as "x86_64";
  refused(() => service({ query: { architecture } }), "query.architecture", "amd64", "arm64 or x86_64");
});

test("loads of dropped files", () => {
  for (const concurrency of [0, -1, 1.5, 1001])
    refused(
      () => service({ ingest: { concurrency } }),
      "ingest.concurrency",
      String(concurrency),
      "from 1 to",
    );
  for (const reservedConcurrency of [0, 6, 7.5])
    refused(
      () => service({ ingest: { concurrency: 7, reservedConcurrency } }),
      "ingest.reservedConcurrency",
      String(reservedConcurrency),
      "from 7 to",
    );
  for (const concurrency of [0, 1, 2.5])
    refused(
      () => service({ rebalance: { concurrency } }),
      "rebalance.concurrency",
      String(concurrency),
      "from 2 to",
    );
  for (const memoryMib of [0, 128, 10_241])
    refused(() => service({ ingest: { memoryMib } }), "ingest.memoryMib", String(memoryMib), "from 256 to");
  for (const longest of [Duration.minutes(5), Duration.days(7)])
    refused(() => service({ ingest: { longest } }), "ingest.longest", longest.toHumanString(), "to 6 days");
  for (const staleAfter of [Duration.minutes(59), Duration.days(31)])
    refused(
      () => service({ ingest: { staleAfter } }),
      "ingest.staleAfter",
      staleAfter.toHumanString(),
      "from 1 hour",
    );
});

test("rotations of the secret", () => {
  for (const every of [Duration.hours(6), Duration.hours(36), Duration.days(1001)]) {
    refused(() => service({ secretRotation: every }), "secretRotation", "whole days, from 1 to 1000");
  }
  service({ secretRotation: Duration.days(7) });
  // From Python, whose types allow it.
  const always = true as unknown as false;
  refused(() => service({ secretRotation: always }), "secretRotation", "true", "a duration, or false");
  refused(() => service({ workers: always }), "workers", "true", "settings of workers, or false");
});

test("moves of replicas", () => {
  for (const moves of [0, -1, 257, 1.5])
    refused(() => service({ rebalance: { moves } }), "rebalance.moves", "to 256");
  refused(
    () => service({ rebalance: { moves: 256, restoresPerNode: 65 } }),
    "rebalance.restoresPerNode",
    "to 64",
  );
  for (const restoresPerNode of [0, 9])
    refused(
      () => service({ rebalance: { moves: 8, restoresPerNode } }),
      "rebalance.restoresPerNode",
      String(restoresPerNode),
      "from 1 to 8",
    );
  const { service: template } = example({ rebalance: { moves: 8, restoresPerNode: 4 } });
  const { Properties } = named(template, "AWS::Lambda::Function", "ServiceRebalance");
  const { TIDEGRAPH_MOVES, TIDEGRAPH_RESTORES_PER_NODE } = Properties.Environment.Variables;
  assert.deepEqual([TIDEGRAPH_MOVES, TIDEGRAPH_RESTORES_PER_NODE], ["8", "4"]);
});

test("moves follow the number of nodes", () => {
  const moves = (props: Partial<GraphServiceProps>): unknown =>
    named(example(props).service, "AWS::Lambda::Function", "ServiceRebalance").Properties.Environment
      .Variables.TIDEGRAPH_MOVES;
  assert.equal(moves({ nodes: { count: 2 } }), "32");
  assert.equal(moves({ nodes: { count: 6 } }), "96");
  assert.equal(moves({ nodes: { count: 100 } }), "256");
  assert.equal(moves({ nodes: { count: 10 }, rebalance: { restoresPerNode: 8 } }), "80");
});

test("restores of a node", () => {
  const cases = [
    ["nodes.restoresAtOnce", { restoresAtOnce: 0 }, "1024"],
    ["nodes.restoreReads", { restoreReads: 1025 }, "1024"],
    ["nodes.restoreBandwidth", { restoreBandwidth: 0.5 }, "100000"],
  ] as const;
  for (const [prop, nodes, most] of cases) refused(() => service({ nodes }), prop, `to ${most}`);
});

test("accounts that drop files", () => {
  for (const account of ["", "12345678901", "1234567890123", "arn:aws:iam::123456789012:root"])
    refused(() => state({ dropFrom: ["123456789012", account] }), "dropFrom[1]", "twelve digits");
});

test("one node for development", () => {
  const small = { network: { zones: 2 } };
  const made = service(
    { nodes: { count: 1, instanceType: "i4g.large" }, replication: 1, workers: false },
    small,
  );
  assert.equal(made.nodes.count, 1);
  refused(() => service({ nodes: { count: 1 } }, small), "replication", "at most nodes.count, 1");
});

test("files that expire", () => {
  for (const dropExpiration of [Duration.hours(12), Duration.hours(30), Duration.days(40_000)]) {
    refused(() => state({ dropExpiration }), "dropExpiration", "whole days, from 1");
  }
  // Files of a load that runs must not be deleted.
  const short = { dropExpiration: Duration.days(1) };
  refused(() => service({}, short), "ingest.longest", "1 day", "shorter than the state's dropExpiration");
  service({ ingest: { longest: Duration.hours(23) } }, short);
});

test("workers", () => {
  for (const count of [0, -1]) refused(() => service({ workers: { count } }), "workers.count", String(count));
  refused(() => service({ workers: { count: 4, most: 3 } }), "workers.most", "3", "at least 4");
  for (const cpu of [0, 1000, 32_768]) refused(() => service({ workers: { cpu } }), "workers.cpu", "1024");
  for (const memoryMib of [0, 1024, 16_384])
    refused(() => service({ workers: { memoryMib } }), "workers.memoryMib");
  // Fargate has only some sizes.
  const sizes: [cpu: number, memoryMib: number, fix: string][] = [
    [256, 1536, "512, 1024 or 2048"],
    [256, 4096, "512, 1024 or 2048"],
    [1024, 2560, "a multiple of 1024 from 2048 to 8192"],
    [4096, 31_744, "a multiple of 1024 from 8192 to 30720"],
    [8192, 18_432, "a multiple of 4096 from 16384 to 61440"],
    [16_384, 36_864, "a multiple of 8192 from 32768 to 122880"],
  ];
  for (const [cpu, memoryMib, fix] of sizes) {
    const wrong = () => service({ workers: { cpu, memoryMib } });
    refused(wrong, "workers.memoryMib", String(memoryMib), fix);
  }
  const { certificate, accessKeys, zone } = workerEndpoint();
  refused(() => service({ workers: { accessKeys } }), "workers.accessKeys", "workers.certificate");
  const named =
    (name: string, rest: object = { certificate }) =>
    () =>
      service({ workers: { domain: { name, zone }, ...rest } });
  refused(named("graph.example.com", {}), "workers.domain.name", "graph.example.com", "workers.certificate");
  for (const name of ["", "Graph.example.com", "graph", "-a.example.com", "https://graph.example.com"])
    refused(named(name), "workers.domain.name", JSON.stringify(name), "such as graph.example.com");
  for (const name of ["graph.example.org", "graphexample.com"])
    refused(named(name), "workers.domain.name", name, "in the zone example.com");
  service({ workers: { cpu: 256, memoryMib: 512 } });
  service({ workers: { cpu: 8192, memoryMib: 20_480 } });
  for (const baseImage of ["amazonlinux:latest", "", "amazonlinux@sha256:1234"]) {
    refused(() => service({ workers: { baseImage } }), "workers.baseImage", "digest");
  }
});

test("the bundle has every program, for the right processor", () => {
  refused(() => service({ bundle: "/nowhere" }), "bundle", "/nowhere", "a folder");
  for (const missing of [
    "bootstrap",
    "tidegraph",
    "tidegraph-node",
    "tidegraph-rebalance",
    "tidegraph-ingest",
  ]) {
    const folder = placeholders();
    rmSync(join(folder, missing));
    refused(() => service({ bundle: folder }), "bundle", `in which ${missing} is`);
    writeFileSync(join(folder, missing), "");
    refused(() => service({ bundle: folder }), "bundle", `in which ${missing} is`);
  }
  const folder = placeholders();
  const elf = Buffer.alloc(64);
  elf.write("\x7fELF", "latin1");
  // x86-64
  elf.writeUInt16LE(0x3e, 18);
  writeFileSync(join(folder, "tidegraph-node"), elf);
  refused(() => service({ bundle: folder }), "bundle", "tidegraph-node", "arm64");
  elf.writeUInt16LE(0xb7, 18);
  writeFileSync(join(folder, "tidegraph-node"), elf);
  service({ bundle: folder });
  // The query function may be built for another processor than the machines.
  writeFileSync(join(folder, "bootstrap"), elf);
  refused(
    () => service({ bundle: folder, query: { architecture: "x86_64" } }),
    "bundle",
    "bootstrap",
    "x86_64",
  );
  elf.writeUInt16LE(0x3e, 18);
  writeFileSync(join(folder, "bootstrap"), elf);
  refused(() => service({ bundle: folder }), "bundle", "bootstrap", "arm64");
  service({ bundle: folder, query: { architecture: "x86_64" } });
});

test("a folder that does not exist is refused", () => {
  const file = join(temporaryFolder("bundle"), "file");
  writeFileSync(file, "a file");
  refused(() => service({ bundle: file }), "bundle", "a folder");
});
