//! Draws traversals. The kind of the present object is known after every step, so that all steps fit.

use super::ast::{By, Pick, Predicate, Repeat, Step, Traversal};
use crate::graph::{Graph, INT_KEYS, LABELS, MIXED_KEY, TEXT_KEY, TYPES, random_key, random_value};
use crate::value::Val;
use rand::Rng;
use rand::seq::IndexedRandom;
use rand_chacha::ChaCha8Rng;

/// Steps from a string to a string.
const TEXT_STEPS: [&str; 7] = [
    "toUpper()",
    "toLower()",
    "reverse()",
    "concat('x', null)",
    "replace('a', 'bb')",
    "substring(1, -1)",
    "asString()",
];

/// What the present object is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Vertex,
    Edge,
    Int,
    Text,
    Mixed,
    Other,
}

/// Draws traversals.
pub struct Generator<'a> {
    rng: &'a mut ChaCha8Rng,
    ids: Vec<String>,
    steps: Vec<Step>,
    kind: Kind,
    labels: Vec<(String, Kind)>,
    /// Whether path and labels of a traverser are defined: not after `dedup`, a slice or a reduction.
    has_history: bool,
    /// Whether traversers have a sack.
    has_sack: bool,
    depth: usize,
}

/// Operators of sacks.
const OPERATORS: [&str; 6] = ["sum", "minus", "mult", "min", "max", "assign"];

impl<'a> Generator<'a> {
    /// Makes a generator for a graph.
    pub fn new(rng: &'a mut ChaCha8Rng, graph: &Graph) -> Self {
        let ids = graph.live_nodes().map(|(_, node)| node.id.clone()).collect();
        let (steps, labels) = (vec![], vec![]);
        Self { rng, ids, steps, kind: Kind::Vertex, labels, has_history: true, has_sack: false, depth: 0 }
    }

    /// Draws a traversal that reads.
    pub fn read(mut self) -> Traversal {
        self.has_sack = self.coin(0.2);
        if self.has_sack {
            let merge = self.coin(0.6).then(|| ["sum", "min", "max"][self.rng.random_range(0..3)]);
            self.steps.push(Step::WithSack(self.rng.random_range(0..5), merge));
        }
        self.start();
        for _ in 0..self.rng.random_range(1..7) {
            self.any_step();
        }
        if self.is_aggregated() && self.rng.random_bool(0.3) {
            self.steps.push(Step::Cap("s".to_owned()));
        } else if self.rng.random_bool(0.5) {
            self.ending();
        }
        Traversal::new(self.steps)
    }

    /// Whether a step has collected the side effect `s`.
    fn is_aggregated(&self) -> bool {
        self.steps.iter().any(|step| matches!(step, Step::Aggregate(_)))
    }

    /// Draws a step that collects a side effect or reads it.
    fn side_effect(&mut self) {
        if self.kind == Kind::Other {
            return;
        }
        let key = "s".to_owned();
        let step = match self.is_aggregated() {
            true if self.coin(0.7) => Step::WhereIn(self.rng.random(), key),
            _ => Step::Aggregate(key),
        };
        self.steps.push(step);
    }

    /// Draws a traversal that writes.
    pub fn write(mut self) -> Traversal {
        if self.rng.random_bool(0.2) {
            let label = self.label();
            self.steps.push(Step::AddV(label));
        } else {
            self.start();
            for _ in 0..self.rng.random_range(0..3) {
                if self.rng.random_bool(0.5) { self.filter() } else { self.walk() }
            }
        }
        if !matches!(self.kind, Kind::Vertex | Kind::Edge) {
            return Traversal::new(self.steps);
        }
        if !self.ids.is_empty() && self.kind == Kind::Vertex && self.rng.random_bool(0.25) {
            let id = self.ids.choose(self.rng).cloned().unwrap_or_default();
            let label = TYPES[self.rng.random_range(0..3)].to_owned();
            self.steps.push(Step::AddE(label, self.rng.random(), id));
            self.kind = Kind::Edge;
        }
        match self.rng.random_range(0..10) {
            0..=1 => self.steps.push(Step::Drop),
            _ => {
                let key = random_key(self.rng);
                let value = random_value(self.rng, key);
                self.steps.push(Step::Property(self.kind == Kind::Vertex, key.to_owned(), value));
                if self.rng.random_bool(0.6) {
                    self.steps.push(Step::Values(random_key(self.rng).to_owned()));
                }
            }
        }
        Traversal::new(self.steps)
    }

