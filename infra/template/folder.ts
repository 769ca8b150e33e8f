/**
 * Writes the folder of templates: the templates, the files of functions and machines under the hash of their content,
 * the sources of images, and the commands that deploy them.
 */
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { dirname, join, relative } from "node:path";
import { App, type DockerImageAssetSource, FileAssetPackaging, Validations } from "aws-cdk-lib";
import { AwsSolutionsChecks } from "cdk-nag";
import { type Zippable, zipSync } from "fflate";
import { InvalidProp } from "../lib/check.ts";
import { temporaryFolder } from "../lib/temporary.ts";
import { commands } from "./commands.ts";
import { SERVICE, ServiceTemplate, STATE, StateTemplate } from "./deployment.ts";
import type { Settings } from "./settings.ts";
import { Assets } from "./synthesizer.ts";

/** CloudFormation's limits: bytes of a template, its resources, parameters and outputs. */
const MOST = { bytes: 1_000_000, Resources: 500, Parameters: 200, Outputs: 200 };

/** The folder of the sources of images. */
const IMAGES = "images";
/** The date of files in archives, the oldest that they can have, so that equal files make equal archives. */
const OLDEST = new Date("1980-01-01T00:00:00");
/** The system in an archive whose attributes are the mode of a file of Unix. */
const UNIX = 3;

/** The size of a template. */
interface Measured {
  readonly bytes: number;
  readonly resources: number;
}

/** What was written. */
export interface Folder {
  /** Templates by file name. */
  readonly templates: Record<string, Measured>;
  /** Paths of files that templates refer to. */
  readonly files: readonly string[];
  /** Images by their tag. */
  readonly images: ReadonlyMap<string, DockerImageAssetSource>;
}

/** Makes the templates and writes the folder. What an earlier run wrote there is removed before. */
export function writeFolder(settings: Settings): Folder {
  const { out } = settings;
  checkFolder(out);
  const assets = new Assets();
  const assembly = temporaryFolder("template");
  const texts = new Map<string, string>();
  const take = (stack: string, as: string) =>
    texts.set(`${as}.template.json`, readFileSync(join(assembly, `${stack}.template.json`), "utf8"));
  for (const [index, nodes] of settings.nodes.entries()) {
    makeApp(settings, nodes, assets, assembly).synth();
    // The state is the same for every number of nodes.
    if (index === 0) take("State", STATE);
    take("Service", index === 0 ? SERVICE : `${SERVICE}-${nodes}-nodes`);
  }
  const templates = Object.fromEntries([...texts].map(([name, text]) => [name, measured(name, text)]));
  rmSync(out, { recursive: true, force: true });
  mkdirSync(out, { recursive: true });
  for (const [name, text] of texts) writeFileSync(join(out, name), text);
  writeAssets(assets, assembly, out);
  writeFileSync(join(out, "README.md"), commands({ settings, images: assets.images, folder: IMAGES }));
  return { templates, files: [...assets.files.keys()], images: assets.images };
}

/** Refuses a folder with files of others, because it would be removed. */
function checkFolder(out: string): void {
  if (!existsSync(out)) return;
  const isFree = statSync(out).isDirectory() && readdirSync(out).length === 0;
  if (isFree || existsSync(join(out, `${STATE}.template.json`))) return;
  throw new InvalidProp("--out", out, "a new or empty folder, or one that this command has written");
}

/**
 * Makes both stacks, with a number of nodes. Their ids are those of the example, because paths of constructs are in tags;
 * so each number of nodes has an app of its own.
 */
export function makeApp(settings: Settings, nodes: number, assets: Assets, outdir?: string): App {
  const app = new App({ outdir: outdir ?? temporaryFolder("template"), analyticsReporting: false });
  const { state } = new StateTemplate(app, "State", settings, assets);
  new ServiceTemplate(app, "Service", settings, { nodes, state, assets });
  Validations.of(app).addPlugins(new AwsSolutionsChecks(app));
  return app;
}

/** Copies what templates refer to from the assembly into the folder. */
function writeAssets({ files, images }: Assets, assembly: string, out: string): void {
  for (const [path, { fileName = "", packaging }] of files) {
    const to = join(out, path);
    mkdirSync(dirname(to), { recursive: true });
    const from = join(assembly, fileName);
    if (packaging === FileAssetPackaging.ZIP_DIRECTORY) writeFileSync(to, zipped(from));
    else cpSync(from, to);
  }
  for (const [tag, { directoryName = "" }] of images)
    cpSync(join(assembly, directoryName), join(out, IMAGES, tag), { recursive: true });
}

/** Returns the size of a template, and refuses one that CloudFormation would refuse. */
export function measured(name: string, text: string): Measured {
  const template: Record<string, object | undefined> = JSON.parse(text);
  const sizes = {
    bytes: Buffer.byteLength(text),
    Resources: Object.keys(template.Resources ?? {}).length,
    Parameters: Object.keys(template.Parameters ?? {}).length,
    Outputs: Object.keys(template.Outputs ?? {}).length,
  };
  for (const [what, most] of Object.entries(MOST)) {
    const found = sizes[what as keyof typeof sizes];
    if (found > most) throw new Error(`${name} has ${found} ${what}, and CloudFormation takes ${most}`);
  }
  return { bytes: sizes.bytes, resources: sizes.Resources };
}

/** Returns a folder as an archive, in which programs may be executed. */
function zipped(folder: string): Uint8Array {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((one) => one.isFile())
    .map((one) => join(one.parentPath, one.name))
    .toSorted();
  const all: Zippable = {};
  for (const file of files) {
    const isProgram = (statSync(file).mode & 0o111) !== 0;
    const mode = isProgram ? 0o100755 : 0o100644;
    all[relative(folder, file)] = [readFileSync(file), { mtime: OLDEST, os: UNIX, attrs: mode << 16 }];
  }
  return zipSync(all);
}
