/** Secrets and certificates: rotation, versions, dates. */
import { DescribeCertificateCommand } from "@aws-sdk/client-acm";
import { DescribeSecretCommand, type DescribeSecretCommandOutput } from "@aws-sdk/client-secrets-manager";
import type { Context } from "../context.ts";
import type { Resource } from "../deployment.ts";
import { absent, type Check, type Finding, failed, ok, span, warning } from "../finding.ts";

const DESCRIBE = "secretsmanager:DescribeSecret";
const DAY_MS = 86_400_000;
/** Secrets Manager rotates within a window of the day after the interval. */
const GRACE_DAYS = 2;
/** ACM renews from 60 days before the end on; a certificate that it cannot renew is noticed at 30. */
const SOON_DAYS = 30;
const URGENT_DAYS = 7;

const fleetOf = ({ deployment }: Context): Resource | undefined =>
  deployment.one("AWS::SecretsManager::Secret", "SecretsFleet");

const describe = (context: Context, SecretId: string): Promise<DescribeSecretCommandOutput> =>
  context.once(`secret ${SecretId}`, () => context.clients.sm.send(new DescribeSecretCommand({ SecretId })));

const rotation: Check = {
  id: "secrets.rotation",
  actions: [DESCRIBE],
  async look(context) {
    const secret = fleetOf(context);
    if (secret === undefined) return absent("none of the stacks has the secret of the fleet");
    const schedule = context.deployment.one("AWS::SecretsManager::RotationSchedule", "RotationSchedule");
    if (schedule === undefined) return absent("secretRotation is false: people rotate the secret");
    const days = Number(schedule.properties.RotationRules?.AutomaticallyAfterDays ?? 30);
    const {
      RotationEnabled = false,
      LastRotatedDate,
      CreatedDate,
      Name = "",
    } = await describe(context, secret.id);
    const rest = {
      subject: Name,
      wanted: `rotated every ${days} days`,
      remedy: `aws secretsmanager rotate-secret --secret-id ${secret.id}; if it fails, the log group rotation says why`,
    };
    if (!RotationEnabled) return failed("rotation is off", rest);
    const last = LastRotatedDate ?? CreatedDate;
    const age = Date.now() - (last?.getTime() ?? Date.now());
    const seen = `on, ${LastRotatedDate === undefined ? "made" : "rotated last"} ${span(age)} ago`;
    return age > (days + GRACE_DAYS) * DAY_MS ? failed(seen, rest) : ok(seen, Name);
  },
};

const versions: Check = {
  id: "secrets.versions",
  actions: [DESCRIBE],
  async look(context) {
    const secret = fleetOf(context);
    if (secret === undefined) return absent("none of the stacks has the secret of the fleet");
    const {
      VersionIdsToStages = {},
      LastRotatedDate,
      DeletedDate,
      Name = "",
    } = await describe(context, secret.id);
    const stages = Object.values(VersionIdsToStages);
    const has = (stage: string): boolean => stages.some((one) => one.includes(stage));
    const rest = {
      subject: Name,
      wanted: "AWSCURRENT, and AWSPREVIOUS after the first rotation",
      remedy: `aws secretsmanager rotate-secret --secret-id ${secret.id}: the function of the rotation can be repeated`,
    };
    if (DeletedDate !== undefined) {
      const restore = `aws secretsmanager restore-secret --secret-id ${secret.id}`;
      return failed(`to be deleted on ${DeletedDate.toISOString().slice(0, 10)}`, {
        ...rest,
        remedy: restore,
      });
    }
    if (!has("AWSCURRENT")) return failed("there is no current version", rest);
    const isHalf = stages.some((one) => one.includes("AWSPENDING") && !one.includes("AWSCURRENT"));
    if (isHalf) return failed("a rotation has not ended: AWSPENDING is a version of its own", rest);
    if (has("AWSPREVIOUS")) return ok("current and previous", Name);
    if (LastRotatedDate === undefined) return ok("current; not rotated yet", Name);
    return warning("there is no previous version", rest);
  },
};

const client: Check = {
  id: "secrets.client",
  actions: [DESCRIBE],
  async look(context) {
    const secret = context.deployment.one("AWS::SecretsManager::Secret", "SecretsClient");
    if (secret === undefined) return absent("none of the stacks has the secret of clients");
    const { DeletedDate, LastChangedDate, CreatedDate, Name = "" } = await describe(context, secret.id);
    if (DeletedDate !== undefined) {
      return failed(`to be deleted on ${DeletedDate.toISOString().slice(0, 10)}`, {
        subject: Name,
        wanted: "there: workers do not start without it",
        remedy: `aws secretsmanager restore-secret --secret-id ${secret.id}`,
      });
    }
    const changed = (LastChangedDate ?? CreatedDate)?.getTime() ?? Date.now();
    return ok(`changed ${span(Date.now() - changed)} ago; people rotate it`, Name);
  },
};

