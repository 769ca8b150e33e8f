/**
 * Where the statements of grants are, and that IAM takes them: it limits the length of policies, by the kind of principal
 * ("IAM and AWS STS quotas" of its User Guide). CloudFormation tells only when it deploys.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Stack } from "aws-cdk-lib";
import { Template } from "aws-cdk-lib/assertions";
import * as iam from "aws-cdk-lib/aws-iam";
import type { Deployment } from "../doctor/deployment.ts";
import { GraphService } from "../lib/index.ts";
import { ServiceStack } from "../lib/stacks/service-stack.ts";
import { StateStack } from "../lib/stacks/state-stack.ts";
import { deployed } from "./deployed.ts";
import { ofType, placeholders, testApp } from "./support.ts";

/** The names of all grants. */
const GRANTS = Object.getOwnPropertyNames(GraphService.prototype).filter((name) => name.startsWith("grant"));

type Grant = (grantee: iam.IGrantable, graph?: string) => iam.Grant;

/** Calls a grant by its name. */
function call(service: GraphService, name: string, ...args: Parameters<Grant>): iam.Grant {
  return (service as unknown as Record<string, Grant>)[name]?.apply(service, args) as iam.Grant;
}

/** The most characters of all inline policies together, by the property that attaches them. */
const INLINE: Readonly<Record<string, number>> = { Users: 2_048, Groups: 5_120, Roles: 10_240 };
/** The most characters of a managed policy. */
const MANAGED = 6_144;
/** The most managed policies of a user or a group, unless AWS raises the quota. */
const ATTACHED = 10;

interface Statement {
  readonly Action: string | string[];
  readonly Resource: string | string[];
  readonly Condition?: object;
}

/** A policy of the deployment. */
interface Found {
  readonly isInline: boolean;
  readonly logicalId: string;
  /** To what it is attached: `Users/NAME`. */
  readonly to: readonly string[];
  readonly length: number;
  readonly statements: readonly Statement[];
}

function policies({ resources, values }: Deployment): Found[] {
  return resources
    .filter(({ type }) => /^AWS::IAM::(Managed)?Policy$/.test(type))
    .map(({ stack, type, logicalId, properties }) => {
      const document = values.of(stack, properties.PolicyDocument) as { Statement: Statement[] };
      const to = Object.keys(INLINE).flatMap((kind) =>
        ((values.of(stack, properties[kind] ?? []) ?? []) as string[]).map((name) => `${kind}/${name}`),
      );
      const { length } = JSON.stringify(document).replaceAll(/\s/g, "");
      return { isInline: type === "AWS::IAM::Policy", logicalId, to, length, statements: document.Statement };
    });
}

/** Returns what statements allow, each action on each resource with its conditions. */
function allowed(found: readonly Found[]): string[] {
  const all = found.flatMap(({ statements }) =>
    statements.flatMap(({ Action, Resource, Condition = {} }) =>
      [Action]
        .flat()
        .flatMap((action) => [Resource].flat().map((one) => `${action} ${one} ${JSON.stringify(Condition)}`)),
    ),
  );
  return [...new Set(all)].toSorted();
}

/** Names as long as those that CloudFormation gives in apps with long ids: 64 characters, of which it draws twelve. */
const generated = (logicalId: string): string => `${logicalId.slice(0, 51).padEnd(51, "0")}-AbCdEf123456`;

