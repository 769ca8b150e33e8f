/**
 * Checks the schemas: `openapi.yaml` against the rules of OpenAPI 3.1, each JSON schema in ajv's strict mode,
 * `errors.json` against its schema, and every `.proto` file by loading it.
 */
import { readdir } from "node:fs/promises";
import { createConfig, lint } from "@redocly/openapi-core";
import { errorTable } from "./errors.ts";
import { contractPath } from "./paths.ts";
import { loadProtos } from "./proto.ts";
import { errorTableValidator, loadSchemas } from "./validate.ts";

const complaints: string[] = [];

const config = await createConfig({
  extends: ["recommended"],
  rules: {
    // The paths are Neptune's, which have no names of operations, and no client reads such names.
    "operation-operationId": "off",
    // `default` covers every error. errors.json has the statuses.
    "operation-4xx-response": "off",
    // A local service has no users; the deployed one signs its requests (SigV4).
    "security-defined": "off",
    // The service runs on the machine of its user.
    "no-server-example.com": "off",
  },
});
for (const problem of await lint({ ref: contractPath("openapi.yaml"), config })) {
  const where = problem.location[0]?.pointer ?? "";
  complaints.push(`openapi.yaml ${where}: ${problem.message} (${problem.ruleId})`);
}

try {
  loadSchemas({ strict: true });
} catch (error) {
  complaints.push(`schemas: ${error instanceof Error ? error.message : String(error)}`);
}

const checkTable = errorTableValidator();
if (!checkTable(errorTable)) complaints.push(`errors.json: ${JSON.stringify(checkTable.errors)}`);

const protos = (await readdir(contractPath("proto"), { recursive: true })).filter((name) =>
  name.endsWith(".proto"),
);
try {
  loadProtos(protos);
} catch (error) {
  complaints.push(`proto: ${error instanceof Error ? error.message : String(error)}`);
}

for (const complaint of complaints) console.error(complaint);
process.exitCode = complaints.length > 0 ? 1 : 0;
