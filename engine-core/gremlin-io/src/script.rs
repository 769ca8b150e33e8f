//! Bytecode to gremlin-lang.
//!
//! A driver sends a traversal as steps with values. Here it becomes the text that a person would write, so that the
//! engine has one front end and its errors name places in a text that can be read. Values in which traversals of one
//! form differ (ids, operands, properties) become parameters: the engine keeps plans by their text.

use crate::argument::{Argument, Bytecode, ConstantOwner, Instruction, Predicate};
use indexmap::IndexMap;
use std::fmt::Write;
use std::time::Duration;
use tidegraph_types::{Big, Str, Value};

/// What a request asks for.
#[derive(Clone, PartialEq, Debug)]
pub enum Script {
    /// A traversal.
    Traversal {
        /// Its text.
        text: String,
        /// Values of the text's names.
        parameters: IndexMap<Str, Value>,
        /// What it asks of the server.
        options: Options,
    },
    /// `g.tx().commit()`
    Commit,
    /// `g.tx().rollback()`
    Rollback,
}

/// What a request or its traversal asks of the server.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Options {
    /// `evaluationTimeout`: the time limit.
    pub timeout: Option<Duration>,
    /// `batchSize`: most values of one message.
    pub batch: Option<usize>,
    /// `materializeProperties`: whether elements have their properties.
    pub properties: Option<bool>,
}

/// Why bytecode has no text.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ScriptError {
    /// A name that cannot be one in the text.
    #[error("{0:?} is not the name of a step, a predicate or a constant")]
    Name(Str),
    /// Code.
    #[error("code in a traversal (a lambda) is never evaluated")]
    Lambda,
    /// A part that gremlin-lang has no words for.
    #[error("not supported: {0}")]
    Unsupported(String),
    /// An option whose value does not fit.
    #[error("the option {name} must be {expected}, not {found}")]
    Option {
        /// Its name.
        name: &'static str,
        /// What fits.
        expected: &'static str,
        /// What was sent.
        found: String,
    },
}

/// Returns the name of a class without its package.
pub(crate) fn class_name(text: &str) -> Str {
    text.rsplit(['.', '$']).next().unwrap_or(text).into()
}

impl Options {
    /// Takes an option; does nothing if the name is not one of them.
    ///
    /// # Errors
    ///
    /// [`ScriptError::Option`].
    pub fn take(&mut self, name: &str, value: &Argument) -> Result<(), ScriptError> {
        let wrong = |name, expected| ScriptError::Option { name, expected, found: value.describe() };
        let int = || match value {
            Argument::Value(value) => value.as_i64(),
            _ => None,
        };
        match name {
            "evaluationTimeout" | "scriptEvaluationTimeout" => match int() {
                // 0 is no limit of the client's own.
                Some(0) => {}
                Some(ms @ 1..) => self.timeout = Some(Duration::from_millis(ms.cast_unsigned())),
                _ => return Err(wrong("evaluationTimeout", "a number of milliseconds")),
            },
            "batchSize" => match int().and_then(|size| usize::try_from(size).ok()) {
                Some(size @ 1..) => self.batch = Some(size),
                _ => return Err(wrong("batchSize", "a number from 1 on")),
            },
            "materializeProperties" => match value.as_text().map(Str::as_str) {
                Some("all") => self.properties = Some(true),
                Some("tokens") => self.properties = Some(false),
                _ => return Err(wrong("materializeProperties", "\"all\" or \"tokens\"")),
            },
            _ => {}
        }
        Ok(())
    }
}

impl Script {
    /// Translates bytecode.
    ///
    /// # Errors
    ///
    /// [`ScriptError`].
    pub fn of(bytecode: &Bytecode) -> Result<Self, ScriptError> {
        if let ([], [Instruction { name, arguments }]) = (&bytecode.steps[..], &bytecode.sources[..])
            && name == "tx"
        {
            let asked = arguments.first().and_then(Argument::as_text).map_or("", Str::as_str);
            return match asked {
                "commit" => Ok(Self::Commit),
                "rollback" => Ok(Self::Rollback),
                other => Err(ScriptError::Unsupported(format!("g.tx() with {other:?}"))),
            };
        }
        let mut writer = Writer { text: "g".to_owned(), ..Writer::default() };
        for source in &bytecode.sources {
            writer.source(source)?;
        }
        for step in &bytecode.steps {
            writer.step(step)?;
        }
        Ok(Self::Traversal { text: writer.text, parameters: writer.parameters, options: writer.options })
    }
}