    fn start(&mut self) {
        if self.rng.random_bool(0.15) {
            self.steps.push(Step::E);
            self.kind = Kind::Edge;
        } else {
            let ids = if self.rng.random_bool(0.15) && !self.ids.is_empty() {
                let mut ids: Vec<String> =
                    self.ids.iter().filter(|_| self.rng.random_bool(0.3)).cloned().collect();
                ids.push("nobody".to_owned());
                ids
            } else {
                vec![]
            };
            self.steps.push(Step::V(ids));
        }
    }

    fn coin(&mut self, probability: f64) -> bool {
        self.rng.random_bool(probability)
    }

    fn label(&mut self) -> String {
        let last = if self.coin(0.03) { 4 } else { 3 };
        LABELS[self.rng.random_range(0..last)].to_owned()
    }

    fn edge_labels(&mut self) -> Vec<String> {
        TYPES.iter().filter(|_| self.rng.random_bool(0.2)).map(|label| (*label).to_owned()).collect()
    }

    fn predicate(&mut self, key: &str) -> Predicate {
        let value = random_value(self.rng, key);
        match key {
            MIXED_KEY => match self.rng.random_range(0..3) {
                0 => Predicate::Compare("neq", value),
                1 => Predicate::Compare("eq", value),
                _ => Predicate::List("within", vec![value, random_value(self.rng, key)]),
            },
            TEXT_KEY if self.coin(0.3) => {
                Predicate::Compare(["startingWith", "containing"][self.rng.random_range(0..2)], value)
            }
            _ => match self.rng.random_range(0..10) {
                0..=4 => {
                    let name = ["eq", "neq", "gt", "gte", "lt", "lte"][self.rng.random_range(0..6)];
                    Predicate::Compare(name, value)
                }
                5..=6 => {
                    let name = ["between", "inside", "outside"][self.rng.random_range(0..3)];
                    Predicate::Range(name, value, random_value(self.rng, key))
                }
                7..=8 => {
                    let name = ["within", "without"][self.rng.random_range(0..2)];
                    Predicate::List(name, vec![value, random_value(self.rng, key)])
                }
                _ => {
                    let name = ["and", "or"][self.rng.random_range(0..2)];
                    let (a, b) = (Predicate::Compare("gte", value), random_value(self.rng, key));
                    Predicate::Both(name, Box::new(a), Box::new(Predicate::Compare("lt", b)))
                }
            },
        }
    }

    /// Draws a traversal inside a step, from an object of this kind. Returns it with the kind of its result.
    fn inside(&mut self, draw: impl FnOnce(&mut Self)) -> (Traversal, Kind) {
        let steps = std::mem::take(&mut self.steps);
        let (kind, labels, has_history) = (self.kind, std::mem::take(&mut self.labels), self.has_history);
        self.depth += 1;
        draw(self);
        self.depth -= 1;
        let inner = Traversal::new(std::mem::replace(&mut self.steps, steps));
        let end = std::mem::replace(&mut self.kind, kind);
        (self.labels, self.has_history) = (labels, has_history);
        (inner, end)
    }

    /// Draws a condition: a traversal with or without a result.
    fn condition(&mut self) -> Traversal {
        let (inner, _) = self.inside(|at| {
            for _ in 0..at.rng.random_range(1..3) {
                at.simple_step();
            }
            if at.coin(0.2) {
                at.steps.push(Step::Reduce("count"));
                at.kind = Kind::Int;
                at.has_history = false;
                at.filter();
            }
        });
        inner
    }

    fn simple_step(&mut self) {
        if self.coin(0.5) { self.walk() } else { self.filter() }
    }

    /// Draws a step that goes elsewhere.
    fn walk(&mut self) {
        let step = match self.kind {
            Kind::Vertex => match self.rng.random_range(0..10) {
                0..=5 => Step::Move(["out", "in", "both"][self.rng.random_range(0..3)], self.edge_labels()),
                6..=8 => {
                    self.kind = Kind::Edge;
                    Step::Move(["outE", "inE", "bothE"][self.rng.random_range(0..3)], self.edge_labels())
                }
                _ => self.values(),
            },
            Kind::Edge => match self.rng.random_range(0..8) {
                0 => self.values(),
                1 => {
                    self.kind = Kind::Text;
                    Step::Label
                }
                _ => {
                    self.kind = Kind::Vertex;
                    Step::End(["inV", "outV", "bothV"][self.rng.random_range(0..3)])
                }
            },
            Kind::Text => match self.rng.random_range(0..10) {
                0..=1 => {
                    self.kind = Kind::Int;
                    Step::Scalar("length()")
                }
                _ => Step::Scalar(TEXT_STEPS[self.rng.random_range(0..TEXT_STEPS.len())]),
            },
            Kind::Int => match self.rng.random_range(0..10) {
                0..=2 => {
                    // Doubles are numbers to which no other step of these applies.
                    self.kind = Kind::Other;
                    Step::Scalar("math('_ * 2 - 1')")
                }
                3..=5 => Step::Scalar("asNumber()"),
                _ => {
                    self.kind = Kind::Text;
                    Step::Scalar("asString()")
                }
            },
            Kind::Mixed | Kind::Other => return,
        };
        self.steps.push(step);
    }

