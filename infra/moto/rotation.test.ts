/**
 * The rotation of the fleet's secret: the code of the function (`infra/rotation/`) against moto's Secrets Manager. The
 * test stands in for Secrets Manager's schedule: it sends the steps.
 */
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, test } from "node:test";
import * as sm from "@aws-sdk/client-secrets-manager";
import { rotate } from "../rotation/rotation.ts";
import { REGION } from "./create.ts";
import { Moto } from "./server.ts";

const FIRST = "the-first-secret-of-the-fleet";
const STEPS = ["createSecret", "setSecret", "testSecret", "finishSecret"] as const;

let moto: Moto;
let client: sm.SecretsManagerClient;

before(async () => {
  moto = await Moto.start();
  const credentials = { accessKeyId: "test", secretAccessKey: "test" };
  client = new sm.SecretsManagerClient({ endpoint: moto.endpoint, region: REGION, credentials });
});
after(async () => {
  client.destroy();
  await moto.stop();
});

async function makeSecret(text = FIRST): Promise<string> {
  const made = await client.send(new sm.CreateSecretCommand({ Name: randomUUID(), SecretString: text }));
  return made.ARN ?? "";
}

/** Returns a version of the secret; `undefined` if there is none. */
async function read(SecretId: string, VersionStage: string): Promise<string | undefined> {
  try {
    return (await client.send(new sm.GetSecretValueCommand({ SecretId, VersionStage }))).SecretString;
  } catch (error) {
    if (error instanceof sm.ResourceNotFoundException) return undefined;
    throw error;
  }
}

const both = async (id: string) => [await read(id, "AWSCURRENT"), await read(id, "AWSPREVIOUS")];

async function steps(SecretId: string, version: string, ...which: readonly string[]): Promise<void> {
  for (const Step of which) await rotate({ Step, SecretId, ClientRequestToken: version }, client);
}

test("a rotation makes a new secret the current one, and the old one the previous", async () => {
  const id = await makeSecret();
  await steps(id, randomUUID(), ...STEPS);
  const [second, first] = await both(id);
  assert.equal(first, FIRST);
  assert.match(second ?? "", /^[A-Za-z0-9_-]{48}$/);
  await steps(id, randomUUID(), ...STEPS);
  const [third, previous] = await both(id);
  assert.equal(previous, second);
  assert.notEqual(third, second);
});

test("a rotation that dies after any step is repeated, with the same version or another", async () => {
  for (const died of [1, 2, 3, 4]) {
    for (const again of [true, false]) {
      const id = await makeSecret();
      const version = randomUUID();
      await steps(id, version, ...STEPS.slice(0, died));
      const written = await read(id, "AWSPENDING");
      // Processes see nothing of it before the last step.
      if (died < STEPS.length) assert.deepEqual(await both(id), [FIRST, undefined]);
      const next = again ? version : randomUUID();
      await steps(id, next, ...STEPS);
      const [current, previous] = await both(id);
      if (again) assert.equal(current, died < STEPS.length ? written : current);
      else assert.notEqual(current, written);
      assert.equal(previous, again || died < STEPS.length ? FIRST : previous);
      assert.notEqual(current, FIRST);
    }
  }
});

test("a step that is sent twice changes nothing the second time", async () => {
  const id = await makeSecret();
  const version = randomUUID();
  for (const step of STEPS) await steps(id, version, step, step);
  const before = await both(id);
  assert.equal(before[1], FIRST);
  await steps(id, version, ...STEPS);
  assert.deepEqual(await both(id), before);
});

test("a version that processes would refuse does not become the current one", async () => {
  const id = await makeSecret();
  const version = randomUUID();
  await client.send(
    new sm.PutSecretValueCommand({
      SecretId: id,
      ClientRequestToken: version,
      SecretString: "short",
      VersionStages: ["AWSPENDING"],
    }),
  );
  const fewer = (error: Error) => /fewer than 16/.test(error.message) && !error.message.includes("short");
  await assert.rejects(steps(id, version, "testSecret"), fewer);
  await assert.rejects(steps(id, version, "finishSecret"), fewer);
  await assert.rejects(steps(id, randomUUID(), "finishSecret"), /has not begun/);
  await assert.rejects(steps(id, version, "revoke"), /"revoke" is not a step/);
  assert.deepEqual(await both(id), [FIRST, undefined]);
  const none = `${id}-not`;
  await assert.rejects(steps(none, version, "createSecret"), sm.ResourceNotFoundException);
});

test("the function logs each step that it carried out, with the version and without the secret", async (t) => {
  const id = await makeSecret();
  Object.assign(process.env, {
    AWS_ENDPOINT_URL: moto.endpoint,
    AWS_ACCESS_KEY_ID: "test",
    AWS_SECRET_ACCESS_KEY: "test",
    AWS_REGION: REGION,
  });
  const { handler } = await import("../rotation/handler.ts");
  const logged = t.mock.method(console, "log", () => undefined);
  const version = randomUUID();
  for (const Step of STEPS) await handler({ Step, SecretId: id, ClientRequestToken: version });
  await assert.rejects(
    handler({ Step: "cutSecret", SecretId: id, ClientRequestToken: version }),
    /cutSecret/,
  );
  const lines = logged.mock.calls.map(({ arguments: [line] }) => String(line));
  assert.deepEqual(
    lines.map((line) => JSON.parse(line)),
    STEPS.map((done) => ({ done, version })),
  );
  const [secret = assert.fail()] = await both(id);
  assert.ok(!lines.join().includes(secret));
});
