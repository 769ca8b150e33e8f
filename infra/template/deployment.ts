/**
 * The two stacks of the example as templates for CloudFormation alone. The constructs are the same; parameters stand
 * where the example has the values of its context.
 *
 * The service finds what the state exports by the parameters `Name` and `Graph`, which both stacks have: exports are
 * called `NAME:GRAPH:…`, whatever the stacks are called. A service with another name or graph than its state is refused
 * when it is created.
 */
import {
  CfnCondition,
  CfnOutput,
  CfnParameter,
  type CfnParameterProps,
  CfnRule,
  Duration,
  type ExportValueOptions,
  Fn,
  Stack,
  Token,
} from "aws-cdk-lib";
import type { CfnTable } from "aws-cdk-lib/aws-dynamodb";
import { Vpc } from "aws-cdk-lib/aws-ec2";
import type { Construct } from "constructs";
import { setFlags } from "../lib/flags.ts";
import { GraphService, GraphState, type NetworkProps, type WorkersProps } from "../lib/index.ts";
import {
  BROKER_TYPE,
  OF_BOTH,
  OF_EXISTING_NETWORK,
  OF_NETWORK,
  OF_SERVICE,
  OF_STATE,
  WORKER_COUNT,
  ZONES,
} from "./parameters.ts";
import type { Settings } from "./settings.ts";
import { type Assets, ParameterSynthesizer } from "./synthesizer.ts";

/** What the files of the two templates are called. */
export const STATE = "tidegraph-state";
export const SERVICE = "tidegraph-service";

/** Where the exports of a state begin. */
// biome-ignore lint/suspicious/noTemplateCurlyInString: CloudFormation replaces these
const EXPORTS = "${Name}:${Graph}:";

/** A stack with parameters, which the console shows in groups. */
abstract class TemplateStack extends Stack {
  private readonly groups: { Label: { default: string }; Parameters: string[] }[] = [];

  constructor(scope: Construct, id: string, description: string, assets: Assets) {
    super(scope, id, {
      description,
      synthesizer: new ParameterSynthesizer(assets),
      analyticsReporting: false,
    });
    setFlags(this);
    this.templateOptions.metadata = { "AWS::CloudFormation::Interface": { ParameterGroups: this.groups } };
    this.parameters("Deployment", OF_BOTH);
  }

  /** Adds parameters, as a group in the console. */
  protected parameters<Id extends string>(
    label: string,
    all: Record<Id, CfnParameterProps>,
  ): Record<Id, CfnParameter> {
    const ids = Object.keys(all) as Id[];
    this.groups.push({ Label: { default: label }, Parameters: ids });
    const made = ids.map((id) => [id, new CfnParameter(this, id, all[id])]);
    return Object.fromEntries(made) as Record<Id, CfnParameter>;
  }

  /** Shows parameters that assets have added, and describes the one that the CDK adds for the image of machines. */
  protected describeOthers(): void {
    const isParameter = (one: unknown): one is CfnParameter => one instanceof CfnParameter;
    const ids = this.groups.flatMap(({ Parameters }) => Parameters);
    const others = this.node.findAll().filter(isParameter);
    const unknown = others.filter(({ logicalId }) => !ids.includes(this.resolve(logicalId)));
    for (const one of unknown) {
      one.description ??= "Image of the machines: the newest one of Amazon Linux 2023 for arm64. Leave it.";
    }
    const names = unknown.map(({ logicalId }): string => this.resolve(logicalId));
    if (names.length > 0) this.groups.push({ Label: { default: "Files and images" }, Parameters: names });
  }
}

/** The durable state. */
export class StateTemplate extends TemplateStack {
  readonly state: GraphState;

  constructor(scope: Construct, id: string, settings: Settings, assets: Assets) {
    super(scope, id, `Tidegraph ${settings.version}: the durable state of a graph`, assets);
    const { log } = settings;
    const { Protect } = this.parameters("State", OF_STATE);
    const brokers =
      "addresses" in log
        ? log
        : {
            ...log,
            instanceType: this.parameters("Brokers", {
              BrokerType: { ...BROKER_TYPE, default: log.instanceType },
            }).BrokerType.valueAsString,
          };
    this.state = new GraphState(this, "State", {
      name: Fn.ref("Name"),
      graph: Fn.ref("Graph"),
      network: settings.existingVpc ? this.existingNetwork() : this.ownNetwork(settings.cidr),
      log: brokers,
    });
    const table = this.state.map.table.node.defaultChild as CfnTable;
    table.deletionProtectionEnabled = Protect.value;
    this.describeOthers();
  }

