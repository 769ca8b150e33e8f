//! Writes groups of requests to the log and applies them. One caller at a time runs it. The flow is in the crate's
//! documentation.

use crate::committed_requests::{CommittedRequests, RequestStatus};
use crate::created::{Comparison, CreatedVertices};
use crate::error::{Stopped, cause};
use crate::keys::Keys;
use crate::request::{AskedLoad, LoadCommit, LoadProgress, Reply, Request, is_checked_by_loads};
use crate::sequencer::{Applier, GOING_DOWN, Shared};
use crate::{Error, SequencerConfig};
use rustc_hash::FxHashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tidegraph_log::{Body, Cause, LogStore, Record};
use tidegraph_types::{
    CommitRequest, Epoch, LoadChanges, MadeSince, Mutation, RequestId, ShardId, Sid, Str, Token, Version,
};

pub(crate) struct Committer {
    shared: Arc<Shared>,
    log: Box<dyn LogStore>,
    applier: Box<dyn Applier>,
    keys: Keys,
    created: CreatedVertices,
    committed_requests: CommittedRequests,
    /// Version of the last record in the log.
    version: Version,
    epoch: Epoch,
    /// Whether the log has a record of this epoch.
    epoch_started: bool,
    /// The load of the group that was asked to compare itself with the last changes.
    asked: Option<AskedLoad>,
}

impl std::fmt::Debug for Committer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Committer")
            .field("version", &self.version)
            .field("epoch", &self.epoch)
            .finish_non_exhaustive()
    }
}

/// Requests that share one append. All of it is dropped if the log refuses the append.
#[derive(Default)]
struct Group {
    records: Vec<Record>,
    /// The callers that wait, and for what.
    waiting: Vec<Waiting>,
    new_tokens: Vec<(Token, Str)>,
    by_name: FxHashMap<Str, Token>,
}

enum Waiting {
    /// For a record, by its index in the group. The request can be rebuilt from both.
    Commit {
        record: usize,
        request: CommitRequest,
        bytes: usize,
        reply: Reply<Version>,
    },
    /// For the record of another request with the same id (TXN-4).
    Again {
        record: usize,
        request: CommitRequest,
        bytes: usize,
        reply: Reply<Version>,
    },
    Load {
        record: usize,
        load: LoadCommit,
        reply: Reply<LoadProgress>,
    },
    Reserve {
        record: usize,
        count: u64,
        reply: Reply<Version>,
    },
    Intern {
        tokens: Vec<Token>,
        names: Vec<Str>,
        reply: Reply<Vec<Token>>,
    },
}

/// The answer to a caller once the group is durable.
enum Answer {
    Version {
        record: usize,
        reply: Reply<Version>,
    },
    Load {
        record: usize,
        reply: Reply<LoadProgress>,
    },
    /// The record is that of an earlier request with the same key.
    Repeated {
        record: usize,
        reply: Reply<Version>,
    },
    Tokens {
        tokens: Vec<Token>,
        reply: Reply<Vec<Token>>,
    },
}

impl From<Waiting> for Answer {
    fn from(waiting: Waiting) -> Self {
        match waiting {
            Waiting::Again { record, request, reply, .. } if request.by_key => {
                Self::Repeated { record, reply }
            }
            Waiting::Load { record, reply, .. } => Self::Load { record, reply },
            Waiting::Commit { record, reply, .. }
            | Waiting::Again { record, reply, .. }
            | Waiting::Reserve { record, reply, .. } => Self::Version { record, reply },
            Waiting::Intern { tokens, reply, .. } => Self::Tokens { tokens, reply },
        }
    }
}

impl Committer {
    pub fn new(
        shared: Arc<Shared>,
        config: &SequencerConfig,
        log: Box<dyn LogStore>,
        applier: Box<dyn Applier>,
        committed_requests: CommittedRequests,
        version: Version,
        epoch: Epoch,
    ) -> Self {
        let keys = Keys::new(config.remembered_keys, config.most_remembered_keys, version);
        let created = CreatedVertices::new(version);
        Self {
            shared,
            log,
            applier,
            keys,
            created,
            committed_requests,
            version,
            epoch,
            epoch_started: false,
            asked: None,
        }
    }

