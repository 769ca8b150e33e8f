/** The buckets: their protection, and the ages of the newest checkpoints and of the newest backup. */
import {
  GetBucketEncryptionCommand,
  GetBucketLifecycleConfigurationCommand,
  GetBucketNotificationConfigurationCommand,
  GetBucketVersioningCommand,
  GetPublicAccessBlockCommand,
  ListObjectsV2Command,
} from "@aws-sdk/client-s3";
import type { Context } from "../context.ts";
import { literal, type Resource } from "../deployment.ts";
import { absent, CallFailed, type Check, type Finding, failed, ok, span, warning } from "../finding.ts";
import { applied, type MapItems } from "../map-items.ts";
import { revertDrift } from "./by-hand.ts";
import { isFinding, mapOf } from "./map.ts";

/** A replica writes a checkpoint 5 minutes after the last one, if there is a new version (`--checkpoint-after-ms`). */
const LATE_MS = 15 * 60_000;
const TOO_LATE_MS = 3_600_000;
/** Partitions whose checkpoints are looked at in S3: those that are behind the most. */
const LOOKED_AT = 8;
const BACKUP_TAKES_MS = 2 * 3_600_000;

const bucketsOf = ({ deployment }: Context): Resource[] => [
  ...["BucketsData", "BucketsDrop", "BucketsLogs"].flatMap((name) => deployment.all("AWS::S3::Bucket", name)),
  ...deployment.all("AWS::S3::Bucket", "BackupBucket"),
];

/** Looks at each bucket for which the template sets a property. */
async function each(
  context: Context,
  property: string,
  look: (bucket: Resource) => Promise<Finding>,
): Promise<Finding | Finding[]> {
  const found = bucketsOf(context).filter(({ properties }) => properties[property] !== undefined);
  if (found.length === 0) return absent("none of the stacks has such a bucket");
  return Promise.all(found.map(look));
}

/** Returns the answer, or nothing if the bucket has no such setting. */
async function unlessMissing<T>(asked: Promise<T>): Promise<T | undefined> {
  return asked.catch((error: unknown) => {
    const { name = "" } = error instanceof CallFailed ? error.cause : {};
    if (/^NoSuch(Lifecycle|PublicAccess)|^ServerSideEncryptionConfigurationNotFound/.test(name))
      return undefined;
    throw error;
  });
}

const versioning: Check = {
  id: "buckets.versioning",
  actions: ["s3:GetBucketVersioning"],
  look: (context) =>
    each(context, "VersioningConfiguration", async ({ id: Bucket }) => {
      const { Status = "never enabled" } = await context.clients.s3.send(
        new GetBucketVersioningCommand({ Bucket }),
      );
      if (Status === "Enabled") return ok(Status, Bucket);
      return failed(Status, {
        subject: Bucket,
        wanted: "Enabled: a checkpoint that is deleted by mistake can be recovered",
        remedy: `aws s3api put-bucket-versioning --bucket ${Bucket} --versioning-configuration Status=Enabled`,
      });
    }),
};

const encryption: Check = {
  id: "buckets.encryption",
  actions: ["s3:GetEncryptionConfiguration"],
  look: (context) =>
    each(context, "BucketEncryption", async ({ id: Bucket, stack, properties }) => {
      const answer = await unlessMissing(context.clients.s3.send(new GetBucketEncryptionCommand({ Bucket })));
      const [rule] = answer?.ServerSideEncryptionConfiguration?.Rules ?? [];
      const { SSEAlgorithm = "none" } = rule?.ApplyServerSideEncryptionByDefault ?? {};
      const [given] = properties.BucketEncryption.ServerSideEncryptionConfiguration ?? [];
      const wanted: string = given?.ServerSideEncryptionByDefault?.SSEAlgorithm ?? "AES256";
      if (SSEAlgorithm === wanted) return ok(SSEAlgorithm, Bucket);
      return failed(SSEAlgorithm, { subject: Bucket, wanted, remedy: revertDrift(stack) });
    }),
};

const PUBLIC = ["BlockPublicAcls", "BlockPublicPolicy", "IgnorePublicAcls", "RestrictPublicBuckets"] as const;

const access: Check = {
  id: "buckets.public",
  actions: ["s3:GetBucketPublicAccessBlock"],
  look: (context) =>
    each(context, "PublicAccessBlockConfiguration", async ({ id: Bucket }) => {
      const answer = await unlessMissing(
        context.clients.s3.send(new GetPublicAccessBlockCommand({ Bucket })),
      );
      const off = PUBLIC.filter((name) => !answer?.PublicAccessBlockConfiguration?.[name]);
      if (off.length === 0) return ok("public access is blocked", Bucket);
      return failed(`${off.join(", ")} off`, {
        subject: Bucket,
        wanted: "public access is blocked in all four ways",
        remedy: `aws s3api put-public-access-block --bucket ${Bucket} --public-access-block-configuration ${PUBLIC.map((name) => `${name}=true`).join(",")}`,
      });
    }),
};

