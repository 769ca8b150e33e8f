/** Tests that TypeScript reads the frames of logs, segments and checkpoints as Rust writes them. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { crc32c, readFrames } from "../src/index.ts";

function frame(payload: Uint8Array): Buffer {
  const header = Buffer.alloc(8);
  header.writeUInt32LE(payload.length, 0);
  header.writeUInt32LE(crc32c(payload), 4);
  return Buffer.concat([header, payload]);
}

test("the checksum is CRC-32C", () => {
  assert.equal(crc32c(Buffer.from("123456789")), 0xe3069283);
});

test("frames are read in sequence", () => {
  const bytes = Buffer.concat([Buffer.from("magic"), frame(Buffer.from("one")), frame(Buffer.from("two"))]);
  assert.deepEqual(
    [...readFrames(bytes, 5)].map((payload) => Buffer.from(payload).toString()),
    ["one", "two"],
  );
});

test("a torn, an empty and a damaged frame are errors that name the place", () => {
  const good = frame(Buffer.from("payload"));
  assert.throws(() => [...readFrames(good.subarray(0, 5))], /byte 0: header is torn/);
  assert.throws(() => [...readFrames(good.subarray(0, 12))], /byte 0: payload of 7 bytes is torn/);
  assert.throws(() => [...readFrames(Buffer.alloc(8))], /byte 0: payload is empty/);
  const damaged = Buffer.concat([good, good]);
  damaged[25] = (damaged[25] ?? 0) ^ 1;
  assert.throws(() => [...readFrames(damaged)], /byte 15: checksum does not match/);
});
