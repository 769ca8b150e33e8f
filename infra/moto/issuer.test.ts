/**
 * The certificates of a fleet: the code of the function (`infra/issuer/`) against moto's Secrets Manager. The test moves
 * the clock. OpenSSL checks the certificates, and Node's TLS connects two processes that have any two documents which may
 * be in use at the same time.
 */
import assert from "node:assert/strict";
import { execFile, execFileSync } from "node:child_process";
import { randomUUID, X509Certificate } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer as createHttpServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { connect, createServer } from "node:tls";
import { promisify } from "node:util";
import * as sm from "@aws-sdk/client-secrets-manager";
import { KINDS, type Kind, NODE_NAME } from "../issuer/certificates.ts";
import { checkedMode, type Mode, run, type Settings } from "../issuer/issuer.ts";
import { packFiles } from "../package/pack.ts";
import { REGION } from "./create.ts";
import { Moto } from "./server.ts";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

interface Document {
  readonly authorities: string;
  readonly certificate: string;
  readonly key: string;
  readonly serverName: string;
  readonly mode: Mode;
}

let moto: Moto;
let client: sm.SecretsManagerClient;
const folder = mkdtempSync(join(tmpdir(), "tidegraph-issuer-"));

before(async () => {
  moto = await Moto.start();
  const credentials = { accessKeyId: "test", secretAccessKey: "test" };
  client = new sm.SecretsManagerClient({ endpoint: moto.endpoint, region: REGION, credentials });
});
after(async () => {
  client.destroy();
  await moto.stop();
  rmSync(folder, { recursive: true });
});

/** A fleet whose clock the test moves. */
class Fleet {
  now = new Date("2030-01-01T00:00:00Z");
  readonly settings: { -readonly [K in keyof Settings]: Settings[K] };
  /** Machines, and callers of nodes, that were started without certificates; or why it is not known. */
  machines: readonly string[] = [];
  callers: readonly string[] | Error = [];

  private constructor(settings: Settings) {
    this.settings = { ...settings };
  }

  static async make(mode: Mode): Promise<Fleet> {
    // Without a first version, as CloudFormation makes them.
    const secret = async (): Promise<string> =>
      (await client.send(new sm.CreateSecretCommand({ Name: randomUUID() }))).ARN ?? "";
    const documents = { nodes: await secret(), workers: await secret(), functions: await secret() };
    return new Fleet({ fleet: "example", state: await secret(), documents, mode });
  }

  run(replaces = false, others: { client?: sm.SecretsManagerClient; atDeployment?: boolean } = {}) {
    const { settings, now } = this;
    const machines = async () => this.machines;
    const processes = async () => {
      if (this.callers instanceof Error) throw this.callers;
      return [...this.machines, ...this.callers];
    };
    const surroundings = { client: others.client ?? client, settings, now, machines };
    return run({ ...surroundings, processes: others.atDeployment ? undefined : processes }, replaces);
  }

  /** Runs as the schedule does, for some days. Calls back after each run. */
  async pass(days: number, each: () => Promise<void> = async () => undefined): Promise<void> {
    for (let hours = 0; hours < days * 24; hours += 6) {
      this.now = new Date(this.now.getTime() + 6 * HOUR_MS);
      await this.run();
      await each();
    }
  }

  async document(kind: Kind): Promise<Document> {
    return JSON.parse(await text(this.settings.documents[kind]));
  }

  async state() {
    return JSON.parse(await text(this.settings.state));
  }
}

async function text(SecretId: string): Promise<string> {
  return (await client.send(new sm.GetSecretValueCommand({ SecretId }))).SecretString ?? "";
}

/** Returns the authorities of a document. */
const trusted = ({ authorities }: Document): X509Certificate[] =>
  [...authorities.matchAll(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g)].map(
    ([pem]) => new X509Certificate(pem),
  );

function openssl(...args: string[]): string {
  return execFileSync("openssl", args, { encoding: "utf8", stdio: "pipe" });
}

/** Verifies a certificate for a purpose with OpenSSL, at a time. */
function verify(document: Document, purpose: string, now: Date, name?: string): string {
  const file = (part: string, content: string): string => {
    const path = join(folder, part);
    writeFileSync(path, content);
    return path;
  };
  const authorities = file("authorities.pem", document.authorities);
  const certificate = file("certificate.pem", document.certificate);
  const at = String(Math.floor(now.getTime() / 1000));
  const host = name === undefined ? [] : ["-verify_hostname", name];
  return openssl(
    ...["verify", "-x509_strict", "-attime", at, "-purpose", purpose, ...host],
    ...["-CAfile", authorities, certificate],
  );
}

