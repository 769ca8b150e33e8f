/**
 * Keeps the definitions that the workers' service runs apart from those that deployments make. The service names a family
 * and no revision, so whatever changes the service gets the newest revision of this family. Only an upgrade registers one
 * there: a copy of the definition that was deployed last, which is of another family.
 *
 * - The custom resource `WorkerDefinition` registers the first copy, and deregisters all of them when it is deleted.
 * - The machine that upgrades registers a copy before it replaces workers (`publish`). If the new workers fail, it gives the
 *   service the revision back that it had, and deregisters what is newer (`withdraw`).
 */
import {
  DeregisterTaskDefinitionCommand,
  DescribeServicesCommand,
  DescribeTaskDefinitionCommand,
  type ECSClient,
  paginateListServices,
  paginateListTaskDefinitions,
  RegisterTaskDefinitionCommand,
} from "@aws-sdk/client-ecs";
import { answer, type Request } from "../teardown/answer.ts";
import { A_MINUTE, type Patience, permitted } from "../teardown/permitted.ts";

/** The service, by its cluster and the family that it names. */
export interface OfService {
  readonly Cluster: string;
  readonly Family: string;
}

/** What CloudFormation sends. The physical id is the family. */
export interface Event extends Request {
  /** `Definition` is the ARN of the definition that was deployed. */
  readonly ResourceProperties: OfService & { readonly Definition: string };
}

/** What the machine that upgrades sends. */
export type Step =
  | (OfService & { readonly step: "publish"; readonly Definition: string })
  | (OfService & { readonly step: "withdraw" });

/** Handles one request of CloudFormation. Answers it whatever happens. */
export async function handle(event: Event, ecs: ECSClient, patience: Patience = A_MINUTE): Promise<void> {
  const { ResourceProperties: properties } = event;
  try {
    // An update may name another family, which has no revision yet.
    if (event.RequestType === "Delete") await permitted(() => deregisterAll(ecs, properties), patience);
    else await permitted(() => begin(ecs, properties), patience);
    await answer(event, properties.Family, undefined);
  } catch (error) {
    const said = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
    const failure = `${said} (definition ${properties.Definition}, family ${properties.Family})`;
    console.error(failure);
    await answer(event, properties.Family, failure);
  }
}

/** ARNs of revisions. */
export interface Revisions {
  /** The newest one. */
  readonly task: string;
  /** The one that the service had when the newest one was published. */
  readonly before?: string;
}

/** Carries out a step of the machine that upgrades. */
export async function step(event: Step, ecs: ECSClient): Promise<Revisions> {
  switch (event.step) {
    case "publish": {
      const before = await theRunning(ecs, event);
      return { task: await publish(ecs, event, event.Definition), before };
    }
    case "withdraw":
      return { task: await withdraw(ecs, event) };
    default:
      throw new Error(`step is ${JSON.stringify((event as Step).step)}, and has to be publish or withdraw`);
  }
}

/** Registers the first copy. A service that is there already keeps what it runs. */
export async function begin(ecs: ECSClient, service: Event["ResourceProperties"]): Promise<void> {
  if ((await running(ecs, service)) === undefined) await publish(ecs, service, service.Definition);
}

/** Registers a copy of a definition in the family of the service, and returns its ARN. */
async function publish(ecs: ECSClient, { Family: family }: OfService, definition: string): Promise<string> {
  const asked = new DescribeTaskDefinitionCommand({ taskDefinition: definition, include: ["TAGS"] });
  const { taskDefinition, tags = [] } = await ecs.send(asked);
  if (taskDefinition === undefined) throw new Error(`there is no definition ${definition}`);
  const {
    taskDefinitionArn: _arn,
    revision: _revision,
    status: _status,
    requiresAttributes: _attributes,
    compatibilities: _compatibilities,
    registeredAt: _registeredAt,
    registeredBy: _registeredBy,
    deregisteredAt: _deregisteredAt,
    ...copied
  } = taskDefinition;
  // Those that begin with `aws:` are CloudFormation's own.
  const ours = tags.filter(({ key = "" }) => !key.startsWith("aws:"));
  const { taskDefinition: made } = await ecs.send(
    new RegisterTaskDefinitionCommand({
      ...copied,
      family,
      containerDefinitions: copied.containerDefinitions ?? [],
      ...(ours.length > 0 && { tags: ours }),
    }),
  );
  const task = made?.taskDefinitionArn;
  if (task === undefined) throw new Error(`ECS names no copy of ${definition}`);
  console.log(JSON.stringify({ published: task, copyOf: definition }));
  return task;
}

/** Deregisters what is newer than the revision of the service, and returns the ARN of that. */
async function withdraw(ecs: ECSClient, service: OfService): Promise<string> {
  const task = await theRunning(ecs, service);
  const newer = (await revisions(ecs, service.Family)).filter((one) => revision(one) > revision(task));
  await deregister(ecs, newer);
  return task;
}

async function deregisterAll(ecs: ECSClient, { Family }: OfService): Promise<void> {
  await deregister(ecs, await revisions(ecs, Family));
}

async function deregister(ecs: ECSClient, tasks: readonly string[]): Promise<void> {
  for (const taskDefinition of tasks) {
    await ecs.send(new DeregisterTaskDefinitionCommand({ taskDefinition }));
    console.log(JSON.stringify({ withdrawn: taskDefinition }));
  }
}

/** Returns the definition that a service of the cluster names, if it is of the family. */
async function running(ecs: ECSClient, { Cluster: cluster, Family }: OfService): Promise<string | undefined> {
  // A page has at most ten services, and so has a description.
  for await (const { serviceArns: services = [] } of paginateListServices(
    { client: ecs, pageSize: 10 },
    { cluster },
  )) {
    if (services.length === 0) continue;
    const described = await ecs.send(new DescribeServicesCommand({ cluster, services }));
    for (const { status, taskDefinition } of described.services ?? [])
      if (status === "ACTIVE" && taskDefinition && family(taskDefinition) === Family) return taskDefinition;
  }
  return undefined;
}

async function theRunning(ecs: ECSClient, service: OfService): Promise<string> {
  const task = await running(ecs, service);
  if (task === undefined)
    throw new Error(`no service of ${service.Cluster} has a definition of ${service.Family}`);
  return task;
}

/** Returns the ARNs of the active revisions of a family. */
async function revisions(ecs: ECSClient, familyPrefix: string): Promise<string[]> {
  const found: string[] = [];
  const asked = { familyPrefix, status: "ACTIVE" } as const;
  for await (const { taskDefinitionArns = [] } of paginateListTaskDefinitions({ client: ecs }, asked))
    found.push(...taskDefinitionArns.filter((arn) => family(arn) === familyPrefix));
  return found;
}

/** The name of the family in an ARN such as `arn:aws:ecs:eu-west-1:123456789012:task-definition/people-workers:7`. */
function family(arn: string): string | undefined {
  return /\/([^/:]+):\d+$/.exec(arn)?.[1];
}

function revision(arn: string): number {
  return Number(/:(\d+)$/.exec(arn)?.[1]);
}
