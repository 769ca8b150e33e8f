/** Tests that TypeScript reads the log files of every released format as Rust does. */
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { loadProtos, readLogFile } from "../src/index.ts";
import { contractPath } from "../src/paths.ts";

const protos = loadProtos(["tidegraph/v1/log.proto"]);
const golden = readdirSync(contractPath("golden")).filter((name) => /^log-v\d+(-[a-z]+)?\.bin$/.test(name));

test("a golden file exists", () => {
  assert.ok(golden.includes("log-v1.bin"), golden.join(", "));
});

for (const name of golden) {
  const bytes = readFileSync(contractPath(`golden/${name}`));

  test(`${name} decodes to its JSON`, () => {
    const expected = JSON.parse(readFileSync(contractPath(`golden/${name.replace(/bin$/, "json")}`), "utf8"));
    assert.deepEqual(readLogFile(bytes, protos), expected);
  });

  test(`a flipped bit anywhere in ${name} is an error`, () => {
    for (let at = 0; at < bytes.length; at += 1) {
      const damaged = Buffer.from(bytes);
      damaged[at] = (damaged[at] ?? 0) ^ 0x10;
      assert.throws(() => readLogFile(damaged, protos), `byte ${at}`);
    }
  });
}
