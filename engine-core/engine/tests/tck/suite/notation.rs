//! The TCK's notation for values: `(:A {name: 'a'})`, `[:T {p: 1}]`, `<(:A)-[:T]->(:B)>`, lists, maps, scalars.

use tidegraph_types::{Map, Value};

/// A value as a scenario writes it. Elements have no ids in this notation.
#[derive(Clone, PartialEq, Debug)]
pub enum Expected {
    Null,
    Bool(bool),
    Integer(i64),
    Float(f64),
    String(String),
    List(Vec<Expected>),
    Map(Vec<(String, Expected)>),
    Node(Vec<String>, Vec<(String, Expected)>),
    Edge(String, Vec<(String, Expected)>),
    /// The first vertex; then each edge, whether it is walked along its direction, and the vertex after it.
    Path(Box<Expected>, Vec<(Expected, bool, Expected)>),
}

impl Expected {
    /// Parses a cell.
    pub fn parse(text: &str) -> Result<Self> {
        let mut reader = Reader { text, at: 0 };
        let value = reader.value()?;
        reader.blanks();
        if reader.rest().is_empty() { Ok(value) } else { Err(reader.fault("the end")) }
    }

    /// Converts the value to a parameter of a query.
    pub fn to_value(&self) -> Value {
        match self {
            Self::Null => Value::Null,
            Self::Bool(v) => Value::Bool(*v),
            Self::Integer(v) => Value::Long(*v),
            Self::Float(v) => Value::Double(*v),
            Self::String(v) => Value::string(v.as_str()),
            Self::List(items) => Value::List(items.iter().map(Self::to_value).collect::<Vec<_>>().into()),
            Self::Map(entries) => {
                let map: Map =
                    entries.iter().map(|(k, v)| (Value::string(k.as_str()), v.to_value())).collect();
                Value::Map(map.into())
            }
            Self::Node(..) | Self::Edge(..) | Self::Path(..) => panic!("an element is no parameter"),
        }
    }
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

type Result<T> = std::result::Result<T, String>;

impl Reader<'_> {
    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn fault(&self, expected: &str) -> String {
        format!("expected {expected} at {} of {}", self.at, self.text)
    }

    fn blanks(&mut self) {
        self.at += self.rest().len() - self.rest().trim_start().len();
    }

    /// Consumes the text if the input continues with it.
    fn take(&mut self, text: &str) -> bool {
        self.blanks();
        let here = self.rest().starts_with(text);
        if here {
            self.at += text.len();
        }
        here
    }

    fn expect(&mut self, text: &str) -> Result<()> {
        if self.take(text) { Ok(()) } else { Err(self.fault(text)) }
    }

    fn word(&mut self) -> Result<String> {
        self.blanks();
        if self.take("`") {
            let end = self.rest().find('`').ok_or_else(|| self.fault("`"))?;
            let word = self.rest()[..end].to_owned();
            self.at += end + 1;
            return Ok(word);
        }
        let end = self.rest().find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(self.rest().len());
        if end == 0 {
            return Err(self.fault("a name"));
        }
        let word = self.rest()[..end].to_owned();
        self.at += end;
        Ok(word)
    }

    fn value(&mut self) -> Result<Expected> {
        self.blanks();
        match self.rest().chars().next() {
            Some('\'') => self.string().map(Expected::String),
            Some('[') if self.text[self.at + 1..].trim_start().starts_with(':') => self.edge(),
            Some('[') => self.list(),
            Some('{') => self.map().map(Expected::Map),
            Some('(') => self.node(),
            Some('<') => self.path(),
            Some(c) if c.is_ascii_digit() || matches!(c, '-' | '+' | '.') => self.number(),
            _ => match &*self.word()? {
                "null" => Ok(Expected::Null),
                "true" => Ok(Expected::Bool(true)),
                "false" => Ok(Expected::Bool(false)),
                "NaN" => Ok(Expected::Float(f64::NAN)),
                "Inf" => Ok(Expected::Float(f64::INFINITY)),
                _ => Err(self.fault("a value")),
            },
        }
    }

