/** What `doctor.test.ts` does to a deployment in moto: everything that people change by mistake. */
import * as asg from "@aws-sdk/client-auto-scaling";
import * as cw from "@aws-sdk/client-cloudwatch";
import * as dynamodb from "@aws-sdk/client-dynamodb";
import * as ec2 from "@aws-sdk/client-ec2";
import * as elb from "@aws-sdk/client-elastic-load-balancing-v2";
import * as kms from "@aws-sdk/client-kms";
import * as s3 from "@aws-sdk/client-s3";
import * as sm from "@aws-sdk/client-secrets-manager";
import * as sns from "@aws-sdk/client-sns";
import type { Account } from "./account.ts";
import type { Clients } from "./create.ts";
import type { DurableClients } from "./durable.ts";

/** The group of storage nodes. */
export const GROUP = "example-nodes";

/** A deployment in moto. */
interface Parts {
  readonly account: Account;
  readonly clients: Clients;
  readonly stored: DurableClients;
  readonly machines: readonly string[];
  readonly launchTemplate: string | undefined;
  /** Returns the physical name of the only resource of a type whose logical id ends so. */
  readonly physical: (stack: "State" | "Service", type: string, ending: string) => Promise<string>;
  readonly diskUsed: (percent: number) => Promise<void>;
  /** Replaces the certificate by one that ends in some days. */
  readonly renewCertificate: (days: number) => Promise<unknown>;
}

/** Changes everything that AWS holds, as people do by mistake. */
export async function breakResources(parts: Parts): Promise<void> {
  const { situation } = parts.account;
  Object.assign(situation, {
    stackStatus: "UPDATE_ROLLBACK_FAILED",
    protects: false,
    quota: 8,
    fargate: 1,
    functions: 10,
    topic: { partitions: 3, copies: 2, configs: "retention.ms=604800000\ncleanup.policy=delete" },
    brokerSettings: situation.brokerSettings.replace("log.retention.ms=-1", "log.retention.ms=604800000"),
    clusterState: "FAILED",
    eventBridge: false,
    workers: 1,
    status: { code: 503, body: { code: "ServiceUnavailableException", message: "no node answers" } },
  });
  await breakState(parts);
  await breakGroup(parts);
  await breakService(parts);
}

async function breakState({ stored, physical, diskUsed }: Parts): Promise<void> {
  const TableName = await physical("State", "AWS::DynamoDB::Table", "MapTable");
  const open = { TableName, DeletionProtectionEnabled: false };
  await stored.dynamodb.send(new dynamodb.UpdateTableCommand(open));
  const PointInTimeRecoverySpecification = { PointInTimeRecoveryEnabled: false };
  await stored.dynamodb.send(
    new dynamodb.UpdateContinuousBackupsCommand({ TableName, PointInTimeRecoverySpecification }),
  );
  const Bucket = await physical("State", "AWS::S3::Bucket", "BucketsData");
  const VersioningConfiguration = { Status: "Suspended" } as const;
  await stored.s3.send(new s3.PutBucketVersioningCommand({ Bucket, VersioningConfiguration }));
  const ApplyServerSideEncryptionByDefault = { SSEAlgorithm: "AES256" } as const;
  const ServerSideEncryptionConfiguration = { Rules: [{ ApplyServerSideEncryptionByDefault }] };
  await stored.s3.send(new s3.PutBucketEncryptionCommand({ Bucket, ServerSideEncryptionConfiguration }));
  await stored.s3.send(new s3.DeletePublicAccessBlockCommand({ Bucket }));
  await stored.s3.send(new s3.DeleteBucketLifecycleCommand({ Bucket }));
  const backups = await physical("Service", "AWS::S3::Bucket", "BackupBucket");
  const Key = "people/manifests/20261126T050000Z-1f0c9a3e.json";
  await stored.s3.send(new s3.DeleteObjectCommand({ Bucket: backups, Key }));
  const ofState = await physical("State", "AWS::KMS::Key", "StateKey");
  await stored.kms.send(new kms.DisableKeyRotationCommand({ KeyId: ofState }));
  const ofBackups = await physical("Service", "AWS::KMS::Key", "BackupKey");
  await stored.kms.send(new kms.ScheduleKeyDeletionCommand({ KeyId: ofBackups, PendingWindowInDays: 7 }));
  await diskUsed(91);
}

async function breakGroup({ clients, machines, launchTemplate: LaunchTemplateId }: Parts): Promise<void> {
  const AutoScalingGroupName = GROUP;
  const [one = "", two = ""] = machines;
  const ill = { InstanceId: one, HealthStatus: "Unhealthy" };
  await clients.asg.send(new asg.SetInstanceHealthCommand(ill));
  const open = { AutoScalingGroupName, InstanceIds: [two], ProtectedFromScaleIn: false };
  await clients.asg.send(new asg.SetInstanceProtectionCommand(open));
  const suspended = { AutoScalingGroupName, ScalingProcesses: ["Launch"] };
  await clients.asg.send(new asg.SuspendProcessesCommand(suspended));
  const hook = { AutoScalingGroupName, LifecycleHookName: "joins" };
  await clients.asg.send(new asg.DeleteLifecycleHookCommand(hook));
  const next = { LaunchTemplateId, SourceVersion: "1", LaunchTemplateData: { EbsOptimized: true } };
  await clients.ec2.send(new ec2.CreateLaunchTemplateVersionCommand(next));
  const changed = { AutoScalingGroupName, LaunchTemplate: { LaunchTemplateId, Version: "2" } };
  await clients.asg.send(new asg.UpdateAutoScalingGroupCommand(changed));
}

async function breakService({ clients, stored, physical, renewCertificate }: Parts): Promise<void> {
  const SecretId = await physical("Service", "AWS::SecretsManager::Secret", "SecretsFleet");
  await stored.sm.send(new sm.DeleteSecretCommand({ SecretId, RecoveryWindowInDays: 7 }));
  const client = await physical("Service", "AWS::SecretsManager::Secret", "SecretsClient");
  await stored.sm.send(new sm.DeleteSecretCommand({ SecretId: client, RecoveryWindowInDays: 7 }));
  await renewCertificate(3);
  const TargetGroupArn = await physical(
    "Service",
    "AWS::ElasticLoadBalancingV2::TargetGroup",
    "WorkersGroup",
  );
  const Targets = [{ Id: "10.0.0.11" }, { Id: "10.0.0.12" }];
  await clients.elb.send(new elb.DeregisterTargetsCommand({ TargetGroupArn, Targets }));
  const alarm = (ending: string) => physical("Service", "AWS::CloudWatch::Alarm", ending);
  const [full, api, errors] = [
    await alarm("WatchLogFull2"),
    await alarm("WatchApiErrors"),
    await alarm("WatchQueryErrors"),
  ];
  const state = { AlarmName: full, StateValue: "ALARM", StateReason: "the disk is full" } as const;
  await stored.cw.send(new cw.SetAlarmStateCommand(state));
  await stored.cw.send(new cw.DeleteAlarmsCommand({ AlarmNames: [api] }));
  await stored.cw.send(new cw.DisableAlarmActionsCommand({ AlarmNames: [errors] }));
  const TopicArn = await physical("Service", "AWS::SNS::Topic", "WatchTopic");
  const { Subscriptions = [] } = await stored.sns.send(new sns.ListSubscriptionsByTopicCommand({ TopicArn }));
  for (const { SubscriptionArn } of Subscriptions)
    await stored.sns.send(new sns.UnsubscribeCommand({ SubscriptionArn }));
}
