/**
 * What sets back what people changed by hand. CloudFormation compares a template with the one before, so a deployment that
 * changes nothing in the template changes nothing in AWS.
 */

/** Returns a remedy for a setting that is not as the deployed template has it. */
export const byHand = (remedy: string): string =>
  `somebody changed this by hand, which a plain deployment does not set back: ${remedy}`;

/**
 * Returns the remedy for settings that no single command sets back: a change set that compares the template with what AWS has
 * (https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/drift-aware-change-sets.html).
 */
export const revertDrift = (stack: string): string =>
  byHand(
    `deploy the stack ${stack} with cdk deploy --revert-drift, or with a change set of --deployment-mode REVERT_DRIFT (docs/doctor.md#what-was-changed-by-hand)`,
  );
