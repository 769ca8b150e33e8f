/** How the API is reached: its name, a web ACL, the VPC alone; and what grants allow. */
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { Stack } from "aws-cdk-lib";
import { Template } from "aws-cdk-lib/assertions";
import * as ec2 from "aws-cdk-lib/aws-ec2";
import * as iam from "aws-cdk-lib/aws-iam";
import type { GraphService } from "../lib/constructs/service.ts";
import { ServiceStack } from "../lib/stacks/service-stack.ts";
import { StateStack } from "../lib/stacks/state-stack.ts";
import { example, flat, named, ofType, only, placeholders, testApp, workerEndpoint } from "./support.ts";

const ACL = "arn:aws:wafv2:eu-west-1:111122223333:regional/webacl/graph/1";

/** Returns the value of an output. */
const output = (template: Template, name: string): string | undefined => {
  const found = Object.entries(template.toJSON().Outputs).find(([id]) => id.startsWith(name));
  return found && flat((found[1] as { Value: unknown }).Value);
};

test("a name of the API has its certificate, a record, and paths without the stage", () => {
  const { certificate, zone } = workerEndpoint();
  const { service } = example({ query: { domain: { name: "api.example.com", certificate, zone } } });
  const domain = only(service, "AWS::ApiGateway::DomainName").Properties;
  assert.deepEqual(
    [domain.DomainName, domain.RegionalCertificateArn, domain.SecurityPolicy],
    ["api.example.com", certificate.certificateArn, "TLS_1_2"],
  );
  const mapping = only(service, "AWS::ApiGateway::BasePathMapping").Properties;
  assert.equal(mapping.BasePath, undefined);
  assert.match(flat(mapping.Stage), /^<ServiceApiDeploymentStage/);
  const record = only(service, "AWS::Route53::RecordSet").Properties;
  assert.deepEqual([record.Name, record.HostedZoneId, record.Type], ["api.example.com.", "Z1", "A"]);
  assert.equal(output(service, "ServiceEndpoint"), "https://api.example.com/");
  // The record is left to others where no zone is given.
  const without = example({ query: { domain: { name: "api.example.com", certificate } } }).service;
  without.resourceCountIs("AWS::Route53::RecordSet", 0);
});

test("a web ACL is associated with the stage", () => {
  const { ResourceArn, WebACLArn } = only(
    example({ query: { webAcl: ACL } }).service,
    "AWS::WAFv2::WebACLAssociation",
  ).Properties;
  assert.equal(WebACLArn, ACL);
  assert.match(flat(ResourceArn), /\/restapis\/<ServiceApi[^>]*>\/stages\/<ServiceApi[^>]*>$/);
});

test("a private API is reached through the VPC's endpoint alone, and its policy allows nobody anything", () => {
  const { service } = example({ query: { privateAccess: true } });
  const { EndpointConfiguration, Policy } = only(service, "AWS::ApiGateway::RestApi").Properties;
  const [endpoint, ...others] = EndpointConfiguration.VpcEndpointIds.map(flat);
  assert.deepEqual([EndpointConfiguration.Types, others], [["PRIVATE"], []]);
  assert.match(endpoint, /^<ServiceApiEndpoint/);
  const [elsewhere, ...more] = Policy.Statement;
  assert.deepEqual(more, []);
  assert.deepEqual(
    [elsewhere.Effect, elsewhere.Action, flat(elsewhere.Condition.StringNotEquals["aws:SourceVpce"])],
    ["Deny", "execute-api:Invoke", endpoint],
  );
  for (const [id, { Properties }] of ofType(service, "AWS::ApiGateway::Method", 2))
    assert.equal(Properties.AuthorizationType, "AWS_IAM", id);
  const { SecurityGroupIds, ServiceName } = named(
    service,
    "AWS::EC2::VPCEndpoint",
    "ServiceApiEndpoint",
  ).Properties;
  assert.match(flat(ServiceName), /execute-api$/);
  const front = flat(SecurityGroupIds[0]);
  const rules = ofType(service, "AWS::EC2::SecurityGroupIngress")
    .map(([, { Properties }]) => Properties)
    .filter(({ GroupId }) => flat(GroupId) === front);
  assert.deepEqual(
    rules.map(({ FromPort, SourceSecurityGroupId }) => [FromPort, flat(SourceSecurityGroupId).slice(0, 18)]),
    [[443, "<ServiceApiClients"]],
  );
  assert.match(output(service, "ServiceApiClientSecurityGroup") ?? "", /^<ServiceApiClients/);
  assert.equal(output(example().service, "ServiceApiClientSecurityGroup"), undefined);
});

