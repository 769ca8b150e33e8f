/** AWS Secrets Manager on this machine, by moto, with the secret of a fleet. */
import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { CreateSecretCommand, SecretsManagerClient } from "@aws-sdk/client-secrets-manager";
import { tsImport } from "tsx/esm/api";
import { pythonWithClients } from "./python.mjs";
import { root } from "./run.mjs";

/** What Secrets Manager asks a function for, one after the other. */
const STEPS = ["createSecret", "setSecret", "testSecret", "finishSecret"];

export class Secrets {
  /**
   * @param {import("node:child_process").ChildProcess} child
   * @param {string} endpoint
   */
  constructor(child, endpoint) {
    this.child = child;
    const credentials = { accessKeyId: "test", secretAccessKey: "test" };
    this.client = new SecretsManagerClient({ endpoint, region: "eu-west-3", credentials });
    this.id = "";
    /** Variables by which the programs of a fleet find the secret. */
    this.environment = {
      AWS_ACCESS_KEY_ID: "test",
      AWS_SECRET_ACCESS_KEY: "test",
      AWS_REGION: "eu-west-3",
      AWS_ENDPOINT_URL_SECRETS_MANAGER: endpoint,
      TIDEGRAPH_FLEET_SECRET: "",
    };
  }

  /**
   * Starts the server and creates the secret.
   *
   * @param {string} first the first version
   */
  static async start(first) {
    const server = ["-W", "ignore", join(root, "infra", "moto", "server.py")];
    const child = spawn(await pythonWithClients(), server, { stdio: ["pipe", "pipe", "inherit"] });
    process.on("exit", () => child.kill("SIGKILL"));
    const ended = once(child, "exit").then(([code]) => Promise.reject(new Error(`moto ended with ${code}`)));
    const [endpoint] = await Promise.race([once(createInterface({ input: child.stdout }), "line"), ended]);
    ended.catch(() => undefined);
    const secrets = new Secrets(child, endpoint);
    const made = new CreateSecretCommand({ Name: "fleet", SecretString: first });
    secrets.id = (await secrets.client.send(made)).ARN ?? "";
    secrets.environment.TIDEGRAPH_FLEET_SECRET = secrets.id;
    return secrets;
  }

  /**
   * Carries out steps of a rotation as Secrets Manager would call the deployment's function for them.
   *
   * @param {{ version?: string, until?: string }} [options] `until`: the first step that is not carried out
   */
  async rotate({ version = randomUUID(), until } = {}) {
    const { rotate } = await tsImport("../../infra/rotation/rotation.ts", import.meta.url);
    for (const Step of STEPS) {
      if (Step === until) return;
      await rotate({ Step, SecretId: this.id, ClientRequestToken: version }, this.client);
    }
  }

  stop() {
    this.client.destroy();
    this.child.stdin?.end();
  }
}
