//! Transactions drawn at random, for simulated clients and for real workers.

use crate::checker::{Ended, Transaction};
use crate::model::Seen;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tidegraph_platform::{Random, SeededRandom};
use tidegraph_types::{Edge, Gui, GuiHasher, Mutation, Sid, Str, Token, Version};

/// Names of the list property, the vertex label and the edge label.
pub(crate) const NAMES: [&str; 3] = ["list", "Vertex", "EDGE"];

/// State that all clients and workers share.
#[derive(Debug)]
pub(crate) struct Common {
    pub graph: String,
    /// Vertices with lists, which are never deleted, followed by vertices that are created and deleted.
    pub keys: Vec<(Str, Gui)>,
    pub lists: usize,
    pub nodes: usize,
    /// Whether commits omit the lists that they read: a planted defect.
    pub hides_reads: bool,
    /// Whether attempts of a commit have different ids: another planted defect.
    pub renames_commits: bool,
    /// Which keys that they read the commits of statements lose: other planted defects.
    pub strips: Strips,
    /// Whether loads do not learn what transactions changed beside them: another planted defect.
    pub hides_changes: bool,
    /// Whether workers read a little in the past for transactions that write, as the engine does.
    pub at_hand: bool,
    /// Whether transactions reset the graph. Then no transaction writes to a list that it has not read.
    pub resets: bool,
    /// Whether workers scan all vertices in small pieces.
    pub scans: bool,
}

/// Which of the keys that they read the commits of statements lose.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Strips {
    Nothing,
    /// The key of the set of constraints.
    Constraints,
    All,
}

/// Number of vertices that are created and deleted.
const TRANSIENT_VERTICES: u64 = 4;

impl Common {
    pub fn new(graph: &str, lists: u64, nodes: usize) -> Self {
        let key = |number: u64| {
            let id = Str::from(format!("k{number}"));
            let gui = GuiHasher::default().gui(&id);
            (id, gui)
        };
        let keys = (0..lists + TRANSIENT_VERTICES).map(key).collect();
        let (lists, hides_reads, renames_commits) = (lists as usize, false, false);
        let (at_hand, resets) = (false, false);
        Self {
            graph: graph.into(),
            keys,
            lists,
            nodes,
            hides_reads,
            renames_commits,
            strips: Strips::Nothing,
            hides_changes: false,
            at_hand,
            resets,
            scans: false,
        }
    }
}

/// What a transaction writes besides numbers in lists.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Extra {
    None,
    /// Creates an edge between two of the vertices that it reads.
    Edge,
    /// Deletes one of the client's own edges.
    DeleteEdge(Edge),
    /// Creates a transient vertex, or deletes it: together with its edges, or after deleting them one by one.
    Transient {
        one_by_one: bool,
    },
    /// Removes all vertices and edges.
    Reset,
    /// Finds the vertices by a scan in small pieces, and reads all of them.
    Scan,
}

/// One of this many transactions resets the graph, in worlds with resets.
const TRANSACTIONS_PER_RESET: u64 = 60;

/// The plan of a transaction, and what it has read so far.
#[derive(Debug)]
pub(crate) struct TransactionPlan {
    pub began: u64,
    pub need: Version,
    /// Keys to read, as indexes of [`Common::keys`].
    pub reads: Vec<usize>,
    pub appends: Vec<(usize, i64)>,
    pub extra: Extra,
    pub edge: Option<Edge>,
    pub read_at: Version,
    pub seen: BTreeMap<usize, Seen>,
}

/// A transaction that has ended.
#[derive(Clone, Debug)]
pub(crate) struct FinishedTransaction {
    pub transaction: Transaction,
    pub read_at: Version,
    pub version: Option<Version>,
    /// The id of its commit, if it is known.
    pub id: Option<tidegraph_remote::RequestId>,
    /// The mutations of its commit.
    pub mutations: Vec<Mutation>,
    /// The vertices that it read.
    pub seen: Vec<(Gui, Seen)>,
    /// How often it ran again because a replica was lost during a scan; `None`: it is no scan.
    pub scan: Option<u64>,
}

/// Generates the transactions of one client.
#[derive(Debug)]
pub(crate) struct TransactionGenerator {
    pub index: usize,
    pub common: Arc<Common>,
    pub random: SeededRandom,
    /// Keys of vertices that it has seen, and that are never deleted.
    there: BTreeSet<usize>,
    edges: Vec<Edge>,
    numbers: i64,
}

impl TransactionGenerator {
    pub fn new(index: usize, common: Arc<Common>, seed: u64) -> Self {
        let random = SeededRandom::new(seed);
        Self { index, common, random, there: BTreeSet::new(), edges: Vec::new(), numbers: 0 }
    }

    fn pick(&self, count: u64) -> Vec<usize> {
        self.pick_of(self.common.lists, count)
    }

    fn pick_of(&self, keys: usize, count: u64) -> Vec<usize> {
        let mut picked = Vec::new();
        for _ in 0..count {
            let key = self.random.below(keys as u64) as usize;
            if !picked.contains(&key) {
                picked.push(key);
            }
        }
        picked
    }

