/**
 * Keys of drops and of their reports. The files of a drop are at `drop/GRAPH/NAME/…` in the drop bucket. The drop is
 * complete once its mark `drop/GRAPH/NAME/_SUCCESS` exists. Its reports are at `reports/GRAPH/NAME/…`.
 *
 * Each folder directly below `drop/GRAPH/` is one load, as in a drop folder on a disk. Marks in deeper folders mean
 * nothing, because programs that write tables leave one in each folder.
 */
import { v5 } from "uuid";
import { Refused } from "./refused.ts";

/** Name of the mark: the file that users write last, when all other files of the drop exist. */
export const COMPLETE = "_SUCCESS";

/** Namespace of the ids of loads (UUID version 5). It must never change, or known drops would get new ids. */
const NAMESPACE = "5f3a9a3e-6f0b-4c52-8d0a-0f6f2f7c1b94";

/** Names of loads. All characters are safe in keys, URLs and Step Functions without encoding. */
const NAME = /^[A-Za-z0-9][A-Za-z0-9._=+@-]{0,127}$/;

/**
 * Returns the folder of a mark, relative to `drop/`, such as `people/2026-11-22`. Returns `undefined` if the key is not
 * a mark, or is a mark deeper inside a load.
 */
export function folderOf(key: string): string | undefined {
  const found = /^drop\/(.*)\/_SUCCESS$/s.exec(key)?.[1];
  return found !== undefined && found.split("/").length <= 2 ? found : undefined;
}

/**
 * Returns the graph and the name of the load in a folder, which is the result of `folderOf`. Throws `Refused` if the folder
 * has no name of a load, belongs to a graph that is not among the given ones, or has a name that is not allowed.
 */
export function loadIn(folder: string, graphs: readonly string[]): { graph: string; name: string } {
  const [graph = "", name] = folder.split("/");
  if (name === undefined) {
    const below = graphs.length === 1 ? graphs[0] : "GRAPH";
    throw new Refused(`drop/${folder}/${COMPLETE} has no name of a load: drop/${below}/NAME/${COMPLETE}`);
  }
  if (!graphs.includes(graph)) {
    throw new Refused(
      `the graph is ${JSON.stringify(graph)}, and this is the drop bucket of ${graphs.join(", ")}`,
    );
  }
  if (!NAME.test(name)) {
    const may = "1 to 128 letters, digits and ._=+@- that begin with a letter or digit";
    throw new Refused(`the name of the load is ${JSON.stringify(name)}, and has to be ${may}`);
  }
  return { graph, name };
}

/**
 * Returns the id of a load. It depends on the content of the mark and not on the time of its upload: an event that
 * arrives twice, or a mark that is written again, names the same load. The ETag cannot replace the content, because
 * under a KMS key each upload gets another ETag.
 *
 * @param content SHA-256 of the mark's content
 */
export function idOf(bucket: string, key: string, content: string): string {
  return v5([bucket, key, content].join("\n"), NAMESPACE);
}

/** S3's limit of a key, in bytes of UTF-8. */
const MOST_KEY_BYTES = 1024;

/** Returns whether an object may have this key. S3 fails requests with a longer one, instead of finding nothing. */
export function isKey(key: string): boolean {
  return Buffer.byteLength(key) <= MOST_KEY_BYTES;
}

/** Returns the key of the report of a load in the drop bucket. */
export function reportOf(folder: string, loadId: string): string {
  return `reports/${folder}/${loadId}.json`;
}
