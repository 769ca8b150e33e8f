/** Types, validators and decoders made from the schemas of `contracts/`. */
export { type ErrorKind, type ErrorRow, errorRow, errorTable } from "./errors.ts";
export { crc32c, readFrames } from "./frame.ts";
export type { components, paths } from "./generated/openapi.ts";
export { type LogFile, type LogRecord, readLogFile } from "./log.ts";
export { mapItemProblem } from "./map.ts";
export { decodeToJson, loadProtos } from "./proto.ts";
export { parseAs, type Schemas, validator } from "./validate.ts";
