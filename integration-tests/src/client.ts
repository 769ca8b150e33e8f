/** Sends requests as the contracts define them, and validates every answer against the schemas. */
import assert from "node:assert/strict";
import { errorRow, parseAs, type Schemas } from "@tidegraph/contracts";
import { PATIENCE_MS, type Server } from "./server.ts";

/** A row of an openCypher answer. */
export type Row = Record<string, unknown>;

const JSON_TYPE = { "content-type": "application/json" };

/** Sends a POST with JSON. */
export function post(server: Server, path: string, body: unknown): Promise<Response> {
  return fetch(`${server.endpoint}${path}`, {
    method: "POST",
    headers: JSON_TYPE,
    body: JSON.stringify(body),
  });
}

/** Returns the rows of an openCypher answer. */
export async function rowsOf(answer: Response): Promise<Row[]> {
  const text = await answer.text();
  assert.equal(answer.status, 200, text);
  return parseAs("OpenCypherAnswer", JSON.parse(text)).results;
}

/** Runs an openCypher query. */
export async function cypher(server: Server, query: string, parameters?: object): Promise<Row[]> {
  return rowsOf(
    await post(server, "/openCypher", parameters === undefined ? { query } : { query, parameters }),
  );
}

/** Runs a query and returns its only value. */
export async function cypherValue(server: Server, query: string, parameters?: object): Promise<unknown> {
  const rows = await cypher(server, query, parameters);
  assert.equal(rows.length, 1, `one row expected: ${JSON.stringify(rows)}`);
  const values = Object.values(rows[0] ?? {});
  assert.equal(values.length, 1, `one column expected: ${JSON.stringify(rows)}`);
  return values[0];
}

/** Returns the results of a Gremlin answer, without the types of GraphSON. */
export async function resultsOf(answer: Response): Promise<unknown[]> {
  const text = await answer.text();
  assert.equal(answer.status, 200, text);
  const { result } = parseAs("GremlinAnswer", JSON.parse(text));
  return result.data["@value"].map(plain);
}

/** Runs a Gremlin traversal. */
export async function gremlin(server: Server, query: string): Promise<unknown[]> {
  return resultsOf(await post(server, "/gremlin", { gremlin: query }));
}

/** Removes the types from a GraphSON 3 value; a `g:Map` becomes a `Map`. */
export function plain(value: unknown): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map(plain);
  const { "@type": type, "@value": inner } = value as { "@type"?: string; "@value": unknown };
  switch (type) {
    case undefined:
      return Object.fromEntries(Object.entries(value).map(([name, field]) => [name, plain(field)]));
    case "g:List":
    case "g:Set":
      return (inner as unknown[]).map(plain);
    case "g:Map": {
      const flat = (inner as unknown[]).map(plain);
      const map = new Map<unknown, unknown>();
      for (let at = 0; at < flat.length; at += 2) map.set(flat[at], flat[at + 1]);
      return map;
    }
    case "g:Vertex":
    case "g:Edge":
    case "g:VertexProperty":
    case "g:Property":
    case "g:Path": {
      const fields = Object.entries(inner as Record<string, unknown>);
      return { type, ...Object.fromEntries(fields.map(([name, field]) => [name, plain(field)])) };
    }
    default:
      return inner;
  }
}

/** Checks that a request was refused with this code, as the contracts define, and returns the message. */
export async function refusal(answer: Response, code: string): Promise<string> {
  const text = await answer.text();
  const body = parseAs("ErrorBody", JSON.parse(text));
  assert.equal(body.code, code, text);
  assert.equal(answer.status, errorRow(code)?.httpStatus, text);
  return body.detailedMessage;
}

/** The status of a load. */
export type LoadStatus = Schemas["LoaderStatus"]["payload"];

const UNFINISHED = new Set(["LOAD_NOT_STARTED", "LOAD_IN_QUEUE", "LOAD_IN_PROGRESS"]);

/** Starts a load and returns its id. */
export async function startLoad(server: Server, request: Schemas["LoaderRequest"]): Promise<string> {
  const answer = await post(server, "/loader", request);
  const text = await answer.text();
  assert.equal(answer.status, 200, text);
  return parseAs("LoaderStarted", JSON.parse(text)).payload.loadId;
}

/** Returns the status of a load. */
export async function loadStatus(
  server: Server,
  loadId: string,
  query = "?details=true&errors=true&errorsPerPage=50",
) {
  const answer = await fetch(`${server.endpoint}/loader/${loadId}${query}`);
  const text = await answer.text();
  assert.equal(answer.status, 200, text);
  return parseAs("LoaderStatus", JSON.parse(text)).payload;
}

/** Waits for the end of a load. */
export async function finishedLoad(server: Server, loadId: string): Promise<LoadStatus> {
  const deadline = Date.now() + PATIENCE_MS;
  for (;;) {
    const status = await loadStatus(server, loadId);
    if (!UNFINISHED.has(status.overallStatus.status)) return status;
    assert.ok(Date.now() < deadline, `the load does not end: ${JSON.stringify(status)}`);
    await new Promise((done) => setTimeout(done, 50));
  }
}

/** Loads and waits for the end. */
export async function load(server: Server, request: Schemas["LoaderRequest"]): Promise<LoadStatus> {
  return finishedLoad(server, await startLoad(server, request));
}
