/**
 * What the grants of `GraphService` allow. Each wildcard that they put into a policy of the app is explained beside the
 * policy, as those of our own roles are: AWS's rules (cdk-nag) find nothing in an app because it uses a grant.
 *
 * A principal of another account needs two policies: one in its account, and one of the resource. The API has the second one
 * from here. For everything else AWS has none, or it is elsewhere (`dropFrom`), so that such a grant is refused instead of
 * doing nothing.
 *
 * IAM limits the inline policies of a user to 2,048 characters and those of a group to 5,120, which several grants exceed.
 * Users and groups get a managed policy for each grant instead. It may have 6,144.
 */
import { Annotations, Names, Stack, Token, TokenComparison } from "aws-cdk-lib";
import type { CfnRestApi } from "aws-cdk-lib/aws-apigateway";
import * as iam from "aws-cdk-lib/aws-iam";
import type { StateMachine } from "aws-cdk-lib/aws-stepfunctions";
import { Construct } from "constructs";
import { InvalidProp } from "../check.ts";
import { explainWildcard } from "../nag.ts";
import { useKey } from "../statement.ts";
import type { Graphs } from "./graphs.ts";
import { executionsOf, type OperatorProps, operatorStatements } from "./operator.ts";
import { type QueryApi, STAGE } from "./query-api.ts";

/** What grants are about. */
export interface GrantsProps extends OperatorProps {
  readonly graphs: Graphs;
  readonly api: QueryApi;
}

/** A statement of a grant. */
export interface Allowed {
  readonly actions: string[];
  readonly resources: string[];
  readonly conditions?: Record<string, Record<string, unknown>>;
  /** Why resources have wildcards. */
  readonly wildcards?: string;
}

