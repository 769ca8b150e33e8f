//! Tests of whole loads against a simple model graph.

#![allow(clippy::disallowed_methods, reason = "a test reaches the machine itself")]

use super::steps::{Next, Request, Round, Steps};
use super::*;
use crate::reject::Code;
use crate::segments::{Kind, SegmentReader};
use crate::source::{Access, Allowed};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use tidegraph_types::{Cardinality, Edge, ErrorCode, Gui, GuiHasher, Mutation, Value};

/// A graph that is simple enough to be correct: it applies committed loads by its own rules.
#[derive(Clone, Default)]
struct Model {
    bits: u32,
    tokens: RefCell<Vec<Str>>,
    next_sid: Cell<u64>,
    vertices: BTreeMap<Gui, Vertex>,
    exceptions: BTreeMap<Str, Gui>,
    edges: BTreeMap<u64, StoredEdge>,
}

type StoredEdge = (Edge, Option<Str>, BTreeMap<Token, Value>);

#[derive(Clone, Default)]
struct Vertex {
    id: Str,
    labels: BTreeSet<Token>,
    properties: BTreeMap<Token, Vec<Value>>,
}

impl Model {
    fn new(bits: u32) -> Self {
        Self { bits, ..Self::default() }
    }

    fn apply(&mut self, objects: &Objects, outcome: &Outcome) {
        let partitions = self.partitions();
        for segment in &outcome.segments {
            let mut reader = SegmentReader::open(objects, &segment.object).unwrap();
            while let Some(block) = reader.next_block().unwrap() {
                for mutation in block {
                    match mutation {
                        Mutation::AddException { id, gui } => {
                            assert_eq!(segment.kind, Kind::Exceptions);
                            self.exceptions.insert(id, gui);
                        }
                        Mutation::CreateVertex { gui, id, labels, properties } => {
                            let vertex = self
                                .vertices
                                .entry(gui)
                                .or_insert_with(|| Vertex { id: id.clone(), ..Vertex::default() });
                            assert_eq!(vertex.id, id, "two ids under one GUI");
                            vertex.labels.extend(labels);
                            for write in properties {
                                let values = vertex.properties.entry(write.key).or_default();
                                if write.cardinality == Cardinality::Single {
                                    values.clear();
                                }
                                if !values.contains(&write.value) {
                                    values.push(write.value);
                                }
                            }
                        }
                        Mutation::CreateEdge { edge, id, properties } => {
                            assert!(self.vertices.contains_key(&edge.source), "an edge without its source");
                            assert!(self.vertices.contains_key(&edge.target), "an edge without its target");
                            let entry =
                                self.edges.entry(edge.sid.0).or_insert((edge, id.clone(), BTreeMap::new()));
                            assert_eq!((entry.0, &entry.1), (edge, &id));
                            if partitions.of(edge.source) == segment.partition {
                                entry.2.extend(properties);
                            }
                        }
                        Mutation::SetEdgeProperty { edge, key, value } => {
                            self.edges.get_mut(&edge.sid.0).unwrap().2.insert(key, value);
                        }
                        other => panic!("{other:?}"),
                    }
                }
            }
        }
    }

    fn gui(&self, id: &str) -> Option<Gui> {
        let gui = self.exceptions.get(id).copied().unwrap_or_else(|| self.hasher().gui(id));
        self.vertices.get(&gui).filter(|v| v.id == id).map(|_| gui)
    }

    fn name(&self, token: Token) -> String {
        self.tokens.borrow()[token.0 as usize].to_string()
    }

