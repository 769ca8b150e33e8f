/**
 * The secrets of a fleet: one that its processes show each other, which is rotated (`Rotation`), and one that clients
 * show to workers. AWS generates both, and no other place stores them.
 */
import type { IKey } from "aws-cdk-lib/aws-kms";
import { Key } from "aws-cdk-lib/aws-kms";
import { Secret } from "aws-cdk-lib/aws-secretsmanager";
import { Construct } from "constructs";
import { explain } from "../nag.ts";

export class Secrets extends Construct {
  /** Nodes, workers and the query function show this secret to each other. */
  readonly fleet: Secret;
  /** Clients show this secret to workers, as `Authorization: Bearer …`. */
  readonly client: Secret;

  constructor(scope: Construct, id: string, key: IKey) {
    super(scope, id);
    // Imported by ARN, so that CDK does not change the key's policy, which belongs to the other stack.
    const encryptionKey = Key.fromKeyArn(this, "Key", key.keyArn);
    const make = (name: string, description: string): Secret => {
      const secret = new Secret(this, name, {
        description,
        encryptionKey,
        generateSecretString: { excludePunctuation: true, passwordLength: 48 },
      });
      return secret;
    };
    this.fleet = make("Fleet", "Secret that processes of the fleet show each other");
    this.client = make("Client", "Secret that clients of workers send");
    explain(
      this.client,
      "SMG4",
      "People give this secret to their clients, which do not fetch a new one: changed by hand, when there is a reason.",
    );
  }
}
