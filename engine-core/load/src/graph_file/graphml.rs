//! GraphML: nodes and edges in XML, with properties that the head of the file declares.
//!
//! The label of a node is its property `labelV`, that of an edge `labelE`, as TinkerPop writes them. A `<data>` whose key
//! is not declared with a name has no meaning here and is passed over, and so is what other programs add: ports,
//! descriptions, elements of other namespaces. Hyperedges and graphs inside of nodes would lose their meaning and are
//! refused.

use super::{Failure, Step};
use crate::decompress::Input;
use crate::records::{Lines, MAX_FIELDS};
use quick_xml::events::{BytesRef, BytesStart, Event};
use quick_xml::{Reader, XmlVersion};
use rustc_hash::{FxHashMap, FxHashSet};
use std::io::{self, BufRead, Read};
use std::sync::Arc;
use tidegraph_types::{Elements, FileElement, FileProperty, Str, Value};

/// Deepest nesting of elements.
const MAX_DEPTH: usize = 128;
/// Bytes of a property besides its texts.
const PROPERTY_BYTES: usize = 2 * size_of::<FileProperty>();

/// The names of the properties that are labels.
const VERTEX_LABEL: &str = "labelV";
const EDGE_LABEL: &str = "labelE";

/// The bytes of the file, of which one element may have a limited number.
struct Bounded {
    input: Input,
    left: usize,
    lines: Lines,
}

impl Read for Bounded {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let read = self.fill_buf()?.read(out)?;
        self.consume(read);
        Ok(read)
    }
}

impl BufRead for Bounded {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.left == 0 {
            return Err(io::Error::other("the element is too long"));
        }
        let buffer = self.input.fill_buf()?;
        Ok(&buffer[..buffer.len().min(self.left)])
    }

    fn consume(&mut self, bytes: usize) {
        let buffer = self.input.buffer();
        self.lines.see(&buffer[..bytes.min(buffer.len())]);
        self.left = self.left.saturating_sub(bytes);
        self.input.consume(bytes);
    }
}

/// Type of a declared property.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Boolean,
    Int,
    Long,
    Float,
    Double,
    String,
}

impl Kind {
    /// Returns the type of an `attr.type`. A type that GraphML does not have is a string, as in TinkerPop.
    fn of(name: &str) -> Self {
        match name {
            "boolean" => Self::Boolean,
            "int" => Self::Int,
            "long" => Self::Long,
            "float" => Self::Float,
            "double" => Self::Double,
            _ => Self::String,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Boolean => "boolean",
            Self::Int => "int",
            Self::Long => "long",
            Self::Float => "float",
            Self::Double => "double",
            Self::String => "string",
        }
    }

    fn value(self, text: &str) -> Option<Value> {
        let trimmed = text.trim();
        Some(match self {
            Self::Boolean => match trimmed {
                "true" | "1" => Value::Bool(true),
                "false" | "0" => Value::Bool(false),
                _ if trimmed.eq_ignore_ascii_case("true") => Value::Bool(true),
                _ if trimmed.eq_ignore_ascii_case("false") => Value::Bool(false),
                _ => return None,
            },
            Self::Int => Value::Int(trimmed.parse().ok()?),
            Self::Long => Value::Long(trimmed.parse().ok()?),
            Self::Float => Value::Float(trimmed.parse().ok()?),
            Self::Double => Value::Double(trimmed.parse().ok()?),
            Self::String => Value::string(text),
        })
    }
}

/// A declared property.
struct Key {
    name: Str,
    kind: Kind,
    /// Whether vertices and edges have it. Only the default depends on this.
    of_vertices: bool,
    of_edges: bool,
    default: Option<Value>,
}

/// Where in the document the next event is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Place {
    GraphMl,
    Key,
    Default,
    Graph,
    Node,
    Edge,
    Data,
}

/// A node or an edge that is not whole yet.
struct Draft {
    element: FileElement,
    /// The declared properties that it has, of those that have a default.
    given: FxHashSet<Arc<str>>,
    bytes: usize,
}

/// Reads the nodes or the edges of a file.
pub(super) struct Document {
    reader: Reader<Bounded>,
    buffer: Vec<u8>,
    elements: Elements,
    limit: usize,
    places: Vec<Place>,
    /// Elements that are open inside of one that is passed over, with it.
    passed_over: usize,
    keys: FxHashMap<Arc<str>, Key>,
    /// Those that have a default, in the order of the file.
    defaults: Vec<Arc<str>>,
    key_bytes: usize,
    /// The key that is declared now, if it has a name.
    declared: Option<(Arc<str>, Key)>,
    draft: Option<Draft>,
    /// The declared key of the `<data>` that is open.
    data: Option<Arc<str>>,
    text: String,
    /// Whether the element `graphml` was there.
    began: bool,
}

