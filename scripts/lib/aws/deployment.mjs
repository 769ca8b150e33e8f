/**
 * The example app (`infra/bin/example.ts`) in LocalStack: synthesized, deployed and destroyed by the CDK's own command line, with no other settings than
 * those that anybody can make.
 *
 * Four of them are because of where this is: brokers are given, since LocalStack has no MSK; there are no workers, since their image needs Docker;
 * the query function is for this machine's processor; and a lost node has less time to come back, so that a test need not wait for it. What LocalStack does not have otherwise (Auto Scaling, launch templates) it passes over.
 */
import { execFileSync, spawn } from "node:child_process";
import { closeSync, copyFileSync, mkdirSync, openSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { ACCOUNT, REGION } from "../localstack.mjs";
import { root } from "../run.mjs";

const infra = join(root, "infra");

/** How long a state machine may take. */
const EXECUTION_MS = 300_000;

/** What everything is called. */
const NAME = "local";

/** @typedef {{ [name: string]: unknown }} Json */
/** @typedef {{ Resources: Record<string, { Type: string, Properties: Json }> }} Template */

export class Deployment {
  /**
   * @param {{ home: string, localstack: import("../localstack.mjs").LocalStack, lambdaBinary: string, rebalanceBinary: string, ingestBinary: string, brokers: string }} options
   */
  constructor({ home, localstack, lambdaBinary, rebalanceBinary, ingestBinary, brokers }) {
    this.localstack = localstack;
    this.assembly = join(home, "cdk.out");
    this.outputsFile = join(home, "outputs.json");
    this.bundle = join(home, "bundle");
    this.log = join(home, "cdk.log");
    this.temporary = join(home, "tmp");
    mkdirSync(this.temporary, { recursive: true });
    this.lambdaBinary = lambdaBinary;
    this.rebalanceBinary = rebalanceBinary;
    this.ingestBinary = ingestBinary;
    this.brokers = brokers;
    /** Physical ids of the service's resources by logical ones. @type {Map<string, string>} */
    this.ids = new Map();
    /** @type {Record<string, Record<string, string>>} */
    this.outputs = {};
  }

  /**
   * Runs the CDK. What it says, a line for each step of each resource, is in `cdk.log`, and its end in the error where it fails.
   *
   * @param {readonly string[]} args
   */
  async cdk(args) {
    // What the command line leaves in the temporary folder goes with ours.
    const env = { ...this.localstack.environment, CDK_DISABLE_CLI_TELEMETRY: "true", TMPDIR: this.temporary };
    const output = openSync(this.log, "a");
    const child = spawn("npx", ["--no-install", "cdk", ...args, "--no-notices"], {
      cwd: infra,
      env: { ...process.env, ...env },
      stdio: ["ignore", output, output],
    });
    closeSync(output);
    const end = () => child.kill("SIGKILL");
    process.on("exit", end);
    const code = await new Promise((done, fail) => child.on("error", fail).on("exit", done));
    process.off("exit", end);
    if (code === 0) return;
    throw new Error(`cdk ${args[0]} ended with ${code}: ${readFileSync(this.log, "utf8").slice(-4000)}`);
  }

  /** Makes the templates, and the folder with programs that they ask for. */
  async synth() {
    mkdirSync(this.bundle, { recursive: true });
    for (const [name, binary] of [
      ["bootstrap", this.lambdaBinary],
      ["tidegraph-rebalance", this.rebalanceBinary],
      ["tidegraph-ingest", this.ingestBinary],
    ]) {
      const program = join(this.bundle, name ?? "");
      copyFileSync(binary ?? "", program);
      // A debug build is ten times as large with what debuggers need.
      try {
        execFileSync("strip", [program]);
      } catch {
        console.log("there is no strip; the functions are uploaded as they were built");
      }
    }
    // Not run here: machines, which LocalStack does not start, would download them.
    for (const name of ["tidegraph", "tidegraph-node"])
      writeFileSync(join(this.bundle, name), `in the place of ${name}\n`);
    const context = {
      name: NAME,
      bundle: this.bundle,
      brokers: this.brokers,
      brokersSecurity: "plaintext",
      brokersCopies: "1",
      queryArchitecture: process.arch === "arm64" ? "arm64" : "x86_64",
      workers: "0",
      patience: "20",
    };
    const flags = Object.entries(context).flatMap(([name, value]) => ["-c", `${name}=${value}`]);
    await this.cdk(["synth", "--quiet", "--output", this.assembly, ...flags]);
  }

  async bootstrap() {
    await this.cdk(["bootstrap", "--app", this.assembly, `aws://${ACCOUNT}/${REGION}`]);
  }

  /** @param {"State" | "Service"} stack */
  async deploy(stack) {
    const how = ["--exclusively", "--require-approval", "never", "--progress", "events"];
    await this.cdk(["deploy", stack, "--app", this.assembly, ...how, "--outputs-file", this.outputsFile]);
    Object.assign(this.outputs, JSON.parse(readFileSync(this.outputsFile, "utf8")));
    if (stack === "State") return;
    const name = `${NAME}-service`;
    const found = await this.localstack.aws([
      "cloudformation",
      "describe-stack-resources",
      "--stack-name",
      name,
    ]);
    for (const { LogicalResourceId: logical, PhysicalResourceId: physical } of found.StackResources)
      this.ids.set(logical, physical);
  }

  /** @param {"State" | "Service"} stack */
  async destroy(stack) {
    await this.cdk(["destroy", stack, "--app", this.assembly, "--exclusively", "--force"]);
  }

  /** A template as the CDK made it. @param {"State" | "Service"} stack */
  template(stack) {
    const text = readFileSync(join(this.assembly, `${stack}.template.json`), "utf8");
    return /** @type {{ Resources: Record<string, { Type: string, Properties: Json }> }} */ (
      JSON.parse(text)
    );
  }

  /** The value of an output of a stack by the beginning of its id. @param {"state" | "service"} stack @param {string} id */
  output(stack, id) {
    const found = Object.entries(this.outputs[`${NAME}-${stack}`] ?? {}).filter(([name]) =>
      name.startsWith(id),
    );
    if (found.length !== 1) throw new Error(`${found.length} outputs of ${stack} begin with ${id}`);
    return found[0]?.[1] ?? "";
  }

  /** The ARN of a state machine of the service, by the beginning of its logical id. @param {string} machine */
  machine(machine) {
    const found = [...this.ids].find(([id]) => id.startsWith(machine) && id.includes("StateMachine"));
    if (found === undefined) throw new Error(`the service has no state machine ${machine}`);
    return found[1];
  }

  /**
   * Runs a state machine of the service to its end; answers its output.
   *
   * @param {string} machine the beginning of its logical id
   * @param {Json} input
   */
  async execute(machine, input) {
    const { localstack } = this;
    const arn = this.machine(machine);
    const start = ["stepfunctions", "start-execution", "--state-machine-arn", arn];
    const { executionArn } = await localstack.aws([...start, "--input", JSON.stringify(input)]);
    for (const end = Date.now() + EXECUTION_MS; ; await sleep(1000)) {
      const told = await localstack.aws([
        "stepfunctions",
        "describe-execution",
        "--execution-arn",
        executionArn,
      ]);
      if (told.status === "SUCCEEDED") return told.output;
      if (told.status !== "RUNNING" || Date.now() > end)
        throw new Error(`${machine}: ${JSON.stringify(told)}`);
    }
  }

  /** Where queries go. The address in the output is one of AWS's; LocalStack takes the same requests at a path. */
  get api() {
    const [, id] =
      /^https:\/\/([a-z0-9]+)\.execute-api\./.exec(this.output("service", "ServiceEndpoint")) ?? [];
    if (id === undefined) throw new Error(`no id in ${this.output("service", "ServiceEndpoint")}`);
    return `${this.localstack.endpoint}/_aws/execute-api/${id}/graph`;
  }

  /** How many storage nodes the template asks for. */
  nodes() {
    const group = Object.values(this.template("Service").Resources).find(
      ({ Type }) => Type === "AWS::AutoScaling::AutoScalingGroup",
    );
    return Number(group?.Properties.MinSize);
  }

  /**
   * Files that user data writes on a machine, by their paths, with the values that CloudFormation puts in.
   *
   * @returns {Map<string, string>}
   */
  machineFiles() {
    const all = Object.values(this.template("Service").Resources);
    const template = all.find(({ Type }) => Type === "AWS::EC2::LaunchTemplate");
    if (template === undefined) throw new Error("the template has no launch template");
    const data = /** @type {{ UserData: Json }} */ (template.Properties.LaunchTemplateData);
    const script = this.resolve(data.UserData["Fn::Base64"]);
    const found = script.matchAll(/^cat >(\S+) <<'END OF FILE'\n(.*?)^END OF FILE$/gms);
    return new Map([...found].map(([, path = "", content = ""]) => [path, content]));
  }

  /**
   * A text of the service's template with the values of what it refers to.
   *
   * @param {unknown} value
   * @returns {string}
   */
  resolve(value) {
    if (typeof value === "string") return value;
    const [[kind, of] = ["", undefined]] = Object.entries(/** @type {Json} */ (value));
    switch (kind) {
      case "Fn::Join": {
        const [between, parts] = /** @type {[string, unknown[]]} */ (of);
        return parts.map((part) => this.resolve(part)).join(between);
      }
      case "Fn::Sub":
        return String(of).replaceAll(/\$\{([^}]+)\}/g, (_, name) => this.reference(name));
      case "Fn::ImportValue":
        return this.output("state", String(of).replace(/^.*:/, ""));
      case "Ref":
        return this.reference(String(of));
      default:
        throw new Error(`no value for ${JSON.stringify(value)}`);
    }
  }

  /** @param {string} name */
  reference(name) {
    const pseudo = { "AWS::Region": REGION, "AWS::AccountId": ACCOUNT, "AWS::Partition": "aws" };
    const found = new Map([...Object.entries(pseudo), ...this.ids]).get(name);
    if (found === undefined) throw new Error(`the service has no ${name}`);
    return found;
  }
}
