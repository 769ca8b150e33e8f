/** Traces: the variables of processes, the agents that take their spans, and what these may do. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { InvalidProp } from "../lib/check.ts";
import { example, flat, named, ofType } from "./support.ts";

const AGENT = `registry.example/agent@sha256:${"a".repeat(64)}`;
const SETTINGS = join(import.meta.dirname, "..", "..", "engine-core", "telemetry", "src", "settings.rs");

/** Returns the policies of nodes and workers that let them send traces. */
function senders(service: ReturnType<typeof example>["service"]): string[] {
  return ofType(service, "AWS::IAM::Policy")
    .filter(([, { Properties }]) => JSON.stringify(Properties).includes("xray:PutTraceSegments"))
    .map(([id]) => id)
    .filter((id) => /^Service(Nodes|Workers)/.test(id));
}

test("processes send spans to the agent beside them, which sends them to X-Ray", () => {
  const { service } = example({ traces: { ratio: 0.25, agentImage: AGENT } });
  const data = flat(
    named(service, "AWS::EC2::LaunchTemplate", "ServiceNodes").Properties.LaunchTemplateData.UserData[
      "Fn::Base64"
    ],
  );
  const settings = readFileSync(SETTINGS, "utf8");
  for (const line of ["OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4318", "OTEL_TRACES_SAMPLER_ARG=0.25"]) {
    assert.ok(data.includes(`${line}\n`), `${line} is no variable of nodes`);
    assert.ok(settings.includes(`"${line.split("=")[0]}"`), `no process reads ${line}`);
  }
  assert.match(data, /"traces_collected":\s*\{\s*"otlp":\s*\{\s*"http_endpoint":\s*"127\.0\.0\.1:4318"/);

  const task = named(service, "AWS::ECS::TaskDefinition", "ServiceWorkers").Properties;
  const [worker, agent] = task.ContainerDefinitions;
  assert.deepEqual(worker.Environment, [
    { Name: "OTEL_EXPORTER_OTLP_ENDPOINT", Value: "http://127.0.0.1:4318" },
    { Name: "OTEL_TRACES_SAMPLER_ARG", Value: "0.25" },
  ]);
  assert.equal(agent.Essential, false, "a worker serves without its agent");
  const [{ Value: content }] = agent.Environment;
  assert.deepEqual(JSON.parse(content), {
    traces: { traces_collected: { otlp: { http_endpoint: "127.0.0.1:4318" } } },
  });
  assert.deepEqual(
    senders(service).map((id) => id.replace(/(Role|Task).*/, "")),
    ["ServiceNodes", "ServiceWorkers"],
  );
  named(service, "AWS::EC2::VPCEndpoint", "ServiceEndpointsTraces");
});

test("a request through the API is one trace: of the stage, the function, its own spans, and nodes", () => {
  const { service } = example({ traces: { ratio: 0.25, agentImage: AGENT } });
  const stage = named(service, "AWS::ApiGateway::Stage", "ServiceApi").Properties;
  assert.equal(stage.TracingEnabled, true);
  const query = named(service, "AWS::Lambda::Function", "ServiceQuery").Properties;
  assert.deepEqual(query.TracingConfig, { Mode: "Active" });
  // The program sends spans to the collector in the layer, which reaches X-Ray by the endpoint of the VPC.
  const { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint, OTEL_TRACES_SAMPLER_ARG: ratio } =
    query.Environment.Variables;
  assert.deepEqual([endpoint, ratio], ["http://127.0.0.1:4318", "0.25"]);
  assert.equal(query.Layers.length, 1);
  const layer = JSON.stringify([query.Layers, service.toJSON().Mappings]);
  assert.match(layer, /layer:aws-otel-collector-arm64-ver-0-115-0:\d/);
  assert.equal(query.Environment.Variables.AWS_LAMBDA_EXEC_WRAPPER, undefined, "no wrapper of a runtime");
  const role = named(service, "AWS::IAM::Policy", "ServiceQuery").Properties.PolicyDocument.Statement;
  for (const action of ["xray:PutTraceSegments", "xray:PutTelemetryRecords"])
    assert.ok(
      role.some(({ Action }: { Action: string | string[] }) => [Action].flat().includes(action)),
      action,
    );
  const [group] = query.VpcConfig.SecurityGroupIds.map(flat);
  const ways = ofType(service, "AWS::EC2::SecurityGroupIngress").filter(
    ([, { Properties }]) =>
      flat(Properties.SourceSecurityGroupId) === group && flat(Properties.GroupId).includes("Endpoints"),
  );
  assert.equal(ways.length, 1, "the function does not reach the endpoint");
  // Other functions are not part of a request, and have no collector.
  for (const [id, { Properties }] of ofType(service, "AWS::Lambda::Function"))
    if (!id.startsWith("ServiceQuery")) assert.equal(Properties.Layers, undefined, id);
});

test("a rule of X-Ray traces the ratio of the requests to the stage", () => {
  const { service } = example({ traces: { ratio: 0.25, agentImage: AGENT } });
  const { SamplingRule: rule } = named(service, "AWS::XRay::SamplingRule", "ServiceApi").Properties;
  const { Name } = named(service, "AWS::ApiGateway::RestApi", "ServiceApi").Properties;
  const { StageName } = named(service, "AWS::ApiGateway::Stage", "ServiceApi").Properties;
  assert.deepEqual(
    [rule.ServiceName, rule.ServiceType, rule.FixedRate, rule.ReservoirSize],
    [`${Name}/${StageName}`, "AWS::ApiGateway::Stage", 0.25, 0],
  );
  assert.ok(rule.RuleName.length <= 32);
});

test("another collector is the one of its layer, and what is no layer is refused", () => {
  const layer = "arn:aws:lambda:eu-west-1:111122223333:layer:collector:7";
  const { service } = example({ traces: { agentImage: AGENT, collectorLayer: layer } });
  assert.deepEqual(named(service, "AWS::Lambda::Function", "ServiceQuery").Properties.Layers, [layer]);
  for (const collectorLayer of ["", "collector:7", layer.replace(":7", "")])
    assert.throws(
      () => example({ traces: { agentImage: AGENT, collectorLayer } }),
      (error) => error instanceof InvalidProp && error.prop === "traces.collectorLayer",
      collectorLayer,
    );
});

test("without the prop nobody sends traces", () => {
  const { service } = example();
  service.resourceCountIs("AWS::XRay::SamplingRule", 0);
  const query = named(service, "AWS::Lambda::Function", "ServiceQuery").Properties;
  assert.deepEqual([query.TracingConfig, query.Layers], [undefined, undefined]);
  assert.notEqual(named(service, "AWS::ApiGateway::Stage", "ServiceApi").Properties.TracingEnabled, true);
  assert.deepEqual(senders(service), []);
  assert.ok(!JSON.stringify(service.toJSON()).includes("OTEL_"));
  assert.equal(
    named(service, "AWS::ECS::TaskDefinition", "ServiceWorkers").Properties.ContainerDefinitions.length,
    1,
  );
});

test("ratios and images that cannot be are refused", () => {
  for (const ratio of [0, -1, 1.5, Number.NaN])
    assert.throws(() => example({ traces: { ratio, agentImage: AGENT } }), InvalidProp, String(ratio));
  for (const agentImage of [undefined, "", "agent:latest", `agent@sha256:${"a".repeat(63)}`])
    assert.throws(
      () => example({ traces: agentImage === undefined ? {} : { agentImage } }),
      (error) => error instanceof InvalidProp && error.prop === "traces.agentImage",
      agentImage,
    );
  // No worker, no image.
  example({ traces: {}, workers: false });
});
