/**
 * What `tidegraph-doctor` says of the alarms of a deployment with every option: of those that tell the topic, those that
 * tell nobody because a state machine reads them or another alarm consists of them, and composite ones.
 */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import * as cw from "@aws-sdk/client-cloudwatch";
import { look } from "../doctor/doctor.ts";
import type { Result } from "../doctor/finding.ts";
import { exampleWithEverything } from "../test/options.ts";
import { ofType } from "../test/support.ts";
import { Account, STACKS } from "./account.ts";
import { ACCOUNT, Clients, Creation, REGION } from "./create.ts";
import { DurableClients, durable } from "./durable.ts";
import type { Template } from "./templates.ts";

const TYPES = ["AWS::CloudWatch::Alarm", "AWS::CloudWatch::CompositeAlarm"];
const { state, service } = exampleWithEverything();
const alarms = TYPES.flatMap((type) => ofType(service, type));
const telling = alarms.filter(([, { Properties }]) => Properties.AlarmActions !== undefined);

let account: Account;
let clients: Clients;
let stored: DurableClients;

before(async () => {
  account = await Account.start({});
  [clients, stored] = [new Clients(account.moto.endpoint), new DurableClients(account.moto.endpoint)];
  const templates = { State: state.toJSON() as Template, Service: service.toJSON() as Template };
  // moto has no certificate for listeners, and nothing here looks at them.
  const listener = `arn:aws:elasticloadbalancing:${REGION}:${ACCOUNT}:listener/net/queries/1/2`;
  const makers = { "AWS::ElasticLoadBalancingV2::Listener": async () => ({ ref: listener }) };
  account.deploy(templates, new Creation(clients, templates, { ...durable(stored), ...makers }));
  Object.assign(process.env, {
    AWS_ENDPOINT_URL: account.endpoint,
    AWS_ACCESS_KEY_ID: "test",
    AWS_SECRET_ACCESS_KEY: "test",
    AWS_REGION: REGION,
    AWS_EC2_METADATA_DISABLED: "true",
  });
});
after(async () => {
  for (const made of [clients, stored]) made?.destroy();
  await account?.stop();
});

/** Returns what a check says of the alarms. */
async function of(check: "alarms.now" | "alarms.actions"): Promise<readonly Result[]> {
  const options = { stacks: Object.values(STACKS), json: false, only: ["alarms"] };
  const { results } = await look(options, "0.1.0", { pauseMs: 1_000, checkMs: 60_000 });
  return results.filter(({ id }) => id === check);
}

/** Returns the name in AWS of the alarm whose logical id begins so. */
async function named(beginning: string): Promise<string> {
  const found = alarms.filter(([id]) => id.replace(/[0-9A-F]{8}$/, "") === beginning);
  assert.equal(found.length, 1, beginning);
  return (await account.creation?.physical("Service", found[0]?.[0] ?? "")) ?? "";
}

async function set(AlarmName: string, StateValue: "ALARM" | "OK"): Promise<void> {
  await stored.cw.send(new cw.SetAlarmStateCommand({ AlarmName, StateValue, StateReason: "it is tried" }));
}

test("there are alarms that tell, alarms that do not, and composite ones", () => {
  const silent = alarms.filter((one) => !telling.includes(one)).map(([id]) => id.replace(/[0-9A-F]{8}$/, ""));
  assert.deepEqual(silent.toSorted(), [
    ...["ServiceAutoscalingNodesBusy", "ServiceAutoscalingNodesIdle"],
    ...["BudgetBurnsFast5", "BudgetBurnsFast60", "BudgetBurnsSlowly30", "BudgetBurnsSlowly360"].map(
      (window) => `ServiceObjectives${window}`,
    ),
  ]);
  assert.equal(ofType(service, "AWS::CloudWatch::CompositeAlarm").length, 2);
});