const lifecycle: Check = {
  id: "buckets.lifecycle",
  actions: ["s3:GetLifecycleConfiguration"],
  look: (context) =>
    each(context, "LifecycleConfiguration", async ({ id: Bucket, stack, properties }) => {
      const answer = await unlessMissing(
        context.clients.s3.send(new GetBucketLifecycleConfigurationCommand({ Bucket })),
      );
      const there = answer?.Rules ?? [];
      const missing = (properties.LifecycleConfiguration.Rules as TemplateRule[]).flatMap((rule) => {
        const found = there.find(
          (one) =>
            one.Status === "Enabled" &&
            (one.Filter?.Prefix ?? one.Prefix ?? "") === (rule.Prefix ?? "") &&
            one.Expiration?.Days === rule.ExpirationInDays &&
            one.NoncurrentVersionExpiration?.NoncurrentDays ===
              rule.NoncurrentVersionExpiration?.NoncurrentDays &&
            one.AbortIncompleteMultipartUpload?.DaysAfterInitiation ===
              rule.AbortIncompleteMultipartUpload?.DaysAfterInitiation,
        );
        return found ? [] : [inWords(rule)];
      });
      if (missing.length === 0) return ok(`${there.length} rules, as deployed`, Bucket);
      return warning(`missing: ${missing.join("; ")}`, {
        subject: Bucket,
        wanted: "the rules of the template: without them old checkpoints are kept, and paid for",
        remedy: revertDrift(stack),
      });
    }),
};

interface TemplateRule {
  readonly Prefix?: string;
  readonly ExpirationInDays?: number;
  readonly NoncurrentVersionExpiration?: { readonly NoncurrentDays?: number };
  readonly AbortIncompleteMultipartUpload?: { readonly DaysAfterInitiation?: number };
}

function inWords(rule: TemplateRule): string {
  const { NoncurrentDays: noncurrent } = rule.NoncurrentVersionExpiration ?? {};
  return [
    rule.Prefix === undefined ? "everything" : `below ${rule.Prefix}`,
    ...(rule.ExpirationInDays === undefined ? [] : [`deleted after ${rule.ExpirationInDays} days`]),
    ...(noncurrent === undefined ? [] : [`earlier versions after ${noncurrent} days`]),
    ...(rule.AbortIncompleteMultipartUpload ? ["abandoned uploads too"] : []),
  ].join(" ");
}

const events: Check = {
  id: "buckets.events",
  actions: ["s3:GetBucketNotification"],
  async look(context) {
    const bucket = context.deployment.one("AWS::S3::Bucket", "BucketsDrop");
    if (bucket === undefined) return absent("none of the stacks has the drop bucket");
    const asked = new GetBucketNotificationConfigurationCommand({ Bucket: bucket.id });
    const { EventBridgeConfiguration: told } = await context.clients.s3.send(asked);
    if (told !== undefined) return ok("EventBridge is told of drops", bucket.id);
    return failed("EventBridge is not told of drops", {
      subject: bucket.id,
      wanted: "told: otherwise dropped files are never loaded",
      remedy: `aws s3api put-bucket-notification-configuration --bucket ${bucket.id} --notification-configuration '{"EventBridgeConfiguration":{}}'`,
    });
  },
};

const checkpoints: Check = {
  id: "checkpoints.age",
  isOfGraph: true,
  actions: ["dynamodb:Query", "kms:Decrypt", "s3:ListBucket"],
  async look(context) {
    const Bucket = context.deployment.one("AWS::S3::Bucket", "BucketsData")?.id;
    if (Bucket === undefined) return absent("none of the stacks has the data bucket");
    const map = await mapOf(context);
    if (isFinding(map)) return map;
    const behind = behindCheckpoints(map);
    const count = map.checkpoints.size;
    if (behind.length === 0)
      return ok(`${count} partitions have checkpoints of their newest version`, Bucket);
    const ages = await Promise.all(
      behind.slice(0, LOOKED_AT).map(async ({ partition, prefix }) => {
        const newest = prefix === undefined ? undefined : await newestObject(context, Bucket, prefix);
        return { partition, age: newest === undefined ? undefined : Date.now() - newest };
      }),
    );
    const [oldest] = ages.toSorted((a, b) => (b.age ?? Infinity) - (a.age ?? Infinity));
    const age = oldest?.age;
    const rest = {
      subject: Bucket,
      wanted: "a checkpoint at most 5 minutes after new versions: the log is not trimmed before",
      remedy: `aws logs tail ${context.deployment.logs}/nodes --since 1h, and look for "cannot write a checkpoint"`,
    };
    if (age === undefined) {
      return warning(`partition ${oldest?.partition} has no checkpoint yet`, rest);
    }
    const seen = `${behind.length} of ${map.graph.partitions} partitions have newer versions; the oldest of the newest checkpoints is ${span(age)} old (partition ${oldest?.partition})`;
    if (age >= TOO_LATE_MS) return failed(seen, rest);
    return age >= LATE_MS ? warning(seen, rest) : ok(seen, Bucket);
  },
};

