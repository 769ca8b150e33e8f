/**
 * What the grants of `GraphService` allow. Each wildcard that they put into a policy of the app is explained beside the
 * policy, as those of our own roles are: AWS's rules (cdk-nag) find nothing in an app because it uses a grant.
 */
import { ArnFormat, Stack } from "aws-cdk-lib";
import * as iam from "aws-cdk-lib/aws-iam";
import type { IStateMachine } from "aws-cdk-lib/aws-stepfunctions";
import { Construct } from "constructs";
import { InvalidProp } from "../check.ts";
import { explainWildcard } from "../nag.ts";
import { useKey } from "../statement.ts";
import type { Backup } from "./backup.ts";
import type { IGraphState } from "./graph-state.ts";
import type { Graphs } from "./graphs.ts";
import type { QueryApi } from "./query-api.ts";
import type { Upgrade } from "./upgrade.ts";

/** What grants are about. */
export interface GrantsProps {
  readonly state: IGraphState;
  readonly graphs: Graphs;
  readonly api: QueryApi;
  readonly upgrade: Upgrade;
  readonly backup: Backup | undefined;
}

/** A statement of a grant. */
interface Allowed {
  readonly actions: string[];
  readonly resources: string[];
  readonly conditions?: Record<string, Record<string, unknown>>;
  /** Why resources have wildcards. */
  readonly wildcards?: string;
}

const PATHS =
  "All calls of the API, or of one graph: the service adds paths, and a grant of everything has them.";
const DROPPED =
  "People choose the names of the files that they drop, and the ids of reports are made while it runs.";
const EXECUTIONS = "Executions of the machines that it may start, whose names are made when they start.";

export class Grants {
  private readonly scope: Construct;
  private readonly props: GrantsProps;

  /** @param scope the service */
  constructor(scope: Construct, props: GrantsProps) {
    this.scope = scope;
    this.props = props;
  }

  query(grantee: iam.IGrantable, graph: string | undefined): iam.Grant {
    const { api } = this.props;
    const allowed = graph === undefined ? api.everything : api.everythingOf(this.known(graph));
    return this.allow(grantee, { ...invoke([allowed]), wildcards: PATHS });
  }

  read(grantee: iam.IGrantable, graph: string | undefined): iam.Grant {
    const { api } = this.props;
    return this.allow(grantee, invoke(graph === undefined ? api.reads : api.readsOf(this.known(graph))));
  }

  write(grantee: iam.IGrantable, graph: string | undefined): iam.Grant {
    const { api } = this.props;
    return this.allow(grantee, invoke(graph === undefined ? api.writes : api.writesOf(this.known(graph))));
  }

  drop(grantee: iam.IGrantable, into: string | undefined): iam.Grant {
    const { key, buckets, graph } = this.props.state;
    const { drop } = buckets;
    const name = this.known(into ?? graph);
    const { region, urlSuffix } = Stack.of(this.scope);
    return this.allow(
      grantee,
      {
        actions: ["s3:PutObject", "s3:AbortMultipartUpload"],
        resources: [drop.arnForObjects(`drop/${name}/*`)],
        wildcards: DROPPED,
      },
      {
        actions: ["s3:GetObject"],
        resources: [drop.arnForObjects(`reports/${name}/*`)],
        wildcards: DROPPED,
      },
      // The name of a report has the id of the load, which nobody knows before.
      {
        actions: ["s3:ListBucket"],
        resources: [drop.bucketArn],
        conditions: { StringLike: { "s3:prefix": [`reports/${name}/*`] } },
      },
      {
        actions: ["kms:GenerateDataKey", "kms:Decrypt"],
        resources: [key.keyArn],
        conditions: { StringEquals: { "kms:ViaService": `s3.${region}.${urlSuffix}` } },
      },
    );
  }

  fleet(grantee: iam.IGrantable, graph: string | undefined): iam.Grant {
    const { state, graphs } = this.props;
    const names = graph === undefined ? graphs.names : [this.known(graph)];
    return this.allow(grantee, ...state.map.changes(...names), useKey(this.scope, state.key, ["dynamodb"]));
  }

  admin(grantee: iam.IGrantable): iam.Grant {
    const { upgrade, backup } = this.props;
    const machines = [upgrade.machine, ...(backup ? [backup.machine] : [])];
    return this.query(grantee, undefined).combine(
      this.allow(
        grantee,
        {
          actions: ["states:StartExecution", "states:ListExecutions"],
          resources: machines.map(({ stateMachineArn }) => stateMachineArn),
        },
        {
          actions: ["states:DescribeExecution", "states:GetExecutionHistory", "states:StopExecution"],
          resources: machines.map((machine) => this.executionsOf(machine)),
          wildcards: EXECUTIONS,
        },
      ),
    );
  }

  /** Returns a graph of this deployment. */
  private known(graph: string): string {
    const { names } = this.props.graphs;
    if (!names.includes(graph)) throw new InvalidProp("graph", graph, `one of ${names.join(", ")}`);
    return graph;
  }

  private executionsOf({ stateMachineName }: IStateMachine & { stateMachineName: string }): string {
    return Stack.of(this.scope).formatArn({
      service: "states",
      resource: "execution",
      arnFormat: ArnFormat.COLON_RESOURCE_NAME,
      resourceName: `${stateMachineName}:*`,
    });
  }

  /** Adds statements to the policy of a principal, and explains their wildcards. */
  private allow(grantee: iam.IGrantable, ...statements: Allowed[]): iam.Grant {
    const grants = statements.map(({ actions, resources, conditions, wildcards }) => {
      const more = conditions && Object.keys(conditions).length > 0 ? { conditions } : {};
      const granted = iam.Grant.addToPrincipal({ grantee, actions, resourceArns: resources, ...more });
      if (wildcards !== undefined) explainIn(grantee, resources, wildcards);
      return granted;
    });
    return grants.reduce((all, one) => all.combine(one));
  }
}

/** Explains wildcards in the policy of a principal. */
function explainIn(grantee: iam.IGrantable, resources: readonly string[], reason: string): void {
  // The principal of a managed policy is no construct, but the policy is.
  const holder = [grantee.grantPrincipal, grantee].find((one) => Construct.isConstruct(one));
  if (holder === undefined) return;
  for (const resource of resources) explainWildcard(holder as unknown as Construct, resource, reason);
}

function invoke(resources: string[]): Allowed {
  return { actions: ["execute-api:Invoke"], resources };
}