test("IAM takes the policy of each grant, for each kind of grantee", () => {
  const app = testApp();
  const { state } = new StateStack(app, "State", { name: "knowledge-production", graph: "people" });
  const stack = new ServiceStack(app, "Service", {
    ...{ state, bundle: placeholders(), backup: {}, encryption: {}, nodes: { most: 9 } },
    graphs: Array.from({ length: 7 }, (_, at) => ({ name: `orders-of-region-${at}` })),
  });
  const assumedBy = new iam.AccountRootPrincipal();
  for (const name of GRANTS) {
    const grantees = [
      new iam.Role(stack, `${name}Role`, { assumedBy }),
      new iam.User(stack, `${name}User`),
      new iam.Group(stack, `${name}Group`),
      new iam.ManagedPolicy(stack, `${name}Policy`),
      iam.Role.fromRoleName(stack, `${name}ImportedRole`, `${name}-role`),
      iam.User.fromUserName(stack, `${name}ImportedUser`, `${name}-user`),
      iam.Group.fromGroupName(stack, `${name}ImportedGroup`, `${name}-group`),
    ];
    for (const grantee of grantees) call(stack.service, name, grantee).assertSuccess();
  }
  const found = policies(
    deployed(
      { State: Template.fromStack(Stack.of(state)), Service: Template.fromStack(stack) },
      {},
      { region: "ap-southeast-1", generated },
    ),
  );
  for (const { isInline, logicalId, length } of found)
    if (!isInline) assert.ok(length <= MANAGED, `${logicalId}: ${length}`);
  for (const name of GRANTS) {
    const of = (kind: string, who: string): Found[] =>
      found.filter(({ to }) => to.some((one) => one.startsWith(`${kind}/${who}`)));
    const [own] = found.filter(({ logicalId }) => logicalId.startsWith(`${name}Policy`));
    const expected = allowed(own ? [own] : []);
    assert.ok(expected.length > 0, name);
    for (const [kind, who] of [
      ...[["Roles", `${name}Role`] as const, ["Roles", `${name}-role`] as const],
      ...[["Users", `${name}User`] as const, ["Users", `${name}-user`] as const],
      ...[["Groups", `${name}Group`] as const, ["Groups", `${name}-group`] as const],
    ]) {
      const mine = of(kind, who);
      assert.deepEqual(allowed(mine), expected, `${name} ${who}`);
      const inline = mine.filter(({ isInline }) => isInline);
      const sum = inline.reduce((all, { length }) => all + length, 0);
      assert.ok(sum <= (INLINE[kind] as number), `${who}: ${sum}`);
      // Roles keep what they have: the CDK splits their policies.
      assert.equal(inline.length, kind === "Roles" ? 1 : 0, who);
      assert.ok(mine.every(({ to }) => to.length === 1));
    }
  }
});

/** Returns the stack of users and a group that have grants of two services; `twice` repeats each grant. */
function people({ twice = false } = {}): Template {
  const app = testApp();
  const stack = new Stack(app, "People");
  const grantees = [
    new iam.User(stack, "User"),
    iam.User.fromUserName(stack, "Imported", "someone"),
    iam.Group.fromGroupName(stack, "Group", "readers"),
  ];
  for (const name of ["first", "second"]) {
    const { state } = new StateStack(app, `${name}State`, { name, graph: "people" });
    const { service } = new ServiceStack(app, `${name}Service`, {
      ...{ state, bundle: placeholders(), graphs: [{ name: "orders" }] },
    });
    for (const grantee of grantees)
      for (let times = twice ? 2 : 1; times > 0; times--) {
        for (const grant of GRANTS) call(service, grant, grantee).assertSuccess();
        service.grantRead(grantee, "orders").assertSuccess();
        // The graph that is the default.
        service.grantDrop(grantee, "people").assertSuccess();
      }
  }
  return Template.fromStack(stack);
}

test("a user with several grants, of several services, has a policy for each, always with the same ids", () => {
  const template = people();
  // The policies are where the users are, as inline policies would be, and nothing else is.
  assert.deepEqual(ofType(template, "AWS::IAM::Policy"), []);
  const found = ofType(template, "AWS::IAM::ManagedPolicy", 2 * 3 * (GRANTS.length + 1));
  const ofUser = found.filter(([, { Properties }]) =>
    JSON.stringify(Properties.Users ?? []).includes('"Ref"'),
  );
  assert.equal(ofUser.length, 2 * (GRANTS.length + 1));
  assert.ok(GRANTS.length + 1 <= ATTACHED);
  const descriptions = ofUser.map(([, { Properties }]) => Properties.Description);
  assert.ok(descriptions.includes("What grantRead of firstService/Service allows"), descriptions.join());
  assert.deepEqual(people({ twice: true }).toJSON().Resources, template.toJSON().Resources);
});
