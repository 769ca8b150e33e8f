//! The query service and the command line: the embedded database behind an HTTP API shaped like Neptune's, behind Gremlin
//! Server's protocol over WebSocket, and behind Bolt.
//!
//! Roles: [`authentication`] says who asks; [`audit`] records it; [`admission`] decides which queries run and when;
//! [`http`] is the service; [`websocket`] are the sessions of Gremlin's drivers and [`bolt`] those of Neo4j's; [`session`] is what both share; [`server`] holds the connections of
//! all; [`json`] reads and writes values; [`metrics`] records what happens; [`cli`] holds the commands of the `tidegraph` binary; `lambda` is the worker as
//! a Lambda function; [`allocator`] sets options of the allocator. Queries run in `tidegraph-engine`.

pub mod admission;
pub mod allocator;
pub mod audit;
pub mod authentication;
pub mod bolt;
pub mod cli;
pub mod http;
pub mod json;
#[cfg(feature = "lambda")]
pub mod lambda;
pub mod metrics;
pub mod server;
pub mod session;
pub mod websocket;
