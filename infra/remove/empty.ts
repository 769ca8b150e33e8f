/** Empties a bucket, or a folder of it. */
import * as s3 from "@aws-sdk/client-s3";

/** A part of a bucket. */
export interface Part {
  /** Only objects whose names begin with this. @default all */
  readonly prefix?: string;
  /** Called before each pair of requests; it ends the work by throwing. */
  readonly mayGoOn?: () => void;
}

/**
 * Deletes all versions of objects, and ends uploads that nobody completed. Returns how many versions and marks of deletion
 * there were.
 */
export async function empty(
  client: s3.S3Client,
  Bucket: string,
  { prefix, mayGoOn = () => {} }: Part = {},
): Promise<number> {
  const where = { Bucket, ...(prefix !== undefined && { Prefix: prefix }) };
  for (;;) {
    mayGoOn();
    const { Uploads = [] } = await client.send(new s3.ListMultipartUploadsCommand(where));
    if (Uploads.length === 0) break;
    for (const { Key, UploadId } of Uploads) await abort(client, { Bucket, Key, UploadId });
  }
  for (let count = 0; ; ) {
    mayGoOn();
    const { Versions = [], DeleteMarkers = [] } = await client.send(new s3.ListObjectVersionsCommand(where));
    const Objects = [...Versions, ...DeleteMarkers].map(({ Key, VersionId }) => ({ Key, VersionId }));
    if (Objects.length === 0) return count;
    const { Errors = [] } = await client.send(
      new s3.DeleteObjectsCommand({ Bucket, Delete: { Objects, Quiet: true } }),
    );
    const [first] = Errors;
    if (first)
      throw new Error(`${Errors.length} objects of ${Bucket} stay, such as ${first.Key}: ${first.Message}`);
    count += Objects.length;
  }
}

/** Ends an upload, unless it has ended. */
async function abort(client: s3.S3Client, upload: s3.AbortMultipartUploadCommandInput): Promise<void> {
  try {
    await client.send(new s3.AbortMultipartUploadCommand(upload));
  } catch (error) {
    // The doctor's clients wrap what the SDK throws.
    const { cause = error } = error as { cause?: unknown };
    if (!(cause instanceof Error && cause.name === "NoSuchUpload")) throw error;
  }
}
