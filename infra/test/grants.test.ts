/** What the grants of `GraphService` allow, and what AWS's own rules (cdk-nag) say about an app that uses them. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { type Environment, Stack, Validations } from "aws-cdk-lib";
import type { CfnRestApi } from "aws-cdk-lib/aws-apigateway";
import { Certificate } from "aws-cdk-lib/aws-certificatemanager";
import * as iam from "aws-cdk-lib/aws-iam";
import { Key } from "aws-cdk-lib/aws-kms";
import { Secret } from "aws-cdk-lib/aws-secretsmanager";
import { Topic } from "aws-cdk-lib/aws-sns";
import { AwsSolutionsChecks } from "cdk-nag";
import { GraphService } from "../lib/index.ts";
import { ServiceStack } from "../lib/stacks/service-stack.ts";
import { StateStack } from "../lib/stacks/state-stack.ts";
import { flat, placeholders, testApp } from "./support.ts";

/** The names of all grants. */
const GRANTS = Object.getOwnPropertyNames(GraphService.prototype).filter((name) => name.startsWith("grant"));

type Grant = (grantee: iam.IGrantable, graph?: string) => iam.Grant;

/** Calls a grant by its name. */
function call(service: GraphService, name: string, ...args: Parameters<Grant>): iam.Grant {
  return (service as unknown as Record<string, Grant>)[name]?.apply(service, args) as iam.Grant;
}

/** An app with everything that a grant can be about. */
function deployed(env?: Environment) {
  const app = testApp();
  const place = env && { env };
  const { state } = new StateStack(app, "State", { name: "example", graph: "people", ...place });
  const stack = new ServiceStack(app, "Service", {
    ...{ ...place, state, bundle: placeholders(), backup: {}, encryption: {}, nodes: { most: 9 } },
    graphs: [{ name: "orders" }],
  });
  return { app, stack, service: stack.service };
}

test("an app that uses every grant passes AWS's rules", () => {
  assert.ok(GRANTS.length >= 6, GRANTS.join());
  const { app, stack, service } = deployed();
  const elsewhere = new Stack(app, "Callers");
  const assumedBy = new iam.AccountRootPrincipal();
  for (const name of GRANTS) {
    for (const scope of [stack, elsewhere]) {
      const imported = iam.Role.fromRoleName(scope, `${name}Imported`, `${name}-role`);
      const managed = new iam.ManagedPolicy(scope, `${name}Policy`);
      const others = [
        ...[new iam.User(scope, `${name}User`), iam.User.fromUserName(scope, `${name}Named`, `${name}-user`)],
        ...[new iam.Group(scope, `${name}Group`)],
      ];
      for (const grantee of [
        new iam.Role(scope, `${name}Role`, { assumedBy }),
        imported,
        managed,
        ...others,
      ]) {
        call(service, name, grantee).assertSuccess();
        if (!["grantAdmin", "grantOperate"].includes(name))
          call(service, name, grantee, "orders").assertSuccess();
      }
    }
  }
  // With findings, the app stops here.
  Validations.of(app).addPlugins(new AwsSolutionsChecks(app));
  app.synth();
});

const HERE = { account: "111111111111", region: "eu-west-1" };
const THERE = { account: "222222222222", region: "eu-west-1" };
/** The grants that the policy of the API can have, and all others. */
const OF_API = ["grantQuery", "grantRead", "grantWrite"];
const OTHERS = GRANTS.filter((name) => !OF_API.includes(name));

/** Returns the statements of the API's own policy. */
function ofApi(service: GraphService): { Effect: string; Principal: unknown; Resource: unknown }[] {
  const { policy } = service.api.api.node.defaultChild as CfnRestApi;
  return Stack.of(service).resolve(policy)?.Statement ?? [];
}

