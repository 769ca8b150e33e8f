//! Clauses that write: CREATE, MERGE, SET, REMOVE, DELETE, FOREACH.

use super::call::null;
use super::clause_order::{self, Role};
use super::expression::{ID_KEY, expect, id_of, item_types};
use super::pattern::{Names, conflict, require};
use super::types::Types;
use super::{Lowering, Origin, already_declared, label, text};
use crate::ast::{
    Clause, EdgePattern, Expr as Tree, Label, LabelTest, Name, NodePattern, PathPattern, Place, Properties,
    RemoveItem, SetItem,
};
use crate::fault::{Fault, Result};
use std::slice::from_ref;
use tidegraph_plan::{ApplyKind, Comparison, Expr, Function, Op, PropertyAssignment, Slot};
use tidegraph_types::{Cardinality, Direction, Str, Value};

/// Largest number of nested operators of a CREATE.
const CHUNK: u32 = 64;

/// The id and the other properties of an element to be created.
#[derive(Clone, Default)]
struct NewProperties {
    id: Option<Expr>,
    entries: Vec<(Str, Expr)>,
    from: Option<Expr>,
}

/// The slots of a path: vertex, edge, vertex …
type Steps = Vec<Expr>;

impl<'a> Lowering<'a> {
    /// `CREATE pattern, pattern …`. Operators nest below each other, so that a long list becomes chunks of about
    /// [`CHUNK`] operators, which are the leaves of a balanced tree: the depth grows with the logarithm of the length.
    pub(super) fn create(&mut self, mut op: Op, paths: impl Iterator<Item = &'a PathPattern>) -> Result<Op> {
        // Trees of 1, 2, 4 … chunks, the largest and earliest first.
        let mut trees: Vec<(u32, Op)> = vec![];
        let (start, mut deepest) = (self.operators, self.operators);
        for path in paths {
            if self.operators - start > CHUNK {
                deepest = deepest.max(self.operators);
                self.operators = start;
                let mut tree = (0, std::mem::replace(&mut op, Op::Argument));
                while let Some((level, earlier)) = trees.pop_if(|(level, _)| *level == tree.0) {
                    tree = (level + 1, self.one_after_another(earlier, tree.1)?);
                }
                trees.push(tree);
            }
            op = self.create_path(op, path)?;
        }
        self.operators = deepest.max(self.operators);
        self.count_operators(trees.first().map_or(0, |(level, _)| level + trees.len() as u32), self.place)?;
        while let Some((_, earlier)) = trees.pop() {
            op = self.one_after_another(earlier, op)?;
        }
        Ok(op)
    }

    /// Runs a plan for each row of an earlier one.
    fn one_after_another(&self, earlier: Op, plan: Op) -> Result<Op> {
        self.limits.charge(size_of::<Op>())?;
        Ok(Op::Apply { input: Box::new(earlier), plan: Box::new(plan), kind: ApplyKind::Cross })
    }

    fn create_path(&mut self, mut op: Op, path: &'a PathPattern) -> Result<Op> {
        check_creatable(path, "CREATE")?;
        // Vertices first: an edge needs both its ends.
        let mut nodes = Vec::with_capacity(path.nodes.len());
        for node in &path.nodes {
            if let Some(slot) = self.existing_node(node, path)? {
                nodes.push(slot);
                continue;
            }
            let properties = self.new_properties(&node.properties)?;
            op = self.bind_pending(op)?;
            let out = self.slot();
            let labels = self.new_labels(node)?;
            op = self.bind_pending(op)?;
            op = self.op(create_vertex(op, out, labels, properties))?;
            if let Some(name) = &node.variable {
                self.declare(&name.text, out, Types::NODE, Origin::Clause);
            }
            nodes.push(out);
        }
        let mut steps: Steps = nodes.first().copied().map(Expr::Slot).into_iter().collect();
        for (edge, ends) in path.edges.iter().zip(nodes.windows(2)) {
            let properties = self.new_properties(&edge.properties)?;
            op = self.bind_pending(op)?;
            let out = match &edge.variable {
                Some(name) => self.declare_new(name, Types::EDGE)?,
                None if path.variable.is_some() => self.slot(),
                // A row has no place for each of thousands of edges that nothing reads.
                None => self.unnamed_slot(),
            };
            let label = self.new_type(edge)?;
            op = self.bind_pending(op)?;
            op = self.op(create_edge(op, out, (edge, label), (ends[0], ends[1]), properties))?;
            steps.extend([Expr::Slot(out), Expr::Slot(ends[1])]);
        }
        self.make_path(op, path, steps)
    }

