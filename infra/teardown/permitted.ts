/**
 * Permissions that have not spread yet. CloudFormation calls a custom resource seconds after it made the policies of the
 * function, and IAM and KMS may still refuse for some seconds more. A refusal there would fail the whole stack.
 */

/** What services call a refusal. Secrets Manager has names of its own for refusals of KMS. */
const REFUSALS = /^(AccessDenied|Forbidden|Unauthorized|KMSAccessDenied|EncryptionFailure|DecryptionFailure)/;
const FORBIDDEN = 403;

/** How long a refusal is not believed, and the pause between two attempts, both in milliseconds. */
export interface Patience {
  readonly patienceMs: number;
  readonly pauseMs: number;
}

/** A minute, as long as AWS says that changes of policies may take "in most cases". */
export const A_MINUTE: Patience = { patienceMs: 60_000, pauseMs: 5_000 };

/** Does the work, and again as long as it is refused and the patience lasts. It has to be work that can be repeated. */
export async function permitted<T>(work: () => Promise<T>, patience: Patience = A_MINUTE): Promise<T> {
  const end = Date.now() + patience.patienceMs;
  for (;;) {
    try {
      return await work();
    } catch (error) {
      if (!isRefusal(error) || Date.now() + patience.pauseMs > end) throw error;
      console.log(JSON.stringify({ refused: `${error.name}: ${error.message}`, triedAgain: true }));
    }
    await new Promise((done) => setTimeout(done, patience.pauseMs));
  }
}

function isRefusal(error: unknown): error is Error {
  if (!(error instanceof Error)) return false;
  const { $metadata } = error as { $metadata?: { httpStatusCode?: number } };
  return REFUSALS.test(error.name) || $metadata?.httpStatusCode === FORBIDDEN;
}
