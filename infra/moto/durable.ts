/** Makers of what outlives processes (table, buckets, key) and of secrets, alarms and their topic, in moto. */
import * as cw from "@aws-sdk/client-cloudwatch";
import * as dynamodb from "@aws-sdk/client-dynamodb";
import { CreateRouteTableCommand, CreateVpcEndpointCommand } from "@aws-sdk/client-ec2";
import * as iam from "@aws-sdk/client-iam";
import * as kms from "@aws-sdk/client-kms";
import * as lambda from "@aws-sdk/client-lambda";
import * as s3 from "@aws-sdk/client-s3";
import * as sm from "@aws-sdk/client-secrets-manager";
import * as sns from "@aws-sdk/client-sns";
import { ACCOUNT, type Made, type Maker, type Properties, REGION } from "./create.ts";

/** Clients of moto's services for these resources. */
export class DurableClients {
  readonly cw: cw.CloudWatchClient;
  readonly dynamodb: dynamodb.DynamoDBClient;
  readonly iam: iam.IAMClient;
  readonly kms: kms.KMSClient;
  readonly lambda: lambda.LambdaClient;
  readonly s3: s3.S3Client;
  readonly sm: sm.SecretsManagerClient;
  readonly sns: sns.SNSClient;

  constructor(endpoint: string) {
    const options = {
      endpoint,
      region: REGION,
      credentials: { accessKeyId: "test", secretAccessKey: "test" },
    };
    this.cw = new cw.CloudWatchClient(options);
    this.dynamodb = new dynamodb.DynamoDBClient(options);
    this.iam = new iam.IAMClient(options);
    this.kms = new kms.KMSClient(options);
    this.lambda = new lambda.LambdaClient(options);
    this.s3 = new s3.S3Client({ ...options, forcePathStyle: true });
    this.sm = new sm.SecretsManagerClient(options);
    this.sns = new sns.SNSClient(options);
  }

  destroy(): void {
    for (const client of [
      this.cw,
      this.dynamodb,
      this.iam,
      this.kms,
      this.lambda,
      this.s3,
      this.sm,
      this.sns,
    ])
      client.destroy();
  }
}

/** Makers by CloudFormation type. */
export function durable(clients: DurableClients): Record<string, Maker> {
  let role: Promise<string> | undefined;
  return {
    "AWS::EC2::RouteTable": async ({ ec2 }, { VpcId }) => {
      const { RouteTable } = await ec2.send(new CreateRouteTableCommand({ VpcId }));
      return { ref: RouteTable?.RouteTableId ?? "" };
    },
    "AWS::EC2::VPCEndpoint": async ({ ec2 }, properties) => {
      const { VpcId, VpcEndpointType, SubnetIds, RouteTableIds, PrivateDnsEnabled } = properties;
      const { ServiceName } = properties;
      const asked = { VpcId, ServiceName, VpcEndpointType, SubnetIds, RouteTableIds, PrivateDnsEnabled };
      const { VpcEndpoint } = await ec2.send(new CreateVpcEndpointCommand(asked));
      return { ref: VpcEndpoint?.VpcEndpointId ?? "" };
    },
    "AWS::KMS::Key": async (_, { Description, EnableKeyRotation, KeyPolicy }) => {
      const Policy = KeyPolicy && JSON.stringify(KeyPolicy);
      const { KeyMetadata } = await clients.kms.send(new kms.CreateKeyCommand({ Description, Policy }));
      const { KeyId = "", Arn = "" } = KeyMetadata ?? {};
      if (EnableKeyRotation) await clients.kms.send(new kms.EnableKeyRotationCommand({ KeyId }));
      return { ref: KeyId, attributes: { Arn } };
    },
    "AWS::S3::Bucket": async (_, properties, id) => makeBucket(clients, properties, id),
    "AWS::DynamoDB::Table": async (_, properties, id) => makeTable(clients, { TableName: id, ...properties }),
    "AWS::SecretsManager::Secret": async (_, { Description, KmsKeyId, GenerateSecretString }, Name) => {
      const generated = GenerateSecretString && { SecretString: "a-secret-that-is-long-enough" };
      const secret = { Name, Description, KmsKeyId, ...generated };
      const { ARN = "" } = await clients.sm.send(new sm.CreateSecretCommand(secret));
      return { ref: ARN };
    },
    "AWS::SNS::Topic": async (_, __, Name) => {
      const { TopicArn = "" } = await clients.sns.send(new sns.CreateTopicCommand({ Name }));
      return { ref: TopicArn };
    },
    "AWS::Lambda::Function": async (_, __, FunctionName) => {
      role ??= makeRole(clients);
      const Role = await role;
      const Code = { ZipFile: EMPTY_ZIP };
      const made = { FunctionName, Role, Code, Runtime: "provided.al2023", Handler: "bootstrap" } as const;
      const { FunctionArn = "" } = await clients.lambda.send(new lambda.CreateFunctionCommand(made));
      return { ref: FunctionName, attributes: { Arn: FunctionArn } };
    },
    "AWS::Lambda::Version": async (_, { FunctionName }) => {
      const { Version = "", FunctionArn = "" } = await clients.lambda.send(
        new lambda.PublishVersionCommand({ FunctionName }),
      );
      return { ref: FunctionArn, attributes: { Version } };
    },
    "AWS::Lambda::Alias": async (_, { FunctionName, FunctionVersion, Name }) => {
      const alias = { FunctionName, FunctionVersion, Name };
      const { AliasArn = "" } = await clients.lambda.send(new lambda.CreateAliasCommand(alias));
      return { ref: AliasArn };
    },
    "AWS::CloudWatch::Alarm": async (_, properties, AlarmName) => {
      const { Metrics, ...rest } = properties;
      const metrics = Metrics && { Metrics };
      const named = { AlarmName, ...rest, ...metrics };
      await clients.cw.send(new cw.PutMetricAlarmCommand(named));
      return madeAlarm(named.AlarmName);
    },
    "AWS::CloudWatch::CompositeAlarm": async (_, properties) => {
      await clients.cw.send(new cw.PutCompositeAlarmCommand(properties));
      return madeAlarm(properties.AlarmName);
    },
  };
}

