/**
 * The Lambda function that issues the certificates of a fleet. EventBridge calls it on a schedule, CloudFormation at a
 * deployment, and a person with `{"replaceAuthority": true}`.
 */
import { ResourceExistsException, SecretsManagerClient } from "@aws-sdk/client-secrets-manager";
import { answer, type Request } from "../teardown/answer.ts";
import { permitted } from "../teardown/permitted.ts";
import { checkedMode, type Report, run, type Settings } from "./issuer.ts";

/** What calls the function: the fields of CloudFormation's request are there together or not at all. */
type Event = Partial<Request> & { readonly replaceAuthority?: boolean };

const client = new SecretsManagerClient({ maxAttempts: 10 });

/** Carries out what is due, and logs it. */
export const handler = async (event: Event): Promise<Report | undefined> => {
  if (event.ResponseURL === undefined) return await work(event.replaceAuthority === true);
  const request = event as Request;
  let failure: string | undefined;
  try {
    // There is nothing to undo when the resource is deleted: the secrets are deleted with the stack.
    if (request.RequestType !== "Delete") await permitted(() => work(false));
  } catch (error) {
    failure = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
    console.error(failure);
  }
  await answer(request, request.PhysicalResourceId ?? "certificates", failure);
  return undefined;
};

async function work(replaces: boolean): Promise<Report> {
  const surroundings = { client, settings: settings(), now: new Date() };
  const report = await run(surroundings, replaces).catch((error) => {
    // Another run wrote the state at the same time. What it left to do is done now.
    if (error instanceof ResourceExistsException) return run(surroundings, replaces);
    throw error;
  });
  console.log(JSON.stringify(report));
  return report;
}

function settings(): Settings {
  return {
    fleet: variable("FLEET"),
    state: variable("STATE_SECRET"),
    documents: {
      nodes: variable("NODES_SECRET"),
      workers: variable("WORKERS_SECRET"),
      functions: variable("FUNCTIONS_SECRET"),
    },
    mode: checkedMode(variable("MODE")),
  };
}

function variable(name: string): string {
  const value = process.env[name];
  if (value === undefined || value === "") throw new Error(`the environment variable ${name} is not set`);
  return value;
}
