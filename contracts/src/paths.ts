/** Where the contracts lie, seen from this package's sources. */
import { fileURLToPath } from "node:url";

/** An absolute path inside of `contracts/`. */
export function contractPath(relative: string): string {
  return fileURLToPath(new URL(`../${relative}`, import.meta.url));
}
