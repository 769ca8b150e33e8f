//! Values as JSON: `plain` writes them as Neptune's openCypher endpoint does, `graphson` as TinkerPop's GraphSON, and
//! `input` reads the parameters of requests.

pub mod input;
pub mod plain;
