/**
 * A thread that sends a simple query every few milliseconds and notes how long each answer takes. It has a thread of its
 * own, so that the hostile clients of the main thread do not delay it.
 */
import { Agent, request } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { parentPort, workerData } from "node:worker_threads";

/** @typedef {{ at: number, ms: number, failure?: string }} Sample */

const EVERY_MS = 10;
const agent = new Agent({ keepAlive: true, maxSockets: 1 });
const { port, body } = workerData;

/** @returns {Promise<string | undefined>} why it failed */
function ask() {
  return new Promise((done) => {
    const options = { host: "127.0.0.1", port, path: "/openCypher", method: "POST", agent, timeout: 30_000 };
    const sent = request({ ...options, headers: { "content-type": "application/json" } }, (answer) => {
      let text = "";
      answer.setEncoding("utf8");
      answer.on("data", (chunk) => {
        text += chunk;
      });
      answer.on("end", () => done(answer.statusCode === 200 ? undefined : `${answer.statusCode} ${text}`));
      answer.on("error", (error) => done(String(error)));
    });
    sent.on("timeout", () => sent.destroy(new Error("no answer for 30 s")));
    sent.on("error", (error) => done(String(error)));
    sent.end(body);
  });
}

let stopped = false;
parentPort?.on("message", () => {
  stopped = true;
});
while (!stopped) {
  const at = performance.timeOrigin + performance.now();
  const failure = await ask();
  const ms = performance.timeOrigin + performance.now() - at;
  /** @type {Sample} */
  const sample = failure === undefined ? { at, ms } : { at, ms, failure };
  parentPort?.postMessage(sample);
  await sleep(EVERY_MS);
}
agent.destroy();
parentPort?.close();
