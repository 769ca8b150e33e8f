/**
 * Asks EventBridge, as LocalStack has it, which events the rules of the templates match. The events have the forms that
 * AWS documents. Each rule about events has to be here, with an event that it matches and some that it does not.
 */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { ACCOUNT, LocalStack, REGION } from "../../scripts/lib/localstack.mjs";
import { exampleWithEverything } from "../test/options.ts";
import { flat, ofType } from "../test/support.ts";

/** The parts of an event that a rule may look at. */
interface Event {
  readonly source: string;
  readonly "detail-type": string;
  readonly resources: readonly string[];
  readonly detail: Readonly<Record<string, unknown>>;
}

/** A rule, an event that it matches, and others that differ from it in one place. */
interface Case {
  readonly event: Event;
  readonly others: readonly Partial<Event>[];
}

const { service, state } = exampleWithEverything();
const rules = new Map(
  [...ofType(service, "AWS::Events::Rule"), ...ofType(state, "AWS::Events::Rule")].flatMap(
    ([id, { Properties }]) =>
      Properties.EventPattern === undefined
        ? []
        : [[id.replace(/[0-9A-F]{8}$/, ""), Properties.EventPattern]],
  ),
);

/** Returns a value of a template with its references as text. */
function plain(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(plain);
  if (typeof value !== "object" || value === null) return value;
  const isReference = Object.keys(value).some((key) => key === "Ref" || key.startsWith("Fn::"));
  return isReference
    ? flat(value)
    : Object.fromEntries(Object.entries(value).map(([key, one]) => [key, plain(one)]));
}

const GROUP = "example-nodes";
const arn = (name: string): string => `arn:aws:${name.replace(":", `:${REGION}:${ACCOUNT}:`)}`;
const ofGroup = [
  arn(`autoscaling:autoScalingGroup:1:autoScalingGroupName/${GROUP}`),
  arn("ec2:instance/i-1"),
];

// https://docs.aws.amazon.com/autoscaling/ec2/userguide/ec2-auto-scaling-event-reference.html
const lifecycle = (transition: "LAUNCHING" | "TERMINATING", hook: string): Event => ({
  source: "aws.autoscaling",
  "detail-type": `EC2 Instance-${transition === "LAUNCHING" ? "launch" : "terminate"} Lifecycle Action`,
  resources: ofGroup.slice(0, 1),
  detail: {
    LifecycleActionToken: "87654321-4321-4321-4321-210987654321",
    AutoScalingGroupName: GROUP,
    LifecycleHookName: hook,
    EC2InstanceId: "i-1",
    LifecycleTransition: `autoscaling:EC2_INSTANCE_${transition}`,
    Origin: "EC2",
    Destination: "AutoScalingGroup",
  },
});
const activity = (detailType: string, StatusCode: string): Event => ({
  source: "aws.autoscaling",
  "detail-type": detailType,
  resources: ofGroup,
  detail: {
    StatusCode,
    AutoScalingGroupName: GROUP,
    ActivityId: "87654321-4321-4321-4321-210987654321",
    Details: { "Availability Zone": `${REGION}b`, "Subnet ID": "subnet-1" },
    RequestId: "12345678-1234-1234-1234-123456789012",
    StatusMessage: "We currently do not have sufficient i4g.xlarge capacity in the zone",
    StartTime: "2030-01-01T00:00:00Z",
    EndTime: "2030-01-01T00:00:10Z",
    EC2InstanceId: "i-1",
    Cause: "a difference between desired and actual capacity",
    Origin: "EC2",
    Destination: "AutoScalingGroup",
  },
});
const unlaunched = activity("EC2 Instance Launch Unsuccessful", "Failed");

/** The ARN of the workers' service, as the pattern has it. */
const [workers] = (plain(rules.get("ServiceWatchWorkersFail")) as { resources: string[] }).resources;
// https://docs.aws.amazon.com/AmazonECS/latest/developerguide/ecs_service_deployment_events.html
const deployment = (eventType: string, eventName: string): Event => ({
  source: "aws.ecs",
  "detail-type": "ECS Deployment State Change",
  resources: [workers ?? ""],
  detail: {
    eventType,
    eventName,
    deploymentId: "ecs-svc/123",
    updatedAt: "2030-01-01T00:00:00Z",
    reason: "ECS deployment circuit breaker: task failed to start.",
  },
});
const undeployed = deployment("ERROR", "SERVICE_DEPLOYMENT_FAILED");

const { stateMachineArn: [load] = [] } = (
  plain(rules.get("ServiceIngestEnded")) as { detail: { stateMachineArn: string[] } }
).detail;
// https://docs.aws.amazon.com/step-functions/latest/dg/eventbridge-integration.html
const execution = (status: string, stateMachineArn = load): Event => ({
  source: "aws.states",
  "detail-type": "Step Functions Execution Status Change",
  resources: [arn("states:execution:load:1")],
  detail: {
    ...{ executionArn: arn("states:execution:load:1"), stateMachineArn, name: "1", status },
    ...{ startDate: 1_893_456_000_000, stopDate: 1_893_456_100_000, input: "{}", output: null },
  },
});

