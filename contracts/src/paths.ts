/** Paths of the files in `contracts/`. */
import { fileURLToPath } from "node:url";

/** Returns the absolute path of a file in `contracts/`. */
export function contractPath(relative: string): string {
  return fileURLToPath(new URL(`../${relative}`, import.meta.url));
}
