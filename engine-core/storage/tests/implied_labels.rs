//! What the label of an edge says of its ends holds at every version that can be read, whatever is written, loaded and
//! restored.

// The whole file is a test, its helpers too.
#![allow(clippy::unwrap_used)]

use rand::prelude::IndexedRandom;
use rand::{Rng, SeedableRng, rngs::StdRng};
use std::collections::BTreeMap;
use std::sync::Arc;
use tidegraph_apl::{Apl, At};
use tidegraph_platform::{ManualClock, Objects};
use tidegraph_storage::checkpoint::restore_newest;
use tidegraph_storage::{CheckpointMeta, Pin, Store, StoreConfig};
use tidegraph_types::{
    Direction, Edge, Epoch, Gui, GuiHasher, Mutation, PartitionCount, Sid, Token, Version,
};

const PERSON: Token = Token(1);
const STUDENT: Token = Token(2);
const MESSAGE: Token = Token(3);
const KNOWS: Token = Token(20);
const LIKES: Token = Token(21);
const DIRECTIONS: [Direction; 3] = [Direction::Out, Direction::In, Direction::Both];

fn gui(number: u32) -> Gui {
    GuiHasher::default().gui(&format!("v{number}"))
}

fn config() -> StoreConfig {
    let mut config = StoreConfig::new(Arc::new(ManualClock::default()));
    config.partitions = PartitionCount::new(4).unwrap();
    config
}

/// The labels of vertices and the edges at a version.
#[derive(Clone, Default)]
struct Truth {
    labels: BTreeMap<Gui, Vec<Token>>,
    edges: BTreeMap<Sid, Edge>,
}

impl Truth {
    /// Whether all ends of these edges in a direction have these labels.
    fn holds(&self, edge_labels: &[Token], direction: Direction, labels: &[Token]) -> bool {
        let has = |gui: &Gui| labels.iter().all(|label| self.labels[gui].contains(label));
        self.edges.values().filter(|edge| edge_labels.contains(&edge.label)).all(|edge| match direction {
            Direction::Out => has(&edge.source),
            Direction::In => has(&edge.target),
            Direction::Both => has(&edge.source) && has(&edge.target),
        })
    }
}

/// How often storage was asked, and knew that the ends of edges, which there are, have labels.
#[derive(Default)]
struct Asked {
    of_edges: u32,
    known: u32,
}

/// Compares what storage knows of every combination of labels. `exactly`: it must know all that is true.
fn check(store: &Store, version: Version, truth: &Truth, exactly: bool, asked: &mut Asked) {
    let at = At { version, epoch: Epoch(0) };
    for edge_labels in [&[KNOWS][..], &[LIKES], &[KNOWS, LIKES]] {
        let has_edges = truth.edges.values().any(|edge| edge_labels.contains(&edge.label));
        for direction in DIRECTIONS {
            for labels in [&[PERSON][..], &[STUDENT], &[MESSAGE], &[PERSON, STUDENT]] {
                let known = store.edges_imply_labels(at, edge_labels, direction, labels);
                let holds = truth.holds(edge_labels, direction, labels);
                let what = || format!("{edge_labels:?} {direction:?} {labels:?} at {version}");
                assert!(holds || !known, "not all ends have the labels: {}", what());
                assert!(!exactly || known || !holds, "it is true, and not known: {}", what());
                asked.of_edges += u32::from(has_edges);
                asked.known += u32::from(has_edges && known);
            }
        }
    }
    assert!(!store.edges_imply_labels(at, &[], Direction::Out, &[PERSON]), "any edge");
}

/// A graph whose edges mostly obey a schema, at versions.
struct Run {
    random: StdRng,
    store: Store,
    truth: Truth,
    kept: BTreeMap<Version, Truth>,
    pins: Vec<Pin>,
    sid: u64,
    objects: Objects,
}

impl Run {
    /// Returns a vertex that mostly has a label.
    fn pick(&mut self, label: Token) -> Option<Gui> {
        let any = self.random.random_bool(0.002);
        let fitting: Vec<Gui> = self
            .truth
            .labels
            .iter()
            .filter(|(_, has)| any || has.contains(&label))
            .map(|(gui, _)| *gui)
            .collect();
        fitting.choose(&mut self.random).copied()
    }