#[derive(Default)]
struct Writer {
    text: String,
    parameters: IndexMap<Str, Value>,
    options: Options,
    /// Whether the operands of predicates are names, as in `where`.
    names_labels: bool,
}

impl Writer {
    fn push(&mut self, text: &str) {
        self.text.push_str(text);
    }

    /// Writes a name. Anything else than letters and digits would be more than a name in the text.
    fn word(&mut self, name: &str) -> Result<(), ScriptError> {
        let is_word = name.starts_with(|first: char| first.is_ascii_alphabetic())
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric());
        if !is_word {
            return Err(ScriptError::Name(name.into()));
        }
        self.push(name);
        Ok(())
    }

    fn separated<T>(
        &mut self,
        items: &[T],
        mut write: impl FnMut(&mut Self, usize, &T) -> Result<(), ScriptError>,
    ) -> Result<(), ScriptError> {
        for (index, item) in items.iter().enumerate() {
            if index > 0 {
                self.push(",");
            }
            write(self, index, item)?;
        }
        Ok(())
    }

    /// Writes a call that configures the source, or takes its options.
    fn source(&mut self, source: &Instruction) -> Result<(), ScriptError> {
        let Instruction { name, arguments } = source;
        if name == "withStrategies" || name == "withoutStrategies" {
            return self.strategies(name, arguments);
        }
        self.push(".");
        self.word(name)?;
        self.push("(");
        self.separated(arguments, |writer, _, argument| writer.literal(argument))?;
        self.push(")");
        Ok(())
    }

    fn strategies(&mut self, name: &str, arguments: &[Argument]) -> Result<(), ScriptError> {
        let mut names = Vec::new();
        for argument in arguments {
            match argument {
                Argument::Strategy(name, entries) if name == "OptionsStrategy" => {
                    for (key, value) in entries {
                        self.options.take(key.as_text().map_or("", Str::as_str), value)?;
                    }
                }
                Argument::Strategy(name, entries) => names.push((name, entries.as_slice())),
                Argument::Class(name) => names.push((name, &[])),
                other => return Err(ScriptError::Unsupported(format!("{name}({})", other.describe()))),
            }
        }
        if names.is_empty() {
            return Ok(());
        }
        self.push(".");
        self.push(name);
        self.push("(");
        self.separated(&names, |writer, _, (name, settings)| writer.strategy(name, settings))?;
        self.push(")");
        Ok(())
    }

    /// Writes a strategy with its settings. Drivers also send those that have no value, and the strategy's class.
    fn strategy(&mut self, name: &str, settings: &[(Argument, Argument)]) -> Result<(), ScriptError> {
        self.word(name)?;
        let key = |key: &Argument| key.as_text().map_or("", Str::as_str).to_owned();
        let given = |(name, value): &&(Argument, Argument)| {
            key(name) != "strategy" && !matches!(value, Argument::Value(Value::Null))
        };
        let settings: Vec<_> = settings.iter().filter(given).collect();
        if settings.is_empty() {
            return Ok(());
        }
        self.push("(");
        self.separated(&settings, |writer, _, (name, value)| {
            writer.word(&key(name))?;
            writer.push(":");
            writer.literal(value)
        })?;
        self.push(")");
        Ok(())
    }

    fn step(&mut self, step: &Instruction) -> Result<(), ScriptError> {
        let Instruction { name, arguments } = step;
        self.push(".");
        self.call(name, arguments)
    }

    fn call(&mut self, name: &str, arguments: &[Argument]) -> Result<(), ScriptError> {
        self.word(name)?;
        self.push("(");
        let last = arguments.len().saturating_sub(1);
        // Before the key of a property there may be its cardinality.
        let first_key =
            usize::from(matches!(arguments.first(), Some(Argument::Constant(ConstantOwner::Cardinality, _))));
        self.separated(arguments, |writer, index, argument| {
            let differs = match name {
                "V" | "E" | "hasId" | "is" => true,
                "has" => index > 0 && index == last,
                "property" => index > first_key && (index - first_key) % 2 == 1,
                _ => false,
            };
            match (name, argument) {
                ("with", argument) => writer.option_of_step(index, argument),
                ("mergeV" | "mergeE" | "option", Argument::Map(entries)) => writer.map(entries, true),
                ("where", Argument::Predicate(predicate)) => {
                    // Its operands are labels and names of side effects, for which a plan is made.
                    writer.names_labels = true;
                    let written = writer.predicate(predicate);
                    writer.names_labels = false;
                    written
                }
                (_, argument) if differs => writer.parameter(argument),
                (_, argument) => writer.literal(argument),
            }
        })?;
        self.push(")");
        Ok(())
    }

    /// Writes an argument of the step `with`, whose keys and flags drivers send in another form than gremlin-lang has.
    fn option_of_step(&mut self, index: usize, argument: &Argument) -> Result<(), ScriptError> {
        let flag = |value: &Value| match value.as_i64() {
            Some(0) => Some("none"),
            Some(1) => Some("ids"),
            Some(2) => Some("labels"),
            Some(4) => Some("keys"),
            Some(8) => Some("values"),
            Some(15) => Some("all"),
            _ => None,
        };
        let word = match argument {
            Argument::Value(Value::String(key)) if index == 0 => match key.as_str() {
                "~tinkerpop.valueMap.tokens" => Some("tokens"),
                "~tinkerpop.index.indexer" => Some("indexer"),
                _ => None,
            },
            Argument::Value(value) if index == 1 && self.text.ends_with("WithOptions.tokens,") => flag(value),
            Argument::Value(value) if index == 1 && self.text.ends_with("WithOptions.indexer,") => {
                value.as_i64().and_then(|kind| match kind {
                    0 => Some("list"),
                    1 => Some("map"),
                    _ => None,
                })
            }
            _ => None,
        };
        match word {
            Some(word) => {
                self.push("WithOptions.");
                self.push(word);
                Ok(())
            }
            None => self.literal(argument),
        }
    }

    /// Writes a value in which traversals of one form differ.
    fn parameter(&mut self, argument: &Argument) -> Result<(), ScriptError> {
        let value = match argument {
            Argument::Binding(_, value) => return self.parameter(value),
            Argument::Element(id) | Argument::Edge(id) => return self.parameter(id),
            // Null and booleans are few, and plans may differ for them.
            Argument::Value(Value::Null | Value::Bool(_)) => return self.literal(argument),
            Argument::Value(value) => value.clone(),
            _ => return self.literal(argument),
        };
        self.bind(value);
        Ok(())
    }

    fn bind(&mut self, value: Value) {
        let name = format!("_{}", self.parameters.len());
        self.push(&name);
        self.parameters.insert(name.into(), value);
    }

    fn literal(&mut self, argument: &Argument) -> Result<(), ScriptError> {
        match argument {
            Argument::Value(value) => self.value(value),
            Argument::List(items) => self.items("[", items, "]"),
            Argument::Set(items) => self.items("{", items, "}"),
            Argument::Map(entries) => self.map(entries, false),
            Argument::Bytecode(bytecode) => self.anonymous(bytecode),
            Argument::Predicate(predicate) => self.predicate(predicate),
            Argument::Constant(owner, name) => {
                self.push(owner.text());
                self.push(".");
                self.word(name)
            }
            Argument::Element(id) | Argument::Edge(id) => {
                self.push(if matches!(argument, Argument::Edge(_)) { "Edge(" } else { "Vertex(" });
                self.literal(id)?;
                self.push(")");
                Ok(())
            }
            Argument::Binding(_, value) => self.literal(value),
            Argument::Strategy(name, _) => Err(ScriptError::Unsupported(format!("the strategy {name}"))),
            Argument::Class(name) => Err(ScriptError::Unsupported(format!("the class {name}"))),
            Argument::Lambda => Err(ScriptError::Lambda),
        }
    }

    fn items(&mut self, open: &str, items: &[Argument], close: &str) -> Result<(), ScriptError> {
        self.push(open);
        self.separated(items, |writer, _, item| writer.literal(item))?;
        self.push(close);
        Ok(())
    }

    fn map(&mut self, entries: &[(Argument, Argument)], values_differ: bool) -> Result<(), ScriptError> {
        if entries.is_empty() {
            self.push("[:]");
            return Ok(());
        }
        self.push("[");
        self.separated(entries, |writer, _, (key, value)| {
            // Constants and all other keys that are not text need parentheses.
            let is_text = key.as_text().is_some();
            writer.push(if is_text { "" } else { "(" });
            writer.literal(key)?;
            writer.push(if is_text { ":" } else { "):" });
            // A plan is made for its labels.
            let is_label = matches!(key, Argument::Constant(ConstantOwner::T, name) if name == "label");
            if values_differ && !is_label { writer.parameter(value) } else { writer.literal(value) }
        })?;
        self.push("]");
        Ok(())
    }

    fn anonymous(&mut self, bytecode: &Bytecode) -> Result<(), ScriptError> {
        match (&bytecode.sources[..], &bytecode.steps[..]) {
            ([], []) => {
                self.push("__.identity()");
                Ok(())
            }
            ([], steps) => {
                self.push("__");
                steps.iter().try_for_each(|step| self.step(step))
            }
            // How drivers since 3.7 say `single(value)`.
            ([Instruction { name, arguments }], []) if name == "CardinalityValueTraversal" => {
                // Java's driver sends the cardinality as a text.
                let [
                    Argument::Constant(ConstantOwner::Cardinality, cardinality)
                    | Argument::Value(Value::String(cardinality)),
                    value,
                ] = &arguments[..]
                else {
                    return Err(ScriptError::Unsupported("a cardinality without a value".to_owned()));
                };
                self.push("Cardinality.");
                self.word(cardinality)?;
                self.push("(");
                self.parameter(value)?;
                self.push(")");
                Ok(())
            }
            _ => Err(ScriptError::Unsupported("a traversal of g as an argument".to_owned())),
        }
    }

    fn predicate(&mut self, predicate: &Predicate) -> Result<(), ScriptError> {
        let Predicate { is_of_text, name, operands } = predicate;
        match (name.as_str(), &operands[..]) {
            ("and" | "or", [first, rest @ ..]) => {
                self.literal(first)?;
                for operand in rest {
                    self.push(".");
                    self.push(name);
                    self.push("(");
                    self.literal(operand)?;
                    self.push(")");
                }
                return Ok(());
            }
            ("not" | "negate", [operand]) => {
                self.push("P.not(");
                self.literal(operand)?;
                self.push(")");
                return Ok(());
            }
            _ => {}
        }
        self.push(if *is_of_text { "TextP." } else { "P." });
        self.word(name)?;
        self.push("(");
        match (name.as_str(), &operands[..]) {
            (_, [Argument::List(operands) | Argument::Set(operands)]) if self.names_labels => {
                self.separated(operands, |writer, _, operand| writer.literal(operand))?;
            }
            (_, operands) if self.names_labels => {
                self.separated(operands, |writer, _, operand| writer.literal(operand))?;
            }
            ("within" | "without", [Argument::List(items) | Argument::Set(items)]) => {
                self.collection(items)?
            }
            ("within" | "without", items) => self.collection(items)?,
            ("typeOf" | "regex" | "notRegex", operands) => {
                self.separated(operands, |writer, _, operand| writer.literal(operand))?;
            }
            (_, operands) => self.separated(operands, |writer, _, operand| writer.parameter(operand))?,
        }
        self.push(")");
        Ok(())
    }

    /// Writes what `within` compares with: one parameter, so that lists of any length have one text.
    fn collection(&mut self, items: &[Argument]) -> Result<(), ScriptError> {
        // Elements are compared with elements.
        if items.iter().any(|item| matches!(item, Argument::Element(_) | Argument::Edge(_))) {
            return self.items("[", items, "]");
        }
        match items.iter().map(Argument::to_value).collect::<Result<Vec<_>, _>>() {
            Ok(values) => {
                self.bind(Value::list(values));
                Ok(())
            }
            Err(_) => self.items("[", items, "]"),
        }
    }

    fn value(&mut self, value: &Value) -> Result<(), ScriptError> {
        let written = match value {
            Value::Null => write!(self.text, "null"),
            Value::Bool(v) => write!(self.text, "{v}"),
            Value::Byte(v) => write!(self.text, "{v}b"),
            Value::Short(v) => write!(self.text, "{v}s"),
            Value::Int(v) => write!(self.text, "{v}"),
            Value::Long(v) => write!(self.text, "{v}l"),
            Value::Float(v) if v.is_finite() => write!(self.text, "{v:?}f"),
            Value::Double(v) if v.is_finite() => write!(self.text, "{v:?}d"),
            Value::Float(_) | Value::Double(_) => {
                let v = value.as_f64().unwrap_or(f64::NAN);
                let text = if v.is_nan() {
                    "NaN"
                } else if v > 0.0 {
                    "Infinity"
                } else {
                    "-Infinity"
                };
                write!(self.text, "{text}")
            }
            Value::DateTime(v) => write!(self.text, "datetime('{v}')"),
            Value::Uuid(v) => write!(self.text, "UUID('{v}')"),
            Value::Big(v) => match **v {
                Big::Integer(_) => write!(self.text, "{v}n"),
                Big::Decimal(_) => write!(self.text, "{v}m"),
            },
            Value::String(text) => {
                self.quoted(text);
                Ok(())
            }
            other => return Err(ScriptError::Unsupported(format!("{} as an argument", other.type_name()))),
        };
        written.map_err(|_| ScriptError::Unsupported("a value that cannot be written".to_owned()))
    }

    fn quoted(&mut self, text: &str) {
        self.text.push('\'');
        for char in text.chars() {
            match char {
                '\'' => self.push("\\'"),
                '\\' => self.push("\\\\"),
                '\n' => self.push("\\n"),
                '\r' => self.push("\\r"),
                other => self.text.push(other),
            }
        }
        self.text.push('\'');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(value: &str) -> Argument {
        Argument::Value(Value::from(value))
    }

    fn step(name: &str, arguments: Vec<Argument>) -> Instruction {
        Instruction { name: name.into(), arguments }
    }

    fn of(steps: Vec<Instruction>) -> Result<(String, Vec<Value>), ScriptError> {
        match Script::of(&Bytecode { sources: vec![], steps })? {
            Script::Traversal { text, parameters, .. } => Ok((text, parameters.into_values().collect())),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn labels_in_predicates_are_no_parameters() {
        let test = |name: &str, operands| {
            Argument::Predicate(Predicate { is_of_text: false, name: name.into(), operands })
        };
        let either = test("or", vec![test("eq", vec![text("a")]), test("neq", vec![text("b")])]);
        let without = test("without", vec![Argument::List(vec![text("x"), text("y")])]);
        let is = Bytecode { sources: vec![], steps: vec![step("is", vec![test("eq", vec![text("c")])])] };
        let (text, parameters) = of(vec![
            step("V", vec![]),
            step("where", vec![text("p"), either]),
            step("where", vec![test("not", vec![without])]),
            step("where", vec![Argument::Bytecode(is)]),
        ])
        .expect("a traversal");
        let expected = "g.V().where('p',P.eq('a').or(P.neq('b'))).where(P.not(P.without('x','y')))\
                        .where(__.is(P.eq(_0)))";
        assert_eq!((text.as_str(), parameters), (expected, vec!["c".into()]));
    }

    #[test]
    fn values_in_which_traversals_differ_are_parameters() {
        let gt =
            Predicate { is_of_text: false, name: "gt".into(), operands: vec![Argument::Value(30.into())] };
        let within = Argument::Predicate(Predicate {
            is_of_text: false,
            name: "within".into(),
            operands: vec![Argument::List(vec![text("a"), text("b")])],
        });
        let (text, parameters) = of(vec![
            step("V", vec![text("1"), text("2")]),
            step("has", vec![text("person"), text("age"), Argument::Predicate(gt)]),
            step("has", vec![text("name"), within]),
            step("out", vec![text("knows")]),
            step("limit", vec![Argument::Value(Value::Long(2))]),
        ])
        .unwrap();
        let expected =
            "g.V(_0,_1).has('person','age',P.gt(_2)).has('name',P.within(_3)).out('knows').limit(2l)";
        assert_eq!(text, expected);
        assert_eq!(parameters[3], Value::list(vec!["a".into(), "b".into()]));
    }

    #[test]
    fn tokens_and_types_keep_their_enum() {
        let constant = |owner, name: &str| Argument::Constant(owner, name.into());
        let is_int = Argument::Predicate(Predicate {
            is_of_text: false,
            name: "typeOf".into(),
            operands: vec![constant(ConstantOwner::GType, "INT")],
        });
        let date = Argument::Value(Value::DateTime("2023-08-02T00:00:00Z".parse().unwrap()));
        let (text, parameters) = of(vec![
            step("inject", vec![date]),
            step("dateAdd", vec![constant(ConstantOwner::Dt, "hour"), Argument::Value(2.into())]),
            step("asString", vec![constant(ConstantOwner::Scope, "local")]),
            step("asNumber", vec![constant(ConstantOwner::GType, "LONG")]),
            step("fold", vec![Argument::Value(0.into()), constant(ConstantOwner::Operator, "sum")]),
            step("has", vec![text("age"), is_int]),
            step("combine", vec![Argument::Set(vec![text("a")])]),
            step("index", vec![]),
            step("with", vec![text("~tinkerpop.index.indexer"), Argument::Value(1.into())]),
        ])
        .unwrap();
        let expected = "g.inject(datetime('2023-08-02T00:00:00Z')).dateAdd(DT.hour,2).asString(Scope.local)\
                        .asNumber(GType.LONG).fold(0,Operator.sum).has('age',P.typeOf(GType.INT))\
                        .combine({'a'}).index().with(WithOptions.indexer,WithOptions.map)";
        assert_eq!(text, expected);
        assert!(parameters.is_empty());
    }

    #[test]
    fn strategies_keep_their_settings() {
        let inner = Bytecode { sources: vec![], steps: vec![step("hasLabel", vec![text("person")])] };
        let settings = vec![
            (text("vertices"), Argument::Bytecode(inner)),
            (text("edges"), Argument::Value(Value::Null)),
            (text("checkAdjacentVertices"), Argument::Value(Value::Bool(false))),
            (text("strategy"), text("org.apache.tinkerpop.SubgraphStrategy")),
        ];
        let of = |settings| {
            let strategies = vec![
                Argument::Strategy("SubgraphStrategy".into(), settings),
                Argument::Class("ReadOnlyStrategy".into()),
            ];
            let sources = vec![Instruction { name: "withStrategies".into(), arguments: strategies }];
            Script::of(&Bytecode { sources, steps: vec![step("V", vec![])] })
        };
        let Ok(Script::Traversal { text: written, .. }) = of(settings) else { panic!("no traversal") };
        let expected = "g.withStrategies(SubgraphStrategy(vertices:__.hasLabel('person'),\
                        checkAdjacentVertices:false),ReadOnlyStrategy).V()";
        assert_eq!(written, expected);
        let hostile = vec![(text("a:1).drop("), text("x"))];
        assert_eq!(of(hostile), Err(ScriptError::Name("a:1).drop(".into())));
    }

    #[test]
    fn a_name_is_never_more_than_a_name() {
        for name in ["", "V().drop().V", "V(", "out'", "1a", "näme", "__.drop"] {
            assert_eq!(of(vec![step(name, vec![])]), Err(ScriptError::Name(name.into())), "{name:?}");
        }
        let (text, _) = of(vec![step("out", vec![text("a').drop().V('")])]).unwrap();
        assert_eq!(text, r"g.out('a\').drop().V(\'')");
        assert_eq!(of(vec![step("map", vec![Argument::Lambda])]), Err(ScriptError::Lambda));
    }
}
