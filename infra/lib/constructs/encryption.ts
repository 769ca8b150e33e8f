/**
 * Certificates of the processes of a fleet, which encrypt the connections between them: a function that makes and renews
 * them (`infra/issuer/`), and the secrets through which processes get them (ADR 0044).
 *
 * The key of the authority is in a secret that only the function may read. Each kind of processes may read the secret
 * with its own certificate and no other one.
 */
import { CustomResource, Duration, Stack } from "aws-cdk-lib";
import * as events from "aws-cdk-lib/aws-events";
import * as targets from "aws-cdk-lib/aws-events-targets";
import * as iam from "aws-cdk-lib/aws-iam";
import { Key } from "aws-cdk-lib/aws-kms";
import * as lambda from "aws-cdk-lib/aws-lambda";
import type * as logs from "aws-cdk-lib/aws-logs";
import { type CfnSecret, Secret } from "aws-cdk-lib/aws-secretsmanager";
import { Construct } from "constructs";
import { InvalidProp } from "../check.ts";
import { processLog } from "../log-group.ts";
import { explain, explainWildcard } from "../nag.ts";
import { statement, useKey } from "../statement.ts";
import { typescriptFunction } from "../typescript-function.ts";
import type { IGraphState } from "./graph-state.ts";
import type { Graphs } from "./graphs.ts";
import type { QueryFunction } from "./query-function.ts";
import type { Workers } from "./workers.ts";

/** Encryption of the connections between nodes, workers and functions. */
export interface EncryptionProps {
  /**
   * `required`: processes accept connections with TLS and certificates on both sides only; `accepted`: they accept these
   * and those without TLS, and open them without. A deployment whose processes have no certificates yet begins with
   * `accepted` by itself, until an upgrade has given certificates to all of them.
   *
   * @default required
   */
  readonly mode?: string;
}

/** Settings and resources that the certificates need. */
interface Parts extends EncryptionProps {
  readonly state: IGraphState;
  readonly graphs: Graphs;
  readonly retention: logs.RetentionDays;
  /** Name of the group of machines, which may be there already. */
  readonly groupName: string;
}

/** Time between two runs of the function. A certificate is renewed once a third of its seven days has passed. */
const EVERY = Duration.hours(6);

/** The values of the prop, and what the function calls them. */
const MODES: Partial<Record<string, string>> = { accepted: "accept", required: "require" };

/**
 * Time of a run, which makes three requests for each of four secrets and looks at the processes, and at a deployment does
 * not believe refusals for a minute.
 */
const TIMEOUT = Duration.minutes(2);

export class Encryption extends Construct {
  /** Certificates of storage nodes, which may serve. */
  readonly nodes: Secret;
  /** Certificates of workers. */
  readonly workers: Secret;
  /** Certificates of the functions that ask nodes. */
  readonly functions: Secret;
  /** The first certificates: what starts processes depends on it. */
  readonly issued: CustomResource;
  /** The secret with the authority's key. */
  readonly authority: Secret;
  readonly function: lambda.Function;
  private readonly name: string;

