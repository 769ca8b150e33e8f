/** Releases: of the nodes, of this command, of the query function, and the last upgrade (docs/upgrade.md). */
import { GetAliasCommand } from "@aws-sdk/client-lambda";
import RELEASES from "../../../contracts/releases.json" with { type: "json" };
import { absent, type Check, failed, ok, some, unknown, warning } from "../finding.ts";
import type { Node } from "../map-items.ts";
import { isFinding, mapOf } from "./map.ts";

/** The key of the deployment encrypts the table. */
const QUERY = ["dynamodb:Query", "kms:Decrypt"];

/** Returns the line of a release: `0.2` of `0.2.1`. */
const lineOf = (release: string): string => release.split(".").slice(0, 2).join(".");

/** Whether processes of both lines work together: the same line, or one follows the other. */
export function together(one: string, other: string): boolean {
  if (one === other) return true;
  const lines: readonly { line: string; follows: string | null }[] = RELEASES.lines;
  return lines.some(
    ({ line, follows }) => (line === one && follows === other) || (line === other && follows === one),
  );
}

/** Returns the numbers of nodes by release, in words. */
function counted(nodes: readonly Node[]): string {
  const counts = new Map<string, number>();
  for (const { release = "none stated" } of nodes) counts.set(release, (counts.get(release) ?? 0) + 1);
  return [...counts].map(([release, count]) => `${release} on ${count} nodes`).join(", ");
}

/** Returns what a line writes, in words. */
function formatsOf(line: string): string {
  const found = RELEASES.lines.find((one) => one.line === line);
  if (found === undefined) return `formats of line ${line} are unknown here`;
  const { line: _, follows: __, ...formats } = found;
  return Object.entries(formats)
    .map(([name, version]) => `${name} ${version}`)
    .join(", ");
}

const nodes: Check = {
  id: "release.nodes",
  isOfGraph: true,
  actions: QUERY,
  async look(context) {
    const map = await mapOf(context);
    if (isFinding(map)) return map;
    if (map.nodes.length === 0) return unknown("no node is in the map");
    const releases = [...new Set(map.nodes.flatMap(({ release }) => release ?? []))];
    const silent = map.nodes.filter(({ release }) => release === undefined).map(({ id }) => id);
    const seen = counted(map.nodes);
    const rest = {
      wanted: "one release",
      remedy: "start the state machine of the output UpgradeMachine (docs/upgrade.md)",
    };
    const [first = "", ...others] = releases;
    if (others.some((other) => !together(lineOf(first), lineOf(other)))) return failed(seen, rest);
    if (others.length > 0 || silent.length > 0) {
      const also = silent.length > 0 ? `; ${some(silent)} state none, so they are older than 0.1` : "";
      return warning(`${seen}${also}`, rest);
    }
    return ok(`${seen}: ${formatsOf(lineOf(first))}`);
  },
};

const command: Check = {
  id: "release.command",
  isOfGraph: true,
  actions: QUERY,
  async look(context) {
    const map = await mapOf(context);
    if (isFinding(map)) return map;
    const releases = [...new Set(map.nodes.flatMap(({ release }) => release ?? []))];
    if (releases.length === 0) return unknown("no node states a release");
    const { release } = context;
    const others = releases.filter((one) => one !== release);
    if (others.length === 0) return ok(release);
    const rest = {
      wanted: `the release of the nodes, ${releases.join(" or ")}`,
      remedy: "install the package @tidegraph/cdk of that release, and look again",
    };
    const seen = `this command is ${release}`;
    const apart = others.some((one) => !together(lineOf(one), lineOf(release)));
    return apart ? failed(`${seen}, and may misread what the nodes write`, rest) : warning(seen, rest);
  },
};

const upgrade: Check = {
  id: "release.upgrade",
  isOfGraph: true,
  actions: QUERY,
  async look(context) {
    const map = await mapOf(context);
    if (isFinding(map)) return map;
    const { upgrade } = map;
    if (upgrade === undefined) return ok("none yet");
    const { release, state, holder, reason } = upgrade;
    if (state === "finished") return ok(`to ${release}, finished`);
    if (state === "running") {
      return warning(`to ${release}, running in ${holder}`, {
        wanted: "finished",
        remedy: "wait; nodes of both releases serve meanwhile",
      });
    }
    return failed(`to ${release}, stopped: ${reason}`, {
      wanted: "finished",
      remedy: "docs/upgrade.md#when-it-stops says what the reason means; then start UpgradeMachine again",
    });
  },
};

/** Returns what stands behind the last colon of an ARN. */
const lastOf = (arn: string): string => arn.slice(arn.lastIndexOf(":") + 1);

const callers: Check = {
  id: "release.function",
  actions: ["lambda:GetAlias"],
  async look({ clients, deployment }) {
    const version = deployment.one("AWS::Lambda::Version");
    const alias = deployment.one("AWS::Lambda::Alias");
    const fn = deployment.referred(version?.properties.FunctionName);
    if (version === undefined || alias === undefined || fn === undefined)
      return absent("there is no alias of the query function");
    const [Name, deployed] = [lastOf(alias.id), lastOf(version.id)];
    const { FunctionVersion = "", RoutingConfig } = await clients.lambda.send(
      new GetAliasCommand({ FunctionName: fn.id, Name }),
    );
    const shares = Object.entries(RoutingConfig?.AdditionalVersionWeights ?? {});
    const also = shares.map(([other, weight]) => `, with ${Math.round(weight * 100)} % at ${other}`).join("");
    const seen = `${Name} is at version ${FunctionVersion}${also}`;
    if (FunctionVersion === deployed && shares.length === 0) return ok(seen, fn.id);
    return warning(seen, {
      wanted: `all queries at version ${deployed}, which was deployed last`,
      remedy:
        "start the state machine of the output UpgradeMachine, or wait for its end (docs/upgrade.md#on-aws)",
      subject: fn.id,
    });
  },
};

export const RELEASE: readonly Check[] = [nodes, command, upgrade, callers];
