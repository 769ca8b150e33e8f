/** The operations on a bucket that these functions use, and their implementation on S3. */
import {
  GetObjectCommand,
  type GetObjectCommandOutput,
  HeadObjectCommand,
  ListObjectsV2Command,
  PutObjectCommand,
  type S3Client,
  S3ServiceException,
} from "@aws-sdk/client-s3";

/** An object in a listing: its key, and the time of its last upload. */
export interface Listed {
  readonly key: string;
  readonly modified: Date;
}

/** A page of a listing. */
export interface Page {
  readonly objects: readonly Listed[];
  /** Prefixes of the folders directly below, each with its last slash; empty unless `Below.folders` is set. */
  readonly folders: readonly string[];
  /** Token for the next page; `undefined` on the last page. */
  readonly next: string | undefined;
}

/** A request for a page of a listing. */
export interface Below {
  readonly prefix: string;
  /** Whether to list the folders directly below the prefix instead of the objects inside them. */
  readonly folders?: boolean;
  /** Key after which the first page begins. */
  readonly after?: string | undefined;
  /** Token of the previous page (`Page.next`). */
  readonly next?: string | undefined;
}

export interface Objects {
  readonly bucket: string;
  /** Returns the ETag without quotes, or `undefined` if the object does not exist. */
  etag(key: string): Promise<string | undefined>;
  /** Returns the content, `undefined` if the object does not exist, or `tooLarge` if it has more than `most` bytes. */
  read(key: string, most: number): Promise<Uint8Array | "tooLarge" | undefined>;
  list(below: Below): Promise<Page>;
  write(key: string, content: string): Promise<void>;
  /** Writes an object unless it exists. Returns whether it was written. */
  writeOnce(key: string, content: string): Promise<boolean>;
}

const JSON_TYPE = "application/json; charset=utf-8";

/** Objects in S3. */
export class Bucket implements Objects {
  readonly bucket: string;
  private readonly client: S3Client;

  constructor(client: S3Client, bucket: string) {
    this.client = client;
    this.bucket = bucket;
  }

  async etag(key: string): Promise<string | undefined> {
    const head = new HeadObjectCommand({ Bucket: this.bucket, Key: key });
    const found = await orMissing(this.client.send(head));
    return found && (found.ETag ?? "").replaceAll('"', "");
  }

  async read(key: string, most: number): Promise<Uint8Array | "tooLarge" | undefined> {
    const get = new GetObjectCommand({ Bucket: this.bucket, Key: key });
    const found: GetObjectCommandOutput | undefined = await orMissing(this.client.send(get));
    if (found?.Body === undefined) return undefined;
    if ((found.ContentLength ?? 0) > most) {
      // Without this the connection would stay in use.
      await found.Body.transformToWebStream().cancel();
      return "tooLarge";
    }
    return found.Body.transformToByteArray();
  }

  async list({ prefix, folders, after, next }: Below): Promise<Page> {
    const page = await this.client.send(
      new ListObjectsV2Command({
        Bucket: this.bucket,
        Prefix: prefix,
        ...(folders && { Delimiter: "/" }),
        ...(after !== undefined && { StartAfter: after }),
        ...(next !== undefined && { ContinuationToken: next }),
      }),
    );
    return {
      objects: (page.Contents ?? []).map(({ Key = "", LastModified = new Date(0) }) => ({
        key: Key,
        modified: LastModified,
      })),
      folders: (page.CommonPrefixes ?? []).map(({ Prefix = "" }) => Prefix),
      next: page.NextContinuationToken,
    };
  }

  async write(key: string, content: string): Promise<void> {
    await this.client.send(
      new PutObjectCommand({ Bucket: this.bucket, Key: key, Body: content, ContentType: JSON_TYPE }),
    );
  }

  async writeOnce(key: string, content: string): Promise<boolean> {
    const put = { Bucket: this.bucket, Key: key, Body: content, ContentType: JSON_TYPE, IfNoneMatch: "*" };
    try {
      await this.client.send(new PutObjectCommand(put));
      return true;
    } catch (error) {
      if (error instanceof S3ServiceException && error.$metadata.httpStatusCode === 412) return false;
      throw error;
    }
  }
}

/** Returns an answer of S3, or `undefined` if S3 answers that the object does not exist. */
async function orMissing<T>(answer: Promise<T>): Promise<T | undefined> {
  try {
    return await answer;
  } catch (error) {
    if (error instanceof S3ServiceException && error.$metadata.httpStatusCode === 404) return undefined;
    throw error;
  }
}
