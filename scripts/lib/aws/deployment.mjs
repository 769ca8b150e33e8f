/**
 * The example app (`infra/bin/example.ts`) in LocalStack: synthesized, deployed and destroyed with the CDK's own
 * command line, using only settings that are open to every user.
 *
 * Four settings adapt the app to LocalStack and to tests. Brokers are given, since LocalStack has no MSK. There are no
 * workers, since their image needs Docker. The query function is built for this machine's processor. A lost node has
 * less time to come back, so that tests need not wait for it. LocalStack skips the other resources that it does not
 * support (Auto Scaling, launch templates).
 */
import { execFile, execFileSync, spawn } from "node:child_process";
import { closeSync, copyFileSync, mkdirSync, openSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { ACCOUNT, localStackPrograms, REGION } from "../localstack.mjs";
import { root } from "../run.mjs";

const execute = promisify(execFile);
const infra = join(root, "infra");

/** Time limit of an execution of a state machine. */
const EXECUTION_MS = 300_000;

/** The name of the deployment. */
const NAME = "local";

/** @typedef {{ [name: string]: unknown }} Json */
/** @typedef {{ Resources: Record<string, { Type: string, Properties: Json }> }} Template */

export class Deployment {
  /**
   * @param {{
   *   home: string, localstack: import("../localstack.mjs").LocalStack,
   *   programs: Awaited<ReturnType<typeof import("../programs.mjs").buildFleet>>, brokers: string,
   *   graphs: readonly string[], encrypts: boolean
   * }} options
   */
  constructor({ home, localstack, programs, brokers, graphs, encrypts }) {
    this.localstack = localstack;
    this.assembly = join(home, "cdk.out");
    this.outputsFile = join(home, "outputs.json");
    this.bundle = join(home, "bundle");
    this.log = join(home, "cdk.log");
    this.temporary = join(home, "tmp");
    mkdirSync(this.temporary, { recursive: true });
    this.programs = programs;
    this.brokers = brokers;
    /** The graphs besides that of the state. */
    this.graphs = graphs;
    /** Graphs that were taken out of the deployment. @type {readonly string[]} */
    this.taken = [];
    /** Whether connections between processes are encrypted. */
    this.encrypts = encrypts;
    /** Physical ids of the service's resources by logical id. @type {Map<string, string>} */
    this.ids = new Map();
    /** @type {Record<string, Record<string, string>>} */
    this.outputs = {};
  }

  /**
   * Runs the CDK. Its output, a line for each step of each resource, goes to `cdk.log`; if it fails, the error has the
   * end of that output.
   *
   * @param {readonly string[]} args
   */
  async cdk(args) {
    // The command line's temporary files go into our folder, so that they are removed with it.
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

  /** Makes the templates, and the folder of programs that they need. */
  async synth() {
    mkdirSync(this.bundle, { recursive: true });
    for (const [name, binary] of [
      ["bootstrap", this.programs.lambdaBinary],
      ["tidegraph-rebalance", this.programs.rebalanceBinary],
      ["tidegraph-ingest", this.programs.ingestBinary],
    ]) {
      const program = join(this.bundle, name ?? "");
      copyFileSync(binary ?? "", program);
      // Debug symbols make a debug build ten times as large.
      try {
        execFileSync("strip", [program]);
      } catch {
        console.log("there is no strip; the functions are uploaded as they were built");
      }
    }
    // Never run here: workers would, and LocalStack starts none.
    writeFileSync(join(this.bundle, "tidegraph"), "in the place of tidegraph\n");
    // The function that removes a graph runs it. The template takes no program for this machine's processor.
    const script = `#!/bin/sh\nexec '${this.programs.nodeBinary}' "$@"\n`;
    writeFileSync(join(this.bundle, "tidegraph-node"), script, { mode: 0o755 });
    await this.makeTemplates();
  }

  /** Takes the further graphs out of the deployment: makes the templates without them. */
  async takeOut() {
    this.taken = this.graphs;
    this.graphs = [];
    await this.makeTemplates();
  }

  /** Makes the templates for the graphs that the deployment has. */
  async makeTemplates() {
    const context = {
      name: NAME,
      bundle: this.bundle,
      brokers: this.brokers,
      brokersSecurity: "plaintext",
      brokersCopies: "1",
      queryArchitecture: process.arch === "arm64" ? "arm64" : "x86_64",
      workers: "0",
      patience: "20",
      graphs: this.graphs.join(),
      ...(this.taken.length > 0 && { graphRemoval: "true" }),
      ...(this.encrypts && { encryption: "required" }),
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

  /**
   * Deletes the state with all data: runs the commands of docs/deploy.md ("Take it away"), but for those of MSK, which
   * LocalStack does not have.
   */
  async deleteAll() {
    const page = readFileSync(join(root, "docs", "deploy.md"), "utf8");
    const [, commands] = /<!-- delete everything -->\n+```\n(.*?)```\n/s.exec(page) ?? [];
    if (commands === undefined) throw new Error("docs/deploy.md has no commands that delete everything");
    const { PATH } = process.env;
    const env = { ...this.localstack.environment, NAME, PATH: `${await localStackPrograms()}:${PATH}` };
    await execute("bash", ["-euo", "pipefail", "-c", commands], {
      env: { ...process.env, ...env },
      timeout: EXECUTION_MS,
      maxBuffer: 64 << 20,
    });
  }

  /** Returns a template as the CDK made it. @param {"State" | "Service"} stack */
  template(stack) {
    const text = readFileSync(join(this.assembly, `${stack}.template.json`), "utf8");
    return /** @type {{ Resources: Record<string, { Type: string, Properties: Json }> }} */ (
      JSON.parse(text)
    );
  }

  /**
   * Returns the value of an output of a stack, by the prefix of its id. @param {"state" | "service"} stack @param
   * {string} id
   */
  output(stack, id) {
    const found = Object.entries(this.outputs[`${NAME}-${stack}`] ?? {}).filter(([name]) =>
      name.startsWith(id),
    );
    if (found.length !== 1) throw new Error(`${found.length} outputs of ${stack} begin with ${id}`);
    return found[0]?.[1] ?? "";
  }

  /** Returns the ARN of a state machine of the service, by the prefix of its logical id. @param {string} machine */
  machine(machine) {
    const found = [...this.ids].find(([id]) => id.startsWith(machine) && id.includes("StateMachine"));
    if (found === undefined) throw new Error(`the service has no state machine ${machine}`);
    return found[1];
  }

  /**
   * Runs a state machine of the service to its end and returns its output.
   *
   * @param {string} machine the prefix of its logical id
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

  /** The address for queries. The address in the output is AWS's; LocalStack accepts the same requests under a path. */
  get api() {
    const [, id] =
      /^https:\/\/([a-z0-9]+)\.execute-api\./.exec(this.output("service", "ServiceEndpoint")) ?? [];
    if (id === undefined) throw new Error(`no id in ${this.output("service", "ServiceEndpoint")}`);
    return `${this.localstack.endpoint}/_aws/execute-api/${id}/graph`;
  }

  /** The name of the table of the partition map. */
  get table() {
    const found = Object.keys(this.outputs[`${NAME}-state`] ?? {}).find((id) =>
      id.startsWith("ExportsOutputRefStateMapTable"),
    );
    return this.output("state", found ?? "ExportsOutputRefStateMapTable");
  }

  /**
   * Returns the physical id of a resource of the service. @param {string} type @param {string} beginning of its logical
   * id
   */
  resource(type, beginning) {
    const found = Object.entries(this.template("Service").Resources).filter(
      ([logical, { Type }]) => Type === type && logical.startsWith(beginning),
    );
    const [[logical = ""] = []] = found;
    if (found.length !== 1) throw new Error(`${found.length} resources ${type} begin with ${beginning}`);
    return this.reference(logical);
  }

  /** The function that issues certificates, and the secrets that it writes. */
  get certificates() {
    const secret = (/** @type {string} */ name) =>
      this.resource("AWS::SecretsManager::Secret", `ServiceEncryption${name}`);
    return {
      function: this.resource("AWS::Lambda::Function", "ServiceEncryptionFunction"),
      authority: secret("Authority"),
      nodes: secret("Nodes"),
      workers: secret("Workers"),
      functions: secret("Functions"),
    };
  }

  /**
   * Sends the request of the custom resource `Issued` to the function that issues certificates, as CloudFormation does
   * before it creates machines. LocalStack calls no function for a custom resource. The function asks whether the stack
   * is being created, and otherwise looks at the group of machines, which LocalStack does not have. So a stack whose
   * creation has not begun stands for the real one, which is complete by now.
   */
  async issueCertificates() {
    const { localstack } = this;
    const stack = ["--stack-name", `${NAME}-to-come`];
    const Resources = { Topic: { Type: "AWS::SNS::Topic" } };
    const { StackId } = await localstack.aws([
      ...["cloudformation", "create-change-set", ...stack, "--change-set-type", "CREATE"],
      ...["--change-set-name", "first", "--template-body", JSON.stringify({ Resources })],
    ]);
    let said = "nothing";
    const server = createServer(async (request, response) => {
      said = `${request.method} ${await text(request)}`;
      response.end();
    });
    await new Promise((done) => server.listen(0, "127.0.0.1", () => done(undefined)));
    const { port } = /** @type {import("node:net").AddressInfo} */ (server.address());
    const payload = {
      RequestType: "Create",
      ResponseURL: `http://127.0.0.1:${port}/`,
      StackId,
      RequestId: "request",
      LogicalResourceId: "Issued",
      ResourceType: "Custom::TidegraphCertificates",
    };
    try {
      await this.invoke(this.certificates.function, payload);
      if (!said.startsWith("PUT ") || JSON.parse(said.slice(4)).Status !== "SUCCESS")
        throw new Error(`CloudFormation was told: ${said}`);
    } finally {
      server.close();
      await localstack.aws(["cloudformation", "delete-stack", ...stack]);
    }
  }

  /** Invokes a function and returns what it returned. @param {string} name @param {Json} payload */
  async invoke(name, payload) {
    const file = join(this.temporary, `answer-${name}.json`);
    const args = ["--function-name", name, "--payload", JSON.stringify(payload), file];
    const { FunctionError } = await this.localstack.aws(["lambda", "invoke", ...args]);
    const returned = readFileSync(file, "utf8");
    if (FunctionError !== undefined) throw new Error(`${name}: ${FunctionError} ${returned}`);
    return JSON.parse(returned || "null");
  }

  /** Returns the number of storage nodes in the template. */
  nodes() {
    const group = Object.values(this.template("Service").Resources).find(
      ({ Type }) => Type === "AWS::AutoScaling::AutoScalingGroup",
    );
    return Number(group?.Properties.MinSize);
  }

  /**
   * Returns the files that user data writes on a machine, by path, with the values that CloudFormation inserts.
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
   * Resolves a text of the service's template, with the values of its references.
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
      case "Fn::Select": {
        const [index, list] = /** @type {[number, { "Fn::Split": [string, unknown] }]} */ (of);
        const [between, text] = list["Fn::Split"];
        return this.resolve(text).split(between)[index] ?? "";
      }
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
