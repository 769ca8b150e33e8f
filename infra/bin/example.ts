/**
 * The example app: one graph in its own VPC across three zones. `docs/deploy.md` walks through it.
 *
 * Context (`cdk … -c name=value`):
 *
 * - `bundle`: the folder with the programs for arm64
 * - `name`: the name of the deployment
 * - `brokers`: addresses of an existing Kafka, used instead of MSK; `brokersSecurity`: "tls" or "plaintext";
 *   `brokersCopies`: copies of each record
 * - `queryArchitecture`: "x86_64" if `bootstrap`, `tidegraph-rebalance` and `tidegraph-ingest` are built for it
 * - `workers`: the number of workers; 0 for none, so that no Docker is needed
 * - `protect`: "false" for the first deployment of the state, so that CloudFormation can remove what a failed one left;
 *   every later deployment protects the stack and the table
 * - `encryption`: "required" or "accepted", for certificates between processes
 * - `graphs`: names of further graphs, with commas between them; each has 16 partitions
 * - `patience`: how many seconds a lost node has to come back before its replicas are restored on other nodes
 */
import { App, Duration, Validations } from "aws-cdk-lib";
import { AwsSolutionsChecks } from "cdk-nag";
import { type GivenLogProps, type QueryProps, ServiceStack, StateStack } from "../lib/index.ts";

const app = new App();
const context = (name: string, otherwise: string): string => app.node.tryGetContext(name) ?? otherwise;
const name = context("name", "tidegraph");
const addresses = context("brokers", "");
// The constructs refuse values that are not allowed.
const security = context("brokersSecurity", "tls") as NonNullable<GivenLogProps["security"]>;
const architecture = context("queryArchitecture", "arm64") as NonNullable<QueryProps["architecture"]>;
const copies = Number(context("brokersCopies", "3"));
const count = Number(context("workers", "2"));
const mode = context("encryption", "");
const names = context("graphs", "");
const graphs = names === "" ? [] : names.split(",").map((name) => ({ name, partitions: 16 }));
const patience = Duration.seconds(Number(context("patience", "120")));

const protects = context("protect", "true") !== "false";

const { state } = new StateStack(app, "State", {
  stackName: `${name}-state`,
  terminationProtection: protects,
  deletionProtection: protects,
  name,
  ...(addresses !== "" && { log: { addresses, security, copies } }),
});
new ServiceStack(app, "Service", {
  stackName: `${name}-service`,
  state,
  bundle: context("bundle", "../dist/arm64"),
  partitions: 64,
  replication: 2,
  graphs,
  nodes: { count: 3, instanceType: "i4g.xlarge" },
  query: { architecture, memoryMib: 1769, timeoutSeconds: 120, requestsPerSecond: 500, burst: 1000 },
  rebalance: { patience },
  ...(mode !== "" && { encryption: { mode } }),
  workers: count === 0 ? false : { count, most: Math.max(count, 6) },
});
Validations.of(app).addPlugins(new AwsSolutionsChecks(app));
