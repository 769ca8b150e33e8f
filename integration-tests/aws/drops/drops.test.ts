/**
 * Files dropped in S3: the rule sees them, the state machine loads them with functions that run as processes, some of
 * which are killed, and queries count the loaded elements.
 */
import assert from "node:assert/strict";
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { join } from "node:path";
import { after, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { parseAs } from "@tidegraph/contracts";
import { deployed, Signer } from "../../src/aws.ts";
import { Drops, LOAD_MS } from "../../src/aws-drops.ts";
import { execute, executions, inputOf, statusOfExecution, stop } from "../../src/aws-machines.ts";
import { plain } from "../../src/client.ts";
import { dataPath, manyVertices } from "../../src/data.ts";
import { eventually } from "../../src/server.ts";

const { airRoutes, api, drop } = deployed();
const signer = new Signer(api);
after(() => signer.end());

const LOOKING_MS = 3_000;

const drops = new Drops("default");

async function value(query: string): Promise<unknown> {
  const answer = await signer.ask("/openCypher", { query });
  assert.equal(answer.status, 200, answer.body);
  const [row] = parseAs("OpenCypherAnswer", JSON.parse(answer.body)).results;
  return Object.values(row ?? {})[0];
}

/** Returns the status of a load, from the query function. */
async function statusOf(loadId: string): Promise<string> {
  const { status, body } = await signer.ask(`/loader/${loadId}`);
  assert.equal(status, 200, body);
  return parseAs("LoaderStatus", JSON.parse(body)).payload.overallStatus.status;
}

/** Makes a chain of edges, from each vertex to the next. */
function chain(prefix: string, rows: number): string {
  const lines = Array.from(
    { length: rows - 1 },
    (_, at) => `${prefix}e${at},${prefix}${at},${prefix}${at + 1},NEXT`,
  );
  return `~id,~from,~to,~label\n${lines.join("\n")}\n`;
}

test("dropped files are loaded when they are complete, as a whole, and once", async () => {
  const rows = 5_000;
  const files = { "a/vertices.csv": manyVertices("d", rows, "Dropped"), "edges.csv": chain("d", rows) };
  for (const [file, content] of Object.entries(files)) await drops.put("whole", file, content);
  await sleep(LOOKING_MS);
  assert.deepEqual(await drops.keys("whole"), []);
  await drops.complete("whole");
  const told = await drops.report("whole");
  assert.equal(told.status, "LOAD_COMPLETED", JSON.stringify(told));
  // A label and a number for each vertex, plus the edges.
  assert.equal(told.totalRecords, 2 * rows + rows - 1);
  assert.ok((told.version ?? 0) > 0);
  assert.equal(await value("MATCH (n:Dropped) RETURN count(n)"), rows);
  assert.equal(await value("MATCH (:Dropped)-[r:NEXT]->(:Dropped) RETURN count(r)"), rows - 1);
  assert.equal(await value("MATCH (n:Dropped {number: 17})-[:NEXT]->(m) RETURN m.number"), 18);
  const status = await signer.ask(`/loader/${told.loadId}`);
  assert.equal(status.status, 200, status.body);
  const { overallStatus } = parseAs("LoaderStatus", JSON.parse(status.body)).payload;
  assert.deepEqual(
    [overallStatus.status, overallStatus.totalRecords, overallStatus.fullUri],
    ["LOAD_COMPLETED", told.totalRecords, `s3://${drop}/drop/default/whole/`],
  );
  await drops.complete("whole");
  await sleep(LOOKING_MS);
  assert.equal((await drops.keys("whole")).length, 1, "the same drop was loaded again");
});

test("Air Routes in both dialects is one graph", async () => {
  const { nodes, edges, airports, routes } = JSON.parse(readFileSync(join(airRoutes, "counts.json"), "utf8"));
  const before = (await value("MATCH (n) RETURN count(n)")) as number;
  for (const [dialect, attempt] of [
    ["gremlin", 1],
    ["opencypher", 2],
  ] as const) {
    const name = `air-routes-${dialect}`;
    const files = ["nodes.csv", "edges.csv"].map((file) => [
      file,
      readFileSync(join(airRoutes, dialect, file), "utf8"),
    ]);
    const begun = performance.now();
    await drops.drop(name, Object.fromEntries(files));
    const told = await drops.report(name);
    const seconds = (performance.now() - begun) / 1000;
    assert.equal(told.status, "LOAD_COMPLETED", JSON.stringify(told));
    console.log(`Air Routes (${dialect}): ${seconds.toFixed(1)} s from its files to its report`);
    // In the second load every element exists already, under the same ids.
    assert.equal(told.totalDuplicates > 0, attempt === 2, JSON.stringify(told));
    assert.equal(await value("MATCH (n) RETURN count(n)"), before + nodes);
    assert.equal(await value("MATCH (n:airport) RETURN count(n)"), airports);
    assert.equal(await value("MATCH (:airport)-[r:route]->(:airport) RETURN count(r)"), routes);
    assert.equal(await value("MATCH (:country)-[r:contains]->() RETURN count(r)"), airports);
  }
  assert.equal(
    await value("MATCH (:airport {code: 'AUS'})-[r:route]->(b:airport {code: 'LHR'}) RETURN r.dist"),
    4901,
  );
  assert.ok(edges > routes);
  const gremlin = "g.V().has('airport', 'code', 'AUS').out('route').out('route').dedup().count()";
  const answer = await signer.ask("/gremlin", { gremlin });
  const [count] = parseAs("GremlinAnswer", JSON.parse(answer.body)).result.data["@value"].map(plain);
  assert.equal(
    await value("MATCH (:airport {code: 'AUS'})-[:route]->()-[:route]->(b) RETURN count(DISTINCT b)"),
    count,
  );
});

test("bad rows fail a load, or are reported by file, line and value", async () => {
  const name = "bad";
  await drops.drop(name, { "rows.csv": readFileSync(dataPath("bad/rows.csv"), "utf8") }, { format: "csv" });
  const first = await drops.report(name);
  assert.match(first.status, /^LOAD_(FAILED|CANCELLED_DUE_TO_ERRORS)$/, JSON.stringify(first));
  assert.equal(await value("MATCH (n:Book) RETURN count(n)"), 0);
  const before = await drops.keys(name);
  await drops.complete(name, { format: "csv", failOnError: "FALSE", attempt: 2 });
  const second = await drops.report(name, before);
  assert.equal(second.status, "LOAD_COMPLETED", JSON.stringify(second));
  assert.equal(second.parsingErrors + second.datatypeMismatchErrors + second.insertErrors, 3);
  assert.deepEqual(second.errorLogs.map(({ recordNum }) => recordNum).toSorted(), [3, 4, 6]);
  for (const { fileName } of second.errorLogs)
    assert.equal(fileName, `s3://${drop}/drop/default/bad/rows.csv`);
  assert.equal(await value("MATCH (n:Book) RETURN count(n)"), 3);
});

test("what cannot be loaded is refused, with the reason", async () => {
  const cases: [string, object | undefined, RegExp][] = [
    ["format", { format: "xls" }, /format is "xls", and has to be csv or opencypher/],
    ["outside", { files: ["../whole/edges.csv"] }, /files\[0\] is "\.\.\/whole\/edges\.csv"/],
    ["missing", { files: ["nodes.csv"] }, /files\[0\] is "nodes\.csv", and there is no such object/],
    ["replaced", { files: [{ name: "a.csv", etag: "0" }] }, /with the ETag 0, and the object's is/],
    ["empty", undefined, /no files/],
  ];
  await drops.put("replaced", "a.csv", "~id\n1\n");
  for (const [name, mark] of cases) await drops.complete(name, mark);
  for (const [name, , reason] of cases) {
    const { status, message } = await drops.report(name);
    assert.notEqual(status, "LOAD_COMPLETED", name);
    assert.match(message ?? "", reason);
  }
});

test("files and headers of both dialects in one drop are refused by file and column", async () => {
  const gremlin = "~id,~label,number:Int\nmg,Mixed,1\n";
  const openCypher = "id:ID,number:int,:LABEL\nmo,2,Mixed\n";
  // Each case: the file that does not fit, and its column.
  const cases: [string, Record<string, string>, object | undefined, string, string][] = [
    ["gremlin-first", { "a.csv": gremlin, "b.csv": openCypher }, undefined, "b.csv", "id:ID"],
    ["cypher-first", { "a.csv": openCypher, "b.csv": gremlin }, undefined, "b.csv", "~id"],
    ["as-gremlin", { "a.csv": openCypher, "b.csv": gremlin }, { format: "csv" }, "a.csv", "id:ID"],
    ["as-cypher", { "a.csv": gremlin, "b.csv": openCypher }, { format: "opencypher" }, "a.csv", "~id"],
    ["one-header", { "a.csv": "~id,~label,:LABEL\nmb,Mixed,Mixed\n" }, undefined, "a.csv", ":LABEL"],
    ["other-header", { "a.csv": ":ID,:LABEL,~label\nmc,Mixed,Mixed\n" }, undefined, "a.csv", "~label"],
  ];
  for (const [name, files, mark] of cases) await drops.drop(name, files, mark);
  for (const [name, , , file, column] of cases) {
    const told = await drops.report(name);
    assert.equal(told.status, "LOAD_FAILED", JSON.stringify(told));
    // The header of the first file says what the others are, so an error there fails the load. In other files it is a
    // refused row.
    const [message = told.message] = told.errorLogs.map(({ errorMessage }) => errorMessage);
    const place = `s3://${drop}/drop/default/${name}/${file}, line 1, column ${column}, `;
    assert.ok(message?.startsWith(place), `${name}: ${message}`);
  }
  assert.equal(await value("MATCH (n:Mixed) RETURN count(n)"), 0);
  // If bad rows are tolerated, a file with such a header is skipped as a whole, and named.
  const name = "lenient";
  await drops.drop(name, { "a.csv": gremlin, "b.csv": openCypher }, { failOnError: "FALSE" });
  const told = await drops.report(name);
  assert.equal(told.status, "LOAD_COMPLETED", JSON.stringify(told));
  assert.deepEqual(
    told.errorLogs.map(({ fileName, recordNum, value: found }) => [fileName, recordNum, found]),
    [[`s3://${drop}/drop/default/${name}/b.csv`, 1, "id:ID"]],
  );
  assert.equal(await value("MATCH (n:Mixed) RETURN sum(n.number)"), 1);
});

/** Returns the processes of the function that loads. */
function functions(): number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => {
      try {
        const isProgram = readlinkSync(`/proc/${pid}/exe`).endsWith("/bootstrap");
        const environment = readFileSync(`/proc/${pid}/environ`, "latin1").split("\0");
        return isProgram && environment.some((one) => /^AWS_LAMBDA_FUNCTION_NAME=.*Ingest/.test(one));
      } catch {
        // The process has ended meanwhile, or belongs to another user.
        return false;
      }
    })
    .map(Number);
}

