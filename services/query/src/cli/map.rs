//! Flags that name a graph and the table with its partition map.

use clap::Args;
use tidegraph_fleet::access::Table;

/// Flags that name a graph and the table with its partition map.
#[derive(Args, Debug)]
pub struct MapArgs {
    /// Name of the graph.
    #[arg(long, env = "TIDEGRAPH_GRAPH", default_value = "default")]
    pub graph: String,
    #[command(flatten)]
    table: TableArgs,
}

/// Flags that name the table with the partition maps.
#[derive(Args, Debug)]
pub struct TableArgs {
    /// Prefix of the name of the DynamoDB table with the partition maps.
    #[arg(long, env = "TIDEGRAPH_TABLE_PREFIX", default_value = "tidegraph-")]
    table_prefix: String,
    /// Endpoint of DynamoDB, such as that of DynamoDB Local. Without it: the endpoint of the AWS region.
    #[arg(long, env = "TIDEGRAPH_DYNAMODB_ENDPOINT")]
    dynamodb_endpoint: Option<String>,
    /// The endpoint is DynamoDB Local, which accepts any credentials.
    #[arg(long, env = "TIDEGRAPH_DYNAMODB_LOCAL", requires = "dynamodb_endpoint")]
    dynamodb_local: bool,
}

impl MapArgs {
    /// Returns where the partition map is.
    pub fn table(&self) -> Table {
        self.table.table()
    }
}

impl TableArgs {
    /// Returns where the partition maps are.
    pub fn table(&self) -> Table {
        Table {
            prefix: self.table_prefix.clone(),
            endpoint: self.dynamodb_endpoint.clone(),
            local: self.dynamodb_local,
            region_of_environment: None,
        }
    }
}