    fn unnamed_slot(&mut self) -> Slot {
        let slot = self.unnamed.unwrap_or_else(|| self.slot());
        self.unnamed = Some(slot);
        slot
    }

    /// Returns the slot of a node of CREATE or MERGE that is already bound. The pattern must give its name only.
    fn existing_node(&self, node: &'a NodePattern, path: &'a PathPattern) -> Result<Option<Slot>> {
        let Some(name) = &node.variable else { return Ok(None) };
        if self.find(&name.text).is_none() {
            return Ok(None);
        }
        let plain = node.labels.is_none() && node.properties == Properties::None;
        if !plain || path.edges.is_empty() {
            return Err(already_declared(name));
        }
        let (slot, types) = self.resolve(&name.text, name.place.0)?;
        if !types.meets(Types::NODE) {
            return Err(conflict(name, types, Types::NODE));
        }
        Ok(Some(slot))
    }

    fn new_properties(&mut self, properties: &'a Properties) -> Result<NewProperties> {
        let mut new = NewProperties::default();
        match properties {
            Properties::None => {}
            Properties::Parameter(name, _) => new.from = Some(Expr::Parameter(name.clone())),
            Properties::Map(entries) => {
                for (key, tree) in entries {
                    let value = self.value(tree)?;
                    if key == ID_KEY {
                        new.id = Some(value);
                    } else {
                        new.entries.push((key.clone(), value));
                    }
                }
            }
        }
        Ok(new)
    }

    fn make_path(&mut self, op: Op, path: &'a PathPattern, steps: Steps) -> Result<Op> {
        let Some(name) = &path.variable else { return Ok(op) };
        let slot = self.declare_new(name, Types::PATH)?;
        let bindings = vec![(slot, Expr::Call(Function::MakePath, steps))];
        self.op(Op::Let { input: Box::new(op), bindings })
    }

