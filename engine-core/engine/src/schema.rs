//! Indexes and constraints: what makes and drops them, and the filling of new indexes.
//!
//! Flow of `CREATE`: the definition is committed; from its version on every write maintains the
//! index. A thread fills the index from the existing vertices while reads and writes go on. The
//! command returns when the index is complete. A caller that disconnects does not stop the thread.
//! The definition is in the log and in each checkpoint, the contents are in neither. So a start
//! fills all indexes before the graph is served, also if the last process died during a filling.
//!
//! A constraint is an index too, whose definition says that it is unchecked. When the index is complete, the definition
//! is committed again. Every transaction that writes vertices reads [`Key::constraints`]; so a transaction that
//! did not see the complete index conflicts and runs again. Then the existing vertices are
//! checked. If two of them share a value, the constraint is dropped and the command fails. If not, the definition is
//! committed a third time, and no longer says that it is unchecked.
//!
//! `IF NOT EXISTS` is answered for a definition that holds: if this process is making it, the command waits for its
//! end. If another process is, or was until it ended, the command makes it as well; both come to the same end.
//!
//! What must never happen: a `CREATE CONSTRAINT` succeeded and the constraint does not hold (TXN-3).

use crate::backend::{Backend, index_of};
use crate::deadline::Deadline;
use crate::query::Answer;
use crate::{Database, Error};
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use tidegraph_exec::view::Counters;
use tidegraph_storage::{Duplicate, IndexState};
use tidegraph_types::{CommitRequest, ErrorCode, IndexDefinition, Key, Mutation, Str, Token, Version};

type Waiting = Arc<Mutex<BTreeMap<Str, Vec<Sender<Result<(), Error>>>>>>;

/// The threads that fill indexes beside queries.
#[derive(Default)]
pub(crate) struct Filling {
    stop: Arc<AtomicBool>,
    /// Whether an index is filled on the thread of the command that creates it.
    on_callers_thread: bool,
    threads: Mutex<Vec<JoinHandle<()>>>,
    /// Those who wait for an index that is being made, by its name.
    waiting: Waiting,
}

impl Filling {
    /// Indexes are filled on the thread of the command that creates them, before the command looks for the end.
    pub fn without_threads() -> Self {
        Self { on_callers_thread: true, ..Self::default() }
    }

    /// Stops all threads and waits for them. The next start fills incomplete indexes again.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in std::mem::take(&mut *self.threads.lock()) {
            if thread.join().is_err() {
                tracing::error!("a thread that fills indexes panicked");
            }
        }
    }

    /// Takes the name of an index that is to be made in this process. If another thread makes one of this name, returns
    /// the end of that.
    fn reserve(&self, name: &Str) -> Result<Reservation, Receiver<Result<(), Error>>> {
        match self.waiting.lock().entry(name.clone()) {
            Entry::Occupied(mut waiting) => {
                let (done, end) = bounded(1);
                waiting.get_mut().push(done);
                return Err(end);
            }
            Entry::Vacant(free) => free.insert(vec![]),
        };
        Ok(Reservation { waiting: self.waiting.clone(), name: name.clone(), ended: false })
    }

    /// The end of an index that is being made in this process; `None` if it is not.
    fn end_of(&self, name: &Str) -> Option<Receiver<Result<(), Error>>> {
        let (done, end) = bounded(1);
        self.waiting.lock().get_mut(name)?.push(done);
        Some(end)
    }

    fn start(&self, job: Job, reservation: Reservation) -> Result<Receiver<Result<(), Error>>, Error> {
        let end = self.end_of(&job.name);
        let stop = self.stop.clone();
        let work = move || {
            let result = job.run(&stop);
            if let Err(error) = &result {
                tracing::warn!(error = %error.chain(), index = %job.name, "an index was not completed");
            }
            reservation.end(&result);
        };
        let no_name = || Error::new(ErrorCode::Internal, "the index that is being made has no name");
        if self.on_callers_thread {
            work();
            return end.ok_or_else(no_name);
        }
        let thread = tidegraph_platform::spawn("index", work).map_err(|e| {
            Error::new(ErrorCode::Unavailable, format!("no thread fills the index: {e}")).with_source(e)
        })?;
        let mut threads = self.threads.lock();
        threads.retain(|thread| !thread.is_finished());
        threads.push(thread);
        end.ok_or_else(no_name)
    }
}

/// The name of an index that is being made, from before its definition is committed until it holds or is dropped.
struct Reservation {
    waiting: Waiting,
    name: Str,
    ended: bool,
}

