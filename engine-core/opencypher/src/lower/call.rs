//! Functions: openCypher's names and argument counts to the plan's functions.

use super::expression::{expect, not};
use super::types::Types;
use super::{Lowering, Typed, aggregate};
use crate::ast::{Expr as Tree, ExprKind};
use crate::fault::{Fault, Result};
use tidegraph_plan::{Arithmetic, Between, Expr, Function, TemporalType};
use tidegraph_types::{Map, Str, Value};

/// The signature of a function.
struct Signature {
    function: Function,
    /// Minimum and maximum number of arguments.
    arguments: (usize, usize),
    /// Types that its first argument may have.
    accepts: Types,
    gives: Types,
}

const MANY: usize = usize::MAX;

/// Functions of openCypher and its dialects that are not supported yet.
const UNSUPPORTED: &[&str] = &["apoc", "extract", "filter", "vector"];

/// The functions that are listed to clients, with their categories.
pub(crate) const LISTED: &[(&str, &[&str])] = &[
    (
        "Aggregating",
        &[
            "avg",
            "collect",
            "count",
            "max",
            "min",
            "percentileCont",
            "percentileDisc",
            "stDev",
            "stDevP",
            "sum",
        ],
    ),
    ("Predicate", &["all", "any", "exists", "isEmpty", "none", "single"]),
    (
        "Scalar",
        &[
            "char_length",
            "character_length",
            "coalesce",
            "elementId",
            "endNode",
            "head",
            "id",
            "last",
            "length",
            "nullIf",
            "properties",
            "randomUUID",
            "size",
            "startNode",
            "timestamp",
            "toBoolean",
            "toBooleanOrNull",
            "toFloat",
            "toFloatOrNull",
            "toInteger",
            "toIntegerOrNull",
            "type",
            "valueType",
        ],
    ),
    (
        "List",
        &[
            "keys",
            "labels",
            "nodes",
            "range",
            "reduce",
            "relationships",
            "reverse",
            "tail",
            "toBooleanList",
            "toFloatList",
            "toIntegerList",
            "toStringList",
        ],
    ),
    (
        "String",
        &[
            "btrim",
            "left",
            "lower",
            "ltrim",
            "normalize",
            "replace",
            "right",
            "rtrim",
            "split",
            "substring",
            "toLower",
            "toString",
            "toStringOrNull",
            "toUpper",
            "trim",
            "upper",
        ],
    ),
    ("Numeric", &["abs", "ceil", "floor", "isNaN", "rand", "round", "sign"]),
    ("Logarithmic", &["e", "exp", "log", "log10", "sqrt"]),
    (
        "Trigonometric",
        &[
            "acos", "asin", "atan", "atan2", "cos", "cosh", "cot", "coth", "degrees", "haversin", "pi",
            "radians", "sin", "sinh", "tan", "tanh",
        ],
    ),
    (
        "Temporal",
        &[
            "date",
            "date.truncate",
            "datetime",
            "datetime.fromEpoch",
            "datetime.fromEpochMillis",
            "datetime.truncate",
            "day",
            "duration",
            "duration.between",
            "duration.inDays",
            "duration.inMonths",
            "duration.inSeconds",
            "epochmillis",
            "localdatetime",
            "localdatetime.truncate",
            "localtime",
            "localtime.truncate",
            "month",
            "time",
            "time.truncate",
            "year",
        ],
    ),
    ("Load CSV", &["file", "linenumber"]),
    ("Spatial", &["point", "point.distance", "point.withinBBox"]),
    (
        "Neptune",
        &[
            "collIntersection",
            "collSort",
            "collSortMaps",
            "collSortMulti",
            "collSortNodes",
            "collSubtract",
            "collToSet",
            "join",
            "removeKeyFromMap",
            "textIndexOf",
        ],
    ),
];

