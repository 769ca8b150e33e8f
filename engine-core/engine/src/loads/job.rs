//! A job: the request, the progress and the outcome of one load.

use super::{KEPT_ERRORS, LoadSpec};
use crate::Error;
use jiff::Timestamp;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use tidegraph_load::run::{Counts, FileReport, FileState, Outcome, Progress};
use tidegraph_load::source::{Allowed, Stamp};
use tidegraph_types::{ErrorCode, Version};

/// The state of a load; Neptune's states.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum LoadState {
    /// The load runs next.
    NotStarted,
    /// The load waits behind others.
    InQueue,
    /// The load runs.
    InProgress,
    /// The load is visible.
    Completed,
    /// An error ended the load; nothing of it is visible.
    Failed,
    /// Its user cancelled the load; nothing of it is visible.
    Cancelled,
    /// A load that this one depends on did not complete.
    DependencyNotSatisfied,
    /// The source cannot be read.
    ReadError,
    /// The object store refused the credentials.
    AccessDenied,
}

impl LoadState {
    /// Returns Neptune's name of the state.
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

    /// Whether the load has ended.
    #[must_use]
    pub fn is_final(self) -> bool {
        !matches!(self, Self::NotStarted | Self::InQueue | Self::InProgress)
    }
}

/// The status of a load, or of one file of it.
#[derive(Clone, PartialEq, Debug)]
pub struct RunStatus {
    /// The source, or the file.
    pub full_uri: String,
    /// Number of the run; always 1.
    pub run_number: u32,
    /// Number of earlier loads of the source that this one continues.
    pub retry_number: u32,
    /// The state.
    pub state: LoadState,
    /// Duration of the load so far, in seconds.
    pub seconds_spent: u64,
    /// Start of the load, in seconds since 1970.
    pub start_unix_s: i64,
    /// Numbers of rows that were read and refused.
    pub counts: Counts,
    /// The error that ended the load, if there was one.
    pub message: Option<String>,
}

/// The report on a load.
#[derive(Clone, PartialEq, Debug)]
pub struct LoadStatus {
    /// The load as a whole.
    pub overall: RunStatus,
    /// Number of files by state.
    pub feed_count: Vec<(&'static str, u64)>,
    /// Files that were not loaded.
    pub failed_feeds: Vec<RunStatus>,
    /// Refused rows, in the form of `contracts/schemas/rejected-row.schema.json`.
    pub errors: Vec<serde_json::Value>,
    /// Bytes read of the files, which may be compressed.
    pub bytes_read: u64,
    /// Bytes of all files.
    pub bytes_total: u64,
    /// Number of labels and property values that became visible.
    pub property_values: u64,
    /// The version that made the load visible.
    pub version: Option<u64>,
    /// Files that were not read: an earlier load of the source made them visible, and they have not changed since.
    pub skipped: Vec<String>,
}

/// The file of a job.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct JobFile {
    id: String,
    number: u64,
    spec: LoadSpec,
    drop_folder: Option<String>,
    retry_number: u32,
    /// Files that earlier loads of the source made visible.
    done_before: Vec<DoneFile>,
    submitted: Timestamp,
    /// Time of this write. If several processes load, a job that has not ended, and was
    /// not written for a long time, has lost its process.
    #[serde(default)]
    written: Option<Timestamp>,
    /// Seconds without a write after which the job is lost, if they are not the usual ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    patience_s: Option<i64>,
    #[serde(flatten)]
    progress: Inner,
}

/// A file that a load made visible, as it was then.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct DoneFile {
    name: String,
    #[serde(flatten)]
    stamp: Stamp,
}