    /// Returns everything as text, in an order that does not depend on GUIs.
    fn dump(&self) -> Vec<String> {
        let mut lines: Vec<String> = self
            .vertices
            .values()
            .map(|v| {
                let mut labels: Vec<_> = v.labels.iter().map(|t| self.name(*t)).collect();
                labels.sort();
                let mut properties: Vec<_> = v
                    .properties
                    .iter()
                    .map(|(k, values)| {
                        let mut values: Vec<_> = values.iter().map(super::vertices::show).collect();
                        values.sort();
                        format!(" {}={}", self.name(*k), values.join("|"))
                    })
                    .collect();
                properties.sort();
                format!("{} [{}]{}", v.id, labels.join(","), properties.concat())
            })
            .collect();
        lines.extend(self.edges.values().map(|(edge, id, properties)| {
            let end = |gui| &self.vertices[&gui].id;
            let mut properties: Vec<_> = properties
                .iter()
                .map(|(k, v)| format!(" {}={}", self.name(*k), super::vertices::show(v)))
                .collect();
            properties.sort();
            let id = id.as_deref().unwrap_or("-");
            format!(
                "{id}: {}-{}->{}{}",
                end(edge.source),
                self.name(edge.label),
                end(edge.target),
                properties.concat()
            )
        }));
        lines.sort();
        lines
    }
}

impl LoadTarget for Model {
    fn graph(&self) -> &str {
        "test"
    }
    fn partitions(&self) -> PartitionCount {
        PartitionCount::new(4).unwrap()
    }
    fn hasher(&self) -> GuiHasher {
        GuiHasher::with_bits(self.bits)
    }
    fn is_empty(&self) -> Result<bool, Error> {
        Ok(self.vertices.is_empty())
    }
    fn intern(&self, names: &[Str]) -> Result<Vec<Token>, Error> {
        let mut tokens = self.tokens.borrow_mut();
        let token = |name: &Str| {
            let at = tokens.iter().position(|t| t == name).unwrap_or_else(|| {
                tokens.push(name.clone());
                tokens.len() - 1
            });
            Token(at as u32)
        };
        Ok(names.iter().map(token).collect())
    }
    fn allocate_sids(&self, count: u64) -> Result<std::ops::Range<u64>, Error> {
        let first = self.next_sid.get();
        self.next_sid.set(first + count);
        Ok(first..first + count)
    }
    fn vertices(&self, ids: &[Str]) -> Result<Vec<Found>, Error> {
        let found = ids.iter().map(|id| match self.gui(id) {
            Some(gui) => Found::Present(gui),
            None if self.vertices.contains_key(&self.hasher().gui(id)) => Found::Taken,
            None => Found::Absent,
        });
        Ok(found.collect())
    }
    fn occupied(&self, guis: &[Gui]) -> Result<Vec<bool>, Error> {
        Ok(guis.iter().map(|g| self.vertices.contains_key(g)).collect())
    }
    fn vertex_values(&self, wanted: &[(Gui, Token)]) -> Result<Vec<Vec<Value>>, Error> {
        let values = |(gui, key): &(Gui, Token)| self.vertices.get(gui)?.properties.get(key).cloned();
        Ok(wanted.iter().map(|w| values(w).unwrap_or_default()).collect())
    }
    fn edges(&self, ids: &[Str]) -> Result<Vec<Option<Edge>>, Error> {
        let find = |id: &Str| self.edges.values().find(|(_, i, _)| i.as_ref() == Some(id)).map(|(e, ..)| *e);
        Ok(ids.iter().map(find).collect())
    }
    fn edge_values(&self, wanted: &[(Edge, Token)]) -> Result<Vec<Option<Value>>, Error> {
        Ok(wanted.iter().map(|(e, k)| self.edges.get(&e.sid.0)?.2.get(k).cloned()).collect())
    }
}

fn source(files: &[(&str, &str)]) -> Source {
    let objects = Objects::memory().unwrap();
    for (name, text) in files {
        objects.put(name, text.as_bytes().to_vec()).unwrap();
    }
    Source::objects(objects, "mem://b", "", &|| false).unwrap()
}

fn config(dialect: Dialect) -> Config {
    Config { fail_on_error: false, parallelism: Parallelism::Low, ..Config::new("l", dialect) }
}

