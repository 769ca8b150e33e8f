/**
 * What the systemd unit of storage nodes runs (`infra/node/tidegraph-node.service`), as commands for this machine: tests run the commands of the unit, so
 * that nobody can change them without a test that has run them.
 */

/**
 * The command after a key of the unit that holds a word.
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
 * The words of a command, with our paths in the place of a machine's and with the values of variables.
 *
 * @param {string} line
 * @param {{ program: string, run: string, environment: Record<string, string> }} here `run`: the folder for what a node writes
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