    /// Processes requests that were taken from the queue together. A load can only be the last of them. Returns the load
    /// if it was asked to compare itself with the last changes: nothing may be committed until it has reported.
    pub fn take(&mut self, taken: Vec<Request>) -> Option<AskedLoad> {
        debug_assert!(taken.iter().rev().skip(1).all(|request| !matches!(request, Request::Load { .. })));
        let mut requests = Vec::with_capacity(taken.len());
        let (mut trims, mut syncs, mut outcomes) = (Vec::new(), Vec::new(), Vec::new());
        let mut stop = None;
        for request in taken {
            match request {
                Request::Stop { reply } => stop = Some(reply),
                Request::Trim { below, reply } => trims.push((below, reply)),
                Request::Sync { reply } => syncs.push(reply),
                Request::Outcome { id, since, by_key, reply } => outcomes.push((id, since, by_key, reply)),
                request => requests.push(request),
            }
        }
        if !requests.is_empty() {
            self.serve(requests);
        }
        for (id, since, by_key, reply) in outcomes {
            reply.send(self.outcome(id, since, by_key));
        }
        if !syncs.is_empty() {
            self.sync(syncs);
        }
        for (below, reply) in trims {
            reply.send(self.log.trim(below).map_err(Error::unavailable));
        }
        if let Some(reply) = stop {
            self.stop_quietly();
            reply.send(Ok(()));
        }
        let mut asked = self.asked.take()?;
        if self.shared.stopped.lock().is_some() {
            drop(asked.load);
            asked.reply.send(Err(self.stopped()));
            return None;
        }
        // What the load was asked about includes the records of its group.
        (asked.load.compared, asked.load.changes_compared) = (self.version, self.version);
        Some(asked)
    }

    fn sync(&mut self, waiting: Vec<Reply<()>>) {
        let synced = self.log.sync().map_err(|error| {
            self.stop("the last records could not be synced and may be lost", error);
            self.stopped()
        });
        waiting.into_iter().for_each(|reply| reply.send(synced.clone()));
    }

    /// No request waits: the log may send its readers the mark that the next append would have carried.
    pub fn on_idle(&mut self) {
        self.log.on_idle();
    }

    /// Records the vertices that are created from now on: a bulk load begins.
    pub fn watch(&mut self) {
        self.created.begin(self.version);
    }

    /// Vertices created after a version, if they were recorded.
    pub fn made_above(&self, version: Version, most_bytes: usize) -> Option<MadeSince> {
        self.created.above(version, self.version, most_bytes)
    }

    /// Changes after a version that loads depend on, about `most` of them.
    pub fn changes_above(&self, version: Version, most: usize) -> LoadChanges {
        self.created.changes_above(version, self.version, most)
    }

    /// Drops the vertices up to a version that every running load has compared with its own.
    pub fn forget_made(&mut self, upto: Version) {
        self.created.forget(upto);
    }

    /// The version of a committed request that read at version `since` or later; see [`Sequencer::outcome`].
    fn outcome(&self, request: RequestId, since: Version, by_key: bool) -> Result<Option<Version>, Error> {
        if self.shared.stopped.lock().is_some() {
            return Err(self.stopped());
        }
        let known = &self.committed_requests;
        match if by_key { known.look_up_key(request) } else { known.look_up(request) } {
            RequestStatus::Committed(version) => Ok(Some(version)),
            RequestStatus::KeyReused(version) => Err(Error::KeyReused { version }),
            RequestStatus::NotCommittedAbove(forgotten) if forgotten <= since => Ok(None),
            RequestStatus::NotCommittedAbove(forgotten) => {
                Err(Error::Forgotten { request, read_version: since, forgotten })
            }
        }
    }

    fn stop_quietly(&self) {
        self.shared.stopped.lock().get_or_insert_with(|| cause(GOING_DOWN));
    }

    /// Commits requests as one group. If the log refuses the group because of its size, commits
    /// each request alone: one that is too large for the disk must not block the others.
    fn serve(&mut self, requests: Vec<Request>) {
        let Some(group) = self.form(requests) else { return };
        let alone = group.waiting.len() == 1;
        match self.append(&group.records) {
            Ok(()) => self.finish(group),
            Err(error) => {
                self.keys.undo_group();
                self.committed_requests.undo_group();
                let requests = group.into_requests();
                match error {
                    tidegraph_log::Error::Full(_) | tidegraph_log::Error::Encode { .. } if !alone => {
                        requests.into_iter().for_each(|request| self.serve(vec![request]));
                    }
                    error => self.refuse(requests, error),
                }
            }
        }
    }

