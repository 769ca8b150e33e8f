/** Who may do what: users with roles, signed requests, the audit log, and what a service that others can reach needs. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { chmod, mkdtemp, readFile, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { freePort } from "../../scripts/lib/cluster/processes.mjs";
import { refusal } from "../src/client.ts";
import { python, script, servePython } from "../src/python.ts";
import { eventually, runBinary, Server } from "../src/server.ts";

const PASSWORD = "a password of the tests";
const REGION = "eu-central-1";

/** What `sts_server.py` prints. */
interface StsCallers {
  readonly endpoint: string;
  readonly user: { readonly arn: string; readonly id: string; readonly secret: string };
  readonly role: {
    readonly arn: string;
    readonly id: string;
    readonly secret: string;
    readonly token: string;
  };
}

async function folder(t: TestContext): Promise<string> {
  const made = await mkdtemp(join(tmpdir(), "tidegraph-test-"));
  t.after(() => rm(made, { recursive: true, force: true }));
  return made;
}

async function addUser(file: string, name: string, roles: readonly string[], password = PASSWORD) {
  const flags = roles.flatMap((role) => ["--role", role]);
  const ended = await runBinary(["user", "add", name, "--users", file, ...flags], { input: `${password}\n` });
  assert.equal(ended.code, 0, ended.stderr);
}

function basic(name: string, password = PASSWORD): { authorization: string } {
  return { authorization: `Basic ${Buffer.from(`${name}:${password}`).toString("base64")}` };
}

function ask(server: Server, name: string, query: string, password?: string): Promise<Response> {
  const body = new URLSearchParams({ query });
  return fetch(`${server.endpoint}/openCypher`, { method: "POST", headers: basic(name, password), body });
}

async function runPython(name: string, ...args: readonly string[]): Promise<void> {
  const child = spawn(python(), [script(name), ...args], { stdio: ["ignore", "pipe", "pipe"] });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.on("data", (chunk) => {
      output += chunk;
    });
  }
  const code = await new Promise((done) => child.on("close", done));
  assert.equal(code, 0, output);
}

test("users have roles, in all protocols, and the file is read again", async (t) => {
  const home = await folder(t);
  const file = join(home, "users.json");
  await addUser(file, "reader", ["read"]);
  await addUser(file, "writer", ["write"]);
  await addUser(file, "root", ["admin"]);
  assert.doesNotMatch(await readFile(file, "utf8"), new RegExp(PASSWORD));
  const server = await Server.start(t, { args: ["--users", file] });
  await runPython("user_access.py", String(server.port), PASSWORD);

  const stranger = await fetch(`${server.endpoint}/status`);
  assert.match(stranger.headers.get("www-authenticate") ?? "", /^Basic /);
  await refusal(stranger, "UnauthorizedException");
  await refusal(await ask(server, "reader", "RETURN 1", "wrong"), "UnauthorizedException");
  assert.equal((await ask(server, "reader", "RETURN 1")).status, 200);
  await refusal(await ask(server, "reader", "CREATE (:Never)"), "AccessDeniedException");
  await refusal(await ask(server, "writer", "CREATE INDEX FOR (n:A) ON (n.k)"), "AccessDeniedException");
  assert.equal((await ask(server, "root", "CREATE INDEX FOR (n:A) ON (n.k)")).status, 200);
  for (const [path, method] of [
    ["/loader", "POST"],
    ["/propertygraph/statistics", "POST"],
  ] as const) {
    const answer = await fetch(`${server.endpoint}${path}`, { method, headers: basic("writer") });
    await refusal(answer, "AccessDeniedException");
  }

  const password = join(home, "password");
  await writeFile(password, `${PASSWORD}\n`, { mode: 0o600 });
  const flags = ["--endpoint", server.endpoint, "--user", "reader", "--password-file", password];
  const queried = await runBinary(["query", ...flags, "MATCH (m:Made) RETURN count(m) AS n"]);
  assert.match(queried.stdout, /3/, queried.stderr);

  // An open transaction of a user who is removed ends, too: the engine asks for the roles before each request.
  const removed = await runBinary(["user", "remove", "reader", "--users", file]);
  assert.equal(removed.code, 0, removed.stderr);
  await eventually(
    "that the user is gone",
    async () => (await ask(server, "reader", "RETURN 1")).status === 401,
  );
  assert.equal((await ask(server, "writer", "RETURN 1")).status, 200);
  const nobody = await runBinary(["user", "remove", "nobody", "--users", file]);
  assert.notEqual(nobody.code, 0);
});

test("wrong passwords are limited", async (t) => {
  const file = join(await folder(t), "users.json");
  await addUser(file, "reader", ["read"]);
  const server = await Server.start(t, { args: ["--users", file] });
  assert.equal((await ask(server, "reader", "RETURN 1")).status, 200);
  const limited = await eventually("a refusal of further attempts", async () => {
    // Together: they are counted before they are looked at.
    const guesses = Array.from({ length: 40 }, () => ask(server, "reader", "RETURN 1", "guess"));
    const answers = await Promise.all(guesses);
    assert.ok(answers.every(({ status }) => status === 401 || status === 429));
    return answers.find(({ status }) => status === 429);
  });
  assert.ok(limited.headers.get("retry-after"));
  await refusal(limited, "TooManyRequestsException");
});

