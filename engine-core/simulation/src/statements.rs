//! What statements answered, compared with the log.
//!
//! A statement that wrote at a version must have done what it does to the items of the version before: transactions have
//! the order of the log (TXN-2). A statement that read must have seen the items of its version (STO-1). Indexes and
//! constraints change beside them; an answer about them must hold at some version between the newest one that the
//! process knew before the statement, and the end of the log when it was answered.

use crate::invariants::{Invariant, Violation};
use crate::items::{Effect, ItemLog, Items};
use crate::load::SubmittedLoad;
use crate::statement::{CONSTRAINT, INDEX, KEY, Rows, Statement, shown};
use crate::world::{Step, World};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use std::sync::Arc;
use tidegraph_log::Record;
use tidegraph_types::{ErrorCode, IndexDefinition, Str, Version};

/// How a statement ended.
#[derive(Clone, Debug)]
pub(crate) enum StatementEnd {
    /// The engine answered: the version, whether the statement wrote, and the rows.
    Answered { version: Version, wrote: bool, rows: Rows },
    /// The engine refused it; nothing was committed.
    Refused { code: ErrorCode, text: String },
    /// Nobody knows whether it was committed.
    Unknown,
}

/// A statement that ended.
#[derive(Clone, Debug)]
pub(crate) struct FinishedStatement {
    pub who: String,
    pub statement: Statement,
    /// The newest version that the process knew when the statement began.
    pub since: Version,
    /// The end of the log when it ended.
    pub until: Version,
    pub end: StatementEnd,
}

/// What a log says about items at each of its versions.
pub(crate) struct History {
    items: Vec<Arc<Items>>,
    indexes: Vec<Arc<BTreeMap<Str, IndexDefinition>>>,
    /// Versions that change items.
    writes: BTreeSet<Version>,
    /// Versions that write each tag.
    tags: BTreeMap<i64, Vec<Version>>,
    /// The versions of loads, by their ids.
    pub loads: BTreeMap<String, Version>,
    /// The log at its end.
    end: ItemLog,
}

impl History {
    /// Reads a log. TXN-3: a constraint that was answered holds at each version. LOAD-1: a load becomes visible once.
    fn of(log: &[Record], submitted: BTreeMap<String, SubmittedLoad>) -> Result<Self, Violation> {
        let mut this = Self {
            items: vec![Arc::default()],
            indexes: vec![Arc::default()],
            writes: BTreeSet::new(),
            tags: BTreeMap::new(),
            loads: BTreeMap::new(),
            end: ItemLog::with_loads(submitted),
        };
        let (mut items, mut indexes) = (Arc::<Items>::default(), Arc::default());
        for record in log {
            let version = record.version;
            let Effect { writes, resets, schema, tags, load } = this.end.apply(record)?;
            if writes || resets {
                items = Arc::new(this.end.items()?);
            }
            if schema {
                indexes = Arc::new(this.end.indexes.clone());
            }
            match load {
                Some(id) => {
                    if let Some(first) = this.loads.insert(id.clone(), version) {
                        let what = format!("load {id} is in the log at {first} and at {version}");
                        return Err(Violation::new(Invariant::Load1, what));
                    }
                }
                None if writes => {
                    this.writes.insert(version);
                }
                None => {}
            }
            for tag in tags {
                this.tags.entry(tag).or_default().push(version);
            }
            let holds = indexes.get(CONSTRAINT).is_some_and(|index: &IndexDefinition| !index.unchecked);
            if let Some((one, other)) = items.duplicate(KEY).filter(|_| holds) {
                let what = format!("{one} and {other} have one key at {version}, where the constraint holds");
                return Err(Violation::new(Invariant::Txn3, what));
            }
            this.items.push(items.clone());
            this.indexes.push(indexes.clone());
        }
        Ok(this)
    }

    fn at(&self, version: Version) -> &Items {
        let index = usize::try_from(version.0).unwrap_or(usize::MAX).min(self.items.len() - 1);
        &self.items[index]
    }