    pub(super) fn merge(
        &mut self,
        mut op: Op,
        path: &'a PathPattern,
        on_create: &'a [SetItem],
        on_match: &'a [SetItem],
    ) -> Result<Op> {
        check_creatable(path, "MERGE")?;
        for node in &path.nodes {
            self.existing_node(node, path)?;
        }
        for name in path.edges.iter().filter_map(|e| e.variable.as_ref()) {
            if self.find(&name.text).is_some() {
                return Err(already_declared(name));
            }
        }
        // Values are computed once, before matching and creating, and none may be null.
        let mut bindings = vec![];
        let mut node_properties = Vec::with_capacity(path.nodes.len());
        for node in &path.nodes {
            node_properties.push(self.merge_properties(&node.properties, &mut bindings)?);
        }
        let mut edge_properties = Vec::with_capacity(path.edges.len());
        for edge in &path.edges {
            edge_properties.push(self.merge_properties(&edge.properties, &mut bindings)?);
        }
        // Values that read the graph are computed for each row, because they see what earlier rows wrote.
        let reads = !self.pending.is_empty() || bindings.iter().any(|(_, value)| self.reads_elements(value));
        let mut values =
            self.bind_pending(if reads { Op::Argument } else { std::mem::replace(&mut op, Op::Argument) })?;
        if !bindings.is_empty() {
            values = self.op(Op::Let { input: Box::new(values), bindings })?;
        }
        let mut before = Op::Argument;
        if reads {
            before = values;
        } else {
            op = values;
        }

        let mut matched = self.shape(from_ref(path), Names::New)?;
        for (tree, index) in path.nodes.iter().zip(matched.nodes.clone()) {
            let slot = Expr::Slot(matched.pattern.nodes[index].slot);
            for test in tree.labels.iter().flat_map(|test| label::split(test).1) {
                let condition = self.label_test(&slot, Types::NODE, test)?;
                require(&mut matched.pattern, condition);
            }
        }
        for (index, tree) in path.edges.iter().enumerate() {
            if let Some(test) = tree.types.as_ref().filter(|test| test.one_of().is_none()) {
                let slot = Expr::Slot(matched.pattern.edges[index].slot);
                let condition = self.label_test(&slot, Types::EDGE, test)?;
                require(&mut matched.pattern, condition);
            }
        }
        self.refuse_pending(path.place.0)?;
        for (index, properties) in matched.nodes.iter().zip(&node_properties) {
            let node = &mut matched.pattern.nodes[*index];
            node.properties.extend(properties.entries.iter().cloned());
            let slot = node.slot;
            require_id(&mut matched.pattern, slot, properties);
        }
        for (index, properties) in edge_properties.iter().enumerate() {
            let edge = &mut matched.pattern.edges[index];
            edge.properties.extend(properties.entries.iter().cloned());
            let slot = edge.slot;
            require_id(&mut matched.pattern, slot, properties);
        }

        let mut create = before.clone();
        let mut made: Vec<usize> = vec![];
        for ((tree, index), properties) in path.nodes.iter().zip(&matched.nodes).zip(node_properties) {
            let node = &matched.pattern.nodes[*index];
            if !node.bound && !made.contains(index) {
                made.push(*index);
                let labels = self.new_labels(tree)?;
                create = self.op(create_vertex(create, node.slot, labels, properties))?;
            } else if tree.labels.is_some() || tree.properties != Properties::None {
                // The second `a` of `(a)-[:T]->(a:Label)`.
                return Err(tree
                    .variable
                    .as_ref()
                    .map_or_else(|| Fault::syntax(0, "node is already declared"), already_declared));
            }
        }
        let mut steps: Steps = vec![];
        steps.extend(matched.nodes.first().map(|i| Expr::Slot(matched.pattern.nodes[*i].slot)));
        for ((tree, edge), properties) in path.edges.iter().zip(&matched.pattern.edges).zip(edge_properties) {
            let ends = (matched.pattern.nodes[edge.left].slot, matched.pattern.nodes[edge.right].slot);
            let label = self.new_type(tree)?;
            create = self.op(create_edge(create, edge.slot, (tree, label), ends, properties))?;
            steps.extend([Expr::Slot(edge.slot), Expr::Slot(ends.1)]);
        }
        if let Some(named) = matched.pattern.paths.first() {
            let bindings = vec![(named.slot, Expr::Call(Function::MakePath, steps))];
            create = self.op(Op::Let { input: Box::new(create), bindings })?;
        }
        let create = self.set(create, on_create)?;
        let matching = self.op(Op::Match { input: Box::new(before), pattern: matched.pattern })?;
        let matching = self.set(matching, on_match)?;
        self.op(Op::Merge { input: Box::new(op), matching: Box::new(matching), create: Box::new(create) })
    }

    fn merge_properties(
        &mut self,
        properties: &'a Properties,
        bindings: &mut Vec<(Slot, Expr)>,
    ) -> Result<NewProperties> {
        let mut new = NewProperties::default();
        let entries = match properties {
            Properties::None => return Ok(new),
            Properties::Map(entries) => entries,
            Properties::Parameter(name, place) => {
                let message = format!(
                    "parameter ${name} as the properties of a pattern is not allowed in MERGE, expected '{{'"
                );
                return Err(Fault::syntax(place.0, message));
            }
        };
        for (key, tree) in entries {
            let value = match self.value(tree)? {
                Expr::Literal(Value::Null) => {
                    let message = format!("property `{key}` is null in MERGE, expected a value");
                    return Err(Fault::syntax(tree.place.0, message));
                }
                literal @ Expr::Literal(_) => literal,
                value => {
                    let slot = self.slot();
                    let message = format!("property `{key}` is null in MERGE");
                    let checked =
                        Expr::Call(Function::RequireNotNull, vec![value, text(&Str::from(message))]);
                    bindings.push((slot, checked));
                    Expr::Slot(slot)
                }
            };
            if key == ID_KEY {
                new.id = Some(value);
            } else {
                new.entries.push((key.clone(), value));
            }
        }
        Ok(new)
    }

