//! Creates the elements of files that hold a graph.

use super::write::{Tokens, charge_pending, storable};
use super::{Boxed, Feed, Operator, Want, compute};
use crate::view::{MetaOwner, NewEdge, NewVertex};
use crate::{Batch, Context, Error, FileError, GraphElements, GraphStep, Result};
use rustc_hash::{FxHashMap, FxHashSet};
use tidegraph_plan::{Expr, Op};
use tidegraph_types::{
    Cardinality, Elements, ErrorCode, FileElement, FileProperty, GraphFormat, Gui, NoFormat, PropertyWrite,
    Str, Token, Value,
};

/// Elements that are written at once, and the bytes of them that are kept at most until then.
const WRITTEN: usize = 256;
const WRITTEN_BYTES: usize = 1 << 20;
/// Steps of work that reading on costs at least.
const STEPS_PER_READ: usize = 16;

/// Creates the vertices and then the edges of the file that each row names, and yields the rows.
///
/// *Memory*: it holds what the reader holds, and a limited number of elements; what it creates is pending, as all writes
/// are.
pub(super) struct ReadGraph<'p> {
    input: Boxed<'p>,
    url: &'p Expr,
    format: Option<GraphFormat>,
    cardinality: Cardinality,
    tokens: Tokens,
}

/// Elements that were read and are not written yet.
#[derive(Default)]
struct Waiting {
    elements: Vec<FileElement>,
    bytes: usize,
}

impl<'p> ReadGraph<'p> {
    pub(super) fn new(input: Boxed<'p>, op: &'p Op) -> Result<Self> {
        let Op::ReadGraph { url, format, cardinality, .. } = op else {
            return Err(Error::Plan("an operator that reads no graph".to_owned()));
        };
        Ok(Self { input, url, format: *format, cardinality: *cardinality, tokens: Tokens::default() })
    }

    fn read(&mut self, url: &Value, ctx: &Context<'_>) -> Result<()> {
        let Some(url) = url.as_str() else {
            return Err(Error::of_type("io()", "a string, the address of a file", url));
        };
        let Some(files) = ctx.graph_files else {
            let message = format!("{url}: files cannot be read here");
            return Err(failed(ErrorCode::UnsupportedOperation, message));
        };
        let format = match self.format.map_or_else(|| GraphFormat::of_file(url), Ok) {
            Ok(format) => format,
            Err(NoFormat::Gryo) => {
                let message = format!("{url}: the format Gryo is not supported: only Java reads it");
                return Err(failed(ErrorCode::UnsupportedOperation, message));
            }
            Err(NoFormat::Unknown) => {
                let message = format!(
                    "{url}: the name tells no format: end it with .json or .xml, or name the reader, graphson or graphml"
                );
                return Err(failed(ErrorCode::InvalidArgument, message));
            }
        };
        for elements in [Elements::Vertices, Elements::Edges] {
            let opened = files.open_graph(url, format, elements, ctx.interrupt);
            // A request that must stop says so, not that it could not open a file.
            ctx.check()?;
            self.read_all(&mut *opened.map_err(Error::GraphFile)?, ctx)?;
        }
        Ok(())
    }

    /// Writes all that one reader reads.
    fn read_all(&mut self, reader: &mut dyn GraphElements, ctx: &Context<'_>) -> Result<()> {
        let mut waiting = Waiting::default();
        let mut charged = 0;
        loop {
            // The memory of the next step is charged before it.
            let held = reader.held_bytes() + waiting.bytes;
            if held != charged {
                ctx.memory.release(std::mem::take(&mut charged));
                ctx.memory.charge(held)?;
                charged = held;
            }
            ctx.spend(STEPS_PER_READ)?;
            let before = waiting.elements.len();
            let step = reader.step(&mut waiting.elements).map_err(Error::GraphFile)?;
            for element in &waiting.elements[before..] {
                waiting.bytes += heap_bytes(element);
            }
            let is_full = waiting.elements.len() >= WRITTEN || waiting.bytes >= WRITTEN_BYTES;
            if is_full || step == GraphStep::End {
                let Waiting { elements, .. } = std::mem::take(&mut waiting);
                self.write(elements, reader.file(), ctx)?;
            }
            if step == GraphStep::End {
                ctx.memory.release(charged);
                return Ok(());
            }
        }
    }

