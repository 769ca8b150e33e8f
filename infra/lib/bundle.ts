/**
 * The folder with the three programs, as they were built for arm64. Whether they are there, and for the right processor, is looked at when the
 * template is made, not when a machine starts.
 */
import { createHash } from "node:crypto";
import {
  closeSync,
  copyFileSync,
  existsSync,
  mkdtempSync,
  openSync,
  readFileSync,
  readSync,
  statSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { InvalidProp } from "./check.ts";

/** The programs, by the names that their files have. */
export type Program = "bootstrap" | "tidegraph" | "tidegraph-node";

/** What a program is for, in messages. */
const PURPOSE: Record<Program, string> = {
  bootstrap: "the query function (`tidegraph-lambda`, under the name that Lambda starts)",
  tidegraph: "the worker",
  "tidegraph-node": "the storage node",
};

/** Numbers of ELF: the mark that files begin with, where the processor stands, and which one it has to be. */
const ELF = Buffer.from("\x7fELF");
const MACHINE_AT = 18;
const AARCH64 = 0xb7;

export class Bundle {
  private readonly folder: string;

  /** @param folder as the prop says */
  constructor(folder: string) {
    this.folder = resolve(folder);
    if (!existsSync(this.folder) || !statSync(this.folder).isDirectory()) {
      throw new InvalidProp("bundle", folder, "a folder with bootstrap, tidegraph and tidegraph-node");
    }
  }

  /** Path of a program. */
  path(program: Program): string {
    const path = join(this.folder, program);
    if (!existsSync(path) || statSync(path).size === 0) {
      throw new InvalidProp("bundle", this.folder, `a folder in which ${program} is: ${PURPOSE[program]}`);
    }
    const head = Buffer.alloc(MACHINE_AT + 2);
    const file = openSync(path, "r");
    readSync(file, head);
    closeSync(file);
    if (head.subarray(0, ELF.length).equals(ELF) && head.readUInt16LE(MACHINE_AT) !== AARCH64) {
      throw new InvalidProp("bundle", path, `a program for arm64 (aarch64): ${PURPOSE[program]}`);
    }
    return path;
  }

  /** SHA-256 of a program, in hexadecimal. */
  checksum(program: Program): string {
    return createHash("sha256")
      .update(readFileSync(this.path(program)))
      .digest("hex");
  }

  /** A folder with one program and other files, and nothing else. */
  folderWith(program: Program, ...others: string[]): string {
    const folder = mkdtempSync(join(tmpdir(), `tidegraph-${program}-`));
    copyFileSync(this.path(program), join(folder, program));
    for (const other of others) copyFileSync(other, join(folder, other.slice(other.lastIndexOf("/") + 1)));
    return folder;
  }
}