impl Reservation {
    fn end(mut self, result: &Result<(), Error>) {
        self.ended = true;
        for done in self.waiting.lock().remove(&self.name).unwrap_or_default() {
            // The caller may have disconnected.
            let _ = done.send(result.clone());
        }
    }
}

impl Drop for Reservation {
    /// Disconnects those who wait: nothing was made, or the thread panicked.
    fn drop(&mut self) {
        if !self.ended {
            self.waiting.lock().remove(&self.name);
        }
    }
}

/// Completes one index.
struct Job {
    backend: Arc<dyn Backend>,
    name: Str,
}

impl Job {
    fn run(&self, stop: &AtomicBool) -> Result<(), Error> {
        self.backend.fill_indexes(&|| stop.load(Ordering::Relaxed))?;
        loop {
            let (version, index) = find(&*self.backend, &self.name)?;
            let Some(index) = index else {
                return Err(dropped(&self.name));
            };
            if !index.complete {
                let message = format!("`{}` is completed at the next start", self.name);
                return Err(Error::new(ErrorCode::Unavailable, message));
            }
            if !index.definition.unique {
                return Ok(());
            }
            if !index.definition.unchecked {
                // Another process has made it.
                return Ok(());
            }
            // A transaction that read before this commit cannot commit after it.
            let barrier = Mutation::DefineIndex { index: index.definition.clone() };
            match commit(&*self.backend, version, barrier) {
                Ok(_) => return check(&*self.backend, &index.definition),
                Err(error) if error.code() == ErrorCode::ConcurrentModification => {}
                Err(error) => return Err(error),
            }
        }
    }
}

fn dropped(name: &Str) -> Error {
    Error::new(ErrorCode::ConcurrentModification, format!("`{name}` was dropped while it was made"))
}

/// Compares the existing vertices under a constraint that every writer keeps. Notes that it holds, or drops it and
/// returns its error.
fn check(backend: &dyn Backend, definition: &IndexDefinition) -> Result<(), Error> {
    enforce(backend, definition)?;
    let checked = IndexDefinition { unchecked: false, ..definition.clone() };
    loop {
        let (version, index) = find(backend, &definition.name)?;
        match index {
            Some(index) if index.definition == *definition => {}
            Some(index) if index.definition == checked => return Ok(()),
            _ => return Err(dropped(&definition.name)),
        }
        match commit(backend, version, Mutation::DefineIndex { index: checked.clone() }) {
            Ok(_) => return Ok(()),
            Err(error) if error.code() == ErrorCode::ConcurrentModification => {}
            Err(error) => return Err(error),
        }
    }
}

/// Drops a constraint that does not hold and returns its error.
fn enforce(backend: &dyn Backend, definition: &IndexDefinition) -> Result<(), Error> {
    let Some(Duplicate { ids: [a, b], value }) = backend.duplicate(&definition.name)? else { return Ok(()) };
    let name = &definition.name;
    loop {
        let (version, index) = find(backend, name)?;
        // Others may have dropped it, and given its name to another.
        if index.is_none_or(|index| index.definition != *definition) {
            break;
        }
        match commit(backend, version, Mutation::DropIndex { name: name.clone() }) {
            Ok(_) => break,
            Err(error) if error.code() == ErrorCode::ConcurrentModification => {}
            Err(error) => return Err(error),
        }
    }
    let of = |token| backend.catalog().name(token);
    let message = format!(
        "constraint `{name}` does not hold: vertices {a:?} and {b:?} of label `{}` both have {} for `{}`",
        of(definition.label),
        value.for_message(),
        of(definition.key),
    );
    Err(Error::new(ErrorCode::UniqueViolation, message))
}

/// Fills all indexes of a graph before it is served. Checks constraints whose creation a crash interrupted, and drops
/// those that do not hold.
pub(crate) fn complete_all(backend: &dyn Backend) -> Result<(), Error> {
    backend.fill_indexes(&|| false)?;
    for index in backend.indexes()?.iter().filter(|index| index.definition.unchecked) {
        match check(backend, &index.definition) {
            Err(error) if error.code() == ErrorCode::UniqueViolation => {
                tracing::warn!(%error, "the constraint was not complete, and is dropped");
            }
            other => other?,
        }
    }
    Ok(())
}

/// Returns the index of a name, and a version at which this holds.
fn find(backend: &dyn Backend, name: &Str) -> Result<(Version, Option<IndexState>), Error> {
    let version = backend.snapshot(None)?.at.version;
    Ok((version, index_of(backend.indexes()?, name)))
}

