/** Validators of requests and answers, compiled from the same schemas that the documentation shows. */
import { readdirSync, readFileSync } from "node:fs";
import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";
import ajvFormats from "ajv-formats";
import type { components } from "./generated/openapi.ts";
import { contractPath } from "./paths.ts";

/** Every schema of the HTTP API by name. */
export type Schemas = components["schemas"];

const OPENAPI = "openapi";

function openApiAjv(): Ajv2020 {
  const document: unknown = JSON.parse(readFileSync(contractPath("src/generated/openapi.json"), "utf8"));
  // Not strict, because only the components of an OpenAPI document are JSON schemas.
  const ajv = new Ajv2020({ strict: false, allErrors: false });
  ajvFormats.default(ajv);
  ajv.addSchema(document as object, OPENAPI);
  return ajv;
}

let ajv: Ajv2020 | undefined;

/** Returns the validator of a component of `openapi.yaml`, such as `OpenCypherAnswer`. */
export function validator<Name extends keyof Schemas & string>(name: Name): ValidateFunction<Schemas[Name]> {
  ajv ??= openApiAjv();
  const validate = ajv.getSchema<Schemas[Name]>(`${OPENAPI}#/components/schemas/${name}`);
  if (validate === undefined) throw new Error(`openapi.yaml has no schema named ${name}`);
  return validate;
}

/** Returns a value with the type of its schema, or throws what is wrong and where. */
export function parseAs<Name extends keyof Schemas & string>(name: Name, value: unknown): Schemas[Name] {
  const validate = validator(name);
  if (validate(value)) return value;
  const [first] = validate.errors ?? [];
  const text = JSON.stringify(value)?.slice(0, 400);
  throw new Error(`not a valid ${name}: ${first?.instancePath || "/"} ${first?.message}: ${text}`);
}

/** Compiles every file in `schemas/`. Throws if a file is not a valid schema. */
export function loadSchemas(options: { strict: boolean }): Ajv2020 {
  const names = readdirSync(contractPath("schemas")).filter((name) => name.endsWith(".schema.json"));
  const loaded = new Ajv2020({ strict: options.strict, allowUnionTypes: true });
  ajvFormats.default(loaded);
  for (const name of names) {
    const schema = JSON.parse(readFileSync(contractPath(`schemas/${name}`), "utf8"));
    loaded.addSchema({ ...schema, $id: name }, name);
  }
  for (const name of names) {
    if (loaded.getSchema(name) === undefined) throw new Error(`schemas/${name} does not compile`);
  }
  return loaded;
}

/** Returns the validator of `errors.json`. */
export function errorTableValidator(): ValidateFunction {
  const validate = loadSchemas({ strict: true }).getSchema("errors.schema.json");
  if (validate === undefined) throw new Error("schemas/errors.schema.json is missing");
  return validate;
}