    /// Whether something holds at some version of a range.
    pub fn some(
        &self,
        versions: RangeInclusive<u64>,
        holds: impl Fn(&Items, &BTreeMap<Str, IndexDefinition>) -> bool,
    ) -> bool {
        let last = self.items.len() as u64 - 1;
        let (from, to) = versions.into_inner();
        (from..=to.min(last)).any(|version| holds(self.at(Version(version)), &self.indexes[version as usize]))
    }

    /// Whether a statement does to the items before a version what the version did. Returns its rows.
    fn explains(&self, statement: &Statement, version: Version) -> Result<Rows, String> {
        let mut items = self.at(Version(version.0.saturating_sub(1))).clone();
        let rows = statement.run(&mut items);
        if items == *self.at(version) {
            return Ok(rows);
        }
        Err(format!("it makes {items:?}, version {version} has {:?}", self.at(version)))
    }
}

impl FinishedStatement {
    fn wrong(&self, invariant: Invariant, what: &str) -> Violation {
        let text = format!(
            "{}: {:?} between {} and {} ended as {:?}: {what}",
            self.who, self.statement, self.since, self.until, self.end
        );
        Violation::new(invariant, text)
    }

    fn versions(&self) -> RangeInclusive<u64> {
        self.since.0..=self.until.0
    }

    /// Checks the statement. Adds versions that it explains to `explained`.
    fn check(&self, history: &History, explained: &mut BTreeSet<Version>) -> Step {
        let tagged =
            self.statement.tag().and_then(|tag| history.tags.get(&tag)).map_or(&[][..], Vec::as_slice);
        match (&self.end, tagged) {
            (_, [_, _, ..]) => Err(self.wrong(Invariant::Txn4, &format!("it is in the log at {tagged:?}"))),
            (StatementEnd::Refused { code, text }, _) => self.check_refusal(history, *code, text, tagged),
            (StatementEnd::Answered { rows, .. }, _) if self.statement.is_of_schema() => {
                self.check_schema(history, rows)
            }
            (StatementEnd::Answered { version, wrote: false, rows }, []) => {
                self.check_read(history, *version, rows)
            }
            (StatementEnd::Answered { version, wrote: true, rows }, _) => {
                if self.statement.tag().is_some() && tagged != [*version] {
                    return Err(self.wrong(Invariant::Flt2, &format!("the log has it at {tagged:?}")));
                }
                match history.explains(&self.statement, *version) {
                    Ok(expected) if expected == *rows => {
                        explained.insert(*version);
                        Ok(())
                    }
                    Ok(expected) => Err(self.wrong(Invariant::Txn2, &format!("the rows are {expected:?}"))),
                    Err(what) => Err(self.wrong(Invariant::Txn2, &what)),
                }
            }
            (_, []) => Ok(()),
            (_, [version]) => match history.explains(&self.statement, *version) {
                Ok(_) => {
                    explained.insert(*version);
                    Ok(())
                }
                Err(what) => Err(self.wrong(Invariant::Txn2, &what)),
            },
        }
    }

    fn check_read(&self, history: &History, version: Version, rows: &Rows) -> Step {
        if version < self.since {
            return Err(self.wrong(Invariant::Txn1, "it read an older version than the process knew"));
        }
        let mut items = history.at(version).clone();
        let expected = self.statement.run(&mut items);
        if items != *history.at(version) {
            return Err(self.wrong(Invariant::Sto1, "it must write at this version"));
        }
        if *rows != expected {
            return Err(self.wrong(Invariant::Sto1, &format!("the rows are {expected:?}")));
        }
        Ok(())
    }

