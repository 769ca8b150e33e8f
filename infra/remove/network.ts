/** The network that a deployment made: endpoints, security groups, subnets, route tables, the VPC. */
import * as ec2 from "@aws-sdk/client-ec2";
import { CallFailed } from "../doctor/finding.ts";
import { TAG } from "../lib/names.ts";
import type { Remain, Search } from "./remains.ts";

/** How often something that others still use is tried: brokers' interfaces go some minutes after the brokers. */
const ATTEMPTS = 60;

/** Returns what is left of the network, in the order of its removal. */
export async function network({ clients: { ec2: client }, name, pauseMs }: Search): Promise<Remain[]> {
  const Filters = [{ Name: `tag:${TAG}`, Values: [name] }];
  const found: Remain[] = [];
  const add = (kind: string, id: string, remove: () => Promise<unknown>): void => {
    found.push({ kind, id, remove: () => patiently(remove, pauseMs) });
  };
  for await (const page of ec2.paginateDescribeVpcEndpoints({ client }, { Filters })) {
    for (const { VpcEndpointId: id = "", State } of page.VpcEndpoints ?? []) {
      if (State?.toLowerCase() === "deleted") continue;
      add("endpoint", id, () => client.send(new ec2.DeleteVpcEndpointsCommand({ VpcEndpointIds: [id] })));
    }
  }
  for await (const page of ec2.paginateDescribeSecurityGroups({ client }, { Filters })) {
    for (const { GroupId = "" } of page.SecurityGroups ?? [])
      add("security group", GroupId, () => client.send(new ec2.DeleteSecurityGroupCommand({ GroupId })));
  }
  for await (const page of ec2.paginateDescribeSubnets({ client }, { Filters })) {
    for (const { SubnetId = "" } of page.Subnets ?? [])
      add("subnet", SubnetId, () => client.send(new ec2.DeleteSubnetCommand({ SubnetId })));
  }
  for await (const page of ec2.paginateDescribeRouteTables({ client }, { Filters })) {
    for (const { RouteTableId = "" } of page.RouteTables ?? [])
      add("route table", RouteTableId, () => client.send(new ec2.DeleteRouteTableCommand({ RouteTableId })));
  }
  for await (const page of ec2.paginateDescribeVpcs({ client }, { Filters })) {
    for (const { VpcId = "" } of page.Vpcs ?? [])
      add("VPC", VpcId, () => client.send(new ec2.DeleteVpcCommand({ VpcId })));
  }
  return found;
}

/** Removes something, and tries again while others still use it. */
async function patiently(remove: () => Promise<unknown>, pauseMs: number): Promise<void> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      await remove();
      return;
    } catch (error) {
      const code = error instanceof CallFailed ? error.cause.name : "";
      if (/\.NotFound$/.test(code)) return;
      if (code !== "DependencyViolation" || attempt === ATTEMPTS) throw error;
    }
    await new Promise((done) => setTimeout(done, pauseMs));
  }
}
