//! The data of one element for one row, and the functions that read it.

use super::elements::Elements;
use super::error::Error;
use super::property;
use crate::{Context, Result};
use rustc_hash::FxHashMap;
use std::sync::Arc;
use tidegraph_apl::{CellMeta, EdgeRows, PropertyCell, VertexRows};
use tidegraph_plan::Function;
use tidegraph_types::{
    Cardinality, Edge, Gui, Map, PropertyRef, Str, Symbol, Token, Value, element::generated_edge_id,
};

/// The handle of an element.
#[derive(Clone, Copy)]
enum Handle<'e> {
    Vertex(Gui, &'e [Token]),
    Edge(Edge),
}

/// The data of one element, as far as it was read. An absent element has neither labels nor properties.
#[derive(Clone, Copy)]
pub(crate) struct Record<'e> {
    handle: Handle<'e>,
    id: Option<&'e Str>,
    cells: &'e [PropertyCell],
    /// Meta-properties of the cells, if they were read, and the number of the first cell in the answer.
    meta: (&'e [CellMeta], usize),
    /// Whether the element exists for the request.
    present: bool,
}

impl<'e> Record<'e> {
    /// Makes the record of a vertex from a row of an answer.
    pub fn vertex(gui: Gui, rows: &'e VertexRows, row: usize) -> Self {
        let (cells, first) = (rows.cells_of(row), rows.first_cell_of(row));
        let meta = if rows.meta.is_empty() { &[] } else { rows.meta_of(first..first + cells.len()) };
        Self {
            handle: Handle::Vertex(gui, rows.labels_of(row)),
            id: rows.ids.get(row),
            cells,
            meta: (meta, first),
            present: rows.present.get(row).copied().unwrap_or(true),
        }
    }

    /// Makes the record of an edge from a row of an answer.
    pub fn edge(edge: Edge, rows: &'e EdgeRows, row: usize) -> Self {
        Self {
            handle: Handle::Edge(edge),
            id: rows.ids.get(row),
            cells: rows.cells_of(row),
            meta: (&[], 0),
            present: rows.present.get(row).copied().unwrap_or(true),
        }
    }

    /// Makes the record of an edge of which only the handle is needed.
    pub fn handle(edge: Edge) -> Self {
        Self { handle: Handle::Edge(edge), id: None, cells: &[], meta: (&[], 0), present: true }
    }

    /// Returns the element as a value.
    fn value(&self) -> Value {
        match self.handle {
            Handle::Vertex(gui, _) => Value::Vertex(gui),
            Handle::Edge(edge) => Value::Edge(edge),
        }
    }

    /// Refuses a read of a deleted element if the request's language forbids it.
    pub fn check(&self, ctx: &Context<'_>, what: &str) -> Result<()> {
        if self.present || !ctx.deleted_is_error {
            return Ok(());
        }
        let element = match self.handle {
            Handle::Vertex(..) => "vertex",
            Handle::Edge(_) => "edge",
        };
        Err(Error::Deleted { what: what.to_owned(), element }.into())
    }