test("a deployment whose alarms are as they were deployed has nothing wrong", async () => {
  for (const type of TYPES) await account.creation?.all("Service", type);
  assert.deepEqual(await of("alarms.now"), [
    { id: "alarms.now", status: "ok", seen: `none of ${telling.length}` },
  ]);
  assert.deepEqual(await of("alarms.actions"), [
    {
      ...{ id: "alarms.actions", status: "ok" },
      seen: `all ${telling.length} alarms tell the topic; 6 others are meant to tell nobody`,
    },
  ]);
});

test("an alarm that tells nobody may be on: an idle fleet, and one window of two", async () => {
  const [idle, window] = ["example-nodes-idle", await named("ServiceObjectivesBudgetBurnsFast60")];
  for (const name of [idle, window]) await set(name, "ALARM");
  const [{ status, seen } = { status: "", seen: "" }, ...more] = await of("alarms.now");
  assert.deepEqual([status, more], ["ok", []]);
  assert.ok(seen.startsWith(`none of ${telling.length}; on, and meant to tell nobody: `), seen);
  for (const name of [idle, window]) assert.ok(seen.includes(name), seen);
});

test("each alarm that tells is seen when it is on, with its section of the runbook", async () => {
  for (const [id] of telling) await set((await account.creation?.physical("Service", id)) ?? "", "ALARM");
  const found = await of("alarms.now");
  assert.equal(found.length, telling.length);
  assert.ok(found.every(({ status, seen }) => status === "failed" && seen.endsWith(": it is tried")));
  const remedyOf = async (beginning: string) => {
    const name = await named(beginning);
    return found.find(({ subject }) => subject === name)?.remedy ?? "";
  };
  for (const [beginning, section] of [
    ["ServiceObjectivesBudgetBurnsFast", "BudgetBurnsFast"],
    ["ServiceObjectivesBudgetBurnsSlowly", "BudgetBurnsSlowly"],
    ["ServiceObjectivesApiSlow", "ApiSlow"],
    ["ServiceWatchNodesFull", "NodesFull"],
    ["ServiceWatchLogFull2", "LogFull"],
  ] as const)
    assert.match(await remedyOf(beginning), new RegExp(`^docs/runbook\\.md, section ${section}: .{20}`));
  for (const [id] of telling) await set((await account.creation?.physical("Service", id)) ?? "", "OK");
});

test("alarms that were deleted, that tell somebody else, and whose actions are off", async () => {
  const [busy, burns] = ["example-nodes-busy", await named("ServiceObjectivesBudgetBurnsSlowly")];
  const [slow, errors] = [
    await named("ServiceObjectivesBudgetBurnsFast"),
    await named("ServiceWatchQueryErrors"),
  ];
  // A fleet without this alarm never grows.
  await stored.cw.send(new cw.DeleteAlarmsCommand({ AlarmNames: [busy, burns] }));
  const AlarmRule = `ALARM("${await named("ServiceObjectivesBudgetBurnsFast5")}")`;
  const other = { AlarmName: slow, AlarmRule, AlarmActions: [`arn:aws:sns:${REGION}:${ACCOUNT}:other`] };
  await stored.cw.send(new cw.PutCompositeAlarmCommand(other));
  // The state machine that resizes reads this one; whether its actions are on does not matter.
  const off = { AlarmNames: [errors, "example-nodes-idle"] };
  await stored.cw.send(new cw.DisableAlarmActionsCommand(off));
  const found = await of("alarms.actions");
  assert.deepEqual(
    found.map(({ status, seen }) => [status, seen]),
    [
      ["failed", `actions are off: ${errors}`],
      ["failed", `deleted: ${busy}, ${burns}; do not tell the topic: ${slow}`],
    ],
  );
  assert.equal(found[0]?.remedy, `aws cloudwatch enable-alarm-actions --alarm-names ${errors}`);
  assert.match(found[1]?.remedy ?? "", /--revert-drift/);
});