/// Runs a load in one process and in steps. Both must have the same result.
fn load_with(model: &mut Model, config: &Config, files: &[(&str, &str)]) -> Outcome {
    let divided =
        config.done.is_empty().then(|| [1, 7, 1_000_000].map(|bytes| in_steps(model, config, files, bytes)));
    let objects = Objects::memory().unwrap();
    let outcome = run(config, &source(files), model, &objects, &()).unwrap();
    model.apply(&objects, &outcome);
    for (other, found) in divided.into_iter().flatten() {
        assert_eq!(other.dump(), model.dump());
        assert_eq!(found.counts, outcome.counts);
        assert_eq!((found.vertices, found.edges), (outcome.vertices, outcome.edges));
        // If files are read in parallel, it depends on timing which of two files counts as the repetition.
        if config.parallelism == Parallelism::Low {
            let states =
                |outcome: &Outcome| outcome.files.iter().map(|f| (f.state, f.counts)).collect::<Vec<_>>();
            assert_eq!(states(&found), states(&outcome));
        }
        let sorted = |outcome: &Outcome| {
            let mut errors = errors(outcome);
            errors.sort();
            errors
        };
        assert_eq!(sorted(&found), sorted(&outcome));
    }
    outcome
}

/// Runs a load in steps, with chunks and groups of `bytes` bytes. Each task gets a new
/// worker. Three workers each run every third task, and the report of the first one is lost.
fn in_steps(model: &Model, config: &Config, files: &[(&str, &str)], bytes: u64) -> (Model, Outcome) {
    let dir = tempfile::tempdir().unwrap();
    for (name, text) in files {
        std::fs::write(dir.path().join(name), text).unwrap();
    }
    let folder = format!("file://{}", dir.path().display());
    let request = Request {
        dialect: Some(config.dialect),
        options: config.options.clone(),
        fail_on_error: config.fail_on_error,
        update_single_cardinality_properties: config.update_single_cardinality_properties,
        chunk_bytes: bytes,
        group_bytes: bytes,
        ..Request::new(folder.clone())
    };
    let objects = Objects::memory().unwrap();
    let round = Round { version: 0, unique: Vec::new() };
    let steps = Steps::begin("l", &request, model, &objects).unwrap();
    steps.begin_round(0, &round).unwrap();
    let mut next = steps.first();
    while let Next::Work(stage, tasks) = &next {
        // In reverse, because the order of tasks must not matter.
        for task in tasks.iter().rev() {
            let steps = Steps::open("l", model, &objects).unwrap();
            steps.work(*stage, 0, *task, "first").unwrap();
            if task % 3 == 1 {
                let name = serde_json::to_string(stage).unwrap().replace('"', "");
                objects.delete(&format!("ingest/l/r0/{name}/{task:05}.json")).unwrap();
                steps.work(*stage, 0, *task, "second").unwrap();
                steps.work(*stage, 0, *task, "third").unwrap();
            }
        }
        next = steps.next(*stage, 0).unwrap();
    }
    assert_eq!(next, Next::Commit);
    let mut outcome = steps.outcome(0, Status::Completed).unwrap();
    let mut model = model.clone();
    model.apply(&objects, &outcome);
    let noted = steps.vertex_ids(0).unwrap();
    assert!(model.vertices.iter().all(|(gui, vertex)| !noted.collides(*gui, &vertex.id)));
    for rejected in &mut outcome.errors {
        rejected.file = rejected.file.replace(&folder, "mem://b").into();
    }
    steps.clear().unwrap();
    assert_eq!(objects.list("ingest/").unwrap(), []);
    (model, outcome)
}

fn load(model: &mut Model, dialect: Dialect, files: &[(&str, &str)]) -> Outcome {
    load_with(model, &config(dialect), files)
}

fn errors(outcome: &Outcome) -> Vec<String> {
    outcome.errors.iter().map(|e| format!("{} {e}", e.code.as_str())).collect()
}

#[test]
fn vertices_come_before_edges_whatever_the_names() {
    let mut model = Model::new(64);
    let outcome = load(
        &mut model,
        Dialect::GREMLIN,
        &[
            ("a_edges.csv", "~id,~from,~to,~label,w:double\ne1,a,b,knows,0.5\n"),
            ("b.csv", "~id,~label,name,age:int\na,person,Ann,40\nb,,,\n"),
        ],
    );
    assert_eq!(errors(&outcome), Vec::<String>::new());
    assert_eq!(model.dump(), ["a [person] age=40 name=Ann", "b [vertex]", "e1: a-knows->b w=0.5"]);
    assert_eq!(outcome.status, Status::Completed);
    assert_eq!((outcome.vertices, outcome.edges), (2, 1));
    assert_eq!((outcome.counts.rows, outcome.counts.total_records), (3, 6));
    assert_eq!(outcome.done().count(), 2);
}