const certificates: Check = {
  id: "certificates.dates",
  actions: ["acm:DescribeCertificate"],
  async look(context) {
    const arns = certificatesOf(context);
    if (arns.length === 0) return absent("workers have no certificate (workers.certificate)");
    return Promise.all(arns.map((arn) => certificate(context, arn)));
  },
};

/** Returns the certificates of the balancer: ARNs, or resources of the stacks. */
function certificatesOf({ deployment }: Context): string[] {
  const arns = deployment
    .all("AWS::ElasticLoadBalancingV2::Listener")
    .flatMap(({ properties }) => (properties.Certificates ?? []) as { CertificateArn?: unknown }[])
    .flatMap(({ CertificateArn: arn }) =>
      typeof arn === "string" ? arn : (deployment.referred(arn)?.id ?? []),
    );
  return [...new Set(arns)];
}

async function certificate({ clients }: Context, CertificateArn: string): Promise<Finding> {
  const { Certificate } = await clients.acm.send(new DescribeCertificateCommand({ CertificateArn }));
  const { DomainName = CertificateArn, Status = "?", NotAfter, RenewalEligibility, Type } = Certificate ?? {};
  const isImported = Type === "IMPORTED";
  const rest = {
    subject: DomainName,
    wanted: `ISSUED, for more than ${SOON_DAYS} days`,
    remedy: isImported
      ? `aws acm import-certificate --certificate-arn ${CertificateArn} with a new certificate: ACM does not renew imported ones`
      : `aws acm describe-certificate --certificate-arn ${CertificateArn}: its DomainValidationOptions have the record that ACM needs in DNS`,
  };
  if (Status !== "ISSUED") return failed(Status, rest);
  if (NotAfter === undefined) return failed("ISSUED, without an end", rest);
  const left = NotAfter.getTime() - Date.now();
  const until = `until ${NotAfter.toISOString().slice(0, 10)}`;
  if (left <= 0) return failed(`expired, was valid ${until}`, rest);
  const renews = isImported ? "imported" : `renewal ${RenewalEligibility?.toLowerCase() ?? "unknown"}`;
  const seen = `${until}, ${span(left)} left, ${renews}`;
  if (left < URGENT_DAYS * DAY_MS) return failed(seen, rest);
  return left < SOON_DAYS * DAY_MS ? warning(seen, rest) : ok(seen, DomainName);
}

/** The issuer renews after a third of seven days. Processes refuse each other's certificates after all of them. */
const ISSUED_DAYS = { soon: 3, urgent: 5 };
/** Kinds of processes that have certificates of the deployment, by the ends of the logical ids of their secrets. */
const ISSUED = ["EncryptionNodes", "EncryptionWorkers", "EncryptionFunctions"];

const issued: Check = {
  id: "certificates.fleet",
  actions: [DESCRIBE],
  async look(context) {
    const { deployment } = context;
    const secrets = ISSUED.flatMap((kind) => deployment.one("AWS::SecretsManager::Secret", kind) ?? []);
    if (secrets.length === 0) return absent("connections between processes have no TLS (encryption)");
    const functionName = deployment.one("AWS::Lambda::Function", "EncryptionFunction")?.id ?? "?";
    return Promise.all(
      secrets.map(async ({ id }) => {
        const found = await describe(context, id);
        return judgedIssue(found, functionName, Date.now());
      }),
    );
  },
};

/** Judges the secret with the certificates of a kind of processes, by when it was written. */
export function judgedIssue(
  { Name = "", LastChangedDate, VersionIdsToStages = {} }: Partial<DescribeSecretCommandOutput>,
  functionName: string,
  now: number,
): Finding {
  const rest = {
    subject: Name,
    wanted: `written within ${ISSUED_DAYS.soon} days: certificates are valid for seven`,
    remedy: `aws lambda invoke --function-name ${functionName} /dev/stdout; docs/runbook.md#certificatesunmade`,
  };
  const isWritten = Object.values(VersionIdsToStages).some((stages) => stages.includes("AWSCURRENT"));
  if (!isWritten || LastChangedDate === undefined) return failed("no certificate was made", rest);
  const age = now - LastChangedDate.getTime();
  const seen = `written ${span(age)} ago`;
  if (age > ISSUED_DAYS.urgent * DAY_MS) return failed(seen, rest);
  return age > ISSUED_DAYS.soon * DAY_MS ? warning(seen, rest) : ok(seen, Name);
}

export const SECRETS: readonly Check[] = [rotation, versions, client, certificates, issued];
