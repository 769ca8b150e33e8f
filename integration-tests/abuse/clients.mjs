/** What hostile clients have in common. */
import { setTimeout as sleep } from "node:timers/promises";

/** @typedef {import("./service.mjs").Service} Service */
/** @typedef {import("./service.mjs").Answer} Answer */

/** A query was refused, ended by a limit, or answered; never a defect. */
export const LIMITED = [200, 400, 408, 413, 429, 503];

/** @param {number} count @param {(index: number) => Promise<Answer | Answer[]>} one */
export async function times(count, one) {
  return (await Promise.all(Array.from({ length: count }, (_, index) => one(index)))).flat();
}

/**
 * Opens connections that send bytes and then nothing, holds them, and closes those that are still open.
 *
 * @param {Service} service
 * @param {number} count
 * @param {string | Buffer} bytes
 * @param {number} forMs
 */
export async function hold(service, count, bytes, forMs) {
  const sockets = [];
  for (let opened = 0; opened < count; opened += 1) {
    const socket = await service.socket().catch(() => undefined);
    if (!socket) continue;
    socket.on("error", () => {});
    socket.pause();
    socket.write(bytes);
    sockets.push(socket);
  }
  await sleep(forMs);
  for (const socket of sockets) socket.destroy();
  return [];
}
