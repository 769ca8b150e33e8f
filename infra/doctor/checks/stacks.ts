/** CloudFormation's view: states and protection of the stacks. The key that encrypts everything. */
import { DescribeKeyCommand, GetKeyRotationStatusCommand } from "@aws-sdk/client-kms";
import { absent, type Check, type Finding, failed, ok, warning } from "../finding.ts";

const state: Check = {
  id: "stacks.state",
  actions: [
    "cloudformation:DescribeStacks",
    "cloudformation:ListStackResources",
    "cloudformation:GetTemplate",
  ],
  async look({ deployment }) {
    return deployment.stacks.map(
      ({ StackName = "", StackStatus = "", StackStatusReason: reason }): Finding => {
        const seen = reason ? `${StackStatus}: ${reason}` : StackStatus;
        const rest = {
          subject: StackName,
          wanted: "CREATE_COMPLETE or UPDATE_COMPLETE",
          remedy: `aws cloudformation describe-stack-events --stack-name ${StackName} --query "StackEvents[?contains(ResourceStatus,'FAILED')]", then deploy again`,
        };
        switch (StackStatus as string) {
          case "CREATE_COMPLETE":
          case "UPDATE_COMPLETE":
          case "IMPORT_COMPLETE":
            return ok(seen, StackName);
          // The stack is as before the deployment that failed.
          case "UPDATE_ROLLBACK_COMPLETE":
            return warning(seen, rest);
          default:
            return StackStatus.endsWith("_IN_PROGRESS") && !StackStatus.includes("ROLLBACK")
              ? warning(seen, { ...rest, remedy: "wait until it ends, and look again" })
              : failed(seen, rest);
        }
      },
    );
  },
};

const protection: Check = {
  id: "stacks.protection",
  actions: ["cloudformation:DescribeStacks"],
  async look({ deployment }) {
    const table = deployment.one("AWS::DynamoDB::Table", "MapTable");
    const stack = deployment.stacks.find(({ StackName }) => StackName === table?.stack);
    if (stack === undefined) return absent("none of the stacks has the table of the map");
    const { StackName = "", EnableTerminationProtection: protects = false } = stack;
    if (protects) return ok("termination protection is on", StackName);
    return warning("termination protection is off", {
      subject: StackName,
      wanted: "on: the stack has the graph",
      remedy: `deploy it without -c protect=false, or aws cloudformation update-termination-protection --enable-termination-protection --stack-name ${StackName}`,
    });
  },
};

const key: Check = {
  id: "key.state",
  actions: ["kms:DescribeKey", "kms:GetKeyRotationStatus"],
  async look({ clients, deployment }) {
    const keys = deployment.all("AWS::KMS::Key");
    if (keys.length === 0) return absent("none of the stacks has a key");
    return Promise.all(
      keys.map(async ({ id: KeyId, logicalId }): Promise<Finding> => {
        const { KeyMetadata } = await clients.kms.send(new DescribeKeyCommand({ KeyId }));
        const { KeyState = "?", DeletionDate: deleted } = KeyMetadata ?? {};
        if (KeyState !== "Enabled") {
          const when = deleted ? `, to be deleted on ${deleted.toISOString().slice(0, 10)}` : "";
          return failed(`${KeyState}${when}`, {
            subject: logicalId,
            wanted: "Enabled: without it neither the graph nor its backups can be read",
            remedy: `aws kms cancel-key-deletion --key-id ${KeyId}; aws kms enable-key --key-id ${KeyId}`,
          });
        }
        const { KeyRotationEnabled: rotates = false } = await clients.kms.send(
          new GetKeyRotationStatusCommand({ KeyId }),
        );
        if (rotates) return ok("Enabled, rotated each year", logicalId);
        return warning("Enabled, not rotated", {
          subject: logicalId,
          wanted: "rotated",
          remedy: `aws kms enable-key-rotation --key-id ${KeyId}`,
        });
      }),
    );
  },
};

export const STACKS: readonly Check[] = [state, protection, key];