/** Connects a client to a node, each with its document, over TLS of Node. The certificates must be valid now. */
async function meet(node: Document, other: Document): Promise<void> {
  const server = createServer({
    ...{ ca: node.authorities, cert: node.certificate, key: node.key },
    ...{ requestCert: true, rejectUnauthorized: true },
  });
  const refused = new Promise<never>((_, reject) => server.on("tlsClientError", reject));
  refused.catch(() => undefined);
  server.on("secureConnection", (socket) => socket.end("welcome"));
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  const { port } = server.address() as { port: number };
  try {
    const options = { ca: other.authorities, cert: other.certificate, key: other.key };
    const socket = connect({ ...options, host: "127.0.0.1", port, servername: other.serverName });
    const answered = new Promise<string>((done, reject) => {
      let found = "";
      socket.on("data", (bytes) => {
        found += bytes;
      });
      socket.on("end", () => done(found));
      socket.on("error", reject);
    });
    assert.equal(await Promise.race([answered, refused]), "welcome");
  } finally {
    server.close();
  }
}

test("OpenSSL verifies the certificates, each for what its processes do", async () => {
  const fleet = await Fleet.make("require");
  const report = await fleet.run();
  assert.deepEqual(report.issued, [...KINDS]);
  assert.ok(!JSON.stringify(report).includes("PRIVATE"));
  const keys = new Set<string>();
  for (const kind of KINDS) {
    const document = await fleet.document(kind);
    keys.add(document.key);
    assert.match(verify(document, "sslclient", fleet.now), /OK/);
    const certificate = new X509Certificate(document.certificate);
    assert.ok(certificate.subject.includes(`CN=${kind} of example`), certificate.subject);
    assert.equal(certificate.ca, false);
    assert.equal(new Date(certificate.validTo).getTime(), fleet.now.getTime() + 7 * DAY_MS);
    if (kind === "nodes") {
      assert.match(verify(document, "sslserver", fleet.now, NODE_NAME), /OK/);
      assert.equal(document.serverName, NODE_NAME);
    } else {
      // Only nodes may serve: a worker's certificate does not make a node.
      assert.throws(() => verify(document, "sslserver", fleet.now), /unsuitable certificate purpose|purpose/);
      assert.equal(certificate.checkHost(NODE_NAME), undefined);
    }
    const late = new Date(fleet.now.getTime() + 7 * DAY_MS + 1000);
    assert.throws(() => verify(document, "sslclient", late), /expired/);
    const [authority] = trusted(document);
    assert.equal(authority?.ca, true);
    // Nothing of the authority's key is in a document.
    const { current } = await fleet.state();
    assert.ok(!JSON.stringify(document).includes(current.key.split("\n")[1]));
  }
  assert.equal(keys.size, KINDS.length, "each kind has a key of its own");
  const other = await Fleet.make("require");
  await other.run();
  const [theirs, ours] = [await other.document("nodes"), await fleet.document("nodes")];
  const mixed = { ...ours, authorities: theirs.authorities };
  assert.throws(() => verify(mixed, "sslclient", fleet.now), /unable to get local issuer certificate/);
});

test("a run that finds all in order writes nothing, and a third of the time later it renews", async () => {
  const fleet = await Fleet.make("require");
  await fleet.run();
  const before = await fleet.document("nodes");
  await fleet.pass(2.25);
  assert.deepEqual(await fleet.document("nodes"), before);
  await fleet.pass(0.25);
  const renewed = await fleet.document("nodes");
  assert.equal(renewed.authorities, before.authorities);
  assert.notEqual(renewed.certificate, before.certificate);
  assert.notEqual(renewed.key, before.key);
  // A month of the schedule: no certificate is ever close to its end.
  await fleet.pass(30, async () => {
    for (const kind of KINDS) {
      const { validTo } = new X509Certificate((await fleet.document(kind)).certificate);
      assert.ok(new Date(validTo).getTime() - fleet.now.getTime() > 4 * DAY_MS, validTo);
    }
  });
});

