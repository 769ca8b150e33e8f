/**
 * Generates `src/generated/` from `openapi.yaml` and the JSON schemas that it refers to: one self-contained document,
 * which the validators load, and TypeScript types. The results are committed, so that users of the contracts need no
 * tools. With `--check`, writes nothing, and fails if the committed files are out of date.
 */
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { bundle, createConfig } from "@redocly/openapi-core";
import openapiTypes, { astToString } from "openapi-typescript";
import ts from "typescript";
import { contractPath } from "./paths.ts";

const NOTICE = "Made from contracts/openapi.yaml by `npm run generate`. Change that, not this.";

async function makeAll(): Promise<Map<string, string>> {
  const ref = contractPath("openapi.yaml");
  const { bundle: document, problems } = await bundle({ ref, config: await createConfig({}) });
  if (problems.length > 0) {
    throw new Error(`openapi.yaml does not bundle: ${problems.map((problem) => problem.message).join("; ")}`);
  }
  // The bundle has copied the definitions inside the schemas to components. The type generator would take the rest for
  // fields.
  const json = `${JSON.stringify(document.parsed, (key, value) => (key === "$defs" ? undefined : value), 2)}\n`;
  const types = astToString(
    await openapiTypes(json, {
      // The service fills in defaults, so a field with a default is optional in a request.
      defaultNonNullable: false,
      // TypeScript refuses a type that contains itself in an array. The validators check the contents.
      transform: (_schema, { path }) =>
        path?.endsWith("/schemas/Value")
          ? ts.factory.createKeywordTypeNode(ts.SyntaxKind.UnknownKeyword)
          : undefined,
    }),
  );
  return new Map([
    ["src/generated/openapi.json", json],
    ["src/generated/openapi.ts", `// ${NOTICE}\n${types}`],
  ]);
}

const checkOnly = process.argv.includes("--check");
let stale = 0;
for (const [relative, wanted] of await makeAll()) {
  const path = contractPath(relative);
  const present = await readFile(path, "utf8").catch(() => undefined);
  if (present === wanted) continue;
  if (checkOnly) {
    console.error(`contracts/${relative} is not what openapi.yaml says: run \`npm run generate\``);
    stale += 1;
  } else {
    await mkdir(contractPath("src/generated"), { recursive: true });
    await writeFile(path, wanted);
    console.log(`wrote contracts/${relative}`);
  }
}
process.exitCode = stale > 0 ? 1 : 0;
