/**
 * The Lambda function that issues the certificates of a fleet. EventBridge calls it on a schedule, CloudFormation at a
 * deployment, and a person with `{"replaceAuthority": true}`.
 */
import { AutoScalingClient } from "@aws-sdk/client-auto-scaling";
import { CloudFormationClient, DescribeStacksCommand } from "@aws-sdk/client-cloudformation";
import { EC2Client } from "@aws-sdk/client-ec2";
import { ECSClient } from "@aws-sdk/client-ecs";
import { LambdaClient } from "@aws-sdk/client-lambda";
import { ResourceExistsException, SecretsManagerClient } from "@aws-sdk/client-secrets-manager";
import { answer, type Request } from "../teardown/answer.ts";
import { permitted } from "../teardown/permitted.ts";
import { checkedMode, type Report, run, type Settings, type Surroundings } from "./issuer.ts";
import { type Callers, callersWithout, machinesWithout, type ProcessClients } from "./processes.ts";

/** What calls the function: the fields of CloudFormation's request are there together or not at all. */
type Event = Partial<Request> & {
  readonly replaceAuthority?: boolean;
  /** Where callers of nodes run, which the schedule says. */
  readonly callers?: Callers;
};

const RETRIES = { maxAttempts: 10 };
const client = new SecretsManagerClient(RETRIES);
const stacks = new CloudFormationClient(RETRIES);
const clients: ProcessClients = {
  asg: new AutoScalingClient(RETRIES),
  ec2: new EC2Client(RETRIES),
  ecs: new ECSClient(RETRIES),
  lambda: new LambdaClient(RETRIES),
};

/** Carries out what is due, and logs it. */
export const handler = async (event: Event): Promise<Report | undefined> => {
  if (event.ResponseURL === undefined) return await work(event, false);
  const request = event as Request;
  let failure: string | undefined;
  try {
    // There is nothing to undo when the resource is deleted: the secrets are deleted with the stack.
    if (request.RequestType !== "Delete") await permitted(async () => work({}, await isCreated(request)));
  } catch (error) {
    failure = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
    console.error(failure);
  }
  await answer(request, request.PhysicalResourceId ?? "certificates", failure);
  return undefined;
};

/** Returns whether the stack is being created, so that no process runs yet. If it is not known, machines are looked at. */
async function isCreated({ StackId: StackName }: Request): Promise<boolean> {
  try {
    const { Stacks: [stack] = [] } = await stacks.send(new DescribeStacksCommand({ StackName }));
    return /^(CREATE|REVIEW)_IN_PROGRESS$/.test(stack?.StackStatus ?? "");
  } catch (error) {
    console.error(error);
    return false;
  }
}

async function work({ replaceAuthority: replaces = false, callers }: Event, isNew: boolean): Promise<Report> {
  const known = settings();
  const { documents } = known;
  const machines = async () =>
    isNew ? [] : await machinesWithout(clients, variable("GROUP"), documents.nodes);
  const surroundings: Surroundings = {
    ...{ client, settings: known, now: new Date(), machines },
    processes:
      callers &&
      (async () => [...(await machines()), ...(await callersWithout(clients, callers, documents))]),
  };
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
