/** Objects of a bucket, as far as these functions use them. */
import {
  GetObjectCommand,
  type GetObjectCommandOutput,
  HeadObjectCommand,
  ListObjectsV2Command,
  PutObjectCommand,
  type S3Client,
  S3ServiceException,
} from "@aws-sdk/client-s3";

/** What a listing says of an object. */
export interface Listed {
  readonly key: string;
  readonly modified: Date;
}

/** A page of a listing. */
export interface Page {
  readonly objects: readonly Listed[];
  /** What keys have in common up to the next slash, where that was asked for. */
  readonly folders: readonly string[];
  /** What the next page is asked for with; none at the end. */
  readonly next: string | undefined;
}

/** What is asked for in a listing. */
export interface Below {
  readonly prefix: string;
  /** Folders directly below, instead of all that is in them. */
  readonly folders?: boolean;
  /** The first page begins after this key. */
  readonly after?: string | undefined;
  /** From the page before. */
  readonly next?: string | undefined;
}

export interface Objects {
  readonly bucket: string;
  /** The ETag without quotes; `undefined` where there is no such object. */
  etag(key: string): Promise<string | undefined>;
  /** The content; `undefined` where there is no such object, and `tooLarge` where it has more bytes than that. */
  read(key: string, most: number): Promise<Uint8Array | "tooLarge" | undefined>;
  list(below: Below): Promise<Page>;
  write(key: string, content: string): Promise<void>;
  /** Writes an object that is not there yet; whether it was not. */
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
      // Or the connection stays taken.
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

/** An answer, or `undefined` where the object is not there. */
async function orMissing<T>(answer: Promise<T>): Promise<T | undefined> {
  try {
    return await answer;
  } catch (error) {
    if (error instanceof S3ServiceException && error.$metadata.httpStatusCode === 404) return undefined;
    throw error;
  }
}