#[rustfmt::skip]
fn signature(name: &str) -> Option<Signature> {
    use Function as F;
    use Types as T;
    let text = T::STRING;
    let (function, arguments, accepts, gives) = match name {
        "id" | "elementid" => (F::Id, (1, 1), T::ELEMENT, T::STRING),
        "labels" => (F::Labels, (1, 1), T::NODE, T::LIST),
        "type" => (F::Type, (1, 1), T::EDGE, T::STRING),
        "keys" => (F::Keys, (1, 1), T::ELEMENT | T::MAP, T::LIST),
        "properties" => (F::PropertyMap, (1, 1), T::ELEMENT | T::MAP, T::MAP),
        "startnode" => (F::StartNode, (1, 1), T::EDGE, T::NODE),
        "endnode" => (F::EndNode, (1, 1), T::EDGE, T::NODE),
        "nodes" => (F::Nodes, (1, 1), T::PATH, T::LIST),
        "relationships" => (F::Relationships, (1, 1), T::PATH, T::LIST),
        "length" => (F::Length, (1, 1), T::PATH, T::INTEGER),
        "coalesce" => (F::Coalesce, (1, MANY), T::ANY, T::ANY),
        "size" => (F::Size, (1, 1), T::LIST | T::STRING, T::INTEGER),
        "head" => (F::Head, (1, 1), T::LIST, T::ANY),
        "last" => (F::Last, (1, 1), T::LIST, T::ANY),
        "tail" => (F::ListTail, (1, 1), T::LIST, T::LIST),
        "reverse" => (F::Reverse, (1, 1), T::LIST | T::STRING, T::LIST | T::STRING),
        "range" => (F::Range, (2, 3), T::INTEGER, T::LIST),
        "tointeger" | "toint" => (F::ToInteger, (1, 1), T::ANY, T::INTEGER),
        "tofloat" => (F::ToFloat, (1, 1), T::ANY, T::FLOAT),
        "tostring" => (F::ToText, (1, 1), T::ANY, text),
        "toboolean" => (F::ToBoolean, (1, 1), T::ANY, T::BOOL),
        "abs" => (F::Abs, (1, 1), T::NUMBER, T::NUMBER),
        "ceil" => (F::Ceil, (1, 1), T::NUMBER, T::FLOAT),
        "floor" => (F::Floor, (1, 1), T::NUMBER, T::FLOAT),
        "round" => (F::Round, (1, 3), T::NUMBER, T::FLOAT),
        "sign" => (F::Sign, (1, 1), T::NUMBER, T::INTEGER),
        "sqrt" => (F::Sqrt, (1, 1), T::NUMBER, T::FLOAT),
        "exp" => (F::Exp, (1, 1), T::NUMBER, T::FLOAT),
        "log" => (F::Log, (1, 1), T::NUMBER, T::FLOAT),
        "log10" => (F::Log10, (1, 1), T::NUMBER, T::FLOAT),
        "sin" => (F::Sin, (1, 1), T::NUMBER, T::FLOAT),
        "cos" => (F::Cos, (1, 1), T::NUMBER, T::FLOAT),
        "tan" => (F::Tan, (1, 1), T::NUMBER, T::FLOAT),
        "asin" => (F::Asin, (1, 1), T::NUMBER, T::FLOAT),
        "acos" => (F::Acos, (1, 1), T::NUMBER, T::FLOAT),
        "atan" => (F::Atan, (1, 1), T::NUMBER, T::FLOAT),
        "atan2" => (F::Atan2, (2, 2), T::NUMBER, T::FLOAT),
        // Made of several functions below.
        "cot" => (F::Tan, (1, 1), T::NUMBER, T::FLOAT),
        "haversin" => (F::Cos, (1, 1), T::NUMBER, T::FLOAT),
        "degrees" => (F::Degrees, (1, 1), T::NUMBER, T::FLOAT),
        "radians" => (F::Radians, (1, 1), T::NUMBER, T::FLOAT),
        "pi" => (F::Pi, (0, 0), T::ANY, T::FLOAT),
        "e" => (F::Euler, (0, 0), T::ANY, T::FLOAT),
        "rand" => (F::Rand, (0, 0), T::ANY, T::FLOAT),
        "substring" => (F::Substring, (2, 3), text, text),
        "left" => (F::Left, (2, 2), text, text),
        "right" => (F::Right, (2, 2), text, text),
        "trim" | "btrim" => (F::Trim, (1, 2), text, text),
        "ltrim" => (F::LTrim, (1, 2), text, text),
        "rtrim" => (F::RTrim, (1, 2), text, text),
        "normalize" => (F::Normalize, (1, 2), text, text),
        "isempty" => (F::IsEmpty, (1, 1), T::LIST | T::MAP | T::STRING, T::BOOL),
        "isnan" => (F::IsNaN, (1, 1), T::NUMBER, T::BOOL),
        "tointegerornull" => (F::ToIntegerOrNull, (1, 1), T::ANY, T::INTEGER),
        "tofloatornull" => (F::ToFloatOrNull, (1, 1), T::ANY, T::FLOAT),
        "tostringornull" => (F::ToTextOrNull, (1, 1), T::ANY, text),
        "tobooleanornull" => (F::ToBooleanOrNull, (1, 1), T::ANY, T::BOOL),
        "tointegerlist" => (F::ToIntegerList, (1, 1), T::LIST, T::LIST),
        "tofloatlist" => (F::ToFloatList, (1, 1), T::LIST, T::LIST),
        "tostringlist" => (F::ToTextList, (1, 1), T::LIST, T::LIST),
        "tobooleanlist" => (F::ToBooleanList, (1, 1), T::LIST, T::LIST),
        "nullif" => (F::NullIf, (2, 2), T::ANY, T::ANY),
        "valuetype" => (F::ValueType, (1, 1), T::ANY, text),
        "sinh" => (F::Sinh, (1, 1), T::NUMBER, T::FLOAT),
        "cosh" => (F::Cosh, (1, 1), T::NUMBER, T::FLOAT),
        "tanh" => (F::Tanh, (1, 1), T::NUMBER, T::FLOAT),
        "coth" => (F::Coth, (1, 1), T::NUMBER, T::FLOAT),
        "tolower" | "lower" => (F::ToLower, (1, 1), text, text),
        "toupper" | "upper" => (F::ToUpper, (1, 1), text, text),
        "replace" => (F::Replace, (3, 3), text, text),
        "split" => (F::Split, (2, 2), text, T::LIST),
        "timestamp" => (F::Timestamp, (0, 0), T::ANY, T::INTEGER),
        "distance" | "point.distance" => (F::Distance, (2, 2), T::POINT, T::FLOAT),
        "point" => (F::Point, (1, 1), T::MAP, T::POINT),
        "point.withinbbox" => (F::WithinBox, (3, 3), T::POINT, T::BOOL),
        "datetime.fromepoch" => (F::FromEpoch, (2, 2), T::NUMBER, T::TIME),
        "datetime.fromepochmillis" => (F::FromEpochMillis, (1, 1), T::NUMBER, T::TIME),
        "duration" => (F::Temporal(TemporalType::Duration), (1, 1), T::STRING | T::MAP | T::TIME, T::TIME),
        "duration.between" => (F::Between(Between::Parts), (2, 2), T::TIME, T::TIME),
        "duration.inmonths" => (F::Between(Between::Months), (2, 2), T::TIME, T::TIME),
        "duration.indays" => (F::Between(Between::Days), (2, 2), T::TIME, T::TIME),
        "duration.inseconds" => (F::Between(Between::Seconds), (2, 2), T::TIME, T::TIME),
        "randomuuid" => (F::RandomUuid, (0, 0), T::ANY, text),
        "char_length" | "character_length" => (F::Size, (1, 1), text, T::INTEGER),
        // Neptune's own.
        "epochmillis" => (F::EpochMillis, (1, 1), T::TIME, T::INTEGER),
        "year" => (F::Year, (1, 1), T::TIME, T::INTEGER),
        "month" => (F::Month, (1, 1), T::TIME, T::INTEGER),
        "day" => (F::Day, (1, 1), T::TIME, T::INTEGER),
        "join" => (F::Join, (2, 2), T::LIST, text),
        "textindexof" => (F::TextIndexOf, (2, 4), text, T::INTEGER),
        "removekeyfrommap" => (F::RemoveKey, (2, 2), T::MAP, T::MAP),
        "colltoset" => (F::ToSet, (1, 1), T::LIST, T::LIST),
        "collsubtract" => (F::Subtract, (2, 2), T::LIST, T::LIST),
        "collintersection" => (F::Intersect, (2, 2), T::LIST, T::LIST),
        "collsort" => (F::SortBy, (1, 2), T::LIST, T::LIST),
        "collsortmaps" | "collsortnodes" => (F::SortBy, (2, 2), T::LIST, T::LIST),
        "collsortmulti" => (F::SortBy, (1, 4), T::LIST, T::LIST),
        _ => return temporal(name),
    };
    Some(Signature { function, arguments, accepts, gives })
}