    fn mutation(&mut self, load: bool) -> Option<Mutation> {
        let kind = self.random.random_range(0..if load { 70 } else { 100 });
        let any: Option<Gui> = {
            let all: Vec<Gui> = self.truth.labels.keys().copied().collect();
            all.choose(&mut self.random).copied()
        };
        match kind {
            0..25 => {
                let number = self.random.random_range(0..120);
                let labels =
                    [vec![PERSON], vec![PERSON, STUDENT], vec![MESSAGE]][number as usize % 3].clone();
                let has = self.truth.labels.entry(gui(number)).or_default();
                has.extend(labels.iter().filter(|label| !has.contains(label)).copied().collect::<Vec<_>>());
                let id = format!("v{number}").into();
                Some(Mutation::CreateVertex { gui: gui(number), id, labels, properties: vec![] })
            }
            25..80 => {
                let (label, from, to) =
                    *[(KNOWS, PERSON, PERSON), (LIKES, PERSON, MESSAGE)].choose(&mut self.random)?;
                let (source, target) = (self.pick(from)?, self.pick(to)?);
                self.sid += 1;
                let edge = Edge { sid: Sid(self.sid), source, target, label };
                self.truth.edges.insert(edge.sid, edge);
                Some(Mutation::CreateEdge { edge, id: None, properties: vec![] })
            }
            80..88 => {
                let gui = any?;
                self.truth.labels.remove(&gui);
                self.truth.edges.retain(|_, edge| edge.source != gui && edge.target != gui);
                Some(Mutation::DeleteVertex { gui, edges_left: true })
            }
            88..95 => {
                let all: Vec<Edge> = self.truth.edges.values().copied().collect();
                let edge = *all.choose(&mut self.random)?;
                self.truth.edges.remove(&edge.sid);
                Some(Mutation::DeleteEdge { edge, id: None })
            }
            95..98 => {
                let has = self.truth.labels.get_mut(&any?)?;
                if !has.contains(&STUDENT) {
                    has.push(STUDENT);
                }
                Some(Mutation::AddLabels { gui: any?, labels: vec![STUDENT] })
            }
            _ => {
                let label = if self.random.random_bool(0.05) { PERSON } else { STUDENT };
                self.truth.labels.get_mut(&any?)?.retain(|has| *has != label);
                Some(Mutation::RemoveLabels { gui: any?, labels: vec![label] })
            }
        }
    }

    /// Writes a transaction, or a load in two pieces.
    fn write(&mut self, asked: &mut Asked) {
        let version = self.store.published().next();
        let load = self.random.random_bool(0.3);
        let count = self.random.random_range(1..40);
        let batch: Vec<Mutation> = (0..count).filter_map(|_| self.mutation(load)).collect();
        if load {
            let mut load = self.store.begin_load(version);
            let (first, second) = batch.split_at(batch.len() / 2);
            load.apply(first);
            load.apply(second);
            load.finish();
        } else {
            self.store.apply(version, &batch);
        }
        self.store.publish(version);
        self.kept.insert(version, self.truth.clone());
        check(&self.store, version, &self.truth, false, asked);
    }

    /// Goes on with what a checkpoint restores, which must know all that is true of its version.
    fn restore(&mut self, asked: &mut Asked) {
        let version = self.store.published();
        let meta =
            CheckpointMeta { graph: "g".into(), epoch: Epoch(1), next_sid: self.sid + 1, tokens: vec![] };
        self.store.checkpoint(version, &self.objects, "c", meta).unwrap();
        let restored = restore_newest(self.store.config(), &self.objects, "c").unwrap().unwrap();
        check(&restored.store, version, &self.truth, true, asked);
        self.pins.clear();
        self.kept.clear();
        self.store = restored.store;
    }
}

#[test]
fn labels_that_edges_imply_are_those_of_all_their_ends() {
    let mut asked = Asked::default();
    for seed in 0..20 {
        let mut run = Run {
            random: StdRng::seed_from_u64(seed),
            store: Store::new(config()),
            truth: Truth::default(),
            kept: BTreeMap::new(),
            pins: vec![],
            sid: 0,
            objects: Objects::memory().unwrap(),
        };
        for step in 0..40 {
            run.write(&mut asked);
            if step % 8 == 0 {
                run.pins.push(run.store.pin_published());
            }
            run.store.reclaim(100);
            for version in run.pins.iter().map(Pin::version).collect::<Vec<_>>() {
                if let Some(truth) = run.kept.get(&version) {
                    check(&run.store, version, truth, false, &mut asked);
                }
            }
            if run.random.random_bool(0.1) {
                run.restore(&mut asked);
            }
        }
    }
    // Otherwise the test shows nothing.
    let share = f64::from(asked.known) / f64::from(asked.of_edges);
    assert!((0.1..0.9).contains(&share), "{share} of {} questions had the answer yes", asked.of_edges);
}

#[test]
fn a_store_of_one_partition_says_nothing_of_the_others() {
    let mut scoped = config();
    let partitions = scoped.partitions;
    scoped.scope = Some(tidegraph_storage::Scope { partitions, partition: partitions.of(gui(1)) });
    let store = Store::new(scoped);
    let person = |number: u32| Mutation::CreateVertex {
        gui: gui(number),
        id: format!("v{number}").into(),
        labels: vec![PERSON],
        properties: vec![],
    };
    store.apply(Version(1), &[person(1)]);
    store.publish(Version(1));
    let at = At { version: Version(1), epoch: Epoch(0) };
    assert!(!store.edges_imply_labels(at, &[KNOWS], Direction::Out, &[PERSON]));
}
