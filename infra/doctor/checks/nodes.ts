/** The group of machines of the storage nodes. */
import {
  type AutoScalingGroup,
  DescribeAutoScalingGroupsCommand,
  DescribeLifecycleHooksCommand,
  type LifecycleHook,
} from "@aws-sdk/client-auto-scaling";
import { DescribeInstanceTypeOfferingsCommand } from "@aws-sdk/client-ec2";
import type { Context } from "../context.ts";
import type { Resource } from "../deployment.ts";
import { absent, type Check, type Finding, failed, ok, some, unknown, warning } from "../finding.ts";
import { byHand } from "./by-hand.ts";

const DESCRIBE = "autoscaling:DescribeAutoScalingGroups";
const NONE = absent("the deployment has no group of machines");

const found = ({ deployment }: Context): Resource | undefined =>
  deployment.one("AWS::AutoScaling::AutoScalingGroup", "NodesGroupASG");

/** Returns the group of the nodes, or nothing if the deployment has none. */
export function groupOf(context: Context): Promise<AutoScalingGroup | undefined> {
  return context.once("group", async () => {
    const resource = found(context);
    if (resource === undefined) return undefined;
    const asked = new DescribeAutoScalingGroupsCommand({ AutoScalingGroupNames: [resource.id] });
    const { AutoScalingGroups: [group] = [] } = await context.clients.asg.send(asked);
    if (group === undefined) throw new Error(`Auto Scaling has no group ${resource.id}`);
    return group;
  });
}

/** Returns the instance types that the template allows. */
export function instanceTypes({ deployment }: Context): string[] {
  const group = deployment.one("AWS::AutoScaling::AutoScalingGroup", "NodesGroupASG");
  const mixed = group?.properties.MixedInstancesPolicy?.LaunchTemplate?.Overrides ?? [];
  const overrides = mixed.map(({ InstanceType }: { InstanceType?: string }) => InstanceType);
  const { LaunchTemplateData: data } =
    deployment.one("AWS::EC2::LaunchTemplate", "NodesTemplate")?.properties ?? {};
  const types: unknown[] = overrides.length > 0 ? overrides : [data?.InstanceType];
  return types.filter((type): type is string => typeof type === "string");
}

const size: Check = {
  id: "nodes.size",
  actions: [DESCRIBE],
  async look(context) {
    const group = await groupOf(context);
    if (group === undefined) return NONE;
    const { MinSize = 0, DesiredCapacity = 0, Instances = [], AutoScalingGroupName: name = "" } = group;
    const inService = Instances.filter(({ LifecycleState }) => LifecycleState === "InService");
    const ill = Instances.filter(({ HealthStatus }) => HealthStatus !== "Healthy");
    const others = Instances.filter((one) => !inService.includes(one));
    const seen = [
      `${inService.length} in service`,
      ...(others.length > 0
        ? [some(others.map(({ InstanceId, LifecycleState }) => `${InstanceId} ${LifecycleState}`))]
        : []),
      ...(ill.length > 0 ? [`${some(ill.map(({ InstanceId = "" }) => InstanceId))} unhealthy`] : []),
    ].join(", ");
    const rest = {
      subject: name,
      wanted: `${DesiredCapacity} in service and healthy, at least ${MinSize}`,
      remedy: `aws autoscaling describe-scaling-activities --auto-scaling-group-name ${name}; docs/runbook.md#nodesaway`,
    };
    if (inService.length < MinSize || ill.length > 0) return failed(seen, rest);
    return inService.length < DesiredCapacity ? warning(seen, rest) : ok(seen, name);
  },
};

const protection: Check = {
  id: "nodes.protection",
  actions: [DESCRIBE],
  async look(context) {
    const group = await groupOf(context);
    if (group === undefined) return NONE;
    const { AutoScalingGroupName: name = "", Instances = [], NewInstancesProtectedFromScaleIn: all } = group;
    const open = Instances.filter(({ ProtectedFromScaleIn }) => !ProtectedFromScaleIn);
    const ids = open.map(({ InstanceId = "" }) => InstanceId);
    if (all && open.length === 0)
      return ok(`all ${Instances.length} machines are protected from scale-in`, name);
    const seen = ids.length > 0 ? `${some(ids)} not protected` : "new machines are not protected";
    return failed(seen, {
      subject: name,
      wanted: "all protected: the group must not end a node that has replicas",
      remedy: all
        ? `aws autoscaling set-instance-protection --protected-from-scale-in --auto-scaling-group-name ${name} --instance-ids ${ids.join(" ")}`
        : `aws autoscaling update-auto-scaling-group --new-instances-protected-from-scale-in --auto-scaling-group-name ${name}`,
    });
  },
};

const processes: Check = {
  id: "nodes.processes",
  actions: [DESCRIBE],
  async look(context) {
    const group = await groupOf(context);
    if (group === undefined) return NONE;
    const { AutoScalingGroupName: name = "", SuspendedProcesses = [] } = group;
    if (SuspendedProcesses.length === 0) return ok("none is suspended", name);
    const names = SuspendedProcesses.map(({ ProcessName = "" }) => ProcessName);
    return failed(`suspended: ${names.join(", ")}`, {
      subject: name,
      wanted: "none: a lost machine is not replaced otherwise",
      remedy: `aws autoscaling resume-processes --auto-scaling-group-name ${name}, unless the service is being removed`,
    });
  },
};