test("running queries are their caller's, and the administrator's", async (t) => {
  const file = join(await folder(t), "users.json");
  await addUser(file, "ada", ["read"]);
  await addUser(file, "bob", ["write"]);
  await addUser(file, "root", ["admin"]);
  const server = await Server.start(t, { args: ["--users", file] });
  const endless =
    "UNWIND range(1, 100000000) AS a UNWIND range(1, 100000) AS b WITH a, b WHERE a + b < 0 RETURN a";
  const body = new URLSearchParams({ query: endless, queryId: "adas" });
  const running = fetch(`${server.endpoint}/openCypher`, { method: "POST", headers: basic("ada"), body });
  const listed = async (name: string) => {
    const answer = await fetch(`${server.endpoint}/openCypher/status`, { headers: basic(name) });
    return ((await answer.json()) as { runningQueryCount: number }).runningQueryCount;
  };
  await eventually("that the query runs", async () => (await listed("ada")) === 1);
  assert.deepEqual([await listed("bob"), await listed("root")], [0, 1]);
  const cancel = (name: string) =>
    fetch(`${server.endpoint}/openCypher/status/adas`, { method: "DELETE", headers: basic(name) });
  await refusal(await cancel("bob"), "InvalidParameterException");
  assert.equal(await listed("ada"), 1);
  assert.equal((await cancel("root")).status, 200);
  await refusal(await running, "CancelledByUserException");
});

test("callers prove to STS who they are", async (t) => {
  const sts = await servePython(t, "sts_server.py");
  const { endpoint, user, role } = JSON.parse(sts.line) as StsCallers;
  const file = join(await folder(t), "callers.json");
  const callers = [
    { arn: user.arn, roles: ["write"] },
    { arn: role.arn, roles: ["read"] },
  ];
  await writeFile(file, JSON.stringify({ callers }), { mode: 0o600 });
  const proofs = ["--iam-graph", "orders", "--iam-region", REGION, "--iam-sts-endpoint", endpoint];
  const server = await Server.start(t, { args: ["--iam-callers", file, ...proofs] });
  await runPython("iam_access.py", String(server.port), REGION, "orders", sts.line);

  // The command makes the same proofs from the credentials that AWS's tools find.
  const env = {
    AWS_ACCESS_KEY_ID: role.id,
    AWS_SECRET_ACCESS_KEY: role.secret,
    AWS_SESSION_TOKEN: role.token,
  };
  const proven = await runBinary(["prove", ...proofs], { env });
  assert.equal(proven.code, 0, proven.stderr);
  const token = join(await folder(t), "token");
  await writeFile(token, proven.stdout, { mode: 0o600 });
  const flags = ["--endpoint", server.endpoint, "--token-file", token];
  const queried = await runBinary(["query", ...flags, "MATCH (m:Made) RETURN count(m) AS n"]);
  assert.match(queried.stdout, /3/, queried.stderr);

  // Without STS nobody new is let in; it is not the caller's fault.
  await sts.stop();
  const other = {
    ...env,
    AWS_ACCESS_KEY_ID: user.id,
    AWS_SECRET_ACCESS_KEY: user.secret,
    AWS_SESSION_TOKEN: "",
  };
  const late = await runBinary(["prove", ...proofs], { env: other });
  const headers = { authorization: `Bearer ${late.stdout.trim()}` };
  const body = new URLSearchParams({ query: "RETURN 1" });
  const refused = await fetch(`${server.endpoint}/openCypher`, { method: "POST", headers, body });
  assert.equal(refused.status, 503);
});

test("signed requests, as AWS's SDKs sign them", async (t) => {
  const file = join(await folder(t), "keys.json");
  const credentials = [
    { accessKeyId: "AKIDWRITER", secretAccessKey: "a-secret-of-the-writer", roles: ["write"] },
    {
      accessKeyId: "AKIDREADER",
      secretAccessKey: "a-secret-of-the-reader",
      sessionToken: "a-session-token",
      roles: ["read"],
    },
  ];
  await writeFile(file, JSON.stringify({ credentials }), { mode: 0o600 });
  const server = await Server.start(t, {
    args: ["--sigv4-credentials", file, "--sigv4-region", REGION],
  });
  await runPython("signed_access.py", String(server.port), REGION);
});

interface Line {
  readonly operation: string;
  readonly principal: string;
  readonly address: string;
  readonly protocol: string;
  readonly verdict: string;
  readonly text?: string;
  readonly parameters?: unknown;
  readonly detail?: string;
  readonly code?: string;
  readonly rows?: number;
}

