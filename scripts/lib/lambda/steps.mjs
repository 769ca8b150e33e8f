/**
 * A state machine that moves replicas, without Step Functions: performs the steps of
 * `infra/lib/state-machines/moves.ts` one after another, by invoking the function in its own process.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { LambdaFunction } from "./runtime.mjs";

/** Time between two checks of running moves. */
const LOOK_MS = 500;
/** Attempts at a step that fails as `Unavailable`, and the pause between them: the state machine tries again as well. */
const ATTEMPTS = 6;
const PAUSE_MS = 2_000;

/**
 * Starts the function, for a graph in DynamoDB Local.
 *
 * @param {string} binary
 * @param {string} log
 * @param {Record<string, string>} environment
 */
export async function rebalanceFunction(binary, log, environment) {
  const found = new LambdaFunction(binary, log, { AWS_REGION: "eu-west-3", ...environment });
  await found.start();
  return found;
}

/**
 * Performs a step, again while what it needs does not answer.
 *
 * @param {LambdaFunction} fn
 * @param {unknown} event
 * @returns {Promise<any>}
 */
async function perform(fn, event) {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await fn.step(event);
    } catch (error) {
      if (attempt === ATTEMPTS || !String(error).includes('"errorType":"Unavailable"')) throw error;
      await sleep(PAUSE_MS);
    }
  }
}

/**
 * Runs one execution to its end.
 *
 * @param {LambdaFunction} fn
 * @param {{ holder: string, goal: "repair" | "balance", drain?: string, withinMs?: number }} execution
 * @returns {Promise<{ verified: any, moves: number }>} the result of the verification, and the number of moves in the
 * first plan
 */
export async function execute(fn, { holder, goal, drain, withinMs = 300_000 }) {
  const node = drain ? { drain } : {};
  if (drain) await perform(fn, { step: "drain", node: drain });
  const acquired = await perform(fn, { step: "acquire", holder });
  if (!acquired.ours) throw new Error(`${acquired.lease.holder} has the lease`);
  const end = Date.now() + withinMs;
  let moves = -1;
  for (;;) {
    const plan = await perform(fn, { step: "plan", holder, goal, ...node });
    if (moves < 0) moves = plan.moves;
    if (plan.done && plan.coming === 0) break;
    await Promise.all(
      plan.lots.map(async (/** @type {any} */ lot) => {
        for (let { moves, looks } = { ...lot, looks: 0 }; moves.length > 0 && Date.now() < end; ) {
          ({ moves, looks } = await perform(fn, { step: "move", holder, moves, looks }));
          if (moves.length > 0) await sleep(LOOK_MS);
        }
      }),
    );
    if (Date.now() > end) throw new Error(`moves are not over after ${withinMs} ms: ${JSON.stringify(plan)}`);
    await sleep(LOOK_MS);
  }
  const verified = await perform(fn, { step: "verify", goal, ...node });
  await perform(fn, { step: "release", holder });
  return { verified, moves };
}
