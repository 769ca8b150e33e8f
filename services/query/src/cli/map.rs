//! Flags that say which graph is meant, and where its map is.

use clap::Args;
use tidegraph_fleet::access::Table;

/// Where the map is.
#[derive(Args, Debug)]
pub struct MapArgs {
    /// Name of the graph.
    #[arg(long, env = "TIDEGRAPH_GRAPH", default_value = "default")]
    pub graph: String,
    /// What the name of the table of maps begins with.
    #[arg(long, env = "TIDEGRAPH_TABLE_PREFIX", default_value = "tidegraph-")]
    table_prefix: String,
    /// Another endpoint than the region's, such as DynamoDB Local's.
    #[arg(long, env = "TIDEGRAPH_DYNAMODB_ENDPOINT")]
    dynamodb_endpoint: Option<String>,
    /// The endpoint is DynamoDB Local, which takes any credentials.
    #[arg(long, env = "TIDEGRAPH_DYNAMODB_LOCAL", requires = "dynamodb_endpoint")]
    dynamodb_local: bool,
}

impl MapArgs {
    /// The table of maps.
    pub fn table(&self) -> Table {
        Table {
            prefix: self.table_prefix.clone(),
            endpoint: self.dynamodb_endpoint.clone(),
            local: self.dynamodb_local,
            region_of_environment: None,
        }
    }
}
