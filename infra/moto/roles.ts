/** Makers of the templates' roles and policies in moto's IAM, and names for what policies refer to besides. */
import * as iam from "@aws-sdk/client-iam";
import { ACCOUNT, type Maker, type Properties, REGION } from "./create.ts";

/** Makers by CloudFormation type. Policies of AWS are not attached: moto has none unless it is told to. */
export function roles(client: iam.IAMClient): Record<string, Maker> {
  const put = async (RoleName: string, PolicyName: string, document: Properties): Promise<void> => {
    const PolicyDocument = JSON.stringify(document);
    await client.send(new iam.PutRolePolicyCommand({ RoleName, PolicyName, PolicyDocument }));
  };
  return {
    "AWS::IAM::Role": async (_, { AssumeRolePolicyDocument, Policies = [] }, id) => {
      const RoleName = id.slice(-64);
      const document = JSON.stringify(AssumeRolePolicyDocument);
      const made = new iam.CreateRoleCommand({ RoleName, AssumeRolePolicyDocument: document });
      const { Role } = await client.send(made);
      for (const { PolicyName, PolicyDocument } of Policies) await put(RoleName, PolicyName, PolicyDocument);
      return { ref: RoleName, attributes: { Arn: Role?.Arn ?? "" } };
    },
    "AWS::IAM::Policy": async (_, { PolicyName, PolicyDocument, Roles }) => {
      for (const role of Roles) await put(role, PolicyName, PolicyDocument);
      return { ref: PolicyName, attributes: {} };
    },
    // Nothing here writes logs or starts machines: they need names only.
    "AWS::Logs::LogGroup": async (_, { LogGroupName }, id) => {
      const ref = LogGroupName ?? id;
      return { ref, attributes: { Arn: `arn:aws:logs:${REGION}:${ACCOUNT}:log-group:${ref}:*` } };
    },
    "AWS::StepFunctions::StateMachine": async (_, { StateMachineName }, id) => {
      const Name = StateMachineName ?? id;
      const ref = `arn:aws:states:${REGION}:${ACCOUNT}:stateMachine:${Name}`;
      return { ref, attributes: { Arn: ref, Name } };
    },
  };
}
