//! The change stream: what each transaction changed, read from the log.
//!
//! Roles: [`ChangeFeed`] reads the log of a graph beside its writer, in the process that has the log: that of an embedded
//! graph, or of a fleet's sequencer. [`Database::changes`] asks the feed of the backend.
//!
//! A record tells its changes if [`Options::streams`](crate::Options::streams) was set when it was committed. The
//! changes of a bulk load, of a fast reset and of a commit without the setting are not in the log: such a record is a
//! *gap*. What was before the newest gap is expired, because a reader that goes on behind a gap would have a wrong copy.
//!
//! Flow of a request: the *tail* reads on to the newest version, and so knows the newest gap and the newest changes;
//! most requests of readers that wait end here. Otherwise a *cursor* reads from the asked change on. Cursors stay where
//! they stopped, so a reader that goes on reads nothing twice.
//!
//! What must never happen: a reader that is told less than all changes between two of its requests, without an error;
//! a commit that waits for a reader.

use crate::backend::ReadOptions;
use crate::{Database, Error};
use parking_lot::{Mutex, MutexGuard};
use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;
use tidegraph_log::{Body, Follow, Follower, Record};
use tidegraph_platform::Clock;
use tidegraph_types::{
    Changes, ChangesFrom, ChangesOfCommit, ChangesPage, ChangesRequest, ErrorCode, EventId, Mutation,
    NoChanges, Version,
};

/// Number of requests that read the log at the same time.
const MOST_READERS: usize = 8;
/// Number of cursors that are kept between requests.
const MOST_CURSORS: usize = 8;
/// Bytes of changes that kept cursors hold; one may hold more.
const MOST_KEPT_BYTES: usize = 32 << 20;
/// Number of commits whose last change is known without a look into the log.
const MOST_ENDS: usize = 16_384;
/// Bytes that a change takes in an answer besides its texts.
const CHANGE_BYTES: usize = 160;
/// Longest wait before a reader looks whether it has to stop.
const POLL: Duration = Duration::from_millis(50);
/// Wait for a record that is committed and cannot be read yet.
const PAUSE: Duration = Duration::from_millis(1);

/// Why a feed has no answer.
#[derive(Debug, thiserror::Error)]
pub enum FeedError {
    /// There are no such changes.
    #[error(transparent)]
    None(#[from] NoChanges),
    /// Too many requests read the log.
    #[error("{MOST_READERS} requests read the change stream already: ask again later")]
    Busy,
    /// The request was stopped. The next one goes on with what this one read.
    #[error("reading the log for the change stream was stopped: ask again")]
    Stopped,
    /// The log cannot be read.
    #[error("the log cannot be read for the change stream: {0}")]
    Log(#[from] tidegraph_log::Error),
}

impl FeedError {
    /// Returns the code that a client sees.
    #[must_use]
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::None(NoChanges::NotYet(_)) => ErrorCode::StreamRecordsNotFound,
            Self::None(NoChanges::Expired(_)) => ErrorCode::ExpiredStream,
            Self::Busy => ErrorCode::TooManyRequests,
            Self::Stopped => ErrorCode::TimeLimitExceeded,
            Self::Log(error) => error.code(),
        }
    }
}

impl From<FeedError> for Error {
    fn from(error: FeedError) -> Self {
        Self::caused_by(error.code(), error)
    }
}

/// Reads the changes of a log. All threads share it.
pub struct ChangeFeed {
    log: Arc<dyn Follow>,
    clock: Arc<dyn Clock>,
    tail: Mutex<Tail>,
    /// The least recently used one first.
    cursors: Mutex<Vec<Cursor>>,
    readers: AtomicUsize,
}

impl fmt::Debug for ChangeFeed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChangeFeed").field("readers", &self.readers).finish_non_exhaustive()
    }
}

/// The changes of one commit; never empty.
struct Commit {
    version: Version,
    changes: Changes,
    bytes: usize,
}

