/** Reads a log file of format 1 as `docs/formats/log.md` describes it. For tools and tests: it reads the whole file. */
import type protobuf from "protobufjs";
import { crc32c, FRAME_HEADER_BYTES, readFrames } from "./frame.ts";
import { decodeToJson, loadProtos } from "./proto.ts";

const MAGIC = "TIDELOG\0";
const FORMAT = 1;
const HEADER_BYTES = 36;
const CHECKED_BYTES = 32;
const PREFIX_BYTES = 26;

/** One record, in the shape of the golden files. */
export interface LogRecord {
  /** Byte offset of the frame in the file. */
  readonly offset: number;
  readonly shard: number;
  readonly epoch: number;
  readonly version: number;
  /** Number of bytes of the file that were known to be durable when the record was written. */
  readonly durable_bytes: number;
  /** The message `tidegraph.v1.LogBody` in protobuf's JSON form. */
  readonly body: unknown;
}

/** One file of the log. */
export interface LogFile {
  readonly format: number;
  readonly shard: number;
  readonly first_version: number;
  readonly epoch: number;
  readonly records: readonly LogRecord[];
}

/** Decodes a file. Throws if the file is torn or damaged, with the place. Repairs nothing. */
export function readLogFile(
  bytes: Uint8Array,
  protos: protobuf.Root = loadProtos(["tidegraph/v1/log.proto"]),
): LogFile {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (buffer.length < HEADER_BYTES || buffer.toString("latin1", 0, MAGIC.length) !== MAGIC) {
    throw new Error("not a log file: its magic number is missing");
  }
  const format = buffer.readUInt32LE(8);
  if (format !== FORMAT) throw new Error(`log format ${format} is not ${FORMAT}`);
  if (crc32c(buffer.subarray(0, CHECKED_BYTES)) !== buffer.readUInt32LE(CHECKED_BYTES)) {
    throw new Error("the checksum of the file header does not match");
  }
  const records: LogRecord[] = [];
  let offset = HEADER_BYTES;
  for (const payload of readFrames(buffer, HEADER_BYTES)) {
    records.push({ offset, ...readRecord(payload, protos) });
    offset += FRAME_HEADER_BYTES + payload.length;
  }
  return {
    format,
    shard: buffer.readUInt16LE(12),
    first_version: u64(buffer, 16),
    epoch: u64(buffer, 24),
    records,
  };
}

function readRecord(payload: Uint8Array, protos: protobuf.Root): Omit<LogRecord, "offset"> {
  const buffer = Buffer.from(payload.buffer, payload.byteOffset, payload.byteLength);
  if (buffer.length < PREFIX_BYTES) throw new Error(`a record of ${buffer.length} bytes is too short`);
  return {
    shard: buffer.readUInt16LE(0),
    epoch: u64(buffer, 2),
    version: u64(buffer, 10),
    durable_bytes: u64(buffer, 18),
    body: decodeToJson(protos, "tidegraph.v1.LogBody", buffer.subarray(PREFIX_BYTES)),
  };
}

function u64(buffer: Buffer, at: number): number {
  const value = Number(buffer.readBigUInt64LE(at));
  if (!Number.isSafeInteger(value)) throw new Error(`a number at byte ${at} does not fit into 53 bits`);
  return value;
}
