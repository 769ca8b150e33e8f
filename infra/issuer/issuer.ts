/**
 * Issues the certificates of a fleet: the logic of a function that runs on a schedule.
 *
 * The state is a secret that only this function reads. It has the authority with its key, the next one, the one before,
 * and which connections are encrypted. For each kind of processes there is a secret with a document: trusted authorities,
 * a certificate, its key, and the mode. Processes read their document every few minutes.
 *
 * A change of the authority takes three steps, each of which begins when all documents have had the step before for
 * `SETTLE_MS`: the next authority is trusted → it signs, and the one before is trusted still → the one before is removed.
 * A change of the mode goes one step at a time, with the same pause: `accept`, `prefer`, `require`. Two processes that are
 * one step apart accept each other, if both have certificates. So a step up waits until each process was started with
 * them (`processes.ts`), and a fleet that has machines without them begins with `accept`.
 *
 * Each run may die anywhere and is repeated by the next one: the state is written before documents, and documents are
 * compared with the state. Of two runs at once one fails: a version of the state is written under an id that is made of
 * the id of the version before.
 */
import { createHash } from "node:crypto";
import {
  GetSecretValueCommand,
  PutSecretValueCommand,
  ResourceNotFoundException,
  type SecretsManagerClient,
} from "@aws-sdk/client-secrets-manager";
import {
  isFresh,
  isOldAuthority,
  issue,
  KINDS,
  type Kind,
  makeAuthority,
  NODE_NAME,
  type Pair,
} from "./certificates.ts";

/** The least time between two steps. Processes know the step before by then. */
export const SETTLE_MS = 24 * 3_600_000;

/** Which connections are encrypted (`TlsMode` of `engine-core/remote`). */
const MODES = ["accept", "prefer", "require"] as const;
export type Mode = (typeof MODES)[number];

/** Checks the name of a mode. */
export function checkedMode(name: string): Mode {
  const mode = MODES.find((one) => one === name);
  if (mode === undefined)
    throw new Error(`the mode is ${JSON.stringify(name)}, and has to be ${MODES.join(", ")}`);
  return mode;
}

/** Where the secrets are, and what the deployment wants. */
export interface Settings {
  /** Name of the deployment, for the subjects of certificates. */
  readonly fleet: string;
  /** The secret with the state. */
  readonly state: string;
  /** The secret of each kind of processes. */
  readonly documents: Readonly<Record<Kind, string>>;
  /** The mode to go to. */
  readonly mode: Mode;
}

export interface Surroundings {
  readonly client: SecretsManagerClient;
  readonly settings: Settings;
  readonly now: Date;
  /** Looks for machines that were started without certificates. */
  readonly machines: () => Promise<readonly string[]>;
  /** Looks for all processes that were; `undefined` at a deployment, which may be about to change them. */
  readonly processes: (() => Promise<readonly string[]>) | undefined;
}

/** Maximum number of processes that a report names. */
const NAMED = 10;

/** What a run did, for its log. It has no secret. */
export interface Report {
  readonly mode: Mode;
  readonly authorities: number;
  readonly issued: readonly Kind[];
  readonly changes: readonly string[];
  /**
   * What the next step up of the mode waits for: some of the processes that were started without certificates. Each run
   * of the schedule looks for them, also while the mode before has not settled.
   */
  readonly waitsFor: readonly string[];
}

/** What a run is about to report. */
interface Progress {
  readonly changes: string[];
  readonly waitsFor: string[];
  /** Why it is not known which processes have certificates. */
  failure?: unknown;
}

/** The state. Times are when all documents had it. */
interface State {
  readonly current: Pair;
  readonly next?: Pair & { readonly trustedSince?: string };
  readonly previous?: { readonly certificate: string; readonly unusedSince?: string };
  readonly mode: Mode;
  readonly modeSince?: string;
}

/** What a process reads (`engine-core/fleet/src/access/secret.rs`). */
interface Document extends Pair {
  readonly authorities: string;
  readonly serverName: string;
  readonly mode: Mode;
}

/** Carries out what is due. `replaces`: whether to begin a change of the authority now. */
export async function run(surroundings: Surroundings, replaces = false): Promise<Report> {
  const { client, settings, now } = surroundings;
  const found = await read<Partial<State>>(client, settings.state);
  const progress: Progress = { changes: [], waitsFor: [] };
  const { changes, waitsFor } = progress;
  const state = await advance(known(found?.value), surroundings, replaces, progress);
  let version = found?.version;
  if (changes.length > 0) version = await writeState(client, settings.state, state, version);
  const issued: Kind[] = [];
  for (const kind of KINDS) if (await renew(client, settings, kind, state, now)) issued.push(kind);
  const noted = note(state, now);
  if (noted !== state) await writeState(client, settings.state, noted, version);
  // Certificates are renewed in any case.
  if (progress.failure !== undefined) throw progress.failure;
  return { mode: state.mode, authorities: authorities(state).length, issued, changes, waitsFor };
}

/** Returns a state that was written; `undefined` if there is none, or somebody emptied it to begin again. */
function known(state: Partial<State> | undefined): State | undefined {
  return state?.current === undefined || state.mode === undefined ? undefined : (state as State);
}

