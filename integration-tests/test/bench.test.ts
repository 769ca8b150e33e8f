/** `tidegraph-bench`: the report that a workload writes. */
import assert from "node:assert/strict";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { runBinary } from "../src/server.ts";

test("bench writes what was measured as JSON", async (t) => {
  const bench = process.env.TIDEGRAPH_BENCH_BINARY;
  assert.ok(bench, "TIDEGRAPH_BENCH_BINARY must name the binary tidegraph-bench; `npm test` sets it");
  const home = await mkdtemp(join(tmpdir(), "tidegraph-bench-test-"));
  t.after(() => rm(home, { recursive: true, force: true }));
  const file = join(home, "bench.json");
  const limit = { program: bench, timeoutMs: 600_000 };
  const ended = await runBinary(["http", "--quick", "--round-ms", "100", "--json", file], limit);
  assert.equal(ended.code, 0, ended.stderr);
  const report = JSON.parse(await readFile(file, "utf8"));
  assert.equal(report.name, "http");
  assert.equal(typeof report.commit, "string");
  assert.equal(typeof report.machine.cpu, "string");
  for (const name of ["cores", "memory", "gather_mops", "copy_gbps", "fdatasync_us"]) {
    assert.ok(report.machine[name] > 0, `machine.${name}`);
  }
  assert.equal(typeof report.parameters, "object");
  assert.ok(report.results.length > 0);
  for (const result of report.results) {
    assert.equal(typeof result.metric, "string");
    assert.equal(typeof result.unit, "string");
    assert.ok(result.value > 0, JSON.stringify(result));
    assert.match(result.better, /^(higher|lower)$/);
    for (const name of ["p50", "p99", "p999"]) {
      if (name in result) assert.ok(result[name] > 0, JSON.stringify(result));
    }
  }
});