    fn values(&mut self) -> Step {
        let key = random_key(self.rng);
        self.kind = match key {
            TEXT_KEY => Kind::Text,
            MIXED_KEY => Kind::Mixed,
            _ => Kind::Int,
        };
        Step::Values(key.to_owned())
    }

    /// Draws a step that keeps or drops traversers.
    fn filter(&mut self) {
        let step = match self.kind {
            Kind::Vertex | Kind::Edge => match self.rng.random_range(0..11) {
                0..=1 if self.kind == Kind::Vertex => Step::HasLabel(vec![self.label()]),
                0..=1 => Step::HasLabel(vec![TYPES[self.rng.random_range(0..4)].to_owned()]),
                2..=5 => {
                    let key = random_key(self.rng);
                    Step::Has(key.to_owned(), self.predicate(key))
                }
                6 => Step::HasKey(random_key(self.rng).to_owned(), self.coin(0.5)),
                7 if self.kind == Kind::Vertex && !self.ids.is_empty() => {
                    Step::HasId(self.ids.choose(self.rng).cloned().unwrap_or_default())
                }
                _ if self.depth >= 2 => return,
                8 => {
                    let tests = (0..2).map(|_| self.condition()).collect();
                    Step::Connect(["and", "or"][self.rng.random_range(0..2)], tests)
                }
                _ => Step::Test(["not", "where", "filter"][self.rng.random_range(0..3)], self.condition()),
            },
            Kind::Int => Step::Is(self.predicate(INT_KEYS[0])),
            Kind::Text => Step::Is(self.predicate(TEXT_KEY)),
            Kind::Mixed => Step::Is(self.predicate(MIXED_KEY)),
            Kind::Other => return,
        };
        self.steps.push(step);
    }

    fn any_step(&mut self) {
        match self.rng.random_range(0..21) {
            0..=5 => self.walk(),
            6..=9 => self.filter(),
            10 => self.distinct(),
            11 => self.order(),
            12..=13 => self.branch(),
            14..=15 => self.repeat(),
            16 if self.has_history => {
                let label = ["x", "y", "z"][self.labels.len().min(2)].to_owned();
                self.labels.retain(|(other, _)| *other != label);
                self.labels.push((label.clone(), self.kind));
                self.steps.push(Step::As(label));
            }
            17 if self.has_history => self.recall(),
            19 if self.has_sack && self.has_history => self.sack(),
            20 => self.side_effect(),
            18 if self.has_history => self.steps.push(Step::PathTest(self.rng.random())),
            _ => self.walk(),
        }
    }

    /// Draws a step that writes or reads the sack.
    fn sack(&mut self) {
        // Labels that a child gives tell traversers apart, and whether they are kept is left to the engine.
        let is_inner = |step: &Step| !matches!(step, Step::As(_)) && step.to_string().contains("as('");
        if self.coin(0.4) && !self.steps.iter().any(is_inner) {
            self.steps.push(Step::Barrier);
            return;
        }
        if self.coin(0.3) {
            self.steps.push(Step::Sack);
            self.kind = Kind::Int;
            return;
        }
        let operator = OPERATORS[self.rng.random_range(0..OPERATORS.len())];
        let element = matches!(self.kind, Kind::Vertex | Kind::Edge);
        let by = if element && self.coin(0.5) {
            Ok(INT_KEYS[self.rng.random_range(0..2)].to_owned())
        } else {
            Err(self.rng.random_range(0..4))
        };
        self.steps.push(Step::ToSack(operator, by));
    }

    fn recall(&mut self) {
        let Some((label, kind)) = self.labels.choose(self.rng).cloned() else { return };
        if kind == self.kind && self.coin(0.5) {
            self.steps.push(Step::WhereSame(self.rng.random(), label));
        } else {
            self.steps.push(Step::Select(vec![label]));
            self.kind = kind;
        }
    }