    /// Borrows the only value of a key; `None` if there is none or there are several.
    pub fn single(&self, token: Token) -> Option<&'e Value> {
        let mut values = self.cells.iter().filter(|cell| cell.key == token).map(|cell| &cell.value);
        let first = values.next();
        if values.next().is_some() { None } else { first }
    }

    /// Reads the property of a key for an expression, for which a deleted element may be an error.
    pub fn read(&self, ctx: &Context<'_>, key: &str, token: Option<Token>) -> Result<Value> {
        self.check(ctx, key)?;
        Ok(self.property(token))
    }

    /// Returns the property of a key: null if absent, its value, or a list if it has several values.
    fn property(&self, token: Option<Token>) -> Value {
        token.map_or(Value::Null, |token| tidegraph_apl::value_of(self.cells, token))
    }

    /// Whether a vertex has all of the labels, or with `any` one of them; whether an edge has one of them.
    pub fn has_labels(&self, elements: &Elements<'_, '_>, labels: &[Str], any: bool) -> bool {
        let has = |label: &Str| {
            elements.token(label).is_some_and(|token| match self.handle {
                Handle::Vertex(_, own) => own.contains(&token),
                Handle::Edge(edge) => edge.label == token,
            })
        };
        if any || matches!(self.handle, Handle::Edge(_)) {
            labels.iter().any(has)
        } else {
            labels.iter().all(has)
        }
    }

    /// Returns the meta-properties of a property of this vertex, with their names.
    pub fn meta_of(&self, elements: &Elements<'_, '_>, property: &PropertyRef) -> Vec<(Str, Value)> {
        let (meta, first) = self.meta;
        let Some(key) = elements.token(&property.key).filter(|_| !meta.is_empty()) else { return vec![] };
        let mut equivalent =
            (first..).zip(self.cells).filter(|(_, cell)| cell.key == key && cell.value == property.value);
        let Some((number, _)) = equivalent.nth(property.nth as usize) else { return vec![] };
        let own = meta.iter().filter(|meta| meta.cell as usize == number);
        own.map(|meta| (elements.name(meta.key), meta.value.clone())).collect()
    }

    /// Returns the text of the id.
    pub(super) fn id_text(&self) -> Option<Str> {
        match (self.id, self.handle) {
            (Some(id), _) if !id.is_empty() => Some(id.clone()),
            // A deleted edge without a chosen id still has the id that is generated from its handle.
            (_, Handle::Edge(edge)) => Some(generated_edge_id(edge.source, edge.sid)),
            _ => None,
        }
    }

    fn id(&self, elements: &Elements<'_, '_>) -> Value {
        self.id_text().map_or(Value::Null, |text| elements.ids().value(&text))
    }

    fn label(&self, elements: &Elements<'_, '_>) -> Str {
        match self.handle {
            Handle::Vertex(_, labels) => elements.joined(labels),
            Handle::Edge(edge) => elements.name(edge.label),
        }
    }

    /// Calls a function of this element. `args` are the arguments after the element.
    pub fn call(
        &self,
        elements: &Elements<'_, '_>,
        function: Function,
        name: &'static str,
        args: &[Value],
    ) -> Result<Value> {
        Ok(match function {
            Function::Id => self.id(elements),
            Function::Label => Value::String(self.label(elements)),
            Function::Labels => match self.handle {
                Handle::Vertex(_, labels) => {
                    Value::list(labels.iter().map(|label| Value::String(elements.name(*label))).collect())
                }
                Handle::Edge(_) => return Err(Error::of_type(name, "a vertex", &self.value()).into()),
            },
            Function::Type => match self.handle {
                Handle::Edge(edge) => Value::String(elements.name(edge.label)),
                Handle::Vertex(..) => return Err(Error::of_type(name, "an edge", &self.value()).into()),
            },
            Function::Keys => {
                Value::list(self.groups(elements, &[]).map(|(key, _)| Value::String(key)).collect())
            }
            Function::PropertyMap => {
                let entries = self.groups(elements, &[]).map(|(key, cells)| {
                    (Value::String(key), self.property(cells.first().map(|cell| cell.key)))
                });
                Value::map(entries.collect())
            }
            Function::PropertyValues => {
                let cells = self.groups(elements, args).flat_map(|(_, cells)| cells);
                Value::list(cells.map(|cell| cell.value.clone()).collect())
            }
            Function::Properties => {
                let owner = self.value();
                let of = |(key, cells): (Str, &'e [PropertyCell])| properties(&owner, &key, cells);
                Value::list(self.groups(elements, args).flat_map(of).collect())
            }
            Function::ValueMap => self.value_map(elements, args),
            Function::ElementMap => self.element_map(elements, args)?,
            Function::GremlinPropertyMap => {
                let owner = self.value();
                let entries = self.groups(elements, args).map(|(key, cells)| {
                    let all = properties(&owner, &key, cells);
                    let value = match self.handle {
                        Handle::Vertex(..) => Value::list(all),
                        Handle::Edge(_) => all.into_iter().next().unwrap_or_default(),
                    };
                    (Value::String(key.clone()), value)
                });
                Value::map(entries.collect())
            }
            Function::AsText => Value::string(self.text(elements)?),
            // `HasProperty` is the only one left.
            _ => match args.first() {
                Some(Value::String(key)) => {
                    let token = elements.token(key);
                    Value::Bool(self.cells.iter().any(|cell| Some(cell.key) == token))
                }
                Some(Value::Null | Value::Unbound) | None => Value::Bool(false),
                Some(other) => return Err(Error::of_type(name, "a string as key", other).into()),
            },
        })
    }

    /// Returns the element as TinkerPop writes it: `v[id]`, or `e[id][source-label->target]`.
    pub(super) fn text(&self, elements: &Elements<'_, '_>) -> Result<String> {
        let ids = elements.ids();
        let id = self.id_text().unwrap_or_default();
        let id = ids.shown(&id);
        match self.handle {
            Handle::Vertex(..) => Ok(format!("v[{id}]")),
            Handle::Edge(edge) => {
                let ((source, _), (target, _)) =
                    (elements.end(edge, edge.source)?, elements.end(edge, edge.target)?);
                let (source, target) = (ids.shown(&source), ids.shown(&target));
                Ok(format!("e[{id}][{source}-{}->{target}]", elements.name(edge.label)))
            }
        }
    }

    /// Returns property keys with their values: the requested keys in that order, or all in stored order.
    fn groups<'s>(
        &'s self,
        elements: &'s Elements<'_, '_>,
        keys: &'s [Value],
    ) -> impl Iterator<Item = (Str, &'e [PropertyCell])> + 's {
        let chosen = keys.iter().enumerate().filter_map(move |(at, key)| match key {
            // A repeated key counts once.
            Value::String(key) if !keys[..at].contains(&keys[at]) => {
                let token = elements.token(key)?;
                let from = self.cells.iter().position(|cell| cell.key == token)?;
                let len = self.cells[from..].iter().take_while(|cell| cell.key == token).count();
                Some((key.clone(), &self.cells[from..from + len]))
            }
            _ => None,
        });
        let all = if keys.is_empty() { self.cells } else { &[] };
        let all = all.chunk_by(|a, b| a.key == b.key).map(|cells| (elements.name(cells[0].key), cells));
        chosen.chain(all)
    }

    fn value_map(&self, elements: &Elements<'_, '_>, args: &[Value]) -> Value {
        let mut map = Map::new();
        if has_token(args, Symbol::Id) {
            map.insert(Value::Symbol(Symbol::Id), self.id(elements));
        }
        if has_token(args, Symbol::Label) {
            map.insert(Value::Symbol(Symbol::Label), Value::String(self.label(elements)));
        }
        for (key, cells) in self.groups(elements, args.get(1..).unwrap_or_default()) {
            let value = match self.handle {
                Handle::Vertex(..) => Value::list(cells.iter().map(|cell| cell.value.clone()).collect()),
                Handle::Edge(_) => cells[0].value.clone(),
            };
            map.insert(Value::String(key), value);
        }
        Value::map(map)
    }

    fn element_map(&self, elements: &Elements<'_, '_>, keys: &[Value]) -> Result<Value> {
        let mut map = Map::with_capacity(4 + self.cells.len());
        map.insert(Value::Symbol(Symbol::Id), self.id(elements));
        map.insert(Value::Symbol(Symbol::Label), Value::String(self.label(elements)));
        if let Handle::Edge(edge) = self.handle {
            for (symbol, gui) in [(Symbol::In, edge.target), (Symbol::Out, edge.source)] {
                let (id, label) = elements.end(edge, gui)?;
                let mut end = Map::with_capacity(2);
                end.insert(Value::Symbol(Symbol::Id), elements.ids().value(&id));
                end.insert(Value::Symbol(Symbol::Label), Value::String(label));
                map.insert(Value::Symbol(symbol), Value::map(end));
            }
        }
        for (key, cells) in self.groups(elements, keys) {
            if let Some(last) = cells.last() {
                map.insert(Value::String(key), last.value.clone());
            }
        }
        Ok(Value::map(map))
    }
}

