/**
 * Where dropped files stand: `drop/GRAPH/NAME/…` in the drop bucket, complete when `drop/GRAPH/NAME/_SUCCESS` is there. What is told of them is below `reports/GRAPH/NAME/`.
 *
 * As in a drop folder, each folder directly in it is one load, and a mark deeper inside says nothing: programs that write tables leave one in each.
 */
import { v5 } from "uuid";
import { Refused } from "./refused.ts";

/** The file that says that all others are there. */
export const COMPLETE = "_SUCCESS";

/** What ids of loads are made in: one of ours, drawn once. */
const NAMESPACE = "5f3a9a3e-6f0b-4c52-8d0a-0f6f2f7c1b94";

/** What state machine and function take for a name; nothing in it has to be encoded anywhere. */
const NAME = /^[A-Za-z0-9][A-Za-z0-9._=+@-]{0,127}$/;

/** The folder of a mark below `drop/`, such as `people/2026-11-22`; none where the mark is that of a folder inside of a load, or no mark. */
export function folderOf(key: string): string | undefined {
  const found = /^drop\/(.*)\/_SUCCESS$/s.exec(key)?.[1];
  return found !== undefined && found.split("/").length <= 2 ? found : undefined;
}

/** The name of the load in a folder of this graph. */
export function nameIn(folder: string, graph: string): string {
  const [ofGraph, name] = folder.split("/");
  if (name === undefined) {
    throw new Refused(`drop/${folder}/${COMPLETE} has no name of a load: drop/${graph}/NAME/${COMPLETE}`);
  }
  if (ofGraph !== graph) {
    throw new Refused(`the graph is ${JSON.stringify(ofGraph)}, and this is the drop bucket of ${graph}`);
  }
  if (!NAME.test(name)) {
    const may = "1 to 128 letters, digits and ._=+@- that begin with a letter or digit";
    throw new Refused(`the name of the load is ${JSON.stringify(name)}, and has to be ${may}`);
  }
  return name;
}

/**
 * The id of a load. Made from what the mark says and not from when it was put: the same mark that is told of twice, or put again, is the same load. Its ETag would not do:
 * with a key of KMS it is another one each time.
 *
 * @param content SHA-256 of the mark's content
 */
export function idOf(bucket: string, key: string, content: string): string {
  return v5([bucket, key, content].join("\n"), NAMESPACE);
}

/** Where the report of a load goes. */
export function reportOf(folder: string, loadId: string): string {
  return `reports/${folder}/${loadId}.json`;
}