    /// Checks requests in order (TXN-2) and makes the records of those that may commit. Answers the others. `None` if
    /// there is nothing to write.
    fn form(&mut self, requests: Vec<Request>) -> Option<Group> {
        let mut group = Group::default();
        if let Some(reason) = self.shared.stopped.lock().clone() {
            let refuse = |request: Request| request.refuse(Error::Unavailable { reason: reason.clone() });
            requests.into_iter().for_each(refuse);
            return None;
        }
        if !self.epoch_started {
            self.push(&mut group, Body::EpochStart);
        }
        for request in requests {
            match request {
                Request::Commit { request, bytes, yields, reply } => {
                    self.form_commit(&mut group, request, bytes, yields, reply)
                }
                Request::Load { load, yields, reply } => self.form_load(&mut group, load, yields, reply),
                Request::Intern { names, reply } => self.form_intern(&mut group, names, reply),
                Request::Reserve { count, reply } => {
                    let next_sid = Sid(self.next_sid().0.saturating_add(count).max(self.shared.reserved()));
                    let record = self.push(&mut group, Body::Reserve { next_sid });
                    group.waiting.push(Waiting::Reserve { record, count, reply });
                }
                Request::Outcome { .. }
                | Request::Trim { .. }
                | Request::Sync { .. }
                | Request::Stop { .. } => {}
            }
        }
        if group.waiting.is_empty() { None } else { Some(group) }
    }

    fn form_commit(
        &mut self,
        group: &mut Group,
        mut request: CommitRequest,
        bytes: usize,
        yields: bool,
        reply: Reply<Version>,
    ) {
        if let Err(error) = self.check_version(request.read_version) {
            reply.send(Err(error));
            return;
        }
        let read_version = request.read_version;
        if let Some(id) = request.request {
            let by_key = request.by_key;
            // A request that is run again reads at a newer version, but may have been committed since it was first sent.
            let since = request.first_asked.unwrap_or(read_version);
            let known = &self.committed_requests;
            match if by_key { known.look_up_key(id) } else { known.look_up(id) } {
                RequestStatus::Committed(version) if version > self.version => {
                    let of = |record: &Record| record.version == version;
                    let record = group.records.iter().position(of).unwrap_or_default();
                    group.waiting.push(Waiting::Again { record, request, bytes, reply });
                    return;
                }
                RequestStatus::Committed(version) => {
                    reply.send(if by_key { Err(Error::Repeated { version }) } else { Ok(version) });
                    return;
                }
                RequestStatus::KeyReused(version) => {
                    reply.send(Err(Error::KeyReused { version }));
                    return;
                }
                RequestStatus::NotCommittedAbove(forgotten) if forgotten > since => {
                    reply.send(Err(Error::Forgotten { request: id, read_version: since, forgotten }));
                    return;
                }
                RequestStatus::NotCommittedAbove(_) => {}
            }
        }
        if let Some(written) = self.keys.conflict(&request.read_keys, read_version) {
            reply.send(Err(Error::Conflict { read_version, written }));
            return;
        }
        if yields {
            reply.send(Err(Error::LoadTurn { read_version }));
            return;
        }
        let mutations = std::mem::take(&mut request.mutations);
        let checked_by_loads = is_checked_by_loads(&mutations);
        let resets = mutations.iter().any(|mutation| matches!(mutation, Mutation::Reset));
        let (next_sid, id, changes) = (self.next_sid(), request.request, request.changes.take());
        let record = self.push(group, Body::Commit { mutations, next_sid, request: id, changes });
        let version = group.records[record].version;
        if let Some(id) = id {
            self.committed_requests.add(id, version);
        }
        self.keys.write(&request.write_keys, version, checked_by_loads);
        if resets {
            // Whatever a transaction read before is gone.
            self.keys.write_all(version);
        }
        group.waiting.push(Waiting::Commit { record, request, bytes, reply });
    }

