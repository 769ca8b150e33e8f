/**
 * The doctor's list of what each role needs, `infra/doctor/needs.ts`, is what the templates give the roles: nothing is
 * left out, everything has a name, and each request that the doctor asks IAM about is one that the policies allow.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Stack } from "aws-cdk-lib";
import { Template } from "aws-cdk-lib/assertions";
import * as s3 from "aws-cdk-lib/aws-s3";
import type { Deployment } from "../doctor/deployment.ts";
import { applying } from "../doctor/key-policy.ts";
import { type Conditions, rolesOf, sampleOf } from "../doctor/needs.ts";
import { ServiceStack } from "../lib/stacks/service-stack.ts";
import { StateStack } from "../lib/stacks/state-stack.ts";
import { deployed, policiesOf } from "./deployed.ts";
import { type Document, evaluate, type Policy } from "./evaluation.ts";
import { example, only, placeholders, testApp, workerEndpoint } from "./support.ts";

/** Everything that has roles, or adds to them. */
function everything(): Deployment {
  const elsewhere = new Stack();
  const { certificate, accessKeys } = workerEndpoint();
  const { state, service } = example({
    backup: {},
    encryption: {},
    restoreFrom: s3.Bucket.fromBucketName(elsewhere, "Restore", "backups-of-another-graph"),
    loadFrom: [s3.Bucket.fromBucketName(elsewhere, "Load", "files-to-load")],
    nodes: { most: 6, sessionManager: true },
    traces: { agentImage: `registry.example/agent@sha256:${"a".repeat(64)}` },
    workers: { certificate, accessKeys, most: 4 },
    graphs: [{ name: "orders" }],
  });
  return deployed({ State: state, Service: service });
}

/** Only what a deployment must have. */
function little(): Deployment {
  const app = testApp();
  const log = { addresses: "b-1.example.com:9094" };
  const { state } = new StateStack(app, "State", { name: "small", log });
  const bundle = placeholders();
  const service = new ServiceStack(app, "Service", { state, bundle, workers: false, secretRotation: false });
  return deployed({
    State: Template.fromStack(Stack.of(state)),
    Service: Template.fromStack(service),
  });
}

const list = (value: unknown): unknown[] => (Array.isArray(value) ? value : [value]);

/** The conditions of a request in the form of the evaluation. */
const contextOf = (conditions: Conditions): Map<string, string[]> =>
  new Map(Object.entries(conditions).map(([key, value]) => [key.toLowerCase(), list(value).map(String)]));

/** Resources about which nobody can ask: keys of which a template does not even know the account. */
const isLeftOut = (resource: string): boolean => /^arn:aws:kms:[a-z0-9-]+:\*:key\/\*$/.test(resource);

for (const [what, make] of [
  ["everything", everything],
  ["little", little],
] as const) {
  const deployment = make();
  const roles = rolesOf(deployment);

  test(`${what}: the list has each action and resource of the policies`, () => {
    assert.deepEqual(
      roles.flatMap(({ unknown }) => unknown),
      [],
    );
    const documents = Object.values(policiesOf(deployment)) as unknown as Document[];
    const given = documents.flatMap(({ Statement }) =>
      list(Statement).flatMap((statement) => {
        const { Effect, Action, Resource } = statement as Record<string, unknown>;
        // What a role must not do, such as remove a graph of the deployment, is nothing that it needs.
        if (Effect !== "Allow") return [];
        return list(Action).flatMap((action) => list(Resource).map((one) => `${action} ${one}`));
      }),
    );
    const listed = roles.flatMap(({ needs }) =>
      needs.flatMap(({ actions, targets }) =>
        actions.flatMap((action) => targets.map(({ pattern }) => `${action} ${pattern}`)),
      ),
    );
    const left = given.filter((one) => isLeftOut(one.split(" ")[1] ?? ""));
    assert.deepEqual(listed.toSorted(), given.filter((one) => !left.includes(one)).toSorted());
    assert.deepEqual([...new Set(left)].length, 1, "the key of the account's bootstrap");
    assert.ok(listed.length > 100, String(listed.length));
  });

  test(`${what}: every role has needs, but for the one whose policy is AWS's`, () => {
    const without = roles.filter(({ needs }) => needs.length === 0).map(({ role }) => role);
    assert.deepEqual(
      without.map(({ logicalId }) => logicalId.replace(/[0-9A-F]{8}$/, "")),
      ["ServiceApiLogsRole"],
    );
    for (const { role } of roles) {
      const managed = role.properties.ManagedPolicyArns ?? [];
      assert.equal(managed.length, without.includes(role) ? 1 : 0, role.logicalId);
    }
    for (const { arn } of roles) assert.match(arn, /^arn:aws:iam::\d{12}:role\/\w+$/);
  });

  test(`${what}: the policies allow each request that is asked about, and need its conditions`, () => {
    let conditional = 0;
    for (const { role, needs } of roles) {
      const ofRole: Policy[] = needs.map(({ policy }) => {
        const found = policiesOf(deployment)[policy];
        assert.ok(found, `${role.logicalId}: ${policy}`);
        return { name: policy, document: found as Document };
      });
      for (const { actions, targets, kinds } of needs) {
        for (const [action, { sample, pattern }] of actions.flatMap((one) =>
          targets.map((target) => [one, target] as const),
        )) {
          assert.ok(pattern === "*" || !/[*?]/.test(sample), sample);
          for (const kind of kinds) {
            const about = `${role.logicalId} ${action} ${sample} ${JSON.stringify(kind)}`;
            const request = { action, resource: sample, context: contextOf(kind) };
            assert.equal(evaluate(ofRole, request).decision, "allowed", about);
            if (kind["kms:ViaService"] === undefined) continue;
            conditional += 1;
            const without = evaluate(ofRole, { ...request, context: new Map() });
            assert.equal(without.decision, "implicitDeny", about);
          }
        }
      }
    }
    assert.ok(conditional > 10, String(conditional));
  });
}

