/**
 * Looks for drops that nobody completed: folders without a mark into which nothing came for a while. Each gets a report, once.
 *
 * A folder with a mark costs one request, another one a request for each thousand of its objects. A look makes so many requests and no more; the next one goes on behind the last
 * folder that it looked at, so that all have their turn however many there are.
 */
import { COMPLETE } from "./mark.ts";
import type { Objects } from "./objects.ts";

/** A drop that nobody completed. */
export interface Stale {
  readonly folder: string;
  /** Key of the object that came last. */
  readonly newest: string;
  readonly newestTime: Date;
  readonly objects: number;
}

export interface Parts {
  readonly graph: string;
  readonly drop: Objects;
  /** How long a drop may go without a new object. */
  readonly patienceMs: number;
  readonly now: Date;
  /** Requests that may be made. */
  readonly requests: number;
}

/** What was found. */
export interface Found {
  readonly stale: readonly Stale[];
  /** Those that nothing was told of before. */
  readonly told: readonly Stale[];
  /** The folder that the next look goes on behind; none when all were looked at. */
  readonly after: string | undefined;
}

/** @param after where the last look stopped */
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
    // Behind everything that is in that folder: `0` comes after `/`.
    const start = next === undefined && after !== undefined ? { after: after.replace(/\/$/, "0") } : {};
    const page = await drop.list({ prefix: root, folders: true, next, ...start });
    for (const folder of page.folders) {
      if (left <= 0) return { stale, told, after: last };
      left -= 1;
      if ((await drop.etag(folder + COMPLETE)) === undefined) {
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

/** The object of a folder that came last, and how many requests it took. Of a folder with more pages than requests are left, what was seen counts. */
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

/** Leaves a report where there is none; whether there was none. */
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
  return drop.writeOnce(key, `${JSON.stringify(content, undefined, 2)}\n`);
}
