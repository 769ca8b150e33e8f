/** The partition map: its table, its members and the replicas. */
import { DescribeContinuousBackupsCommand, DescribeTableCommand } from "@aws-sdk/client-dynamodb";
import type { Context } from "../context.ts";
import type { Resource } from "../deployment.ts";
import { absent, type Check, type Finding, failed, ok, some, unknown, warning } from "../finding.ts";
import { type Item, type MapItems, readItems, readMap } from "../map-items.ts";
import { wrongWith } from "../map-schemas.ts";
import { byHand } from "./by-hand.ts";
import { groupOf } from "./nodes.ts";

/** The key of the deployment encrypts the table. */
const QUERY = ["dynamodb:Query", "kms:Decrypt"];
const NONE = absent("none of the stacks has the table of the map");
/** States of replicas that answer reads. */
const SERVES = new Set(["serving", "leaving"]);

/** Returns the name of the table, if a stack has it. */
export const tableOf = (context: Context): string | undefined => found(context)?.id;

const found = ({ deployment }: Context): Resource | undefined =>
  deployment.one("AWS::DynamoDB::Table", "MapTable");

/** Why there is no map, or the map. */
export async function mapOf(context: Context): Promise<MapItems | Finding> {
  const name = tableOf(context);
  const { graph } = context;
  if (name === undefined) return NONE;
  if (graph === undefined) return absent("none of the stacks has the processes of the graph");
  const map = await context.once("map", () => readMap(context, name, graph));
  return map.graph === undefined ? unknown(`the map of ${graph} does not exist: see map.graph`) : map;
}

export const isFinding = (one: MapItems | Finding): one is Finding => "status" in one;

const table: Check = {
  id: "map.table",
  actions: ["dynamodb:DescribeTable"],
  async look(context) {
    const resource = found(context);
    if (resource === undefined) return NONE;
    const { id: TableName, properties } = resource;
    const { Table } = await context.clients.dynamodb.send(new DescribeTableCommand({ TableName }));
    const { TableStatus = "?", DeletionProtectionEnabled: protects = false } = Table ?? {};
    if (TableStatus !== "ACTIVE") {
      return failed(TableStatus, {
        subject: TableName,
        wanted: "ACTIVE",
        remedy: "look at the table in the console of DynamoDB; commits and moves wait, queries go on",
      });
    }
    if (protects) return ok("ACTIVE, protected from deletion", TableName);
    return warning("ACTIVE, not protected from deletion", {
      subject: TableName,
      wanted: "protected",
      // A deployment of the same template changes nothing.
      remedy: properties.DeletionProtectionEnabled
        ? byHand(`aws dynamodb update-table --table-name ${TableName} --deletion-protection-enabled`)
        : "deploy the state without -c protect=false, or with deletionProtection: true",
    });
  },
};

const recovery: Check = {
  id: "map.recovery",
  actions: ["dynamodb:DescribeContinuousBackups"],
  async look(context) {
    const TableName = tableOf(context);
    if (TableName === undefined) return NONE;
    const { ContinuousBackupsDescription } = await context.clients.dynamodb.send(
      new DescribeContinuousBackupsCommand({ TableName }),
    );
    const { PointInTimeRecoveryStatus: status = "DISABLED" } =
      ContinuousBackupsDescription?.PointInTimeRecoveryDescription ?? {};
    if (status === "ENABLED") return ok("point-in-time recovery is on", TableName);
    return failed("point-in-time recovery is off", {
      subject: TableName,
      wanted: "on",
      remedy: `aws dynamodb update-continuous-backups --table-name ${TableName} --point-in-time-recovery-specification PointInTimeRecoveryEnabled=true`,
    });
  },
};

