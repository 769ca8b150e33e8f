/**
 * Certificates for a fleet on this machine: a certificate authority for one run, and one certificate that all processes
 * show. An installation gets these from its own authority.
 */
import { execFile } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";

const execute = promisify(execFile);

/** The name in the certificate, which is valid for every address of a process. */
const NAME = "fleet.tidegraph.test";

/**
 * Creates the certificates with OpenSSL, and returns the flags with which nodes and workers use them.
 *
 * @param {string} folder
 * @returns {Promise<string[]>}
 */
export async function certificates(folder) {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const file = (/** @type {string} */ name) => join(folder, name);
  const key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];
  const authority = ["-subj", "/CN=an authority of one run", "-addext", "basicConstraints=critical,CA:TRUE"];
  await openssl(
    ["req", "-x509", "-days", "2", ...key, ...authority],
    ["-keyout", file("authority.key"), "-out", file("authority.pem")],
  );
  await openssl(
    ["req", "-new", ...key, "-subj", `/CN=${NAME}`],
    ["-keyout", file("fleet.key"), "-out", file("fleet.csr")],
  );
  writeFileSync(file("fleet.ext"), `subjectAltName=DNS:${NAME}\nextendedKeyUsage=serverAuth,clientAuth\n`);
  await openssl(
    [
      "x509",
      "-req",
      "-days",
      "2",
      "-CAcreateserial",
      "-CA",
      file("authority.pem"),
      "-CAkey",
      file("authority.key"),
    ],
    ["-in", file("fleet.csr"), "-extfile", file("fleet.ext"), "-out", file("fleet.pem")],
  );
  return [
    ...["--tls-authorities", file("authority.pem")],
    ...["--tls-certificate", file("fleet.pem"), "--tls-key", file("fleet.key")],
    ...["--tls-server-name", NAME],
  ];
}

/** @param {string[][]} args */
async function openssl(...args) {
  try {
    await execute("openssl", args.flat());
  } catch (error) {
    throw new Error(`openssl ${args.flat().join(" ")}: ${error instanceof Error ? error.message : error}`);
  }
}