test("the audit log says who asked for what, and what came of it", async (t) => {
  const home = await folder(t);
  const [users, log] = [join(home, "users.json"), join(home, "audit.jsonl")];
  await addUser(users, "reader", ["read"]);
  await addUser(users, "writer", ["write"]);
  await addUser(users, "loader", ["load"]);
  const server = await Server.start(t, { args: ["--users", users, "--audit-log", log] });
  const lines = async (file = log): Promise<Line[]> =>
    (await readFile(file, "utf8").catch(() => ""))
      .split("\n")
      // Behind the last end of a line there is nothing, or a line that is being written.
      .slice(0, -1)
      .map((line) => JSON.parse(line) as Line);
  const find = (what: string, is: (line: Line) => boolean) =>
    eventually(what, async () => (await lines()).find(is));

  await runPython("user_access.py", String(server.port), PASSWORD);
  await ask(server, "reader", "CREATE (:Never)");
  await ask(server, "reader", "RETURN 1", "a wrong password");
  const source = `file://${home}/`;
  const load = {
    method: "POST",
    headers: basic("loader"),
    body: new URLSearchParams({ source, format: "csv" }),
  };
  await fetch(`${server.endpoint}/loader`, load);

  const made = await find("a write over Bolt", (line) => line.text === "CREATE (:Made {by: 'bolt'})");
  assert.deepEqual(
    [made.principal, made.protocol, made.verdict, made.rows],
    ["user:writer", "bolt", "ok", 0],
  );
  assert.match(made.address, /^127\.0\.0\.1:\d+$/);
  const read = await find("a read over WebSocket", (line) => line.text === "g.V().hasLabel('Made').count()");
  assert.deepEqual([read.principal, read.protocol, read.rows], ["user:reader", "websocket", 1]);
  const denied = await find(
    "a denied write over HTTP",
    (line) => line.text === "CREATE (:Never)" && line.protocol === "http",
  );
  assert.deepEqual([denied.verdict, denied.code], ["denied", "AccessDeniedException"]);
  const submitted = await find("a load", (line) => line.operation === "POST /loader");
  assert.deepEqual([submitted.principal, submitted.detail], ["user:loader", source]);
  for (const protocol of ["http", "bolt", "websocket"]) {
    const failed = await find(
      `a wrong password over ${protocol}`,
      (line) => line.detail === 'user "reader"' && line.protocol === protocol,
    );
    const { operation, verdict, code } = failed;
    assert.deepEqual([operation, verdict, code], ["authentication", "denied", "UnauthorizedException"]);
  }

  await rename(log, `${log}.1`);
  await ask(server, "reader", "RETURN 'after the rotation'");
  await find("a line in a new file", (line) => line.text === "RETURN 'after the rotation'");
  await server.stop();
  const all = [...(await lines(`${log}.1`)), ...(await lines())];
  assert.ok(all.every((line) => line.parameters === undefined));
  const text = JSON.stringify(all);
  assert.ok(!text.includes(PASSWORD) && !text.includes("wrong password"), text);
});

test("files with users and keys that others can read are refused", async (t) => {
  const home = await folder(t);
  const [users, keys] = [join(home, "users.json"), join(home, "keys.json")];
  await addUser(users, "reader", ["read"]);
  await writeFile(keys, '{"credentials": []}');
  await chmod(users, 0o644);
  await chmod(keys, 0o644);
  const port = ["--port", String(await freePort())];
  for (const flags of [
    ["--users", users],
    ["--sigv4-credentials", keys, "--sigv4-region", REGION],
  ]) {
    const ended = await runBinary(["serve", ...port, ...flags]);
    assert.notEqual(ended.code, 0);
    assert.match(ended.stderr, /mode 0644/);
  }
  const both = await runBinary(["serve", ...port, "--users", users, "--token-file", users]);
  assert.match(both.stderr, /cannot be used with/);
  const wrong = await runBinary(["user", "add", "a:b", "--users", users]);
  assert.match(wrong.stderr, /a:b/);
  const role = await runBinary(["user", "add", "ada", "--users", users, "--role", "reader"]);
  assert.match(role.stderr, /read, write, load or admin/);
});

test("a service that other machines can reach has TLS and authentication, unless it is told otherwise", async (t) => {
  const home = await folder(t);
  const [token, certificate] = [join(home, "token"), join(home, "certificate.pem")];
  await writeFile(token, "a-token-for-the-tests\n", { mode: 0o600 });
  const start = async (...flags: readonly string[]) =>
    runBinary(["serve", "--host", "0.0.0.0", "--port", String(await freePort()), ...flags]);
  const bare = await start();
  assert.notEqual(bare.code, 0);
  for (const flag of ["--token-file", "--users", "--listen-tls-certificate", "--insecure"]) {
    assert.ok(bare.stderr.includes(flag), bare.stderr);
  }
  const plain = await start("--token-file", token);
  assert.match(plain.stderr, /TLS/);
  assert.doesNotMatch(plain.stderr, /--users/);
  const open = await start("--listen-tls-self-signed", certificate);
  assert.match(open.stderr, /--users/);
  assert.doesNotMatch(open.stderr, /--listen-tls-certificate/);
});
