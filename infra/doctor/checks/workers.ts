/** The workers behind their balancer. */
import { DescribeServicesCommand, type Service } from "@aws-sdk/client-ecs";
import { DescribeTargetHealthCommand } from "@aws-sdk/client-elastic-load-balancing-v2";
import type { Context } from "../context.ts";
import type { Resource } from "../deployment.ts";
import { absent, type Check, failed, ok, some, warning } from "../finding.ts";

const NONE = absent("the deployment has no workers");

const found = ({ deployment }: Context): Resource | undefined =>
  deployment.one("AWS::ECS::Service", "WorkersService");

async function describe({ clients, deployment }: Context, { id }: Resource): Promise<Service> {
  const cluster = deployment.one("AWS::ECS::Cluster", "WorkersCluster")?.id;
  const asked = new DescribeServicesCommand({ cluster, services: [id] });
  const { services: [service] = [] } = await clients.ecs.send(asked);
  if (service === undefined) throw new Error(`ECS has no service ${id}`);
  return service;
}

const service: Check = {
  id: "workers.service",
  actions: ["ecs:DescribeServices"],
  async look(context) {
    const resource = found(context);
    if (resource === undefined) return NONE;
    const {
      serviceName = "",
      status,
      runningCount = 0,
      desiredCount = 0,
      pendingCount = 0,
      deployments = [],
      events = [],
    } = await describe(context, resource);
    const failures = deployments.filter(({ rolloutState }) => rolloutState === "FAILED");
    const [last] = events;
    const seen = [
      `${runningCount} of ${desiredCount} run`,
      ...(pendingCount > 0 ? [`${pendingCount} start`] : []),
      ...failures.map(({ rolloutStateReason }) => `a deployment failed: ${rolloutStateReason}`),
    ].join(", ");
    const rest = {
      subject: serviceName,
      wanted: `${desiredCount} run`,
      remedy: `aws ecs describe-services has the reasons${last?.message ? `, the last one: ${last.message}` : ""}; docs/runbook.md#workersaway`,
    };
    if (status !== "ACTIVE") return failed(`the service is ${status}`, rest);
    if (failures.length > 0 || (runningCount < desiredCount && pendingCount === 0)) return failed(seen, rest);
    return runningCount < desiredCount ? warning(seen, rest) : ok(seen, serviceName);
  },
};

const targets: Check = {
  id: "workers.targets",
  actions: ["elasticloadbalancing:DescribeTargetHealth"],
  async look({ clients, deployment }) {
    const group = deployment.one("AWS::ElasticLoadBalancingV2::TargetGroup", "WorkersGroup");
    if (group === undefined) return NONE;
    const asked = new DescribeTargetHealthCommand({ TargetGroupArn: group.id });
    const { TargetHealthDescriptions = [] } = await clients.elb.send(asked);
    const states = TargetHealthDescriptions.map(({ Target, TargetHealth }) => ({
      id: `${Target?.Id}:${Target?.Port}`,
      state: TargetHealth?.State ?? "unknown",
      why: TargetHealth?.Description ?? TargetHealth?.Reason ?? "",
    }));
    const healthy = states.filter(({ state }) => state === "healthy");
    // A worker that is told to stop finishes its queries.
    const others = states.filter(({ state }) => state !== "healthy" && state !== "draining");
    const rest = {
      subject: deployment.output("WorkerEndpoint"),
      wanted: "all healthy",
      remedy: "docs/runbook.md#workersaway; the log group workers has what they say",
    };
    const seen = [
      `${healthy.length} healthy`,
      ...(others.length > 0
        ? [some(others.map(({ id, state, why }) => `${id} ${state} ${why}`.trim()))]
        : []),
    ].join(", ");
    if (healthy.length === 0) return failed(seen, rest);
    return others.length > 0 ? warning(seen, rest) : ok(seen, rest.subject);
  },
};

export const WORKERS: readonly Check[] = [service, targets];
