/**
 * The programs: a folder with them, or the archive of a release. Synth checks that they exist and are built for the right processor, so that no machine
 * fails on them at start.
 */
import { createHash } from "node:crypto";
import { closeSync, copyFileSync, existsSync, openSync, readFileSync, readSync, statSync } from "node:fs";
import { join, resolve } from "node:path";
import { InvalidProp } from "./check.ts";
import { isArchive, unpacked } from "./release-archive.ts";
import { temporaryFolder } from "./temporary.ts";

/** The programs, by file name. */
export type Program =
  | "bootstrap"
  | "tidegraph"
  | "tidegraph-node"
  | "tidegraph-rebalance"
  | "tidegraph-ingest";

/** What each program is for, as messages say it. */
const PURPOSE: Record<Program, string> = {
  bootstrap: "the query function (`tidegraph-lambda`, under the name that Lambda starts)",
  tidegraph: "the worker",
  "tidegraph-node": "the storage node",
  "tidegraph-rebalance": "the function that moves replicas",
  "tidegraph-ingest": "the function that loads dropped files",
};

/** Processors, by the names that Lambda uses. */
export type Architecture = "arm64" | "x86_64";

/** Parts of the ELF header: the magic bytes, the offset of the machine number, and the machine numbers. */
const ELF = Buffer.from("\x7fELF");
const MACHINE_AT = 18;
const MACHINE: Record<Architecture, number> = { arm64: 0xb7, x86_64: 0x3e };

export class Bundle {
  private readonly folder: string;

  /**
   * @param given the value of the `bundle` prop
   * @param sha256 the value of the `bundleSha256` prop
   */
  constructor(given: string, sha256?: string) {
    if (sha256 !== undefined && !isArchive(given))
      throw new InvalidProp(
        "bundleSha256",
        sha256,
        "left out with a folder: it is the checksum of an archive",
      );
    const folder = isArchive(given) ? unpacked(given, sha256) : given;
    this.folder = resolve(folder);
    if (!existsSync(this.folder) || !statSync(this.folder).isDirectory()) {
      throw new InvalidProp(
        "bundle",
        given,
        "the archive of a release, or a folder with bootstrap, tidegraph, tidegraph-node, tidegraph-rebalance and tidegraph-ingest",
      );
    }
  }

  /** Returns the path of a program and checks that it is built for the processor. */
  path(program: Program, architecture: Architecture = "arm64"): string {
    const path = join(this.folder, program);
    if (!existsSync(path) || statSync(path).size === 0) {
      throw new InvalidProp("bundle", this.folder, `a folder in which ${program} is: ${PURPOSE[program]}`);
    }
    const head = Buffer.alloc(MACHINE_AT + 2);
    const file = openSync(path, "r");
    readSync(file, head);
    closeSync(file);
    if (head.subarray(0, ELF.length).equals(ELF) && head.readUInt16LE(MACHINE_AT) !== MACHINE[architecture]) {
      throw new InvalidProp("bundle", path, `a program for ${architecture}: ${PURPOSE[program]}`);
    }
    return path;
  }

  /** Returns the SHA-256 of a program, in hexadecimal. */
  checksum(program: Program): string {
    return createHash("sha256")
      .update(readFileSync(this.path(program)))
      .digest("hex");
  }

  /** Makes a folder with one program, under the name that Lambda starts. */
  functionFolder(program: Program, architecture: Architecture): string {
    const folder = temporaryFolder(program);
    copyFileSync(this.path(program, architecture), join(folder, "bootstrap"));
    return folder;
  }

  /** Makes a folder with one program and other files, and nothing else. */
  folderWith(program: Program, others: readonly string[] = [], architecture?: Architecture): string {
    const folder = temporaryFolder(program);
    copyFileSync(this.path(program, architecture), join(folder, program));
    for (const other of others) copyFileSync(other, join(folder, other.slice(other.lastIndexOf("/") + 1)));
    return folder;
  }
}
