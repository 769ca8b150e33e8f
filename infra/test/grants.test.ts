/** What the grants of `GraphService` allow, and what AWS's own rules (cdk-nag) say about an app that uses them. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Stack, Validations } from "aws-cdk-lib";
import * as iam from "aws-cdk-lib/aws-iam";
import { AwsSolutionsChecks } from "cdk-nag";
import type { IConstruct } from "constructs";
import { GraphService } from "../lib/index.ts";
import { ServiceStack } from "../lib/stacks/service-stack.ts";
import { StateStack } from "../lib/stacks/state-stack.ts";
import { placeholders, testApp } from "./support.ts";

/** The names of all grants. */
const GRANTS = Object.getOwnPropertyNames(GraphService.prototype).filter((name) => name.startsWith("grant"));

type Grant = (grantee: iam.IGrantable, graph?: string) => iam.Grant;

/** Calls a grant by its name. */
function call(service: GraphService, name: string, ...args: Parameters<Grant>): iam.Grant {
  return (service as unknown as Record<string, Grant>)[name]?.apply(service, args) as iam.Grant;
}

/** An app with everything that a grant can be about. */
function deployed() {
  const app = testApp();
  const { state } = new StateStack(app, "State", { name: "example", graph: "people" });
  const stack = new ServiceStack(app, "Service", {
    ...{ state, bundle: placeholders(), backup: {}, encryption: {}, nodes: { most: 9 } },
    graphs: [{ name: "orders" }],
  });
  return { app, stack, service: stack.service };
}

/** Returns the findings of AWS's rules below a construct, each with the path of its resource. */
function findings(root: IConstruct, scope: IConstruct): string[] {
  return new AwsSolutionsChecks(root)
    .validateScope(scope)
    .violations.flatMap(({ ruleName, violatingResources }) =>
      violatingResources.map(({ constructPath }) => `${constructPath}: ${ruleName}`),
    );
}

test("an app that uses every grant passes AWS's rules", () => {
  assert.ok(GRANTS.length >= 6, GRANTS.join());
  const { app, stack, service } = deployed();
  const elsewhere = new Stack(app, "Callers");
  const assumedBy = new iam.AccountRootPrincipal();
  for (const name of GRANTS) {
    for (const scope of [stack, elsewhere]) {
      const imported = iam.Role.fromRoleName(scope, `${name}Imported`, `${name}-role`);
      const managed = new iam.ManagedPolicy(scope, `${name}Policy`);
      for (const grantee of [new iam.Role(scope, `${name}Role`, { assumedBy }), imported, managed]) {
        call(service, name, grantee).assertSuccess();
        if (!["grantAdmin", "grantOperate"].includes(name))
          call(service, name, grantee, "orders").assertSuccess();
      }
    }
  }
  Validations.of(app).addPlugins(new AwsSolutionsChecks(app));
  app.synth();
  assert.deepEqual(findings(app, app), []);
});