    fn write(&mut self, elements: Vec<FileElement>, file: &str, ctx: &Context<'_>) -> Result<()> {
        let labels: Vec<Vec<Str>> = elements.iter().map(labels_of).collect();
        let keys = elements.iter().flat_map(|element| &element.properties);
        let keys = keys.flat_map(|property| {
            std::iter::once(&property.key).chain(property.meta.iter().map(|(key, _)| key))
        });
        self.tokens.intern(labels.iter().flatten().chain(keys), ctx)?;
        let mut rest = elements.into_iter().zip(labels).peekable();
        while rest.peek().is_some() {
            ctx.check()?;
            let batch = rest.by_ref().take(WRITTEN).collect();
            let before = ctx.view.pending_bytes();
            self.write_batch(batch, file, ctx)?;
            charge_pending(before, ctx)?;
        }
        Ok(())
    }

    /// Writes a few elements, which are all vertices or all edges.
    fn write_batch(
        &mut self,
        batch: Vec<(FileElement, Vec<Str>)>,
        file: &str,
        ctx: &Context<'_>,
    ) -> Result<()> {
        let ends = self.ends(&batch, file, ctx)?;
        let mut lines: Vec<(Option<Str>, u64)> = vec![];
        let (mut vertices, mut metas, mut edges) = (vec![], vec![], vec![]);
        for (at, (element, labels)) in batch.into_iter().enumerate() {
            let line = element.line;
            let of_line = |error| named(error, file, line);
            let id = element.id.as_ref().map(|id| id_text(id, ctx)).transpose().map_err(of_line)?;
            lines.push((id.clone(), line));
            let labels: Vec<Token> = labels.iter().map(|l| self.tokens.of(l)).collect::<Result<_>>()?;
            if element.ends.is_some() {
                let (source, target) = ends[at];
                let properties =
                    element.properties.into_iter().filter_map(|FileProperty { key, value, .. }| {
                        let value = storable(&key, value).transpose()?;
                        Some(value.and_then(|value| Ok((self.tokens.of(&key)?, value))))
                    });
                let properties = properties.collect::<Result<_>>().map_err(of_line)?;
                let label = labels[0];
                edges.push(NewEdge { id, source, target, label, properties });
            } else {
                let (properties, meta) = self.vertex_properties(element.properties).map_err(of_line)?;
                metas.push((meta, line));
                vertices.push(NewVertex { id, labels, properties });
            }
        }
        let of_element = |error: Error| {
            let line = match &error {
                Error::VertexExists(id) | Error::EdgeExists(id) => {
                    lines.iter().rfind(|(other, _)| other.as_ref() == Some(id)).map(|(_, line)| *line)
                }
                _ => None,
            };
            match line {
                Some(line) => named(error, file, line),
                None => error,
            }
        };
        if !edges.is_empty() {
            ctx.view.create_edges(edges).map_err(of_element)?;
            return Ok(());
        }
        let made = ctx.view.create_vertices(vertices, ctx.entropy).map_err(of_element)?;
        for (gui, (meta, line)) in made.into_iter().zip(metas) {
            for Meta { key, value, nth, pairs } in meta {
                for (meta_key, meta_value) in pairs {
                    // The value is looked for among all values of the key.
                    ctx.check()?;
                    let of = MetaOwner { gui, key, value: value.clone(), nth };
                    let written = ctx.view.set_meta_property(of, meta_key, Some(meta_value));
                    written.map_err(|error| named(error, file, line))?;
                }
            }
        }
        Ok(())
    }

    /// Finds the vertices at the ends of edges, in this graph: those of the file have been written.
    fn ends(
        &self,
        batch: &[(FileElement, Vec<Str>)],
        file: &str,
        ctx: &Context<'_>,
    ) -> Result<Vec<(Gui, Gui)>> {
        let mut ids = Vec::with_capacity(2 * batch.len());
        for (element, _) in batch {
            let Some((source, target)) = &element.ends else { continue };
            for end in [source, target] {
                ids.push(id_text(end, ctx).map_err(|error| named(error, file, element.line))?);
            }
        }
        let mut found = vec![];
        if !ids.is_empty() {
            ctx.view.resolve_vertices(&ids, None, &mut found)?;
        }
        let mut ends = Vec::with_capacity(batch.len());
        for ((guis, ids), (element, _)) in found.chunks_exact(2).zip(ids.chunks_exact(2)).zip(batch) {
            let [Some(source), Some(target)] = guis else {
                let missing = usize::from(guis[0].is_some());
                let message = format!(
                    "an edge begins or ends at the vertex {:?}, which is neither in the file nor in the graph",
                    ids[missing]
                );
                return Err(failed(ErrorCode::InvalidArgument, at_line(file, element.line, &message)));
            };
            ends.push((*source, *target));
        }
        Ok(ends)
    }

