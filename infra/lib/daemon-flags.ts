/** Returns the daemon's variables as flags: the definition of a task should have no variables (cdk-nag's rule ECS2). */
export function asFlags(variables: Readonly<Record<string, string>>): string[] {
  return Object.entries(variables).flatMap(([name, value]) => {
    const flag = `--${name
      .replace(/^TIDEGRAPH_/, "")
      .toLowerCase()
      .replaceAll("_", "-")}`;
    return value === "true" ? [flag] : [flag, value];
  });
}
