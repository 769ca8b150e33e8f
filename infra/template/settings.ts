/** The settings of templates that are fixed when they are made, from the flags of `npm run template`. */
import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { SIZES } from "../bin/sizes.ts";
import { InvalidProp, whole } from "../lib/check.ts";
import type { GivenLogProps, LogClusterProps, QueryProps, WorkersProps } from "../lib/index.ts";

const ROOT = join(import.meta.dirname, "..", "..");

/** The text of `--help`. */
export const HELP = `npm run template -- [FLAGS]: writes CloudFormation templates and what they refer to into a folder

  --out FOLDER                 the folder, which is made anew (dist/template)
  --bundle FOLDER              the programs for arm64, of npm run bundle or of a release (dist/arm64)
  --size production|development  defaults of everything below, and of the parameters (production)
  --nodes NUMBERS              numbers of storage nodes, such as 3,6,9: a template of the service for each
  --workers NUMBER             workers at first; 0 for none, and for a template without an image
  --cidr RANGE                 addresses of the VPC (10.42.0.0/16)
  --existing-vpc               a VPC and subnets that parameters name, instead of a new one
  --brokers ADDRESSES          addresses of an existing Kafka, instead of MSK
  --brokers-security tls|plaintext, --brokers-copies NUMBER
  --query-architecture arm64|x86_64  for which the programs of functions are built (arm64)
  --patience SECONDS           how long a lost node has to come back (120)
  --backup                     with backups
  --encryption                 with certificates between processes
  --keep-api-gateway-role      leave the account's role with which API Gateway writes logs, which is set already
  --session-manager            with shells on machines by Systems Manager
`;

/** Settings of templates. */
export interface Settings {
  readonly version: string;
  readonly out: string;
  readonly bundle: string;
  /** Numbers of nodes. The first one is that of `tidegraph-service.template.json`. */
  readonly nodes: readonly number[];
  readonly nodeType: string;
  readonly partitions: number;
  readonly replication: number;
  readonly cidr: string;
  /** Whether parameters name a VPC, instead of a new one. */
  readonly existingVpc: boolean;
  readonly log: GivenLogProps | (LogClusterProps & { readonly instanceType: string });
  readonly query: QueryProps;
  readonly workers: (WorkersProps & { readonly count: number; readonly most: number }) | false;
  readonly patience: number;
  readonly backup: boolean;
  readonly encryption: boolean;
  /** Whether the stack sets the account's role with which API Gateway writes logs. */
  readonly apiGatewayRole: boolean;
  readonly sessionManager: boolean;
}

const OPTIONS = {
  out: { type: "string", default: join(ROOT, "dist", "template") },
  bundle: { type: "string", default: join(ROOT, "dist", "arm64") },
  size: { type: "string", default: "production" },
  nodes: { type: "string" },
  workers: { type: "string" },
  cidr: { type: "string" },
  "existing-vpc": { type: "boolean", default: false },
  brokers: { type: "string" },
  "brokers-security": { type: "string" },
  "brokers-copies": { type: "string" },
  "query-architecture": { type: "string", default: "arm64" },
  patience: { type: "string", default: "120" },
  backup: { type: "boolean", default: false },
  encryption: { type: "boolean", default: false },
  "keep-api-gateway-role": { type: "boolean", default: false },
  "session-manager": { type: "boolean", default: false },
} as const;

/** Reads flags. The constructs check the values that they get. */
export function settingsOf(args: readonly string[]): Settings {
  const { values } = parseArgs({ args: [...args], options: OPTIONS });
  const { version } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));
  if (values["existing-vpc"] && values.cidr !== undefined)
    throw new InvalidProp("--cidr", values.cidr, "left out with --existing-vpc, whose VPC has its addresses");
  for (const flag of ["brokers-security", "brokers-copies"] as const)
    if (values.brokers === undefined && values[flag] !== undefined)
      throw new InvalidProp(`--${flag}`, values[flag], "given with --brokers");
  const size = sizeOf(values.size);
  const nodes = values.nodes?.split(",").map((text) => number("--nodes", text, 1, 300)) ?? [size.nodes.count];
  if (new Set(nodes).size !== nodes.length)
    throw new InvalidProp("--nodes", values.nodes, "different numbers");
  const workers = number("--workers", values.workers ?? String(size.workers.count), 0, 1000);
  const architecture = values["query-architecture"] as NonNullable<QueryProps["architecture"]>;
  return {
    version,
    out: resolve(values.out),
    bundle: resolve(values.bundle),
    nodes,
    nodeType: size.nodes.instanceType,
    partitions: size.partitions,
    replication: size.replication,
    cidr: values.cidr ?? "10.42.0.0/16",
    existingVpc: values["existing-vpc"],
    log: values.brokers === undefined ? size.log : givenLog(values.brokers, values),
    query: { ...size.query, architecture },
    workers:
      workers === 0 ? false : { ...size.workers, count: workers, most: Math.max(workers, size.workers.most) },
    patience: number("--patience", values.patience, 1, 3600),
    backup: values.backup,
    encryption: values.encryption,
    apiGatewayRole: !values["keep-api-gateway-role"],
    sessionManager: values["session-manager"],
  };
}

function sizeOf(name: string): (typeof SIZES)[keyof typeof SIZES] {
  if (name !== "production" && name !== "development")
    throw new InvalidProp("--size", name, "production or development");
  return SIZES[name];
}

function givenLog(
  addresses: string,
  values: { readonly "brokers-security"?: string; readonly "brokers-copies"?: string },
): GivenLogProps {
  const { "brokers-security": security = "tls", "brokers-copies": copies = "3" } = values;
  return {
    addresses,
    security: security as NonNullable<GivenLogProps["security"]>,
    copies: number("--brokers-copies", copies, 1, 9),
  };
}

function number(flag: string, text: string, least: number, most: number): number {
  if (!/^\d{1,9}$/.test(text)) throw new InvalidProp(flag, text, `a whole number from ${least} to ${most}`);
  return whole(flag, Number(text), least, most);
}