    /// Draws the next transaction. `known` is the newest version that the client
    /// knows, `bookmark` one that any client was told.
    pub fn begin(&mut self, now: u64, known: Version, bookmark: Version) -> TransactionPlan {
        let count = 1 + self.random.below(3);
        let mut extra = Extra::None;
        let resets = self.common.resets;
        let drawn = if resets && self.random.one_in(TRANSACTIONS_PER_RESET) {
            extra = Extra::Reset;
            None
        } else {
            Some(self.random.below(14))
        };
        let (reads, written) = match drawn {
            None => (vec![], vec![]),
            // Reads only.
            Some(0..3) => (self.pick_of(self.common.keys.len(), count + 1), vec![]),
            // Writes only.
            Some(3..5) => {
                let known: Vec<usize> =
                    self.pick(count).into_iter().filter(|key| self.there.contains(key)).collect();
                (if resets { known.clone() } else { vec![] }, known)
            }
            Some(5 | 6) => {
                extra = Extra::Edge;
                (self.pick_of(self.common.keys.len(), 4), vec![])
            }
            Some(12 | 13) => {
                extra = Extra::Transient { one_by_one: self.random.one_in(2) };
                (vec![self.common.lists + self.random.below(TRANSIENT_VERTICES) as usize], vec![])
            }
            Some(7) if !self.edges.is_empty() => {
                let own = self.random.below(self.edges.len() as u64) as usize;
                extra = Extra::DeleteEdge(self.edges.swap_remove(own));
                (vec![], vec![])
            }
            // Reads some and writes one of them: two such transactions can miss each other's write (write skew).
            Some(7..9) => {
                let reads = self.pick(count + 1);
                let one = reads[self.random.below(reads.len() as u64) as usize];
                (reads, vec![one])
            }
            Some(_) => {
                let reads = self.pick(count);
                let mut written = reads.clone();
                let blind = self.pick(1).into_iter().filter(|key| !resets && self.there.contains(key));
                written.extend(blind);
                written.sort_unstable();
                written.dedup();
                (reads, written)
            }
        };
        let mut next = || {
            self.numbers += 1;
            self.index as i64 * 1_000_000 + self.numbers
        };
        let appends: Vec<(usize, i64)> = written.into_iter().map(|key| (key, next())).collect();
        let need = if self.random.one_in(3) { bookmark } else { known };
        TransactionPlan {
            began: now,
            need: need.max(known),
            reads,
            appends,
            extra,
            edge: None,
            read_at: Version(0),
            seen: BTreeMap::new(),
        }
    }

    /// Draws a scan of all vertices.
    pub fn begin_scan(&mut self, now: u64, known: Version, bookmark: Version) -> TransactionPlan {
        let need = if self.random.one_in(3) { bookmark } else { known };
        TransactionPlan {
            began: now,
            need: need.max(known),
            reads: (0..self.common.keys.len()).collect(),
            appends: vec![],
            extra: Extra::Scan,
            edge: None,
            read_at: Version(0),
            seen: BTreeMap::new(),
        }
    }

    /// Notes which vertices exist.
    pub fn note(&mut self, seen: &BTreeMap<usize, Seen>) {
        self.there.extend(seen.iter().filter(|(_, seen)| seen.present).map(|(key, _)| *key));
    }

    /// Returns the ends of the edge that a transaction creates, if it saw two vertices.
    pub fn ends(&self, work: &TransactionPlan) -> Option<(Gui, Gui)> {
        if work.extra != Extra::Edge {
            return None;
        }
        let mut ends = work.reads.iter().copied().filter(|key| work.seen[key].present);
        Some((self.common.keys[ends.next()?].1, self.common.keys[ends.next()?].1))
    }

    /// Ends a transaction, with its version if the client was told one.
    pub fn end(
        &mut self,
        work: TransactionPlan,
        now: u64,
        ended: Ended,
        version: Option<Version>,
    ) -> FinishedTransaction {
        if version.is_some() {
            self.there.extend(work.appends.iter().map(|(key, _)| *key));
            self.edges.extend(work.edge);
        }
        let gui = |key: &usize| self.common.keys[*key].1;
        let seen: Vec<(Gui, Seen)> = work.seen.iter().map(|(key, seen)| (gui(key), seen.clone())).collect();
        let transaction = Transaction {
            client: self.index,
            began: work.began,
            ended_at: now,
            ended,
            reads: work
                .seen
                .iter()
                .filter(|(key, _)| **key < self.common.lists)
                .map(|(key, seen)| (*key as u64, seen.list.clone()))
                .collect(),
            appends: work.appends.iter().map(|(key, number)| (*key as u64, *number)).collect(),
        };
        FinishedTransaction {
            transaction,
            read_at: work.read_at,
            version,
            id: None,
            mutations: vec![],
            seen,
            scan: None,
        }
    }
}

/// Returns an edge that a transaction creates.
pub(crate) fn edge(sid: u64, (source, target): (Gui, Gui), label: Token) -> Edge {
    Edge { sid: Sid(sid), source, target, label }
}
