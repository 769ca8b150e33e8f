/** Checks on definitions of state machines. */
import assert from "node:assert/strict";
import type { Definition, State } from "../draw/draw.ts";
import { flat } from "./support.ts";

/** Returns all states, including those inside Maps. */
export function states(definition: Definition): [string, State][] {
  return Object.entries(definition.States).flatMap(([name, state]) => [
    [name, state] as [string, State],
    ...(state.ItemProcessor ? states(state.ItemProcessor) : []),
  ]);
}

/** Returns the names of the states that can follow. */
function nexts(state: State): string[] {
  const some = [state.Next, state.Default, ...(state.Choices ?? []).map(({ Next }) => Next)];
  return [...some, ...(state.Catch ?? []).map(({ Next }) => Next)].filter((next) => next !== undefined);
}

/** Checks that every state that is named exists, is reachable, and either leads on or ends. */
export function check(name: string, { StartAt, States }: Definition): void {
  const reached = new Set<string>();
  const visit = (at: string): void => {
    if (reached.has(at)) return;
    reached.add(at);
    const state = States[at];
    assert.ok(state, `${name}: there is no state ${at}`);
    const leads = nexts(state);
    const ends = state.End === true || ["Succeed", "Fail"].includes(state.Type);
    assert.ok(ends || leads.length > 0, `${name}: ${at} leads nowhere`);
    assert.ok(!(state.End && state.Next), `${name}: ${at} ends and goes on`);
    for (const next of leads) visit(next);
    if (state.ItemProcessor) check(`${name}, ${at}`, state.ItemProcessor);
  };
  visit(StartAt);
  assert.deepEqual(Object.keys(States).toSorted(), [...reached].toSorted(), `${name}: states out of reach`);
}

/**
 * Returns the events that tasks send to the function of the steps, by the ids of the tasks. `examples` has values for the
 * paths that Step Functions resolves at run time.
 */
export function events(
  all: Iterable<[string, State]>,
  examples: Readonly<Record<string, unknown>>,
): Map<string, Record<string, unknown>> {
  const found = new Map<string, Record<string, unknown>>();
  for (const [id, { Parameters, Resource }] of all) {
    if (!flat(Resource).startsWith("<ServiceRebalanceFunction") || !Parameters) continue;
    const fields = Object.entries(Parameters).map(([key, value]) =>
      key.endsWith(".$") ? [key.slice(0, -2), examples[key.slice(0, -2)]] : [key, value],
    );
    found.set(id, Object.fromEntries(fields));
  }
  return found;
}
