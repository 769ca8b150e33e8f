//! One load: what was asked, how far it is, how it ended.

use super::{KEPT_ERRORS, LoadSpec};
use crate::Error;
use jiff::Timestamp;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicBool, Ordering};
use tidegraph_load::run::{Counts, FileState, Outcome, Progress};
use tidegraph_types::{ErrorCode, Version};

/// States of a load, in Neptune's words.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum LoadState {
    /// Taken, and next in line.
    NotStarted,
    /// Waits behind others.
    InQueue,
    /// Runs.
    InProgress,
    /// Visible.
    Completed,
    /// Ended by an error; nothing of it is visible.
    Failed,
    /// Ended by its user; nothing of it is visible.
    Cancelled,
    /// A load that it depends on did not complete.
    DependencyNotSatisfied,
    /// The source cannot be read.
    ReadError,
    /// The store refused the credentials.
    AccessDenied,
}

impl LoadState {
    /// Neptune's word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NotStarted => "LOAD_NOT_STARTED",
            Self::InQueue => "LOAD_IN_QUEUE",
            Self::InProgress => "LOAD_IN_PROGRESS",
            Self::Completed => "LOAD_COMPLETED",
            Self::Failed => "LOAD_FAILED",
            Self::Cancelled => "LOAD_CANCELLED_BY_USER",
            Self::DependencyNotSatisfied => "LOAD_FAILED_BECAUSE_DEPENDENCY_NOT_SATISFIED",
            Self::ReadError => "LOAD_S3_READ_ERROR",
            Self::AccessDenied => "LOAD_S3_ACCESS_DENIED_ERROR",
        }
    }

    /// Whether it stays so.
    #[must_use]
    pub fn is_final(self) -> bool {
        !matches!(self, Self::NotStarted | Self::InQueue | Self::InProgress)
    }
}

/// How it went with a load, or with one file of it.
#[derive(Clone, PartialEq, Debug)]
pub struct RunStatus {
    /// The source, or the file.
    pub full_uri: String,
    /// Which run of the load.
    pub run_number: u32,
    /// How often its source was tried before.
    pub retry_number: u32,
    /// Where it stands.
    pub state: LoadState,
    /// Seconds since the load began, or that it took.
    pub seconds_spent: u64,
    /// When the load began, seconds since 1970.
    pub start_unix_s: i64,
    /// What was read and refused.
    pub counts: Counts,
    /// Why it ended early, if not by a row.
    pub message: Option<String>,
}

/// A load as it is reported.
#[derive(Clone, PartialEq, Debug)]
pub struct LoadStatus {
    /// The load as a whole.
    pub overall: RunStatus,
    /// Number of files in each state.
    pub feed_count: Vec<(&'static str, u64)>,
    /// Files that were not loaded.
    pub failed_feeds: Vec<RunStatus>,
    /// Refused rows, as `contracts/schemas/rejected-row.schema.json` has them.
    pub errors: Vec<serde_json::Value>,
    /// Bytes read, as they are in the files.
    pub bytes_read: u64,
    /// Bytes of all files.
    pub bytes_total: u64,
    /// Labels and property values that became visible.
    pub property_values: u64,
    /// The version that made it visible.
    pub version: Option<u64>,
}

/// What is kept over a restart.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Kept {
    id: String,
    number: u64,
    spec: LoadSpec,
    drop_folder: Option<String>,
    retry_number: u32,
    /// Files that earlier loads of the source have made visible.
    done_before: Vec<String>,
    submitted: Timestamp,
    /// When it was written: where several processes load, a job that is not over and was not written for long has lost its own.
    #[serde(default)]
    written: Option<Timestamp>,
    /// After how many seconds without being written it is lost, where that is not the usual time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    patience_s: Option<i64>,
    #[serde(flatten)]
    progress: Inner,
}

#[derive(Clone, Serialize, Deserialize)]
struct Inner {
    state: LoadState,
    started: Option<Timestamp>,
    ended: Option<Timestamp>,
    version: Option<u64>,
    segments: bool,
    counts: Counts,
    feeds: Vec<(String, String, Counts)>,
    done: Vec<String>,
    errors: Vec<serde_json::Value>,
    bytes_read: u64,
    bytes_total: u64,
    message: Option<String>,
    /// A version at which it was not visible yet.
    #[serde(default)]
    not_at: u64,
    /// It ended, and whether it is visible is not known.
    #[serde(default)]
    open: bool,
}

