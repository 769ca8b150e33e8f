/** The command line: what each command prints, and its exit code. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { freePort } from "../../scripts/lib/cluster/processes.mjs";
import { cypherValue, load } from "../src/client.ts";
import { dataPath, dataUri, LIBRARY } from "../src/data.ts";
import { python, script } from "../src/python.ts";
import { binary, type RunOptions, runBinary, Server } from "../src/server.ts";

/** Makes a folder that is removed when the test ends. */
async function folder(t: TestContext): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), "tidegraph-cli-"));
  t.after(() => rm(path, { recursive: true, force: true }));
  return path;
}

/** Runs the binary on a pseudo terminal, typing a line at each prompt. */
function onTerminal(args: readonly string[], lines: readonly string[], env: Record<string, string>) {
  return new Promise<{ code: number | null; shown: string }>((done) => {
    const child = spawn(python(), [script("session.py"), binary(), ...args], {
      stdio: ["pipe", "pipe", "inherit"],
      env: { ...process.env, ...env },
    });
    let shown = "";
    child.stdout.on("data", (chunk) => {
      shown += chunk;
    });
    child.on("close", (code) => done({ code, shown }));
    child.stdin.end(lines.map((line) => `${line}\n`).join(""));
  });
}

test("query", async (t) => {
  const server = await Server.start(t);
  await load(server, { source: dataUri("gremlin/"), format: "csv" });
  const query = (args: readonly string[], options: RunOptions = {}) =>
    runBinary(["query", "--endpoint", server.endpoint, ...args], options);
  const printed = async (args: readonly string[], options: RunOptions = {}) => {
    const ended = await query(args, options);
    assert.equal(ended.code, 0, ended.stderr);
    return ended.stdout;
  };
  const books = "MATCH (b:Book) WHERE b.pages > $least RETURN b.pages AS z, b.name AS a ORDER BY z DESC";

  await t.test("a table, JSON and CSV keep the order of rows and columns", async () => {
    const least = ["--param", "least=500", books];
    const table = await printed(least);
    assert.match(table, /z\s+┆ a[\s\S]*548\s+┆ Glasshafen[\s\S]*530\s+┆ A Harbour of Glass[\s\S]*2 row\(s\)/);
    const json = await printed(["--format", "json", ...least]);
    assert.deepEqual(JSON.parse(json), [
      { z: 548, a: "Glasshafen" },
      { z: 530, a: "A Harbour of Glass" },
    ]);
    assert.equal(
      await printed(["--format", "csv", ...least]),
      "z,a\n548,Glasshafen\n530,A Harbour of Glass\n",
    );
  });

  await t.test("Gremlin, with parameters too", async () => {
    const traversal = "g.V().has('name', wanted).values('pages')";
    const wanted = ["--param", "wanted=Ebb"];
    assert.equal(await printed(["--format", "csv", ...wanted, traversal]), "result\n201\n");
    assert.deepEqual(JSON.parse(await printed(["--format", "json", ...wanted, traversal])), [
      { result: 201 },
    ]);
    assert.match(await printed([...wanted, traversal]), /201[\s\S]*1 row\(s\)/);
  });

  await t.test("from standard input, in both languages", async () => {
    const csv = ["--format", "csv"];
    const input = "MATCH (b:Book)\nRETURN count(b) AS n;\n";
    assert.equal(await printed(csv, { input }), "n\n9\n");
    assert.equal(await printed(csv, { input: "g.V().hasLabel('Book').count()\n" }), "result\n9\n");
  });

  await t.test("values that CSV must quote", async () => {
    const names = "MATCH (b:Book) WHERE id(b) = 'b7' RETURN b.name AS name, null AS none, [1, 'x'] AS list";
    const expected = 'name,none,list\n"The ""Quiet"" Engine",,"[1,""x""]"\n';
    assert.equal(await printed(["--format", "csv", names]), expected);
  });

  await t.test("no rows", async () => {
    const nothing = "MATCH (n:Nothing) RETURN n.a AS a";
    assert.equal(await printed([nothing]), "0 row(s)\n");
    assert.equal(await printed(["--format", "json", nothing]), "[]\n");
    assert.equal(await printed(["--format", "csv", nothing]), "");
  });

  await t.test("errors go to standard error, and the command fails", async () => {
    for (const [args, expected] of [
      [["MATCH (n RETURN n"], /MalformedQueryException: .* at 1:10/],
      [["g.V().flyAway()"], /flyAway/],
      [["RETURN $missing"], /missing/],
      [["--param", "nonsense", "RETURN 1"], /NAME=JSON/],
    ] as const) {
      const ended = await query(args);
      assert.notEqual(ended.code, 0);
      assert.equal(ended.stdout, "");
      assert.match(ended.stderr, expected);
    }
    const nobody = `http://127.0.0.1:${await freePort()}`;
    for (const command of [
      ["query", "--endpoint", nobody, "RETURN 1"],
      ["status", "--endpoint", nobody],
    ]) {
      const ended = await runBinary(command);
      assert.equal(ended.code, 1);
      assert.ok(ended.stderr.includes(`no answer from ${nobody}`), ended.stderr);
    }
  });

  await t.test("a session on a terminal", async (t) => {
    const home = await folder(t);
    const command = ["query", "--endpoint", server.endpoint];
    const session = (lines: readonly string[]) => onTerminal(command, lines, { HOME: home, TERM: "dumb" });
    const first = await session([
      ":help",
      ":csv",
      ":param least 500",
      "MATCH (b:Book) WHERE b.pages > $least",
      "RETURN count(b) AS many;",
      "g.V('b8').values('name')",
      "",
      "MATCH (n RETURN n;",
      ":json",
      "RETURN 1 AS still;",
      ":quit",
    ]);
    assert.equal(first.code, 0, first.shown);
    assert.match(first.shown, /:param NAME JSON/);
    assert.match(first.shown, /many\n2\n/);
    assert.match(first.shown, /result\nEbb\n/);
    assert.match(first.shown, /MalformedQueryException/, "an error does not end the session");
    assert.match(first.shown, /"still": 1/);
    const history = await readFile(join(home, ".tidegraph_history"), "utf8");
    assert.match(history, /RETURN count\(b\) AS many/);
    assert.match(history, /g\.V\('b8'\)/);
    const second = await session(["RETURN 2 AS again;", ":quit"]);
    assert.equal(second.code, 0, second.shown);
    const longer = await readFile(join(home, ".tidegraph_history"), "utf8");
    assert.match(longer, /still[\s\S]*again/, "the history of both sessions is kept");
  });
});

