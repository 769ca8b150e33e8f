//! Values as JSON: `plain` as Neptune's openCypher endpoint writes them, `graphson` as TinkerPop's GraphSON, and
//! `input` for parameters that clients send.

pub mod graphson;
pub mod input;
pub mod plain;
