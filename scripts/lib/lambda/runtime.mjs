/**
 * Lambda's Runtime API on this machine, for one function in its own process; and the events of API Gateway's REST APIs.
 *
 * The process requests the next event, which waits until there is one, and sends its answer, whole or in pieces.
 */
import { spawn } from "node:child_process";
import { closeSync, openSync, readFileSync } from "node:fs";
import { createServer } from "node:http";

const VERSION = "/2018-06-01/runtime";
const STREAMED = "application/vnd.awslambda.http-integration-response";

/**
 * @typedef {object} Answer
 * @property {number} status status of the HTTP answer; 0 if the function failed
 * @property {Record<string, string>} headers
 * @property {string} body
 * @property {Buffer} bytes the body as it is; `body` is what these bytes are as UTF-8
 * @property {boolean} streamed
 * @property {string} failed the function's description of its failure
 * @property {number} ms time from the event to the end of the answer
 */

/**
 * Makes an event of a REST API (version 1).
 *
 * @param {string} method
 * @param {string} path
 * @param {{ query?: Record<string, string>, headers?: Record<string, string>, body?: string, base64?: boolean }} [more]
 */
export function restEvent(method, path, more = {}) {
  const { query, headers = {}, body, base64 = false } = more;
  const lists = (/** @type {Record<string, string>} */ of) =>
    Object.fromEntries(Object.entries(of).map(([name, value]) => [name, [value]]));
  const all = { Host: "abcdef.execute-api.eu-west-3.amazonaws.com", ...headers };
  return {
    resource: "/{proxy+}",
    path,
    httpMethod: method,
    headers: all,
    multiValueHeaders: lists(all),
    queryStringParameters: query ?? null,
    multiValueQueryStringParameters: query ? lists(query) : null,
    pathParameters: { proxy: path.slice(1) },
    stageVariables: null,
    requestContext: {
      accountId: "123456789012",
      apiId: "abcdef",
      domainName: all.Host,
      httpMethod: method,
      identity: { sourceIp: "127.0.0.1", userAgent: "test" },
      path: `/prod${path}`,
      protocol: "HTTP/1.1",
      requestId: "c6af9ac6-7b61-11e6-9a41-93e8deadbeef",
      requestTimeEpoch: 1,
      resourceId: "123456",
      resourcePath: "/{proxy+}",
      stage: "prod",
    },
    body: body === undefined ? null : base64 ? Buffer.from(body).toString("base64") : body,
    isBase64Encoded: base64,
  };
}

export class LambdaFunction {
  /**
   * @param {string} binary
   * @param {string} log a file for the function's output
   * @param {Record<string, string>} environment the function's variables; it inherits none of ours
   */
  constructor(binary, log, environment) {
    this.binary = binary;
    this.log = log;
    this.environment = environment;
    /** @type {import("node:http").ServerResponse[]} */
    this.waiting = [];
    /** @type {{ id: string, event: unknown, deadlineMs: number }[]} */
    this.events = [];
    /**
     * @type {Map<string, {
     *   begin: number, isHttp: boolean, done: (answer: Answer) => void, fail: (error: Error) => void
     * }>}
     */
    this.open = new Map();
    this.next = 1;
    this.ended = false;
    /** @type {import("node:child_process").ChildProcess | undefined} */
    this.child = undefined;
    /** @type {number | null} */
    this.code = null;
    this.server = createServer((request, response) => this.serve(request, response));
  }

  async start() {
    await new Promise((done) => this.server.listen(0, "127.0.0.1", () => done(undefined)));
    const address = this.server.address();
    const port = typeof address === "object" && address ? address.port : 0;
    const output = openSync(this.log, "a");
    this.child = spawn(this.binary, [], {
      stdio: ["ignore", output, output],
      env: {
        AWS_LAMBDA_RUNTIME_API: `127.0.0.1:${port}`,
        AWS_LAMBDA_FUNCTION_NAME: "tidegraph",
        AWS_LAMBDA_FUNCTION_MEMORY_SIZE: "1769",
        AWS_LAMBDA_FUNCTION_VERSION: "$LATEST",
        ...this.environment,
      },
    });
    closeSync(output);
    this.exit = new Promise((done) => {
      this.child?.on("exit", (code) => {
        this.ended = true;
        this.code = code;
        for (const { fail } of this.open.values())
          fail(new Error(`the function ended: ${this.said().slice(-2000)}`));
        done(code);
      });
    });
  }

  said() {
    return readFileSync(this.log, "utf8");
  }

  /**
   * Sends the function an event and returns its answer.
   *
   * @param {unknown} event
   * @param {number} [withinMs] the remaining time that the function is told
   * @returns {Promise<Answer>}
   */
  invoke(event, withinMs = 60_000) {
    return this.send(event, withinMs, true);
  }

