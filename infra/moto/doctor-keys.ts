/** What `doctor.test.ts` does to the policy of the state's key. */
import assert from "node:assert/strict";
import * as kms from "@aws-sdk/client-kms";
import type { Result } from "../doctor/finding.ts";
import { REGION } from "./create.ts";

/** The state's key, and a role that has to use it. */
interface Parts {
  readonly client: kms.KMSClient;
  readonly KeyId: string;
  /** The name of the role. */
  readonly role: string;
  /** Returns the results of the check `roles.keys`. */
  readonly keys: () => Promise<readonly Result[]>;
}

/** Gives the key policies as somebody could have written them, and the one that it had at last. */
export async function withKeyPolicies({ client, KeyId, role, keys }: Parts): Promise<void> {
  const { Policy = "" } = await client.send(new kms.GetKeyPolicyCommand({ KeyId, PolicyName: "default" }));
  const put = (...Statement: object[]) => {
    const document = JSON.stringify({ Version: "2012-10-17", Statement });
    return client.send(new kms.PutKeyPolicyCommand({ KeyId, PolicyName: "default", Policy: document }));
  };
  const allow = { Effect: "Allow", Action: "kms:*", Resource: "*" };
  const account = "arn:aws:iam::123456789012";
  // An administrator only: no role may use the key.
  await put({ ...allow, Principal: { AWS: `${account}:role/administrator` } });
  const nobody = await keys();
  const failures = nobody.filter(({ status }) => status === "failed");
  assert.ok(failures.length > 5, JSON.stringify(nobody));
  const ofNodes = failures.find(({ seen }) => seen.includes(role));
  assert.match(
    ofNodes?.seen ?? "",
    /does not allow \S+: kms:Decrypt through dynamodb\.eu-west-1\.amazonaws\.com, /,
  );
  assert.match(ofNodes?.remedy ?? "", /allow kms:\* to arn:aws:iam::123456789012:root in the key's policy/);
  // The account, but only through S3.
  const throughS3 = { StringEquals: { "kms:ViaService": `s3.${REGION}.amazonaws.com` } };
  await put({ ...allow, Principal: { AWS: `${account}:root` }, Condition: throughS3 });
  const some = (await keys()).find(({ seen }) => seen.includes(role));
  assert.match(some?.seen ?? "", /through dynamodb/);
  assert.doesNotMatch(some?.seen ?? "", /through s3/);
  // All roles but one.
  const one = { Effect: "Deny", Action: "kms:Decrypt", Resource: "*", Principal: "*" };
  const isNodes = { ArnEquals: { "aws:PrincipalArn": `${account}:role/${role}` } };
  await put({ ...allow, Principal: { AWS: "123456789012" } }, { ...one, Condition: isNodes });
  const denied = (await keys()).filter(({ status }) => status === "failed");
  assert.deepEqual(
    denied.map(({ seen }) => seen.replace(/: kms:.*/, "")),
    [`its policy denies ${role}`],
  );
  assert.match(denied[0]?.remedy ?? "", /take the deny out of the key's policy/);
  await client.send(new kms.PutKeyPolicyCommand({ KeyId, PolicyName: "default", Policy }));
  assert.deepEqual([...new Set((await keys()).map(({ status }) => status))], ["ok"]);
}