impl Commit {
    fn last(&self) -> EventId {
        EventId { commit: self.version, op: self.changes.list.len() as u64 }
    }
}

/// A commit whose changes the log does not tell.
#[derive(Clone, Copy)]
struct Gap {
    version: Version,
    what: &'static str,
}

/// What is known of the whole log.
#[derive(Default)]
struct Tail {
    cursor: Option<Cursor>,
    /// The log was read from this version on.
    first: Version,
    gap: Option<Gap>,
    newest: Option<Arc<Commit>>,
    /// The last change of each commit behind the gap, the newest [`MOST_ENDS`] of them.
    ends: VecDeque<EventId>,
}

impl Tail {
    fn note(&mut self, commit: Arc<Commit>) {
        if self.ends.len() == MOST_ENDS {
            self.ends.pop_front();
        }
        self.ends.push_back(commit.last());
        self.newest = Some(commit);
    }

    fn note_gap(&mut self, gap: Gap) {
        (self.gap, self.newest) = (Some(gap), None);
        self.ends.clear();
    }

    /// Returns a place behind the last change of a commit as the beginning of the next one, whose record may be the
    /// first that is kept.
    fn settle(&self, start: EventId) -> EventId {
        let known = self.ends.binary_search_by_key(&start.commit, |end| end.commit);
        match known.ok().and_then(|at| self.ends.get(at)) {
            Some(end) if start.op > end.op => EventId { commit: end.commit.next(), op: 1 },
            _ => start,
        }
    }
}

/// A place in the log.
struct Cursor {
    follower: Box<dyn Follower>,
    /// Version of the last record that was read.
    at: Version,
    /// There are no changes between this version and `at`.
    since: Version,
    /// The commit of the version `since`, if the cursor read one there.
    last: Option<Arc<Commit>>,
    /// A record that no reader may see yet.
    held: Option<Record>,
}

/// What a cursor finds next.
enum Step {
    Commit(Arc<Commit>),
    Gap(Gap),
    End,
}

impl Cursor {
    fn behind(log: &dyn Follow, at: Version) -> Self {
        Self { follower: log.follow(at), at, since: at, last: None, held: None }
    }

    /// Whether the first change at or behind a place is the first one that the cursor finds, or one that it holds.
    fn fits(&self, start: EventId) -> bool {
        let holds = self.last.as_ref().is_some_and(|last| last.version == start.commit);
        holds || (self.since < start.commit && start.commit <= self.at.next())
    }

    /// Reads the next record that tells changes, up to a version.
    fn step(&mut self, upto: Version, clock: &dyn Clock, stop: &dyn Fn() -> bool) -> Result<Step, FeedError> {
        while self.at < upto {
            if stop() {
                return Err(FeedError::Stopped);
            }
            let record = match self.held.take() {
                Some(record) => record,
                None => match self.follower.next(POLL)? {
                    Some(record) => record,
                    None => {
                        clock.sleep(PAUSE);
                        continue;
                    }
                },
            };
            if record.version > upto {
                self.held = Some(record);
                break;
            }
            let version = record.version;
            self.at = version;
            match told(record.body) {
                Told::Nothing => {}
                Told::Changes(changes) => {
                    let bytes = changes.bytes();
                    let commit = Arc::new(Commit { version, changes, bytes });
                    (self.since, self.last) = (version, Some(commit.clone()));
                    return Ok(Step::Commit(commit));
                }
                Told::Gap(what) => {
                    (self.since, self.last) = (version, None);
                    return Ok(Step::Gap(Gap { version, what }));
                }
            }
        }
        Ok(Step::End)
    }

    fn bytes(&self) -> usize {
        self.last.as_ref().map_or(0, |last| last.bytes)
    }
}