const graph: Check = {
  id: "map.graph",
  isOfGraph: true,
  actions: QUERY,
  async look(context) {
    const name = tableOf(context);
    const { graph } = context;
    if (name === undefined) return NONE;
    if (graph === undefined) return absent("none of the stacks has the processes of the graph");
    const { graph: item } = await context.once("map", () => readMap(context, name, graph));
    if (item === undefined) {
      return failed(`there is no graph ${graph}`, {
        subject: name,
        wanted: "the map, which the first machine makes",
        remedy: `aws logs tail ${context.deployment.logs}/nodes --since 1h, and docs/first-day.md#the-service; after a loss, docs/backup.md#restore`,
      });
    }
    const { partitions, shards, replicationFactor, changedAt } = item;
    return ok(
      `${graph}: ${partitions} partitions, ${shards} shards, ${replicationFactor} replicas, epoch ${changedAt}`,
      name,
    );
  },
};

const items: Check = {
  id: "map.items",
  isOfGraph: true,
  actions: QUERY,
  async look(context) {
    const map = await mapOf(context);
    if (isFinding(map)) return map;
    const all = map.all;
    const wrong = all.flatMap((item) => wrongWith(item) ?? []);
    if (wrong.length === 0) return ok(`all ${all.length} are as their schemas say`);
    return failed(some(wrong, 3), {
      wanted: "items that nodes of this release read: none starts with another one",
      remedy: "docs/runbook.md#refused-map_item; if the nodes are of a newer release, see release.command",
    });
  },
};

const nodes: Check = {
  id: "map.nodes",
  isOfGraph: true,
  actions: [...QUERY, "autoscaling:DescribeAutoScalingGroups"],
  async look(context) {
    const map = await mapOf(context);
    if (isFinding(map)) return map;
    const group = await groupOf(context);
    const states = new Map(map.nodes.map(({ id, state }) => [id, state]));
    const up = map.nodes.filter(({ state }) => state === "up").length;
    const wrong: string[] = map.nodes
      .filter(({ state }) => state !== "up")
      .map(({ id, state }) => `${id} is ${state}`);
    for (const { InstanceId = "", LifecycleState } of group?.Instances ?? []) {
      if (LifecycleState === "InService" && !states.has(InstanceId))
        wrong.push(`${InstanceId} is not in the map`);
    }
    if (wrong.length === 0 && up > 0) return ok(`${up} up`);
    const rest = {
      wanted: "each machine in service is an up node, and no other node is left",
      remedy: `aws logs tail ${context.deployment.logs}/nodes --since 1h; a node that drains or joins takes minutes`,
    };
    const seen = [`${up} up`, ...(wrong.length > 0 ? [some(wrong)] : [])].join(", ");
    return up === 0 ? failed(seen, rest) : warning(seen, rest);
  },
};

/** Returns two looks at the heartbeats and leases, a pause apart. */
async function twoLooks(context: Context): Promise<readonly [MapItems, MapItems] | Finding> {
  const map = await mapOf(context);
  if (isFinding(map)) return map;
  const name = tableOf(context) ?? "";
  const graph = context.graph ?? "";
  const look = () => readItems(context, name, graph, ["map#node#", "beat#", "lease#"]);
  return context.once("looks", async () => {
    const first = await look();
    await new Promise((done) => setTimeout(done, context.pauseMs));
    return [first, await look()] as const;
  });
}

const beats: Check = {
  id: "map.beats",
  isOfGraph: true,
  actions: QUERY,
  async look(context) {
    const looks = await twoLooks(context);
    if ("status" in looks) return looks;
    const [before, after] = looks;
    const counters = new Map(before.nodes.map(({ id, beat }) => [id, beat?.counter as number | undefined]));
    const silent: string[] = [];
    const full: string[] = [];
    for (const { id, beat } of after.nodes) {
      // A node that registered meanwhile begins to count anew.
      if (beat === undefined || beat.counter === counters.get(id)) silent.push(id);
      if (beat?.diskFull) full.push(id);
    }
    const seconds = context.pauseMs / 1000;
    const rest = {
      wanted: "a heartbeat of each node every second, and free disks",
      remedy:
        "open a session on the machine and run tidegraph-node doctor; a machine whose daemon hangs is replaced after minutes",
    };
    const seen = [
      ...(silent.length > 0 ? [`no heartbeat within ${seconds} s: ${some(silent)}`] : []),
      ...(full.length > 0 ? [`disk is full: ${some(full)}`] : []),
    ];
    if (seen.length > 0) return failed(seen.join("; "), rest);
    if (after.nodes.length === 0) return failed("no node is in the map", rest);
    return ok(`${after.nodes.length} nodes sent heartbeats within ${seconds} s`);
  },
};