/// Returns the signature of a temporal type's constructor, clock or truncation: `date`, `time.statement`,
/// `datetime.truncate`.
fn temporal(name: &str) -> Option<Signature> {
    let (kind, member) = match name.split_once('.') {
        Some((kind, member)) => (kind, Some(member)),
        None => (name, None),
    };
    let kind = match kind {
        "date" => TemporalType::Date,
        "localtime" => TemporalType::LocalTime,
        "time" => TemporalType::Time,
        "localdatetime" => TemporalType::LocalDateTime,
        "datetime" => TemporalType::DateTime,
        _ => return None,
    };
    let texts = Types::STRING | Types::MAP | Types::TIME;
    let (function, arguments, accepts) = match member {
        None if kind == TemporalType::DateTime => (Function::Temporal(kind), (0, 1), texts | Types::NUMBER),
        None => (Function::Temporal(kind), (0, 1), texts),
        // The time of a request is one time: the clock is read once.
        Some("transaction" | "statement" | "realtime") => (Function::Now(kind), (0, 1), Types::STRING),
        Some("truncate") => (Function::Truncate(kind), (1, 3), Types::STRING),
        Some(_) => return None,
    };
    Some(Signature { function, arguments, accepts, gives: Types::TIME })
}

impl<'a> Lowering<'a> {
    /// Lowers a call of a function that does not aggregate.
    pub(super) fn call(
        &mut self,
        tree: &'a Tree,
        name: &'a Str,
        distinct: bool,
        args: &'a [Tree],
    ) -> Result<Typed> {
        if aggregate::kind(name).is_some() {
            return Err(aggregate::not_allowed(tree));
        }
        let lower = name.to_ascii_lowercase();
        if lower == "exists" {
            return self.exists_call(tree, args);
        }
        if let Some(value) = self.of_record(&lower) {
            if !args.is_empty() {
                return Err(wrong_arguments(tree, name, args.len(), "0"));
            }
            return Ok(value);
        }
        let Some(signature) = signature(&lower) else {
            let family = lower.split('.').next().unwrap_or_default();
            return Err(if UNSUPPORTED.contains(&family) || signature(family).is_some() && family != lower {
                Fault::unsupported(tree.place.0, format!("{name}()"))
            } else {
                Fault::syntax(tree.place.0, format!("unknown function: {name}"))
            });
        };
        if distinct {
            let message = format!("DISTINCT in {name}(), expected an aggregating function");
            return Err(Fault::syntax(tree.place.0, message));
        }
        let (fewest, most) = signature.arguments;
        if !(fewest..=most).contains(&args.len()) {
            let expected = match most {
                MANY => format!("at least {fewest}"),
                _ if most == fewest => most.to_string(),
                _ => format!("{fewest} to {most}"),
            };
            return Err(wrong_arguments(tree, name, args.len(), &expected));
        }
        let mut values = Vec::with_capacity(args.len());
        for (i, arg) in args.iter().enumerate() {
            let value = self.expr(arg)?;
            if i == 0 {
                expect(&value, signature.accepts, arg, &format!("{name}()"))?;
            }
            values.push(value.expr);
        }
        let call = match signature.function {
            Function::Temporal(kind) if values.is_empty() => Expr::Call(Function::Now(kind), values),
            Function::Normalize if values.len() == 1 => {
                values.push(Expr::literal("NFC"));
                Expr::Call(signature.function, values)
            }
            Function::TextIndexOf => {
                values.extend([0_i64, -1].into_iter().skip(values.len() - 2).map(Expr::literal));
                Expr::Call(signature.function, values)
            }
            Function::SortBy => return Ok(Typed::new(self.sort_of_list(&lower, values), signature.gives)),
            _ => Expr::Call(signature.function, values),
        };
        let expr = match &*lower {
            "cot" => arithmetic(Arithmetic::Divide, Expr::literal(1.0), call),
            "haversin" => {
                let difference = arithmetic(Arithmetic::Subtract, Expr::literal(1.0), call);
                arithmetic(Arithmetic::Divide, difference, Expr::literal(2.0))
            }
            _ => call,
        };
        Ok(Typed::new(expr, signature.gives))
    }