    fn distinct(&mut self) {
        let element = matches!(self.kind, Kind::Vertex | Kind::Edge);
        // With `by`, which of several objects stays is open: count them.
        if element && self.coin(0.2) {
            self.steps.push(Step::Dedup(Some(random_key(self.rng).to_owned())));
            self.steps.push(Step::Reduce("count"));
            self.kind = Kind::Int;
        } else if self.kind != Kind::Other {
            self.steps.push(Step::Dedup(None));
        }
        self.has_history = false;
    }

    /// Draws an order of all objects that differ, and perhaps a slice.
    fn order(&mut self) {
        let mut keys = vec![];
        match self.kind {
            Kind::Vertex | Kind::Edge => {
                if self.coin(0.5) {
                    keys.push((By::Key(random_key(self.rng).to_owned()), self.rng.random()));
                } else if self.kind == Kind::Vertex && self.coin(0.3) {
                    let degree = vec![Step::Move("out", vec![]), Step::Reduce("count")];
                    keys.push((By::Traversal(Traversal::new(degree)), self.rng.random()));
                }
                keys.push((By::Id, self.rng.random()));
            }
            Kind::Int | Kind::Text | Kind::Mixed => keys.push((By::Object, self.rng.random())),
            Kind::Other => return,
        }
        self.steps.push(Step::Order(keys));
        if self.coin(0.7) {
            let count = self.rng.random_range(0..4);
            let step = match self.rng.random_range(0..4) {
                0 => Step::Slice("limit", count),
                1 => Step::Slice("skip", count),
                2 => Step::Slice("tail", count.max(1)),
                _ => Step::Range(count, count + self.rng.random_range(0..3)),
            };
            self.steps.push(step);
            self.has_history = false;
        }
    }

    fn branch(&mut self) {
        if self.depth >= 2 || !matches!(self.kind, Kind::Vertex | Kind::Edge) {
            return;
        }
        let wanted = if self.coin(0.7) { Kind::Vertex } else { Kind::Int };
        match self.rng.random_range(0..7) {
            6 => {
                let key = random_key(self.rng);
                let count = self.rng.random_range(1..4);
                let lead_to = if wanted == Kind::Int { Kind::Int } else { self.kind };
                let mut options = vec![];
                for _ in 0..count {
                    let pick = match self.rng.random_range(0..6) {
                        0..=1 => Pick::Value(random_value(self.rng, key)),
                        2..=3 => Pick::Test(self.predicate(key)),
                        4 => Pick::None,
                        _ => Pick::Unproductive,
                    };
                    options.push((pick, self.leading_to(lead_to)));
                }
                self.steps.push(Step::Options(key.to_owned(), options));
                if lead_to == Kind::Int {
                    // A traverser without an option passes, as what it is.
                    self.kind = Kind::Other;
                    self.has_history = false;
                }
                return;
            }
            0..=1 => {
                let count = self.rng.random_range(1..4);
                let branches = (0..count).map(|_| self.leading_to(wanted)).collect();
                self.steps.push(Step::Branch("union", branches));
            }
            2 => {
                let count = self.rng.random_range(1..4);
                let branches = (0..count).map(|_| self.leading_to(wanted)).collect();
                self.steps.push(Step::Branch("coalesce", branches));
            }
            3 => {
                let (test, then) = (self.condition(), self.leading_to(wanted));
                let otherwise = self.leading_to(wanted);
                self.steps.push(Step::Choose(test, then, otherwise));
            }
            4 => {
                let inner = self.leading_to(self.kind);
                self.steps.push(Step::Nested("optional", inner));
                return;
            }
            _ => {
                let inner = self.leading_to(wanted);
                self.steps.push(Step::Nested("local", inner));
            }
        }
        self.kind = wanted;
        if wanted == Kind::Int {
            // Its branches may reduce.
            self.has_history = false;
        }
    }

