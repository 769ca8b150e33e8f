//! Gremlin's `asString()`: any value as TinkerPop writes it.
//!
//! What must never happen: a text larger than the memory limit. Its length is checked while it grows.

use super::elements::Elements;
use super::text::to_text;
use crate::Result;
use tidegraph_types::Value;

/// Characters of a value that the text of a property shows.
const PROPERTY_CHARS: usize = 20;

/// Returns the text of a value that is not null.
pub(crate) fn text(elements: &Elements<'_, '_>, value: &Value) -> Result<Value> {
    if let Some(text) = to_text(value) {
        return Ok(Value::String(text));
    }
    if value.as_slice().is_some() {
        elements.warm(std::iter::once(value), true)?;
    }
    let mut writer = Writer { elements, out: String::new(), checked_bytes: 0 };
    writer.value(value)?;
    Ok(Value::string(writer.out))
}

struct Writer<'e, 'p, 'a> {
    elements: &'e Elements<'p, 'a>,
    out: String,
    /// Length up to which the memory limit was asked.
    checked_bytes: usize,
}

impl Writer<'_, '_, '_> {
    fn push(&mut self, text: &str) -> Result<()> {
        let len = self.out.len() + text.len();
        if len > self.checked_bytes {
            self.checked_bytes = len.saturating_mul(2).max(1024);
            self.elements.ctx().memory.ensure(self.checked_bytes)?;
            self.elements.ctx().spend(len / 16)?;
        }
        self.out.push_str(text);
        Ok(())
    }

    fn items<'v>(&mut self, open: &str, items: impl Iterator<Item = &'v Value>) -> Result<()> {
        self.push(open)?;
        for (at, item) in items.enumerate() {
            self.elements.ctx().spend(1)?;
            if at > 0 {
                self.push(", ")?;
            }
            self.value(item)?;
        }
        self.push("]")
    }

    fn entry(&mut self, key: &Value, value: &Value) -> Result<()> {
        self.value(key)?;
        self.push("=")?;
        self.value(value)
    }

    fn value(&mut self, value: &Value) -> Result<()> {
        match value {
            Value::List(items) | Value::Set(items) => self.items("[", items.iter()),
            Value::Path(path) => self.items("path[", path.objects.iter()),
            Value::Graph(graph) => self.push(&format!(
                "tinkergraph[vertices:{} edges:{}]",
                graph.vertices.len(),
                graph.edges.len()
            )),
            Value::Map(map) | Value::Tree(map) => {
                self.push("{")?;
                for (at, (key, value)) in map.iter().enumerate() {
                    self.elements.ctx().spend(1)?;
                    if at > 0 {
                        self.push(", ")?;
                    }
                    self.entry(key, value)?;
                }
                self.push("}")
            }
            Value::Entry(entry) => self.entry(&entry.0, &entry.1),
            Value::Property(property) => {
                let kind = if property.is_of_vertex() { "vp" } else { "p" };
                self.push(&format!("{kind}[{}->", property.key))?;
                let start = self.out.len();
                self.value(&property.value)?;
                self.abbreviate(start);
                self.push("]")
            }
            Value::Symbol(symbol) => self.push(symbol.as_str()),
            other => match to_text(other) {
                Some(text) => self.push(&text),
                None => match self.elements.with(other, |record| record.text(self.elements)) {
                    Some(text) => self.push(&text?),
                    None => self.push("null"),
                },
            },
        }
    }

    /// Shortens the text from an offset on, as TinkerPop does with the value of a property.
    fn abbreviate(&mut self, start: usize) {
        let added = &self.out[start..];
        if added.chars().count() > PROPERTY_CHARS
            && let Some((cut, _)) = added.char_indices().nth(PROPERTY_CHARS - 3)
        {
            self.out.truncate(start + cut);
            self.out.push_str("...");
        }
    }
}
