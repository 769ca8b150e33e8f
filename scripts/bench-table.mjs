/**
 * `npm run bench:table`: writes the table of `docs/benchmarks/README.md` from the JSON files beside it, one for each
 * workload. A file is what `npm run bench -- NAME --json FILE` writes, with `date` and `command` added.
 */
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "./lib/run.mjs";

const BEGIN = "<!-- figures -->\n";
const END = "<!-- end of figures -->";
const folder = join(root, "docs", "benchmarks");
const page = join(folder, "README.md");

/**
 * @typedef {{
 *   metric: string, unit: string, value: number, peer?: string, peer_value?: number, ratio?: number, target?: number,
 *   met?: boolean
 * }} Result
 */

/** Formats a number with three significant digits. @param {number} value */
const short = (value) => Number(value.toPrecision(3)).toLocaleString("en-US", { maximumFractionDigits: 6 });

/** @param {Result} result */
function targetOf({ target, met }) {
  if (target === undefined) return "";
  return `${short(target)} ${met ? "met" : "**missed**"}`;
}

/** @param {string} file */
function rowsOf(file) {
  /** @type {{ name?: string, date: string, command: string, results?: Result[] }} */
  const { date, command, results = [] } = JSON.parse(readFileSync(join(folder, file), "utf8"));
  if (date === undefined || command === undefined)
    throw new Error(`${file} lacks "date" or "command": add when it was measured, and with which command`);
  const workload = `[${file.replace(".json", "")}](${file})`;
  const compared = results.filter(({ peer, target }) => peer !== undefined || target !== undefined);
  // A workload without a comparison shows only its own figures; one that counts losses refers to its report.
  const shown = compared.length > 0 ? compared : results;
  if (shown.length === 0) return [`| ${workload} | the report | | | | | | \`${command}\` | ${date} |`];
  return shown.map((result) => {
    const { metric, unit, value, peer = "", peer_value, ratio } = result;
    const theirs = peer_value === undefined ? "" : short(peer_value);
    const times = ratio === undefined ? "" : short(ratio);
    const cells = [workload, `${metric}, ${unit}`, peer, short(value), theirs, times, targetOf(result)];
    return `| ${cells.join(" | ")} | \`${command}\` | ${date} |`;
  });
}

const files = readdirSync(folder).filter((name) => name.endsWith(".json"));
const head =
  "| workload | metric | peer or limit | ours | theirs | ratio | target | command | date |\n|---|---|---|---|---|---|---|---|---|";
const text = readFileSync(page, "utf8");
const [before, after] = [text.split(BEGIN)[0], text.split(END)[1]];
if (before === undefined || after === undefined) throw new Error(`${page} has no place for the table`);
writeFileSync(page, `${before}${BEGIN}\n${head}\n${files.flatMap(rowsOf).join("\n")}\n\n${END}${after}`);