test("somebody who asks for another authority gets it in steps, and each two steps accept each other", async () => {
  const fleet = await Fleet.make("require");
  // Node checks dates with the machine's clock.
  fleet.now = new Date();
  await fleet.run();
  const [first] = trusted(await fleet.document("nodes"));
  const seen = [{ nodes: await fleet.document("nodes"), workers: await fleet.document("workers") }];
  const step = async (): Promise<void> => {
    const found = { nodes: await fleet.document("nodes"), workers: await fleet.document("workers") };
    const last = seen.at(-1);
    if (last?.nodes.authorities !== found.nodes.authorities) seen.push(found);
  };
  await fleet.run(true);
  await step();
  // A second wish while a change is under way changes nothing.
  await fleet.run(true);
  await step();
  // Dates of certificates are those of the schedule, so the clock of the machine is not far from them.
  await fleet.pass(3, step);
  assert.equal(seen.length, 4, "alone, with the next one, with the one before, alone");
  assert.deepEqual(
    seen.map(({ nodes }) => trusted(nodes).length),
    [1, 2, 2, 1],
  );
  const [last] = trusted((seen.at(-1) ?? assert.fail()).nodes);
  assert.notEqual(last?.fingerprint256, first?.fingerprint256);
  // Certificates that are not valid yet by this machine's clock are compared by their signatures.
  const accepts = (one: Document, other: Document): boolean =>
    trusted(one).some(({ publicKey }) => new X509Certificate(other.certificate).verify(publicKey));
  for (const [at, { nodes, workers }] of seen.entries()) {
    for (const next of seen.slice(at, at + 2)) {
      assert.ok(accepts(nodes, next.workers) && accepts(next.workers, nodes), `step ${at}`);
      assert.ok(accepts(workers, next.nodes) && accepts(next.nodes, workers), `step ${at}`);
    }
  }
  const state = await fleet.state();
  assert.equal(state.next, undefined);
  assert.equal(state.previous, undefined);
});

test("Node connects processes with these certificates, and none of another fleet", async () => {
  const [fleet, other] = [await Fleet.make("require"), await Fleet.make("require")];
  for (const one of [fleet, other]) {
    one.now = new Date();
    await one.run();
  }
  const nodes = await fleet.document("nodes");
  for (const kind of KINDS) await meet(nodes, await fleet.document(kind));
  // A renewed client meets a node that is not, with the next authority beside.
  await fleet.run(true);
  await meet(nodes, await fleet.document("workers"));
  await meet(await fleet.document("nodes"), await fleet.document("functions"));
  const stranger = { ...(await other.document("workers")), authorities: nodes.authorities };
  await assert.rejects(meet(nodes, stranger));
  // A worker that poses as a node.
  await assert.rejects(meet(await fleet.document("workers"), nodes));
});

test("an old authority is replaced by itself, and the fleet is never without a valid one", async () => {
  const fleet = await Fleet.make("require");
  await fleet.run();
  const [first] = trusted(await fleet.document("nodes"));
  fleet.now = new Date(fleet.now.getTime() + 364 * DAY_MS);
  await fleet.run();
  assert.equal(trusted(await fleet.document("nodes")).length, 1);
  await fleet.pass(5, async () => {
    for (const kind of KINDS) assert.match(verify(await fleet.document(kind), "sslclient", fleet.now), /OK/);
  });
  const after = trusted(await fleet.document("nodes"));
  assert.equal(after.length, 1);
  assert.notEqual(after[0]?.fingerprint256, first?.fingerprint256);
});

test("a fleet goes to required connections and back one mode at a time", async () => {
  const fleet = await Fleet.make("accept");
  const modes: Mode[] = [];
  const look = async (): Promise<void> => {
    const found = await Promise.all(KINDS.map(async (kind) => (await fleet.document(kind)).mode));
    assert.equal(new Set(found).size, 1);
    if (found[0] !== undefined && found[0] !== modes.at(-1)) modes.push(found[0]);
  };
  await fleet.run();
  await fleet.pass(3, look);
  fleet.settings.mode = "require";
  await fleet.pass(3, look);
  fleet.settings.mode = "accept";
  await fleet.pass(3, look);
  assert.deepEqual(modes, ["accept", "prefer", "require", "prefer", "accept"]);
  assert.throws(() => checkedMode("off"), /"off"/);
});

