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
import { explainBelow } from "./nag.ts";

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

/** Allows reading a secret, in all its versions. Its key needs `useKey` as well. */
export function readSecret(secret: ISecret): iam.PolicyStatement {
  return statement("ReadSecret", ["secretsmanager:GetSecretValue"], [secret.secretArn]);
}

/** Kinds of access to the objects of a bucket. */
export type Access = "read" | "write";

/** Allows access to all objects of a bucket; `write` includes reading and deleting. */
export function useObjects(
  role: iam.Role,
  name: string,
  bucket: IBucket,
  access: Access,
  reason: string,
): void {
  const write = ["s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload"];
  const actions = ["s3:GetObject", ...(access === "write" ? write : [])];
  role.addToPolicy(statement(`List${name}`, ["s3:ListBucket"], [bucket.bucketArn]));
  role.addToPolicy(statement(`Use${name}`, actions, [`${bucket.bucketArn}/*`]));
  explainBelow(role, bucket, bucket.bucketArn, "/*", reason);
}
