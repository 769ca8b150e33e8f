/**
 * The buckets of a graph: *data* (checkpoints and segments, at the root, where the daemons expect them), *drop* (files
 * that users bring), and *logs* (access logs). None is public, none accepts requests without TLS, and none is deleted
 * with the stack.
 */
import { Duration, RemovalPolicy } from "aws-cdk-lib";
import type { IKey } from "aws-cdk-lib/aws-kms";
import * as s3 from "aws-cdk-lib/aws-s3";
import { Construct } from "constructs";
import type { IGraphBuckets } from "./graph-state.ts";

/** Settings of buckets. */
export interface BucketsProps {
  /** The key that encrypts the data. */
  readonly key: IKey;
  /**
   * Age at which dropped files are deleted.
   *
   * @default never
   */
  readonly dropExpiration?: Duration;
}

/**
 * How long a deleted checkpoint can be recovered. Each checkpoint has objects of its own names, and the next ones delete
 * them; so a day of this keeps all that was written on that day. S3 counts in whole days.
 */
const SECOND_THOUGHTS = Duration.days(1);
/** How long the intermediate files of a load of dropped files are kept. No load takes that long. */
export const INGEST_KEPT = Duration.days(7);

export class Buckets extends Construct implements IGraphBuckets {
  /** Checkpoints and segments of one graph. Intermediate files of loads are below `ingest/`. */
  readonly data: s3.IBucket;
  /** Dropped files at `drop/<graph>/<load>/`, and reports about them at `reports/<graph>/<load>/`. */
  readonly drop: s3.IBucket;
  /** Access logs and flow logs. */
  readonly logs: s3.Bucket;
  /** The bucket `data`, with what only its own app can change. */
  private readonly own: s3.Bucket;

  constructor(scope: Construct, id: string, props: BucketsProps) {
    super(scope, id);
    const closed = {
      blockPublicAccess: s3.BlockPublicAccess.BLOCK_ALL,
      objectOwnership: s3.ObjectOwnership.BUCKET_OWNER_ENFORCED,
      enforceSSL: true,
      minimumTLSVersion: 1.2,
      removalPolicy: RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE,
    };
    const abandoned = { abortIncompleteMultipartUploadAfter: Duration.days(1) };
    this.logs = new s3.Bucket(this, "Logs", {
      ...closed,
      // Flow logs arrive while the brokers are created. CloudFormation cannot delete a bucket with objects, and deleting
      // it would make the rollback of a creation fail. Its name is generated, so it is in nobody's way.
      removalPolicy: RemovalPolicy.RETAIN,
      // AWS's log delivery writes to this bucket, and it does not accept our key.
      encryption: s3.BucketEncryption.S3_MANAGED,
      lifecycleRules: [{ ...abandoned, expiration: Duration.days(90) }],
    });
    const encrypted = {
      ...closed,
      encryption: s3.BucketEncryption.KMS,
      encryptionKey: props.key,
      bucketKeyEnabled: true,
    };
    this.own = new s3.Bucket(this, "Data", {
      ...encrypted,
      serverAccessLogsBucket: this.logs,
      serverAccessLogsPrefix: "data/",
      // The log is trimmed below the oldest checkpoint, so a checkpoint deleted by mistake must be recoverable.
      versioned: true,
      lifecycleRules: [
        { ...abandoned, noncurrentVersionExpiration: SECOND_THOUGHTS, expiredObjectDeleteMarker: true },
        // Intermediate files that the steps of a load pass on; they need no recovery.
        loadsExpire(""),
        // Logs of machines whose start fails.
        { prefix: "machines/", expiration: Duration.days(30), noncurrentVersionExpiration: Duration.days(1) },
      ],
    });
    this.data = this.own;
    this.drop = new s3.Bucket(this, "Drop", {
      ...encrypted,
      serverAccessLogsBucket: this.logs,
      serverAccessLogsPrefix: "drop/",
      lifecycleRules: [{ ...abandoned, ...(props.dropExpiration && { expiration: props.dropExpiration }) }],
    });
    // Set on the bucket resource itself, because CDK's own way adds a custom resource.
    const drop = this.drop.node.defaultChild as s3.CfnBucket;
    drop.notificationConfiguration = { eventBridgeConfiguration: { eventBridgeEnabled: true } };
  }

  /** Lets the intermediate files of loads expire that are below a folder of the data bucket. */
  expireLoadsBelow(folder: string): void {
    this.own.addLifecycleRule(loadsExpire(folder));
  }
}

function loadsExpire(folder: string): s3.LifecycleRule {
  const noncurrentVersionExpiration = Duration.days(1);
  return { prefix: `${folder}ingest/`, expiration: INGEST_KEPT, noncurrentVersionExpiration };
}
