/**
 * Runs the parts of a check in two lanes: parts that compute run one after another, and beside them, also one after
 * another, parts that mostly wait for servers. This keeps a machine with two cores busy, and no part has to share it
 * with many others.
 */
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { contentHash, notePassed, passedAt } from "./inputs.mjs";
import { isInterrupted, run } from "./run.mjs";

/**
 * The longest time for a command of a part. Then the part fails, and the others go on. Rust tests have limits of their own
 * (`.config/nextest.toml`).
 */
const LIMIT_MINUTES = 45;

/** The same for a part that waits: the longest, a deployment to LocalStack, takes seven minutes. */
const LIMIT_OF_WAITING_MINUTES = 20;

/**
 * @typedef {object} Part
 * @property {string} name selects the part: `npm test -- --NAME`; several parts may share a name
 * @property {string} title
 * @property {boolean} [waits] whether it mostly waits; it then runs beside those that compute, and its output is
 * printed at its end
 * @property {readonly string[]} inputs files and folders that its result depends on
 * @property {(run: import("./run.mjs").Run) => Promise<void>} act
 * @property {() => void} [passed] what else to record when it passes
 */

/**
 * Runs all parts, even if one fails, and finally prints the result and duration of each.
 *
 * @param {string} title
 * @param {readonly Part[]} parts
 * @param {{ all: boolean, before?: () => Promise<void> }} options `all`: also run parts that passed with the same
 * inputs; `before` runs once if any part has to run
 * @returns {Promise<void>}
 */
export async function runParts(title, parts, { all, before }) {
  /** @type {string[]} */
  const summary = [];
  /** @type {string[]} */
  const failures = [];
  let failed = 0;
  /** @type {(Part & { hash: string })[]} */
  const due = [];
  for (const part of parts) {
    const hash = contentHash(part.inputs);
    const at = all ? undefined : passedAt(markOf(part), hash);
    if (at === undefined) due.push({ ...part, hash });
    else summary.push(`unchanged          ${part.title} (passed ${at}; --all runs it)`);
  }

  /** @param {string} what @param {() => Promise<void>} act */
  const timed = async (what, act) => {
    const begin = performance.now();
    let result = "ok";
    try {
      await act();
    } catch (error) {
      console.error(error instanceof Error ? error.message : error);
      result = "FAILED";
      failed += 1;
    }
    const seconds = ((performance.now() - begin) / 1000).toFixed(1);
    const line = `${result.padEnd(9)}${seconds.padStart(7)} s  ${what}`;
    summary.push(line);
    console.log(`── ${line}`);
    return result === "ok";
  };

  if (due.length > 0 && before && !(await timed("what the parts need", before))) due.length = 0;

  /** @param {readonly (Part & { hash: string })[]} lane */
  const runLane = async (lane) => {
    for (const part of lane) {
      if (isInterrupted()) {
        summary.push(`not run            ${part.title}`);
        continue;
      }
      console.log(`\n── ${part.title}`);
      const ok = await timed(part.title, () =>
        part.waits
          ? withOutputAtEnd(part, failures)
          : part.act((program, args, options) =>
              run(program, args, { limitMinutes: LIMIT_MINUTES, ...options }),
            ),
      );
      if (!ok) continue;
      notePassed(markOf(part), part.hash);
      part.passed?.();
    }
  };
  await Promise.all([runLane(due.filter(({ waits }) => !waits)), runLane(due.filter(({ waits }) => waits))]);
  // What failed is repeated last: it may stand far above, and often only the end of an output is kept.
  console.log(`\n${[...failures, title, ...summary].join("\n")}`);
  if (failed > 0) process.exitCode = 1;
}

/** @param {Part} part */
function markOf(part) {
  return `part-${part.title.replaceAll(/[^a-zA-Z0-9]+/g, "-")}`;
}

/**
 * Runs a part and prints its output at the end, so that it does not mix with the output of the part beside it.
 *
 * @param {Part} part
 * @param {string[]} failures what it says of its failure is added to these lines
 */
async function withOutputAtEnd(part, failures) {
  const folder = mkdtempSync(join(tmpdir(), "tidegraph-part-"));
  const file = join(folder, "output.txt");
  const output = openSync(file, "w");
  try {
    await part.act((program, args, options) =>
      run(program, args, { limitMinutes: LIMIT_OF_WAITING_MINUTES, ...options, output }),
    );
  } catch (error) {
    failures.push(`── why ${part.title} failed`, ...failureIn(readFileSync(file, "utf8")), "");
    throw error;
  } finally {
    closeSync(output);
    console.log(`\n── what ${part.title} printed\n${readFileSync(file, "utf8")}`);
    rmSync(folder, { recursive: true });
  }
}

/** The most lines of an output that are repeated. */
const FAILURE_LINES = 60;

/**
 * Returns the lines of an output that tell a failure: those that the test runner of Node.js lists as failing, else the
 * last ones.
 *
 * @param {string} output
 */
function failureIn(output) {
  const lines = output.trimEnd().split("\n");
  const listed = lines.findIndex((line) => line.includes("failing tests:"));
  return listed >= 0 ? lines.slice(listed, listed + FAILURE_LINES) : lines.slice(-FAILURE_LINES);
}