    fn form_load(&mut self, group: &mut Group, load: LoadCommit, yields: bool, reply: Reply<LoadProgress>) {
        // A caller with an answer may begin the load again at once, so the load is dropped first.
        let refuse = |load: LoadCommit, reply: Reply<LoadProgress>, error| {
            drop(load);
            reply.send(Err(error));
        };
        let read_version = load.read_version;
        let id = RequestId::of_text(&load.load_id);
        if let Some(first_asked) = load.first_asked {
            match self.committed_requests.look_up(id) {
                RequestStatus::Committed(version) if version > self.version => {
                    let of = |record: &Record| record.version == version;
                    let record = group.records.iter().position(of).unwrap_or_default();
                    group.waiting.push(Waiting::Load { record, load, reply });
                    return;
                }
                RequestStatus::Committed(version) => {
                    drop(load);
                    reply.send(Ok(LoadProgress::Committed(version)));
                    return;
                }
                RequestStatus::NotCommittedAbove(forgotten) if forgotten > first_asked => {
                    let error = Error::Forgotten { request: id, read_version: first_asked, forgotten };
                    return refuse(load, reply, error);
                }
                RequestStatus::KeyReused(_) | RequestStatus::NotCommittedAbove(_) => {}
            }
        }
        if yields {
            return refuse(load, reply, Error::LoadTurn { read_version });
        }
        let [compared, changes_compared] =
            [load.compared, load.changes_compared].map(|version| version.max(read_version));
        if let Err(error) = self.check_version(compared.max(changes_compared)) {
            return refuse(load, reply, error);
        }
        let compared = match self.keys.conflict(&load.read_keys, read_version) {
            Some(written) => Comparison::Conflict(written),
            None => {
                let may = self.keys.load_conflict(changes_compared);
                self.created.compare(compared, changes_compared, may, &group.records, &*load.vertices)
            }
        };
        match compared {
            Comparison::Free => {}
            Comparison::Conflict(written) => {
                return refuse(load, reply, Error::Conflict { read_version, written });
            }
            Comparison::Asked(limit) => {
                self.asked = Some(AskedLoad { load, limit, reply });
                return;
            }
        }
        let (load_id, segments) = (load.load_id.clone(), load.segments.clone());
        let record = self.push(group, Body::Load { load_id, segments, next_sid: self.next_sid() });
        let version = group.records[record].version;
        self.committed_requests.add(id, version);
        self.keys.write_all(version);
        group.waiting.push(Waiting::Load { record, load, reply });
    }

    fn form_intern(&mut self, group: &mut Group, names: Vec<Str>, reply: Reply<Vec<Token>>) {
        let dictionary = &self.shared.dictionary;
        let mut tokens = Vec::with_capacity(names.len());
        let before = group.new_tokens.len();
        for name in &names {
            let token = match dictionary.lookup(name).or_else(|| group.by_name.get(name).copied()) {
                Some(token) => token,
                None => {
                    let count = group.new_tokens.len() as u32;
                    let Some(token) = dictionary.next().and_then(|t| t.0.checked_add(count)).map(Token)
                    else {
                        for (_, name) in group.new_tokens.drain(before..) {
                            group.by_name.remove(&name);
                        }
                        reply.send(Err(Error::DictionaryFull { count: dictionary.len() }));
                        return;
                    };
                    group.by_name.insert(name.clone(), token);
                    group.new_tokens.push((token, name.clone()));
                    token
                }
            };
            tokens.push(token);
        }
        if group.new_tokens.len() > before {
            let assigned = group.new_tokens[before..].to_vec();
            self.push(group, Body::Tokens { assigned });
        } else if tokens.iter().all(|token| dictionary.name(*token).is_some()) {
            // Another request assigned them meanwhile: nothing to write.
            reply.send(Ok(tokens));
            return;
        }
        group.waiting.push(Waiting::Intern { tokens, names, reply });
    }

    fn check_version(&self, read_version: Version) -> Result<(), Error> {
        // Versions of this group cannot have been read either: the handle shows only published ones.
        let newest = self.version;
        if read_version > newest { Err(Error::FutureVersion { read_version, newest }) } else { Ok(()) }
    }

    fn next_sid(&self) -> Sid {
        // A SID in a request was handed out before the request was queued.
        Sid(self.shared.next_sid.load(Ordering::Relaxed))
    }

    /// Adds a record with the next version (TXN-1).
    fn push(&self, group: &mut Group, body: Body) -> usize {
        let version = group.records.last().map_or(self.version, |r| r.version).next();
        group.records.push(Record { shard: ShardId(0), epoch: self.epoch, version, body });
        group.records.len() - 1
    }

    fn append(&mut self, records: &[Record]) -> Result<(), tidegraph_log::Error> {
        // A group whose callers wait for tokens of another request has the record of that request.
        self.log.append(records)?;
        // The files of a load note that it is committed, so its record must be durable before they do (LOG-5).
        if records.iter().any(|record| matches!(record.body, Body::Load { .. })) {
            self.log.sync()?;
        }
        self.epoch_started = true;
        self.shared.log_bytes.store(self.log.bytes(), Ordering::Relaxed);
        Ok(())
    }