fn commit(backend: &dyn Backend, read_version: Version, mutation: Mutation) -> Result<Version, Error> {
    let read_keys = vec![Key::schema()];
    let unique = match &mutation {
        Mutation::DefineIndex { index } => index.unique,
        _ => true,
    };
    let write_keys = if unique { vec![Key::schema(), Key::constraints()] } else { read_keys.clone() };
    let mutations = vec![mutation];
    backend.commit(CommitRequest {
        read_version,
        read_keys,
        write_keys,
        mutations,
        request: None,
        first_asked: None,
        by_key: false,
        changes: None,
    })
}

impl Database {
    pub(crate) fn create_index(
        &self,
        name: Option<&Str>,
        over: [&Str; 2],
        unique: bool,
        if_not_exists: bool,
        deadline: &Deadline<'_>,
    ) -> Result<Answer, Error> {
        loop {
            match self.try_to_create_index(name, over, unique, if_not_exists, deadline) {
                // Dropped by another process that makes it too and found it violated, or by somebody's command.
                Err(error) if if_not_exists && error.code() == ErrorCode::ConcurrentModification => {}
                other => return other,
            }
        }
    }

    fn try_to_create_index(
        &self,
        name: Option<&Str>,
        over: [&Str; 2],
        unique: bool,
        if_not_exists: bool,
        deadline: &Deadline<'_>,
    ) -> Result<Answer, Error> {
        let [label_name, key_name] = over;
        let tokens = self.backend.catalog().intern(&over.map(Str::clone))?;
        let (label, key): (Token, Token) = (tokens[0], tokens[1]);
        let kind = if unique { "constraint" } else { "index" };
        let name = name.cloned().unwrap_or_else(|| Str::from(format!("{kind}_{label_name}_{key_name}")));
        let mut counters = Counters::default();
        let (reservation, name) = loop {
            deadline.ensure()?;
            // Before the indexes are read: an index that is there and not being made then has its final state.
            let reserved = self.filling.reserve(&name);
            let version = self.backend.snapshot(None)?.at.version;
            let there = self.backend.indexes()?.into_iter().find(|index| {
                let other = &index.definition;
                other.name == name || (other.label, other.key) == (label, key)
            });
            let Some(there) = there else {
                let reservation = match reserved {
                    Ok(reservation) => reservation,
                    Err(end) => {
                        drop(wait(&end, deadline)?);
                        continue;
                    }
                };
                self.backend.check_room()?;
                let index = IndexDefinition { name: name.clone(), label, key, unique, unchecked: unique };
                match commit(&*self.backend, version, Mutation::DefineIndex { index }) {
                    Ok(_) => {
                        *(if unique {
                            &mut counters.constraints_added
                        } else {
                            &mut counters.indexes_added
                        }) = 1;
                        break (reservation, name);
                    }
                    Err(error) if error.code() == ErrorCode::ConcurrentModification => continue,
                    Err(error) => return Err(error),
                }
            };
            drop(reserved);
            let other = there.definition;
            if if_not_exists && serves(&other, &name, (label, key), unique) {
                // If it fails, it is gone, and this command makes it.
                if self.await_end(&other.name, deadline)? || !self.is_there(&other)? {
                    continue;
                }
                if !other.unchecked {
                    return Ok(changed(version, counters));
                }
                // Another process is making it, or was when it ended.
                match self.filling.reserve(&other.name) {
                    Ok(reservation) => break (reservation, other.name),
                    Err(_) => continue,
                }
            }
            return Err(exists_already(&other, &name, over));
        };
        let job = Job { backend: self.backend.clone(), name };
        let end = self.filling.start(job, reservation)?;
        let result = wait(&end, deadline)?;
        self.plans.clear();
        result?;
        Ok(changed(self.backend.snapshot(None)?.at.version, counters))
    }

    /// Waits until an index is made, if this process is making it; returns whether it was.
    fn await_end(&self, name: &Str, deadline: &Deadline<'_>) -> Result<bool, Error> {
        let Some(end) = self.filling.end_of(name) else { return Ok(false) };
        drop(wait(&end, deadline)?);
        Ok(true)
    }

    fn is_there(&self, definition: &IndexDefinition) -> Result<bool, Error> {
        Ok(self.backend.indexes()?.iter().any(|index| index.definition == *definition))
    }