/** Returns the state after the steps that are due. */
async function advance(
  state: State | undefined,
  surroundings: Surroundings,
  replaces: boolean,
  progress: Progress,
): Promise<State> {
  const { settings, now } = surroundings;
  const { fleet, mode } = settings;
  const { changes } = progress;
  if (state === undefined) {
    // Without machines, nobody has to change.
    const first = (await surroundings.machines()).length > 0 ? "accept" : mode;
    changes.push("made the first authority", `connections: ${first}`);
    return { current: await makeAuthority(fleet, now), mode: first };
  }
  const after: { -readonly [K in keyof State]: State[K] } = { ...state };
  const { current, next, previous } = state;
  if (previous !== undefined) {
    if (hasSettled(previous.unusedSince, now)) {
      changes.push("removed the authority before");
      delete after.previous;
    }
  } else if (next !== undefined) {
    if (hasSettled(next.trustedSince, now)) {
      changes.push("the next authority signs");
      after.current = { certificate: next.certificate, key: next.key };
      after.previous = { certificate: current.certificate };
      delete after.next;
    }
  } else if (replaces || isOldAuthority(current.certificate, now)) {
    changes.push("made the next authority");
    after.next = await makeAuthority(fleet, now);
  }
  const at = MODES.indexOf(state.mode);
  const step = Math.sign(MODES.indexOf(mode) - at);
  if (step === 0) return after;
  const isDue = hasSettled(state.modeSince, now);
  if (step < 0 ? isDue : (await allHaveCertificates(surroundings, progress)) && isDue) {
    after.mode = MODES[at + step] ?? mode;
    delete after.modeSince;
    changes.push(`connections: ${after.mode}`);
  }
  return after;
}

/** Returns whether all processes were started with certificates, and notes those that were not. */
async function allHaveCertificates({ processes }: Surroundings, progress: Progress): Promise<boolean> {
  if (processes === undefined) {
    progress.waitsFor.push("the next run of the schedule");
    return false;
  }
  try {
    const without = await processes();
    progress.waitsFor.push(...without.slice(0, NAMED));
    return without.length === 0;
  } catch (error) {
    progress.failure = error;
    return false;
  }
}

/** Notes that all documents have the state. Returns the same object if that was noted before. */
function note(state: State, now: Date): State {
  const since = now.toISOString();
  const { next, previous, modeSince } = state;
  if (
    modeSince !== undefined &&
    (next === undefined || next.trustedSince !== undefined) &&
    (previous === undefined || previous.unusedSince !== undefined)
  ) {
    return state;
  }
  return {
    ...state,
    modeSince: modeSince ?? since,
    ...(next && { next: { ...next, trustedSince: next.trustedSince ?? since } }),
    ...(previous && { previous: { ...previous, unusedSince: previous.unusedSince ?? since } }),
  };
}

function hasSettled(since: string | undefined, now: Date): boolean {
  return since !== undefined && now.getTime() >= Date.parse(since) + SETTLE_MS;
}

/** Returns the trusted authorities: the one that signs first. */
function authorities({ current, next, previous }: State): string[] {
  return [current, next, previous].flatMap((one) => (one === undefined ? [] : [one.certificate]));
}

/** Writes the document of a kind, unless it is what it should be. Returns whether it was written. */
async function renew(
  client: SecretsManagerClient,
  { fleet, documents }: Settings,
  kind: Kind,
  state: State,
  now: Date,
): Promise<boolean> {
  const SecretId = documents[kind];
  const found = await readDocument(client, SecretId);
  const wanted = { authorities: authorities(state).join("\n"), serverName: NODE_NAME, mode: state.mode };
  const isSame =
    found?.key !== undefined &&
    found.certificate !== undefined &&
    found.authorities === wanted.authorities &&
    found.serverName === wanted.serverName &&
    found.mode === wanted.mode &&
    (await isFresh(found.certificate, state.current.certificate, now));
  if (isSame) return false;
  const document: Document = { ...wanted, ...(await issue(kind, fleet, state.current, now)) };
  await client.send(new PutSecretValueCommand({ SecretId, SecretString: JSON.stringify(document) }));
  return true;
}

/** Reads a document. One that is not JSON counts as none: a new one is made of the state, so nothing is lost. */
async function readDocument(
  client: SecretsManagerClient,
  SecretId: string,
): Promise<Partial<Document> | undefined> {
  try {
    return (await read<Partial<Document>>(client, SecretId))?.value;
  } catch (error) {
    if (error instanceof NoJson) return undefined;
    throw error;
  }
}

/** Writes the state after a version of it, and returns the id of the new one. Fails if another run did it first. */
async function writeState(
  client: SecretsManagerClient,
  SecretId: string,
  state: State,
  before: string | undefined,
): Promise<string> {
  const hash = createHash("sha256")
    .update(before ?? `the first version of ${SecretId}`)
    .digest("hex");
  const ClientRequestToken = hash.slice(0, 32);
  const put = { SecretId, ClientRequestToken, SecretString: JSON.stringify(state) };
  // Secrets Manager refuses a second content under the same id.
  const { VersionId = ClientRequestToken } = await client.send(new PutSecretValueCommand(put));
  return VersionId;
}

/** Reads a secret; `undefined` if nothing was written to it yet. */
async function read<T>(
  client: SecretsManagerClient,
  SecretId: string,
): Promise<{ value: T; version: string } | undefined> {
  try {
    const { SecretString, VersionId = "" } = await client.send(new GetSecretValueCommand({ SecretId }));
    if (SecretString === undefined || SecretString === "") return undefined;
    return { value: parse(SecretString, SecretId), version: VersionId };
  } catch (error) {
    if (error instanceof ResourceNotFoundException) return undefined;
    throw error;
  }
}

/** The content of a secret is not what this function writes. */
class NoJson extends Error {}

function parse<T>(text: string, secret: string): T {
  try {
    return JSON.parse(text);
  } catch {
    // The error of the parser quotes the text.
    throw new NoJson(`${secret} is not JSON: somebody else wrote to it`);
  }
}