test("a pattern is covered by its sample", () => {
  for (const [pattern, sample] of [
    ["*", "*"],
    ["arn:aws:s3:::data/drop/*", "arn:aws:s3:::data/drop/some-example-of-anything"],
    [
      "arn:aws:logs:r:1:log-group:/a/b:*",
      "arn:aws:logs:r:1:log-group:/a/b:log-stream:some-example-of-anything",
    ],
    [
      "arn:aws:states:r:1:execution:m/*:*",
      "arn:aws:states:r:1:execution:m/some-example-of-anything:some-example-of-anything",
    ],
  ] as const)
    assert.equal(sampleOf(pattern), sample);
});

test("what the stacks do not tell is named, and the rest of the list stays", () => {
  const { state, service } = example();
  const whole = deployed({ State: state, Service: service });
  const [first] = whole.stacks;
  const apart = deployed({ Service: service });
  assert.equal(first?.StackName, "State");
  const nodes = rolesOf(apart).find(({ role }) => role.logicalId.startsWith("ServiceNodesRole"));
  assert.match(nodes?.unknown.join("\n") ?? "", /^ServiceNodesRole\w+: the export State:ExportsOutput\w+: /m);
  assert.ok(nodes?.needs.some(({ actions }) => actions.includes("logs:PutLogEvents")));
});

test("statements of a key's policy apply to roles of the account", () => {
  const account = "123456789012";
  const role = `arn:aws:iam::${account}:role/nodes`;
  // Ids of statements in keys' policies have spaces, which IAM's own policies do not take.
  const applies = [{ Effect: "Allow", Action: "kms:*", Resource: "*" }];
  const of = (Principal: unknown) =>
    applying(JSON.stringify({ Statement: [{ Sid: "Let IAM decide", Principal, ...applies[0] }] }), role);
  for (const principal of [
    "*",
    { AWS: "*" },
    { AWS: account },
    { AWS: `arn:aws:iam::${account}:root` },
    { AWS: ["x", role] },
  ])
    assert.deepEqual(of(principal), applies, JSON.stringify(principal));
  for (const principal of [
    { Service: "logs.amazonaws.com" },
    { AWS: `${role}2` },
    { AWS: "arn:aws:iam::1:root" },
  ])
    assert.deepEqual(of(principal), [], JSON.stringify(principal));
  const not = JSON.stringify({ Statement: [{ Effect: "Deny", NotPrincipal: { AWS: role } }] });
  assert.throws(() => applying(not, role), /NotPrincipal/);
  // The statements of the state's own key let IAM decide about the roles.
  const { state } = example();
  const { values } = deployed({ State: state });
  const policy = values.of("State", only(state, "AWS::KMS::Key").Properties.KeyPolicy);
  const statements = applying(JSON.stringify(policy), role);
  assert.equal(statements.length, 1, JSON.stringify(statements));
});
