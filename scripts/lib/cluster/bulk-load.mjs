/** A bulk load into a fleet, so that tests have data in segments. */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

const PATIENCE_MS = 300_000;

/**
 * Writes a file of vertices and loads it. The worker must be allowed to read the folder.
 *
 * @param {string} endpoint
 * @param {string} folder A folder that does not exist yet.
 * @param {number} vertices
 * @param {string} label
 */
export async function bulkLoad(endpoint, folder, vertices, label = "Bulk") {
  mkdirSync(folder);
  const lines = Array.from({ length: vertices }, (_, n) => `${label}-${n},${label},${n}\n`).join("");
  writeFileSync(join(folder, "vertices.csv"), `~id,~label,n:Int(single)\n${lines}`);
  const taken = await fetch(`${endpoint}/loader`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ source: `file://${folder}`, format: "csv", mode: "NEW", failOnError: "TRUE" }),
  });
  const { payload } = /** @type {any} */ (await taken.json());
  for (const end = Date.now() + PATIENCE_MS; Date.now() < end; await sleep(200)) {
    const told = /** @type {any} */ (await (await fetch(`${endpoint}/loader/${payload.loadId}`)).json());
    const { status } = told.payload.overallStatus;
    if (/COMPLETED/.test(status)) return;
    if (/FAILED/.test(status)) throw new Error(`the load failed: ${JSON.stringify(told.payload)}`);
  }
  throw new Error(`the load is not over after ${PATIENCE_MS} ms`);
}