/// One load.
pub(super) struct Job {
    id: String,
    number: u64,
    spec: LoadSpec,
    drop_folder: Option<String>,
    retry_number: u32,
    done_before: Vec<String>,
    submitted: Timestamp,
    cancelled: AtomicBool,
    patience_s: Option<i64>,
    /// When it was written by another process, or an earlier run of this one; `None` for one of our own.
    elsewhere: Option<Timestamp>,
    inner: Mutex<Inner>,
}

impl Job {
    pub fn new(
        id: String,
        number: u64,
        spec: LoadSpec,
        drop_folder: Option<String>,
        retry_of: Option<&Job>,
        must_wait: bool,
        submitted: Timestamp,
    ) -> Self {
        let done_before = retry_of.map_or_else(Vec::new, |job| {
            let inner = job.inner.lock();
            job.done_before.iter().chain(&inner.done).cloned().collect()
        });
        let inner = Inner {
            state: if must_wait { LoadState::InQueue } else { LoadState::NotStarted },
            started: None,
            ended: None,
            version: None,
            segments: false,
            counts: Counts::default(),
            feeds: vec![],
            done: vec![],
            errors: vec![],
            bytes_read: 0,
            bytes_total: 0,
            message: None,
            not_at: 0,
            open: false,
        };
        Self {
            id,
            number,
            spec,
            drop_folder,
            retry_number: retry_of.map_or(0, |job| job.retry_number + 1),
            done_before,
            submitted,
            cancelled: AtomicBool::new(false),
            patience_s: None,
            elsewhere: None,
            inner: Mutex::new(inner),
        }
    }

    pub fn parse(bytes: &[u8]) -> Result<Self, serde_json::Error> {
        let kept: Kept = serde_json::from_slice(bytes)?;
        Ok(Self {
            id: kept.id,
            number: kept.number,
            spec: kept.spec,
            drop_folder: kept.drop_folder,
            retry_number: kept.retry_number,
            done_before: kept.done_before,
            submitted: kept.submitted,
            cancelled: AtomicBool::new(false),
            patience_s: kept.patience_s,
            elsewhere: Some(kept.written.unwrap_or(kept.submitted)),
            inner: Mutex::new(kept.progress),
        })
    }

    pub fn to_bytes(&self, now: Timestamp) -> Result<Vec<u8>, Error> {
        let kept = Kept {
            id: self.id.clone(),
            number: self.number,
            spec: self.spec.clone(),
            drop_folder: self.drop_folder.clone(),
            retry_number: self.retry_number,
            done_before: self.done_before.clone(),
            submitted: self.submitted,
            written: Some(now),
            patience_s: self.patience_s,
            progress: self.inner.lock().clone(),
        };
        serde_json::to_vec_pretty(&kept).map_err(|e| Error::new(ErrorCode::Internal, e.to_string()))
    }

    /// It is lost only after so many seconds in which nobody writes it.
    pub fn set_patience(&mut self, seconds: i64) {
        self.patience_s = Some(seconds);
    }

    pub fn patience_s(&self) -> Option<i64> {
        self.patience_s
    }

    pub fn id(&self) -> &str {
        &self.id
    }

    pub fn number(&self) -> u64 {
        self.number
    }

    pub fn spec(&self) -> &LoadSpec {
        &self.spec
    }

    pub fn drop_folder(&self) -> Option<&str> {
        self.drop_folder.as_deref()
    }

    pub fn done_before(&self) -> &[String] {
        &self.done_before
    }

    pub fn state(&self) -> LoadState {
        self.inner.lock().state
    }

    /// When another process, or an earlier run of this one, wrote it; `None` for a job of our own.
    pub fn elsewhere(&self) -> Option<Timestamp> {
        self.elsewhere
    }

    /// Whether nothing will be learned about it any more.
    pub fn is_settled(&self) -> bool {
        let inner = self.inner.lock();
        inner.state.is_final() && !inner.open
    }

    /// A version at which it was not visible yet.
    pub fn not_at(&self) -> Version {
        Version(self.inner.lock().not_at)
    }

    pub fn set_not_at(&self, version: Version) {
        self.inner.lock().not_at = version.0;
    }

