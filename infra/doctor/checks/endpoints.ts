/** The VPC endpoints that the deployment made: processes without a way to the internet reach AWS by them alone. */
import { paginateDescribeVpcEndpoints, type VpcEndpoint } from "@aws-sdk/client-ec2";
import type { Resource } from "../deployment.ts";
import { absent, type Check, type Finding, failed, ok } from "../finding.ts";

const state: Check = {
  id: "endpoints.state",
  actions: ["ec2:DescribeVpcEndpoints"],
  async look({ clients, deployment }) {
    const made = deployment.all("AWS::EC2::VPCEndpoint");
    if (made.length === 0) return absent("the deployment made no endpoints: its VPC has its own way to AWS");
    // All of the region, because a call that names an endpoint that is gone fails for the others too.
    const found: VpcEndpoint[] = [];
    for await (const page of paginateDescribeVpcEndpoints({ client: clients.ec2 }, {}))
      found.push(...(page.VpcEndpoints ?? []));
    return made.map((resource) =>
      judgedEndpoint(
        resource,
        found.find(({ VpcEndpointId }) => VpcEndpointId === resource.id),
      ),
    );
  },
};

/** Judges an endpoint by its resource in the template. References there are not resolved, so their number counts. */
export function judgedEndpoint({ id, logicalId, properties }: Resource, found?: VpcEndpoint): Finding {
  const isGateway = properties.VpcEndpointType !== "Interface";
  const least = (list: unknown): number => (Array.isArray(list) ? list.length : 1);
  const wanted = isGateway
    ? `available, in ${least(properties.RouteTableIds)} route tables`
    : `available, with private DNS, in ${least(properties.SubnetIds)} subnets`;
  if (found === undefined) {
    const remedy = "deploy the service with endpoints: false, and then with endpoints: true";
    return failed("it is gone", { subject: `${id} (${logicalId})`, wanted, remedy });
  }
  const subject = `${id} (${found.ServiceName?.split(".").slice(3).join(".") ?? logicalId})`;
  const is = String(found.State ?? "of an unknown state").toLowerCase();
  const [tables, subnets] = [found.RouteTableIds?.length ?? 0, found.SubnetIds?.length ?? 0];
  const seen = isGateway
    ? `${is}, in ${tables} route tables`
    : `${is}, ${found.PrivateDnsEnabled ? "with" : "without"} private DNS, in ${subnets} subnets`;
  const modify = `aws ec2 modify-vpc-endpoint --vpc-endpoint-id ${id}`;
  const wrong = (remedy: string): Finding => failed(seen, { subject, wanted, remedy });
  if (is !== "available")
    return wrong(`aws ec2 describe-vpc-endpoints --vpc-endpoint-ids ${id}; LastError says why`);
  if (isGateway && tables < least(properties.RouteTableIds))
    return wrong(`${modify} --add-route-table-ids those of the nodes' subnets`);
  if (isGateway) return ok(seen, subject);
  if (properties.PrivateDnsEnabled !== false && !found.PrivateDnsEnabled)
    return wrong(`${modify} --private-dns-enabled; the VPC needs DNS support and DNS host names`);
  if (subnets < least(properties.SubnetIds)) return wrong(`${modify} --add-subnet-ids those of the nodes`);
  return ok(seen, subject);
}

export const ENDPOINTS: readonly Check[] = [state];
