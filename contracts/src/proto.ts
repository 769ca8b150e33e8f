/** Loads the protobuf messages of `proto/` and decodes them: log records, segments, checkpoints. */
import protobuf from "protobufjs";
import { contractPath } from "./paths.ts";

/** Loads files, given by their paths below `proto/`, and the files that they import. */
export function loadProtos(files: readonly string[]): protobuf.Root {
  const root = new protobuf.Root();
  root.resolvePath = (_origin, target) => contractPath(`proto/${target}`);
  root.loadSync([...files]);
  root.resolveAll();
  return root;
}

/**
 * Decodes a message into protobuf's JSON form, which the golden files have: names in camel case, 64-bit integers as
 * text, enums by name, and only fields that are set.
 */
export function decodeToJson(root: protobuf.Root, message: string, payload: Uint8Array): unknown {
  const type = root.lookupType(message);
  return type.toObject(type.decode(payload), { longs: String, enums: String, bytes: String });
}
