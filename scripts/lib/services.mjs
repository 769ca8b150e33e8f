/**
 * Kafka and DynamoDB Local, started once for all parts of a test run that can share them. Each test uses its own topic,
 * table entry or graph. Tests that stop, kill or configure a server start their own.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Cluster } from "./cluster/cluster.mjs";
import { dynamodbClasspath } from "./dynamodb.mjs";
import { kafkaClasspath } from "./kafka.mjs";

export class Services {
  /** @type {Promise<Record<string, string>> | undefined} */
  #started;
  /** @type {Cluster | undefined} */
  #cluster;
  #home = "";

  /**
   * Starts the servers, unless they are running.
   *
   * @returns {Promise<Record<string, string>>} Variables that tell tests where the servers are, and how to start their
   * own.
   */
  environment() {
    this.#started ??= this.#start();
    return this.#started;
  }

  async #start() {
    this.#home = mkdtempSync(join(tmpdir(), "tidegraph-services-"));
    const nothing = { nodeBinary: "", workerBinary: "", nodes: 0, rf: 1, partitions: 1, port: 0 };
    const cluster = new Cluster({ home: join(this.#home, "services"), brokers: 1, ...nothing });
    this.#cluster = cluster;
    process.on("exit", () => cluster.processes.kill());
    await Promise.all([cluster.startDynamodb(), cluster.startKafka()]);
    return {
      TIDEGRAPH_KAFKA_CLASSPATH: await kafkaClasspath(),
      TIDEGRAPH_DYNAMODB_CLASSPATH: await dynamodbClasspath(),
      TIDEGRAPH_TEST_KAFKA: `127.0.0.1:${cluster.brokerPorts[0]}`,
      TIDEGRAPH_TEST_DYNAMODB: `http://127.0.0.1:${cluster.dynamodbPort}`,
    };
  }

  /** Ends the servers, if they were started. */
  async stop() {
    if (!this.#started) return;
    await this.#started.catch(() => undefined);
    await this.#cluster?.stop();
    rmSync(this.#home, { recursive: true, force: true });
  }
}