test("a private API uses an endpoint that exists", () => {
  const elsewhere = new Stack(testApp(), "Elsewhere");
  const vpcEndpoint = ec2.InterfaceVpcEndpoint.fromInterfaceVpcEndpointAttributes(elsewhere, "Endpoint", {
    vpcEndpointId: "vpce-1",
    port: 443,
  });
  const { service } = example({ query: { privateAccess: true, vpcEndpoint } });
  const { EndpointConfiguration } = only(service, "AWS::ApiGateway::RestApi").Properties;
  assert.deepEqual(EndpointConfiguration.VpcEndpointIds, ["vpce-1"]);
  assert.ok(ofType(service, "AWS::EC2::VPCEndpoint").every(([id]) => !id.startsWith("ServiceApi")));
});

/** Returns the statements of a role after a grant. */
function statements(
  what: (service: GraphService, role: iam.Role) => void,
): { Action: string | string[]; Resource: unknown; Condition?: object }[] {
  const app = testApp();
  const { state } = new StateStack(app, "State", { name: "example", graph: "people" });
  const stack = new ServiceStack(app, "Service", { state, bundle: placeholders(), backup: {} });
  what(stack.service, new iam.Role(stack, "Caller", { assumedBy: new iam.AccountRootPrincipal() }));
  return named(Template.fromStack(stack), "AWS::IAM::Policy", "Caller").Properties.PolicyDocument.Statement;
}