test("load and status", async (t) => {
  const server = await Server.start(t);
  const loads = (...args: string[]) => runBinary(["load", "--endpoint", server.endpoint, ...args]);
  const vertices = () => cypherValue(server, "MATCH (n) RETURN count(n)");

  await t.test("several files of a dialect that is seen from the files, in one load", async () => {
    for (const files of [
      ["gremlin/vertices.csv", "gremlin/edges.csv"],
      ["opencypher/relationships.csv", "opencypher/nodes.csv"],
    ]) {
      const ended = await loads(...files.map(dataPath));
      assert.equal(ended.code, 0, ended.stderr);
      assert.match(ended.stdout, /^LOAD_COMPLETED [0-9a-f-]{36}: \d+ records/);
      assert.match(ended.stdout, / 0 rejected/);
      assert.equal(await vertices(), LIBRARY.vertices);
    }
    assert.equal(await cypherValue(server, "MATCH ()-[r]->() RETURN count(r)"), LIBRARY.edges);
  });

  await t.test("a bad row fails the load; --keep-going reports it and goes on", async () => {
    const strict = await loads(dataPath("bad/rows.csv"));
    assert.equal(strict.code, 1);
    assert.match(strict.stdout, /^LOAD_FAILED/);
    assert.match(strict.stderr, /rows\.csv, line 3, column pages:Int, value \\"many\\"/);
    assert.equal(await vertices(), LIBRARY.vertices);
    const going = await loads("--keep-going", dataPath("bad/rows.csv"));
    assert.equal(going.code, 0, going.stderr);
    assert.match(going.stdout, / 3 rejected/);
    assert.match(going.stderr, /2001-02-31/);
    assert.equal(await vertices(), LIBRARY.vertices + 3);
  });

  await t.test("what cannot be loaded is said before anything is sent", async () => {
    for (const [args, expected] of [
      [["/nowhere/at-all.csv"], /cannot find \/nowhere\/at-all\.csv/],
      [[dataPath("gremlin"), dataPath("opencypher")], /one after the other/],
      [["s3://bucket/prefix"], /--format/],
      [[], /required|FILES/],
    ] as const) {
      const ended = await loads(...args);
      assert.notEqual(ended.code, 0);
      assert.match(ended.stderr, expected);
    }
  });

  await t.test("status", async () => {
    const shown = await runBinary(["status", "--endpoint", server.endpoint]);
    assert.equal(shown.code, 0, shown.stderr);
    assert.match(shown.stdout, /status\s+healthy/);
    assert.match(shown.stdout, new RegExp(`edges\\s+${LIBRARY.edges}`));
    const json = await runBinary(["status", "--endpoint", server.endpoint, "--json"]);
    assert.equal(JSON.parse(json.stdout).tidegraph.edges, LIBRARY.edges);
  });

  await t.test("on a terminal, how far it is, how fast, and the time left", async () => {
    // The size grows until the load takes long enough to be observed in progress.
    const middle = /([\d.]+ [KMG]iB)\/([\d.]+ [KMG]iB) [\d.]+ [KMG]iB\/s [1-9]\d* records \d+\w* left/;
    for (let scale = 1_000; ; scale *= 4) {
      const out = join(server.home, `scale-${scale}`);
      const generated = await runBinary(["generate", "identity", "--scale", String(scale), "--out", out]);
      assert.equal(generated.code, 0, generated.stderr);
      const command = ["load", "--endpoint", server.endpoint, out];
      const { code, shown } = await onTerminal(command, [], { TERM: "xterm" });
      assert.equal(code, 0, shown);
      assert.match(shown, /LOAD_COMPLETED [0-9a-f-]{36}: \d+ records/);
      const [, read, total] = middle.exec(shown) ?? [];
      if (read !== undefined && read !== total) break;
      assert.ok(scale < 50_000, `no progress in ${JSON.stringify(shown)}`);
    }
  });
});