    pub(super) fn set(&mut self, mut op: Op, items: &'a [SetItem]) -> Result<Op> {
        for item in items {
            op = match item {
                SetItem::Property { base, key, value } => {
                    let element = self.target(base, key)?;
                    let value = self.value(value)?;
                    let op = self.bind_pending(op)?;
                    self.set_property(op, element, key, value)?
                }
                SetItem::Map { variable, map, replace } => {
                    let element = self.named_element(variable, Types::ELEMENT)?;
                    let map_value = self.expr(map)?;
                    expect(&map_value, Types::MAP | Types::ELEMENT, map, "SET")?;
                    let input = Box::new(self.bind_pending(op)?);
                    self.op(Op::SetPropertyMap {
                        input,
                        element,
                        map: map_value.expr,
                        replace: *replace,
                        cardinality: Cardinality::Single,
                    })?
                }
                SetItem::Computed { base, key, value } => {
                    let (element, key) = self.computed_target(base, key)?;
                    let value = self.value(value)?;
                    let input = Box::new(self.bind_pending(op)?);
                    let properties = vec![computed_assignment(key, value)];
                    self.op(Op::SetProperties { input, element, properties })?
                }
                SetItem::Labels { variable, labels } => {
                    let element = self.named_element(variable, Types::NODE)?;
                    let (add, remove) = (self.labels(labels)?, vec![]);
                    let input = Box::new(self.bind_pending(op)?);
                    self.op(Op::SetLabels { input, element, add, remove })?
                }
            };
        }
        Ok(op)
    }

    pub(super) fn remove(&mut self, mut op: Op, items: &'a [RemoveItem]) -> Result<Op> {
        for item in items {
            op = match item {
                RemoveItem::Property { base, key } => {
                    let element = self.target(base, key)?;
                    let op = self.bind_pending(op)?;
                    self.set_property(op, element, key, null())?
                }
                RemoveItem::Computed { base, key } => {
                    let (element, key) = self.computed_target(base, key)?;
                    let input = Box::new(self.bind_pending(op)?);
                    let properties = vec![computed_assignment(key, null())];
                    self.op(Op::SetProperties { input, element, properties })?
                }
                RemoveItem::Labels { variable, labels } => {
                    let element = self.named_element(variable, Types::NODE)?;
                    let (add, remove) = (vec![], self.labels(labels)?);
                    let input = Box::new(self.bind_pending(op)?);
                    self.op(Op::SetLabels { input, element, add, remove })?
                }
            };
        }
        Ok(op)
    }

    /// Writes one property, in the same operator as the previous write if that has the same element and neither can
    /// change a value of the other, also for other rows with the same element.
    fn set_property(&mut self, mut op: Op, element: Expr, key: &Str, value: Expr) -> Result<Op> {
        let assignment = assignment(key, value);
        if let Op::SetProperties { element: before, properties, .. } = &mut op
            && *before == element
            && self.reads_no_element(&assignment.value)
            && properties.iter().all(|before| self.reads_no_element(&before.value))
            && !properties.iter().any(|p| p.key == assignment.key)
        {
            properties.push(assignment);
            return Ok(op);
        }
        self.op(Op::SetProperties { input: Box::new(op), element, properties: vec![assignment] })
    }

    /// Whether the value may read an element.
    fn reads_elements(&self, value: &Expr) -> bool {
        match value {
            Expr::Property(..) | Expr::Index(..) if !self.reads_no_element(value) => true,
            Expr::HasLabels(..) => true,
            Expr::Call(Function::Labels | Function::Keys | Function::PropertyMap, _) => true,
            other => other.children().into_iter().any(|child| self.reads_elements(child)),
        }
    }

    /// Refuses a subquery where none can be bound.
    pub(super) fn refuse_pending(&self, place: u32) -> Result<()> {
        if self.pending.is_empty() {
            return Ok(());
        }
        Err(Fault::unsupported(place, "subquery inside a computed label of a pattern"))
    }

