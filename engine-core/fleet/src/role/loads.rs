//! Bulk loads of workers, at the sequencer.
//!
//! A load reads the graph, writes segments, and is then committed by one record. What transactions make meanwhile must not take a
//! GUI that the load gives to another id. The sequencer notes what they make; the load, which knows its ids, compares.
//!
//! Flow:
//! 1. The load *begins*: from here on the sequencer notes. The load asks again and again what was made, which also says that it is
//!    still there; what all loads have compared is let go.
//! 2. It is to be *committed*, and says up to where it has compared. What was made after that is handed to it while the sequencer
//!    waits with everything else, half a second at most: some vertices, or else the load is told to ask for them first.
//! 3. The load *settles*: one of them is in its way, or none. Then the record is written, or refused as a conflict.
//!
//! What must never happen: a load that is committed twice (it has an id, which stands in its record), or beside vertices that it
//! did not compare; an answer that a load is not committed by one who cannot know, or while it still may be.

use super::{id_of, told};
use crate::sequencing::Leading;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;
use tidegraph_remote::{Error, LoadRequest, LoadStep, RequestId};
use tidegraph_txn::{LoadCommit, LoadWatch, NewVertices};
use tidegraph_types::{Epoch, Gui, MadeSince, MadeVertex, Str, Version};

/// A load of which nothing was heard for so long is forgotten.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(60);
/// How long everybody waits for what a load says of the last vertices.
const SETTLE_WITHIN: Duration = Duration::from_millis(500);
/// Most vertices that a load is asked about while everybody waits.
const MOST_AT_LAST: usize = 4_096;
/// Bytes of vertices that are answered at once.
const PIECE_BYTES: usize = 4 << 20;
/// Most loads at the same time.
const MOST_LOADS: usize = 1_024;

/// The loads that run.
#[derive(Debug, Default)]
pub(super) struct HeldLoads(Mutex<FxHashMap<RequestId, Held>>);

#[derive(Debug)]
struct Held {
    watch: Arc<LoadWatch>,
    /// Of the sequencer that notes.
    epoch: Epoch,
    /// Up to here the load has asked.
    compared: Version,
    heard: Duration,
    /// Where the sequencer waits for the load.
    verdict: Option<Sender<Option<Version>>>,
    /// Whether a thread commits it.
    committing: Arc<AtomicUsize>,
}

/// What the thread that commits a load has to tell.
enum Word {
    Rest(Vec<MadeVertex>),
    TooMany,
    Done(Result<Version, tidegraph_txn::Error>),
}

impl HeldLoads {
    /// Forgets loads that are silent, and those of an earlier sequencer.
    pub fn sweep(&self, leading: &Leading, now: Duration) {
        let mut held = self.0.lock();
        held.retain(|_, load| {
            load.epoch == leading.epoch() && now.saturating_sub(load.heard) < FORGOTTEN_AFTER
        });
    }

    pub fn begin(&self, leading: &Leading, now: Duration, id: RequestId) -> Result<MadeSince, Error> {
        if self.0.lock().len() >= MOST_LOADS {
            return Err(Error::Limit(format!("{MOST_LOADS} loads run already")));
        }
        let watch = Arc::new(leading.sequencer().begin_load());
        let upto = leading.sequencer().version();
        let load = Held {
            watch,
            epoch: leading.epoch(),
            compared: upto,
            heard: now,
            verdict: None,
            committing: Arc::default(),
        };
        self.0.lock().insert(id, load);
        Ok(MadeSince { upto, vertices: Vec::new() })
    }

    pub fn made_since(
        &self,
        leading: &Leading,
        now: Duration,
        id: RequestId,
        above: Version,
    ) -> Result<MadeSince, Error> {
        let watch = self.find(leading, now, id)?;
        let made = leading.sequencer().made_since(&watch, above, PIECE_BYTES);
        let made = made.ok_or_else(|| unknown("what was made since then was not noted"))?;
        let all = {
            let mut held = self.0.lock();
            if let Some(load) = held.get_mut(&id) {
                load.compared = load.compared.max(above);
            }
            held.values().map(|load| load.compared).min()
        };
        if let Some(all) = all {
            leading.sequencer().forget_made(all);
        }
        Ok(made)
    }

    pub fn end(&self, id: RequestId) {
        self.0.lock().remove(&id);
    }

    /// Whether it may be committed at any moment.
    pub fn is_committing(&self, id: RequestId) -> bool {
        self.0.lock().get(&id).is_some_and(|load| load.committing.load(Ordering::Acquire) > 0)
    }