    /// Lowers one of Neptune's functions that sort a list, as `name` says: `collSort(list, order)`, `collSortMaps(list,
    /// order)`, `collSortNodes(list, order)`, `collSortMulti(list, orders, limit, skip)`. An order is a map with the
    /// entries `key` and `order`.
    fn sort_of_list(&mut self, name: &str, args: Vec<Expr>) -> Expr {
        let mut args = args.into_iter();
        let list = args.next().unwrap_or_else(null);
        let second = args.next();
        let orders = match (name, second) {
            ("collsortmulti", Some(orders)) => orders,
            ("collsortmulti", None) => Expr::List(vec![]),
            (_, Some(order)) => {
                let none = Expr::Literal(Value::map(Map::new()));
                Expr::List(vec![Expr::Call(Function::Coalesce, vec![order, none])])
            }
            (_, None) => Expr::List(vec![Expr::Literal(Value::map(Map::new()))]),
        };
        let limit = args.next().unwrap_or_else(|| Expr::literal(-1_i64));
        let skip = args.next().unwrap_or_else(|| Expr::literal(0_i64));
        let (sorted, orders_slot, item, order) = (self.slot(), self.slot(), self.slot(), self.slot());
        let each = |variable, list, map| Expr::Comprehension {
            variable,
            list: Box::new(Expr::Slot(list)),
            filter: None,
            map: Some(Box::new(map)),
        };
        let keys = if name == "collsort" {
            Expr::List(vec![Expr::Slot(item)])
        } else {
            let key = Expr::Property(Box::new(Expr::Slot(order)), Str::new_static("key"));
            each(order, orders_slot, Expr::Index(Box::new(Expr::Slot(item)), Box::new(key)))
        };
        let keys = each(item, sorted, keys);
        let args = vec![Expr::Slot(sorted), keys, Expr::Slot(orders_slot), skip, limit];
        // The list and the orders are named twice, but computed once.
        let sort = self.with_local(orders_slot, orders, Expr::Call(Function::SortBy, args));
        self.with_local(sorted, list, sort)
    }

