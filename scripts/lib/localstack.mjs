/**
 * LocalStack as a process on this machine: without Docker, account or token, and with no downloads except from the
 * package registries. `npm run aws` deploys the templates to it.
 *
 * `localStackPython` installs it (pinned by hash in `localstack/requirements.txt`, about 500 MB), and `LocalStack` runs
 * it. Functions run as processes, and DynamoDB is DynamoDB Local from Maven Central; `localstack/plugin` explains how.
 */
import { execFile, execFileSync, spawn } from "node:child_process";
import {
  closeSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
} from "node:fs";
import { homedir, tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { freePort } from "./cluster/processes.mjs";
import { dynamodbClasspath } from "./dynamodb.mjs";
import { installed } from "./installed.mjs";
import { root, run } from "./run.mjs";

const execute = promisify(execFile);
const requirements = join(root, "scripts", "lib", "localstack", "requirements.txt");
const plugin = join(root, "scripts", "lib", "localstack", "plugin");

/** The region and the account that LocalStack claims. */
export const REGION = "eu-west-3";
export const ACCOUNT = "000000000000";

const START_MS = 240_000;
/** The first request to a service loads it; DynamoDB and Step Functions take half a minute on a busy machine. */
const WARM_MS = 180_000;
/** LocalStack needs up to half a minute to shut down in order. */
const END_MS = 30_000;

/** The only Python version on which LocalStack 4.14 starts and for which all of its dependencies are available. */
const PYTHON = "3.13";

/**
 * Finds the Python to use: `TIDEGRAPH_LOCALSTACK_PYTHON`, or the first one of that version on the path or in pyenv.
 *
 * @returns {Promise<string>}
 */
async function python() {
  const given = process.env.TIDEGRAPH_LOCALSTACK_PYTHON;
  const ofPyenv = join(process.env.PYENV_ROOT ?? join(homedir(), ".pyenv"), "versions");
  const versions = existsSync(ofPyenv)
    ? readdirSync(ofPyenv).filter((name) => name.startsWith(`${PYTHON}.`))
    : [];
  const candidates = given
    ? [given]
    : [`python${PYTHON}`, "python3", ...versions.map((name) => join(ofPyenv, name, "bin", "python3"))];
  const found = [];
  for (const program of candidates) {
    const ask = ["-c", "import sys, venv, ensurepip; print('%d.%d' % sys.version_info[:2])"];
    try {
      const { stdout } = await execute(program, ask);
      const version = stdout.trim();
      if (version === PYTHON) return program;
      found.push(`${program} is ${version}`);
    } catch {
      found.push(`${program} does not run, or has no venv`);
    }
  }
  throw new Error(
    `LocalStack needs Python ${PYTHON}, with venv: ${found.join(", ")}. Install it (such as with \`uv python install ${PYTHON}\` or \`pyenv install ${PYTHON}\`), or name it in TIDEGRAPH_LOCALSTACK_PYTHON`,
  );
}

/**
 * Returns the path of a Python that has LocalStack.
 *
 * @returns {Promise<string>}
 */
export async function localStackPython() {
  const into = await installed("localstack", "localstack", [requirements], async (into) => {
    await run(await python(), ["-m", "venv", join(into, "venv")]);
    const pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--require-hashes"];
    await run(join(into, "venv", "bin", "python"), [...pip, "-r", requirements]);
  });
  return join(into, "venv", "bin", "python");
}

/** Returns the folder of the programs that come with LocalStack, such as AWS's own command line. */
export async function localStackPrograms() {
  return dirname(await localStackPython());
}

export class LocalStack {
  /**
   * @param {{ log: string, variables?: Record<string, string> }} options `log`: a file for the output; `variables`: more
   * of LocalStack's own
   */
  constructor(options) {
    this.log = options.log;
    this.more = options.variables ?? {};
    this.port = 0;
    /** The folder for everything that LocalStack writes, except its log. */
    this.home = mkdtempSync(join(tmpdir(), "tidegraph-localstack-"));
    /** The output of functions, one file for each environment. */
    this.functionLogs = join(this.home, "functions");
    /** @type {import("node:child_process").ChildProcess | undefined} */
    this.child = undefined;
    this.ended = true;
    /** Descendant processes and their command lines, by process id. @type {Map<number, string>} */
    this.descendants = new Map();
  }

  get endpoint() {
    return `http://127.0.0.1:${this.port}`;
  }

  /**
   * Variables that direct AWS's SDKs, its command line and the CDK to this LocalStack, overriding the user's own.
   * LocalStack accepts any credentials.
   *
   * @returns {Record<string, string | undefined>}
   */
  get environment() {
    return {
      AWS_ENDPOINT_URL: this.endpoint,
      AWS_REGION: REGION,
      AWS_DEFAULT_REGION: REGION,
      AWS_ACCESS_KEY_ID: ACCOUNT,
      AWS_SECRET_ACCESS_KEY: "local",
      AWS_SESSION_TOKEN: undefined,
      AWS_PROFILE: undefined,
      AWS_EC2_METADATA_DISABLED: "true",
      // The object store refuses plain HTTP without this.
      AWS_ALLOW_HTTP: "true",
    };
  }

  /**
   * Runs AWS's own command line, which comes with LocalStack, and returns its output; `wait` has none.
   *
   * @param {readonly string[]} args
   */
  async aws(args) {
    const program = join(await localStackPrograms(), "aws");
    const env = { ...process.env, ...this.environment };
    const { stdout } = await execute(program, [...args, "--output", "json"], { env, maxBuffer: 64 << 20 });
    return JSON.parse(stdout || "{}");
  }

  /**
   * Starts LocalStack, and waits until it and some services answer.
   *
   * @param {readonly (keyof typeof WARM)[]} services services to load now, instead of at their first use
   */
  async start(services) {
    const [program, classpath] = [await localStackPython(), await dynamodbClasspath()];
    this.port = await freePort();
    const temporary = join(this.home, "tmp");
    for (const folder of [temporary, this.functionLogs]) mkdirSync(folder, { recursive: true });
    const output = openSync(this.log, "a");
    this.child = spawn(program, ["-m", "localstack.runtime.main"], {
      cwd: this.home,
      stdio: ["ignore", output, output],
      // A process group of its own, so that everything that it starts can be killed at the end.
      detached: true,
      env: {
        PATH: process.env.PATH,
        HOME: process.env.HOME,
        ...variables(this.port),
        ...this.more,
        PYTHONPATH: plugin,
        FILESYSTEM_ROOT: join(this.home, "fs"),
        TMPDIR: temporary,
        XDG_CACHE_HOME: join(this.home, "cache"),
        TIDEGRAPH_DYNAMODB_CLASSPATH: classpath,
        TIDEGRAPH_FUNCTION_LOGS: this.functionLogs,
      },
    });
    closeSync(output);
    this.ended = false;
    for (const event of ["error", "exit"]) {
      this.child.on(event, () => {
        this.ended = true;
      });
    }
    await this.answers("/_localstack/health", {}, START_MS);
    for (const service of services) {
      const { path, ...request } = WARM[service];
      await this.answers(path, request, WARM_MS);
    }
  }

  /**
   * Waits until a request succeeds.
   *
   * @param {string} path
   * @param {{ method?: string, headers?: Record<string, string>, body?: string }} request
   * @param {number} withinMs
   */
  async answers(path, request, withinMs) {
    const end = Date.now() + withinMs;
    let last = "nothing answered";
    while (Date.now() < end) {
      if (this.ended) throw new Error(`LocalStack ended: ${this.said()}`);
      try {
        const signal = AbortSignal.timeout(Math.max(1, end - Date.now()));
        const answer = await fetch(`${this.endpoint}${path}`, { ...request, signal });
        const text = await answer.text();
        if (answer.ok) return;
        last = `${answer.status} ${text.slice(0, 500)}`;
      } catch (error) {
        last = String(error);
      }
      await sleep(200);
    }
    throw new Error(`LocalStack does not answer ${path}: ${last}\n${this.said()}`);
  }

  /** Returns the end of the output. */
  said() {
    return readFileSync(this.log, "utf8").slice(-4000);
  }

  /** Shuts LocalStack down, or kills it after a while. None of its processes or files are left afterwards. */
  async stop() {
    if (!this.ended) {
      this.left();
      this.child?.kill("SIGTERM");
      const end = Date.now() + END_MS;
      while (!this.ended && Date.now() < end) await sleep(50);
    }
    this.kill();
    while (!this.ended) await sleep(20);
    rmSync(this.home, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 });
  }

  /** Kills the whole group at once, without waiting: for the end of this process. */
  kill() {
    if (this.child?.pid === undefined) return;
    const left = this.left();
    for (const pid of [-this.child.pid, ...left]) {
      try {
        process.kill(pid, "SIGKILL");
      } catch {
        // It has already ended.
      }
    }
  }

  /**
   * Returns the descendant processes that still exist. LocalStack starts DynamoDB Local in a process group of its own,
   * and does not always end it. Descendants are recorded while LocalStack runs and looked up again afterwards;
   * comparing command lines avoids hitting a process that has reused an id.
   */
  left() {
    const all = execFileSync("ps", ["-eo", "pid=,ppid=,args="], { encoding: "utf8", maxBuffer: 64 << 20 });
    const rows = all.split("\n").flatMap((line) => {
      const [, pid, parent, args] = /^\s*(\d+)\s+(\d+)\s+(.*)$/.exec(line) ?? [];
      return args === undefined ? [] : [{ pid: Number(pid), parent: Number(parent), args }];
    });
    if (!this.ended && this.child?.pid !== undefined) {
      const known = new Set([this.child.pid]);
      for (let before = 0; before !== known.size; ) {
        before = known.size;
        for (const { pid, parent } of rows) if (known.has(parent)) known.add(pid);
      }
      known.delete(this.child.pid);
      for (const { pid, args } of rows) if (known.has(pid)) this.descendants.set(pid, args);
    }
    return rows.filter(({ pid, args }) => this.descendants.get(pid) === args).map(({ pid }) => pid);
  }
}

