/** Certificates of processes: who may read which, what starts after them, and what the deployment has without them. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { AwsSolutionsChecks } from "cdk-nag";
import { InvalidProp } from "../lib/check.ts";
import { example, flat, named, ofType, resources, unknownVariables } from "./support.ts";

const ROOT = join(import.meta.dirname, "..", "..");
const { app, service } = example({ encryption: {} });

/** The secrets of the construct, by the name that they have there. */
const SECRETS = ["Authority", "Nodes", "Workers", "Functions"];
const secretOf = (name: string): string => {
  const ids = ofType(service, "AWS::SecretsManager::Secret").map(([id]) => id);
  return (
    ids.find((id) => id.startsWith(`ServiceEncryption${name}`)) ?? assert.fail(`there is no secret ${name}`)
  );
};

/** Returns the policies that allow an action on a secret of the construct, without CDK's hashes. */
function allowed(action: string, name: string): string[] {
  const secret = secretOf(name);
  return ofType(service, "AWS::IAM::Policy")
    .filter(([, { Properties }]) =>
      Properties.PolicyDocument.Statement.some(
        (one: { Action: string | string[]; Resource: unknown }) =>
          [one.Action].flat().includes(action) && JSON.stringify(one.Resource).includes(`"${secret}"`),
      ),
    )
    .map(([id]) => id.replace(/(Role)?DefaultPolicy[0-9A-F]{8}$/, "").replace(/[0-9A-F]{8}$/, ""))
    .toSorted();
}

test("each kind of processes reads its own certificate, and only the issuer the authority's key", () => {
  const read = (name: string) => allowed("secretsmanager:GetSecretValue", name);
  const ISSUER = "ServiceEncryption";
  assert.deepEqual(read("Authority"), [ISSUER]);
  assert.deepEqual(read("Nodes"), [ISSUER, "ServiceNodes"]);
  assert.deepEqual(read("Workers"), [ISSUER, "ServiceWorkers"]);
  assert.deepEqual(read("Functions"), [ISSUER, "ServiceIngest", "ServiceQuery"]);
  for (const name of SECRETS) assert.deepEqual(allowed("secretsmanager:PutSecretValue", name), [ISSUER]);
});

test("the secrets have no content at first, and the state's key", () => {
  for (const name of SECRETS) {
    const { Properties } = resources(service).get(secretOf(name)) ?? assert.fail(name);
    assert.equal(Properties.GenerateSecretString, undefined);
    assert.equal(Properties.SecretString, undefined);
    assert.match(flat(Properties.KmsKeyId), /Key/);
  }
});

test("processes find their certificates by variables and flags that they know", () => {
  const data = flat(
    named(service, "AWS::EC2::LaunchTemplate", "ServiceNodes").Properties.LaunchTemplateData.UserData[
      "Fn::Base64"
    ],
  );
  assert.ok(data.includes(`TIDEGRAPH_TLS_SECRET=<${secretOf("Nodes")}>\n`));
  assert.match(data, /"\^tidegraph_certificate_left_seconds\$"/);
  const args = readFileSync(join(ROOT, "engine-core", "remote", "src", "args.rs"), "utf8");
  assert.match(args, /env = "TIDEGRAPH_TLS_SECRET"/);
  assert.match(args, /tls_secret: Option<String>/);
  const [worker] = named(service, "AWS::ECS::TaskDefinition", "ServiceWorkers").Properties
    .ContainerDefinitions;
  const command = worker.Command.map(flat);
  assert.equal(command[command.indexOf("--tls-secret") + 1], `<${secretOf("Workers")}>`);
  for (const name of ["ServiceQuery", "ServiceIngest"]) {
    const { Variables } = named(service, "AWS::Lambda::Function", `${name}Function`).Properties.Environment;
    assert.equal(flat(Variables.TIDEGRAPH_TLS_SECRET), `<${secretOf("Functions")}>`, name);
    const { TIDEGRAPH_TLS_SECRET } = Variables;
    const source = join("engine-core", "fleet", "src", "access", "environment.rs");
    assert.deepEqual(unknownVariables({ TIDEGRAPH_TLS_SECRET }, source), []);
  }
  const metrics = readFileSync(join(ROOT, "engine-core", "platform", "src", "metric.rs"), "utf8");
  assert.match(metrics, /"tidegraph_certificate_left_seconds"/);
});

test("the function reads the variables that it is given", () => {
  const { Variables } = named(service, "AWS::Lambda::Function", "ServiceEncryptionFunction").Properties
    .Environment;
  const { NODE_OPTIONS, ...own } = Variables;
  assert.deepEqual(unknownVariables(own, join("infra", "issuer", "handler.ts")), []);
  assert.equal(Object.keys(own).length, 7);
  assert.equal(own.GROUP, "example-nodes");
  assert.equal(own.MODE, "require");
  assert.equal(flat(own.STATE_SECRET), `<${secretOf("Authority")}>`);
});

