/** The small library graph in `data/`, and files that tests generate. */
import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

/** The number of vertices and edges of the library. */
export const LIBRARY = { vertices: 20, edges: 31 };

/** Returns the path of a file or folder of `data/`. */
export function dataPath(relative: string): string {
  return fileURLToPath(new URL(`../data/${relative}`, import.meta.url));
}

/** Returns its `file://` URI, as the loader accepts it. */
export function dataUri(relative: string): string {
  return pathToFileURL(dataPath(relative)).href;
}

/** Writes a file for a load, and returns its `file://` URI. */
export async function writeSource(
  folder: string,
  name: string,
  content: string | Uint8Array,
): Promise<string> {
  const path = join(folder, name);
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, content);
  return pathToFileURL(path).href;
}

/** Returns the text of a vertex file with `rows` rows. */
export function manyVertices(prefix: string, rows: number, label = "Row"): string {
  const lines = Array.from({ length: rows }, (_, index) => `${prefix}${index},${label},${index}`);
  return `~id,~label,number:Int\n${lines.join("\n")}\n`;
}