/** A lifecycle hook of the template. */
type Hook = Required<
  Pick<LifecycleHook, "LifecycleHookName" | "LifecycleTransition" | "DefaultResult" | "HeartbeatTimeout">
>;

/** Returns how the hook in AWS differs from that of the template, in words. */
function differenceOf(wanted: Hook, there: LifecycleHook | undefined): string | undefined {
  if (there === undefined) return "is missing";
  if (there.DefaultResult !== wanted.DefaultResult) return `ends with ${there.DefaultResult}`;
  if (there.HeartbeatTimeout !== wanted.HeartbeatTimeout) return `waits ${there.HeartbeatTimeout} s`;
  return undefined;
}

/** Returns the command that makes a hook as the template has it, or changes it to that. */
function putHook(group: string, hook: Hook): string {
  const { LifecycleHookName, LifecycleTransition, DefaultResult, HeartbeatTimeout } = hook;
  const names = `--auto-scaling-group-name ${group} --lifecycle-hook-name ${LifecycleHookName}`;
  const values = `--default-result ${DefaultResult} --heartbeat-timeout ${HeartbeatTimeout}`;
  return `aws autoscaling put-lifecycle-hook ${names} --lifecycle-transition ${LifecycleTransition} ${values}`;
}

const hooks: Check = {
  id: "nodes.hooks",
  actions: ["autoscaling:DescribeLifecycleHooks"],
  async look(context) {
    const resource = found(context);
    if (resource === undefined) return NONE;
    const asked = new DescribeLifecycleHooksCommand({ AutoScalingGroupName: resource.id });
    const { LifecycleHooks = [] } = await context.clients.asg.send(asked);
    const { LifecycleHookSpecificationList: wanted = [] } = resource.properties;
    const wrong: string[] = [];
    const remedies: string[] = [];
    for (const hook of wanted as Hook[]) {
      const there = LifecycleHooks.find(
        ({ LifecycleHookName }) => LifecycleHookName === hook.LifecycleHookName,
      );
      const difference = differenceOf(hook, there);
      if (difference === undefined) continue;
      wrong.push(`${hook.LifecycleHookName} ${difference}`);
      remedies.push(putHook(resource.id, hook));
    }
    const names = (list: readonly LifecycleHook[]) =>
      list
        .map((one) => `${one.LifecycleHookName} (${one.DefaultResult} after ${one.HeartbeatTimeout} s)`)
        .join(", ");
    if (wrong.length === 0) return ok(names(LifecycleHooks), resource.id);
    return failed(wrong.join(", "), {
      subject: resource.id,
      wanted: names(wanted),
      remedy: byHand(remedies.join("; ")),
    });
  },
};

const template: Check = {
  id: "nodes.template",
  actions: [DESCRIBE],
  async look(context) {
    const group = await groupOf(context);
    if (group === undefined) return NONE;
    const { AutoScalingGroupName: name = "", Instances = [] } = group;
    const { Version: wanted } =
      group.LaunchTemplate ?? group.MixedInstancesPolicy?.LaunchTemplate?.LaunchTemplateSpecification ?? {};
    if (wanted === undefined || wanted.startsWith("$")) return unknown("the group has no numbered template");
    const old = Instances.filter(({ LaunchTemplate }) => LaunchTemplate?.Version !== wanted);
    if (old.length === 0) return ok(`all machines run version ${wanted} of the template`, name);
    return warning(`${some(old.map(({ InstanceId = "" }) => InstanceId))} run an earlier version`, {
      subject: name,
      wanted: `version ${wanted}, which is deployed`,
      remedy: "start the state machine of the output UpgradeMachine (docs/upgrade.md)",
    });
  },
};

const types: Check = {
  id: "nodes.types",
  actions: [DESCRIBE, "ec2:DescribeInstanceTypeOfferings"],
  async look(context) {
    const group = await groupOf(context);
    if (group === undefined) return NONE;
    const wanted = instanceTypes(context);
    const { InstanceTypeOfferings = [] } = await context.clients.ec2.send(
      new DescribeInstanceTypeOfferingsCommand({
        LocationType: "availability-zone",
        Filters: [{ Name: "instance-type", Values: wanted }],
      }),
    );
    const offered = new Set(InstanceTypeOfferings.map(({ Location }) => Location));
    const { AvailabilityZones = [] } = group;
    return AvailabilityZones.map((zone): Finding => {
      if (offered.has(zone)) {
        const there = InstanceTypeOfferings.filter(({ Location }) => Location === zone);
        return ok(`offers ${there.map(({ InstanceType }) => InstanceType).join(", ")}`, zone);
      }
      return failed(`offers none of ${wanted.join(", ")}`, {
        subject: zone,
        wanted: "one of them",
        remedy:
          "name other zones in network.availabilityZones, or other types in nodes.fallbackInstanceTypes",
      });
    });
  },
};

export const NODES: readonly Check[] = [size, protection, processes, hooks, template, types];
