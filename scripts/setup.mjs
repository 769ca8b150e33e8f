/**
 * `npm run setup [-- --system]`: installs what CONTRIBUTING.md lists, so that the first `npm test` only builds.
 *
 * It checks the toolchains and lists the missing ones. With `--system` it installs those that Debian and Ubuntu (with
 * `apt-get`) or Homebrew package. Then it installs what the repository pins into `~/.cache/tidegraph` and
 * `node_modules`, and skips what is there.
 */
import { spawnSync } from "node:child_process";
import { parseArgs } from "node:util";
import { CARGO_DENY_VERSION, cargoTool, nextest } from "./lib/cargo.mjs";
import { drivers } from "./lib/clients.mjs";
import { dynamodbClasspath } from "./lib/dynamodb.mjs";
import { kafkaClasspath } from "./lib/kafka.mjs";
import { kits } from "./lib/kits.mjs";
import { localStackPython } from "./lib/localstack.mjs";
import { pythonWithClients, pythonWithGremlin38 } from "./lib/python.mjs";
import { installNodeModules, run, runSteps } from "./lib/run.mjs";

const { values } = parseArgs({ options: { system: { type: "boolean", default: false } } });

/**
 * @typedef {object} Tool
 * @property {string} name
 * @property {readonly string[]} command prints its version
 * @property {RegExp} accepted
 * @property {string} apt
 * @property {string} brew
 * @property {string} otherwise how to get it by hand
 */

/** @type {readonly Tool[]} */
const TOOLS = [
  {
    name: "Rust, through rustup",
    command: ["cargo", "--version"],
    accepted: /cargo 1\./,
    apt: "",
    brew: "rustup",
    otherwise: "https://rustup.rs; rust-toolchain.toml names the version",
  },
  {
    name: "a C compiler",
    command: ["cc", "--version"],
    accepted: /./,
    apt: "build-essential",
    brew: "",
    otherwise: "gcc or clang, with make",
  },
  {
    name: "OpenSSL's headers, for the Kafka client",
    command: ["pkg-config", "--modversion", "openssl"],
    accepted: /^3\./,
    apt: "pkg-config libssl-dev",
    brew: "pkg-config openssl@3",
    otherwise: "OpenSSL 3 with its headers, and pkg-config",
  },
  {
    name: "Python 3.10 or newer",
    command: ["python3", "--version"],
    accepted: /3\.1\d/,
    apt: "python3 python3-venv",
    brew: "python@3.13",
    otherwise: "https://www.python.org",
  },
  {
    name: "Java 17 or newer, with jar",
    command: ["javac", "-version"],
    accepted: /javac (1[7-9]|[2-9]\d)/,
    apt: "openjdk-17-jdk-headless",
    brew: "openjdk@17",
    otherwise: "https://adoptium.net",
  },
  {
    name: "Maven",
    command: ["mvn", "--version"],
    accepted: /Maven 3/,
    apt: "maven",
    brew: "maven",
    otherwise: "https://maven.apache.org",
  },
];

/** @param {Tool} tool */
function isThere({ command: [program = "", ...args], accepted }) {
  const { status, stdout, stderr } = spawnSync(program, args, { encoding: "utf8" });
  return status === 0 && accepted.test(`${stdout}${stderr}`);
}

async function toolchains() {
  let missing = TOOLS.filter((tool) => !isThere(tool));
  if (values.system && missing.length > 0) {
    const manager = process.platform === "darwin" ? "brew" : "apt";
    const packages = missing.flatMap((tool) => tool[manager].split(" ").filter((name) => name !== ""));
    if (packages.length > 0) {
      const sudo = process.getuid?.() === 0 || manager === "brew" ? [] : ["sudo"];
      const command = manager === "brew" ? ["brew", "install"] : ["apt-get", "install", "--yes"];
      const [program = "", ...args] = [...sudo, ...command, ...packages];
      await run(program, args);
    }
    missing = missing.filter((tool) => !isThere(tool));
  }
  for (const { name, otherwise } of missing) console.error(`missing: ${name} (${otherwise})`);
  if (missing.length > 0) {
    const hint = values.system ? "" : "; `npm run setup -- --system` installs what the system packages";
    throw new Error(`${missing.length} of ${TOOLS.length} toolchains are missing${hint}`);
  }
}

await runSteps("npm run setup", [
  ["toolchains", toolchains],
  ["npm packages", installNodeModules],
  ["crates", () => run("cargo", ["fetch", "--locked"])],
  ["cargo-nextest", () => nextest().then(() => undefined)],
  ["cargo-deny", () => cargoTool("cargo-deny", CARGO_DENY_VERSION).then(() => undefined)],
  ["Kafka", () => kafkaClasspath().then(() => undefined)],
  ["DynamoDB Local", () => dynamodbClasspath().then(() => undefined)],
  ["the languages' kits", () => kits().then(() => undefined)],
  // It needs a Python of one version, and says where it looked if there is none.
  ["LocalStack", () => localStackPython().then(() => undefined)],
  ["Python clients", () => Promise.all([pythonWithClients(), pythonWithGremlin38()]).then(() => undefined)],
  ["drivers of Java and Go", () => drivers().then(() => undefined)],
]);
