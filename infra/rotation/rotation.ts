/**
 * Rotates the secret of the fleet: the logic of the function that Secrets Manager calls, once for each of its four steps.
 *
 * Processes read the secret themselves, its current and its previous version, and a process that is shown a secret that
 * it does not know reads it again. So a new version needs nothing but to become the current one.
 *
 * Each step may be repeated, and finds what an earlier attempt left: Secrets Manager starts a rotation that died half-way
 * again, with the same or another id of the new version. Until the last step the processes see nothing of it.
 */
import { randomBytes } from "node:crypto";
import {
  DescribeSecretCommand,
  GetSecretValueCommand,
  PutSecretValueCommand,
  ResourceNotFoundException,
  type SecretsManagerClient,
  UpdateSecretVersionStageCommand,
} from "@aws-sdk/client-secrets-manager";

/** What Secrets Manager sends. */
export interface Event {
  readonly Step: string;
  /** The ARN of the secret. */
  readonly SecretId: string;
  /** The id of the new version. */
  readonly ClientRequestToken: string;
}

/** Random bytes of a secret: 48 characters of base64. */
const BYTES = 36;
/** What nodes and workers require (`engine-core/fleet/src/access/secret.rs`). */
const LEAST_CHARACTERS = 16;

/** Carries out one step. */
export async function rotate(event: Event, client: SecretsManagerClient): Promise<void> {
  const { Step, SecretId, ClientRequestToken: version } = event;
  const { VersionIdsToStages: stages = {} } = await client.send(new DescribeSecretCommand({ SecretId }));
  const isCurrent = stages[version]?.includes("AWSCURRENT") ?? false;
  switch (Step) {
    case "createSecret":
      if (!isCurrent) await create(client, SecretId, version);
      return;
    case "setSecret":
      // No other place has the secret.
      return;
    case "testSecret":
      return await check(client, SecretId, version);
    case "finishSecret": {
      if (isCurrent) return;
      await check(client, SecretId, version);
      const current = Object.keys(stages).find((id) => stages[id]?.includes("AWSCURRENT"));
      const move = { VersionStage: "AWSCURRENT", MoveToVersionId: version };
      await client.send(
        new UpdateSecretVersionStageCommand({
          SecretId,
          ...move,
          ...(current !== undefined && { RemoveFromVersionId: current }),
        }),
      );
      return;
    }
    default:
      throw new Error(`${JSON.stringify(Step)} is not a step of a rotation`);
  }
}

/** Writes the new version, unless an earlier attempt did. */
async function create(client: SecretsManagerClient, SecretId: string, version: string): Promise<void> {
  if ((await value(client, SecretId, version)) !== undefined) return;
  await client.send(
    new PutSecretValueCommand({
      SecretId,
      ClientRequestToken: version,
      SecretString: randomBytes(BYTES).toString("base64url"),
      VersionStages: ["AWSPENDING"],
    }),
  );
}

/** Fails if processes would refuse the version. The error does not contain it. */
async function check(client: SecretsManagerClient, SecretId: string, version: string): Promise<void> {
  const text = await value(client, SecretId, version);
  if (text === undefined)
    throw new Error(`${SecretId} has no version ${version}: its rotation has not begun`);
  if (text.trim().length < LEAST_CHARACTERS) {
    throw new Error(`version ${version} of ${SecretId} has fewer than ${LEAST_CHARACTERS} characters`);
  }
}

/** Returns the text of a version; `undefined` if there is no such version, or it is empty. */
async function value(
  client: SecretsManagerClient,
  SecretId: string,
  VersionId: string,
): Promise<string | undefined> {
  try {
    return (await client.send(new GetSecretValueCommand({ SecretId, VersionId }))).SecretString;
  } catch (error) {
    if (error instanceof ResourceNotFoundException) return undefined;
    throw error;
  }
}