/** @param {number} port */
function variables(port) {
  return {
    GATEWAY_LISTEN: `127.0.0.1:${port}`,
    LOCALSTACK_HOST: `localhost:${port}`,
    // Otherwise LocalStack takes such a machine for its container.
    OVERRIDE_IN_DOCKER: "0",
    LAMBDA_RUNTIME_EXECUTOR: "process",
    HOSTNAME_FROM_LAMBDA: "127.0.0.1",
    // The provider that passes local secondary indexes and transactions on to DynamoDB Local.
    PROVIDER_OVERRIDE_DYNAMODB: "v2",
    PROVIDER_OVERRIDE_DYNAMODBSTREAMS: "v2",
    DYNAMODB_IN_MEMORY: "1",
    PERSISTENCE: "0",
    EAGER_SERVICE_LOADING: "0",
    // Keeps LocalStack from using the internet.
    DISABLE_EVENTS: "1",
    SKIP_SSL_CERT_DOWNLOAD: "1",
    DNS_ADDRESS: "0",
    PYTHONDONTWRITEBYTECODE: "1",
  };
}

/** A signature for requests that change nothing. LocalStack does not verify it and reads only the service in it. */
const signed = (/** @type {string} */ service) =>
  `AWS4-HMAC-SHA256 Credential=${ACCOUNT}/20260101/${REGION}/${service}/aws4_request, SignedHeaders=host, Signature=0`;