/** API Gateway's quota of the policy of an API, unless it was raised. */
const MOST_POLICY_CHARACTERS = 8192;

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
    return this.invoke(this.policyOf(grantee, "Query", graph), [allowed], PATHS);
  }

  read(grantee: iam.IGrantable, graph: string | undefined): iam.Grant {
    const { api } = this.props;
    const allowed = graph === undefined ? api.reads : api.readsOf(this.known(graph));
    return this.invoke(this.policyOf(grantee, "Read", graph), allowed);
  }

  write(grantee: iam.IGrantable, graph: string | undefined): iam.Grant {
    const { api } = this.props;
    const allowed = graph === undefined ? api.writes : api.writesOf(this.known(graph));
    return this.invoke(this.policyOf(grantee, "Write", graph), allowed);
  }

  drop(grantee: iam.IGrantable, into: string | undefined): iam.Grant {
    const { key, buckets, graph } = this.props.state;
    const { drop } = buckets;
    const name = this.known(into ?? graph);
    const { region, urlSuffix } = Stack.of(this.scope);
    this.check(
      grantee,
      ", or among the accounts of dropFrom of GraphState (docs/deploy.md#from-other-accounts)",
    );
    return this.allow(
      this.policyOf(grantee, "Drop", name),
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
    this.check(grantee);
    return this.allow(
      this.policyOf(grantee, "Fleet", graph),
      united(state.map.changes(...names)),
      useKey(this.scope, state.key, ["dynamodb"]),
    );
  }

  operate(grantee: iam.IGrantable): iam.Grant {
    const fleet = this.fleet(grantee, undefined);
    // A user or a group has the statements of the fleet in the policy of `grantFleet`, so that long names have room in both.
    const policy = this.policyOf(grantee, "Operate");
    return fleet.combine(this.allow(policy, ...operatorStatements(this.scope, this.props)));
  }

  admin(grantee: iam.IGrantable): iam.Grant {
    const { upgrade, backup } = this.props;
    const machines = [upgrade.machine, ...(backup ? [backup.machine] : [])];
    const policy = this.policyOf(grantee, "Admin");
    const started = this.start(policy, machines);
    return this.query(policy, undefined).combine(started);
  }

  /** @param machine the machine that removes graphs */
  removal(grantee: iam.IGrantable, machine: StateMachine): iam.Grant {
    return this.start(this.policyOf(grantee, "Removal"), [machine]);
  }

  /** Allows a principal to start state machines, to see how they go, and to stop them. */
  private start(grantee: iam.IGrantable, machines: readonly StateMachine[]): iam.Grant {
    this.check(grantee);
    return this.allow(
      grantee,
      {
        actions: ["states:StartExecution", "states:ListExecutions"],
        resources: machines.map(({ stateMachineArn }) => stateMachineArn),
      },
      {
        actions: ["states:DescribeExecution", "states:GetExecutionHistory", "states:StopExecution"],
        resources: machines.map((machine) => executionsOf(this.scope, machine)),
        wildcards: EXECUTIONS,
      },
    );
  }

  /** Returns a graph of this deployment. */
  private known(graph: string): string {
    const { names } = this.props.graphs;
    if (!names.includes(graph)) throw new InvalidProp("graph", graph, `one of ${names.join(", ")}`);
    return graph;
  }

  /**
   * Returns what gets the statements of a grant. For a user or a group it is a managed policy, which is attached to it; for
   * every other grantee it is the grantee. The policy is below the user or group, in whose stack an inline policy would be.
   * Its id names the service, because an app may have several.
   */
  private policyOf(grantee: iam.IGrantable, grant: string, graph = ""): iam.IGrantable {
    const { grantPrincipal: principal } = grantee;
    const attached = attachment(principal);
    if (attached === undefined || this.isElsewhere(principal)) return grantee;
    const id = `${Names.nodeUniqueId(this.scope.node)}${grant}${graph}`;
    const known = attached.to.node.tryFindChild(id) as iam.ManagedPolicy | undefined;
    if (known !== undefined) return known;
    const description = `What grant${grant} of ${this.scope.node.path} allows`;
    return new iam.ManagedPolicy(attached.to, id, { description, ...attached.by });
  }

  /** Whether a principal is known to be of another account. */
  private isElsewhere({ principalAccount }: iam.IPrincipal): boolean {
    const { account } = Stack.of(this.scope);
    return (
      principalAccount !== undefined &&
      Token.compareStrings(principalAccount, account) === TokenComparison.DIFFERENT
    );
  }

  /** Refuses a principal of another account, for what only policies of this account can allow. */
  private check({ grantPrincipal: principal }: iam.IGrantable, otherwise = ""): void {
    if (!this.isElsewhere(principal)) return;
    const { account } = Stack.of(this.scope);
    throw new InvalidProp(
      "grantee",
      `${told(principal)} of the account ${principal.principalAccount}`,
      `in the account of the deployment, ${account}, such as a role that the other account may assume${otherwise}`,
    );
  }

  /**
   * Lets a principal call paths of the API. A principal that has no policy in this app, or one of another account, is named by
   * the policy of the API.
   */
  private invoke(grantee: iam.IGrantable, resources: string[], wildcards?: string): iam.Grant {
    const actions = ["execute-api:Invoke"];
    const { grantPrincipal: principal } = grantee;
    const isElsewhere = this.isElsewhere(principal);
    if (!isElsewhere) {
      const granted = this.add(grantee, {
        actions,
        resources,
        ...(wildcards !== undefined && { wildcards }),
      });
      if (granted.success) return granted;
    }
    const { AWS: names, ...others } = principal.policyFragment.principalJson;
    if (names === undefined || Object.keys(others).length > 0 || [names].flat().includes("*"))
      throw unable(principal);
    if (isElsewhere) {
      const message = `${told(principal)} needs a policy in its own account too (docs/deploy.md#from-other-accounts)`;
      Annotations.of(this.scope).addInfoV2("tidegraph:other-account", message);
    }
    const granted = iam.Grant.addStatementToResourcePolicy({
      ...{ grantee, actions, resourceArns: resources, resource: this.props.api.api },
      // The policy of an API names its own calls without the API and its stage, for which it would wait otherwise.
      statement: new iam.PolicyStatement({
        actions,
        principals: [principal],
        resources: resources.map((arn) => `execute-api:/${[STAGE, ...arn.split("/").slice(2)].join("/")}`),
      }),
    });
    this.measure();
    return granted;
  }

  /** Warns if API Gateway refuses the policy of the API for its length, unless the account's quota is higher. */
  private measure(): void {
    const { policy } = this.props.api.api.node.defaultChild as CfnRestApi;
    if (JSON.stringify(Stack.of(this.scope).resolve(policy)).length <= MOST_POLICY_CHARACTERS) return;
    const message =
      `the policy of the API has more than ${MOST_POLICY_CHARACTERS} characters, the quota of API Gateway, which AWS raises ` +
      "for single APIs: grant all graphs at once, or an account in place of its principals";
    Annotations.of(this.scope).addWarningV2("tidegraph:api-policy", message);
  }

  /** Adds statements to the policy of a principal, and explains their wildcards. */
  private allow(grantee: iam.IGrantable, ...statements: Allowed[]): iam.Grant {
    const grants = statements.map((allowed) => {
      const granted = this.add(grantee, allowed);
      if (!granted.success) throw unable(grantee.grantPrincipal);
      return granted;
    });
    return grants.reduce((all, one) => all.combine(one));
  }

  private add(grantee: iam.IGrantable, { actions, resources, conditions, wildcards }: Allowed): iam.Grant {
    const more = conditions && Object.keys(conditions).length > 0 ? { conditions } : {};
    const granted = iam.Grant.addToPrincipal({ grantee, actions, resourceArns: resources, ...more });
    if (granted.success && wildcards !== undefined) explainIn(grantee, resources, wildcards);
    return granted;
  }
}

