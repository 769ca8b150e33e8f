/**
 * The IAM policies of the templates, and the one that `tidegraph-doctor --policy` prints, are checked by parliament: unknown
 * actions and conditions, resources that an action does not know, ways to more permissions, and the like. IAM Access
 * Analyzer has similar checks, and needs an account. cdk-nag (`npm run synth`) looks at wildcards.
 *
 * `TIDEGRAPH_PYTHON_POLICIES` names a Python that has parliament; `npm test -- --infra` makes one.
 */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { test } from "node:test";
import { policy } from "../doctor/policy.ts";
import type { GraphProps } from "../lib/constructs/graphs.ts";
import { deployed, policiesOf } from "../test/deployed.ts";
import { example, workerEndpoint } from "../test/support.ts";

interface Finding {
  readonly policy: string;
  readonly issue: string;
  readonly detail: string;
}

/** Returns what parliament says of policies. */
function findings(policies: Record<string, unknown>): Finding[] {
  const { TIDEGRAPH_PYTHON_POLICIES: python } = process.env;
  assert.ok(python, "TIDEGRAPH_PYTHON_POLICIES names no Python; `npm test -- --infra` makes one");
  const check = join(import.meta.dirname, "check.py");
  const input = JSON.stringify(policies);
  return JSON.parse(execFileSync(python, ["-W", "ignore", check], { input, encoding: "utf8" }));
}

/**
 * What parliament says and is right as it is: the issue, what its detail contains, and the reason. A test fails if one of
 * them is no longer needed.
 */
const EXPLAINED: readonly (readonly [issue: string, detail: string, reason: string])[] = [
  [
    "PERMISSIONS_MANAGEMENT_ACTIONS",
    "logs:putresourcepolicy",
    "The log of a state machine: AWS says that its role needs this action, which knows no resource.",
  ],
  [
    "PERMISSIONS_MANAGEMENT_ACTIONS",
    '[["iam:passrole"]]',
    "Registering the definition of workers passes their two roles on, to ECS tasks only.",
  ],
  ["CREDENTIALS_EXPOSURE", "ecr:getauthorizationtoken", "ECS fetches the image of a task with it."],
  [
    "RESOURCE_MISMATCH",
    "states:DescribeExecution",
    "parliament's list has only executions of express machines; AWS has those of standard ones too.",
  ],
  [
    "RESOURCE_MISMATCH",
    "states:ListExecutions",
    "parliament's list has only runs of maps; AWS lists the executions of a state machine by its ARN too.",
  ],
  [
    "RESOURCE_MISMATCH",
    "kafka:GetBootstrapBrokers",
    "AWS's reference names no resource; AWS's own policies for Lambda and Firehose name the cluster.",
  ],
  ["UNKNOWN_ACTION", "kafka:DescribeTopic", "It is newer than parliament's list."],
];

const isExplained = ({ issue, detail }: Finding): boolean =>
  EXPLAINED.some(([of, contains]) => of === issue && detail.includes(contains));

/** Returns the policies of a deployment with every process, with graphs besides the first one. */
function policiesWith(graphs: GraphProps[]): Record<string, { Statement: unknown }> {
  const { certificate, accessKeys } = workerEndpoint();
  const { state, service } = example({
    backup: {},
    encryption: {},
    workers: { certificate, accessKeys },
    nodes: { sessionManager: true },
    graphs,
  });
  return policiesOf(deployed({ State: state, Service: service }));
}

const ofOneGraph = policiesWith([]);

test("parliament finds nothing in the policies that is not explained", () => {
  assert.ok(Object.keys(ofOneGraph).length > 25, "the templates have policies");
  const found = findings({ ...ofOneGraph, "tidegraph-doctor --policy": policy() });
  assert.deepEqual(
    found.filter((one) => !isExplained(one)),
    [],
  );
  for (const [issue, contains] of EXPLAINED) {
    assert.ok(
      found.some((one) => one.issue === issue && one.detail.includes(contains)),
      `${issue} ${contains} is no longer found: remove its explanation`,
    );
  }
});

test("parliament finds nothing else in the policies of a deployment with several graphs", () => {
  const policies = policiesWith([{ name: "orders" }]);
  assert.match(JSON.stringify(policies), /tidegraph-orders/, "the topic of the second graph");
  const found = findings(policies);
  assert.deepEqual(
    found.filter((one) => !isExplained(one)),
    [],
  );
  // What deployments with one graph do not have, among it the machine that removes graphs.
  const more = Object.keys(policies).filter((name) => !(name in ofOneGraph));
  assert.deepEqual(more.map((name) => name.replace(/[0-9A-F]{8}$/, "")).toSorted(), [
    "ServiceRebalanceDrainStateMachineDistributedMapPolicy",
    "ServiceRemovalMachineRoleDefaultPolicy",
    "ServiceRemovalRoleDefaultPolicy",
  ]);
});

test("no role may be passed on, or assumed, without its name", () => {
  const { state, service } = example({ backup: {}, encryption: {} });
  const statements = Object.values(policiesOf(deployed({ State: state, Service: service }))).flatMap(
    (document) => (document as { Statement: { Action: string | string[]; Resource: unknown }[] }).Statement,
  );
  const passing = statements.filter(({ Action }) =>
    [Action].flat().some((action) => /^(iam:PassRole|sts:AssumeRole|iam:\*|\*)$/.test(action)),
  );
  assert.ok(passing.length > 0);
  for (const { Resource } of passing) {
    for (const one of [Resource].flat()) assert.match(String(one), /^arn:aws:iam::\d+:role\/\w+$/);
  }
});

test("what is wrong is found", () => {
  const allow = (Action: string, Resource: string, Condition?: object) => ({
    Version: "2012-10-17",
    Statement: [{ Effect: "Allow", Action, Resource, ...(Condition && { Condition }) }],
  });
  const wrong = {
    UNKNOWN_ACTION: allow("s3:GetObjekt", "*"),
    UNKNOWN_PREFIX: allow("s4:GetObject", "*"),
    RESOURCE_MISMATCH: allow("s3:GetObject", "arn:aws:s3:::bucket"),
    INVALID_ARN: allow("s3:GetObject", "bucket/*"),
    UNKNOWN_CONDITION_FOR_ACTION: allow("s3:GetObject", "arn:aws:s3:::bucket/*", {
      StringEquals: { "dynamodb:LeadingKeys": "graph" },
    }),
    PRIVILEGE_ESCALATION: allow("iam:PutUserPolicy", "*"),
    MALFORMED: { Version: "2012-10-17", Statement: [{ Effect: "Allow" }] },
  };
  const found = findings(wrong);
  for (const issue of Object.keys(wrong)) {
    assert.ok(
      found.some((one) => one.policy === issue && one.issue === issue),
      `${issue}: ${JSON.stringify(found.filter(({ policy }) => policy === issue))}`,
    );
  }
});