/// What a record tells of changes.
enum Told {
    Nothing,
    Changes(Changes),
    Gap(&'static str),
}

fn told(body: Body) -> Told {
    match body {
        Body::Commit { changes: Some(changes), .. } if changes.list.is_empty() => Told::Nothing,
        Body::Commit { changes: Some(changes), .. } => Told::Changes(changes),
        Body::Commit { mutations, .. } if mutations.iter().any(|m| matches!(m, Mutation::Reset)) => {
            Told::Gap("a fast reset")
        }
        // Of a log of several shards only the first one is read, where other changes may have no part.
        Body::Commit { mutations, .. }
            if !mutations.is_empty() && mutations.iter().all(Mutation::is_of_schema) =>
        {
            Told::Nothing
        }
        Body::Commit { .. } => Told::Gap("a commit of a process that was started without streams"),
        Body::Load { .. } => Told::Gap("a bulk load"),
        Body::Tokens { .. } | Body::EpochStart | Body::Reserve { .. } => Told::Nothing,
    }
}

/// What a request knows of the log after the tail has read on.
struct Known {
    first: Version,
    gap: Option<Gap>,
    newest: Option<Arc<Commit>>,
}

/// Collects changes up to the limits of a request.
struct Collector<'r> {
    request: &'r ChangesRequest,
    page: ChangesPage,
    count: usize,
    bytes: usize,
}

impl Collector<'_> {
    fn is_full(&self) -> bool {
        self.count >= self.request.limit.max(1) || self.bytes >= self.request.bytes
    }

    /// Takes the changes of a commit from a number on.
    fn take(&mut self, commit: &Commit, op: u64) {
        let first = EventId { commit: commit.version, op: op.max(1) };
        let mut list = Vec::new();
        let skipped = usize::try_from(first.op - 1).unwrap_or(usize::MAX);
        for change in commit.changes.list.iter().skip(skipped) {
            if self.is_full() {
                break;
            }
            self.count += 1;
            self.bytes += CHANGE_BYTES + change.bytes();
            list.push(change.clone());
        }
        if !list.is_empty() {
            let is_end = skipped + list.len() == commit.changes.list.len();
            let changes = Changes { taken_ms: commit.changes.taken_ms, list };
            self.page.commits.push(ChangesOfCommit { first, is_end, changes });
        }
    }
}

impl ChangeFeed {
    /// Reads nothing yet.
    pub fn new(log: Arc<dyn Follow>, clock: Arc<dyn Clock>) -> Self {
        Self { log, clock, tail: Mutex::default(), cursors: Mutex::default(), readers: AtomicUsize::new(0) }
    }

    /// Returns changes in order, of commits up to the version `newest`, which must be acknowledged. `stop` is asked
    /// often.
    ///
    /// # Errors
    ///
    /// The kinds of [`FeedError`].
    pub fn page(
        &self,
        request: &ChangesRequest,
        newest: Version,
        stop: &dyn Fn() -> bool,
    ) -> Result<ChangesPage, FeedError> {
        let _reader = Reading::begin(&self.readers)?;
        let (known, start) = self.read_on(request, newest, stop)?;
        self.page_from(start, request, &known, stop)
    }

