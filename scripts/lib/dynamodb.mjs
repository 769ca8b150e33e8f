/**
 * DynamoDB Local from Maven Central, for the tests of the partition map.
 */
import { join } from "node:path";
import { installed, jars } from "./installed.mjs";
import { root } from "./run.mjs";

/**
 * Installs DynamoDB Local, unless it is installed.
 *
 * @returns {Promise<string>} Its class path.
 */
export async function dynamodbClasspath() {
  const pom = join(root, "scripts", "lib", "dynamodb", "pom.xml");
  const into = await installed("dynamodb", "dynamodb", [pom], (into) => jars(pom, join(into, "lib")));
  return join(into, "lib", "*");
}