    /// Whether the value is independent of the stored graph.
    fn reads_no_element(&self, value: &Expr) -> bool {
        match value {
            Expr::Literal(_) | Expr::Parameter(_) | Expr::Slot(_) => true,
            Expr::Property(base, _) | Expr::Index(base, _) => match **base {
                Expr::Parameter(_) => true,
                Expr::Slot(slot) => {
                    self.scope.iter().any(|v| v.slot == slot && !v.types.meets(Types::ELEMENT))
                }
                _ => false,
            },
            Expr::Arithmetic(_, a, b) => self.reads_no_element(a) && self.reads_no_element(b),
            _ => false,
        }
    }

    /// Lowers the labels of a node to be created.
    fn new_labels(&mut self, node: &'a NodePattern) -> Result<Vec<Expr>> {
        let Some(test) = &node.labels else { return Ok(vec![]) };
        let Some(labels) = test.all() else {
            let message = "a label test with '|', '!' or '%' is not allowed here, expected labels";
            return Err(Fault::syntax(node.place.0, message));
        };
        labels.into_iter().map(|label| self.new_label(label)).collect()
    }

    fn labels(&mut self, labels: &'a [Label]) -> Result<Vec<Expr>> {
        labels.iter().map(|label| self.new_label(label)).collect()
    }

    fn new_label(&mut self, label: &'a Label) -> Result<Expr> {
        match label {
            Label::Name(name) => Ok(text(name)),
            Label::Computed(value, false) => self.value(value),
            Label::Computed(value, true) => {
                Err(Fault::syntax(value.place.0, "$any(…) is not allowed here, expected $(…)"))
            }
        }
    }

    /// Lowers the type of a relationship to be created; `check_creatable` has seen that there is one.
    fn new_type(&mut self, edge: &'a EdgePattern) -> Result<Expr> {
        match &edge.types {
            Some(LabelTest::Has(Label::Computed(value, _))) => {
                let value = self.value(value)?;
                Ok(Expr::Call(Function::Head, vec![Expr::Call(Function::Unfold, vec![value])]))
            }
            Some(LabelTest::Has(Label::Name(name))) => Ok(text(name)),
            _ => Ok(null()),
        }
    }

    /// Lowers the element and the key of a property that is written by a computed key.
    fn computed_target(&mut self, base: &'a Tree, key: &'a Tree) -> Result<(Expr, Expr)> {
        let element = self.expr(base)?;
        expect(&element, Types::ELEMENT, base, "the property to be written")?;
        let key_value = self.expr(key)?;
        expect(&key_value, Types::STRING, key, "the key of a property")?;
        Ok((element.expr, key_value.expr))
    }

    /// Lowers the element whose property is written.
    fn target(&mut self, base: &'a Tree, key: &Str) -> Result<Expr> {
        let element = self.expr(base)?;
        expect(&element, Types::ELEMENT, base, &format!("the property `{key}` to be written"))?;
        if key == ID_KEY {
            return Err(Fault::syntax(base.place.0, "the id of an element cannot be changed"));
        }
        Ok(element.expr)
    }

    fn named_element(&self, name: &Name, wanted: Types) -> Result<Expr> {
        let (slot, types) = self.resolve(&name.text, name.place.0)?;
        if !types.meets(wanted) {
            return Err(conflict(name, types, wanted));
        }
        Ok(Expr::Slot(slot))
    }

    pub(super) fn delete(&mut self, op: Op, detach: bool, trees: &'a [Tree]) -> Result<Op> {
        let mut targets = Vec::with_capacity(trees.len());
        for tree in trees {
            let target = self.expr(tree)?;
            expect(&target, Types::ELEMENT | Types::PATH, tree, "DELETE")?;
            targets.push(target.expr);
        }
        let input = Box::new(self.bind_pending(op)?);
        self.op(Op::Delete { input, targets, detach })
    }

    /// `FOREACH (variable IN list | body)`
    pub(super) fn foreach(
        &mut self,
        op: Op,
        variable: &'a Name,
        list: &'a Tree,
        body: &'a [Clause],
    ) -> Result<Op> {
        clause_order::check(body, Role::Foreach)?;
        let list_value = self.expr(list)?;
        expect(&list_value, Types::LIST, list, "FOREACH")?;
        let input = Box::new(self.bind_pending(op)?);
        let mark = self.scope.len();
        let item = item_types(&list_value);
        let out = self.declare_new(variable, item)?;
        let rows = self.op(Op::Unwind { input: Box::new(Op::Argument), list: list_value.expr, out })?;
        let (plan, _) = self.clauses(rows, body)?;
        self.scope.truncate(mark);
        self.op(Op::Apply { input, plan: Box::new(plan), kind: ApplyKind::Discard })
    }
}