const madeAlarm = (name: string): Made => ({
  ref: name,
  attributes: { Arn: `arn:aws:cloudwatch:${REGION}:${ACCOUNT}:alarm:${name}` },
});

/** A zip without files. */
export const EMPTY_ZIP = Buffer.from("UEsFBgAAAAAAAAAAAAAAAAAAAAAAAA==", "base64");

/** Makes the one role of all functions: moto asks whether a function's role exists. */
async function makeRole({ iam: client }: DurableClients): Promise<string> {
  const AssumeRolePolicyDocument = JSON.stringify({
    Version: "2012-10-17",
    Statement: [
      { Effect: "Allow", Principal: { Service: "lambda.amazonaws.com" }, Action: "sts:AssumeRole" },
    ],
  });
  const made = new iam.CreateRoleCommand({ RoleName: "functions", AssumeRolePolicyDocument });
  return (await client.send(made)).Role?.Arn ?? "";
}

async function makeBucket({ s3: client }: DurableClients, properties: Properties, id: string): Promise<Made> {
  const Bucket = id.toLowerCase();
  const at = { LocationConstraint: REGION } as const;
  await client.send(new s3.CreateBucketCommand({ Bucket, CreateBucketConfiguration: at }));
  const {
    BucketEncryption,
    LifecycleConfiguration,
    NotificationConfiguration,
    PublicAccessBlockConfiguration,
    VersioningConfiguration,
  } = properties;
  if (VersioningConfiguration)
    await client.send(new s3.PutBucketVersioningCommand({ Bucket, VersioningConfiguration }));
  const Rules = BucketEncryption.ServerSideEncryptionConfiguration.map(
    ({ ServerSideEncryptionByDefault: by, BucketKeyEnabled }: Properties) => ({
      BucketKeyEnabled,
      ApplyServerSideEncryptionByDefault: {
        SSEAlgorithm: by.SSEAlgorithm,
        KMSMasterKeyID: by.KMSMasterKeyID,
      },
    }),
  );
  const ServerSideEncryptionConfiguration = { Rules };
  await client.send(new s3.PutBucketEncryptionCommand({ Bucket, ServerSideEncryptionConfiguration }));
  await client.send(new s3.PutPublicAccessBlockCommand({ Bucket, PublicAccessBlockConfiguration }));
  const LifecycleRules = LifecycleConfiguration.Rules.map((rule: Properties, index: number) => ({
    ID: `rule-${index}`,
    Status: rule.Status,
    Filter: { Prefix: rule.Prefix ?? "" },
    ...((rule.ExpirationInDays || rule.ExpiredObjectDeleteMarker) && {
      Expiration: rule.ExpirationInDays
        ? { Days: rule.ExpirationInDays }
        : { ExpiredObjectDeleteMarker: true },
    }),
    ...(rule.NoncurrentVersionExpiration && {
      NoncurrentVersionExpiration: rule.NoncurrentVersionExpiration,
    }),
    ...(rule.AbortIncompleteMultipartUpload && {
      AbortIncompleteMultipartUpload: rule.AbortIncompleteMultipartUpload,
    }),
  }));
  await client.send(
    new s3.PutBucketLifecycleConfigurationCommand({
      Bucket,
      LifecycleConfiguration: { Rules: LifecycleRules },
    }),
  );
  if (NotificationConfiguration?.EventBridgeConfiguration) {
    const told = { EventBridgeConfiguration: {} };
    await client.send(
      new s3.PutBucketNotificationConfigurationCommand({ Bucket, NotificationConfiguration: told }),
    );
  }
  return { ref: Bucket, attributes: { Arn: `arn:aws:s3:::${Bucket}` } };
}

async function makeTable({ dynamodb: client }: DurableClients, properties: Properties): Promise<Made> {
  const {
    PointInTimeRecoverySpecification,
    SSESpecification: { SSEEnabled: Enabled, SSEType, KMSMasterKeyId },
    TimeToLiveSpecification: _,
    ...rest
  } = properties;
  const SSESpecification = { Enabled, SSEType, KMSMasterKeyId };
  const { TableDescription } = await client.send(
    new dynamodb.CreateTableCommand({ ...rest, SSESpecification }),
  );
  const { TableName = "", TableArn = "" } = TableDescription ?? {};
  if (PointInTimeRecoverySpecification) {
    const recovery = { TableName, PointInTimeRecoverySpecification };
    await client.send(new dynamodb.UpdateContinuousBackupsCommand(recovery));
  }
  return { ref: TableName, attributes: { Arn: TableArn } };
}
