/** The runbook has a section for each alarm of the templates, and none for an alarm that does not exist. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { exampleWithEverything } from "./options.ts";
import { example, ofType } from "./support.ts";

const RUNBOOK = readFileSync(join(import.meta.dirname, "..", "..", "docs", "runbook.md"), "utf8");

/** Returns the sections by their names, as logical ids have them. */
function sections(): Map<string, string> {
  const [, ...found] = RUNBOOK.split(/^## /m);
  return new Map(
    found.map((section) => {
      const [name = "", ...text] = section.split("\n");
      return [name.replaceAll(/[^A-Za-z0-9]/g, ""), text.join("\n").trim()];
    }),
  );
}

test("each alarm has a section", () => {
  const { service } = exampleWithEverything();
  const ids = ["Alarm", "CompositeAlarm"].flatMap((type) => ofType(service, `AWS::CloudWatch::${type}`));
  const alarms = ids.map(([id]) =>
    // Each broker has an alarm of its own, and each window of an objective.
    id
      .replace(/^Service(Watch|Objectives|Autoscaling)/, "")
      .replace(/[0-9A-F]{8}$/, "")
      .replace(/\d+$/, ""),
  );
  const told = sections();
  assert.deepEqual([...new Set(alarms)].toSorted(), [...told.keys()].toSorted());
  for (const [name, text] of told) assert.ok(text.length > 100, name);
});

test("the log groups that it names exist", () => {
  const { service, state } = example({ backup: {}, encryption: {}, nodes: { most: 9 } });
  const groups = [...ofType(service, "AWS::Logs::LogGroup"), ...ofType(state, "AWS::Logs::LogGroup")];
  const names = groups.map(([, { Properties }]) => JSON.stringify(Properties.LogGroupName));
  for (const name of [
    ...["access", "query", "workers", "join", "nodes", "brokers", "rotation", "ingest-settle"],
    "certificates",
    ...["backup", "backup-machine", "resize", "drain"],
  ]) {
    assert.ok(RUNBOOK.includes(`\`${name}\``), name);
    assert.ok(
      names.some((one) => one.includes(`/${name}"`) || one.includes(`${name}-`)),
      name,
    );
  }
});
