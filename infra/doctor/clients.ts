/**
 * Clients of AWS's services, made when they are first used. Each call that fails is thrown as `CallFailed`, with the
 * action that IAM knows it by, and each answer's date is compared with the clock here.
 */
import * as acm from "@aws-sdk/client-acm";
import * as asg from "@aws-sdk/client-auto-scaling";
import * as cfn from "@aws-sdk/client-cloudformation";
import * as cw from "@aws-sdk/client-cloudwatch";
import * as dynamodb from "@aws-sdk/client-dynamodb";
import * as ec2 from "@aws-sdk/client-ec2";
import * as ecs from "@aws-sdk/client-ecs";
import * as elb from "@aws-sdk/client-elastic-load-balancing-v2";
import * as iam from "@aws-sdk/client-iam";
import * as kafka from "@aws-sdk/client-kafka";
import * as kms from "@aws-sdk/client-kms";
import * as lambda from "@aws-sdk/client-lambda";
import * as s3 from "@aws-sdk/client-s3";
import * as sm from "@aws-sdk/client-secrets-manager";
import * as quotas from "@aws-sdk/client-service-quotas";
import * as sns from "@aws-sdk/client-sns";
import * as sts from "@aws-sdk/client-sts";
import { CallFailed } from "./finding.ts";

/** What all clients have in common. */
export interface ClientOptions {
  readonly region: string;
  /** The profile of AWS's configuration files. */
  readonly profile?: string | undefined;
}

/** The prefix of a service's actions in IAM, by the name of its client. */
const PREFIX: Readonly<Record<string, string>> = {
  ACMClient: "acm",
  AutoScalingClient: "autoscaling",
  CloudFormationClient: "cloudformation",
  CloudWatchClient: "cloudwatch",
  DynamoDBClient: "dynamodb",
  EC2Client: "ec2",
  ECSClient: "ecs",
  ElasticLoadBalancingV2Client: "elasticloadbalancing",
  IAMClient: "iam",
  KMSClient: "kms",
  KafkaClient: "kafka",
  LambdaClient: "lambda",
  S3Client: "s3",
  SNSClient: "sns",
  STSClient: "sts",
  SecretsManagerClient: "secretsmanager",
  ServiceQuotasClient: "servicequotas",
};

/** Operations whose action in IAM has another name. */
const ACTION: Readonly<Record<string, string>> = {
  "s3:GetBucketEncryption": "s3:GetEncryptionConfiguration",
  "s3:GetBucketLifecycleConfiguration": "s3:GetLifecycleConfiguration",
  "s3:GetBucketNotificationConfiguration": "s3:GetBucketNotification",
  "s3:GetPublicAccessBlock": "s3:GetBucketPublicAccessBlock",
  "s3:ListObjectsV2": "s3:ListBucket",
};

/** Time limits of one request, in milliseconds. */
const CONNECT_MS = 5_000;
const ANSWER_MS = 20_000;

/** A date that an answer had, against the clock here. */
export interface ClockDifference {
  /** How far the clock here is ahead, in milliseconds. */
  readonly aheadMs: number;
  /** How wrong that may be: half the time of the request, and the second to which dates are rounded. */
  readonly uncertainMs: number;
}

interface Stack {
  // biome-ignore lint/suspicious/noExplicitAny: the middlewares of all clients, whose types differ
  add(middleware: any, options: any): void;
}

export class Clients {
  /** The differences that the answers so far showed. */
  readonly differences: ClockDifference[] = [];
  readonly #options: object;
  readonly #made = new Map<string, { destroy(): void }>();