    /// Returns the properties of a vertex, and those of its properties.
    fn vertex_properties(&self, all: Vec<FileProperty>) -> Result<(Vec<PropertyWrite>, Vec<Meta>)> {
        let (mut writes, mut metas) = (Vec::<PropertyWrite>::with_capacity(all.len()), vec![]);
        let has_meta = all.iter().any(|property| !property.meta.is_empty());
        let mut equal = FxHashMap::<(Token, Value), u32>::default();
        for FileProperty { key, value, meta } in all {
            let Some(value) = storable(&key, value)? else { continue };
            let key = self.tokens.of(&key)?;
            let mut nth = 0;
            if has_meta {
                let seen = equal.entry((key, value.clone())).or_default();
                nth = std::mem::replace(seen, *seen + 1);
            }
            if !meta.is_empty() {
                let pairs = meta.into_iter().filter_map(|(key, value)| {
                    let value = storable(&key, value).transpose()?;
                    Some(value.and_then(|value| Ok((self.tokens.of(&key)?, value))))
                });
                let pairs = pairs.collect::<Result<_>>()?;
                metas.push(Meta { key, value: value.clone(), nth, pairs });
            }
            writes.push(PropertyWrite { key, cardinality: self.cardinality, value });
        }
        keep_all(&mut writes, self.cardinality);
        Ok((writes, metas))
    }
}

/// The properties of one value of a vertex property.
struct Meta {
    key: Token,
    value: Value,
    /// Number among the equal values.
    nth: u32,
    pairs: Vec<(Token, Value)>,
}

/// Gives the keys that have several values a cardinality that keeps all of them.
fn keep_all(writes: &mut [PropertyWrite], default: Cardinality) {
    if default == Cardinality::List {
        return;
    }
    let keys: Vec<Token> = writes.iter().map(|write| write.key).collect();
    let mut order: Vec<usize> = (0..writes.len()).collect();
    order.sort_by_key(|at| keys[*at]);
    for several in order.chunk_by(|a, b| keys[*a] == keys[*b]).filter(|all| all.len() > 1) {
        let distinct: FxHashSet<&Value> = several.iter().map(|at| &writes[*at].value).collect();
        let is_set = distinct.len() == several.len();
        let keeps = if is_set { Cardinality::Set } else { Cardinality::List };
        several.iter().for_each(|at| writes[*at].cardinality = keeps);
    }
}

/// Returns the labels of an element. `a::b` are two labels of a vertex, as in `addV`.
fn labels_of(element: &FileElement) -> Vec<Str> {
    match (&element.ends, &element.label) {
        (None, Some(label)) => label.split("::").map(Str::from).collect(),
        (None, None) => vec!["vertex".into()],
        (Some(_), Some(label)) => vec![label.clone()],
        (Some(_), None) => vec!["edge".into()],
    }
}

fn id_text(id: &Value, ctx: &Context<'_>) -> Result<Str> {
    let expected =
        if ctx.ids.have_types() { "a string, an integer or a UUID as id" } else { "a string as id" };
    ctx.ids.text(id).ok_or_else(|| Error::of_type("an element", expected, id))
}

/// Returns the bytes of memory of an element.
fn heap_bytes(element: &FileElement) -> usize {
    let value = |value: &Value| size_of::<Value>() + value.heap_bytes();
    let property = |property: &FileProperty| {
        let meta = property.meta.iter().map(|(_, of)| size_of::<Str>() + value(of)).sum::<usize>();
        size_of::<FileProperty>() + property.value.heap_bytes() + meta
    };
    let ends = element.ends.iter().map(|(source, target)| source.heap_bytes() + target.heap_bytes());
    size_of::<FileElement>() + ends.sum::<usize>() + element.properties.iter().map(property).sum::<usize>()
}

fn failed(code: ErrorCode, message: String) -> Error {
    Error::GraphFile(FileError::new(code, message))
}

fn at_line(file: &str, line: u64, message: &str) -> String {
    format!("{file}, line {line}: {message}")
}

/// Adds the place of an element to an error about it. An error about the request stays as it is.
fn named(error: Error, file: &str, line: u64) -> Error {
    match error {
        Error::VertexExists(_) | Error::EdgeExists(_) | Error::NotStorable { .. } | Error::Type { .. } => {
            failed(error.code(), at_line(file, line, &error.to_string()))
        }
        other => other,
    }
}

impl Operator for ReadGraph<'_> {
    fn next(&mut self, ctx: &Context<'_>, _: Want<'_>) -> Result<Option<Batch>> {
        let Some(batch) = self.input.next(ctx, Want::ALL)? else { return Ok(None) };
        let urls = compute::column(self.url, &batch, ctx)?;
        (0..batch.len).try_for_each(|row| self.read(&urls.get(row), ctx))?;
        Ok(Some(batch))
    }

    fn feed(&mut self, ctx: &Context<'_>, feed: Feed) {
        self.input.feed(ctx, feed);
    }
}
