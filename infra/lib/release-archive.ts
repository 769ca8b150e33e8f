/**
 * Archives of a release (`tidegraph-VERSION-linux-arm64.tar.gz`), on this machine or at an address. An archive has a
 * checksum, and the version of the constructs: synth refuses another one.
 *
 * What is downloaded stays in the user's cache under its checksum, because each command of the CDK generates the templates
 * again.
 */
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { InvalidProp } from "./check.ts";
import { temporaryFolder } from "./temporary.ts";
import { VERSION } from "./version.ts";

const WITH_SCHEME = /^[a-z][a-z0-9+.-]*:\/\//i;
/** The folder in the archive of a release. */
const FOLDER = /^tidegraph-(.+)-linux-(arm64|x86_64)$/;
/** The processor of machines and workers. */
const ARCHITECTURE = "arm64";
/** Time limit of a download, in seconds. */
const DOWNLOAD_S = 600;

/** Whether the value of the prop `bundle` is an archive, and not a folder. */
export function isArchive(bundle: string): boolean {
  return WITH_SCHEME.test(bundle) || /\.(tar\.gz|tgz)$/.test(bundle);
}

/** Unpacks an archive, and returns the folder with the programs. */
export function unpacked(bundle: string, sha256: string | undefined): string {
  if (sha256 !== undefined && !/^[0-9a-f]{64}$/.test(sha256))
    throw new InvalidProp("bundleSha256", sha256, "64 hexadecimal digits in lower case");
  const file = WITH_SCHEME.test(bundle) ? downloaded(bundle, sha256) : local(bundle, sha256);
  const name = folderIn(bundle, file);
  const folder = temporaryFolder("bundle");
  execFileSync("tar", ["-xzf", file, "-C", folder, name]);
  return join(folder, name);
}

/** Checks an archive on this machine, and returns its path. */
function local(path: string, sha256: string | undefined): string {
  if (!existsSync(path)) throw new InvalidProp("bundle", path, "an archive of a release that exists");
  if (sha256 !== undefined) checkSum(path, path, sha256);
  return path;
}

/** Returns the path of a downloaded archive. */
function downloaded(address: string, sha256: string | undefined): string {
  if (!address.startsWith("https://"))
    throw new InvalidProp("bundle", address, "a folder, an archive, or the address of one with https");
  if (sha256 === undefined) {
    const sums = "given with an address: SHA256SUMS of the release has the checksum of the archive";
    throw new InvalidProp("bundleSha256", null, sums);
  }
  const cache = join(process.env.XDG_CACHE_HOME || join(homedir(), ".cache"), "tidegraph", "archives");
  const kept = join(cache, `${sha256}.tar.gz`);
  if (existsSync(kept) && sumOf(kept) === sha256) return kept;
  mkdirSync(cache, { recursive: true });
  const part = `${kept}.${process.pid}`;
  try {
    download(address, part);
    checkSum(address, part, sha256);
    renameSync(part, kept);
  } finally {
    rmSync(part, { force: true });
  }
  return kept;
}

/** Downloads with curl: constructs cannot wait for a promise, and curl knows proxies and authorities of the system. */
function download(address: string, file: string): void {
  const https = ["--proto", "=https", "--proto-redir", "=https", "--location"];
  const limits = ["--retry", "3", "--max-time", String(DOWNLOAD_S)];
  try {
    execFileSync(
      "curl",
      ["--fail", "--silent", "--show-error", ...https, ...limits, "--output", file, address],
      {
        encoding: "utf8",
        stdio: ["ignore", "ignore", "pipe"],
      },
    );
  } catch (error) {
    const { stderr, message } = error as { stderr?: string; message: string };
    const reason = (stderr || message).trim();
    throw new InvalidProp("bundle", address, `an address from which curl can load the archive: ${reason}`);
  }
}

function checkSum(what: string, file: string, sha256: string): void {
  const sum = sumOf(file);
  if (sum !== sha256)
    throw new InvalidProp("bundleSha256", sha256, `the checksum of ${what}, which is ${sum}`);
}

function sumOf(file: string): string {
  return createHash("sha256").update(readFileSync(file)).digest("hex");
}

/** Returns the name of the folder in an archive, which says the release and the processor. */
function folderIn(bundle: string, file: string): string {
  let list: string;
  try {
    list = execFileSync("tar", ["-tzf", file], { encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
  } catch {
    throw new InvalidProp("bundle", bundle, "an archive that tar can read (tar -tzf)");
  }
  const names = new Set(list.split("\n").flatMap((path) => path.split("/")[0] || []));
  const [name = ""] = names;
  const [, version, architecture] = FOLDER.exec(name) ?? [];
  if (names.size !== 1 || version === undefined)
    throw new InvalidProp(
      "bundle",
      bundle,
      `the archive of a release, with the folder tidegraph-${VERSION}-linux-arm64`,
    );
  if (version !== VERSION)
    throw new InvalidProp(
      "bundle",
      bundle,
      `an archive of ${VERSION}, the release of these constructs; it has ${version}`,
    );
  if (architecture !== ARCHITECTURE)
    throw new InvalidProp(
      "bundle",
      bundle,
      `an archive for ${ARCHITECTURE}; it has programs for ${architecture}`,
    );
  return name;
}
