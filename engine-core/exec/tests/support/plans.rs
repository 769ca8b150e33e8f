//! Short functions that build plans: each operator is a method of its input.

use tidegraph_plan::{
    AggregateItem, AggregateKind, ApplyKind, BindKind, Branch, Column, Comparison, Expr, Length, Op, Plan,
    PropertyAssignment, ScanFilter, ScanTest, Shortest, Slot, SortKey, TotalOrder,
};
use tidegraph_types::{Cardinality, Direction, Str, Value};

pub fn s(slot: u32) -> Expr {
    Expr::Slot(Slot(slot))
}

pub fn lit(value: impl Into<Value>) -> Expr {
    Expr::Literal(value.into())
}

pub fn prop(slot: u32, key: &str) -> Expr {
    Expr::Property(Box::new(s(slot)), key.into())
}

pub fn eq(a: Expr, b: Expr) -> Expr {
    Expr::compare(Comparison::Equal, a, b)
}

pub fn lt(a: Expr, b: Expr) -> Expr {
    Expr::compare(Comparison::Less, a, b)
}

pub fn add(a: Expr, b: Expr) -> Expr {
    Expr::Arithmetic(tidegraph_plan::Arithmetic::Add, Box::new(a), Box::new(b))
}

pub fn list(items: &[i32]) -> Expr {
    Expr::Literal(Value::list(items.iter().map(|i| (*i).into()).collect()))
}

pub fn assign(key: &str, value: Expr) -> PropertyAssignment {
    assign_as(key, value, Cardinality::Single)
}

pub fn assign_as(key: &str, value: Expr, cardinality: Cardinality) -> PropertyAssignment {
    PropertyAssignment { key: lit(key), value, cardinality, meta: vec![] }
}

pub fn item(out: u32, kind: AggregateKind, args: Vec<Expr>) -> AggregateItem {
    AggregateItem { out: Slot(out), kind, args, distinct: false, empty_is_unbound: false, weighted: false }
}

fn names(names: &[&str]) -> Vec<Str> {
    names.iter().map(|n| Str::from(*n)).collect()
}

fn labels(names: &[&str]) -> Vec<Expr> {
    names.iter().map(|name| Expr::literal(*name)).collect()
}

/// Returns the leaf operator.
pub fn start() -> Op {
    Op::Argument
}

/// Returns a plan whose answer has these slots.
pub fn plan(root: Op, answer: &[u32]) -> Plan {
    let columns =
        answer.iter().map(|slot| Column { name: format!("c{slot}").into(), slot: Slot(*slot) }).collect();
    Plan { root, slots: 16, columns, timeout: None, seed: None, references: false }
}

pub trait Chain: Sized {
    fn op(self) -> Op;

