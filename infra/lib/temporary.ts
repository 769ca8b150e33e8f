/**
 * Folders that exist as long as this process. While constructs are created, CDK copies assets from them into the cloud
 * assembly, and nothing reads them later. Only `cdk --no-staging` would, and it deploys nothing.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const folders: string[] = [];

/** Creates an empty folder, which is removed with its contents when this process ends. */
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