  constructor({ region, profile }: ClientOptions) {
    this.#options = {
      // Without one, the SDK looks for it in the environment and the profile.
      ...(region !== "" && { region }),
      ...(profile !== undefined && { profile }),
      maxAttempts: 4,
      requestHandler: {
        connectionTimeout: CONNECT_MS,
        requestTimeout: ANSWER_MS,
        throwOnRequestTimeout: true,
      },
    };
  }

  get acm() {
    return this.#client("acm", acm.ACMClient);
  }
  get asg() {
    return this.#client("asg", asg.AutoScalingClient);
  }
  get cfn() {
    return this.#client("cfn", cfn.CloudFormationClient);
  }
  get cw() {
    return this.#client("cw", cw.CloudWatchClient);
  }
  get dynamodb() {
    return this.#client("dynamodb", dynamodb.DynamoDBClient);
  }
  get ec2() {
    return this.#client("ec2", ec2.EC2Client);
  }
  get ecs() {
    return this.#client("ecs", ecs.ECSClient);
  }
  get elb() {
    return this.#client("elb", elb.ElasticLoadBalancingV2Client);
  }
  get iam() {
    // Simulations are many, and IAM takes few of them at once.
    return this.#client("iam", iam.IAMClient, { retryMode: "adaptive", maxAttempts: 8 });
  }
  get kafka() {
    return this.#client("kafka", kafka.KafkaClient);
  }
  get kms() {
    return this.#client("kms", kms.KMSClient);
  }
  get lambda() {
    return this.#client("lambda", lambda.LambdaClient);
  }
  get quotas() {
    return this.#client("quotas", quotas.ServiceQuotasClient);
  }
  get s3() {
    return this.#client("s3", s3.S3Client, {
      // A bucket may be in another region: one of backups.
      followRegionRedirects: true,
      // An endpoint of one's own need not resolve names of buckets.
      forcePathStyle: (process.env.AWS_ENDPOINT_URL_S3 ?? process.env.AWS_ENDPOINT_URL) !== undefined,
    });
  }
  get sm() {
    return this.#client("sm", sm.SecretsManagerClient);
  }
  get sns() {
    return this.#client("sns", sns.SNSClient);
  }
  get sts() {
    return this.#client("sts", sts.STSClient);
  }

  /** Returns the region that the environment or the profile names. */
  async configuredRegion(): Promise<string> {
    return this.sts.config.region();
  }

  destroy(): void {
    for (const client of this.#made.values()) client.destroy();
  }

  #client<C extends { destroy(): void; readonly middlewareStack: Stack }>(
    name: string,
    // biome-ignore lint/suspicious/noExplicitAny: the options of all clients, whose types differ
    Client: new (options: any) => C,
    further: object = {},
  ): C {
    const known = this.#made.get(name);
    if (known !== undefined) return known as C;
    const made = new Client({ ...this.#options, ...further });
    this.#watch(made.middlewareStack);
    this.#made.set(name, made);
    return made;
  }

  /** Names the action of calls that fail, and compares the dates of answers with the clock here. */
  #watch(stack: Stack): void {
    type Next = (args: unknown) => Promise<{ response?: { headers?: Record<string, string> } }>;
    type Names = { clientName?: string; commandName?: string };
    stack.add(
      (next: Next, { clientName = "", commandName = "" }: Names) =>
        async (args: unknown) => {
          try {
            return await next(args);
          } catch (error) {
            const action = `${PREFIX[clientName] ?? clientName}:${commandName.replace(/Command$/, "")}`;
            throw error instanceof Error ? new CallFailed(ACTION[action] ?? action, error) : error;
          }
        },
      { step: "initialize", name: "tidegraphNamesAction", priority: "high" },
    );
    stack.add(
      (next: Next) => async (args: unknown) => {
        const sent = Date.now();
        const answer = await next(args);
        const received = Date.now();
        const date = Date.parse(answer.response?.headers?.date ?? "");
        if (!Number.isNaN(date)) {
          // A date is rounded down to the second, so that on average it is half a second behind.
          const aheadMs = (sent + received) / 2 - (date + 500);
          this.differences.push({ aheadMs, uncertainMs: (received - sent) / 2 + 500 });
        }
        return answer;
      },
      { step: "deserialize", name: "tidegraphComparesClocks", priority: "low" },
    );
  }
}
