/**
 * Asks MSK for the addresses of brokers, which CloudFormation does not know, and answers CloudFormation with them: the
 * logic of the custom resource `Brokers`. Deleting it does nothing.
 */
import { GetBootstrapBrokersCommand, type KafkaClient } from "@aws-sdk/client-kafka";
import { answer, type Request } from "../teardown/answer.ts";
import { A_MINUTE, type Patience, permitted } from "../teardown/permitted.ts";

/** What CloudFormation sends. The physical id is the ARN of the cluster. */
export interface Event extends Request {
  readonly ResourceProperties: { readonly ClusterArn: string };
}

/** Handles one request of CloudFormation. Answers it whatever happens. */
export async function handle(
  event: Event,
  client: KafkaClient,
  patience: Patience = A_MINUTE,
): Promise<void> {
  const { ClusterArn } = event.ResourceProperties;
  if (event.RequestType === "Delete") {
    await answer(event, event.PhysicalResourceId ?? ClusterArn, undefined);
    return;
  }
  try {
    const Addresses = await permitted(() => ask(client, ClusterArn), patience);
    await answer(event, ClusterArn, undefined, { Addresses });
  } catch (error) {
    const failure = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
    console.error(failure);
    await answer(event, ClusterArn, failure);
  }
}

/** Returns `host:port` of some brokers for clients with IAM, separated by commas. */
async function ask(client: KafkaClient, ClusterArn: string): Promise<string> {
  const { BootstrapBrokerStringSaslIam: addresses } = await client.send(
    new GetBootstrapBrokersCommand({ ClusterArn }),
  );
  if (!addresses) throw new Error(`MSK names no addresses of ${ClusterArn} for clients with IAM`);
  return addresses;
}
