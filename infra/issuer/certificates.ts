/**
 * Certificates of a fleet: authorities, and what they sign. Keys are ECDSA on P-256. The library is `@peculiar/x509`,
 * over Node's own cryptography.
 */
import "reflect-metadata";
import { randomBytes, webcrypto } from "node:crypto";
import * as x509 from "@peculiar/x509";

x509.cryptoProvider.set(webcrypto);

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const ALGORITHM = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" };

/** Clocks of machines may be behind the issuer's by this much. */
const SKEW_MS = HOUR_MS;
/** How long a certificate of a process is valid. It is replaced after a third of that. */
export const VALID_MS = 7 * DAY_MS;
/** How long an authority is valid. It is replaced after half of that. */
export const AUTHORITY_VALID_MS = 730 * DAY_MS;

/** The name that all nodes show, and that clients expect. An authority belongs to one fleet, so that the name need not. */
export const NODE_NAME = "nodes.tidegraph.internal";

/** The kinds of processes. Only nodes serve others. */
export const KINDS = ["nodes", "workers", "functions"] as const;
export type Kind = (typeof KINDS)[number];

/** A certificate with its key, in PEM. */
export interface Pair {
  readonly certificate: string;
  readonly key: string;
}

/** Makes an authority. */
export async function makeAuthority(fleet: string, now: Date): Promise<Pair> {
  const keys = await makeKeys();
  const made = await x509.X509CertificateGenerator.createSelfSigned({
    serialNumber: serial(),
    // Authorities that follow each other differ in their names, so that messages tell which one is meant.
    name: [{ CN: [`${fleet} ${now.toISOString()}`] }, { O: ["Tidegraph"] }],
    ...dates(now, AUTHORITY_VALID_MS),
    signingAlgorithm: ALGORITHM,
    keys,
    extensions: [
      new x509.BasicConstraintsExtension(true, 0, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.cRLSign, true),
      await x509.SubjectKeyIdentifierExtension.create(keys.publicKey, false, webcrypto),
    ],
  });
  return { certificate: made.toString("pem"), key: await pem(keys.privateKey) };
}

/** Makes a key and a certificate for a kind of processes. */
export async function issue(kind: Kind, fleet: string, authority: Pair, now: Date): Promise<Pair> {
  const keys = await makeKeys();
  const issuer = new x509.X509Certificate(authority.certificate);
  const uses = [x509.ExtendedKeyUsage.clientAuth];
  if (kind === "nodes") uses.push(x509.ExtendedKeyUsage.serverAuth);
  const made = await x509.X509CertificateGenerator.create({
    serialNumber: serial(),
    subject: [{ CN: [`${kind} of ${fleet}`] }, { O: ["Tidegraph"] }],
    issuer: issuer.subject,
    ...dates(now, VALID_MS),
    signingAlgorithm: ALGORITHM,
    publicKey: keys.publicKey,
    signingKey: await readKey(authority.key),
    extensions: [
      new x509.BasicConstraintsExtension(false, undefined, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
      new x509.ExtendedKeyUsageExtension(uses),
      await x509.SubjectKeyIdentifierExtension.create(keys.publicKey, false, webcrypto),
      await x509.AuthorityKeyIdentifierExtension.create(issuer, false, webcrypto),
      ...(kind === "nodes"
        ? [new x509.SubjectAlternativeNameExtension([{ type: "dns", value: NODE_NAME }])]
        : []),
    ],
  });
  return { certificate: made.toString("pem"), key: await pem(keys.privateKey) };
}

/** Returns whether an authority is old enough to be replaced. */
export function isOldAuthority(certificate: string, now: Date): boolean {
  return now.getTime() >= begin(certificate) + AUTHORITY_VALID_MS / 2;
}

/** Returns whether an authority signed a certificate, and a third of the certificate's time has not passed yet. */
export async function isFresh(certificate: string, authority: string, now: Date): Promise<boolean> {
  if (now.getTime() >= begin(certificate) + VALID_MS / 3) return false;
  const { publicKey } = new x509.X509Certificate(authority);
  return new x509.X509Certificate(certificate).verify({ publicKey, date: now }, webcrypto);
}

/** When a certificate was made. */
function begin(certificate: string): number {
  return new x509.X509Certificate(certificate).notBefore.getTime() + SKEW_MS;
}

function dates(now: Date, validMs: number): { notBefore: Date; notAfter: Date } {
  // Certificates count in seconds.
  const begin = Math.floor(now.getTime() / 1000) * 1000;
  return { notBefore: new Date(begin - SKEW_MS), notAfter: new Date(begin + validMs) };
}

/** A random number of 127 bits, positive and never 0. */
function serial(): string {
  const bytes = randomBytes(16);
  bytes[0] = ((bytes[0] ?? 0) & 0x7f) | 0x40;
  return bytes.toString("hex");
}

function makeKeys(): Promise<webcrypto.CryptoKeyPair> {
  return webcrypto.subtle.generateKey(ALGORITHM, true, [
    "sign",
    "verify",
  ]) as Promise<webcrypto.CryptoKeyPair>;
}

async function pem(key: webcrypto.CryptoKey): Promise<string> {
  return x509.PemConverter.encode(await webcrypto.subtle.exportKey("pkcs8", key), "PRIVATE KEY");
}

function readKey(text: string): Promise<webcrypto.CryptoKey> {
  const [bytes] = x509.PemConverter.decode(text);
  if (bytes === undefined) throw new Error("the key of the authority is not in PEM");
  return webcrypto.subtle.importKey("pkcs8", bytes, ALGORITHM, false, ["sign"]);
}
