/**
 * The buckets of a graph: *data* (checkpoints and segments, at the root, as the daemons expect it), *drop* (files that people bring), and *logs*
 * (who asked for what). None is public, none takes a request without TLS, and none is deleted with the stack.
 */
import { Duration, RemovalPolicy } from "aws-cdk-lib";
import type { IKey } from "aws-cdk-lib/aws-kms";
import * as s3 from "aws-cdk-lib/aws-s3";
import { Construct } from "constructs";

/** Settings of buckets. */
export interface BucketsProps {
  /** What the data is encrypted with. */
  readonly key: IKey;
  /**
   * After how long dropped files are deleted.
   *
   * @default never
   */
  readonly dropExpiration?: Duration;
}

/** How long a checkpoint that was deleted or replaced can be got back. */
const SECOND_THOUGHTS = Duration.days(7);
/** How long what a load of dropped files works with is kept. No load takes so long. */
export const INGEST_KEPT = Duration.days(7);

export class Buckets extends Construct {
  /** Checkpoints and segments of one graph; below `ingest/`, what loads work with. */
  readonly data: s3.Bucket;
  /** `drop/<graph>/<load>/`, and what is told of them, `reports/<graph>/<load>/`. */
  readonly drop: s3.Bucket;
  /** Access logs and flow logs. */
  readonly logs: s3.Bucket;

  constructor(scope: Construct, id: string, props: BucketsProps) {
    super(scope, id);
    const closed = {
      blockPublicAccess: s3.BlockPublicAccess.BLOCK_ALL,
      objectOwnership: s3.ObjectOwnership.BUCKET_OWNER_ENFORCED,
      enforceSSL: true,
      minimumTLSVersion: 1.2,
      removalPolicy: RemovalPolicy.RETAIN,
    };
    const abandoned = { abortIncompleteMultipartUploadAfter: Duration.days(1) };
    this.logs = new s3.Bucket(this, "Logs", {
      ...closed,
      // What AWS's log delivery writes to; it takes no key of ours.
      encryption: s3.BucketEncryption.S3_MANAGED,
      lifecycleRules: [{ ...abandoned, expiration: Duration.days(90) }],
    });
    const encrypted = {
      ...closed,
      encryption: s3.BucketEncryption.KMS,
      encryptionKey: props.key,
      bucketKeyEnabled: true,
    };
    this.data = new s3.Bucket(this, "Data", {
      ...encrypted,
      serverAccessLogsBucket: this.logs,
      serverAccessLogsPrefix: "data/",
      // The log is trimmed below the oldest checkpoint: one that somebody deletes by mistake has to come back.
      versioned: true,
      lifecycleRules: [
        { ...abandoned, noncurrentVersionExpiration: SECOND_THOUGHTS, expiredObjectDeleteMarker: true },
        // What steps of a load leave for each other. Nobody wants it back.
        { prefix: "ingest/", expiration: INGEST_KEPT, noncurrentVersionExpiration: Duration.days(1) },
      ],
    });
    this.drop = new s3.Bucket(this, "Drop", {
      ...encrypted,
      serverAccessLogsBucket: this.logs,
      serverAccessLogsPrefix: "drop/",
      lifecycleRules: [{ ...abandoned, ...(props.dropExpiration && { expiration: props.dropExpiration }) }],
    });
    // By the bucket itself: CDK's own way is a custom resource.
    const drop = this.drop.node.defaultChild as s3.CfnBucket;
    drop.notificationConfiguration = { eventBridgeConfiguration: { eventBridgeEnabled: true } };
  }
}
