/**
 * The query function: `tidegraph-lambda` (docs/lambda.md), in the VPC of the nodes. It reads the map and asks nodes and the sequencer; of S3 it
 * reads what became of loads, and it never speaks with the log.
 */
import { Duration } from "aws-cdk-lib";
import type * as lambda from "aws-cdk-lib/aws-lambda";
import type * as logs from "aws-cdk-lib/aws-logs";
import type { ISecret } from "aws-cdk-lib/aws-secretsmanager";
import { Construct } from "constructs";
import type { Architecture, Bundle } from "../bundle.ts";
import { whole } from "../check.ts";
import { explainBelow } from "../nag.ts";
import { statement } from "../statement.ts";
import { fleetFunction, processor } from "./fleet-function.ts";
import type { GraphState } from "./state.ts";

/** Settings of queries through the API. */
export interface QueryProps {
  /**
   * MiB of memory of the function; its share of processors grows with it, one at 1,769.
   *
   * @default 1769
   */
  readonly memoryMib?: number;
  /**
   * The processor, for which `bootstrap`, `tidegraph-rebalance` and `tidegraph-ingest` in the bundle have to be.
   *
   * @default "arm64", which costs less
   */
  readonly architecture?: Architecture;
  /**
   * Longest time of a query in seconds, at most what API Gateway streams an answer for.
   *
   * @default 120
   */
  readonly timeoutSeconds?: number;
  /**
   * Most environments of the function at the same time; beyond that callers are told to slow down.
   *
   * @default what the account allows
   */
  readonly concurrency?: number;
  /**
   * Requests a second that the API takes on average.
   *
   * @default 500
   */
  readonly requestsPerSecond?: number;
  /**
   * Requests that it takes at once beyond that.
   *
   * @default 1000
   */
  readonly burst?: number;
  /**
   * What the function logs, such as `tidegraph_fleet=debug`.
   *
   * @default "info"
   */
  readonly log?: string;
}

/** What the function needs. */
interface Parts extends QueryProps {
  readonly state: GraphState;
  readonly bundle: Bundle;
  readonly fleetSecret: ISecret;
  readonly retention: logs.RetentionDays;
}

export class QueryFunction extends Construct {
  readonly function: lambda.Function;
  readonly timeout: Duration;

  constructor(scope: Construct, id: string, props: Parts) {
    super(scope, id);
    const { state, bundle, concurrency } = props;
    const seconds = whole("query.timeoutSeconds", props.timeoutSeconds ?? 120, 1, 900);
    this.timeout = Duration.seconds(seconds);
    const memorySize = whole("query.memoryMib", props.memoryMib ?? 1769, 128, 10_240);
    if (concurrency !== undefined) whole("query.concurrency", concurrency, 1);
    const architecture = props.architecture ?? "arm64";
    // Before the bundle is looked at: a processor that there is not would be no program's.
    processor("query.architecture", architecture);
    const { function: fn, role } = fleetFunction(this, {
      state,
      name: "query",
      description: `Queries of the graph ${state.graph}`,
      code: bundle.folderWith("bootstrap", [], architecture),
      architecture,
      memorySize,
      timeout: this.timeout,
      concurrency,
      fleetSecret: props.fleetSecret,
      retention: props.retention,
      log: props.log ?? "info",
      keyServices: ["s3"],
      environment: {
        TIDEGRAPH_QUERY_TIMEOUT_MS: String(seconds * 1000),
        TIDEGRAPH_RESPONSES: "stream",
        // `GET /loader` tells what became of loads.
        TIDEGRAPH_OBJECTS: state.objects,
      },
    });
    this.function = fn;
    const { data } = state.buckets;
    // Of all names: S3 says that an object is not there only to those who may list it.
    role.addToPolicy(statement("ListJobs", ["s3:ListBucket"], [data.bucketArn]));
    role.addToPolicy(statement("ReadJobs", ["s3:GetObject"], [`${data.bucketArn}/jobs/*`]));
    explainBelow(
      role,
      data,
      data.bucketArn,
      "/jobs/*",
      "What became of loads, by ids that are made while it runs.",
    );
  }
}
