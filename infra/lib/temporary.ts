/**
 * Folders that are there as long as this process. Assets are copied from them into the cloud assembly while constructs are made, and nobody looks at them later; only `cdk --no-staging`
 * would, which deploys nothing.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const folders: string[] = [];

/** Makes an empty folder, which is removed with all that is in it when this process ends. */
export function temporaryFolder(what: string): string {
  if (folders.length === 0) {
    process.once("exit", () => {
      for (const folder of folders) rmSync(folder, { recursive: true, force: true });
    });
  }
  const folder = mkdtempSync(join(tmpdir(), `tidegraph-${what}-`));
  folders.push(folder);
  return folder;
}