test("connections need certificates only when each process was started with them", async () => {
  const fleet = await Fleet.make("accept");
  await fleet.run();
  [fleet.machines, fleet.callers] = [
    ["i-1", "i-2"],
    ["workers:1", "query:1"],
  ];
  await fleet.pass(3);
  // Somebody deploys before the upgrade has replaced the machines: nothing changes, for as long as it takes.
  fleet.settings.mode = "require";
  assert.deepEqual((await fleet.run(false, { atDeployment: true })).waitsFor, [
    "the next run of the schedule",
  ]);
  await fleet.pass(5);
  const waits = await fleet.run();
  assert.deepEqual(
    [waits.mode, waits.waitsFor, waits.changes],
    ["accept", ["i-1", "i-2", "workers:1", "query:1"], []],
  );
  assert.equal((await fleet.document("nodes")).mode, "accept");
  // All nodes have certificates, and a worker without them would be refused.
  fleet.machines = [];
  await fleet.pass(2);
  assert.deepEqual((await fleet.run()).waitsFor, ["workers:1", "query:1"]);
  fleet.callers = [];
  assert.deepEqual((await fleet.run()).changes, ["connections: prefer"]);
  // A machine of before is started again before the next step.
  await fleet.pass(0.5);
  fleet.machines = ["i-3"];
  await fleet.pass(2);
  assert.deepEqual([(await fleet.run()).mode, (await fleet.run()).waitsFor], ["prefer", ["i-3"]]);
  fleet.machines = Array.from({ length: 300 }, (_, n) => `i-${n}`);
  assert.equal((await fleet.run()).waitsFor.length, 10);
  fleet.machines = [];
  await fleet.pass(1);
  assert.equal((await fleet.document("workers")).mode, "require");
  // Back down nothing waits.
  [fleet.machines, fleet.settings.mode] = [["i-4"], "accept"];
  await fleet.pass(3);
  assert.equal((await fleet.document("nodes")).mode, "accept");
});

test("certificates are renewed while it is not known what processes were started with, and the run fails", async () => {
  const fleet = await Fleet.make("accept");
  await fleet.run();
  await fleet.pass(2);
  [fleet.settings.mode, fleet.callers] = ["require", new Error("AccessDenied: no")];
  const before = await fleet.document("nodes");
  fleet.now = new Date(fleet.now.getTime() + 3 * DAY_MS);
  await assert.rejects(fleet.run(), /AccessDenied/);
  const after = await fleet.document("nodes");
  assert.notEqual(after.certificate, before.certificate);
  assert.equal(after.mode, "accept");
});

test("a deployment that has machines begins with connections of both kinds, whatever it asks for", async () => {
  const fleet = await Fleet.make("require");
  fleet.machines = ["i-1"];
  const first = await fleet.run(false, { atDeployment: true });
  assert.deepEqual(first.changes, ["made the first authority", "connections: accept"]);
  assert.equal((await fleet.document("nodes")).mode, "accept");
  fleet.machines = [];
  await fleet.pass(3);
  assert.equal((await fleet.document("nodes")).mode, "require");
  // One without machines has nobody who would have to change.
  assert.equal((await (await Fleet.make("require")).run(false, { atDeployment: true })).mode, "require");
});

test("a run that dies after any of its writes leaves a working fleet, and the next run goes on", async () => {
  for (let writes = 0; writes < 5; writes += 1) {
    const fleet = await Fleet.make("require");
    await fleet.run();
    const before = await fleet.document("nodes");
    await dies(fleet, writes, true);
    // All documents, whichever were written, trust the certificates of all others.
    const documents = await Promise.all(KINDS.map((kind) => fleet.document(kind)));
    for (const one of documents) {
      for (const { certificate } of [...documents, before])
        assert.match(verify({ ...one, certificate }, "sslclient", fleet.now), /OK/);
    }
    await fleet.pass(3);
    const { next, previous, current } = await fleet.state();
    assert.deepEqual([next, previous], [undefined, undefined]);
    // With no write at all, nobody asked for another authority.
    const [kept] = trusted(before);
    assert.equal(
      new X509Certificate(current.certificate).fingerprint256 === kept?.fingerprint256,
      writes === 0,
    );
  }
  // The step in which the next authority begins to sign.
  for (let writes = 0; writes < 5; writes += 1) {
    const fleet = await Fleet.make("require");
    await fleet.run();
    await fleet.run(true);
    fleet.now = new Date(fleet.now.getTime() + 25 * HOUR_MS);
    const before = await Promise.all(KINDS.map((kind) => fleet.document(kind)));
    await dies(fleet, writes, false);
    const after = await Promise.all(KINDS.map((kind) => fleet.document(kind)));
    for (const one of [...before, ...after]) {
      for (const { certificate } of [...before, ...after])
        assert.match(verify({ ...one, certificate }, "sslclient", fleet.now), /OK/);
    }
    await fleet.pass(2);
    assert.equal((await fleet.state()).previous, undefined);
  }
});