#[test]
fn repeated_vertices_merge_and_are_counted() {
    let mut model = Model::new(64);
    let text = "~id,~label,name,team\nP-2,Player,Kohli,India\nP-2,Player,Kohli,India\n";
    let outcome = load(&mut model, Dialect::GREMLIN, &[("v.csv", text)]);
    // The example from the documentation of the loader API.
    assert_eq!((outcome.counts.total_records, outcome.counts.total_duplicates), (6, 3));
    let more = "~id,~label,name\nP-2,Captain,Virat\n";
    load(&mut model, Dialect::GREMLIN, &[("w.csv", more)]);
    load(&mut model, Dialect::GREMLIN, &[("x.csv", "~id,age:int\nP-2,30\n")]);
    assert_eq!(model.dump(), ["P-2 [Captain,Player] age=30 name=Kohli|Virat team=India"]);
}

#[test]
fn edges_to_missing_vertices_are_refused() {
    let mut model = Model::new(64);
    load(&mut model, Dialect::GREMLIN, &[("v.csv", "~id\nold\n")]);
    let files =
        [("e.csv", "~id,~from,~to\ne1,old,new\ne2,old,nowhere\ne3,gone,new\n"), ("v.csv", "~id\nnew\n")];
    let outcome = load(&mut model, Dialect::GREMLIN, &files);
    assert_eq!(
        errors(&outcome),
        [
            "FROM_OR_TO_VERTEX_ARE_MISSING mem://b/e.csv, line 3, column ~to, value \"nowhere\": the to vertex \
             \"nowhere\" is neither in the graph nor in this load",
            "FROM_OR_TO_VERTEX_ARE_MISSING mem://b/e.csv, line 4, column ~from, value \"gone\": the from vertex \
             \"gone\" is neither in the graph nor in this load",
        ]
    );
    assert_eq!(outcome.counts.insert_errors, 2);
    assert_eq!(outcome.files[0].state, FileState::DoneWithErrors);
    assert_eq!(model.dump(), ["e1: old-edge->new", "new [vertex]", "old [vertex]"]);
}

#[test]
fn single_cardinality_within_a_load_and_against_the_graph() {
    let mut model = Model::new(64);
    let files = [
        ("1.csv", "~id,n:int(single),s\na,1,x\nb,1,x\n"),
        ("2.csv", "~id,n:int(single),s\na,1,y\nb,2,y\nc,3,z\n"),
    ];
    let outcome = load(&mut model, Dialect::GREMLIN, &files);
    let refused = "SINGLE_CARDINALITY_VIOLATION mem://b/2.csv, line 3, column n, value \"2\": vertex \"b\" has the \
                   value 1 for the single-cardinality property \"n\"";
    assert_eq!(errors(&outcome), [refused]);
    let third = [("3.csv", "~id,n:int(single),m:int(single)\na,1,5\nb,7,5\n")];
    let outcome = load(&mut model, Dialect::GREMLIN, &third);
    assert_eq!(outcome.errors.len(), 1);
    assert_eq!(outcome.errors[0].code, Code::SingleCardinality);
    assert_eq!(model.dump(), ["a [vertex] m=5 n=1 s=x|y", "b [vertex] n=1 s=x", "c [vertex] n=3 s=z"]);
    let update = Config { update_single_cardinality_properties: true, ..config(Dialect::GREMLIN) };
    let outcome = load_with(&mut model, &update, &third);
    assert!(outcome.errors.is_empty());
    assert_eq!(model.dump()[1], "b [vertex] m=5 n=7 s=x");
}

#[test]
fn rows_that_repeat_a_vertex_are_not_written_again() {
    let mut model = Model::new(64);
    let row = "a,L,1\nb,L,2\n";
    let text = format!("~id,~label,n:int(single)\n{}a,M,1\n", row.repeat(1_000));
    let small = Config { waiting_bytes: 10_000, ..config(Dialect::GREMLIN) };
    // The vertices are new the first time, and in the graph the second time.
    for _ in 0..2 {
        let outcome = load_with(&mut model, &small, &[("v.csv", &text)]);
        assert_eq!(errors(&outcome), Vec::<String>::new());
        let written: u64 = outcome.segments.iter().map(|s| s.mutations).sum();
        assert_eq!(written, 3, "each vertex once, and the label that came later");
        assert_eq!(model.dump(), ["a [L,M] n=1", "b [L] n=2"]);
    }
}