    /// `exists(n.key)`, `exists((a)-->(b))`.
    fn exists_call(&mut self, tree: &'a Tree, args: &'a [Tree]) -> Result<Typed> {
        let [argument] = args else {
            return Err(wrong_arguments(tree, "exists", args.len(), "1"));
        };
        match &argument.kind {
            ExprKind::Pattern(path) if path.shortest.is_none() => {
                Ok(Typed::new(self.pattern_predicate(path)?, Types::BOOL))
            }
            ExprKind::Property(..) | ExprKind::Index(..) => {
                let value = self.value(argument)?;
                Ok(Typed::new(not(Expr::IsNull(Box::new(value))), Types::BOOL))
            }
            _ => Err(Fault::syntax(argument.place.0, "exists() takes a property or a pattern")),
        }
    }
}

fn arithmetic(operator: Arithmetic, left: Expr, right: Expr) -> Expr {
    Expr::Arithmetic(operator, Box::new(left), Box::new(right))
}

pub(super) fn wrong_arguments(tree: &Tree, name: &str, found: usize, expected: &str) -> Fault {
    let plural = if expected.ends_with('1') { "" } else { "s" };
    let message = format!(
        "{name}() has {found} argument{}, expected {expected} argument{plural}",
        if found == 1 { "" } else { "s" }
    );
    Fault::syntax(tree.place.0, message)
}

/// Returns the literal null.
pub(super) fn null() -> Expr {
    Expr::Literal(Value::Null)
}