test("of two runs at once one fails, and both leave one authority", async () => {
  const fleet = await Fleet.make("require");
  const runs = await Promise.allSettled([fleet.run(), fleet.run()]);
  const failures = runs.flatMap((one) => (one.status === "rejected" ? [one.reason.name] : []));
  assert.ok(
    failures.length <= 1 && failures.every((name) => name === "ResourceExistsException"),
    `${failures}`,
  );
  await fleet.run();
  const documents = await Promise.all(KINDS.map((kind) => fleet.document(kind)));
  assert.equal(new Set(documents.map(({ authorities }) => authorities)).size, 1);
  for (const one of documents) assert.match(verify(one, "sslclient", fleet.now), /OK/);
});

test("what somebody else wrote into a secret is replaced in documents, and refused in the state", async () => {
  const fleet = await Fleet.make("require");
  await fleet.run();
  const put = (SecretId: string, SecretString: string) =>
    client.send(new sm.PutSecretValueCommand({ SecretId, SecretString }));
  await put(fleet.settings.documents.workers, "{}");
  assert.deepEqual((await fleet.run()).issued, ["workers"]);
  const { authorities } = await fleet.document("nodes");
  await put(fleet.settings.documents.nodes, "half of a docum");
  assert.deepEqual((await fleet.run()).issued, ["nodes"]);
  assert.equal((await fleet.document("nodes")).authorities, authorities);
  const [first] = trusted(await fleet.document("nodes"));
  await put(fleet.settings.state, "{}");
  assert.deepEqual((await fleet.run()).changes, ["made the first authority", "connections: require"]);
  assert.notEqual(trusted(await fleet.document("nodes"))[0]?.fingerprint256, first?.fingerprint256);
  await put(fleet.settings.state, "a secret text");
  await assert.rejects(fleet.run(), (error: Error) => {
    assert.match(error.message, /is not JSON/);
    return !error.message.includes("a secret text");
  });
});

test("the first run of the schedule names who lacks certificates, long before a step is due", async () => {
  const fleet = await Fleet.make("require");
  fleet.machines = ["i-1", "i-2", "i-3"];
  const first = await fleet.run(false, { atDeployment: true });
  assert.deepEqual([first.mode, first.waitsFor], ["accept", []]);
  fleet.now = new Date(fleet.now.getTime() + 60_000);
  assert.deepEqual((await fleet.run()).waitsFor, ["i-1", "i-2", "i-3"]);
  // An upgrade replaces them. That nobody lacks certificates does not bring the step forward.
  fleet.machines = [];
  const replaced = await fleet.run();
  assert.deepEqual([replaced.mode, replaced.waitsFor, replaced.changes], ["accept", [], []]);
  await fleet.pass(1);
  assert.deepEqual([(await fleet.run()).mode, (await fleet.document("nodes")).mode], ["prefer", "prefer"]);
  // On the way down nobody has to be waited for.
  fleet.settings.mode = "accept";
  fleet.callers = ["query:1"];
  assert.deepEqual((await fleet.run()).waitsFor, []);
});