#[test]
fn repeated_edge_ids_in_gremlin_files() {
    let mut model = Model::new(64);
    let vertices = ("v.csv", "~id\na\nb\n");
    let edges = "~id,~from,~to,~label,w:int,x:int\n\
                 e1,a,b,k,1,\ne1,a,b,k,,2\ne1,a,b,k,1,2\ne1,a,b,k,9,\ne1,b,a,k,,\ne2,a,b,k,,\n";
    let outcome = load(&mut model, Dialect::GREMLIN, &[vertices, ("e.csv", edges)]);
    let found: Vec<_> = outcome.errors.iter().map(|e| (e.line, e.code)).collect();
    assert_eq!(found, [(5, Code::SingleCardinality), (6, Code::EdgeIdReused)]);
    assert_eq!(model.dump()[1..], ["b [vertex]", "e1: a-k->b w=1 x=2", "e2: a-k->b"]);
    // The same against a graph that has the elements.
    let outcome =
        load(&mut model, Dialect::GREMLIN, &[("e.csv", &(edges.to_owned() + "e2,a,b,k,4,\ne2,a,b,k,,5\n"))]);
    let found: Vec<_> = outcome.errors.iter().map(|e| (e.line, e.code)).collect();
    assert_eq!(found, [(5, Code::SingleCardinality), (6, Code::EdgeIdReused)]);
    assert_eq!(outcome.edges, 0);
    assert_eq!(model.dump()[2..], ["e1: a-k->b w=1 x=2", "e2: a-k->b w=4 x=5"]);
}

#[test]
fn repeated_ids_in_opencypher_files() {
    let mut model = Model::new(64);
    let nodes = ":ID,:LABEL,n:int,m:int\na,A,1,\na,B,2,3\nb,,,\n";
    let edges = ":ID,:START_ID,:END_ID,:TYPE,w:int\nr,a,b,T,1\nr,b,a,T,2\n";
    let outcome = load(&mut model, Dialect::OPENCYPHER, &[("n.csv", nodes), ("r.csv", edges)]);
    assert_eq!(errors(&outcome), Vec::<String>::new());
    assert_eq!(outcome.counts.total_duplicates, 2);
    assert_eq!(model.dump(), ["a [A,B] m=3 n=2", "b []", "r: a-T->b w=1"]);
    // Existing values stay; missing ones are added.
    let nodes = ":ID,:LABEL,n:int,o:int\na,C,7,8\n";
    let edges = ":ID,:START_ID,:END_ID,:TYPE,w:int,x:int\nr,a,b,T,5,6\n";
    let outcome = load(&mut model, Dialect::OPENCYPHER, &[("n.csv", nodes), ("r.csv", edges)]);
    assert_eq!(errors(&outcome), Vec::<String>::new());
    assert_eq!(model.dump(), ["a [A,B,C] m=3 n=2 o=8", "b []", "r: a-T->b w=1 x=6"]);
}

#[test]
fn edges_without_ids_are_as_many_as_their_rows() {
    let mut model = Model::new(64);
    let config = Config {
        options: Options { user_provided_edge_ids: false, ..Options::default() },
        ..config(Dialect::OPENCYPHER)
    };
    let files = [
        ("n.csv", ":ID\na\nb\n"),
        ("r.csv", ":START_ID,:END_ID,:TYPE,w:int\na,b,T,1\na,b,T,1\nb,nobody,T,2\n"),
    ];
    for times in 1..3 {
        let outcome = load_with(&mut model, &config, &files);
        assert_eq!((outcome.edges, outcome.counts.insert_errors), (2, 1));
        assert_eq!(model.dump(), [vec!["-: a-T->b w=1"; 2 * times], vec!["a []", "b []"]].concat());
    }
}

