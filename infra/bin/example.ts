/**
 * The example: one graph in a VPC of its own, over three zones. `docs/deploy.md` goes through it.
 *
 * Context (`cdk … -c name=value`): `bundle`, the folder with the programs for arm64; `name`, what everything is called.
 */
import { App, Validations } from "aws-cdk-lib";
import { AwsSolutionsChecks } from "cdk-nag";
import { ServiceStack, StateStack } from "../lib/index.ts";

const app = new App();
const context = (name: string, otherwise: string): string => app.node.tryGetContext(name) ?? otherwise;
const name = context("name", "tidegraph");

const { state } = new StateStack(app, "State", { stackName: `${name}-state`, name });
new ServiceStack(app, "Service", {
  stackName: `${name}-service`,
  state,
  bundle: context("bundle", "../dist/arm64"),
  partitions: 64,
  replication: 2,
  nodes: { count: 3, instanceType: "i4g.xlarge" },
  query: { memoryMib: 1769, timeoutSeconds: 120, requestsPerSecond: 500, burst: 1000 },
  workers: { count: 2, most: 6 },
});
Validations.of(app).addPlugins(new AwsSolutionsChecks(app));