/** Returns the partitions with newer versions than their newest checkpoint, those that are behind the most first. */
export function behindCheckpoints(map: MapItems): { partition: number; prefix?: string; behind: number }[] {
  const newest = new Map<number, number>();
  for (const { beat } of map.nodes) {
    for (const [partition, version] of applied(beat?.applied ?? ""))
      newest.set(partition, Math.max(version, newest.get(partition) ?? 0));
  }
  const { checkpoints } = map;
  return [...newest]
    .flatMap(([partition, version]) => {
      const { version: written = 0, prefix } = checkpoints.get(partition) ?? {};
      const behind = version - written;
      return behind > 0 ? [{ partition, behind, ...(prefix !== undefined && { prefix }) }] : [];
    })
    .toSorted((a, b) => b.behind - a.behind || a.partition - b.partition);
}

async function newestObject(
  { clients }: Context,
  Bucket: string,
  prefix: string,
): Promise<number | undefined> {
  const asked = new ListObjectsV2Command({ Bucket, Prefix: `${prefix.replace(/\/$/, "")}/` });
  const { Contents = [] } = await clients.s3.send(asked);
  const times = Contents.map(({ LastModified }) => LastModified?.getTime() ?? 0);
  return times.length === 0 ? undefined : Math.max(...times);
}

const backups: Check = {
  id: "backups.age",
  isOfGraph: true,
  actions: ["s3:ListBucket"],
  async look(context) {
    const { deployment } = context;
    const rule = deployment.one("AWS::Events::Rule", "BackupSchedule");
    const Bucket = deployment.output("BackupBucket");
    if (rule === undefined || Bucket === undefined) {
      return warning("the deployment makes no backups", {
        wanted: "backups in another bucket: nothing can be restored otherwise",
        remedy: "set backup: {} of GraphService (docs/backup.md#on-aws)",
      });
    }
    const [, every = "24", unit = "hours"] =
      /rate\((\d+) (hour|day)s?\)/.exec(literal(rule.properties.ScheduleExpression)) ?? [];
    const hours = Number(every) * (unit === "day" ? 24 : 1);
    const names = await manifests(context, Bucket);
    const rest = {
      subject: Bucket,
      wanted: `one every ${hours} hours`,
      remedy: "start the state machine Backup by hand; docs/runbook.md#nobackup",
    };
    const newest = names.toSorted((a, b) => b.at - a.at)[0];
    if (newest === undefined) return failed("there is no backup yet", rest);
    const age = Date.now() - newest.at;
    const seen = `${names.length} backups, the newest is ${span(age)} old (${newest.name})`;
    return age > hours * 3_600_000 + BACKUP_TAKES_MS ? failed(seen, rest) : ok(seen, Bucket);
  },
};

/** Lists the manifests of backups, which are written last: a backup without one does not exist. */
async function manifests(
  { clients, graph }: Context,
  Bucket: string,
): Promise<{ name: string; at: number }[]> {
  const Prefix = `${graph}/manifests/`;
  const found: { name: string; at: number }[] = [];
  let ContinuationToken: string | undefined;
  do {
    const asked = new ListObjectsV2Command({ Bucket, Prefix, ContinuationToken });
    const page = await clients.s3.send(asked);
    for (const { Key = "", LastModified } of page.Contents ?? []) {
      if (Key.endsWith(".json"))
        found.push({ name: Key.slice(Prefix.length, -".json".length), at: LastModified?.getTime() ?? 0 });
    }
    ContinuationToken = page.NextContinuationToken;
  } while (ContinuationToken !== undefined);
  return found;
}

export const BUCKETS: readonly Check[] = [
  versioning,
  encryption,
  access,
  lifecycle,
  events,
  checkpoints,
  backups,
];