    /// Draws a traversal from the present object to one of a kind: a vertex, an edge or a number.
    fn leading_to(&mut self, wanted: Kind) -> Traversal {
        let (inner, _) = self.inside(|at| {
            if at.coin(0.4) {
                at.filter();
            }
            if at.kind == Kind::Vertex && wanted == Kind::Edge {
                let labels = at.edge_labels();
                at.steps.push(Step::Move(["outE", "bothE"][at.rng.random_range(0..2)], labels));
            } else if at.kind == Kind::Edge && wanted == Kind::Vertex {
                at.steps.push(Step::End(["inV", "outV"][at.rng.random_range(0..2)]));
            } else if at.kind == Kind::Vertex && at.coin(0.6) {
                let labels = at.edge_labels();
                at.steps.push(Step::Move(["out", "in", "both"][at.rng.random_range(0..3)], labels));
            }
            if wanted == Kind::Int {
                if at.kind == Kind::Vertex && at.coin(0.3) {
                    at.steps.push(Step::Reduce("count"));
                } else if at.coin(0.1) {
                    at.steps.push(Step::Constant(Val::Int(at.rng.random_range(0..3))));
                } else {
                    at.steps.push(Step::Values(INT_KEYS[at.rng.random_range(0..2)].to_owned()));
                }
            }
        });
        inner
    }

    fn repeat(&mut self) {
        // The modulators of two neighbours could belong to either.
        if self.depth > 0 || self.kind != Kind::Vertex || matches!(self.steps.last(), Some(Step::Repeat(_))) {
            return;
        }
        let simple = self.has_history && self.coin(0.4);
        let counts = self.has_sack && self.has_history && self.coin(0.5);
        let (body, _) = self.inside(|at| {
            let labels = at.edge_labels();
            at.steps.push(Step::Move(["out", "in", "both"][at.rng.random_range(0..3)], labels));
            if at.coin(0.3) {
                let key = random_key(at.rng);
                let predicate = at.predicate(key);
                at.steps.push(Step::Has(key.to_owned(), predicate));
            }
            if counts {
                at.steps.push(Step::ToSack("sum", Err(1)));
            }
            if simple {
                at.steps.push(Step::PathTest(true));
            }
        });
        let until = self.coin(0.4).then(|| self.condition());
        let emit =
            self.coin(0.4).then(|| if self.coin(0.5) { Traversal::default() } else { self.condition() });
        let bound = self.rng.random_range(1..4);
        let (until_first, emit_first) = (self.rng.random(), self.rng.random());
        self.steps.push(Step::Repeat(Box::new(Repeat { body, bound, until, until_first, emit, emit_first })));
    }

    /// Draws a step after which nothing follows.
    fn ending(&mut self) {
        let element = matches!(self.kind, Kind::Vertex | Kind::Edge);
        let step = match self.rng.random_range(0..9) {
            0 => Step::Reduce("count"),
            1..=2 if self.kind == Kind::Int => {
                Step::Reduce(["sum", "min", "max", "mean"][self.rng.random_range(0..4)])
            }
            1 if self.kind == Kind::Text => Step::Reduce(["min", "max"][self.rng.random_range(0..2)]),
            3 => Step::Reduce("fold"),
            4 if element => {
                let key = self.by_key();
                let value = match self.rng.random_range(0..3) {
                    0 => By::Object,
                    1 => By::Traversal(Traversal::new(vec![Step::Reduce("count")])),
                    _ => {
                        let values = Step::Values(random_key(self.rng).to_owned());
                        By::Traversal(Traversal::new(vec![values, Step::Reduce("fold")]))
                    }
                };
                Step::Group(key, value)
            }
            5 if element => Step::GroupCount(self.by_key()),
            5 if matches!(self.kind, Kind::Int | Kind::Text | Kind::Mixed) => Step::GroupCount(By::Object),
            6 if element => {
                let degree = if self.kind == Kind::Vertex {
                    let labels = self.edge_labels();
                    vec![Step::Move("both", labels), Step::Reduce("count")]
                } else {
                    vec![Step::End("inV"), Step::Id]
                };
                let key = By::Key(random_key(self.rng).to_owned());
                let degree = By::Traversal(Traversal::new(degree));
                Step::Project(vec![("k".to_owned(), key), ("d".to_owned(), degree), ("i".to_owned(), By::Id)])
            }
            7 if self.has_history => Step::Path,
            8 if self.labels.len() > 1 && self.has_history => {
                Step::Select(self.labels.iter().map(|(label, _)| label.clone()).collect())
            }
            _ => return,
        };
        self.steps.push(step);
    }

    fn by_key(&mut self) -> By {
        match self.rng.random_range(0..4) {
            0 => By::Id,
            1 if self.kind == Kind::Vertex => {
                By::Traversal(Traversal::new(vec![Step::Move("out", vec![]), Step::Reduce("count")]))
            }
            _ => By::Key(random_key(self.rng).to_owned()),
        }
    }
}