    pub(crate) fn drop_index(
        &self,
        name: &Str,
        unique: bool,
        if_exists: bool,
        deadline: &Deadline<'_>,
    ) -> Result<Answer, Error> {
        let kind = if unique { "constraint" } else { "index" };
        loop {
            deadline.ensure()?;
            let (version, index) = find(&*self.backend, name)?;
            let Some(index) = index.filter(|index| index.definition.unique || !unique) else {
                if if_exists {
                    return Ok(changed(version, Counters::default()));
                }
                return Err(Error::new(ErrorCode::BadRequest, format!("there is no {kind} `{name}`")));
            };
            if index.definition.unique && !unique {
                let message = format!("index `{name}` belongs to a constraint: use DROP CONSTRAINT");
                return Err(Error::new(ErrorCode::BadRequest, message));
            }
            match commit(&*self.backend, version, Mutation::DropIndex { name: name.clone() }) {
                Ok(version) => {
                    self.plans.clear();
                    let counters = if unique {
                        Counters { constraints_removed: 1, ..Counters::default() }
                    } else {
                        Counters { indexes_removed: 1, ..Counters::default() }
                    };
                    return Ok(changed(version, counters));
                }
                Err(error) if error.code() == ErrorCode::ConcurrentModification => {}
                Err(error) => return Err(error),
            }
        }
    }
}

/// Whether `IF NOT EXISTS` is satisfied by a definition that is there. An index does not make values unique.
fn serves(there: &IndexDefinition, name: &Str, over: (Token, Token), unique: bool) -> bool {
    let same_schema = (there.label, there.key) == over;
    if unique { there.unique && (same_schema || there.name == *name) } else { same_schema || !there.unique }
}

fn exists_already(there: &IndexDefinition, name: &Str, [label, key]: [&Str; 2]) -> Error {
    let kind = if there.unique { "a constraint" } else { "an index" };
    let mut message = if there.name == *name {
        format!("{kind} with the name `{name}` exists already")
    } else {
        format!("{kind} over `{label}` and `{key}` exists already: `{}`", there.name)
    };
    if there.unchecked {
        message.push_str(". It is not complete yet; IF NOT EXISTS completes it");
    }
    Error::new(ErrorCode::BadRequest, message)
}

/// Waits until an index is made. The outer error is that of the wait, the inner one that of the index.
fn wait(end: &Receiver<Result<(), Error>>, deadline: &Deadline<'_>) -> Result<Result<(), Error>, Error> {
    loop {
        match end.recv_timeout(Duration::from_millis(20)) {
            Ok(result) => return Ok(result),
            Err(RecvTimeoutError::Timeout) => deadline.ensure()?,
            Err(RecvTimeoutError::Disconnected) => {
                let message = "the index was not completed: its thread panicked";
                return Ok(Err(Error::new(ErrorCode::Internal, message)));
            }
        }
    }
}

fn changed(version: Version, counters: Counters) -> Answer {
    Answer { columns: [].into(), rows: vec![], version, wrote: true, counters, repeated: false }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Language, Options, Parameters, Query};
    use std::path::Path;
    use tidegraph_types::Value;

    fn open(dir: &Path) -> Arc<Database> {
        Database::open(Options { data_dir: Some(dir.to_owned()), ..Options::default() }).unwrap()
    }

    fn ask(database: &Database, text: &str) -> Vec<Vec<Value>> {
        database.query(&Query::new(Language::OpenCypher, text, &Parameters::default())).unwrap().rows
    }

    /// Shows TXN-3.
    #[test]
    fn a_start_checks_a_constraint_whose_creation_a_crash_interrupted() {
        for (ids, made) in [("[1, 2]", 1), ("[1, 2, 2]", 0)] {
            let dir = tempfile::tempdir().unwrap();
            let database = open(dir.path());
            ask(&database, &format!("UNWIND {ids} AS id CREATE (:User {{id: id}})"));
            let tokens = database.backend.catalog().intern(&["User".into(), "id".into()]).unwrap();
            let index = IndexDefinition {
                name: "ids".into(),
                label: tokens[0],
                key: tokens[1],
                unique: true,
                unchecked: true,
            };
            let at = database.backend.snapshot(None).unwrap().at.version;
            commit(&*database.backend, at, Mutation::DefineIndex { index }).unwrap();
            assert_eq!(ask(&database, "SHOW INDEXES")[0][1], Value::string("BUILDING"));
            drop(database);
            for _ in 0..2 {
                let database = open(dir.path());
                assert_eq!(ask(&database, "SHOW CONSTRAINTS").len(), made, "{ids}");
                let indexes = ask(&database, "SHOW INDEXES");
                assert!(indexes.iter().all(|index| index[1] == Value::string("ONLINE")), "{indexes:?}");
            }
        }
    }
}
