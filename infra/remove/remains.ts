/**
 * What the stacks of a deployment left, in the order in which it has to be removed: brokers, which have interfaces in the
 * subnets; their configuration; the table; buckets with all versions; log groups; secrets; the network; roles of API
 * Gateway's logs; keys last, because everything else is encrypted with them.
 *
 * The tag of the deployment or a name that only it has tells what belongs to it. Each removal passes over what is gone
 * already, so that it can be repeated.
 */
import * as dynamodb from "@aws-sdk/client-dynamodb";
import * as kafka from "@aws-sdk/client-kafka";
import * as kms from "@aws-sdk/client-kms";
import * as s3 from "@aws-sdk/client-s3";
import * as sm from "@aws-sdk/client-secrets-manager";
import type { Clients } from "../doctor/clients.ts";
import { CallFailed } from "../doctor/finding.ts";
import { BACKUPS, deliveredPrefix, PART, TAG } from "../lib/names.ts";
import { logsRoles } from "./api-logs.ts";
import { Logs } from "./logs.ts";
import { network } from "./network.ts";

/** One thing that is left. */
export interface Remain {
  readonly kind: string;
  readonly id: string;
  /** Removes it and waits until it is gone. */
  remove(): Promise<void>;
}

/** Where to look, and what for. */
export interface Search {
  readonly clients: Clients;
  readonly region: string;
  readonly name: string;
  readonly backups: boolean;
  readonly keyDays: number;
  /** The pause between two looks at something that is being deleted. */
  readonly pauseMs: number;
  /** Tells what was passed over. */
  readonly say: (text: string) => void;
}

/** Returns what is left, in the order of its removal. */
export async function remains(search: Search): Promise<Remain[]> {
  const kinds = [clusters, configurations, tables, buckets, logGroups, secrets, network, logsRoles, keys];
  const found: Remain[] = [];
  for (const kind of kinds) found.push(...(await kind(search)));
  return found;
}

/** Returns whether a call failed because its object is gone. */
export function isGone(error: unknown): boolean {
  const name = error instanceof CallFailed ? error.cause.name : error instanceof Error ? error.name : "";
  return /NotFound|NoSuch|DoesNotExist/.test(name);
}

/** Does something to an object, unless it is gone. */
export async function unlessGone(work: () => Promise<unknown>): Promise<void> {
  try {
    await work();
  } catch (error) {
    if (!isGone(error)) throw error;
  }
}

/** Looks until an object is gone. */
export async function untilGone(look: () => Promise<unknown>, pauseMs: number): Promise<void> {
  for (;;) {
    try {
      await look();
    } catch (error) {
      if (isGone(error)) return;
      throw error;
    }
    await new Promise((done) => setTimeout(done, pauseMs));
  }
}

/** Names in the templates end in a part of the stack's id. */
const UNIQUE = "[0-9a-f]{8}";

async function clusters({ clients: { kafka: client }, name, pauseMs }: Search): Promise<Remain[]> {
  const list = async (): Promise<kafka.Cluster[]> => {
    const all: kafka.Cluster[] = [];
    for await (const page of kafka.paginateListClustersV2({ client }, { ClusterNameFilter: `${name}-log-` }))
      all.push(...(page.ClusterInfoList ?? []));
    return all.filter(({ ClusterName = "" }) => new RegExp(`^${name}-log-${UNIQUE}$`).test(ClusterName));
  };
  return (await list()).map(({ ClusterName: id = "", ClusterArn, State }) => {
    const remove = async (): Promise<void> => {
      if (State !== "DELETING")
        await unlessGone(() => client.send(new kafka.DeleteClusterCommand({ ClusterArn })));
      // It takes about twenty minutes.
      while ((await list()).some((one) => one.ClusterArn === ClusterArn))
        await new Promise((done) => setTimeout(done, pauseMs));
    };
    return { kind: "brokers", id, remove };
  });
}

async function configurations({ clients: { kafka: client }, name }: Search): Promise<Remain[]> {
  const found: Remain[] = [];
  for await (const page of kafka.paginateListConfigurations({ client }, {})) {
    for (const { Name = "", Arn } of page.Configurations ?? []) {
      if (!new RegExp(`^${name}-log-${UNIQUE}$`).test(Name)) continue;
      const remove = () => unlessGone(() => client.send(new kafka.DeleteConfigurationCommand({ Arn })));
      found.push({ kind: "configuration of brokers", id: Name, remove });
    }
  }
  return found;
}

async function tables({ clients: { dynamodb: client }, name, pauseMs }: Search): Promise<Remain[]> {
  const found: Remain[] = [];
  for await (const { TableNames = [] } of dynamodb.paginateListTables({ client }, {})) {
    for (const TableName of TableNames) {
      if (!new RegExp(`^${name}-${UNIQUE}-map$`).test(TableName)) continue;
      const look = () => client.send(new dynamodb.DescribeTableCommand({ TableName }));
      const remove = async (): Promise<void> => {
        await unlessGone(async () => {
          const { Table } = await look();
          if (Table?.DeletionProtectionEnabled) {
            const open = { TableName, DeletionProtectionEnabled: false };
            await client.send(new dynamodb.UpdateTableCommand(open));
          }
          if (Table?.TableStatus !== "DELETING")
            await client.send(new dynamodb.DeleteTableCommand({ TableName }));
        });
        await untilGone(look, pauseMs);
      };
      found.push({ kind: "table", id: TableName, remove });
    }
  }
  return found;
}

type Tags = readonly { readonly key: string | undefined; readonly value: string | undefined }[];