    /// Reads the changes from a place on.
    fn page_from(
        &self,
        start: EventId,
        request: &ChangesRequest,
        known: &Known,
        stop: &dyn Fn() -> bool,
    ) -> Result<ChangesPage, FeedError> {
        let mut collector = Collector { request, page: ChangesPage::default(), count: 0, bytes: 0 };
        let not_yet = || {
            let EventId { commit, op } = start;
            let newest = known.newest.as_ref().map(|newest| newest.last());
            let newest = newest.map_or("the stream has none".to_owned(), |newest| {
                format!("the newest is commit {} and operation {}", newest.commit, newest.op)
            });
            NoChanges::NotYet(format!(
                "there is no change at commit {commit}, operation {op} or later: {newest}"
            ))
        };
        if let Some(newest) = known.newest.as_ref().filter(|newest| newest.version == start.commit) {
            collector.take(newest, start.op);
            return if collector.page.commits.is_empty() {
                Err(not_yet().into())
            } else {
                Ok(collector.page)
            };
        }
        if let Some(gap) = known.gap.filter(|gap| start.commit <= gap.version) {
            return Err(NoChanges::Expired(format!(
                "commit {} is {}, whose changes the stream does not have, so changes before it are expired: copy the \
                 graph anew, and read on after commit {}",
                gap.version, gap.what, gap.version
            ))
            .into());
        }
        if start.commit < known.first {
            return Err(trimmed(start, known.first).into());
        }
        let upto = match &known.newest {
            Some(newest) if start.commit < newest.version => newest.version,
            _ => return Err(not_yet().into()),
        };
        let mut cursor = self.cursor(start);
        if let Some(last) = cursor.last.as_ref().filter(|last| last.version == start.commit) {
            collector.take(last, start.op);
        }
        while !collector.is_full() {
            match cursor.step(upto, &*self.clock, stop) {
                Ok(Step::Commit(commit)) => {
                    let op = if commit.version == start.commit { start.op } else { 1 };
                    collector.take(&commit, op);
                }
                // The tail found no gap here, so none can be; never hand out what is behind one.
                Ok(Step::Gap(_) | Step::End) => break,
                Err(FeedError::Log(tidegraph_log::Error::Trimmed { first, .. })) => {
                    if !collector.page.commits.is_empty() {
                        break;
                    }
                    if request.from != ChangesFrom::Oldest {
                        return Err(trimmed(start, first).into());
                    }
                    cursor = Cursor::behind(&*self.log, Version(first.0.saturating_sub(1)));
                }
                Err(FeedError::Stopped) if !collector.page.commits.is_empty() => break,
                Err(error) => return Err(error),
            }
        }
        self.keep(cursor);
        if collector.page.commits.is_empty() { Err(not_yet().into()) } else { Ok(collector.page) }
    }

    /// Reads the log up to a version. Returns what is known of it then, and where the request begins.
    fn read_on(
        &self,
        request: &ChangesRequest,
        newest: Version,
        stop: &dyn Fn() -> bool,
    ) -> Result<(Known, EventId), FeedError> {
        let mut tail = self.lock_tail(stop)?;
        let mut cursor = tail.cursor.take().unwrap_or_else(|| Cursor::behind(&*self.log, Version(0)));
        let read = loop {
            match cursor.step(newest, &*self.clock, stop) {
                Ok(Step::Commit(commit)) => tail.note(commit),
                Ok(Step::Gap(gap)) => tail.note_gap(gap),
                Ok(Step::End) => break Ok(()),
                Err(FeedError::Log(tidegraph_log::Error::Trimmed { first, .. })) if first > tail.first => {
                    tail.first = first;
                    cursor = Cursor::behind(&*self.log, Version(first.0.saturating_sub(1)));
                }
                Err(error) => break Err(error),
            }
        };
        // What was read is known to the next request, also if this one was stopped.
        tail.cursor = Some(cursor);
        read?;
        let known = Known { first: tail.first, gap: tail.gap, newest: tail.newest.clone() };
        let start = match request.from {
            ChangesFrom::At(id) => EventId { op: id.op.max(1), ..id },
            ChangesFrom::After(id) if known.gap.is_some_and(|gap| gap.version == id.commit) => {
                EventId { commit: id.commit.next(), op: 1 }
            }
            ChangesFrom::After(id) => EventId { op: id.op.saturating_add(1), ..id },
            ChangesFrom::Oldest => {
                let behind_gap = known.gap.map_or(known.first, |gap| gap.version.next());
                EventId { commit: behind_gap.max(known.first), op: 1 }
            }
            ChangesFrom::Newest => match &known.newest {
                Some(newest) => newest.last(),
                None => return Err(NoChanges::NotYet("the stream has no change".to_owned()).into()),
            },
        };
        Ok((known, tail.settle(start)))
    }