    pub fn settle(&self, id: RequestId, collision: Option<Version>) -> Result<(), Error> {
        let verdict = self.0.lock().get_mut(&id).and_then(|load| load.verdict.take());
        let sent = verdict.is_some_and(|verdict| verdict.send(collision).is_ok());
        if sent { Ok(()) } else { Err(unknown("nobody waits for what it says")) }
    }

    /// Commits a load, up to where it is to say something.
    pub fn commit(
        &self,
        leading: &Arc<Leading>,
        now: Duration,
        id: RequestId,
        load: LoadRequest,
    ) -> Result<LoadStep, Error> {
        if id_of(id) != tidegraph_types::RequestId::of_text(&load.load_id) {
            return Err(Error::NotAllowed(format!(
                "the id of the request is not that of load {:?}",
                load.load_id
            )));
        }
        let watch = match self.find(leading, now, id) {
            Ok(watch) => watch,
            Err(error) => return committed_before(leading, id, load.first_asked, error),
        };
        let (words, heard) = channel();
        let (verdict, settled) = channel();
        let committing = match self.0.lock().get_mut(&id) {
            Some(held) => {
                held.verdict = Some(verdict);
                held.committing.clone()
            }
            None => return Err(unknown("it has ended")),
        };
        committing.fetch_add(1, Ordering::AcqRel);
        let commit = LoadCommit {
            load_id: load.load_id,
            segments: load.segments,
            read_version: load.read_version,
            read_keys: load.read_keys,
            compared: load.compared,
            first_asked: Some(load.first_asked),
            vertices: Box::new(Elsewhere { words: words.clone(), settled }),
        };
        let (of, over) = (leading.clone(), committing.clone());
        let run = move || {
            let done = of.sequencer().commit_load(&watch, commit);
            over.fetch_sub(1, Ordering::AcqRel);
            // Whoever asked may be gone.
            let _ = words.send(Word::Done(done));
        };
        let thread = std::thread::Builder::new().name("commit-load".into()).spawn(run);
        thread.map_err(|error| {
            committing.fetch_sub(1, Ordering::AcqRel);
            Error::Unavailable(format!("no thread for a load: {error}"))
        })?;
        match heard.recv() {
            Ok(Word::Rest(rest)) => Ok(LoadStep::Rest(rest)),
            Ok(Word::TooMany) => Ok(LoadStep::Ask),
            Ok(Word::Done(Ok(version))) => Ok(LoadStep::Committed(version)),
            Ok(Word::Done(Err(error))) => {
                if let tidegraph_txn::Error::Conflict { .. } = error {
                    // A sequencer that was deposed would not know that its successor has committed it.
                    leading.sequencer().prove().map_err(told)?;
                }
                Err(told(error))
            }
            Err(_) => Err(Error::InDoubt("the sequencer has a defect".into())),
        }
    }

    fn find(&self, leading: &Leading, now: Duration, id: RequestId) -> Result<Arc<LoadWatch>, Error> {
        let mut held = self.0.lock();
        let load = held.get_mut(&id).filter(|load| load.epoch == leading.epoch());
        let load = load.ok_or_else(|| unknown("it began elsewhere, or nothing was heard of it for long"))?;
        load.heard = now;
        Ok(load.watch.clone())
    }
}

/// A load that is not known here may have been committed by an earlier sequencer, or before it was forgotten.
fn committed_before(
    leading: &Leading,
    id: RequestId,
    first_asked: Version,
    unknown: Error,
) -> Result<LoadStep, Error> {
    // What an earlier sequencer sent cannot arrive any more after this.
    leading.sequencer().prove().map_err(told)?;
    match leading.sequencer().outcome(id_of(id), first_asked).map_err(told)? {
        Some(version) => Ok(LoadStep::Committed(version)),
        None => Err(unknown),
    }
}

fn unknown(reason: &str) -> Error {
    Error::LoadUnknown(reason.into())
}

/// The vertices of a load that another process makes.
#[derive(Debug)]
struct Elsewhere {
    words: Sender<Word>,
    settled: Receiver<Option<Version>>,
}

impl NewVertices for Elsewhere {
    fn collision(&self, made: &mut dyn Iterator<Item = (Version, Gui, &Str)>) -> Option<Version> {
        let mut rest = Vec::new();
        for (version, gui, id) in made {
            if rest.len() == MOST_AT_LAST {
                // Refused, and nobody hears of that: the load is told to ask.
                let _ = self.words.send(Word::TooMany);
                return Some(version);
            }
            rest.push(MadeVertex { version, gui, id: id.clone() });
        }
        let first = rest.first()?.version;
        if self.words.send(Word::Rest(rest)).is_err() {
            return Some(first);
        }
        // Nothing said in time is a refusal: the load may ask again.
        self.settled.recv_timeout(SETTLE_WITHIN).unwrap_or(Some(first))
    }
}
