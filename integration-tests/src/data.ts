/** The small library graph in `data/`, and files made up by tests. */
import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

/** How many vertices and edges the library has. */
export const LIBRARY = { vertices: 20, edges: 31 };

/** A file or folder of `data/`. */
export function dataPath(relative: string): string {
  return fileURLToPath(new URL(`../data/${relative}`, import.meta.url));
}

/** Its `file://` URI, as the loader takes it. */
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

/** A vertex file with so many rows. */
export function manyVertices(prefix: string, rows: number, label = "Row"): string {
  const lines = Array.from({ length: rows }, (_, index) => `${prefix}${index},${label},${index}`);
  return `~id,~label,number:Int\n${lines.join("\n")}\n`;
}