    fn lock_tail(&self, stop: &dyn Fn() -> bool) -> Result<MutexGuard<'_, Tail>, FeedError> {
        loop {
            if let Some(tail) = self.tail.try_lock_for(POLL) {
                return Ok(tail);
            }
            if stop() {
                return Err(FeedError::Stopped);
            }
        }
    }

    /// Takes a kept cursor that can go on at a place, or makes one.
    fn cursor(&self, start: EventId) -> Cursor {
        let mut cursors = self.cursors.lock();
        match cursors.iter().rposition(|cursor| cursor.fits(start)) {
            Some(at) => cursors.remove(at),
            None => Cursor::behind(&*self.log, Version(start.commit.0.saturating_sub(1))),
        }
    }

    fn keep(&self, cursor: Cursor) {
        let mut cursors = self.cursors.lock();
        cursors.push(cursor);
        let is_over = |cursors: &[Cursor]| {
            cursors.len() > MOST_CURSORS || cursors.iter().map(Cursor::bytes).sum::<usize>() > MOST_KEPT_BYTES
        };
        while cursors.len() > 1 && is_over(&cursors) {
            cursors.remove(0);
        }
    }
}

fn trimmed(start: EventId, first: Version) -> NoChanges {
    NoChanges::Expired(format!(
        "commit {} is no longer in the log, which begins with commit {first}: copy the graph anew, and read on with \
         LATEST or TRIM_HORIZON",
        start.commit
    ))
}

/// One of the requests that read the log.
struct Reading<'f>(&'f AtomicUsize);

impl<'f> Reading<'f> {
    fn begin(readers: &'f AtomicUsize) -> Result<Self, FeedError> {
        let reading = Self(readers);
        if readers.fetch_add(1, Ordering::AcqRel) >= MOST_READERS {
            Err(FeedError::Busy)
        } else {
            Ok(reading)
        }
    }
}

impl Drop for Reading<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Database {
    /// Returns changes of the graph in the order of their commits. Ends with an error after the time limit of a query, or
    /// when `cancel` is set.
    ///
    /// ```
    /// use tidegraph_engine::{Database, Language, Options, Parameters, Query};
    /// use tidegraph_types::{Changed, ChangesFrom, ChangesRequest};
    ///
    /// let database = Database::open(Options { streams: true, ..Options::default() })?;
    /// let none = Parameters::default();
    /// database.query(&Query::new(Language::OpenCypher, "CREATE ({`~id`: 'ada', name: 'Ada'})", &none))?;
    /// let request = ChangesRequest { from: ChangesFrom::Oldest, limit: 10, bytes: 1 << 20 };
    /// let page = database.changes(&request, None)?;
    /// let [label, name] = &page.commits[0].changes.list[..] else { panic!("{page:?}") };
    /// assert_eq!((label.id.as_str(), &label.what), ("ada", &Changed::VertexLabel(None)));
    /// assert!(matches!(&name.what, Changed::VertexProperty(_, value) if value.as_str() == Some("Ada")));
    /// # Ok::<(), tidegraph_engine::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// `UnsupportedOperation` if [`Options::streams`](crate::Options::streams) is off, or if the backend has no stream;
    /// `StreamRecordsNotFound` if there are no such changes yet; `ExpiredStream` if not all of them are kept;
    /// `TooManyRequests`, `TimeLimitExceeded`, and the errors of the log.
    pub fn changes(
        &self,
        request: &ChangesRequest,
        cancel: Option<&Arc<AtomicBool>>,
    ) -> Result<ChangesPage, Error> {
        if !self.options.streams {
            let message = "streams are off: start the service with --streams";
            return Err(Error::new(ErrorCode::UnsupportedOperation, message));
        }
        let deadline = Some(self.clock.now() + self.options.query_timeout);
        self.backend.changes(request, &ReadOptions { deadline, cancel })
    }

    /// Returns the name of a label or a key in a change.
    #[must_use]
    pub fn name(&self, token: tidegraph_types::Token) -> tidegraph_types::Str {
        self.backend.catalog().name(token)
    }
}
