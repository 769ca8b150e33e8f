/**
 * Kafka from Maven Central, for the tests of the log.
 */
import { join } from "node:path";
import { installed, jars } from "./installed.mjs";
import { root } from "./run.mjs";

/**
 * Installs Kafka, unless it is installed.
 *
 * @returns {Promise<string>} Its class path.
 */
export async function kafkaClasspath() {
  const pom = join(root, "scripts", "lib", "kafka", "pom.xml");
  const into = await installed("kafka", "kafka", [pom], (into) => jars(pom, join(into, "lib")));
  return join(into, "lib", "*");
}
