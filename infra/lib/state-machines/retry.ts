/** Errors of a function's call that pass by themselves: services that are busy or away, and functions that died or took too long. Whoever is called again does the same again. */
import { Duration } from "aws-cdk-lib";
import * as sfn from "aws-cdk-lib/aws-stepfunctions";

/** By the function's own name for it, by Lambda's, and by those of the state machine. */
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

/** Tries again: at once, and then less and less often. */
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
