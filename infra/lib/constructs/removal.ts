/**
 * Removes one graph of a deployment that has several: a state machine that an operator starts after the graph was taken out
 * of `graphs`, and a function in the VPC that runs `tidegraph-node drop-graph` and then removes what that leaves
 * (`infra/removal/`).
 *
 * The function's role may remove any graph but those of the deployment: a deny names their items, topics and objects, so
 * that neither a wrong input nor a defect reaches them.
 */
import { Duration } from "aws-cdk-lib";
import * as ec2 from "aws-cdk-lib/aws-ec2";
import * as iam from "aws-cdk-lib/aws-iam";
import { Key } from "aws-cdk-lib/aws-kms";
import * as lambda from "aws-cdk-lib/aws-lambda";
import type * as logs from "aws-cdk-lib/aws-logs";
import * as sfn from "aws-cdk-lib/aws-stepfunctions";
import * as tasks from "aws-cdk-lib/aws-stepfunctions-tasks";
import { Construct } from "constructs";
import type { Bundle } from "../bundle.ts";
import { processLog } from "../log-group.ts";
import { explainWildcard } from "../nag.ts";
import { folderOf } from "../names.ts";
import { stateMachine } from "../state-machines/machine.ts";
import { retry } from "../state-machines/retry.ts";
import { denied, statement, useKey } from "../statement.ts";
import { typescriptFunction } from "../typescript-function.ts";
import { standInVpc } from "./fleet-function.ts";
import type { IGraphState } from "./graph-state.ts";
import type { Graphs } from "./graphs.ts";

/** Settings and resources that this construct needs. */
export interface RemovalProps {
  readonly state: IGraphState;
  readonly graphs: Graphs;
  readonly bundle: Bundle;
  readonly brokers: string;
  readonly retention: logs.RetentionDays;
}

/** Lambda's limit. The function stops before, and the machine invokes it again. */
const TIMEOUT = Duration.minutes(15);
/** How often the function goes on with what it could not finish in its time. */
const ATTEMPTS = 200;

/** What the daemon's command does with the items of a graph. */
const CHANGES = ["dynamodb:PutItem", "dynamodb:DeleteItem"];
/** What removes versions of objects, and uploads that nobody completed. */
export const REMOVES = ["s3:DeleteObject", "s3:DeleteObjectVersion", "s3:AbortMultipartUpload"];
/** What finds them. */
export const FINDS = ["s3:ListBucket", "s3:ListBucketVersions", "s3:ListBucketMultipartUploads"];

export class Removal extends Construct {
  readonly machine: sfn.StateMachine;
  readonly function: lambda.Function;
  readonly securityGroup: ec2.SecurityGroup;

  constructor(scope: Construct, id: string, props: RemovalProps) {
    super(scope, id);
    const { state, retention } = props;
    this.securityGroup = new ec2.SecurityGroup(this, "SecurityGroup", {
      vpc: state.network.vpc,
      description: "The function that removes a graph: nobody comes in",
      allowAllOutbound: false,
    });
    state.log.letIn(this, this.securityGroup);
    this.function = this.makeFunction(props);
    this.machine = stateMachine(this, "Machine", {
      state,
      comment: "Removes one graph with all its data",
      definition: (inner) => this.definition(inner),
      function: this.function,
      timeout: Duration.days(2),
      retention,
    });
  }

  private definition(scope: Construct): sfn.IChainable {
    const task = new tasks.LambdaInvoke(scope, "Remove the graph", {
      comment: "Its topic, its map, its objects, its drops and their reports",
      lambdaFunction: this.function,
      payloadResponseOnly: true,
      retryOnServiceExceptions: false,
      taskTimeout: sfn.Timeout.duration(TIMEOUT.plus(Duration.minutes(1))),
    });
    task.addRetry({
      errors: ["Unfinished"],
      interval: Duration.seconds(1),
      backoffRate: 1,
      maxAttempts: ATTEMPTS,
    });
    // Brokers or the map may be away for some minutes.
    task.addRetry({ errors: ["DropFailed"], interval: Duration.minutes(1), backoffRate: 2, maxAttempts: 2 });
    retry(task);
    return task;
  }