impl Document {
    pub(super) fn new(input: Input, elements: Elements, limit: usize) -> Self {
        let mut reader = Reader::from_reader(Bounded { input, left: limit, lines: Lines::new() });
        reader.config_mut().expand_empty_elements = true;
        Self {
            reader,
            buffer: vec![],
            elements,
            limit,
            places: vec![],
            passed_over: 0,
            keys: FxHashMap::default(),
            defaults: vec![],
            key_bytes: 0,
            declared: None,
            draft: None,
            data: None,
            text: String::new(),
            began: false,
        }
    }

    /// Returns what the reader holds, with the longest event that may come: its bytes are gathered before it is known how
    /// long it is.
    pub(super) fn held_bytes(&self) -> usize {
        let draft = self.draft.as_ref().map_or(0, |draft| draft.bytes);
        2 * self.limit + self.text.capacity() + self.key_bytes + draft
    }

    pub(super) fn step(&mut self, found: &mut Vec<FileElement>) -> Result<Step, Failure> {
        if self.draft.is_none() && self.declared.is_none() {
            self.reader.get_mut().left = self.limit;
        }
        let mut buffer = std::mem::take(&mut self.buffer);
        buffer.clear();
        let read = self.reader.read_event_into(&mut buffer);
        let line = self.reader.get_ref().lines.line;
        let failed = |reason| Failure::Element(line, reason);
        let step = match read {
            Ok(Event::Eof) => {
                let problem = match self.places.last() {
                    Some(place) => Some(format!("the file ends inside of <{}>", name_of(*place))),
                    None if !self.began => Some("the file is no GraphML: it has no element".to_owned()),
                    None => None,
                };
                problem.map_or(Ok(Step::End), |reason| Err(failed(reason)))
            }
            Ok(event) => self.event(event, line, found).map(|()| Step::More).map_err(failed),
            Err(_) if self.reader.get_ref().left == 0 => {
                Err(failed(format!("an element has more than {} bytes, the limit", self.limit)))
            }
            Err(quick_xml::Error::Io(error)) => {
                Err(Failure::Io(Arc::try_unwrap(error).unwrap_or_else(|e| io::Error::new(e.kind(), e))))
            }
            Err(error) => Err(failed(format!("it is not well-formed XML: {error}"))),
        };
        self.buffer = buffer;
        self.buffer.shrink_to(crate::decompress::BUFFER_BYTES);
        step
    }

    fn event(&mut self, event: Event<'_>, line: u64, found: &mut Vec<FileElement>) -> Result<(), String> {
        match event {
            Event::Start(start) if self.passed_over > 0 => self.pass_over(&start),
            Event::End(_) if self.passed_over > 0 => {
                self.passed_over -= 1;
                Ok(())
            }
            Event::Start(start) => self.start(&start, line),
            Event::End(_) => self.end(found),
            Event::Text(text) if self.takes_text() => {
                self.text.push_str(&text.xml10_content().map_err(|error| error.to_string())?);
                Ok(())
            }
            Event::CData(text) if self.takes_text() => {
                self.text.push_str(&text.xml10_content().map_err(|error| error.to_string())?);
                Ok(())
            }
            Event::GeneralRef(entity) if self.takes_text() => self.entity(&entity),
            _ => Ok(()),
        }
    }

    /// Whether text is part of a value.
    fn takes_text(&self) -> bool {
        let is_value = match self.places.last() {
            Some(Place::Data) => self.data.is_some(),
            Some(Place::Default) => self.declared.is_some(),
            _ => false,
        };
        is_value && self.passed_over == 0
    }

    /// Resolves one of the entities that XML defines. There are no others: a file cannot make text grow.
    fn entity(&mut self, entity: &BytesRef<'_>) -> Result<(), String> {
        if let Some(character) = entity.resolve_char_ref().map_err(|error| error.to_string())? {
            self.text.push(character);
            return Ok(());
        }
        let name = entity.decode().map_err(|error| error.to_string())?;
        match quick_xml::escape::resolve_predefined_entity(&name) {
            Some(text) => self.text.push_str(text),
            None => return Err(format!("the entity {:?} is not one of XML's own", shortened(&name))),
        }
        Ok(())
    }

