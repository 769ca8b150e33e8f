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
  assert.match(data, /"traces_collected": \{\s*"otlp": \{\s*"http_endpoint": "127\.0\.0\.1:4318"/);

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

test("without the prop nobody sends traces", () => {
  const { service } = example();
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