  constructor(scope: Construct, id: string, props: Parts) {
    super(scope, id);
    const { state } = props;
    this.name = state.name;
    const mode = MODES[props.mode ?? "required"];
    if (mode === undefined)
      throw new InvalidProp("encryption.mode", props.mode, Object.keys(MODES).join(" or "));
    // Imported by ARN, so that CDK does not change the key's policy, which belongs to the other stack.
    const encryptionKey = Key.fromKeyArn(this, "Key", state.key.keyArn);
    const make = (name: string, description: string): Secret => {
      const secret = new Secret(this, name, { description, encryptionKey });
      // The function writes the first version. CloudFormation must not make one.
      (secret.node.defaultChild as CfnSecret).generateSecretString = undefined;
      explain(secret, "SMG4", "The function of this construct writes new versions on a schedule of its own.");
      return secret;
    };
    const authority = make("Authority", "Authority of the fleet's certificates, with its key");
    this.authority = authority;
    this.nodes = make("Nodes", "Certificates that storage nodes show");
    this.workers = make("Workers", "Certificates that workers show");
    this.functions = make("Functions", "Certificates that functions show to nodes");
    const logGroup = processLog(this, "Logs", state, "certificates", props.retention);
    const secrets = [authority, this.nodes, this.workers, this.functions];
    this.function = typescriptFunction(this, "certificates", {
      description: `Issues the certificates of the fleet of ${props.graphs.words}`,
      architecture: lambda.Architecture.ARM_64,
      memorySize: 256,
      timeout: TIMEOUT,
      role: this.role(state, secrets, logGroup),
      logGroup,
      environment: {
        FLEET: state.name,
        GROUP: props.groupName,
        MODE: mode,
        STATE_SECRET: authority.secretArn,
        NODES_SECRET: this.nodes.secretArn,
        WORKERS_SECRET: this.workers.secretArn,
        FUNCTIONS_SECRET: this.functions.secretArn,
      },
      environmentEncryption: Key.fromKeyArn(this, "VariablesKey", state.key.keyArn),
    });
    this.issued = new CustomResource(this, "Issued", {
      serviceToken: this.function.functionArn,
      resourceType: "Custom::TidegraphCertificates",
      // A changed property makes CloudFormation call the function again.
      properties: { Mode: mode },
      serviceTimeout: TIMEOUT.plus(Duration.minutes(1)),
    });
    this.issued.node.addDependency(this.function);
  }

  /**
   * Runs the function on its schedule. These runs are told where nodes are called from, so that a mode that requires
   * certificates waits until all callers have them. They depend on the certificates, so the function cannot know it.
   */
  schedule(query: QueryFunction, workers: Workers | undefined): void {
    const { functionName, functionArn } = query.function;
    const callers = {
      function: functionName,
      alias: query.live.aliasName,
      ...(workers && { cluster: workers.cluster.clusterArn, service: workers.service.serviceName }),
    };
    const schedule = new events.Rule(this, "Schedule", {
      description: `Renews the certificates of ${this.name}`,
      schedule: events.Schedule.rate(EVERY),
      targets: [
        new targets.LambdaFunction(this.function, { event: events.RuleTargetInput.fromObject({ callers }) }),
      ],
    });
    // Two runs at once would disagree about the first authority, and one of them would fail.
    schedule.node.addDependency(this.issued);
    const versions = `${functionArn}:*`;
    const look = ["lambda:GetAlias", "lambda:GetFunctionConfiguration"];
    const policy = new iam.Policy(this, "SeeCallers", {
      roles: [this.function.role as iam.Role],
      statements: [
        statement("SeeFunction", look, [functionArn, versions]),
        ...(workers ? [statement("SeeWorkers", ["ecs:DescribeServices"], [workers.service.serviceArn])] : []),
      ],
    });
    explainWildcard(policy, versions, "Versions of the query function, whose numbers Lambda draws.");
    schedule.node.addDependency(policy);
  }

  private role(state: IGraphState, secrets: readonly Secret[], logGroup: logs.ILogGroup): iam.Role {
    const role = new iam.Role(this, "Role", {
      assumedBy: new iam.ServicePrincipal("lambda.amazonaws.com"),
      description: `Issues the certificates of ${state.name}`,
    });
    const actions = ["secretsmanager:GetSecretValue", "secretsmanager:PutSecretValue"];
    const arns = secrets.map(({ secretArn }) => secretArn);
    role.addToPolicy(statement("IssueCertificates", actions, arns));
    const see = [
      "autoscaling:DescribeAutoScalingGroups",
      "ec2:DescribeLaunchTemplateVersions",
      "ecs:DescribeTaskDefinition",
    ];
    role.addToPolicy(statement("SeeProcesses", see, ["*"]));
    role.addToPolicy(statement("SeeStack", ["cloudformation:DescribeStacks"], [Stack.of(this).stackId]));
    explainWildcard(
      role,
      "*",
      "What machines and workers were started with: descriptions know no resources.",
    );
    role.addToPolicy(useKey(this, state.key, ["lambda", "secretsmanager"]));
    role.addToPolicy(
      statement("WriteLog", ["logs:CreateLogStream", "logs:PutLogEvents"], [logGroup.logGroupArn]),
    );
    return role;
  }
}