test("principals of another account are named by the policy of the API, without the API's id", () => {
  const { app, stack, service } = deployed(HERE);
  const arn = `arn:aws:iam::${THERE.account}:role/reader`;
  const there = new Stack(app, "There", { env: THERE });
  const assumedBy = new iam.AccountRootPrincipal();
  service.grantRead(new iam.ArnPrincipal(arn), "orders").assertSuccess();
  service.grantWrite(iam.Role.fromRoleArn(stack, "Imported", arn)).assertSuccess();
  service.grantQuery(new iam.AccountPrincipal(THERE.account)).assertSuccess();
  const user = iam.User.fromUserArn(stack, "User", `arn:aws:iam::${THERE.account}:user/someone`);
  service.grantRead(user).assertSuccess();
  service.grantQuery(new iam.Role(there, "Role", { assumedBy, roleName: "caller" })).assertSuccess();
  const found = ofApi(service).map(({ Principal, Resource }) => ({
    who: [(Principal as { AWS: unknown }).AWS].flat().map(flat),
    what: [Resource].flat().map(flat),
  }));
  const of = (who: string, first: string) =>
    found.find((one) => one.who.some((name) => name.endsWith(who)) && one.what.includes(first))?.what;
  assert.ok(of("role/reader", "execute-api:/graph/GET/graph/orders/openCypher"), JSON.stringify(found));
  assert.ok(of("role/reader", "execute-api:/graph/POST/openCypher"));
  assert.ok(of("user/someone", "execute-api:/graph/GET/openCypher"));
  assert.deepEqual(user.node.children, []);
  assert.ok(of(`${THERE.account}:root`, "execute-api:/graph/*/*"));
  assert.ok(of("role/caller", "execute-api:/graph/*/*"));
  // A reference to the API or its stage would be a circle.
  assert.doesNotMatch(JSON.stringify(found.map(({ what }) => what)), /</);
  // The policy of the other account cannot name an API that has no id yet: it is written there.
  assert.ok(there.node.findAll().every((one) => !(one instanceof iam.CfnPolicy)));
  // References to another account would fail here.
  app.synth();
});

test("principals of this account have policies of their own, and the API has none", () => {
  const { stack, service } = deployed(HERE);
  const role = new iam.Role(stack, "Role", { assumedBy: new iam.AccountRootPrincipal() });
  for (const name of OF_API) call(service, name, role).assertSuccess();
  assert.deepEqual(ofApi(service), []);
});

test("a policy of the API that is longer than API Gateway takes is warned of", () => {
  const { stack, service } = deployed(HERE);
  const warnings = () =>
    service.node.metadata.filter(
      ({ type, data }) => type === "aws:cdk:warning" && /more than 8192 characters/.test(String(data)),
    );
  const principal = (index: number) =>
    new iam.ArnPrincipal(`arn:aws:iam::${THERE.account}:role/reader-${index}`);
  const policy = () =>
    JSON.stringify(stack.resolve((service.api.api.node.defaultChild as CfnRestApi).policy));
  service.grantRead(principal(0));
  let count = 1;
  for (; policy().length <= 8192 && count < 1000; count += 1) {
    assert.equal(warnings().length, 0, `${policy().length} characters`);
    service.grantRead(principal(count));
  }
  assert.ok(count > 20 && count < 1000, String(count));
  assert.equal(warnings().length, 1);
  service.grantRead(principal(count));
  assert.equal(warnings().length, 1, "once");
});

test("a private API stays private when it lets another account in", () => {
  const app = testApp();
  const { state } = new StateStack(app, "State", { name: "example", env: HERE });
  const query = { privateAccess: true };
  const stack = new ServiceStack(app, "Service", { state, bundle: placeholders(), query, env: HERE });
  stack.service.grantRead(new iam.AccountPrincipal(THERE.account));
  assert.deepEqual(
    ofApi(stack.service).map(({ Effect }) => Effect),
    ["Deny", "Allow"],
  );
});