    pub fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }

    pub fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }

    pub fn begin(&self, now: Timestamp) {
        let mut inner = self.inner.lock();
        inner.state = LoadState::InProgress;
        inner.started = Some(now);
    }

    pub fn progress(&self, progress: &Progress) {
        let mut inner = self.inner.lock();
        inner.bytes_read = progress.bytes_read;
        inner.bytes_total = progress.bytes_total;
        inner.counts.rows = progress.rows;
        inner.counts.total_records = progress.records;
    }

    /// Takes over what a run found.
    pub fn outcome(&self, outcome: &Outcome) {
        let mut inner = self.inner.lock();
        inner.counts = outcome.counts;
        let state = |state: FileState| match state {
            FileState::Done | FileState::DoneWithErrors | FileState::Skipped => "LOAD_COMPLETED",
            FileState::Failed => "LOAD_FAILED",
            FileState::NotDone => "LOAD_NOT_STARTED",
        };
        inner.feeds =
            outcome.files.iter().map(|f| (f.name.to_string(), state(f.state).to_owned(), f.counts)).collect();
        inner.errors = outcome
            .errors
            .iter()
            .take(KEPT_ERRORS)
            .filter_map(|rejected| serde_json::to_value(rejected).ok())
            .collect();
        inner.bytes_read = inner.bytes_total;
    }

    /// Files that are visible from now on.
    pub fn done(&self, files: Vec<String>) {
        self.inner.lock().done = files;
    }

    pub fn committed(&self, version: Version) {
        let mut inner = self.inner.lock();
        inner.version = Some(version.0);
        inner.segments = true;
    }

    pub fn has_segments(&self) -> bool {
        self.inner.lock().segments
    }

    pub fn has_segments_below(&self, version: Version) -> bool {
        let inner = self.inner.lock();
        inner.segments && inner.version.is_some_and(|v| v <= version.0)
    }

    /// Whether it is known that it did not become visible, and was at a time already.
    pub fn has_failed_by(&self, time: Timestamp) -> bool {
        let inner = self.inner.lock();
        let failed = inner.state.is_final() && inner.state != LoadState::Completed && !inner.open;
        failed && inner.ended.is_some_and(|ended| ended <= time)
    }

    pub fn segments_removed(&self) {
        self.inner.lock().segments = false;
    }

    /// It ended, and whether it is visible is not known.
    pub fn end_open(&self, message: String, now: Timestamp) {
        self.end(LoadState::Failed, Some(message), now);
        let mut inner = self.inner.lock();
        inner.open = true;
        inner.segments = true;
    }

    pub fn end(&self, state: LoadState, message: Option<String>, now: Timestamp) {
        let mut inner = self.inner.lock();
        inner.state = state;
        inner.open = false;
        inner.message = message;
        inner.ended = Some(now);
        if state != LoadState::Completed {
            inner.done.clear();
            // What was read is gone again.
            for feed in &mut inner.feeds {
                if feed.1 == "LOAD_COMPLETED" {
                    state.as_str().clone_into(&mut feed.1);
                }
            }
        }
    }

    pub fn status(&self, now: Timestamp) -> LoadStatus {
        let inner = self.inner.lock();
        let start = inner.started.unwrap_or(self.submitted);
        let seconds = inner.ended.unwrap_or(now).as_second() - start.as_second();
        let seconds_spent = if inner.started.is_some() { u64::try_from(seconds).unwrap_or(0) } else { 0 };
        let run = |full_uri, state, counts, message| RunStatus {
            full_uri,
            run_number: 1,
            retry_number: self.retry_number,
            state,
            seconds_spent,
            start_unix_s: start.as_second(),
            counts,
            message,
        };
        let mut feed_count: Vec<(&'static str, u64)> = vec![];
        let mut failed_feeds = vec![];
        for (uri, state, counts) in &inner.feeds {
            let known = ["LOAD_COMPLETED", "LOAD_FAILED", "LOAD_NOT_STARTED", inner.state.as_str()];
            let word = known.into_iter().find(|w| w == state).unwrap_or("LOAD_FAILED");
            match feed_count.iter_mut().find(|(w, _)| *w == word) {
                Some((_, n)) => *n += 1,
                None => feed_count.push((word, 1)),
            }
            if word != "LOAD_COMPLETED" {
                failed_feeds.push(run(uri.clone(), LoadState::Failed, *counts, None));
            }
        }
        if feed_count.is_empty() {
            feed_count.push((inner.state.as_str(), 1));
        }
        LoadStatus {
            overall: run(self.spec.sources.join(","), inner.state, inner.counts, inner.message.clone()),
            feed_count,
            failed_feeds,
            errors: inner.errors.clone(),
            bytes_read: inner.bytes_read,
            bytes_total: inner.bytes_total,
            property_values: if inner.state == LoadState::Completed { inner.counts.total_records } else { 0 },
            version: inner.version,
        }
    }
}
