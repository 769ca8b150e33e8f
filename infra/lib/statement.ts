/**
 * Policy statements. They are written out instead of using `grantRead` and the like, which allow whole families of
 * actions (`s3:GetObject*`), of which our processes use only one.
 */
import { Stack } from "aws-cdk-lib";
import * as iam from "aws-cdk-lib/aws-iam";
import type { IKey } from "aws-cdk-lib/aws-kms";
import type { IBucket } from "aws-cdk-lib/aws-s3";
import type { ISecret } from "aws-cdk-lib/aws-secretsmanager";
import type { Construct } from "constructs";
import { explainWildcard } from "./nag.ts";

/** Returns a statement that allows actions on resources. */
export function statement(
  sid: string,
  actions: string[],
  resources: string[],
  conditions: Record<string, Record<string, string | string[]>> = {},
): iam.PolicyStatement {
  return new iam.PolicyStatement({ sid, actions, resources, conditions });
}

/** Allows using a key through the given services only. */
export function useKey(scope: Construct, key: IKey, services: string[]): iam.PolicyStatement {
  const { region, urlSuffix } = Stack.of(scope);
  const via = services.map((service) => `${service}.${region}.${urlSuffix}`);
  const actions = ["kms:Decrypt", "kms:GenerateDataKey"];
  return statement("UseKey", actions, [key.keyArn], { StringEquals: { "kms:ViaService": via } });
}

/** Allows using the key of a bucket for its objects only: through S3, in the region of the bucket. */
export function useKeyOf(
  scope: Construct,
  bucket: IBucket,
  { sid, actions }: { sid: string; actions: string[] },
): iam.PolicyStatement[] {
  const { urlSuffix } = Stack.of(scope);
  const via = `s3.${bucket.env.region}.${urlSuffix}`;
  const key = bucket.encryptionKey;
  return key ? [statement(sid, actions, [key.keyArn], { StringEquals: { "kms:ViaService": via } })] : [];
}

/** Allows reading secrets, in all their versions. Their key needs `useKey` as well. */
export function readSecret(...secrets: (ISecret | undefined)[]): iam.PolicyStatement {
  const arns = secrets.flatMap((secret) => (secret === undefined ? [] : [secret.secretArn]));
  return statement("ReadSecret", ["secretsmanager:GetSecretValue"], arns);
}

/** Kinds of access to the objects of a bucket. */
export type Access = "read" | "write";

/**
 * Allows access to the objects of a bucket, or to those in some of its folders; `write` includes reading and deleting.
 * Names may be listed in the whole bucket: S3 answers "not found" only to principals that may list it, and it ignores
 * prefixes for that.
 */
export function useObjects(
  role: iam.Role,
  name: string,
  bucket: IBucket,
  access: Access,
  reason: string,
  folders: readonly string[] = [],
): void {
  const write = ["s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload"];
  const actions = ["s3:GetObject", ...(access === "write" ? write : [])];
  const below = folders.length === 0 ? ["/*"] : folders.map((folder) => `/${folder}/*`);
  role.addToPolicy(statement(`List${name}`, ["s3:ListBucket"], [bucket.bucketArn]));
  role.addToPolicy(
    statement(
      `Use${name}`,
      actions,
      below.map((path) => `${bucket.bucketArn}${path}`),
    ),
  );
  for (const path of below) explainWildcard(role, `${bucket.bucketArn}${path}`, reason);
}