test("a grant that could do nothing is refused, with what to do instead", () => {
  const { app, stack, service } = deployed(HERE);
  const there = new Stack(app, "There", { env: THERE });
  const assumedBy = new iam.AccountRootPrincipal();
  const elsewhere = [
    iam.Role.fromRoleArn(stack, "Imported", `arn:aws:iam::${THERE.account}:role/reader`),
    new iam.Role(there, "Role", { assumedBy, roleName: "caller" }),
    new iam.AccountPrincipal(THERE.account),
    iam.User.fromUserArn(stack, "User", `arn:aws:iam::${THERE.account}:user/someone`),
  ];
  for (const name of OTHERS) {
    for (const grantee of elsewhere)
      assert.throws(
        () => call(service, name, grantee),
        /grantee is ".* of the account 222222222222", and has to be in the account of the deployment, 111111111111, such as a role that/,
        name,
      );
    // A principal without a policy of its own.
    assert.throws(
      () => call(service, name, new iam.ArnPrincipal(`arn:aws:iam::${HERE.account}:role/reader`)),
      /grantee is "arn:aws:iam::111111111111:role\/reader", and has to be a role, user, group or managed policy/,
      name,
    );
  }
  assert.throws(
    () => service.grantDrop(elsewhere[0] as iam.IGrantable),
    /among the accounts of dropFrom of GraphState/,
  );
  for (const name of GRANTS)
    for (const grantee of [new iam.ServicePrincipal("lambda.amazonaws.com"), new iam.AnyPrincipal()])
      assert.throws(
        () => call(service, name, grantee),
        /and has to be a role, user, group or managed policy/,
        name,
      );
});

test("a state, a key, a topic and certificates of another place are refused", () => {
  const elsewhere = { account: HERE.account, region: "us-east-1" };
  const build = (state: Environment, service: Environment, props: object = {}, ofState: object = {}) => {
    const app = testApp();
    const made = new StateStack(app, "State", { name: "example", env: state, ...ofState });
    return new ServiceStack(app, "Service", {
      ...{ state: made.state, bundle: placeholders(), env: service, crossRegionReferences: true },
      ...props,
    });
  };
  const outside = new Stack(testApp(), "Outside", { env: elsewhere });
  const arn = (service: string, rest: string) => `arn:aws:${service}:us-east-1:${HERE.account}:${rest}`;
  const certificate = Certificate.fromCertificateArn(outside, "Certificate", arn("acm", "certificate/1"));
  const key = Key.fromKeyArn(outside, "Key", arn("kms", "key/01234567-89ab-cdef-0123-456789abcdef"));
  const topic = Topic.fromTopicArn(outside, "Topic", arn("sns", "alarms"));
  const accessKeys = Secret.fromSecretCompleteArn(
    outside,
    "Keys",
    arn("secretsmanager", "secret:keys-AbCdEf"),
  );
  const shown = Certificate.fromCertificateArn(
    outside,
    "Shown",
    `arn:aws:acm:${HERE.region}:${HERE.account}:certificate/1`,
  );
  for (const [make, said] of [
    [() => build(elsewhere, HERE), 'state is "example", and has to be in the region of the stack, eu-west-1'],
    [() => build(THERE, HERE), 'state is "example", and has to be in the account of the stack, 111111111111'],
    [() => build(HERE, HERE, {}, { key }), "has to be in the region of the stack"],
    [() => build(HERE, HERE, { alarms: topic }), "alarms is"],
    [() => build(HERE, HERE, { workers: { certificate } }), "workers.certificate is"],
    [() => build(HERE, HERE, { workers: { certificate: shown, accessKeys } }), "workers.accessKeys is"],
    [
      () => build(HERE, HERE, { query: { domain: { name: "api.example.com", certificate } } }),
      "query.domain.certificate is",
    ],
    [
      () => build(HERE, HERE, { query: { webAcl: arn("wafv2", "regional/webacl/graph/1") } }),
      "query.webAcl is",
    ],
  ] as const)
    assert.throws(make, (error: Error) => error.message.includes(said), said);
});