  /**
   * Invokes the function as a state machine does: JSON in, JSON out. Throws the failure that the function reports.
   *
   * @param {unknown} event
   * @returns {Promise<any>}
   */
  async step(event) {
    const { body, failed } = await this.send(event, 60_000, false);
    if (failed) throw new Error(failed);
    return JSON.parse(body);
  }

  /**
   * @param {unknown} event
   * @param {number} withinMs
   * @param {boolean} isHttp whether the answer is an HTTP answer
   * @returns {Promise<Answer>}
   */
  send(event, withinMs, isHttp) {
    if (this.ended) throw new Error(`the function ended: ${this.said().slice(-2000)}`);
    const id = `00000000-0000-4000-8000-${String(this.next).padStart(12, "0")}`;
    this.next += 1;
    const answered = new Promise((done, fail) =>
      this.open.set(id, { begin: performance.now(), isHttp, done, fail }),
    );
    this.events.push({ id, event, deadlineMs: Date.now() + withinMs });
    this.deliver();
    return /** @type {Promise<Answer>} */ (answered);
  }

  deliver() {
    while (this.waiting.length > 0 && this.events.length > 0) {
      const response = this.waiting.shift();
      const found = this.events.shift();
      if (!response || !found) return;
      response.writeHead(200, {
        "content-type": "application/json",
        "lambda-runtime-aws-request-id": found.id,
        "lambda-runtime-deadline-ms": String(found.deadlineMs),
        "lambda-runtime-invoked-function-arn": "arn:aws:lambda:eu-west-3:123456789012:function:tidegraph",
        "lambda-runtime-trace-id": "Root=1-5bef4de7-ad49b0e87f6ef6c87fc2e700;Sampled=0",
      });
      response.end(typeof found.event === "string" ? found.event : JSON.stringify(found.event));
    }
  }

  /**
   * @param {import("node:http").IncomingMessage} request
   * @param {import("node:http").ServerResponse} response
   */
  async serve(request, response) {
    const path = request.url ?? "";
    if (request.method === "GET" && path === `${VERSION}/invocation/next`) {
      this.waiting.push(response);
      this.deliver();
      return;
    }
    const chunks = [];
    for await (const chunk of request) chunks.push(chunk);
    const body = Buffer.concat(chunks);
    response.writeHead(202).end("{}");
    const [, id, what] = /\/invocation\/([^/]+)\/(response|error)$/.exec(path) ?? [];
    const open = id ? this.open.get(id) : undefined;
    if (!open || !id) return;
    this.open.delete(id);
    const ms = performance.now() - open.begin;
    if (what === "error") {
      open.done({
        status: 0,
        headers: {},
        ...both(Buffer.alloc(0)),
        streamed: false,
        failed: body.toString(),
        ms,
      });
      return;
    }
    if (!open.isHttp) {
      open.done({ status: 200, headers: {}, ...both(body), streamed: false, failed: "", ms });
      return;
    }
    const streamed = request.headers["lambda-runtime-function-response-mode"] === "streaming";
    const error = request.trailers["lambda-runtime-function-error-type"];
    try {
      open.done({
        ...parsed(body, streamed, request.headers["content-type"]),
        failed: String(error ?? ""),
        ms,
      });
    } catch (problem) {
      open.fail(problem instanceof Error ? problem : new Error(String(problem)));
    }
  }

  /** @param {NodeJS.Signals} signal */
  signal(signal) {
    this.child?.kill(signal);
  }

  async stop() {
    this.child?.kill("SIGKILL");
    await this.exit;
    this.server.closeAllConnections();
    await new Promise((done) => this.server.close(done));
  }
}

/**
 * @param {Buffer} body
 * @param {boolean} streamed
 * @param {string | undefined} type
 */
function parsed(body, streamed, type) {
  if (!streamed) {
    const {
      statusCode,
      headers,
      multiValueHeaders,
      body: text,
      isBase64Encoded,
    } = JSON.parse(body.toString());
    const single = Object.fromEntries(
      Object.entries(multiValueHeaders ?? {}).map(([name, [value]]) => [name, value]),
    );
    const plain = Buffer.from(text ?? "", isBase64Encoded ? "base64" : "utf8");
    return { status: statusCode, headers: { ...headers, ...single }, ...both(plain), streamed };
  }
  if (type !== STREAMED) throw new Error(`a streamed answer of type ${type}`);
  const end = body.indexOf(Buffer.alloc(8));
  if (end < 0) throw new Error("a streamed answer without an end of its head");
  const { statusCode, headers } = JSON.parse(body.subarray(0, end).toString());
  return { status: statusCode, headers, ...both(body.subarray(end + 8)), streamed };
}

/** @param {Buffer} bytes */
function both(bytes) {
  return { body: bytes.toString(), bytes };
}
