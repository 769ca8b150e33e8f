/**
 * The query function: `tidegraph-lambda` (docs/lambda.md), in the VPC of the nodes. It reads the map and sends requests
 * to nodes and the sequencer. From S3 it reads only the status of loads, and it never connects to the log.
 *
 * Callers invoke the alias `live`. A deployment publishes a new version of the function and leaves the alias where it is;
 * the machine `upgrade` moves it, after nodes and workers (ADR 0042).
 */
import { Duration } from "aws-cdk-lib";
import type { ICertificate } from "aws-cdk-lib/aws-certificatemanager";
import type { IVpcEndpoint } from "aws-cdk-lib/aws-ec2";
import * as lambda from "aws-cdk-lib/aws-lambda";
import type * as logs from "aws-cdk-lib/aws-logs";
import type { IHostedZone } from "aws-cdk-lib/aws-route53";
import type { ISecret } from "aws-cdk-lib/aws-secretsmanager";
import { Construct } from "constructs";
import type { Architecture, Bundle } from "../bundle.ts";
import { whole } from "../check.ts";
import { explainWildcard } from "../nag.ts";
import { statement } from "../statement.ts";
import { fleetFunction, processor } from "./fleet-function.ts";
import type { IGraphState } from "./graph-state.ts";
import type { Graphs } from "./graphs.ts";
import type { TracesProps } from "./traces.ts";

/** A name of the API. */
export interface QueryDomain {
  /** The whole name, such as `graph.example.com`. */
  readonly name: string;
  /** A certificate for the name, in the same region. */
  readonly certificate: ICertificate;
  /**
   * The hosted zone in which a record for the API is made.
   *
   * @default none: somebody makes the record
   */
  readonly zone?: IHostedZone;
}

/** Settings of queries through the API. */
export interface QueryProps {
  /**
   * Memory of the function in MiB. The share of processors grows with it, with one full processor at 1,769.
   *
   * @default 1769
   */
  readonly memoryMib?: number;
  /**
   * The processor for which `bootstrap`, `tidegraph-rebalance` and `tidegraph-ingest` in the bundle are built.
   *
   * @default "arm64", which costs less
   */
  readonly architecture?: Architecture;
  /**
   * Time limit of a query in seconds, at most 290. API Gateway closes a stream on which nothing was sent for 5 minutes,
   * and a query that aggregates or sorts sends nothing before its end; 10 s are left for its error.
   *
   * @default 120
   */
  readonly timeoutSeconds?: number;
  /**
   * Maximum number of concurrent environments of the function; API requests beyond it are throttled.
   *
   * @default the account's limit
   */
  readonly concurrency?: number;
  /**
   * Sustained number of requests per second that the API accepts.
   *
   * @default 500
   */
  readonly requestsPerSecond?: number;
  /**
   * Size of the burst that the API accepts on top of that.
   *
   * @default 1000
   */
  readonly burst?: number;
  /**
   * The log filter of the function, such as `tidegraph_fleet=debug`.
   *
   * @default "info"
   */
  readonly log?: string;
  /**
   * A name of the API. Paths begin there without `/graph`, as with Neptune: `https://graph.example.com/openCypher`.
   *
   * @default API Gateway's own name
   */
  readonly domain?: QueryDomain;
  /**
   * The ARN of a regional web ACL (AWS WAF) for the API.
   *
   * @default none
   */
  readonly webAcl?: string;
  /**
   * Whether only the VPC reaches the API: clients with the security group `api.clients`, or those of `vpcEndpoint`.
   *
   * @default false: the internet reaches it, and every request has to be signed
   */
  readonly privateAccess?: boolean;
  /**
   * The VPC's endpoint of `execute-api`, for `privateAccess`.
   *
   * @default a new one in the subnets of the deployment
   */
  readonly vpcEndpoint?: IVpcEndpoint;
}

/** Settings and resources that the function needs. */
interface Parts extends QueryProps {
  readonly state: IGraphState;
  readonly graphs: Graphs;
  readonly bundle: Bundle;
  readonly fleetSecret: ISecret;
  readonly certificates: ISecret | undefined;
  readonly retention: logs.RetentionDays;
  /** Whether records of the log say what they change. */
  readonly streams: boolean;
  /** Traces of the function; `undefined` for none. */
  readonly traces: TracesProps | undefined;
}

/** Below the time after which API Gateway closes an idle stream of a regional API. */
const MOST_SECONDS = 290;

export class QueryFunction extends Construct {
  readonly function: lambda.Function;
  /** The function as it is deployed. It may differ from what callers have. */
  readonly version: lambda.IVersion;
  /** What callers invoke. */
  readonly live: lambda.Alias;
  readonly timeout: Duration;

  constructor(scope: Construct, id: string, props: Parts) {
    super(scope, id);
    const { state, graphs, bundle, concurrency } = props;
    const seconds = whole("query.timeoutSeconds", props.timeoutSeconds ?? 120, 1, MOST_SECONDS);
    this.timeout = Duration.seconds(seconds);
    const memorySize = whole("query.memoryMib", props.memoryMib ?? 1769, 128, 10_240);
    if (concurrency !== undefined) whole("query.concurrency", concurrency, 1);
    const architecture = props.architecture ?? "arm64";
    // Checked before the bundle, because the message about an unknown processor would name a program instead.
    processor("query.architecture", architecture);
    const { function: fn, role } = fleetFunction(this, {
      state,
      graphs,
      name: "query",
      description: `Queries of ${graphs.words}`,
      code: bundle.folderWith("bootstrap", [], architecture),
      architecture,
      memorySize,
      timeout: this.timeout,
      concurrency,
      fleetSecret: props.fleetSecret,
      certificates: props.certificates,
      retention: props.retention,
      log: props.log ?? "info",
      traces: props.traces,
      keyServices: ["s3"],
      environment: {
        TIDEGRAPH_QUERY_TIMEOUT_MS: String(seconds * 1000),
        TIDEGRAPH_RESPONSES: "stream",
        // `GET /loader` reads the status of loads from here.
        TIDEGRAPH_OBJECTS: state.objects,
        ...(props.streams ? { TIDEGRAPH_STREAMS: "true" } : {}),
      },
    });
    this.function = fn;
    this.version = fn.currentVersion;
    this.live = this.makeAlias();
    const { data } = state.buckets;
    // For all names: S3 answers "not found" only to principals that may list the bucket.
    role.addToPolicy(statement("ListJobs", ["s3:ListBucket"], [data.bucketArn]));
    const below = graphs.paths("jobs/*");
    const jobs = below.map((path) => `${data.bucketArn}/${path}`);
    role.addToPolicy(statement("ReadJobs", ["s3:GetObject"], jobs));
    const reason = "What became of loads, by ids that are made while it runs.";
    for (const path of below) explainWildcard(role, `${data.bucketArn}/${path}`, reason);
  }

  /**
   * Makes the alias. Its version is a text that never changes, so that no deployment moves it again: `1` is the first
   * version of a function, which the first deployment publishes. AWS numbers them upwards and never gives a number twice.
   */
  private makeAlias(): lambda.Alias {
    const first = lambda.Version.fromVersionAttributes(this, "First", {
      lambda: this.function,
      version: "1",
    });
    const alias = new lambda.Alias(this, "Live", { aliasName: "live", version: first });
    alias.node.addDependency(this.version);
    return alias;
  }
}
