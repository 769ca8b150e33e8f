/**
 * Transient errors of invocations: busy or unavailable services, and functions that died or ran out of time. Repeating
 * an invocation is safe, because every function does the same again.
 */
import { Duration } from "aws-cdk-lib";
import * as sfn from "aws-cdk-lib/aws-stepfunctions";

/** The names of these errors: the function's own, those of Lambda, and those of Step Functions. */
export const PASSES = [
  "Unavailable",
  "Lambda.ServiceException",
  "Lambda.AWSLambdaException",
  "Lambda.SdkClientException",
  "Lambda.ClientExecutionTimeoutException",
  "Lambda.TooManyRequestsException",
  "Lambda.Unknown",
  "Sandbox.Timedout",
  "States.Timeout",
];

/** Retries with exponentially growing waits and full jitter. */
export function patiently(errors: readonly string[] = PASSES): sfn.RetryProps {
  return {
    errors: [...errors],
    interval: Duration.seconds(2),
    backoffRate: 2,
    maxAttempts: 6,
    maxDelay: Duration.minutes(1),
    jitterStrategy: sfn.JitterType.FULL,
  };
}
