/**
 * Commands from the systemd unit of storage nodes (`infra/node/tidegraph-node.service`), adapted to this machine. Tests
 * run the unit's own commands, so that every change of them is tested.
 */

/**
 * Returns the command of the first line of the unit that has this key and contains this word.
 *
 * @param {string} unit
 * @param {string} key such as `ExecStart`
 * @param {string} word
 */
export function commandOf(unit, key, word) {
  const found = [...unit.matchAll(new RegExp(`^${key}=(.*)$`, "gm"))].find(([, line]) =>
    line?.includes(word),
  );
  if (!found?.[1]) throw new Error(`the unit has no ${key} with ${word}`);
  return found[1];
}

/**
 * Splits a command into words, replacing a machine's paths by ours and variables by their values.
 *
 * @param {string} line
 * @param {{ program: string, run: string, environment: Record<string, string> }} here `run`: the folder for what a node
 * writes
 */
export function words(line, { program, run, environment }) {
  return line
    .replaceAll("/opt/tidegraph/bin/tidegraph-node", program)
    .replaceAll("/run/tidegraph", run)
    .replaceAll("/var/lib/tidegraph", run)
    .replaceAll("0.0.0.0", "127.0.0.1")
    .replaceAll(/\$\{(\w+)\}/g, (_, variable) => environment[variable] ?? `no ${variable}`)
    .split(" ");
}
