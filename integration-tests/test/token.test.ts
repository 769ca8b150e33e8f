/** A service that other machines can reach requires a token. */
import assert from "node:assert/strict";
import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { freePort } from "../../scripts/lib/cluster/processes.mjs";
import { refusal } from "../src/client.ts";
import { runBinary, Server } from "../src/server.ts";

test("requests need the token, if there is one", async (t) => {
  const folder = await mkdtemp(join(tmpdir(), "tidegraph-test-"));
  t.after(() => rm(folder, { recursive: true, force: true }));
  const file = join(folder, "token");
  await writeFile(file, "a-token-for-the-tests\n", { mode: 0o600 });
  const server = await Server.start(t, { args: ["--token-file", file] });
  const address = `${server.endpoint}/openCypher?query=RETURN%201%20AS%20x`;
  await refusal(await fetch(address), "AccessDeniedException");
  const wrong = { authorization: "Bearer a-token-for-the-tesTs" };
  await refusal(await fetch(address, { headers: wrong }), "AccessDeniedException");
  const right = { authorization: "Bearer a-token-for-the-tests" };
  assert.equal((await fetch(address, { headers: right })).status, 200);
});

test("a token that every user of the machine can read is refused", async (t) => {
  const folder = await mkdtemp(join(tmpdir(), "tidegraph-test-"));
  t.after(() => rm(folder, { recursive: true, force: true }));
  const file = join(folder, "token");
  await writeFile(file, "a-token-for-the-tests\n");
  await chmod(file, 0o644);
  const ended = await runBinary(["serve", "--port", String(await freePort()), "--token-file", file]);
  assert.notEqual(ended.code, 0);
  assert.match(ended.stderr, /mode 0644/);
  assert.ok(ended.stderr.includes(file), ended.stderr);
});

test("without a token only this machine is served", async () => {
  const ended = await runBinary(["serve", "--host", "0.0.0.0", "--port", String(await freePort())]);
  assert.notEqual(ended.code, 0);
  assert.match(ended.stderr, /--token-file/);
});
