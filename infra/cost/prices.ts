/**
 * AWS prices in US East (N. Virginia), in US dollars, without taxes, discounts and free allowances. Each entry says
 * where and when it was read, and which AWS page confirms it. AWS may change them at any time: check again before
 * basing a decision on them.
 */

/** One price. */
export interface Price {
  readonly dollars: number;
  /** The unit that the price is for. */
  readonly unit: string;
  /** The AWS page with the price. */
  readonly page: string;
  /** Where the price was read: the AWS page itself, or a page that quotes it. */
  readonly read: string;
  /** The month that the source states, or else the month in which it was read. */
  readonly date: string;
}

export const REGION = "us-east-1";

/** Makes a price; `page` is relative to https://aws.amazon.com/. */
function price(dollars: number, unit: string, page: string, read: string, date: string): Price {
  return { dollars, unit, page: `https://aws.amazon.com/${page}`, read, date };
}

const EC2 = "ec2/pricing/on-demand/";
/** Noted from AWS's pages when the project began, and not read again since. */
const NOTED = "noted when the project began";
const QUOTED = {
  fargate: "https://cloudburn.io/blog/aws-fargate-pricing",
  endpoints: "https://awsnegotiations.com/privatelink-cost-analysis.html",
  api: "https://go-cloud.io/aws-api-gateway-pricing",
  lambda: "https://git.mcrn.ar/mariano/lambda_local_runner/src/branch/main/docs/lambdas-md/lambda-13-cost.md",
  metrics: "https://signoz.io/guides/cloudwatch-pricing",
  cloudwatch: "https://www.factualminds.com/blog/amazon-cloudwatch-pricing-metrics-logs-alarms-dashboards/",
  kms: "https://aws.amazon.com/kms/pricing/",
  transitions: "https://www.wring.co/blog/aws-step-functions-pricing-guide",
} as const;
/** Several places quote the same price; no single one is worth naming. */
const COMMON = "quoted alike in several places";

export const PRICES = {
  /** Price for one machine and hour. */
  nodes: {
    "i4g.large": price(0.154, "hour", EC2, NOTED, "2026-11"),
    "i4g.xlarge": price(0.309, "hour", EC2, NOTED, "2026-11"),
    "i4g.2xlarge": price(0.618, "hour", EC2, NOTED, "2026-11"),
    "i4g.4xlarge": price(1.2355, "hour", EC2, NOTED, "2026-11"),
  },
  ebs: price(0.08, "GB and month of gp3", "ebs/pricing/", COMMON, "2026-09"),
  brokers: { "kafka.m7g.large": price(0.204, "hour", "msk/pricing/", NOTED, "2026-11") },
  brokerStorage: price(0.1, "GB and month", "msk/pricing/", COMMON, "2026-11"),
  fargateProcessor: price(0.03238, "vCPU and hour, arm64", "fargate/pricing/", QUOTED.fargate, "2026-03"),
  fargateMemory: price(0.00356, "GB and hour, arm64", "fargate/pricing/", QUOTED.fargate, "2026-03"),
  balancer: price(0.0225, "hour", "elasticloadbalancing/pricing/", QUOTED.endpoints, "2026-05"),
  endpoint: price(0.01, "zone and hour", "privatelink/pricing/", QUOTED.endpoints, "2026-05"),
  endpointData: price(0.01, "GB", "privatelink/pricing/", QUOTED.endpoints, "2026-05"),
  requests: price(3.5, "million requests of a REST API", "api-gateway/pricing/", QUOTED.api, "2026-11"),
  invocations: price(0.2, "million invocations", "lambda/pricing/", QUOTED.lambda, "2026-05"),
  duration: price(0.0000133334, "GB and second, arm64", "lambda/pricing/", QUOTED.lambda, "2026-05"),
  transitions: price(
    0.025,
    "thousand state transitions",
    "step-functions/pricing/",
    QUOTED.transitions,
    "2026-03",
  ),
  mapReads: price(0.125, "million read units", "dynamodb/pricing/on-demand/", NOTED, "2026-11"),
  mapWrites: price(0.625, "million write units", "dynamodb/pricing/on-demand/", NOTED, "2026-11"),
  objects: price(0.023, "GB and month", "s3/pricing/", COMMON, "2026-09"),
  puts: price(0.005, "thousand writes", "s3/pricing/", COMMON, "2026-09"),
  key: price(1, "key and month", "kms/pricing/", QUOTED.kms, "2026-06"),
  secret: price(0.4, "secret and month", "secrets-manager/pricing/", COMMON, "2026-11"),
  metric: price(0.3, "metric and month", "cloudwatch/pricing/", QUOTED.metrics, "2026-02"),
  alarm: price(0.1, "metric of an alarm and month", "cloudwatch/pricing/", QUOTED.cloudwatch, "2026-06"),
  logs: price(0.5, "GB taken in", "cloudwatch/pricing/", QUOTED.cloudwatch, "2026-06"),
  betweenZones: price(0.01, "GB, each way", EC2, COMMON, "2026-11"),
  outward: price(0.09, "GB to the internet", EC2, COMMON, "2026-11"),
} as const;
