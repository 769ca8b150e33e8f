/**
 * The table of the partition map. Its keys, index and name are those that `engine-core/cluster` expects
 * (`docs/partition-map.md`). The daemons derive its name from a prefix.
 */
import { RemovalPolicy } from "aws-cdk-lib";
import * as dynamodb from "aws-cdk-lib/aws-dynamodb";
import type * as iam from "aws-cdk-lib/aws-iam";
import type { IKey } from "aws-cdk-lib/aws-kms";
import { Construct } from "constructs";
import { statement } from "../statement.ts";
import type { IMapTable } from "./graph-state.ts";

/** Name of the index over epochs. */
const BY_EPOCH = "by-epoch";

/** The table, and the permissions to use it. */
export abstract class MapBase extends Construct implements IMapTable {
  abstract readonly table: dynamodb.ITable;
  abstract readonly prefix: string;

  /** Returns the permissions to read the maps of graphs. */
  reads(...graphs: string[]): iam.PolicyStatement[] {
    return [
      statement("ReadMap", ["dynamodb:GetItem", "dynamodb:Query"], [this.table.tableArn], of(graphs)),
      statement(
        "ReadNewerItems",
        ["dynamodb:Query"],
        [`${this.table.tableArn}/index/${BY_EPOCH}`],
        of(graphs),
      ),
    ];
  }

  /**
   * Returns the permissions to read and change the maps of graphs. A transaction needs the permissions of its single operations.
   */
  changes(...graphs: string[]): iam.PolicyStatement[] {
    const change = ["dynamodb:PutItem", "dynamodb:UpdateItem"];
    return [...this.reads(...graphs), statement("ChangeMap", change, [this.table.tableArn], of(graphs))];
  }
}

export class MapTable extends MapBase {
  readonly table: dynamodb.Table;
  /** The value of `--table-prefix`. */
  readonly prefix: string;

  constructor(
    scope: Construct,
    id: string,
    props: { readonly prefix: string; readonly key: IKey; readonly deletionProtection: boolean },
  ) {
    super(scope, id);
    this.prefix = props.prefix;
    this.table = new dynamodb.Table(this, "Table", {
      tableName: `${props.prefix}map`,
      partitionKey: { name: "graph", type: dynamodb.AttributeType.STRING },
      sortKey: { name: "item", type: dynamodb.AttributeType.STRING },
      billingMode: dynamodb.BillingMode.PAY_PER_REQUEST,
      encryption: dynamodb.TableEncryption.CUSTOMER_MANAGED,
      encryptionKey: props.key,
      pointInTimeRecoverySpecification: { pointInTimeRecoveryEnabled: true },
      deletionProtection: props.deletionProtection,
      removalPolicy: RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE,
    });
    this.table.addLocalSecondaryIndex({
      indexName: BY_EPOCH,
      sortKey: { name: "changedAt", type: dynamodb.AttributeType.NUMBER },
      projectionType: dynamodb.ProjectionType.ALL,
    });
  }
}

/** Restricts a statement to the items of graphs, whose names are the hash keys. */
function of(graphs: string[]): Record<string, Record<string, string[]>> {
  return { "ForAllValues:StringEquals": { "dynamodb:LeadingKeys": graphs } };
}
