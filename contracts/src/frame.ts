/**
 * Frames, the envelope that the log, segments and checkpoints share: length of the payload (u32, little endian, at
 * least 1), CRC-32C of the payload (u32, little endian), payload.
 */

/** Bytes before the payload. */
export const FRAME_HEADER_BYTES = 8;

const TABLE = Uint32Array.from({ length: 256 }, (_, index) => {
  let crc = index;
  for (let bit = 0; bit < 8; bit += 1) crc = crc & 1 ? (crc >>> 1) ^ 0x82f63b78 : crc >>> 1;
  return crc >>> 0;
});

/** CRC-32C (Castagnoli); node:zlib has the other polynomial only. */
export function crc32c(bytes: Uint8Array): number {
  let crc = 0xffffffff;
  for (const byte of bytes) crc = ((TABLE[(crc ^ byte) & 0xff] ?? 0) ^ (crc >>> 8)) >>> 0;
  return (crc ^ 0xffffffff) >>> 0;
}

/** The payloads of all frames from `offset` on. Throws on an empty, torn or damaged one, with its place. */
export function* readFrames(bytes: Uint8Array, offset = 0): Generator<Uint8Array> {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  let at = offset;
  while (at < bytes.length) {
    if (at + FRAME_HEADER_BYTES > bytes.length) throw new Error(`frame at byte ${at}: header is torn`);
    const length = view.getUint32(at, true);
    const end = at + FRAME_HEADER_BYTES + length;
    if (length === 0) throw new Error(`frame at byte ${at}: payload is empty`);
    if (end > bytes.length) throw new Error(`frame at byte ${at}: payload of ${length} bytes is torn`);
    const payload = bytes.subarray(at + FRAME_HEADER_BYTES, end);
    if (crc32c(payload) !== view.getUint32(at + 4, true))
      throw new Error(`frame at byte ${at}: checksum does not match`);
    yield payload;
    at = end;
  }
}