/** Whether tags are those of the deployment, and not of backups that are to stay. */
function isOurs(tags: Tags, { name, backups }: Search): boolean {
  const of = (key: string) => tags.find((tag) => tag.key === key)?.value;
  return of(TAG) === name && (backups || of(PART) !== BACKUPS);
}

async function buckets(search: Search): Promise<Remain[]> {
  const { clients, region, say } = search;
  const { s3: client } = clients;
  const found: Remain[] = [];
  for await (const { Buckets = [] } of s3.paginateListBuckets({ client }, { BucketRegion: region })) {
    for (const { Name: Bucket = "" } of Buckets) {
      const tags = await tagsOf(client, Bucket, say);
      if (isOurs(tags, search))
        found.push({ kind: "bucket", id: Bucket, remove: () => removeBucket(client, Bucket) });
    }
  }
  return found;
}

async function tagsOf(client: s3.S3Client, Bucket: string, say: Search["say"]): Promise<Tags> {
  try {
    const { TagSet = [] } = await client.send(new s3.GetBucketTaggingCommand({ Bucket }));
    return TagSet.map(({ Key, Value }) => ({ key: Key, value: Value }));
  } catch (error) {
    if (isGone(error)) return [];
    if (!(error instanceof CallFailed && error.isDenied)) throw error;
    say(`the tags of the bucket ${Bucket} cannot be read, so that it is passed over`);
    return [];
  }
}

/** Deletes all versions of all objects, then the bucket; again, if something was written in between. */
async function removeBucket(client: s3.S3Client, Bucket: string): Promise<void> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      await unlessGone(() => empty(client, Bucket));
      await unlessGone(() => client.send(new s3.DeleteBucketCommand({ Bucket })));
      return;
    } catch (error) {
      // Access logs arrive until hours after the last request.
      const isFilled = error instanceof CallFailed && error.cause.name === "BucketNotEmpty";
      if (!isFilled || attempt === 5) throw error;
    }
  }
}

async function empty(client: s3.S3Client, Bucket: string): Promise<void> {
  for (;;) {
    const { Uploads = [] } = await client.send(new s3.ListMultipartUploadsCommand({ Bucket }));
    if (Uploads.length === 0) break;
    for (const { Key, UploadId } of Uploads)
      await unlessGone(() => client.send(new s3.AbortMultipartUploadCommand({ Bucket, Key, UploadId })));
  }
  for (;;) {
    const { Versions = [], DeleteMarkers = [] } = await client.send(
      new s3.ListObjectVersionsCommand({ Bucket }),
    );
    const Objects = [...Versions, ...DeleteMarkers].map(({ Key, VersionId }) => ({ Key, VersionId }));
    if (Objects.length === 0) return;
    const { Errors = [] } = await client.send(
      new s3.DeleteObjectsCommand({ Bucket, Delete: { Objects, Quiet: true } }),
    );
    const [first] = Errors;
    if (first)
      throw new Error(`${Errors.length} objects of ${Bucket} stay, such as ${first.Key}: ${first.Message}`);
  }
}

async function logGroups({ clients, region, name }: Search): Promise<Remain[]> {
  const logs = new Logs(clients, region);
  const prefixes = [`/tidegraph/${name}/`, deliveredPrefix(name, "states"), deliveredPrefix(name, "msk")];
  const names: string[] = [];
  for (const prefix of prefixes) names.push(...(await logs.groups(prefix)));
  return names.map((id) => ({ kind: "log group", id, remove: () => logs.delete(id) }));
}

async function secrets({ clients: { sm: client }, name }: Search): Promise<Remain[]> {
  const found: Remain[] = [];
  // Values in one filter are alternatives, and both filters have to hold.
  const Filters: sm.Filter[] = [
    { Key: "tag-key", Values: [TAG] },
    { Key: "tag-value", Values: [name] },
  ];
  for await (const { SecretList = [] } of sm.paginateListSecrets({ client }, { Filters })) {
    for (const { ARN = "", Name = ARN, Tags = [] } of SecretList) {
      if (!Tags.some(({ Key, Value }) => Key === TAG && Value === name)) continue;
      const gone = { SecretId: ARN, ForceDeleteWithoutRecovery: true };
      const remove = () => unlessGone(() => client.send(new sm.DeleteSecretCommand(gone)));
      found.push({ kind: "secret", id: Name, remove });
    }
  }
  return found;
}

async function keys(search: Search): Promise<Remain[]> {
  const { clients, keyDays, say } = search;
  const { kms: client } = clients;
  const found: Remain[] = [];
  for await (const { Keys = [] } of kms.paginateListKeys({ client }, {})) {
    for (const { KeyId = "" } of Keys) {
      try {
        const { KeyMetadata } = await client.send(new kms.DescribeKeyCommand({ KeyId }));
        if (KeyMetadata?.KeyManager !== "CUSTOMER" || KeyMetadata.KeyState === "PendingDeletion") continue;
        const { Tags = [] } = await client.send(new kms.ListResourceTagsCommand({ KeyId }));
        const tags = Tags.map(({ TagKey, TagValue }) => ({ key: TagKey, value: TagValue }));
        if (!isOurs(tags, search)) continue;
      } catch (error) {
        if (!(error instanceof CallFailed && error.isDenied)) throw error;
        say(`the key ${KeyId} cannot be described, so that it is passed over`);
        continue;
      }
      const later = { KeyId, PendingWindowInDays: keyDays };
      const remove = async (): Promise<void> => {
        await client.send(new kms.ScheduleKeyDeletionCommand(later));
      };
      found.push({ kind: `key, in ${keyDays} days`, id: KeyId, remove });
    }
  }
  return found;
}