/// Whether the first argument of `ValueMap` asks for a token: true for all of them, or the token itself.
pub(super) fn has_token(args: &[Value], token: Symbol) -> bool {
    match args.first() {
        Some(Value::Bool(all)) => *all,
        Some(Value::Symbol(one)) => *one == token,
        _ => false,
    }
}

/// Returns the values of one key as properties.
fn properties(owner: &Value, key: &Str, cells: &[PropertyCell]) -> Vec<Value> {
    // Only a list holds equivalent values.
    let is_list = cells.len() > 1 && cells[0].cardinality == Cardinality::List;
    let mut seen: FxHashMap<&Value, u32> = FxHashMap::default();
    let property = |cell: &'_ PropertyCell, nth| {
        let (owner, key, value) = (owner.clone(), key.clone(), cell.value.clone());
        Value::Property(Arc::new(PropertyRef { owner, key, value, nth }))
    };
    let mut all = Vec::with_capacity(cells.len());
    for cell in cells {
        let nth = if is_list {
            let seen = seen.entry(&cell.value).or_default();
            *seen += 1;
            *seen - 1
        } else {
            0
        };
        all.push(property(cell, nth));
    }
    all
}

/// Calls an element function of a value that is no element: a map, a property, anything else.
pub(crate) fn call_other(
    elements: &Elements<'_, '_>,
    function: Function,
    name: &'static str,
    value: &Value,
    args: &[Value],
) -> Result<Value> {
    let wrong = |expected| Err(Error::of_type(name, expected, value).into());
    match (function, value) {
        (Function::HasProperty, other) if other.is_null() => Ok(Value::Bool(false)),
        (_, Value::Unbound) => Ok(Value::Unbound),
        (_, Value::Null) => Ok(Value::Null),
        (Function::AsText, other) => super::text_of::text(elements, other),
        (Function::Keys, Value::Map(map)) => Ok(Value::list(map.keys().cloned().collect())),
        (Function::PropertyMap, Value::Map(_)) => Ok(value.clone()),
        (Function::HasProperty, Value::Map(map)) => {
            Ok(Value::Bool(args.first().is_some_and(|key| map.contains_key(key))))
        }
        (_, Value::Property(property)) => property::call(elements, function, name, property, args),
        (Function::Labels, _) => wrong("a vertex"),
        (Function::Type, _) => wrong("an edge"),
        (Function::Keys | Function::PropertyMap | Function::HasProperty, _) => wrong("a vertex, edge or map"),
        (Function::Id | Function::Label, _) => wrong("a vertex, edge or property"),
        _ => wrong("a vertex or edge"),
    }
}
