/**
 * Finds stale drops: folders without a mark that received no object for a while. Each gets one report.
 *
 * A folder with a mark costs one request. A folder without one costs another request for each thousand objects. The
 * number of requests of one search is limited. The next search continues after the last folder, so every folder has its
 * turn, however many there are.
 */
import { COMPLETE, isKey } from "./mark.ts";
import type { Objects } from "./objects.ts";

/** A drop that nobody completed: a folder, and the number of its objects. */
export interface Stale {
  readonly folder: string;
  /** Key of the object that was uploaded last. */
  readonly newest: string;
  readonly newestTime: Date;
  readonly objects: number;
}

export interface Parts {
  readonly graph: string;
  readonly drop: Objects;
  /** Time without a new object after which a drop is stale. */
  readonly patienceMs: number;
  readonly now: Date;
  /** Limit of requests that read. It is checked before each folder, so a search may exceed it by two. */
  readonly requests: number;
}

/** The result of a search. */
export interface Found {
  readonly stale: readonly Stale[];
  /** The stale drops that got their report in this search. */
  readonly told: readonly Stale[];
  /** Folder after which the next search continues; `undefined` if this search reached the end. */
  readonly after: string | undefined;
}

/**
 * Searches for stale drops and reports the new ones.
 *
 * @param after the folder where the last search stopped
 */
export async function look(parts: Parts, after: string | undefined): Promise<Found> {
  const { drop, graph } = parts;
  const root = `drop/${graph}/`;
  const stale: Stale[] = [];
  const told: Stale[] = [];
  let left = parts.requests;
  let next: string | undefined;
  let last = after;
  do {
    left -= 1;
    // Skips everything in that folder: `0` is the character after `/`.
    const start = next === undefined && after !== undefined ? { after: after.replace(/\/$/, "0") } : {};
    const page = await drop.list({ prefix: root, folders: true, next, ...start });
    for (const folder of page.folders) {
      if (left <= 0) return { stale, told, after: last };
      left -= 1;
      const mark = folder + COMPLETE;
      if (!isKey(mark) || (await drop.etag(mark)) === undefined) {
        const [found, requests] = await newestIn(drop, folder, left);
        left -= requests;
        if (found !== undefined && parts.now.getTime() - found.newestTime.getTime() > parts.patienceMs) {
          stale.push(found);
          if (await report(parts, found)) told.push(found);
        }
      }
      last = folder;
    }
    next = page.next;
  } while (next !== undefined);
  return { stale, told, after: undefined };
}

/**
 * Returns the newest object of a folder and the number of requests. If the folder has more pages than `most`, returns
 * the newest object of the pages that were read, which are at least one.
 */
async function newestIn(drop: Objects, folder: string, most: number): Promise<[Stale | undefined, number]> {
  let found: Stale | undefined;
  let next: string | undefined;
  let requests = 0;
  do {
    const page = await drop.list({ prefix: folder, next });
    requests += 1;
    for (const { key, modified } of page.objects) {
      const isNewer = found === undefined || modified > found.newestTime;
      const { newest, newestTime } =
        isNewer || found === undefined ? { newest: key, newestTime: modified } : found;
      found = { folder, newest, newestTime, objects: (found?.objects ?? 0) + 1 };
    }
    next = page.next;
  } while (next !== undefined && requests < most);
  return [found, requests];
}

/** Writes the report of a stale drop unless it exists, or the name of the folder is too long. Returns whether it was written. */
async function report({ drop, patienceMs }: Parts, stale: Stale): Promise<boolean> {
  const hours = patienceMs / 3_600_000;
  const content = {
    status: "LOAD_NOT_STARTED",
    source: `s3://${drop.bucket}/${stale.folder}`,
    newest: stale.newest,
    newestTime: Math.floor(stale.newestTime.getTime() / 1000),
    objects: stale.objects,
    message: `there is no ${COMPLETE}, and nothing came for ${Number(hours.toFixed(2))} hours`,
  };
  const key = `${stale.folder.replace(/^drop\//, "reports/")}stale.json`;
  return isKey(key) && drop.writeOnce(key, `${JSON.stringify(content, undefined, 2)}\n`);
}
