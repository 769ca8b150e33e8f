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

/**
 * Sends the result to the address that CloudFormation gave, without which it would wait for an hour.
 *
 * @param Data the attributes of the resource, by their names
 */
export async function answer(
  event: Request,
  PhysicalResourceId: string,
  failure: string | undefined,
  Data: Readonly<Record<string, string>> = {},
): Promise<void> {
  const body = JSON.stringify({
    Status: failure === undefined ? "SUCCESS" : "FAILED",
    Reason: failure ?? "",
    PhysicalResourceId,
    StackId: event.StackId,
    RequestId: event.RequestId,
    LogicalResourceId: event.LogicalResourceId,
    Data,
  });
  for (let attempt = 1; ; attempt += 1) {
    try {
      // The address is signed for an empty content type; bytes have none, and text would get one.
      const put = { method: "PUT", body: new TextEncoder().encode(body) };
      const answered = await fetch(event.ResponseURL, put);
      if (answered.ok) return;
      throw new Error(`CloudFormation's address answered ${answered.status}`);
    } catch (error) {
      if (attempt === 5) throw error;
      await new Promise((done) => setTimeout(done, 2 ** attempt * 100));
    }
  }
}
