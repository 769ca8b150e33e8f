/**
 * Feature flags of the CDK with which the constructs are written and tested. An app outside of this repository may have
 * others, so the constructs and stacks set them for themselves and what is below them. `cdk.json` has the same ones.
 */
import type { Construct } from "constructs";

export const FLAGS: Readonly<Record<string, boolean>> = {
  "@aws-cdk/aws-iam:minimizePolicies": true,
  "@aws-cdk/aws-s3:serverAccessLogsUseBucketPolicy": true,
  "@aws-cdk/aws-s3:createDefaultLoggingPolicy": true,
  "@aws-cdk/aws-ec2:launchTemplateDefaultUserData": true,
  "@aws-cdk/aws-ec2:uniqueImdsv2TemplateName": true,
  "@aws-cdk/aws-ecs:arnFormatIncludesClusterName": true,
  "@aws-cdk/aws-ecs:removeDefaultDeploymentAlarm": true,
  "@aws-cdk/aws-ecs:reduceEc2FargateCloudWatchPermissions": true,
  "@aws-cdk/aws-autoscaling:generateLaunchTemplateInsteadOfLaunchConfig": true,
  // A change that no version of a function keeps, such as a reserved concurrency, makes no new version: AWS would refuse it.
  "@aws-cdk/aws-lambda:recognizeVersionProps": true,
  "@aws-cdk/aws-lambda:recognizeLayerVersion": true,
  "@aws-cdk/customresources:installLatestAwsSdkDefault": false,
  "@aws-cdk/aws-apigateway:disableCloudWatchRole": true,
};

/** Sets the flags of a construct, which must not have children yet. */
export function setFlags(construct: Construct): void {
  for (const [name, value] of Object.entries(FLAGS)) construct.node.setContext(name, value);
}
