/**
 * The memory of a load does not grow with its files, even if they consist of refused rows or repeat few vertices, new
 * or known.
 */
import assert from "node:assert/strict";
import { once } from "node:events";
import { createWriteStream, readFileSync } from "node:fs";
import { mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { finished } from "node:stream/promises";
import { test } from "node:test";
import { pathToFileURL } from "node:url";
import { cypherValue, finishedLoad, load, loadStatus, startLoad } from "../src/client.ts";
import { Server } from "../src/server.ts";

const MIB = 1 << 20;
/** Allowed growth for a load nine times as large: allocator noise, and far less than the file. */
const MOST_GROWTH = 64 * MIB;
/**
 * Allowed memory of a load: twice the budgets of docs/loading.md, since reading continues while data is written, plus
 * the allocator.
 */
const MOST_TAKEN = 288 * MIB;
const GOOD = 1_000;
const MOST_ERRORS = 10_000;

/** Returns the peak resident memory of the process so far, in bytes. */
function peak(server: Server): number {
  const status = readFileSync(`/proc/${server.pid}/status`, "utf8");
  return Number(/VmHWM:\s+(\d+) kB/.exec(status)?.[1]) * 1024;
}

/**
 * Writes some good rows, then rows with invalid numbers until the file has this many bytes. Returns the number of bad
 * rows.
 */
async function refused(path: string, bytes: number): Promise<number> {
  const filler = "x".repeat(200);
  const file = createWriteStream(path);
  file.write("~id,~label,number:Int(single),text:String(single)\n");
  for (let id = 0; id < GOOD; id += 1) file.write(`v${id},Row,${id},${filler}\n`);
  const block = Array.from({ length: 1_000 }, (_, id) => `r${id},Row,none,${filler}\n`).join("");
  let rows = 0;
  for (let written = 0; written < bytes; written += block.length) {
    if (!file.write(block)) await once(file, "drain");
    rows += 1_000;
  }
  file.end();
  await finished(file);
  return rows;
}

test("a large file of rows that are refused", { skip: process.platform !== "linux" }, async (t) => {
  const server = await Server.start(t);
  await mkdir(join(server.home, "in"));
  const run = async (name: string, bytes: number) => {
    const path = join(server.home, "in", name);
    const rows = await refused(path, bytes);
    const before = peak(server);
    const source = pathToFileURL(path).href;
    const id = await startLoad(server, { source, format: "csv", failOnError: "FALSE", queueRequest: true });
    const { overallStatus } = await finishedLoad(server, id);
    assert.equal(overallStatus.status, "LOAD_COMPLETED", JSON.stringify(overallStatus));
    assert.equal(overallStatus.parsingErrors + overallStatus.datatypeMismatchErrors, rows);
    assert.equal(await cypherValue(server, "MATCH (n) RETURN count(n)"), GOOD);
    const grown = peak(server) - before;
    const past = `?errors=true&errorsPerPage=1&page=${MOST_ERRORS + 1}`;
    assert.deepEqual((await loadStatus(server, id, past)).errors?.errorLogs, [], "more errors are kept");
    return grown;
  };
  const small = await run("small.csv", 16 * MIB);
  const large = await run("large.csv", 150 * MIB);
  t.diagnostic(
    `16 MiB: ${Math.round(small / MIB)} MiB, 150 MiB: ${Math.round(large / MIB)} MiB more at the peak`,
  );
  assert.ok(large < MOST_GROWTH, `${Math.round(large / MIB)} MiB`);
});

/** Writes rows of the same vertices repeatedly, with equal or different values, until the file has this many bytes. */
async function repeated(path: string, bytes: number, changing: boolean): Promise<void> {
  const block = (round: number) => {
    const text = String(round).padStart(200, "x");
    return Array.from({ length: GOOD }, (_, id) => `v${id},Row,${id},${text}\n`).join("");
  };
  const first = block(0);
  const file = createWriteStream(path);
  file.write("~id,~label,number:Int(single),text:String(single)\n");
  for (let round = 0; round * first.length < bytes; round += 1) {
    if (!file.write(changing ? block(round) : first)) await once(file, "drain");
  }
  file.end();
  await finished(file);
}

test("a large file of rows that repeat few vertices", { skip: process.platform !== "linux" }, async (t) => {
  const server = await Server.start(t);
  await mkdir(join(server.home, "in"));
  const run = async (name: string, bytes: number, changing: boolean) => {
    const path = join(server.home, "in", name);
    await repeated(path, bytes, changing);
    const before = peak(server);
    const source = pathToFileURL(path).href;
    const updateSingleCardinalityProperties = changing ? "TRUE" : "FALSE";
    const { overallStatus } = await load(server, {
      source,
      format: "csv",
      updateSingleCardinalityProperties,
    });
    assert.equal(overallStatus.status, "LOAD_COMPLETED", JSON.stringify(overallStatus));
    assert.equal(await cypherValue(server, "MATCH (n) RETURN count(n)"), GOOD);
    await rm(path);
    return peak(server) - before;
  };
  const taken = await run("new.csv", 150 * MIB, false);
  // The graph now has these vertices, and keeps older versions readable meanwhile.
  const again = await run("again.csv", 150 * MIB, false);
  const twice = await run("twice.csv", 300 * MIB, false);
  const changing = await run("changing.csv", 150 * MIB, true);
  const [first, ...more] = [taken, again, twice, changing].map((bytes) => Math.round(bytes / MIB));
  t.diagnostic(
    `MiB more at the peak, 150 MiB of new vertices: ${first}, 150 of known, 300, 150 changing: ${more}`,
  );
  assert.ok(taken < MOST_TAKEN, `${first} MiB`);
  assert.ok(Math.max(again, twice, changing) < MOST_GROWTH, `${more} MiB`);
});