#[test]
fn id_spaces_keep_equal_ids_apart() {
    let mut model = Model::new(64);
    let files = [
        ("1.csv", "name:ID(person)\nann\n"),
        ("2.csv", "name:ID(dog)\nann\n"),
        ("3.csv", ":ID,:START_ID(person),:END_ID(dog),:TYPE\nr,ann,ann,OWNS\n"),
    ];
    let outcome = load(&mut model, Dialect::OPENCYPHER, &files);
    assert_eq!(errors(&outcome), Vec::<String>::new());
    assert_eq!(
        model.dump(),
        ["dog:ann [] name=ann", "person:ann [] name=ann", "r: person:ann-OWNS->dog:ann"]
    );
}

/// With a hash of few bits nearly every id collides. The graph must be the same as without collisions.
#[test]
fn colliding_ids_stay_apart() {
    let vertices: String = (0..300).map(|i| format!("v{},l{},{}\n", i % 200, i % 3, i)).collect();
    let edges: String = (0..300)
        .map(|i| format!("e{},v{},v{},k\n", i % 250, (i % 250) % 210, ((i % 250) * 7) % 200))
        .collect();
    let again: String = (150..260).map(|i| format!("v{i},again,{i}\n")).collect();
    let run_with = |bits| {
        let mut model = Model::new(bits);
        let files = [
            ("v.csv", format!("~id,~label,n:int\n{vertices}")),
            ("e.csv", format!("~id,~from,~to,~label\n{edges}")),
        ];
        let files: Vec<_> = files.iter().map(|(n, t)| (*n, t.as_str())).collect();
        let first = load(&mut model, Dialect::GREMLIN, &files);
        let text = format!("~id,~label,n:int\n{again}");
        let second =
            load(&mut model, Dialect::GREMLIN, &[("w.csv", &text), ("x.csv", "~id,~from,~to\nz,v0,v259\n")]);
        let exceptions = model.exceptions.len();
        (model.dump(), errors(&first), errors(&second), exceptions)
    };
    let exact = run_with(64);
    assert_eq!(exact.3, 0);
    assert_eq!(exact.1.len(), 10, "v200 to v209 are not there");
    for bits in [1, 3, 6] {
        let found = run_with(bits);
        assert_eq!((&found.0, &found.1, &found.2), (&exact.0, &exact.1, &exact.2), "{bits} bits");
        assert!(found.3 > 100, "{} exceptions", found.3);
    }
}

#[test]
fn the_first_error_ends_the_load_and_leaves_nothing() {
    let objects = Objects::memory().unwrap();
    let model = Model::new(64);
    let files = source(&[("v.csv", "~id,n:int\n1,1\n2,x\n3,y\n")]);
    let strict = Config { buffer_bytes: 1, ..Config::new("l", Dialect::GREMLIN) };
    let outcome = run(&strict, &files, &model, &objects, &()).unwrap();
    assert_eq!(outcome.status, Status::Failed);
    assert_eq!(outcome.errors.len(), 1);
    assert_eq!(outcome.files[0].state, FileState::NotDone);
    assert_eq!(objects.list("").unwrap(), []);
}

#[test]
fn bad_files_are_told_and_the_others_loaded() {
    let mut model = Model::new(64);
    let files = [("a.csv", "~label\nx\n"), ("b.csv", "~id\nb\n"), ("c.csv.gz", "not gzip")];
    let outcome = load(&mut model, Dialect::GREMLIN, &files);
    let states: Vec<_> = outcome.files.iter().map(|f| f.state).collect();
    assert_eq!(states, [FileState::Failed, FileState::Done, FileState::Failed]);
    assert_eq!(outcome.counts.parsing_errors, 2);
    assert_eq!(model.dump(), ["b [vertex]"]);
}