/**
 * @type {(service: string, body: string, version: string) => {
 *   path: string, method: string, headers: Record<string, string>, body: string
 * }}
 */
const query = (service, body, version) => ({
  path: "/",
  method: "POST",
  headers: { authorization: signed(service), "content-type": "application/x-www-form-urlencoded" },
  body: `Action=${body}&Version=${version}`,
});

/**
 * @type {(service: string, target: string, version: string) => {
 *   path: string, method: string, headers: Record<string, string>, body: string
 * }}
 */
const json = (service, target, version) => ({
  path: "/",
  method: "POST",
  headers: {
    authorization: signed(service),
    "content-type": `application/x-amz-json-${version}`,
    "x-amz-target": target,
  },
  body: "{}",
});

/** The first request of each service. */
const WARM = /** @type {const} */ ({
  cloudformation: query("cloudformation", "ListStacks", "2010-05-15"),
  dynamodb: json("dynamodb", "DynamoDB_20120810.ListTables", "1.0"),
  lambda: { path: "/2015-03-31/functions", headers: { authorization: signed("lambda") } },
  apigateway: { path: "/restapis", headers: { authorization: signed("apigateway") } },
  s3: { path: "/", headers: { authorization: signed("s3") } },
  stepfunctions: json("states", "AWSStepFunctions.ListStateMachines", "1.0"),
});
