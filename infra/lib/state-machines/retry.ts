/**
 * Transient errors of invocations: busy or unavailable services, and functions that died or ran out of time. Repeating
 * an invocation is safe, because every function does the same again.
 */
import { Duration } from "aws-cdk-lib";
import * as sfn from "aws-cdk-lib/aws-stepfunctions";

/**
 * Lambda's answer when as many functions run as the account allows. New accounts are allowed few: AWS says that they
 * "have reduced concurrency and memory quotas" (https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html).
 */
const BUSY = "Lambda.TooManyRequestsException";

/** The names of other errors: the function's own, those of Lambda, and those of Step Functions. */
export const PASSES = [
  "Unavailable",
  "Lambda.ServiceException",
  "Lambda.AWSLambdaException",
  "Lambda.SdkClientException",
  "Lambda.ClientExecutionTimeoutException",
  "Lambda.Unknown",
  "Sandbox.Timedout",
  "States.Timeout",
];

/** Waits with exponential growth and full jitter. */
const WAITS = {
  interval: Duration.seconds(2),
  backoffRate: 2,
  maxDelay: Duration.minutes(1),
  jitterStrategy: sfn.JitterType.FULL,
};

/**
 * Returns the names of errors of a service that may pass: a request that did not arrive, and every refusal that has no name of
 * its own. "Too many requests" is one of these in most services: Step Functions then names it after the service.
 */
export function unnamed(service: string): string[] {
  return [`${service}.SdkClientException`, `${service}.${service}Exception`];
}

/** Six retries after errors of a service that Step Functions calls by itself. */
export function patiently(errors: readonly string[]): sfn.RetryProps {
  return { ...WAITS, errors: [...errors], maxAttempts: 6 };
}

/**
 * Retries after transient errors, six times. An invocation for which there was no place never began, and others may keep
 * the places for the time of a task, a quarter of an hour; it is repeated for hours.
 */
export function retry(task: sfn.TaskStateBase, errors: readonly string[] = PASSES): void {
  // The first one that names the error counts; `States.ALL` has to be in the last one.
  task.addRetry({ ...WAITS, errors: [BUSY], maxAttempts: 500 });
  task.addRetry(patiently(errors));
}