    fn pass_over(&mut self, start: &BytesStart<'_>) -> Result<(), String> {
        self.passed_over += 1;
        if self.passed_over + self.places.len() > MAX_DEPTH {
            let name = String::from_utf8_lossy(start.local_name().into_inner()).into_owned();
            let name = shortened(&name);
            return Err(format!("<{name}> is nested deeper than {MAX_DEPTH} elements"));
        }
        Ok(())
    }

    fn start(&mut self, start: &BytesStart<'_>, line: u64) -> Result<(), String> {
        let name = start.local_name();
        match (self.places.last(), name.as_ref()) {
            (None, b"graphml") => {
                self.began = true;
                self.places.push(Place::GraphMl);
            }
            (None, other) => {
                let name = shortened(&String::from_utf8_lossy(other));
                return Err(format!("the file is no GraphML: its first element is <{name}>, not <graphml>"));
            }
            (Some(Place::GraphMl), b"key") => {
                self.declare(start)?;
                self.places.push(Place::Key);
            }
            (Some(Place::Key), b"default") => {
                self.text.clear();
                self.places.push(Place::Default);
            }
            (Some(Place::GraphMl), b"graph") => self.places.push(Place::Graph),
            (Some(Place::Graph), b"node") if self.elements == Elements::Vertices => {
                let id = required(start, "node", "id")?;
                self.begin(line, Some(id), None);
                self.places.push(Place::Node);
            }
            (Some(Place::Graph), b"edge") if self.elements == Elements::Edges => {
                let id = attribute(start, "id")?;
                let ends = (required(start, "edge", "source")?, required(start, "edge", "target")?);
                self.begin(line, id, Some(ends));
                self.places.push(Place::Edge);
            }
            (Some(Place::Graph), b"hyperedge") => {
                return Err("<hyperedge>: edges have two ends here".to_owned());
            }
            (Some(Place::Node | Place::Edge), b"graph") => {
                return Err("<graph> inside of a node or an edge: graphs do not nest here".to_owned());
            }
            (Some(Place::Node | Place::Edge), b"data") => {
                let key = required(start, "data", "key")?;
                self.data = self.keys.get_key_value(key.as_str()).map(|(key, _)| key.clone());
                self.text.clear();
                self.places.push(Place::Data);
            }
            (Some(Place::Data), other) if self.data.is_some() => {
                let name = shortened(&String::from_utf8_lossy(other));
                return Err(format!("<{name}> inside of <data>, whose key is that of a property"));
            }
            _ => return self.pass_over(start),
        }
        Ok(())
    }

    fn end(&mut self, found: &mut Vec<FileElement>) -> Result<(), String> {
        match self.places.pop() {
            Some(Place::Default) => {
                if let Some((_, key)) = &mut self.declared {
                    let value = key.kind.value(&self.text);
                    key.default = Some(value.ok_or_else(|| {
                        let text = shortened(&self.text);
                        format!("the default of {:?}: {text:?} is no {}", key.name, key.kind.name())
                    })?);
                    self.key_bytes += 2 * self.text.len();
                }
            }
            Some(Place::Key) => {
                if let Some((id, key)) = self.declared.take() {
                    if key.default.is_some() {
                        self.defaults.push(id.clone());
                    }
                    self.keys.insert(id, key);
                }
            }
            Some(Place::Data) => self.end_data()?,
            Some(Place::Node | Place::Edge) => found.extend(self.end_element()),
            Some(Place::GraphMl | Place::Graph) | None => {}
        }
        Ok(())
    }

    /// Begins the declaration of a property. One without a name is that of another program.
    fn declare(&mut self, start: &BytesStart<'_>) -> Result<(), String> {
        let id = required(start, "key", "id")?;
        let Some(name) = attribute(start, "attr.name")? else { return Ok(()) };
        if self.keys.len() == MAX_FIELDS {
            return Err(format!("the file declares more than {MAX_FIELDS} properties, the limit"));
        }
        let kind = attribute(start, "attr.type")?.map_or(Kind::String, |kind| Kind::of(&kind));
        let of = attribute(start, "for")?;
        let is_of = |what: &str| of.as_deref().is_none_or(|of| of == what || of == "all");
        let (of_vertices, of_edges) = (is_of("node"), is_of("edge"));
        self.key_bytes += id.len() + name.len() + size_of::<Key>() + 64;
        let key = Key { name: name.as_str().into(), kind, of_vertices, of_edges, default: None };
        self.declared = Some((id.into(), key));
        Ok(())
    }

