/** Tables of `docs/neptune-clients.md` that the tests of clients write: each says what its test has seen. */
import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";

const DOCUMENT = fileURLToPath(new URL("../../docs/neptune-clients.md", import.meta.url));

/** Returns a table in Markdown. */
export function markdown(header: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.join(" | ")} |`;
  return [line(header), `|${header.map(() => "---|").join("")}`, ...rows.map(line)].join("\n");
}

/**
 * Fails if the document has another table of this name. If `TIDEGRAPH_UPDATE_TABLES` is set, it writes the table
 * instead.
 */
export async function checkTable(name: string, table: string): Promise<void> {
  const text = await readFile(DOCUMENT, "utf8");
  const [start, end] = [`<!-- table: ${name} -->\n`, `\n<!-- end of table: ${name} -->`];
  const [from, to] = [text.indexOf(start), text.indexOf(end)];
  assert.ok(from >= 0 && to > from, `${DOCUMENT} has no table ${name}`);
  const made = text.slice(0, from + start.length) + table + text.slice(to);
  if (process.env.TIDEGRAPH_UPDATE_TABLES) await writeFile(DOCUMENT, made);
  else assert.equal(text, made, "TIDEGRAPH_UPDATE_TABLES=1 writes the table");
}
