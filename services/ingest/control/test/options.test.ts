/** Tests that marks are accepted as the schema says, and that refusals give name and value. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { MOST_BYTES, optionsOf } from "../src/options.ts";
import { Refused } from "../src/refused.ts";
import { golden } from "./memory.ts";

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
const of = (value: unknown) => optionsOf(bytes(JSON.stringify(value)));

/** Returns the reason why a mark is refused. */
function refusal(text: string | Uint8Array): string {
  let message = "";
  assert.throws(
    () => optionsOf(typeof text === "string" ? bytes(text) : text),
    (error) => {
      assert.ok(error instanceof Refused, String(error));
      message = error.message;
      return true;
    },
  );
  return message;
}

test("an empty mark has the defaults of a drop folder", () => {
  const defaults = {
    format: "detect",
    failOnError: true,
    updateSingleCardinalityProperties: false,
    allowEmptyStrings: false,
    userProvidedEdgeIds: true,
    edgeOnlyLoad: false,
    files: undefined,
  };
  for (const empty of ["", " \n", "{}"]) assert.deepEqual(optionsOf(bytes(empty)), defaults);
});

test("options have the loader API's names, and switches are booleans or text", () => {
  const options = of({
    format: "opencypher",
    failOnError: "FALSE",
    updateSingleCardinalityProperties: "true",
    userProvidedEdgeIds: false,
    edgeOnlyLoad: true,
    parserConfiguration: { allowEmptyStrings: "True" },
    files: ["a.csv", { name: "b/c.csv.gz", etag: '"12-3"' }],
    attempt: 2,
  });
  assert.deepEqual(options, {
    format: "opencypher",
    failOnError: false,
    updateSingleCardinalityProperties: true,
    allowEmptyStrings: true,
    userProvidedEdgeIds: false,
    edgeOnlyLoad: true,
    files: [{ name: "a.csv" }, { name: "b/c.csv.gz", etag: "12-3" }],
  });
});

test("marks are accepted and refused as the schema says", () => {
  const { drops = [], refusedDrops = [] } = golden;
  assert.ok(drops.length > 3 && refusedDrops.length > 15);
  for (const drop of drops) assert.ok(of(drop), JSON.stringify(drop));
  for (const drop of refusedDrops) refusal(JSON.stringify(drop));
});

test("a refusal gives the place, the value and the allowed values", () => {
  const cases: [unknown, RegExp][] = [
    [{ format: "xls" }, /^_SUCCESS: format is "xls", and has to be csv or opencypher$/],
    [{ failOnError: "yes" }, /failOnError is "yes", and has to be TRUE or FALSE/],
    [{ failOnErrors: true, mode: "NEW" }, /failOnErrors, mode are no options/],
    [{ parserConfiguration: { baseUri: "x" } }, /parserConfiguration\.baseUri is no option/],
    [
      { files: ["a.csv", "../b.csv"] },
      /files\[1\] is "\.\.\/b\.csv", and has to be the name of a file below/,
    ],
    [{ files: [{ name: "/etc/passwd" }] }, /files\[0\]\.name is "\/etc\/passwd"/],
    [{ files: ["s3://elsewhere/a.csv"] }, /files\[0\] is "s3:\/\/elsewhere\/a\.csv"/],
    [{ files: [{ etag: "x" }] }, /files\[0\]\.name is not there, and has to be the name of a file/],
    [{ files: [7] }, /files\[0\] is 7, and has to be a name, or an object/],
    [{ files: [] }, /files is \[\], and has to be 1 to 1000 names/],
    [{ attempt: 1.5 }, /attempt is 1\.5, and has to be a whole number/],
    [["csv"], /the content is \["csv"\], and has to be an object/],
    [{ format: 1, failOnError: 2 }, /format is 1.*; failOnError is 2/],
  ];
  for (const [value, expected] of cases) assert.match(refusal(JSON.stringify(value)), expected);
});

test("content that is not JSON or not UTF-8 is refused, and a long value is cut", () => {
  assert.match(refusal("format=csv"), /_SUCCESS has to be empty or JSON: .*format=csv/);
  assert.match(refusal('{"format": "csv"'), /has to be empty or JSON/);
  assert.match(refusal(Uint8Array.of(0xff, 0xfe)), /is not UTF-8/);
  assert.ok(refusal(JSON.stringify({ format: "x".repeat(MOST_BYTES / 2) })).length < 400);
});