    fn string(&mut self) -> Result<String> {
        self.expect("'")?;
        let mut text = String::new();
        let mut chars = self.rest().char_indices();
        while let Some((offset, c)) = chars.next() {
            match c {
                '\'' => {
                    self.at += offset + 1;
                    return Ok(text);
                }
                '\\' => text.extend(chars.next().map(|(_, c)| c)),
                _ => text.push(c),
            }
        }
        Err(self.fault("'"))
    }

    fn number(&mut self) -> Result<Expected> {
        if self.take("-Inf") {
            return Ok(Expected::Float(f64::NEG_INFINITY));
        }
        let part = |c: char| c.is_ascii_digit() || matches!(c, '-' | '+' | '.' | 'e' | 'E');
        let end = self.rest().find(|c| !part(c)).unwrap_or(self.rest().len());
        let text = &self.rest()[..end];
        let value = match text.parse() {
            Ok(v) => Some(Expected::Integer(v)),
            Err(_) => text.parse().ok().map(Expected::Float),
        };
        let value = value.ok_or_else(|| self.fault("a number"))?;
        self.at += end;
        Ok(value)
    }

    fn list(&mut self) -> Result<Expected> {
        self.expect("[")?;
        let mut items = vec![];
        while !self.take("]") {
            if !items.is_empty() {
                self.expect(",")?;
            }
            items.push(self.value()?);
        }
        Ok(Expected::List(items))
    }

    fn map(&mut self) -> Result<Vec<(String, Expected)>> {
        self.expect("{")?;
        let mut entries = vec![];
        while !self.take("}") {
            if !entries.is_empty() {
                self.expect(",")?;
            }
            let key = self.word()?;
            self.expect(":")?;
            entries.push((key, self.value()?));
        }
        Ok(entries)
    }

    fn properties(&mut self) -> Result<Vec<(String, Expected)>> {
        self.blanks();
        if self.rest().starts_with('{') { self.map() } else { Ok(vec![]) }
    }

    fn node(&mut self) -> Result<Expected> {
        self.expect("(")?;
        let mut labels = vec![];
        while self.take(":") {
            labels.push(self.word()?);
        }
        let properties = self.properties()?;
        self.expect(")")?;
        Ok(Expected::Node(labels, properties))
    }

    fn edge(&mut self) -> Result<Expected> {
        self.expect("[")?;
        self.expect(":")?;
        let label = self.word()?;
        let properties = self.properties()?;
        self.expect("]")?;
        Ok(Expected::Edge(label, properties))
    }

    fn path(&mut self) -> Result<Expected> {
        self.expect("<")?;
        let first = self.node()?;
        let mut rest = vec![];
        while !self.take(">") {
            let backward = self.take("<-");
            if !backward {
                self.expect("-")?;
            }
            let edge = self.edge()?;
            self.expect(if backward { "-" } else { "->" })?;
            rest.push((edge, !backward, self.node()?));
        }
        Ok(Expected::Path(Box::new(first), rest))
    }
}

#[test]
fn cells_are_read() {
    for good in [
        "null",
        "-1",
        "1.5e-3",
        "'it\\'s'",
        "[1, [2], 'a']",
        "{a: 1, b: {}}",
        "()",
        "(:A:B {x: 'y'})",
        "[:T {w: 1}]",
        "<(:A)-[:T]->(:B)<-[:S {x: 1}]-()>",
        "[[:T], [:S]]",
        "NaN",
        "[]",
    ] {
        assert!(Expected::parse(good).is_ok(), "{good}");
    }
    for bad in ["", "'a", "[1 2]", "(", "nil", "<(:A)-[:T]-(:B)>", "1 2"] {
        assert!(Expected::parse(bad).is_err(), "{bad}");
    }
}