test("the bundled function issues, and answers CloudFormation", async () => {
  const fleet = await Fleet.make("require");
  const { state, documents } = fleet.settings;
  await packFiles(folder);
  const answers: { Status: string; Reason: string; PhysicalResourceId: string }[] = [];
  let stack = "CREATE_IN_PROGRESS";
  const server = createHttpServer((request, response) => {
    let body = "";
    request.on("data", (bytes) => {
      body += bytes;
    });
    request.on("end", () => {
      // CloudFormation, for which moto needs more packages.
      const status = `<StackStatus>${stack}</StackStatus>`;
      const stacks = `<DescribeStacksResult><Stacks><member>${status}</member></Stacks></DescribeStacksResult>`;
      if (request.method === "PUT") answers.push(JSON.parse(body));
      else response.setHeader("content-type", "text/xml");
      const isAsked = body.includes("Action=DescribeStacks");
      response.end(isAsked ? `<DescribeStacksResponse>${stacks}</DescribeStacksResponse>` : undefined);
    });
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  const { port } = server.address() as { port: number };
  const env = {
    ...process.env,
    ...{ AWS_ACCESS_KEY_ID: "test", AWS_SECRET_ACCESS_KEY: "test", AWS_REGION: REGION },
    ...{ AWS_ENDPOINT_URL: moto.endpoint, AWS_ENDPOINT_URL_CLOUDFORMATION: `http://127.0.0.1:${port}` },
    ...{ FLEET: "example", MODE: "require", GROUP: "example-nodes" },
    ...{ STATE_SECRET: state, NODES_SECRET: documents.nodes },
    ...{ WORKERS_SECRET: documents.workers, FUNCTIONS_SECRET: documents.functions },
  };
  /** Calls the handler in a process of its own, and returns what it prints. */
  const call = async (event: object, others: Record<string, string> = {}): Promise<string> => {
    const bundle = join(folder, "functions", "certificates", "index.js");
    const code = `require(${JSON.stringify(bundle)}).handler(${JSON.stringify(event)})`;
    const started = promisify(execFile)(process.execPath, ["-e", code], { env: { ...env, ...others } });
    const { stdout, stderr } = await started;
    return stdout + stderr;
  };
  try {
    const ids = { StackId: "s", RequestId: "r", LogicalResourceId: "l" };
    const request = { ...ids, ResponseURL: `http://127.0.0.1:${port}/` };
    // Machines are not looked at: nothing listens there.
    const first = await call(
      { ...request, RequestType: "Create" },
      { AWS_ENDPOINT_URL_AUTO_SCALING: "http://127.0.0.1:1" },
    );
    assert.match(first, /"made the first authority","connections: require"/);
    assert.doesNotMatch(first, /PRIVATE KEY/);
    assert.match(verify(await fleet.document("nodes"), "sslserver", new Date(), NODE_NAME), /OK/);
    assert.match(await call({}), /"issued":\[\]/);
    assert.match(await call({ replaceAuthority: true }), /"authorities":2/);
    // A step is due, and the run looks at what the schedule names: moto has no such function.
    const { modeSince: _, ...settled } = await fleet.state();
    const since = new Date(Date.now() - 3 * DAY_MS).toISOString();
    const SecretString = JSON.stringify({ ...settled, mode: "accept", modeSince: since });
    await client.send(new sm.PutSecretValueCommand({ SecretId: state, SecretString }));
    assert.match(await call({}), /"mode":"accept".*"waitsFor":\["the next run of the schedule"\]/);
    const callers = { function: "example-query", alias: "live" };
    await assert.rejects(call({ callers }), /ResourceNotFoundException/);
    assert.equal((await fleet.state()).mode, "accept");
    stack = "UPDATE_IN_PROGRESS";
    const PhysicalResourceId = answers[0]?.PhysicalResourceId ?? "";
    await call({ ...request, PhysicalResourceId, RequestType: "Update" }, { MODE: "off" });
    await call({ ...request, PhysicalResourceId, RequestType: "Delete" }, { MODE: "off" });
    assert.deepEqual(
      answers.map(({ Status }) => Status),
      ["SUCCESS", "FAILED", "SUCCESS"],
    );
    assert.match(answers[1]?.Reason ?? "", /"off"/);
    assert.equal(new Set(answers.map((one) => one.PhysicalResourceId)).size, 1);
  } finally {
    server.close();
  }
});

/** Runs, and dies after a number of writes. */
async function dies(fleet: Fleet, writes: number, replaces: boolean): Promise<void> {
  let left = writes;
  const dying = new Proxy(client, {
    get(target, name) {
      if (name !== "send") return Reflect.get(target, name);
      return (command: sm.GetSecretValueCommand) => {
        if (command instanceof sm.PutSecretValueCommand && left-- === 0) throw new Error("died");
        return target.send(command);
      };
    },
  });
  await assert.rejects(fleet.run(replaces, { client: dying }), /died/);
}
