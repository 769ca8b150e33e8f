/**
 * A runtime for Node.js functions, as in Lambda: polls the Runtime API for events, passes each to the function's
 * handler, and sends what the handler returns or throws.
 *
 * AWS's own client (`aws-lambda-ric`) is not used: its installation compiles libcurl and C++ for a feature that the
 * functions here do not need (streamed answers).
 *
 * Usage: `node runtime.mjs index.handler`, in the folder of the code.
 */
import { createRequire } from "node:module";
import { join } from "node:path";

const api = `http://${process.env.AWS_LAMBDA_RUNTIME_API}/2018-06-01/runtime`;

/**
 * @param {string} path
 * @param {unknown} body
 */
const send = (path, body) => fetch(`${api}/${path}`, { method: "POST", body: JSON.stringify(body ?? null) });

/**
 * Formats an error as Lambda does. State machines match it by its type.
 *
 * @param {unknown} error
 */
function shown(error) {
  if (!(error instanceof Error)) return { errorType: typeof error, errorMessage: String(error), trace: [] };
  console.error(error);
  return { errorType: error.name, errorMessage: error.message, trace: error.stack?.split("\n") ?? [] };
}

/** @param {string} name such as `index.handler` */
function load(name) {
  const dot = name.lastIndexOf(".");
  const require = createRequire(join(process.cwd(), "/"));
  const found = require(`./${name.slice(0, dot)}.js`)[name.slice(dot + 1)];
  if (typeof found !== "function") throw new Error(`${name} is no function`);
  return found;
}

/** @param {Headers} headers */
function context(headers) {
  const header = (/** @type {string} */ name) => headers.get(`lambda-runtime-${name}`) ?? "";
  const deadline = Number(header("deadline-ms"));
  return {
    awsRequestId: header("aws-request-id"),
    invokedFunctionArn: header("invoked-function-arn"),
    functionName: process.env.AWS_LAMBDA_FUNCTION_NAME,
    functionVersion: process.env.AWS_LAMBDA_FUNCTION_VERSION,
    memoryLimitInMB: process.env.AWS_LAMBDA_FUNCTION_MEMORY_SIZE,
    logGroupName: process.env.AWS_LAMBDA_LOG_GROUP_NAME,
    logStreamName: process.env.AWS_LAMBDA_LOG_STREAM_NAME,
    callbackWaitsForEmptyEventLoop: false,
    getRemainingTimeInMillis: () => Math.max(0, deadline - Date.now()),
  };
}

/** @type {(event: unknown, context: unknown) => Promise<unknown>} */
let handler;
try {
  handler = load(process.argv[2] ?? "");
} catch (error) {
  await send("init/error", shown(error));
  process.exit(1);
}
for (;;) {
  const next = await fetch(`${api}/invocation/next`);
  // The environment is shutting down.
  if (next.status === 410) process.exit(0);
  const id = next.headers.get("lambda-runtime-aws-request-id");
  process.env._X_AMZN_TRACE_ID = next.headers.get("lambda-runtime-trace-id") ?? "";
  try {
    const answer = await handler(await next.json(), context(next.headers));
    await send(`invocation/${id}/response`, answer);
  } catch (error) {
    await send(`invocation/${id}/error`, shown(error));
  }
}