const lease: Check = {
  id: "map.lease",
  isOfGraph: true,
  actions: QUERY,
  async look(context) {
    const looks = await twoLooks(context);
    if ("status" in looks) return looks;
    const [before, after] = looks.map((map): Item | undefined => map.lease("sequencer"));
    const rest = {
      wanted: "one holder that renews it",
      remedy: "writes stop until a node takes it; docs/runbook.md#commitsunavailable",
    };
    if (after === undefined) return failed("no node has ever been the sequencer", rest);
    if (after.holder === "") return failed("the lease of the sequencer was given back", rest);
    const seen = `${after.holder}, epoch ${after.epoch}`;
    if (before?.epoch === after.epoch && before?.counter === after.counter)
      return failed(`${seen}, did not renew it within ${context.pauseMs / 1000} s`, rest);
    return ok(seen);
  },
};

const replicas: Check = {
  id: "map.replicas",
  isOfGraph: true,
  actions: QUERY,
  async look(context) {
    const map = await mapOf(context);
    if (isFinding(map)) return map;
    const { partitions: count, replicationFactor: wanted, splits } = map.graph;
    // docs/split.md: partitions after a split have new names.
    const first = splits?.createdWith === undefined ? 0 : count;
    const answers = new Set(
      map.nodes.filter(({ state }) => state === "up" || state === "draining").map(({ id }) => id),
    );
    const { partitions } = map;
    const none: number[] = [];
    const few: number[] = [];
    for (let number = first; number < first + count; number += 1) {
      const serving = Object.entries(partitions.get(number) ?? {}).filter(
        ([node, state]) => answers.has(node) && SERVES.has(state),
      ).length;
      if (serving === 0) none.push(number);
      else if (serving < wanted) few.push(number);
    }
    if (none.length + few.length === 0)
      return ok(`all ${count} partitions have ${wanted} replicas that serve`);
    const rest = {
      wanted: `${wanted} replicas of each of ${count} partitions`,
      remedy:
        "the state machine Heal restores them within minutes; its log group is heal; docs/runbook.md#nodesaway",
    };
    const list = (numbers: number[]) => some(numbers.map(String));
    const seen = [
      ...(none.length > 0 ? [`no replica serves ${none.length} partitions (${list(none)})`] : []),
      ...(few.length > 0 ? [`${few.length} partitions have fewer than ${wanted} (${list(few)})`] : []),
    ].join("; ");
    return none.length > 0 ? failed(seen, rest) : warning(seen, rest);
  },
};

const stuck: Check = {
  id: "map.stuck",
  isOfGraph: true,
  actions: QUERY,
  async look(context) {
    const map = await mapOf(context);
    if (isFinding(map)) return map;
    const all = map.nodes.flatMap(({ id, beat }) =>
      ((beat?.stuck ?? []) as Item[]).map(
        ({ partition, version, reason }) =>
          `partition ${partition} on ${id} at version ${version}: ${reason}`,
      ),
    );
    if (all.length === 0) return ok("no replica");
    return failed(some(all, 3), {
      wanted: "no replica that cannot apply its next record",
      remedy: "docs/fleet.md#a-record-that-no-replica-can-apply; keep the log and the checkpoints",
    });
  },
};

export const MAP: readonly Check[] = [table, recovery, graph, items, nodes, beats, lease, replicas, stuck];
