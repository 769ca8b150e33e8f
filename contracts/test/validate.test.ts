/** Tests that the validators accept answers of the service and refuse others. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { errorRow, errorTable, parseAs, validator } from "../src/index.ts";
import { errorTableValidator, loadSchemas } from "../src/validate.ts";

const node = {
  "~id": "a",
  "~entityType": "node",
  "~labels": ["Person"],
  "~properties": { name: "Ada", tags: ["x"] },
};
const edge = {
  "~id": "e1",
  "~entityType": "relationship",
  "~start": "a",
  "~end": "b",
  "~type": "KNOWS",
  "~properties": {},
};

test("an openCypher answer may hold every kind of value", () => {
  const row = {
    n: node,
    r: edge,
    p: [node, edge, { ...node, "~id": "b" }],
    x: null,
    l: [1, [true]],
    m: { k: { d: 0.5 } },
  };
  assert.deepEqual(parseAs("OpenCypherAnswer", { results: [row] }).results.length, 1);
});

test("a node without labels and a relationship with an unknown field are refused", () => {
  const { "~labels": _, ...bare } = node;
  assert.equal(validator("OpenCypherAnswer")({ results: [{ n: bare }] }), false);
  assert.equal(validator("Relationship")({ ...edge, extra: 1 }), false);
  assert.throws(() => parseAs("OpenCypherAnswer", { rows: [] }), /not a valid OpenCypherAnswer/);
});

test("a Gremlin answer is GraphSON 3 with Neptune's envelope", () => {
  const empty = { "@type": "g:Map", "@value": [] };
  const answer = {
    requestId: "id",
    status: { message: "", code: 200, attributes: empty },
    result: { data: { "@type": "g:List", "@value": [{ "@type": "g:Int64", "@value": 3 }] }, meta: empty },
  };
  parseAs("GremlinAnswer", answer);
  assert.equal(validator("GremlinAnswer")({ ...answer, result: { data: [3], meta: empty } }), false);
});

test("an error has a code of the contract", () => {
  parseAs("ErrorBody", {
    requestId: "id",
    code: "MalformedQueryException",
    detailedMessage: "at line 1, column 2",
  });
  assert.equal(validator("ErrorBody")({ code: "MalformedQueryException" }), false);
  assert.equal(errorRow("MalformedQueryException")?.httpStatus, 400);
  assert.equal(errorRow("NoSuchException"), undefined);
});

test("switches are booleans or text", () => {
  for (const failOnError of [true, "TRUE", "false"]) {
    parseAs("LoaderRequest", { source: "file:///tmp/a.csv", format: "csv", failOnError });
  }
  assert.equal(validator("LoaderRequest")({ source: "s", format: "csv", failOnError: "yes" }), false);
  assert.equal(validator("LoaderRequest")({ source: "s", format: "xls" }), false);
});

test("the table of errors matches its schema, and a wrong table does not", () => {
  const validate = errorTableValidator();
  assert.equal(validate(errorTable), true);
  assert.equal(validate({ errors: [{ ...errorTable.errors[0], kind: "sometimes" }] }), false);
  assert.equal(new Set(errorTable.errors.map((row) => row.code)).size, errorTable.errors.length);
});

test("every JSON schema compiles in strict mode", () => {
  loadSchemas({ strict: true });
});
