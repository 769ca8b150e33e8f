/**
 * The folder with the programs. Whether they are there, and for the right processor, is looked at when the template is made, not when a machine
 * starts.
 */
import { createHash } from "node:crypto";
import { closeSync, copyFileSync, existsSync, openSync, readFileSync, readSync, statSync } from "node:fs";
import { join, resolve } from "node:path";
import { InvalidProp } from "./check.ts";
import { temporaryFolder } from "./temporary.ts";

/** The programs, by the names that their files have. */
export type Program =
  | "bootstrap"
  | "tidegraph"
  | "tidegraph-node"
  | "tidegraph-rebalance"
  | "tidegraph-ingest";

/** What a program is for, in messages. */
const PURPOSE: Record<Program, string> = {
  bootstrap: "the query function (`tidegraph-lambda`, under the name that Lambda starts)",
  tidegraph: "the worker",
  "tidegraph-node": "the storage node",
  "tidegraph-rebalance": "the function that moves replicas",
  "tidegraph-ingest": "the function that loads dropped files",
};

/** Processors, by the names that Lambda has for them. */
export type Architecture = "arm64" | "x86_64";

/** Numbers of ELF: the mark that files begin with, where the processor stands, and which ones there are. */
const ELF = Buffer.from("\x7fELF");
const MACHINE_AT = 18;
const MACHINE: Record<Architecture, number> = { arm64: 0xb7, x86_64: 0x3e };

export class Bundle {
  private readonly folder: string;

  /** @param folder as the prop says */
  constructor(folder: string) {
    this.folder = resolve(folder);
    if (!existsSync(this.folder) || !statSync(this.folder).isDirectory()) {
      throw new InvalidProp(
        "bundle",
        folder,
        "a folder with bootstrap, tidegraph, tidegraph-node, tidegraph-rebalance and tidegraph-ingest",
      );
    }
  }

  /** Path of a program, which is for this processor. */
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

  /** SHA-256 of a program, in hexadecimal. */
  checksum(program: Program): string {
    return createHash("sha256")
      .update(readFileSync(this.path(program)))
      .digest("hex");
  }

  /** A folder with one program by the name that Lambda starts. */
  functionFolder(program: Program, architecture: Architecture): string {
    const folder = temporaryFolder(program);
    copyFileSync(this.path(program, architecture), join(folder, "bootstrap"));
    return folder;
  }

  /** A folder with one program and other files, and nothing else. */
  folderWith(program: Program, others: readonly string[] = [], architecture?: Architecture): string {
    const folder = temporaryFolder(program);
    copyFileSync(this.path(program, architecture), join(folder, program));
    for (const other of others) copyFileSync(other, join(folder, other.slice(other.lastIndexOf("/") + 1)));
    return folder;
  }
}