/** Returns what a role may do after a grant, by action. */
function granted(what: (service: GraphService, role: iam.Role) => void): Map<string, string[]> {
  const found = new Map<string, string[]>();
  for (const { Action, Resource } of statements(what))
    for (const action of [Action].flat())
      found.set(action, [
        ...(found.get(action) ?? []),
        ...[Resource].flat().map((one) => flat(one).replace(/^.*?\/<ServiceApi[^>]*>\//, "")),
      ]);
  return found;
}

test("grants to read and to write name methods and paths of the contract", () => {
  const reads = granted((service, role) => service.grantRead(role)).get("execute-api:Invoke") ?? [];
  const writes = granted((service, role) => service.grantWrite(role)).get("execute-api:Invoke") ?? [];
  assert.ok(
    reads.includes("GET/openCypher") && reads.includes("GET/gremlin") && reads.includes("GET/status"),
  );
  assert.ok(reads.every((one) => one.startsWith("GET/")));
  assert.deepEqual(writes.filter((one) => !reads.includes(one)).toSorted(), [
    ...["POST/gremlin", "POST/gremlin/explain", "POST/gremlin/profile"],
    ...["POST/openCypher", "POST/openCypher/explain", "POST/opencypher", "POST/opencypher/explain"],
  ]);
  const contract = readFileSync(join(import.meta.dirname, "..", "..", "contracts", "openapi.yaml"), "utf8");
  for (const one of writes) {
    const path = one.replace(/^[A-Z]+/, "").replace(/\*$/, "");
    assert.ok(contract.includes(`\n  ${path}`), path);
    // Lists of running queries cancel, and the reset and the loader need another role.
    assert.ok(!/status\/|\/status$|system|loader/.test(path) || path === "/status", path);
  }
  const all = granted((service, role) => service.grantQuery(role)).get("execute-api:Invoke");
  assert.deepEqual(all, ["*/*"]);
});

test("grants to drop and to administer", () => {
  const drop = granted((service, role) => service.grantDrop(role));
  assert.match(drop.get("s3:PutObject")?.join() ?? "", /Drop[^>]*>\/drop\/people\/\*$/);
  assert.match(drop.get("s3:GetObject")?.join() ?? "", /Drop[^>]*>\/reports\/people\/\*$/);
  assert.match(drop.get("kms:GenerateDataKey")?.join() ?? "", /^<StateKey/);
  // docs/ingest.md lists reports, because their names have ids that are computed.
  const [list, ...others] = statements((service, role) => service.grantDrop(role)).filter(
    ({ Action }) => Action === "s3:ListBucket",
  );
  assert.deepEqual(others, []);
  assert.deepEqual(list?.Condition, { StringLike: { "s3:prefix": ["reports/people/*"] } });
  const page = readFileSync(join(import.meta.dirname, "..", "..", "docs", "ingest.md"), "utf8");
  assert.ok(page.includes("aws s3 ls s3://DROP-BUCKET/reports/GRAPH/"));
  const admin = granted((service, role) => service.grantAdmin(role));
  assert.deepEqual(admin.get("execute-api:Invoke"), ["*/*"]);
  const [backup = "", upgrade = "", ...more] = admin.get("states:StartExecution") ?? [];
  assert.match(`${backup} ${upgrade}`, /^<ServiceBackup[^>]*> <ServiceUpgrade[^>]*>$/);
  assert.deepEqual(more, []);
  assert.equal(admin.get("states:DescribeExecution")?.length, 2);
});

test("a grant for the commands of the fleet is what a split calls: the map of the graph, with its key", () => {
  const found = statements((service, role) => service.grantFleet(role));
  const allowed = found.flatMap(({ Action, Resource, Condition }) =>
    [Action].flat().flatMap((action) =>
      [Resource].flat().map((resource) => ({
        what: `${action} ${flat(resource).replace(/^<State(Map|Key)[^>]*>/, "<$1>")}`,
        condition: JSON.stringify(Condition),
      })),
    ),
  );
  // The other actions share a statement with the index, but an index has only this one.
  const exists = (what: string): boolean => !what.includes("/index/") || what.startsWith("dynamodb:Query ");
  assert.deepEqual(
    [...new Set(allowed.map(({ what }) => what))].filter(exists).toSorted(),
    [
      ...["GetItem", "PutItem", "Query", "UpdateItem"].map((action) => `dynamodb:${action} <Map>`),
      "dynamodb:Query <Map>/index/by-epoch",
      ...["kms:Decrypt <Key>", "kms:GenerateDataKey <Key>"],
    ].toSorted(),
  );
  const ofGraph = JSON.stringify({ "ForAllValues:StringEquals": { "dynamodb:LeadingKeys": ["people"] } });
  for (const { what, condition } of allowed)
    if (what.startsWith("dynamodb:")) assert.equal(condition, ofGraph, what);
    else assert.match(condition, /"kms:ViaService":.*dynamodb\./, what);
  // What the store of the map sends. It deletes an item only when a graph is dropped, which is another command.
  const store = join(import.meta.dirname, "..", "..", "engine-core", "cluster", "src");
  const calls = readdirSync(store, { recursive: true, encoding: "utf8" })
    .filter((name) => name.includes("dynamodb") && name.endsWith(".rs"))
    .flatMap((name) => [
      ...readFileSync(join(store, name), "utf8").matchAll(
        /\.(get_item|put_item|update_item|delete_item|query|scan|transact_get_items|transact_write_items|batch_\w+)\(\)/g,
      ),
    ])
    .map(([, call]) => call);
  assert.deepEqual([...new Set(calls)].toSorted(), [
    ...["delete_item", "get_item", "put_item", "query"],
    ...["transact_get_items", "transact_write_items", "update_item"],
  ]);
  assert.throws(() => statements((service, role) => service.grantFleet(role, "orders")), /orders/);
});