test("machines and workers start after the first certificates, and the schedule too", () => {
  const [issued] = ofType(service, "Custom::TidegraphCertificates", 1);
  const id = issued?.[0] ?? assert.fail();
  for (const [type, name] of [
    ["AWS::AutoScaling::AutoScalingGroup", "ServiceNodes"],
    ["AWS::ECS::Service", "ServiceWorkers"],
    ["AWS::Events::Rule", "ServiceEncryptionSchedule"],
  ] as const)
    assert.ok(named(service, type, name).DependsOn?.includes(id), name);
  const rule = named(service, "AWS::Events::Rule", "ServiceEncryptionSchedule").Properties;
  assert.equal(rule.ScheduleExpression, "rate(6 hours)");
});

test("runs of the schedule know where nodes are called from, and may look there", () => {
  const callers = (template: typeof service) => {
    const [target] = named(template, "AWS::Events::Rule", "ServiceEncryptionSchedule").Properties.Targets;
    return JSON.parse(flat(target.Input)).callers;
  };
  const found = callers(service);
  assert.deepEqual(Object.keys(found).toSorted(), ["alias", "cluster", "function", "service"]);
  assert.match(found.function, /^<ServiceQueryFunction[0-9A-F]{8}>$/);
  assert.equal(found.alias, "live");
  assert.match(found.service, /^<ServiceWorkersService/);
  const { service: without } = example({ encryption: {}, workers: false });
  assert.deepEqual(Object.keys(callers(without)).toSorted(), ["alias", "function"]);
  const statements = ofType(service, "AWS::IAM::Policy")
    .filter(([id]) => id.startsWith("ServiceEncryption"))
    .flatMap(([, { Properties }]) => Properties.PolicyDocument.Statement)
    .map(({ Action, Resource }) => [[Action].flat(), [Resource].flat().map(flat)]);
  const on = (action: string) => statements.find(([actions]) => actions?.includes(action))?.[1];
  for (const action of ["GetAlias", "GetFunctionConfiguration"])
    assert.deepEqual(
      on(`lambda:${action}`)?.map((arn) => arn.replace(/[0-9A-F]{8}/, "")),
      ["<ServiceQueryFunction.Arn>", "<ServiceQueryFunction.Arn>:*"],
    );
  assert.deepEqual(on("cloudformation:DescribeStacks"), ["<AWS::StackId>"]);
  assert.match(String(on("ecs:DescribeServices")), /^<ServiceWorkersService[^,]*>$/);
  for (const action of [
    "autoscaling:DescribeAutoScalingGroups",
    "ec2:DescribeLaunchTemplateVersions",
    "ecs:DescribeTaskDefinition",
  ])
    assert.deepEqual(on(action), ["*"], action);
});

test("an alarm tells of certificates that expire, and of a function that fails, and neither stops an upgrade", () => {
  const expires = named(service, "AWS::CloudWatch::Alarm", "ServiceWatchCertificatesExpire").Properties;
  assert.deepEqual(
    [expires.MetricName, expires.Statistic, expires.ComparisonOperator, expires.Threshold],
    ["tidegraph_certificate_left_seconds", "Minimum", "LessThanThreshold", 172_800],
  );
  named(service, "AWS::CloudWatch::Alarm", "ServiceWatchCertificatesUnmade");
  const machine = JSON.stringify(named(service, "AWS::StepFunctions::StateMachine", "ServiceUpgrade"));
  assert.ok(!machine.includes("Certificates") && machine.includes("NodesAway"));
});

test("AWS's rules find nothing that is not explained", () => {
  assert.deepEqual(new AwsSolutionsChecks(app).validateScope(app).violations, []);
});

test("another mode reaches the function, and calls it again", () => {
  const { service: accepted } = example({ encryption: { mode: "accepted" } });
  const { Variables } = named(accepted, "AWS::Lambda::Function", "ServiceEncryptionFunction").Properties
    .Environment;
  assert.equal(Variables.MODE, "accept");
  const of = (template: typeof service) =>
    ofType(template, "Custom::TidegraphCertificates")[0]?.[1].Properties.Mode;
  assert.notEqual(of(accepted), of(service));
  for (const mode of ["accept", "off", ""]) {
    assert.throws(
      () => example({ encryption: { mode } }),
      (error) => error instanceof InvalidProp && error.prop === "encryption.mode",
      mode,
    );
  }
});

test("without the prop there are no certificates, and no process looks for them", () => {
  const { service: plain } = example();
  const text = JSON.stringify(plain.toJSON());
  for (const part of ["Encryption/", "TLS_SECRET", "tls-secret", "certificate_left", "TidegraphCertificates"])
    assert.ok(!text.includes(part), part);
});