  private makeFunction(props: RemovalProps): lambda.Function {
    const { state, graphs, bundle, retention } = props;
    const logGroup = processLog(this, "Logs", state, "removal", retention);
    const { vpc, subnets } = state.network;
    return typescriptFunction(
      this,
      "removal",
      {
        description: `Removes one graph of the deployment ${state.name}`,
        // The program is that of the nodes.
        architecture: lambda.Architecture.ARM_64,
        memorySize: 1024,
        timeout: TIMEOUT,
        vpc,
        vpcSubnets: { subnets },
        securityGroups: [this.securityGroup],
        role: this.role(props, logGroup),
        logGroup,
        environmentEncryption: Key.fromKeyArn(this, "Key", state.key.keyArn),
        environment: {
          GRAPHS: graphs.variable,
          DROP_BUCKET: state.buckets.drop.bucketName,
          TIDEGRAPH_TABLE_PREFIX: state.map.prefix,
          TIDEGRAPH_OBJECTS: state.objects,
          TIDEGRAPH_KAFKA_BROKERS: props.brokers,
          ...state.log.variables,
        },
      },
      [bundle.path("tidegraph-node")],
    );
  }

  private role({ state, graphs }: RemovalProps, logGroup: logs.ILogGroup): iam.Role {
    const role = new iam.Role(this, "Role", {
      assumedBy: new iam.ServicePrincipal("lambda.amazonaws.com"),
      description: `Removes a graph of ${state.name}`,
    });
    const { table } = state.map;
    role.addToPolicy(
      statement("ChangeMap", ["dynamodb:GetItem", "dynamodb:Query", ...CHANGES], [table.tableArn]),
    );
    const keys = { "ForAnyValue:StringEquals": { "dynamodb:LeadingKeys": graphs.names } };
    role.addToPolicy(denied("KeepMaps", CHANGES, [table.tableArn], keys));
    state.log.letDelete(
      role,
      graphs.names.map((name) => state.topicOf(name)),
    );
    this.useObjects(role, state, graphs);
    role.addToPolicy(useKey(this, state.key, ["dynamodb", "lambda"]));
    const write = ["logs:CreateLogStream", "logs:PutLogEvents"];
    role.addToPolicy(statement("WriteLog", write, [logGroup.logGroupArn]));
    standInVpc(role);
    return role;
  }

  /** Lets the function remove the folders of graphs in both buckets, except those of the deployment's graphs. */
  private useObjects(role: iam.Role, { buckets }: IGraphState, graphs: Graphs): void {
    const { data, drop } = buckets;
    const folders = [
      { bucket: data, parent: "graphs", of: folderOf, names: graphs.others.map(({ name }) => name) },
      { bucket: drop, parent: "drop", of: (name: string) => `drop/${name}`, names: graphs.names },
      { bucket: drop, parent: "reports", of: (name: string) => `reports/${name}`, names: graphs.names },
    ];
    role.addToPolicy(statement("FindObjects", FINDS, [data.bucketArn, drop.bucketArn]));
    const all = folders.map(({ bucket, parent }) => `${bucket.bucketArn}/${parent}/*`);
    role.addToPolicy(statement("RemoveObjects", REMOVES, all));
    const kept = folders.flatMap(({ bucket, of, names }) =>
      names.map((name) => `${bucket.bucketArn}/${of(name)}/*`),
    );
    role.addToPolicy(denied("KeepObjects", REMOVES, kept));
    const reason = "Graphs that were taken out of the deployment, by names that it does not know any more.";
    for (const { bucket, parent } of folders)
      explainWildcard(role, `${bucket.bucketArn}/${parent}/*`, reason);
  }
}