    fn boxed(self) -> Box<Op> {
        Box::new(self.op())
    }
    fn scan(self, out: u32, labels: &[&str]) -> Op {
        let labels = labels.iter().map(|l| names(&[l])).collect();
        let filter = ScanFilter { labels, ..ScanFilter::default() };
        Op::ScanVertices { input: self.boxed(), out: Slot(out), filter, columns: vec![] }
    }
    fn scan_where(self, out: u32, labels: &[&str], key: &str, test: ScanTest) -> Op {
        let labels = labels.iter().map(|l| names(&[l])).collect();
        let filter = ScanFilter { labels, predicates: vec![(key.into(), test)], conditions: vec![] };
        Op::ScanVertices { input: self.boxed(), out: Slot(out), filter, columns: vec![] }
    }
    fn scan_edges(self, out: u32, labels: &[&str]) -> Op {
        Op::ScanEdges { input: self.boxed(), out: Slot(out), labels: names(labels) }
    }
    fn look_up(self, ids: Expr, out: u32) -> Op {
        Op::LookupVertices { input: self.boxed(), ids, out: Slot(out) }
    }
    fn look_up_edges(self, ids: Expr, out: u32) -> Op {
        Op::LookupEdges { input: self.boxed(), ids, out: Slot(out) }
    }
    fn out(self, from: u32, label: &str, to: u32) -> Op {
        let labels: &[&str] = if label.is_empty() { &[] } else { &[label] };
        self.expand(from, Direction::Out, labels, None, to, false)
    }
    fn expand(
        self,
        from: u32,
        direction: Direction,
        labels: &[&str],
        edge: Option<u32>,
        to: u32,
        into: bool,
    ) -> Op {
        Op::Expand {
            input: self.boxed(),
            from: Slot(from),
            direction,
            labels: names(labels),
            edge: edge.map(Slot),
            to: Some(Slot(to)),
            into,
            loops_once: true,
            keep: None,
        }
    }
    fn var(self, from: u32, direction: Direction, min: u32, max: Option<u32>, edges: u32, to: u32) -> Op {
        Op::VarExpand {
            input: self.boxed(),
            from: Slot(from),
            direction,
            labels: vec![],
            length: Length { min, max },
            edges: Some(Slot(edges)),
            to: Slot(to),
            into: false,
            edge_filter: None,
            exclude: vec![],
            ends_only: false,
        }
    }
    fn shortest(
        self,
        from: u32,
        to: u32,
        direction: Direction,
        min: u32,
        max: Option<u32>,
        which: Shortest,
        edges: u32,
    ) -> Op {
        Op::ShortestPath {
            input: self.boxed(),
            from: Slot(from),
            to: Slot(to),
            direction,
            labels: vec![],
            length: Length { min, max },
            which,
            edges: Slot(edges),
            edge_filter: None,
        }
    }
    fn filter(self, predicate: Expr) -> Op {
        Op::Filter { input: self.boxed(), predicate }
    }
    fn bind_let(self, slot: u32, expr: Expr) -> Op {
        Op::Let { input: self.boxed(), bindings: vec![(Slot(slot), expr)] }
    }
    fn keep(self, slots: &[u32]) -> Op {
        Op::Keep { input: self.boxed(), slots: slots.iter().map(|i| Slot(*i)).collect() }
    }
    fn unwind(self, list: Expr, out: u32) -> Op {
        Op::Unwind { input: self.boxed(), list, out: Slot(out) }
    }
    fn aggregate(self, keys: Vec<(u32, Expr)>, items: Vec<AggregateItem>) -> Op {
        let keys = keys.into_iter().map(|(slot, e)| (Slot(slot), e)).collect();
        Op::Aggregate { input: self.boxed(), keys, items }
    }
    fn count(self, out: u32) -> Op {
        self.aggregate(vec![], vec![item(out, AggregateKind::CountRows, vec![])])
    }
    fn distinct(self, by: Vec<Expr>) -> Op {
        Op::Distinct { input: self.boxed(), by }
    }
    fn sort(self, expr: Expr, descending: bool) -> Op {
        Op::Sort {
            input: self.boxed(),
            keys: vec![SortKey { expr, order: TotalOrder::OpenCypher, descending }],
        }
    }
    fn slice(self, skip: Option<i32>, limit: Option<i32>) -> Op {
        Op::Slice { input: self.boxed(), skip: skip.map(lit), limit: limit.map(lit) }
    }
    fn tail(self, count: i32) -> Op {
        Op::Tail { input: self.boxed(), count: lit(count) }
    }
    fn eager(self) -> Op {
        Op::Eager { input: self.boxed() }
    }
    fn apply(self, plan: Op, kind: ApplyKind) -> Op {
        Op::Apply { input: self.boxed(), plan: Box::new(plan), kind }
    }
    fn optional(self, plan: Op, slots: &[u32]) -> Op {
        self.apply(plan, ApplyKind::Optional(slots.iter().map(|i| Slot(*i)).collect()))
    }
    fn bind(self, plan: Op, out: u32, kind: BindKind) -> Op {
        Op::Bind { input: self.boxed(), plan: Box::new(plan), out: Slot(out), kind }
    }
    fn union(self, branches: Vec<Op>) -> Op {
        Op::Union { input: self.boxed(), branches }
    }
    fn coalesce(self, branches: Vec<Op>) -> Op {
        Op::Coalesce { input: self.boxed(), branches }
    }
    fn choose(self, branches: Vec<(Expr, Op)>, otherwise: Option<Op>) -> Op {
        let branches = branches.into_iter().map(|(condition, plan)| Branch { condition, plan }).collect();
        Op::Choose { input: self.boxed(), branches, otherwise: otherwise.map(Box::new) }
    }
    fn create(self, out: u32, id: Option<Expr>, labels: &[&str], properties: Vec<PropertyAssignment>) -> Op {
        Op::CreateVertex {
            input: self.boxed(),
            out: Slot(out),
            id,
            labels: labels.iter().map(|l| lit(*l)).collect(),
            properties,
            properties_from: None,
        }
    }
    fn create_edge(self, out: u32, label: &str, from: u32, to: u32, id: Option<Expr>) -> Op {
        Op::CreateEdge {
            input: self.boxed(),
            out: Slot(out),
            id,
            label: lit(label),
            from: s(from),
            to: s(to),
            properties: vec![],
            properties_from: None,
        }
    }
    fn set(self, slot: u32, properties: Vec<PropertyAssignment>) -> Op {
        Op::SetProperties { input: self.boxed(), element: s(slot), properties }
    }
    fn set_map(self, slot: u32, map: Expr, replace: bool) -> Op {
        Op::SetPropertyMap {
            input: self.boxed(),
            element: s(slot),
            map,
            replace,
            cardinality: Cardinality::Single,
        }
    }
    fn set_labels(self, slot: u32, add: &[&str], remove: &[&str]) -> Op {
        Op::SetLabels { input: self.boxed(), element: s(slot), add: labels(add), remove: labels(remove) }
    }
    fn delete(self, targets: &[u32], detach: bool) -> Op {
        Op::Delete { input: self.boxed(), targets: targets.iter().map(|i| s(*i)).collect(), detach }
    }
    fn merge(self, matching: Op, create: Op) -> Op {
        Op::Merge { input: self.boxed(), matching: Box::new(matching), create: Box::new(create) }
    }
}

impl Chain for Op {
    fn op(self) -> Op {
        self
    }
}
