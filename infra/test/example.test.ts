/** The context values of the example (`bin/example.ts`) that docs/first-day.md uses. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { exampleTemplates } from "../moto/templates.ts";
import { flat } from "./support.ts";

/** Returns the resources of a type. */
function ofType({ Service }: ReturnType<typeof exampleTemplates>, type: string) {
  return Object.values(Service.Resources).filter(({ Type }) => Type === type);
}

const userData = (templates: ReturnType<typeof exampleTemplates>): string =>
  flat(
    ofType(templates, "AWS::EC2::LaunchTemplate")[0]?.Properties.LaunchTemplateData.UserData["Fn::Base64"],
  );

test("the number of nodes, shells, graphs, backups and a restore are values of the context", () => {
  const key = "arn:aws:kms:eu-west-1:123456789012:key/k";
  const templates = exampleTemplates({
    ...{ nodes: "4", sessionManager: "true", graphs: "orders", backup: "true" },
    ...{ restoreFrom: "backups-of-people", restoreKey: key },
  });
  const [group] = ofType(templates, "AWS::AutoScaling::AutoScalingGroup");
  assert.deepEqual([group?.Properties.MinSize, group?.Properties.MaxSize], ["4", "316"]);
  const script = userData(templates);
  assert.match(script, /^TIDEGRAPH_AWAIT_RESTORE=true$/m);
  assert.match(script, /^TIDEGRAPH_GRAPH=default,orders$/m);
  assert.match(script, /^TIDEGRAPH_ARCHIVE_TO=s3:\/\//m);
  const policies = JSON.stringify(ofType(templates, "AWS::IAM::Policy"));
  for (const allowed of ["ssm:UpdateInstanceInformation", "backups-of-people/*", key])
    assert.ok(policies.includes(allowed), allowed);
});

test("a value that is neither true nor false is refused and named", () => {
  assert.throws(() => exampleTemplates({ backup: "yes" }), /backup is yes, and has to be true or false/);
});