/// Refuses parts of a pattern that can be matched but not created.
fn check_creatable(path: &PathPattern, clause: &str) -> Result<()> {
    let fault = |place: Place, message: String| Err(Fault::syntax(place.0, message));
    let filters =
        path.nodes.iter().map(|node| &node.filter).chain(path.edges.iter().map(|edge| &edge.filter));
    if let Some(filter) = filters.flatten().next() {
        return fault(filter.place, format!("WHERE inside a pattern is not allowed in {clause}"));
    }
    if path.mode.is_some() {
        return fault(path.place, format!("a path mode is not allowed in {clause}"));
    }
    if path.named_inside {
        return fault(
            path.place,
            format!("the name of a path inside parentheses is not allowed in {clause}"),
        );
    }
    if path.selector {
        return fault(path.place, format!("SHORTEST or ANY is not allowed in {clause}"));
    }
    if path.shortest.is_some() {
        return fault(path.place, format!("shortestPath() is not allowed in {clause}"));
    }
    if let Some(filter) = &path.filter {
        return fault(filter.place, format!("WHERE inside a pattern is not allowed in {clause}"));
    }
    for edge in &path.edges {
        if edge.group.is_some() {
            return fault(edge.place, format!("quantified path pattern is not allowed in {clause}"));
        }
        if edge.length.is_some() {
            return fault(edge.place, format!("variable length relationship is not allowed in {clause}"));
        }
        if !matches!(edge.types, Some(LabelTest::Has(_))) {
            let found = edge.types.as_ref().map_or(Some(0), |test| test.one_of().map(|names| names.len()));
            let found = found.map_or("a test of".to_owned(), |found| found.to_string());
            let message = format!("relationship with {found} types in {clause}, expected exactly one type");
            return fault(edge.place, message);
        }
        if edge.direction == Direction::Both && clause == "CREATE" {
            return fault(
                edge.place,
                "relationship without direction in CREATE, expected '->' or '<-'".into(),
            );
        }
    }
    Ok(())
}

fn assignment(key: &Str, value: Expr) -> PropertyAssignment {
    PropertyAssignment { key: text(key), value, cardinality: Cardinality::Single, meta: vec![] }
}

fn computed_assignment(key: Expr, value: Expr) -> PropertyAssignment {
    PropertyAssignment { key, value, cardinality: Cardinality::Single, meta: vec![] }
}

fn assignments(entries: Vec<(Str, Expr)>) -> Vec<PropertyAssignment> {
    entries.into_iter().map(|(key, value)| assignment(&key, value)).collect()
}

fn create_vertex(input: Op, out: Slot, labels: Vec<Expr>, properties: NewProperties) -> Op {
    Op::CreateVertex {
        input: Box::new(input),
        out,
        id: properties.id,
        labels,
        properties: assignments(properties.entries),
        properties_from: properties.from,
    }
}

/// Returns the operator that creates an edge between the ends of its pattern. Without a direction (MERGE), the edge
/// goes from left to right.
fn create_edge(
    input: Op,
    out: Slot,
    (tree, label): (&EdgePattern, Expr),
    (left, right): (Slot, Slot),
    properties: NewProperties,
) -> Op {
    let (from, to) = if tree.direction == Direction::In { (right, left) } else { (left, right) };
    Op::CreateEdge {
        input: Box::new(input),
        out,
        id: properties.id,
        label,
        from: Expr::Slot(from),
        to: Expr::Slot(to),
        properties: assignments(properties.entries),
        properties_from: properties.from,
    }
}

fn require_id(pattern: &mut tidegraph_plan::MatchPattern, slot: Slot, properties: &NewProperties) {
    if let Some(id) = &properties.id {
        require(pattern, Expr::compare(Comparison::Equal, id_of(Expr::Slot(slot)), id.clone()));
    }
}