    fn check_refusal(&self, history: &History, code: ErrorCode, text: &str, tagged: &[Version]) -> Step {
        if !tagged.is_empty() {
            return Err(self.wrong(Invariant::Flt2, &format!("the log has it at {tagged:?}")));
        }
        let expected = match (code, &self.statement) {
            (ErrorCode::UniqueViolation, Statement::Put { id, key, .. }) => history
                .some(self.versions(), |items, indexes| {
                    indexes.contains_key(CONSTRAINT) && items.has_other(id, KEY, *key)
                }),
            (ErrorCode::UniqueViolation, Statement::CreateConstraint) => {
                history.some(self.versions(), |items, _| items.duplicate(KEY).is_some())
            }
            // Faults of the world, and conflicts that last too long.
            (
                ErrorCode::ConcurrentModification
                | ErrorCode::TimeLimitExceeded
                | ErrorCode::QueryLimitExceeded
                | ErrorCode::Unavailable,
                _,
            ) => true,
            _ => false,
        };
        if expected {
            Ok(())
        } else {
            Err(self.wrong(Invariant::Txn3, &format!("there is no reason for {text:?}")))
        }
    }

    fn check_schema(&self, history: &History, rows: &Rows) -> Step {
        if self.statement == Statement::ShowIndexes {
            // Replicas answer at different versions, so each index is looked at alone.
            let shown = shown(rows);
            let agrees = |name: &&str| {
                history
                    .some(self.versions(), |_, indexes| indexes.contains_key(*name) == shown.contains(*name))
            };
            let wrong = [INDEX, CONSTRAINT].into_iter().find(|name| !agrees(name));
            return wrong.map_or(Ok(()), |name| {
                Err(self.wrong(
                    Invariant::Txn3,
                    &format!("the answer about {name} holds at no version in between"),
                ))
            });
        }
        let has = |name: &str, indexes: &BTreeMap<Str, IndexDefinition>| {
            indexes.get(name).is_some_and(|index| !index.unchecked)
        };
        let holds = history.some(self.versions(), |_, indexes| match self.statement {
            Statement::CreateIndex => has(INDEX, indexes),
            Statement::DropIndex => !indexes.contains_key(INDEX),
            Statement::CreateConstraint => has(CONSTRAINT, indexes),
            _ => !indexes.contains_key(CONSTRAINT),
        });
        if holds { Ok(()) } else { Err(self.wrong(Invariant::Txn3, "it holds at no version in between")) }
    }
}

impl World {
    /// Notes a statement that ended.
    pub fn finished_statement(&mut self, done: FinishedStatement) -> Step {
        self.say(&done.who, format_args!("{:?} since {}: {:?}", done.statement, done.since, done.end));
        match &done.end {
            StatementEnd::Answered { version, wrote, .. } => {
                let newest = self.broker.newest();
                if *version > newest {
                    return Err(done.wrong(Invariant::Log1, &format!("the log ends at {newest}")));
                }
                self.counts.statements += 1;
                self.counts.schema_changes += u64::from(done.statement.changes_schema());
                if *wrote && !done.statement.is_of_schema() {
                    self.bookmark = self.bookmark.max(*version);
                }
            }
            StatementEnd::Refused { .. } => self.counts.refused += 1,
            StatementEnd::Unknown => self.counts.unknown += 1,
        }
        self.statements.push(done);
        Ok(())
    }

    /// TXN-2, TXN-3, STO-1, FLT-2: checks all statements against the log. Returns the items at its end.
    pub fn check_statements(&self, log: &[Record]) -> Result<ItemLog, Violation> {
        let submitted = self.loads.lock().clone();
        let history = History::of(log, submitted)?;
        self.check_loads(&history)?;
        let mut explained = BTreeSet::new();
        for done in &self.statements {
            done.check(&history, &mut explained)?;
        }
        let removals: Vec<&Statement> = self
            .statements
            .iter()
            .filter(|done| {
                matches!((&done.end, &done.statement), (StatementEnd::Unknown, Statement::Remove { .. }))
            })
            .map(|done| &done.statement)
            .collect();
        for version in history.writes.difference(&explained) {
            if !removals.iter().any(|removal| history.explains(removal, *version).is_ok()) {
                let what = format!("no statement that may be committed explains version {version}");
                return Err(Violation::new(Invariant::Txn2, what));
            }
        }
        Ok(history.end)
    }
}