test("generate writes the same bytes for the same seed, and others for another", async (t) => {
  const home = await folder(t);
  const generate = async (name: string, ...args: string[]) => {
    const out = join(home, name);
    const ended = await runBinary(["generate", ...args, "--out", out]);
    assert.equal(ended.code, 0, ended.stderr);
    const names = (await readdir(out)).sort();
    return Promise.all(names.map(async (file) => [file, await readFile(join(out, file), "utf8")] as const));
  };
  for (const [kind, scale] of [
    ["identity", "20"],
    ["social", "6"],
    ["snb", "3"],
  ] as const) {
    for (const format of ["gremlin-csv", "opencypher-csv"]) {
      const args = [kind, "--scale", scale, "--format", format];
      const name = `${kind}-${format}`;
      const first = await generate(`${name}-1`, ...args, "--seed", "3");
      assert.deepEqual(await generate(`${name}-2`, ...args, "--seed", "3"), first);
      assert.notDeepEqual(await generate(`${name}-3`, ...args, "--seed", "4"), first);
      assert.match(first[0]?.[1] ?? "", format === "gremlin-csv" ? /^~id/ : /^:(START_)?ID/);
    }
  }
  const large = await runBinary(["generate", "social", "--scale", "31", "--out", home]);
  assert.equal(large.code, 1);
  assert.match(large.stderr, /between 1 and 30, not 31/);
});

test("serve refuses what cannot be, and says why", async (t) => {
  const home = await folder(t);
  const token = join(home, "token");
  await writeFile(token, "short\n", { mode: 0o600 });
  const port = ["--port", "0"];
  const cases: [readonly string[], RegExp][] = [
    [[...port, "--partitions", "3"], /3 is not a power of two/],
    [[...port, "--data", "/proc/nowhere"], /\/proc\/nowhere/],
    [[...port, "--token-file", token], /fewer than 16 characters/],
    [[...port, "--token-file", join(home, "none")], /none/],
    [["--port", "70000"], /70000/],
    [[...port, "--sync-log-every-ms", "50"], /--data/],
    [[...port, "--data", join(home, "data"), "--sync-log-every-ms", "0"], /'0'.*--sync-log-every-ms/],
    [[...port, "--data", join(home, "data"), "--sync-log-every-ms", "60001"], /60001/],
    [[...port, "--allow-origin", "*"], /'\*'.*--allow-origin/],
    [[...port, "--allow-host", "http://db"], /'http:\/\/db'.*--allow-host/],
    [[...port, "--connections", "0"], /'0'.*--connections/],
    [[...port, "--nonsense"], /--nonsense/],
  ];
  for (const [args, expected] of cases) {
    const ended = await runBinary(["serve", ...args]);
    assert.notEqual(ended.code, 0, args.join(" "));
    assert.equal(ended.signal, null, args.join(" "));
    assert.match(ended.stderr, expected);
    assert.doesNotMatch(ended.stderr, /panicked/);
  }
});