  /** A VPC that exists. Nothing depends on the names of its zones, except that they differ. */
  private existingNetwork(): NetworkProps {
    const { VpcId, FirstSubnet, SecondSubnet, ThirdSubnet } = this.parameters("Network", OF_EXISTING_NETWORK);
    const subnets = [FirstSubnet, SecondSubnet, ThirdSubnet].map(({ valueAsString }) => valueAsString);
    const vpc = Vpc.fromVpcAttributes(this, "Vpc", {
      vpcId: VpcId.valueAsString,
      availabilityZones: [...ZONES],
      isolatedSubnetIds: subnets,
    });
    return { vpc };
  }

  /** A new VPC, in the zones that are given, or in the first ones of the region. */
  private ownNetwork(cidr: string): NetworkProps {
    const given = this.parameters("Network", OF_NETWORK);
    const isEmpty = ZONES.map((id) => Fn.conditionEquals(given[id].valueAsString, ""));
    const isGiven = new CfnCondition(this, "ZonesGiven", {
      expression: Fn.conditionNot(isEmpty[0] as never),
    });
    const all = [Fn.conditionAnd(...isEmpty), Fn.conditionNot(Fn.conditionOr(...isEmpty))];
    new CfnRule(this, "AllZones", {
      assertions: [
        { assert: Fn.conditionOr(...all), assertDescription: "Give all three zones, or none of them." },
      ],
    });
    const availabilityZones = ZONES.map((id, index) =>
      Token.asString(
        Fn.conditionIf(isGiven.logicalId, given[id].valueAsString, Fn.select(index, Fn.getAzs())),
      ),
    );
    return { cidr, availabilityZones };
  }

  /** Exports a value for the service, under a name that does not depend on the name of the stack. */
  override exportValue(value: unknown, options: ExportValueOptions = {}): string {
    return Fn.importValue(this.rename(super.exportValue(value, options)));
  }

  /** Gives the export that an import names its own name, and returns that. */
  private rename(imported: unknown): string {
    const { "Fn::ImportValue": given }: { "Fn::ImportValue": string } = this.resolve(imported);
    const name = Fn.sub(`${EXPORTS}${given.slice(given.indexOf(":") + 1)}`);
    const outputs = this.node.findAll().filter((one) => one instanceof CfnOutput);
    const output = outputs.find(({ exportName }) => exportName === given);
    if (output) output.exportName = name;
    return name;
  }
}

/** The processes. */
export class ServiceTemplate extends TemplateStack {
  constructor(scope: Construct, id: string, settings: Settings, parts: Parts) {
    const { nodes } = parts;
    super(
      scope,
      id,
      `Tidegraph ${settings.version}: the processes of a graph, with ${nodes} nodes`,
      parts.assets,
    );
    const { NodeType, Partitions } = this.parameters("Service", {
      ...OF_SERVICE,
      NodeType: { ...OF_SERVICE.NodeType, default: settings.nodeType },
      Partitions: { ...OF_SERVICE.Partitions, default: String(settings.partitions) },
    });
    new GraphService(this, "Service", {
      state: parts.state,
      bundle: settings.bundle,
      partitions: Partitions.valueAsNumber,
      replication: settings.replication,
      nodes: { count: nodes, instanceType: NodeType.valueAsString, sessionManager: settings.sessionManager },
      query: settings.query,
      rebalance: { patience: Duration.seconds(settings.patience) },
      workers: this.workers(settings.workers),
      apiGatewayAccountRole: settings.apiGatewayRole,
      ...(settings.backup && { backup: {} }),
      ...(settings.encryption && { encryption: {} }),
    });
    this.describeOthers();
  }

  private workers(given: Settings["workers"]): WorkersProps | false {
    if (given === false) return false;
    const { count, most } = given;
    const { WorkerCount } = this.parameters("Workers", {
      WorkerCount: { ...WORKER_COUNT, default: count, maxValue: most },
    });
    return { ...given, count: WorkerCount.valueAsNumber };
  }
}

/** What the service needs besides its settings. */
export interface Parts {
  /** Number of nodes. */
  readonly nodes: number;
  readonly state: GraphState;
  readonly assets: Assets;
}