const { name: [drops] = [] } = (
  plain(rules.get("ServiceIngestDropped")) as { detail: { bucket: { name: string[] } } }
).detail.bucket;
// https://docs.aws.amazon.com/AmazonS3/latest/userguide/ev-events.html
const put = (key: string, name = drops, type = "Object Created"): Event => ({
  source: "aws.s3",
  "detail-type": type,
  resources: [`arn:aws:s3:::${name}`],
  detail: {
    ...{ version: "0", bucket: { name }, "request-id": "N4N7GDK58NMKJ12R", requester: ACCOUNT },
    object: { key, size: 0, etag: "d41d8cd98f00b204e9800998ecf8427e", sequencer: "00617F08299329D189" },
    ...{ "source-ip-address": "10.0.0.1", reason: "PutObject" },
  },
});

const elsewhere = (event: Event): Partial<Event> => ({
  detail: { ...event.detail, AutoScalingGroupName: "other-nodes" },
});

const CASES: Readonly<Record<string, readonly Case[]>> = {
  ServiceWatchMachinesChange: [
    {
      event: unlaunched,
      others: [
        elsewhere(unlaunched),
        { source: "aws.ec2" },
        // Each start of a machine would be told otherwise.
        { "detail-type": "EC2 Instance Launch Successful" },
        { "detail-type": "EC2 Instance-launch Lifecycle Action" },
      ],
    },
    { event: activity("EC2 Instance Terminate Successful", "InProgress"), others: [] },
    { event: activity("EC2 Instance Terminate Unsuccessful", "Failed"), others: [] },
  ],
  ServiceWatchWorkersFail: [
    {
      event: undeployed,
      others: [
        { detail: deployment("INFO", "SERVICE_DEPLOYMENT_IN_PROGRESS").detail },
        { detail: deployment("INFO", "SERVICE_DEPLOYMENT_COMPLETED").detail },
        { resources: [arn("ecs:service/other/workers")] },
        { "detail-type": "ECS Service Action" },
      ],
    },
  ],
  ServiceNodesLaunched: [
    {
      event: lifecycle("LAUNCHING", "joins"),
      others: [
        elsewhere(lifecycle("LAUNCHING", "joins")),
        { detail: lifecycle("LAUNCHING", "another").detail },
        lifecycle("TERMINATING", "leaves"),
      ],
    },
  ],
  ServiceRebalanceTakenAway: [
    {
      event: lifecycle("TERMINATING", "leaves"),
      others: [elsewhere(lifecycle("TERMINATING", "leaves")), lifecycle("LAUNCHING", "joins")],
    },
  ],
  ServiceIngestEnded: [
    {
      event: execution("FAILED"),
      others: [execution("SUCCEEDED"), execution("RUNNING"), execution("FAILED", "another")],
    },
    { event: execution("TIMED_OUT"), others: [] },
    { event: execution("ABORTED"), others: [] },
  ],
  ServiceIngestDropped: [
    {
      event: put("drop/people/2030/_SUCCESS"),
      others: [
        put("drop/people/2030/people.csv"),
        put("reports/people/_SUCCESS"),
        put("drop/people/_SUCCESS", "another"),
        put("drop/people/_SUCCESS", drops, "Object Deleted"),
      ],
    },
  ],
};

const home = mkdtempSync(join(tmpdir(), "tidegraph-rules-"));
const stack = new LocalStack({ log: join(home, "localstack.log") });
process.on("exit", () => stack.kill());
before(() => stack.start([]));
after(async () => {
  await stack.stop();
  rmSync(home, { recursive: true, force: true });
});

/** Returns whether EventBridge matches an event with the pattern of a rule. LocalStack looks at no signature. */
async function matches(rule: string, event: Event): Promise<boolean> {
  const envelope = { version: "0", id: "12345678-1234-1234-1234-123456789012", time: "2030-01-01T00:00:00Z" };
  const scope = `${ACCOUNT}/20300101/${REGION}/events/aws4_request`;
  const answer = await fetch(stack.endpoint, {
    method: "POST",
    headers: {
      authorization: `AWS4-HMAC-SHA256 Credential=${scope}, SignedHeaders=host, Signature=0`,
      "content-type": "application/x-amz-json-1.1",
      "x-amz-target": "AWSEvents.TestEventPattern",
    },
    body: JSON.stringify({
      EventPattern: JSON.stringify(plain(rules.get(rule))),
      Event: JSON.stringify({ ...envelope, account: ACCOUNT, region: REGION, ...event }),
    }),
  });
  const text = await answer.text();
  assert.ok(answer.ok, text);
  return JSON.parse(text).Result;
}

test("each rule about events is tried", () => {
  assert.deepEqual([...rules.keys()].toSorted(), Object.keys(CASES).toSorted());
});

for (const [rule, cases] of Object.entries(CASES)) {
  test(`${rule} matches its events, and no others`, async () => {
    for (const { event, others } of cases) {
      assert.ok(await matches(rule, event), JSON.stringify(event));
      for (const change of others)
        assert.ok(!(await matches(rule, { ...event, ...change })), JSON.stringify(change));
    }
  });
}
