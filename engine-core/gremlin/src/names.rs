//! The words of gremlin-lang: which steps, enum constants and predicates there are.
//!
//! A step that stands in [`STEPS`] and that the compiler does not know is answered as "not supported yet"; one that does
//! not stand here is no step at all.

/// Every step of TinkerPop 3.7 and 3.8, sorted.
const STEPS: &[&str] = &[
    "E",
    "V",
    "addE",
    "addV",
    "aggregate",
    "all",
    "and",
    "any",
    "as",
    "asBool",
    "asDate",
    "asNumber",
    "asString",
    "barrier",
    "both",
    "bothE",
    "bothV",
    "branch",
    "by",
    "call",
    "cap",
    "choose",
    "coalesce",
    "coin",
    "combine",
    "concat",
    "conjoin",
    "connectedComponent",
    "constant",
    "count",
    "cyclicPath",
    "dateAdd",
    "dateDiff",
    "dedup",
    "difference",
    "discard",
    "disjunct",
    "drop",
    "element",
    "elementMap",
    "emit",
    "fail",
    "filter",
    "flatMap",
    "fold",
    "format",
    "from",
    "group",
    "groupCount",
    "has",
    "hasId",
    "hasKey",
    "hasLabel",
    "hasNot",
    "hasValue",
    "id",
    "identity",
    "in",
    "inE",
    "inV",
    "index",
    "inject",
    "intersect",
    "is",
    "key",
    "lTrim",
    "label",
    "length",
    "limit",
    "local",
    "loops",
    "map",
    "match",
    "math",
    "max",
    "mean",
    "merge",
    "mergeE",
    "mergeV",
    "min",
    "none",
    "not",
    "option",
    "optional",
    "or",
    "order",
    "otherV",
    "out",
    "outE",
    "outV",
    "pageRank",
    "path",
    "peerPressure",
    "product",
    "profile",
    "project",
    "properties",
    "property",
    "propertyMap",
    "rTrim",
    "range",
    "read",
    "repeat",
    "replace",
    "reverse",
    "sack",
    "sample",
    "select",
    "shortestPath",
    "sideEffect",
    "simplePath",
    "skip",
    "split",
    "store",
    "subgraph",
    "substring",
    "sum",
    "tail",
    "timeLimit",
    "times",
    "to",
    "toE",
    "toLower",
    "toUpper",
    "toV",
    "tree",
    "trim",
    "unfold",
    "union",
    "until",
    "value",
    "valueMap",
    "values",
    "where",
    "with",
    "write",
];

/// Steps that may follow `g` directly.
const SPAWNING: &[&str] = &["E", "V", "addE", "addV", "call", "inject", "io", "mergeE", "mergeV", "union"];

/// Calls on `g` that configure the source.
const CONFIGURING: &[&str] =
    &["with", "withBulk", "withPath", "withSack", "withSideEffect", "withStrategies", "withoutStrategies"];

/// Calls that end a traversal.
const TERMINAL: &[&str] =
    &["explain", "hasNext", "iterate", "next", "toBulkSet", "toList", "toSet", "toString", "tryNext"];

/// Enums whose constants may be written with the enum's name before them.
const ENUMS: &[&str] = &[
    "Barrier",
    "Cardinality",
    "Column",
    "DT",
    "Direction",
    "GType",
    "IO",
    "Merge",
    "Operator",
    "Order",
    "PageRank",
    "ConnectedComponent",
    "PeerPressure",
    "Pick",
    "Pop",
    "Scope",
    "ShortestPath",
    "T",
    "VertexProperty",
    "WithOptions",
];

/// Constants that may be written without their enum. No request can bind a variable of such a name.
const CONSTANTS: &[&str] = &[
    "BOTH",
    "IN",
    "OUT",
    "addAll",
    "all",
    "and",
    "any",
    "asc",
    "assign",
    "day",
    "decr",
    "desc",
    "div",
    "first",
    "from",
    "global",
    "hour",
    "id",
    "inV",
    "incr",
    "key",
    "keys",
    "label",
    "last",
    "list",
    "local",
    "max",
    "min",
    "minus",
    "minute",
    "mixed",
    "mult",
    "none",
    "normSack",
    "onCreate",
    "onMatch",
    "or",
    "outV",
    "second",
    "set",
    "shuffle",
    "single",
    "sum",
    "sumLong",
    "to",
    "unproductive",
    "value",
    "values",
];

/// Predicates with how many operands they take (`None`: any number).
const PREDICATES: &[(&str, Option<usize>)] = &[
    ("between", Some(2)),
    ("containing", Some(1)),
    ("endingWith", Some(1)),
    ("eq", Some(1)),
    ("gt", Some(1)),
    ("gte", Some(1)),
    ("inside", Some(2)),
    ("lt", Some(1)),
    ("lte", Some(1)),
    ("neq", Some(1)),
    ("notContaining", Some(1)),
    ("notEndingWith", Some(1)),
    ("notRegex", Some(1)),
    ("notStartingWith", Some(1)),
    ("outside", Some(2)),
    ("regex", Some(1)),
    ("startingWith", Some(1)),
    ("typeOf", Some(1)),
    ("within", None),
    ("without", None),
];

pub(crate) fn is_step(name: &str) -> bool {
    STEPS.binary_search(&name).is_ok()
}

pub(crate) fn is_spawning(name: &str) -> bool {
    SPAWNING.contains(&name)
}

pub(crate) fn is_configuring(name: &str) -> bool {
    CONFIGURING.contains(&name)
}

pub(crate) fn is_terminal(name: &str) -> bool {
    TERMINAL.contains(&name)
}

pub(crate) fn is_enum(name: &str) -> bool {
    ENUMS.contains(&name)
}

pub(crate) fn is_constant(name: &str) -> bool {
    CONSTANTS.binary_search(&name).is_ok()
}

/// How many operands a predicate takes; `None`: it is no predicate.
pub(crate) fn predicate(name: &str) -> Option<Option<usize>> {
    PREDICATES.binary_search_by_key(&name, |(n, _)| n).ok().map(|i| PREDICATES[i].1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_sorted() {
        assert!(STEPS.is_sorted());
        assert!(CONSTANTS.is_sorted());
        assert!(PREDICATES.is_sorted_by_key(|(name, _)| name));
    }
}
