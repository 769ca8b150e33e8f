/**
 * Neo4j's shell over Bolt. Arguments: the endpoint without TLS, and the class path of the shell in the variable
 * `TIDEGRAPH_CYPHER_SHELL`.
 */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";

const [plain = ""] = process.argv.slice(2);
const shell = ["-cp", process.env.TIDEGRAPH_CYPHER_SHELL ?? "", "org.neo4j.shell.Main"];
const address = ["-a", plain.replace("http:", "bolt:"), "-u", "neo4j", "-p", "none", "--format", "plain"];
/** @type {string[]} */
const works = [];

/**
 * @param {readonly string[]} args
 * @param {string} input
 * @returns {Promise<{ code: number | null, out: string }>}
 */
function run(args, input = "") {
  return new Promise((done, fail) => {
    const child = spawn("java", [...shell, ...args], { stdio: "pipe" });
    let out = "";
    for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk) => (out += chunk));
    child.on("error", fail);
    child.on("close", (code) => done({ code, out }));
    child.stdin.end(input);
  });
}

/** @param {string} name @param {readonly string[]} args @param {string} input @param {readonly string[]} lines */
async function step(name, args, input, lines) {
  const { code, out } = await run([...address, ...args], input);
  assert.equal(code, 0, `${name}: ${out}`);
  for (const line of lines) assert.ok(out.split("\n").includes(line), `${name}: no line ${line} in ${out}`);
  works.push(name);
}

const { out: version } = await run(["--version"]);
await step("query", ["MATCH (b:Book) RETURN count(b) AS books"], "", ["books", "9"]);
await step(
  "query with a parameter",
  ["--param", "least => 400", "MATCH (b:Book) WHERE b.pages > $least RETURN count(b) AS books"],
  "",
  ["3"],
);
await step(
  "transactions from a script",
  [],
  [
    ":begin",
    "CREATE (:Shell {n: 1});",
    ":commit",
    ":begin",
    "CREATE (:Shell {n: 2});",
    ":rollback",
    "MATCH (s:Shell) RETURN s.n AS n;",
    "MATCH (s:Shell) DELETE s;",
    "",
  ].join("\n"),
  ["n", "1"],
);
const wrong = await run([...address, "MATCH (n RETURN n"]);
assert.equal(wrong.code, 1, wrong.out);
// The shell shows the message, without the code.
const message = wrong.out.match(/unexpected 'RETURN'/)?.[0];
assert.ok(message, wrong.out);
const refused = [["query that does not parse", message]];
const number = version.match(/[\d.]+/)?.[0];
console.log(JSON.stringify({ client: "cypher-shell", version: number, works, refused }));
