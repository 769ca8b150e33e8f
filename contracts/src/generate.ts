/**
 * Makes `src/generated/` from `openapi.yaml` and the JSON schemas that it refers to: one self-contained document, which
 * the validators load, and TypeScript types. What it makes is committed, so that using the contracts needs no tools;
 * with `--check` it writes nothing and fails when the committed files are not what it would make.
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
  // The bundle has made components out of the definitions inside of the schemas; left there, they would be taken for fields.
  const json = `${JSON.stringify(document.parsed, (key, value) => (key === "$defs" ? undefined : value), 2)}\n`;
  const types = astToString(
    await openapiTypes(json, {
      // A default is what the service assumes when a field is not sent, so it need not be.
      defaultNonNullable: false,
      // TypeScript refuses a property whose type holds itself in an array; the validators check what is inside.
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
