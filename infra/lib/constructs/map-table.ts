/**
 * The table of the partition map: keys, index and name are those that `engine-core/cluster` asks for (`docs/partition-map.md`). Its name is fixed,
 * since the daemons make it from a prefix.
 */
import { RemovalPolicy } from "aws-cdk-lib";
import * as dynamodb from "aws-cdk-lib/aws-dynamodb";
import type * as iam from "aws-cdk-lib/aws-iam";
import type { IKey } from "aws-cdk-lib/aws-kms";
import { Construct } from "constructs";
import { statement } from "../statement.ts";

/** Name of the index over epochs. */
const BY_EPOCH = "by-epoch";

export class MapTable extends Construct {
  readonly table: dynamodb.Table;
  /** What `--table-prefix` says. */
  readonly prefix: string;

  constructor(scope: Construct, id: string, props: { readonly prefix: string; readonly key: IKey }) {
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
      deletionProtection: true,
      removalPolicy: RemovalPolicy.RETAIN,
    });
    this.table.addLocalSecondaryIndex({
      indexName: BY_EPOCH,
      sortKey: { name: "changedAt", type: dynamodb.AttributeType.NUMBER },
      projectionType: dynamodb.ProjectionType.ALL,
    });
  }

  /** What those need who read the map of one graph. */
  reads(graph: string): iam.PolicyStatement[] {
    return [
      statement("ReadMap", ["dynamodb:GetItem", "dynamodb:Query"], [this.table.tableArn], of(graph)),
      statement(
        "ReadNewerItems",
        ["dynamodb:Query"],
        [`${this.table.tableArn}/index/${BY_EPOCH}`],
        of(graph),
      ),
    ];
  }

  /** What those need who change it too: transactions are put together of these. */
  changes(graph: string): iam.PolicyStatement[] {
    const change = ["dynamodb:PutItem", "dynamodb:UpdateItem"];
    return [...this.reads(graph), statement("ChangeMap", change, [this.table.tableArn], of(graph))];
  }
}

/** Only items of one graph: its name is the hash key. */
function of(graph: string): Record<string, Record<string, string[]>> {
  return { "ForAllValues:StringEquals": { "dynamodb:LeadingKeys": [graph] } };
}