    /// Applies and publishes the records of a durable group, and answers its callers.
    fn finish(&mut self, group: Group) {
        self.keys.keep_group();
        self.committed_requests.keep_group();
        for (token, name) in group.new_tokens {
            self.shared.dictionary.add(token, name);
        }
        // The requests are dropped first, because applying a load needs the memory.
        let answers: Vec<Answer> = group.waiting.into_iter().map(Answer::from).collect();
        if self.shared.loads.load(Ordering::Acquire) == 0 {
            self.created.end();
        }
        let mut applied = group.records.len();
        for (index, record) in group.records.iter().enumerate() {
            self.version = record.version;
            self.created.note(record);
            match &record.body {
                Body::Reserve { next_sid } => {
                    self.shared.reserved_sid.fetch_max(next_sid.0, Ordering::AcqRel);
                }
                // Must happen before the version of the load can be read.
                Body::Load { .. } => self.shared.newest_load.store(record.version.0, Ordering::Release),
                Body::Commit { mutations, .. } if mutations.iter().any(Mutation::is_of_schema) => {
                    self.shared.newest_schema.store(record.version.0, Ordering::Release);
                }
                _ => {}
            }
            let applier = &mut self.applier;
            if catch_unwind(AssertUnwindSafe(|| applier.apply(record))).is_err() {
                let version = record.version;
                self.stop_because(cause(format!(
                    "version {version} is durable but could not be applied: restart the service"
                )));
                applied = index;
                break;
            }
            self.shared.version.store(record.version.0, Ordering::Release);
        }
        self.version = group.records.last().map_or(self.version, |r| r.version);
        for answer in answers {
            match answer {
                Answer::Version { record, reply } => {
                    let version = group.records[record].version;
                    reply.send(if record < applied { Ok(version) } else { Err(self.in_doubt()) });
                }
                Answer::Load { record, reply } => {
                    let progress = LoadProgress::Committed(group.records[record].version);
                    reply.send(if record < applied { Ok(progress) } else { Err(self.in_doubt()) });
                }
                Answer::Repeated { record, reply } => {
                    let version = group.records[record].version;
                    let known = if record < applied { Error::Repeated { version } } else { self.in_doubt() };
                    reply.send(Err(known));
                }
                Answer::Tokens { tokens, reply } => reply.send(Ok(tokens)),
            }
        }
    }

    fn refuse(&self, requests: Vec<Request>, error: tidegraph_log::Error) {
        let error = match error {
            error @ (tidegraph_log::Error::Full(_)
            | tidegraph_log::Error::Io(_)
            | tidegraph_log::Error::Encode { .. }) => {
                tracing::warn!(%error, "the log refused a group of transactions");
                Error::unavailable(error)
            }
            error => {
                self.stop("a restart shows whether the last transactions were committed", error);
                self.in_doubt()
            }
        };
        requests.into_iter().for_each(|request| request.refuse(error.clone()));
    }

    /// Refuses every write from now on, because of an error of the log. Reads continue.
    fn stop(&self, consequence: &'static str, source: tidegraph_log::Error) {
        self.stop_because(Arc::new(Stopped { consequence, source }));
    }

    fn stop_because(&self, reason: Cause) {
        tracing::error!(%reason, "the sequencer stops");
        self.shared.stopped.lock().get_or_insert(reason);
    }

    fn stopped(&self) -> Error {
        Error::Unavailable { reason: self.stop_reason() }
    }

    /// The error of a request that was handed to the log before the sequencer stopped.
    fn in_doubt(&self) -> Error {
        Error::InDoubt { reason: self.stop_reason() }
    }

    fn stop_reason(&self) -> Cause {
        self.shared.stopped.lock().clone().unwrap_or_else(|| cause(GOING_DOWN))
    }
}

impl Group {
    /// The requests as they came, if the log refused the group.
    fn into_requests(mut self) -> Vec<Request> {
        let records = &mut self.records;
        let again = |waiting| match waiting {
            Waiting::Commit { record, mut request, bytes, reply } => {
                if let Body::Commit { mutations, changes, .. } = &mut records[record].body {
                    request.mutations = std::mem::take(mutations);
                    request.changes = changes.take();
                }
                Request::Commit { request, bytes, yields: false, reply }
            }
            Waiting::Again { request, bytes, reply, .. } => {
                Request::Commit { request, bytes, yields: false, reply }
            }
            Waiting::Load { load, reply, .. } => Request::Load { load, yields: false, reply },
            Waiting::Reserve { count, reply, .. } => Request::Reserve { count, reply },
            Waiting::Intern { names, reply, .. } => Request::Intern { names, reply },
        };
        self.waiting.into_iter().map(again).collect()
    }
}
