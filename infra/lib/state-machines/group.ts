/** Calls about an Auto Scaling group. */
import { Duration } from "aws-cdk-lib";
import * as sfn from "aws-cdk-lib/aws-stepfunctions";
import * as tasks from "aws-cdk-lib/aws-stepfunctions-tasks";
import type { Construct } from "constructs";
import { patiently, unnamed } from "./retry.ts";

/** A call, as `CallAwsService` takes it. */
type Call = Pick<
  tasks.CallAwsServiceProps,
  "action" | "parameters" | "iamAction" | "iamResources" | "resultSelector" | "resultPath"
>;

/** Returns a state that calls Auto Scaling. Errors that pass are retried. */
export function ofGroup(scope: Construct, id: string, comment: string, call: Call): tasks.CallAwsService {
  const task = new tasks.CallAwsService(scope, id, {
    resultPath: sfn.JsonPath.DISCARD,
    ...call,
    comment,
    service: "autoscaling",
    taskTimeout: sfn.Timeout.duration(Duration.minutes(1)),
  });
  task.addRetry(
    patiently([
      "AutoScaling.ResourceContentionException",
      "AutoScaling.ScalingActivityInProgressException",
      ...unnamed("AutoScaling"),
    ]),
  );
  return task;
}

/** Parts of a group, as paths in its description. */
const PARTS = {
  desired: "$.AutoScalingGroups[0].DesiredCapacity",
  least: "$.AutoScalingGroups[0].MinSize",
  ids: "$.AutoScalingGroups[0].Instances[*].InstanceId",
  states: "$.AutoScalingGroups[0].Instances[*].LifecycleState",
  instances: "$.AutoScalingGroups[0].Instances",
  /** What it starts machines from, if they all have one type. */
  template: "$.AutoScalingGroups[0].LaunchTemplate",
  /** The same, if it chooses among types. */
  templateOfTypes: "$.AutoScalingGroups[0].MixedInstancesPolicy.LaunchTemplate.LaunchTemplateSpecification",
} as const;

/** Returns a state that looks at a group: `$.group` gets parts of its description. */
export function lookAtGroup(
  scope: Construct,
  id: string,
  groupName: string,
  parts: readonly (keyof typeof PARTS)[],
): tasks.CallAwsService {
  const of = (part: keyof typeof PARTS): string => (part === "templateOfTypes" ? "template" : part);
  return ofGroup(scope, id, "How many machines it should have, and which it has", {
    action: "describeAutoScalingGroups",
    parameters: { AutoScalingGroupNames: [groupName] },
    iamAction: "autoscaling:DescribeAutoScalingGroups",
    iamResources: ["*"],
    resultSelector: Object.fromEntries(parts.map((part) => [`${of(part)}.$`, PARTS[part]])),
    resultPath: "$.group",
  });
}

/** Returns a state that drains a node by the machine for that, and waits for its end. `node` is a path in its input. */
export function drained(
  scope: Construct,
  id: string,
  comment: string,
  machine: sfn.IStateMachine,
  node: string,
): tasks.StepFunctionsStartExecution {
  const task = new tasks.StepFunctionsStartExecution(scope, id, {
    comment,
    stateMachine: machine,
    integrationPattern: sfn.IntegrationPattern.RUN_JOB,
    input: sfn.TaskInput.fromObject({ node: sfn.JsonPath.stringAt(node) }),
    resultPath: sfn.JsonPath.DISCARD,
    taskTimeout: sfn.Timeout.duration(Duration.hours(7)),
  });
  task.addRetry(patiently(["StepFunctions.SdkClientException", "StepFunctions.ThrottlingException"]));
  return task;
}