#[test]
fn files_that_are_done_are_skipped() {
    let files = [("a.csv", "~id\na\n"), ("b.csv", "~id\nb\n")];
    let listed = source(&files);
    let objects = Objects::memory().unwrap();
    let resumed = |change: fn(&mut Stamp)| {
        let mut resume = config(Dialect::GREMLIN);
        let mut stamp = listed.files()[0].stamp();
        change(&mut stamp);
        resume.done.insert("mem://b/a.csv".into(), stamp);
        run(&resume, &listed, &Model::new(64), &objects, &()).unwrap()
    };
    let outcome = resumed(|_| {});
    assert_eq!((outcome.files[0].state, outcome.vertices), (FileState::Skipped, 1));
    assert_eq!(outcome.done().count(), 2);
    // A file that has changed since is loaded again.
    let changes: [fn(&mut Stamp); 2] = [|stamp| stamp.bytes += 1, |stamp| stamp.etag = Some("other".into())];
    for change in changes {
        let outcome = resumed(change);
        assert_eq!((outcome.files[0].state, outcome.vertices), (FileState::Done, 2));
    }
}

#[test]
fn a_load_is_cancelled_in_the_middle_of_a_record_that_does_not_end() {
    struct Ends(AtomicUsize);
    impl Control for Ends {
        fn cancelled(&self) -> bool {
            self.0.fetch_add(1, Ordering::Relaxed) > 2
        }
    }
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("a.csv");
    std::fs::write(&path, "~id\n").unwrap();
    // One record of a tebibyte, of which the file system keeps nothing.
    std::fs::File::options().write(true).open(&path).unwrap().set_len(1 << 40).unwrap();
    let everything = Allowed::everything();
    let endless = Source::open(&path.display().to_string(), &Access::to(&everything)).unwrap();
    for edge_only in [true, false] {
        let config = Config { edge_only, ..config(Dialect::GREMLIN) };
        let control = Ends(AtomicUsize::default());
        let result = run(&config, &endless, &Model::new(64), &Objects::memory().unwrap(), &control);
        assert_eq!(result.unwrap_err().code(), ErrorCode::Cancelled);
    }
}

#[test]
fn a_load_can_be_cancelled_and_tells_its_progress() {
    struct Ends(Mutex<Progress>);
    impl Control for Ends {
        fn cancelled(&self) -> bool {
            self.0.lock().unwrap().rows >= 3000
        }
        fn progress(&self, progress: &Progress) {
            *self.0.lock().unwrap() = *progress;
        }
    }
    let text = (0..20_000).fold("~id,a:int\n".to_owned(), |text, i| text + &format!("{i},{i}\n"));
    let objects = Objects::memory().unwrap();
    let small = Config { buffer_bytes: 10_000, ..config(Dialect::GREMLIN) };
    let control = Ends(Mutex::default());
    let result = run(&small, &source(&[("a.csv", &text)]), &Model::new(64), &objects, &control);
    assert_eq!(result.unwrap_err().code(), ErrorCode::Cancelled);
    let progress = *control.0.lock().unwrap();
    assert!((3000..5000).contains(&progress.rows), "{progress:?}");
    assert_eq!(progress.bytes_total, text.len() as u64);
    assert!(progress.bytes_read > 0);
    assert_eq!(objects.list("").unwrap(), []);
}

/// The same files give the same graph, whatever the memory for waiting rows and the number of threads are.
#[test]
fn budgets_and_threads_change_nothing() {
    let rows: String = (0..3000).map(|i| format!("v{},{},{}\n", i % 700, i, (i % 700) * 2)).collect();
    let vertices = format!("~id,s:int,n:int(single)\n{rows}");
    let edges: String =
        (0..2000).map(|i| format!("e{},v{},v1,k,{}\n", i % 900, (i % 900) % 700, i % 900)).collect();
    let edges = format!("~id,~from,~to,~label,w:int\n{edges}");
    let files = [("v.csv", vertices.as_str()), ("w.csv", vertices.as_str()), ("e.csv", edges.as_str())];
    let mut expected = None;
    for (waiting, threads) in
        [(1, Parallelism::High), (64 << 20, Parallelism::Low), (20_000, Parallelism::High)]
    {
        let mut model = Model::new(64);
        let config = Config {
            waiting_bytes: waiting,
            parallelism: threads,
            buffer_bytes: 50_000,
            ..config(Dialect::GREMLIN)
        };
        let outcome = load_with(&mut model, &config, &files);
        assert_eq!(errors(&outcome), Vec::<String>::new());
        assert_eq!((outcome.vertices, outcome.edges), (700, 900));
        let dump = model.dump();
        assert_eq!(expected.get_or_insert_with(|| dump.clone()), &dump);
    }
}
