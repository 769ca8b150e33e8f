//! Elements of a file that holds a graph (GraphSON, GraphML), before they are part of one.
//!
//! The reader of the file makes them, and the executor writes them: so neither knows the other. Names and ids are as the
//! file has them.

use crate::{Str, Value};
use std::fmt;

/// A format of files that hold a graph.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum GraphFormat {
    /// JSON, one line for each vertex with its edges, in the versions 1 (without types), 2 and 3.
    GraphSon,
    /// XML.
    GraphMl,
}

/// Why the name of a file tells no format that is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NoFormat {
    /// Gryo, which is made of Java's classes.
    Gryo,
    /// The name has another ending.
    Unknown,
}

impl GraphFormat {
    /// Returns the format that the end of a file's name tells, with or without that of its compression.
    ///
    /// # Errors
    ///
    /// [`NoFormat`].
    ///
    /// ```
    /// use tidegraph_types::{GraphFormat, NoFormat};
    ///
    /// assert_eq!(GraphFormat::of_file("/data/modern.json.gz"), Ok(GraphFormat::GraphSon));
    /// assert_eq!(GraphFormat::of_file("modern.kryo"), Err(NoFormat::Gryo));
    /// ```
    pub fn of_file(name: &str) -> Result<Self, NoFormat> {
        let name = name.to_ascii_lowercase();
        let name = name.strip_suffix(".gz").or_else(|| name.strip_suffix(".bz2")).unwrap_or(&name);
        match name.rsplit_once('.').map(|(_, end)| end) {
            Some("json") => Ok(Self::GraphSon),
            Some("xml") => Ok(Self::GraphMl),
            Some("kryo") => Err(NoFormat::Gryo),
            _ => Err(NoFormat::Unknown),
        }
    }

    /// Returns the format that TinkerPop gives this name.
    ///
    /// # Errors
    ///
    /// [`NoFormat`].
    pub fn of_name(name: &str) -> Result<Self, NoFormat> {
        match name {
            "graphson" => Ok(Self::GraphSon),
            "graphml" => Ok(Self::GraphMl),
            "gryo" => Err(NoFormat::Gryo),
            _ => Err(NoFormat::Unknown),
        }
    }
}

impl fmt::Display for GraphFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::GraphSon => "graphson",
            Self::GraphMl => "graphml",
        })
    }
}

/// Which elements of a file are read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Elements {
    /// The vertices.
    Vertices,
    /// The edges.
    Edges,
}

/// An element of a file.
#[derive(Clone, PartialEq, Debug)]
pub struct FileElement {
    /// Line on which the file has it, from 1.
    pub line: u64,
    /// Its id, if the file gives one.
    pub id: Option<Value>,
    /// Its label, if the file gives one.
    pub label: Option<Str>,
    /// The ids of source and target; `None` for a vertex.
    pub ends: Option<(Value, Value)>,
    /// Its properties, in the order of the file. A key may come several times for a vertex.
    pub properties: Vec<FileProperty>,
}

/// A property of an element of a file.
#[derive(Clone, PartialEq, Debug)]
pub struct FileProperty {
    /// Property key.
    pub key: Str,
    /// The value.
    pub value: Value,
    /// Keys and values of its own properties; empty for an edge.
    pub meta: Vec<(Str, Value)>,
}
