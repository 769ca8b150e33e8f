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
 * - `nodes`: the number of nodes
 * - `sessionManager`: "true" for shells on machines
 * - `apiGatewayAccountRole`: "false" if API Gateway has a role for logs in this account and region already
 * - `backup`: "true" for backups and archives of the log
 * - `restoreFrom`: a bucket with backups, from which the graph is to be restored; `restoreKey`: the ARN of its key
 * - `patience`: how many seconds a lost node has to come back before its replicas are restored on other nodes
 */
import { App, Duration, Validations } from "aws-cdk-lib";
import { Key } from "aws-cdk-lib/aws-kms";
import { Bucket, type IBucket } from "aws-cdk-lib/aws-s3";
import { AwsSolutionsChecks } from "cdk-nag";
import { type GivenLogProps, type QueryProps, ServiceStack, StateStack } from "../lib/index.ts";
import { SIZES } from "./sizes.ts";

const app = new App();
const context = (name: string, otherwise: string): string => app.node.tryGetContext(name) ?? otherwise;
const name = context("name", "tidegraph");
const addresses = context("brokers", "");
// The constructs refuse values that are not allowed.
const security = context("brokersSecurity", "tls") as NonNullable<GivenLogProps["security"]>;
const architecture = context("queryArchitecture", "arm64") as NonNullable<QueryProps["architecture"]>;
const copies = Number(context("brokersCopies", "3"));
const size = SIZES.production;
const count = Number(context("workers", String(size.workers.count)));
const mode = context("encryption", "");
const names = context("graphs", "");
const graphs = names === "" ? [] : names.split(",").map((name) => ({ name, partitions: 16 }));
const isOn = (name: string, otherwise = "false"): boolean => {
  const value = context(name, otherwise);
  if (value !== "true" && value !== "false")
    throw new Error(`${name} is ${value}, and has to be true or false`);
  return value === "true";
};
const restoreFrom = context("restoreFrom", "");
const restoreKey = context("restoreKey", "");
const patience = Duration.seconds(Number(context("patience", "120")));

const protects = context("protect", "true") !== "false";

const stateStack = new StateStack(app, "State", {
  stackName: `${name}-state`,
  terminationProtection: protects,
  deletionProtection: protects,
  name,
  log: addresses === "" ? size.log : { addresses, security, copies },
});
const { state } = stateStack;
new ServiceStack(app, "Service", {
  stackName: `${name}-service`,
  state,
  bundle: context("bundle", "../dist/arm64"),
  partitions: size.partitions,
  replication: size.replication,
  graphs,
  nodes: {
    ...size.nodes,
    count: Number(context("nodes", String(size.nodes.count))),
    sessionManager: isOn("sessionManager"),
    // As long as a restore may take; nodes join after it.
    ...(restoreFrom !== "" && { joinPatience: Duration.hours(2) }),
  },
  query: { architecture, ...size.query },
  apiGatewayAccountRole: isOn("apiGatewayAccountRole", "true"),
  rebalance: { patience },
  ...(mode !== "" && { encryption: { mode } }),
  ...(isOn("backup") && { backup: {} }),
  ...(restoreFrom !== "" && { restoreFrom: backups() }),
  workers: count === 0 ? false : { ...size.workers, count, most: Math.max(count, size.workers.most) },
});
Validations.of(app).addPlugins(new AwsSolutionsChecks(app));

/** Returns the bucket to restore from, with its key, which nodes need to read it. */
function backups(): IBucket {
  return Bucket.fromBucketAttributes(stateStack, "Backups", {
    bucketName: restoreFrom,
    ...(restoreKey !== "" && { encryptionKey: Key.fromKeyArn(stateStack, "BackupsKey", restoreKey) }),
  });
}
