/**
 * A deployment with `encryption`: the function has filled the secrets, the nodes' user data and the functions' variables
 * name theirs, nodes accept only connections with a certificate, and everything else was done over such connections.
 */
import assert from "node:assert/strict";
import { X509Certificate } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { connect as connectPlain } from "node:net";
import { join } from "node:path";
import { test } from "node:test";
import { connect } from "node:tls";
import { ask, authorization, deployed } from "../../src/aws.ts";
import { eventually } from "../../src/server.ts";

const { certificates, endpoint, functionLogs, nodes, secrets } = deployed();
assert.ok(certificates, "the deployment has no certificates");

const HOUR_MS = 3_600_000;
const KINDS = ["nodes", "workers", "functions"] as const;

interface Document {
  readonly authorities: string;
  readonly certificate: string;
  readonly key: string;
  readonly serverName: string;
  readonly mode: string;
}

async function secret<Content>(SecretId: string): Promise<Content> {
  const answer = await ask("secretsmanager", "secretsmanager.GetSecretValue", { SecretId });
  assert.equal(answer.status, 200, answer.body);
  return JSON.parse(JSON.parse(answer.body).SecretString) as Content;
}

const documents = new Map(
  await Promise.all(KINDS.map(async (kind) => [kind, await secret<Document>(certificates[kind])] as const)),
);

function of(kind: (typeof KINDS)[number]): Document {
  const document = documents.get(kind);
  assert.ok(document);
  return document;
}

/** Makes a connection with TLS to a node's port, and returns the subject of its certificate, or the error. */
function shake(port: number, shown?: Document): Promise<string> {
  const { authorities: ca, serverName } = of("functions");
  return new Promise((done) => {
    const socket = connect({
      ...{ host: "127.0.0.1", port, servername: serverName, ca },
      ...(shown && { cert: shown.certificate, key: shown.key }),
    });
    const end = (said: string) => {
      socket.destroy();
      done(said);
    };
    socket.on("error", (error: NodeJS.ErrnoException) => end(`refused: ${error.code}`));
    // With TLS 1.3 a client learns after its handshake that the server refuses its certificate: by the end.
    socket.on("close", () => end("refused: closed"));
    socket.on("secureConnect", () => {
      const subject = socket.getPeerX509Certificate()?.subject ?? "nobody";
      setTimeout(() => end(subject), 1_000);
    });
  });
}

test("each kind of processes has a certificate of the fleet's authority in a secret of its own", async () => {
  const state = await secret<{ current: { certificate: string }; mode: string }>(certificates.authority);
  assert.equal(state.mode, "require");
  const authority = new X509Certificate(state.current.certificate);
  for (const kind of KINDS) {
    const { authorities, certificate, key, mode } = of(kind);
    assert.equal(mode, "require", kind);
    assert.match(key, /PRIVATE KEY/, kind);
    assert.equal(new X509Certificate(authorities).fingerprint256, authority.fingerprint256, kind);
    const shown = new X509Certificate(certificate);
    assert.ok(shown.verify(authority.publicKey), kind);
    const left = Date.parse(shown.validTo) - Date.now();
    assert.ok(left > 6 * 24 * HOUR_MS && left < 8 * 24 * HOUR_MS, `${kind}: ${left} ms`);
  }
  assert.equal(new Set(KINDS.map((kind) => of(kind).certificate)).size, 3);
});

test("the nodes' user data and the functions' variables name their secret and no other", async () => {
  for (const node of nodes) assert.equal(node.certificates, certificates.nodes, node.name);
  const answer = await fetch(`${endpoint}/2015-03-31/functions`, {
    headers: { authorization: authorization("lambda") },
  });
  const { Functions } = (await answer.json()) as {
    Functions: { FunctionName: string; Environment?: { Variables: Record<string, string> } }[];
  };
  const named = Functions.flatMap(({ FunctionName, Environment }) => {
    const { TIDEGRAPH_TLS_SECRET: arn } = Environment?.Variables ?? {};
    return arn === undefined ? [] : [[FunctionName, arn]];
  });
  assert.equal(named.length, 2, "the functions that query and that load");
  for (const [name, arn] of named) assert.equal(arn, certificates.functions, name);
});

test("a node accepts only connections with a certificate of the fleet", async () => {
  for (const { name, fleetPort } of nodes) {
    assert.match(await shake(fleetPort, of("functions")), /^(?!refused)/, name);
    assert.match(await shake(fleetPort), /^refused/, name);
    // A process without TLS: the node ends the connection and answers nothing.
    const answered = await new Promise<number>((done, fail) => {
      const socket = connectPlain({ host: "127.0.0.1", port: fleetPort });
      let bytes = 0;
      socket.on("data", (data) => {
        bytes += data.length;
      });
      socket.on("close", () => done(bytes));
      socket.on("error", (error: NodeJS.ErrnoException) =>
        error.code === "ECONNRESET" ? done(bytes) : fail(error),
      );
      socket.end("a request without TLS");
    });
    // At most the alert that says so.
    assert.ok(answered <= 7, `${name} answered ${answered} bytes`);
  }
});

test("nodes tell for how long their certificate is valid", async () => {
  for (const { name, metricsPort } of nodes) {
    const left = await eventually(`${name} tells it`, async () => {
      const metrics = await (await fetch(`http://127.0.0.1:${metricsPort}/metrics`)).text();
      return Number(/^tidegraph_certificate_left_seconds (\S+)$/m.exec(metrics)?.[1] ?? 0) || undefined;
    });
    assert.ok(left * 1_000 > 6 * 24 * HOUR_MS, `${name}: ${left} s`);
  }
});

test("the function issues nothing anew, and its log has no key", async () => {
  const answer = await fetch(`${endpoint}/2015-03-31/functions/${certificates.function}/invocations`, {
    method: "POST",
    headers: { authorization: authorization("lambda") },
    body: "{}",
  });
  const nothing = { issued: [], changes: [], waitsFor: [] };
  assert.deepEqual(await answer.json(), { mode: "require", authorities: 1, ...nothing });
  const files = readdirSync(functionLogs);
  assert.ok(files.some((name) => name.startsWith(certificates.function)));
  const log = files.map((name) => readFileSync(join(functionLogs, name), "utf8")).join("\n");
  for (const text of ["PRIVATE KEY", ...secrets]) assert.ok(!log.includes(text), text.slice(0, 4));
});