    fn begin(&mut self, line: u64, id: Option<String>, ends: Option<(String, String)>) {
        let bytes = id.as_ref().map_or(0, String::len)
            + ends.as_ref().map_or(0, |(source, target)| source.len() + target.len())
            + size_of::<FileElement>();
        let element = FileElement {
            line,
            id: id.map(Value::string),
            label: None,
            ends: ends.map(|(source, target)| (Value::string(source), Value::string(target))),
            properties: vec![],
        };
        self.draft = Some(Draft { element, given: FxHashSet::default(), bytes });
    }

    /// Adds the property whose `<data>` ends.
    fn end_data(&mut self) -> Result<(), String> {
        let (Some(id), Some(draft)) = (self.data.take(), &mut self.draft) else { return Ok(()) };
        let Some(key) = self.keys.get(&id) else { return Ok(()) };
        let Some(value) = key.kind.value(&self.text) else {
            let (what, of) = match (&draft.element.ends, &draft.element.id) {
                (None, Some(id)) => ("node", id.for_message()),
                (_, Some(id)) => ("edge", id.for_message()),
                (_, None) => ("edge", "without an id".to_owned()),
            };
            let (text, kind) = (shortened(&self.text), key.kind.name());
            return Err(format!("{what} {of}, property {:?}: {text:?} is no {kind}", key.name));
        };
        draft.bytes += self.text.len() + PROPERTY_BYTES;
        if key.default.is_some() {
            draft.given.insert(id);
        }
        draft.add(key, value);
        self.text.clear();
        self.text.shrink_to(crate::decompress::BUFFER_BYTES);
        Ok(())
    }

    /// Completes the element that ends with the defaults of properties that it lacks.
    fn end_element(&mut self) -> Option<FileElement> {
        let mut draft = self.draft.take()?;
        let is_vertex = draft.element.ends.is_none();
        let applies = |key: &Key| if is_vertex { key.of_vertices } else { key.of_edges };
        let missing = self.defaults.iter().filter(|id| !draft.given.contains(*id));
        let missing: Vec<&Key> = missing.filter_map(|id| self.keys.get(id)).filter(|k| applies(k)).collect();
        for key in missing {
            if let Some(value) = key.default.clone() {
                draft.add(key, value);
            }
        }
        Some(draft.element)
    }
}

impl Draft {
    /// Adds a property, or makes it the label.
    fn add(&mut self, key: &Key, value: Value) {
        let label = if self.element.ends.is_none() { VERTEX_LABEL } else { EDGE_LABEL };
        if let (true, Value::String(text)) = (key.name == label, &value) {
            self.element.label = Some(text.clone());
            return;
        }
        self.element.properties.push(FileProperty { key: key.name.clone(), value, meta: vec![] });
    }
}

fn name_of(place: Place) -> &'static str {
    match place {
        Place::GraphMl => "graphml",
        Place::Key => "key",
        Place::Default => "default",
        Place::Graph => "graph",
        Place::Node => "node",
        Place::Edge => "edge",
        Place::Data => "data",
    }
}

/// Returns an attribute of an element.
fn attribute(start: &BytesStart<'_>, name: &str) -> Result<Option<String>, String> {
    let mut all = start.attributes();
    // The check for attributes that come twice compares each with all before it.
    all.with_checks(false);
    for attribute in all {
        let attribute = attribute.map_err(|error| format!("it is not well-formed XML: {error}"))?;
        if attribute.key.local_name().as_ref() == name.as_bytes() {
            let value = attribute.normalized_value(XmlVersion::Implicit1_0);
            let value = value.map_err(|error| format!("the attribute {name:?}: {error}"))?;
            return Ok(Some(value.into_owned()));
        }
    }
    Ok(None)
}

fn required(start: &BytesStart<'_>, element: &str, name: &str) -> Result<String, String> {
    attribute(start, name)?.ok_or_else(|| format!("<{element}> has no attribute {name:?}"))
}

/// Returns at most 60 characters.
fn shortened(text: &str) -> String {
    const SHOWN_CHARS: usize = 60;
    match text.char_indices().nth(SHOWN_CHARS) {
        Some((cut, _)) => format!("{}…", &text[..cut]),
        None => text.to_owned(),
    }
}