/**
 * Returns one statement instead of several with the same conditions, which list the names of all graphs. Actions on items do not
 * exist for an index.
 */
function united(statements: readonly Allowed[]): Allowed {
  const [{ conditions = {} } = {}, ...others] = statements;
  if (others.some((one) => JSON.stringify(one.conditions ?? {}) !== JSON.stringify(conditions)))
    throw new Error("statements with different conditions would allow more if they were one");
  const all = (of: (one: Allowed) => readonly string[]): string[] => [...new Set(statements.flatMap(of))];
  return { actions: all(({ actions }) => actions), resources: all(({ resources }) => resources), conditions };
}

/** Returns the user or group that a principal is, and the properties that attach a managed policy to it. */
function attachment(
  principal: iam.IPrincipal,
): { to: Construct; by: Pick<iam.ManagedPolicyProps, "users" | "groups"> } | undefined {
  if (!Construct.isConstruct(principal)) return undefined;
  // Imported users and groups are of classes that the CDK does not export.
  if ("userArn" in principal) return { to: principal, by: { users: [principal as unknown as iam.IUser] } };
  if ("groupArn" in principal) return { to: principal, by: { groups: [principal as unknown as iam.IGroup] } };
  return undefined;
}

/** The error about a principal that a grant could do nothing for. */
function unable(principal: iam.IPrincipal): InvalidProp {
  return new InvalidProp("grantee", told(principal), "a role, user, group or managed policy of the app");
}

/** Names a principal in a message. */
function told(principal: iam.IPrincipal): string {
  if (Construct.isConstruct(principal)) return principal.node.path;
  const names = Object.values(principal.policyFragment.principalJson).flat();
  return names.every((name) => !Token.isUnresolved(name)) ? names.join(", ") : String(principal);
}

/** Explains wildcards in the policy of a principal. */
function explainIn(grantee: iam.IGrantable, resources: readonly string[], reason: string): void {
  // The principal of a managed policy is no construct, but the policy is.
  const holder = [grantee.grantPrincipal, grantee].find((one) => Construct.isConstruct(one));
  if (holder === undefined) return;
  for (const resource of resources) explainWildcard(holder as unknown as Construct, resource, reason);
}