/** Kills a process; returns false if it has already ended. */
function kill(pid: number): boolean {
  try {
    return process.kill(pid, "SIGKILL");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ESRCH") return false;
    throw error;
  }
}

test("a load whose functions are killed is complete all the same", {
  skip: process.platform !== "linux",
}, async () => {
  const rows = 50_000;
  // Idle processes are killed first, so that every process seen from here on was started for this load.
  for (const pid of functions()) kill(pid);
  await drops.drop("killed", { "rows.csv": manyVertices("k", rows, "Killed") });
  const killed = new Set<number>();
  await eventually(
    "functions run and are killed",
    async () => {
      for (const pid of functions()) if (kill(pid)) killed.add(pid);
      const seen = await value("MATCH (n:Killed) RETURN count(n)");
      assert.ok(seen === 0 || seen === rows, `half a load was seen: ${seen}`);
      return killed.size >= 3 || seen === rows;
    },
    LOAD_MS,
  );
  const told = await drops.report("killed");
  assert.equal(told.status, "LOAD_COMPLETED", JSON.stringify(told));
  assert.ok(killed.size > 0);
  assert.equal(await value("MATCH (n:Killed) RETURN count(n)"), rows);
});

test("a load whose execution is stopped is reported as failed, leaves nothing visible, and is loaded by the next attempt", async () => {
  // Enough that the load is not over before it is stopped, and few for the attempt that loads them all.
  const [stopped, rows] = [400_000, 5_000];
  const inProgress = async (known: Set<string>): Promise<string | undefined> => {
    const { body } = await signer.ask("/loader");
    const { loadIds } = parseAs("LoaderList", JSON.parse(body)).payload;
    for (const id of loadIds) if (!known.has(id) && (await statusOf(id)) === "LOAD_IN_PROGRESS") return id;
    return undefined;
  };
  /** Drops files, stops the execution that loads them, and returns how it ended. */
  const stopOne = async (name: string) => {
    const known = new Set((await executions("ingest")).map(({ executionArn }) => executionArn));
    const { body } = await signer.ask("/loader");
    const earlier = new Set(parseAs("LoaderList", JSON.parse(body)).payload.loadIds);
    await drops.drop(name, { "rows.csv": manyVertices("s", stopped, "Stopped") });
    const { executionArn } = await eventually(
      "an execution begins",
      async () => (await executions("ingest")).find((one) => !known.has(one.executionArn)),
      LOAD_MS,
    );
    // Not before the machine has taken the drop: until then there is nothing to report.
    const loadId = await eventually("the load is in progress", () => inProgress(earlier), LOAD_MS);
    await stop(executionArn, "wrong files");
    // This may take a while on a busy machine. If a function is killed earlier, the execution fails instead.
    const ended = await eventually(
      "the execution ends",
      async () => {
        const status = await statusOfExecution(executionArn);
        return status === "RUNNING" ? undefined : status;
      },
      LOAD_MS,
    );
    return { name, executionArn, loadId, ended };
  };
  // LocalStack lets an execution fail that is stopped just when one of its functions ends.
  let one = await stopOne("stopped");
  for (let again = 2; one.ended === "FAILED" && again < 6; again++) one = await stopOne(`stopped-${again}`);
  const { name, executionArn, loadId, ended } = one;
  assert.equal(ended, "ABORTED");
  // Steps that were started would keep running; killing them here saves waiting for them.
  for (const pid of functions()) kill(pid);

  const isAbout = async (arn: string): Promise<boolean> =>
    (JSON.stringify(await inputOf(arn)) ?? "").includes(executionArn);
  const settling = await eventually(
    "the rule hears of it",
    async () => {
      for (const one of await executions("settle")) if (await isAbout(one.executionArn)) return one;
      return undefined;
    },
    LOAD_MS,
  );
  await execute("settle", { detail: { executionArn }, waitSeconds: 0 });
  // The machine that the rule started waits for the maximum run time of a step.
  await stop(settling.executionArn, "settled by hand");
  const told = await drops.report(name);
  assert.deepEqual([told.loadId, told.status], [loadId, "LOAD_FAILED"]);
  // The report also gives the reason; LocalStack does not keep the cause of a stopped execution.
  assert.match(told.message ?? "", /ABORTED: somebody stopped it/);
  assert.equal(await statusOf(loadId), "LOAD_FAILED");
  assert.equal(await value("MATCH (n:Stopped) RETURN count(n)"), 0);

  const before = await drops.keys(name);
  await drops.put(name, "rows.csv", manyVertices("s", rows, "Stopped"));
  await drops.complete(name, { attempt: 2 });
  const second = await drops.report(name, before);
  assert.equal(second.status, "LOAD_COMPLETED", JSON.stringify(second));
  assert.equal(await value("MATCH (n:Stopped) RETURN count(n)"), rows);
});
