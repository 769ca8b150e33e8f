/** The IAM policy that all checks need. */
import { CHECKS } from "./checks/index.ts";

interface Statement {
  readonly Sid: string;
  readonly Effect: "Allow";
  readonly Action: readonly string[];
  readonly Resource: string;
  readonly Condition?: object;
}

/** Actions that get statements of their own: they would allow more than a look on all resources. */
const NARROW: readonly Statement[] = [
  {
    Sid: "ReadMap",
    Effect: "Allow",
    Action: ["dynamodb:Query"],
    Resource: "arn:aws:dynamodb:*:*:table/*-map",
  },
  {
    Sid: "DecryptMap",
    Effect: "Allow",
    Action: ["kms:Decrypt"],
    Resource: "*",
    Condition: { StringLike: { "kms:ViaService": "dynamodb.*.amazonaws.com" } },
  },
  {
    Sid: "AskStatus",
    Effect: "Allow",
    Action: ["execute-api:Invoke"],
    Resource: "arn:aws:execute-api:*:*:*/graph/GET/status",
  },
];

/** Returns the policy. All other actions read settings, and most of them know no resources. */
export function policy(): { Version: string; Statement: readonly Statement[] } {
  const narrow = new Set(NARROW.flatMap(({ Action }) => Action));
  const actions = new Set(CHECKS.flatMap((check) => check.actions));
  const Action = [...actions].filter((one) => !narrow.has(one)).toSorted();
  const look: Statement = { Sid: "Look", Effect: "Allow", Action, Resource: "*" };
  return { Version: "2012-10-17", Statement: [look, ...NARROW] };
}