impl DoneFile {
    pub fn of(report: &FileReport) -> Self {
        Self { name: report.name.to_string(), stamp: report.stamp.clone() }
    }
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
    done: Vec<DoneFile>,
    /// Files that were not read, because an earlier load had done so.
    #[serde(default)]
    skipped: Vec<String>,
    errors: Vec<serde_json::Value>,
    bytes_read: u64,
    bytes_total: u64,
    message: Option<String>,
    /// A version at which the load was not visible.
    #[serde(default)]
    not_at: u64,
    /// Whether the load has ended, but may be visible.
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
    done_before: Vec<DoneFile>,
    /// What the load may read. A job of another process runs there.
    allowed: Allowed,
    submitted: Timestamp,
    cancelled: AtomicBool,
    patience_s: Option<i64>,
    /// Time at which another process, or an earlier one here, wrote the job; `None` for a job of this process.
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
            // Of a file that was loaded again, the newest stamp counts.
            let all = job.done_before.iter().chain(&inner.done).map(|file| (&file.name, file));
            all.collect::<BTreeMap<_, _>>().into_values().cloned().collect()
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
            skipped: vec![],
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
            allowed: Allowed::nothing(),
            submitted,
            cancelled: AtomicBool::new(false),
            patience_s: None,
            elsewhere: None,
            inner: Mutex::new(inner),
        }
    }

    pub fn parse(bytes: &[u8]) -> Result<Self, serde_json::Error> {
        let kept: JobFile = serde_json::from_slice(bytes)?;
        Ok(Self {
            id: kept.id,
            number: kept.number,
            spec: kept.spec,
            drop_folder: kept.drop_folder,
            retry_number: kept.retry_number,
            done_before: kept.done_before,
            allowed: Allowed::nothing(),
            submitted: kept.submitted,
            cancelled: AtomicBool::new(false),
            patience_s: kept.patience_s,
            elsewhere: Some(kept.written.unwrap_or(kept.submitted)),
            inner: Mutex::new(kept.progress),
        })
    }

    pub fn to_bytes(&self, now: Timestamp) -> Result<Vec<u8>, Error> {
        let kept = JobFile {
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
        serde_json::to_vec_pretty(&kept).map_err(|e| Error::caused_by(ErrorCode::Internal, e))
    }

    /// Sets after how many seconds without a write the job is lost.
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

    /// Returns the files that earlier loads of the source made visible, as they were then.
    pub fn done_before(&self) -> BTreeMap<String, Stamp> {
        self.done_before.iter().map(|file| (file.name.clone(), file.stamp.clone())).collect()
    }

    /// Sets what the load may read: nothing before that.
    pub fn allow(&mut self, allowed: Allowed) {
        self.allowed = allowed;
    }

    pub fn allowed(&self) -> &Allowed {
        &self.allowed
    }

    /// Says how many files were skipped, and the first of them.
    pub fn skipped(&self) -> Option<String> {
        let inner = self.inner.lock();
        let first = inner.skipped.first()?;
        Some(format!(
            "skipped {} of {} files, which an earlier load of the source made visible and which have not changed: {first}{}",
            inner.skipped.len(),
            inner.feeds.len(),
            if inner.skipped.len() > 1 { ", …" } else { "" },
        ))
    }

    pub fn state(&self) -> LoadState {
        self.inner.lock().state
    }

    /// Returns when another process, or an earlier one here, wrote the job; `None` for a job of this process.
    pub fn elsewhere(&self) -> Option<Timestamp> {
        self.elsewhere
    }

    /// Whether the outcome is final and known.
    pub fn is_resolved(&self) -> bool {
        let inner = self.inner.lock();
        inner.state.is_final() && !inner.open
    }

    /// Returns a version at which the load was not visible.
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

    /// Sets the counts, the files and the refused rows of a run.
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
        let skipped = outcome.files.iter().filter(|file| file.state == FileState::Skipped);
        inner.skipped = skipped.map(|file| file.name.to_string()).collect();
        inner.errors = outcome
            .errors
            .iter()
            .take(KEPT_ERRORS)
            .filter_map(|rejected| serde_json::to_value(rejected).ok())
            .collect();
        inner.bytes_read = inner.bytes_total;
    }

    /// Sets the files that the load made visible.
    pub fn done(&self, files: Vec<DoneFile>) {
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

    /// Whether the load certainly failed, and did so by `time`.
    pub fn has_failed_by(&self, time: Timestamp) -> bool {
        let inner = self.inner.lock();
        let failed = inner.state.is_final() && inner.state != LoadState::Completed && !inner.open;
        failed && inner.ended.is_some_and(|ended| ended <= time)
    }

    pub fn segments_removed(&self) {
        self.inner.lock().segments = false;
    }

    /// Ends a load of which it is unknown whether it is visible.
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
            // The rows that were read are not visible.
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
            skipped: inner.skipped.clone(),
        }
    }
}
