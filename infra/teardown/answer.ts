/** Answers of custom resources to CloudFormation, for all functions that have one. */

/** What CloudFormation sends to a custom resource. */
export interface Request {
  readonly RequestType: "Create" | "Update" | "Delete";
  readonly ResponseURL: string;
  readonly StackId: string;
  readonly RequestId: string;
  readonly LogicalResourceId: string;
  /** Absent in `Create`. */
  readonly PhysicalResourceId?: string;
}

/** CloudFormation's limit of a whole answer. */
const MOST_BYTES = 4096;

/**
 * Sends the result to the address that CloudFormation gave, without which it would wait for an hour.
 *
 * @param failure the reason, which is cut if the answer would be too long: callers log all of it
 * @param Data the attributes of the resource, by their names
 */
export async function answer(
  event: Request,
  PhysicalResourceId: string,
  failure: string | undefined,
  Data: Readonly<Record<string, string>> = {},
): Promise<void> {
  const result = {
    Status: failure === undefined ? "SUCCESS" : "FAILED",
    Reason: failure ?? "",
    PhysicalResourceId,
    StackId: event.StackId,
    RequestId: event.RequestId,
    LogicalResourceId: event.LogicalResourceId,
    Data,
  };
  const body = encoded(result);
  for (let attempt = 1; ; attempt += 1) {
    try {
      // The address is signed for an empty content type; bytes have none, and text would get one.
      const put = { method: "PUT", body };
      const answered = await fetch(event.ResponseURL, put);
      if (answered.ok) return;
      throw new Error(`CloudFormation's address answered ${answered.status}`);
    } catch (error) {
      if (attempt === 5) throw error;
      await new Promise((done) => setTimeout(done, 2 ** attempt * 100));
    }
  }
}

/** Returns the text of an answer, with as much of the reason as CloudFormation takes. */
function encoded(result: { readonly Reason: string }): Uint8Array<ArrayBuffer> {
  const { Reason } = result;
  for (let length = Reason.length; ; ) {
    const body = new TextEncoder().encode(JSON.stringify({ ...result, Reason: Reason.slice(0, length) }));
    const excess = body.length - MOST_BYTES;
    if (excess <= 0 || length === 0) return body;
    // JSON has at most six bytes for a character.
    length = Math.max(0, length - Math.ceil(excess / 6));
  }
}
