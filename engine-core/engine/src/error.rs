//! The error at the engine's boundary: a stable code, a message, how to retry, and the errors that caused it.
//!
//! The errors of the crates below become an [`Error`] by `From`. Each stays reachable by
//! [`std::error::Error::source`], down to the `io::Error` of a disk if the crates between
//! keep it. [`Error::retry`] decides about a retry; no code reads messages.

use std::fmt;
use std::sync::Arc;
use tidegraph_platform::Chain;
use tidegraph_types::ErrorCode;

/// Why the database did not carry out a request.
#[derive(Clone, Debug)]
pub struct Error {
    code: ErrorCode,
    retry: Retry,
    message: String,
    source: Option<Arc<dyn std::error::Error + Send + Sync>>,
}

/// How a failed request can succeed unchanged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Retry {
    /// It cannot: it would fail again, or it is unknown whether it was committed.
    Never,
    /// Another transaction wrote what the request read: run it again at a newer version.
    NewerVersion,
    /// This process has not reached the version that the request asks for: wait, and ask again.
    Wait,
    /// A replica was lost before anything was handed to the sequencer: run it again at the same version, where another
    /// replica may answer.
    OtherReplica,
}

impl Error {
    /// Makes an error that no other error caused. Errors of the code [`ErrorCode::ConcurrentModification`] can be
    /// retried at a newer version, others not at all.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        let retry = match code {
            ErrorCode::ConcurrentModification => Retry::NewerVersion,
            _ => Retry::Never,
        };
        Self { code, retry, message: message.into(), source: None }
    }

    /// Makes an error with the message of the error that caused it.
    pub fn caused_by(code: ErrorCode, source: impl std::error::Error + Send + Sync + 'static) -> Self {
        Self::new(code, source.to_string()).with_source(source)
    }

    /// Adds the error that caused this one.
    #[must_use]
    pub fn with_source(mut self, source: impl std::error::Error + Send + Sync + 'static) -> Self {
        self.source = Some(Arc::new(source));
        self
    }

    /// Sets how the request can be retried.
    #[must_use]
    pub fn with_retry(mut self, retry: Retry) -> Self {
        self.retry = retry;
        self
    }

    /// Returns the stable code.
    ///
    /// ```
    /// use tidegraph_engine::{Database, Language, Options, Parameters, Query};
    /// use tidegraph_types::ErrorCode;
    ///
    /// let database = Database::open(Options::default())?;
    /// let parameters = Parameters::default();
    /// let query = Query::new(Language::OpenCypher, "MATCH (p:Person RETURN p", &parameters);
    /// let error = database.query(&query).unwrap_err();
    /// assert_eq!(error.code(), ErrorCode::MalformedQuery);
    /// assert_eq!(error.code().http_status(), 400);
    /// # Ok::<(), tidegraph_engine::Error>(())
    /// ```
    #[must_use]
    pub fn code(&self) -> ErrorCode {
        self.code
    }

    /// Returns how the request can be retried.
    #[must_use]
    pub fn retry(&self) -> Retry {
        self.retry
    }

    /// Displays the message and the messages of all causes, for logs.
    #[must_use]
    pub fn chain(&self) -> Chain<'_> {
        tidegraph_platform::chain(self)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        // Not the `Arc`: a caller that asks for the type of the cause must find the cause.
        self.source.as_ref().map(|source| &**source as _)
    }
}

/// A read of storage that failed.
fn retry_of_read(error: &tidegraph_apl::Error) -> Retry {
    match error {
        tidegraph_apl::Error::Behind { .. } => Retry::Wait,
        tidegraph_apl::Error::Unavailable(_) | tidegraph_apl::Error::NotServed(_) => Retry::OtherReplica,
        _ => Retry::Never,
    }
}

impl From<tidegraph_apl::Error> for Error {
    fn from(error: tidegraph_apl::Error) -> Self {
        let retry = retry_of_read(&error);
        Self::caused_by(error.code(), error).with_retry(retry)
    }
}

impl From<tidegraph_exec::Error> for Error {
    fn from(error: tidegraph_exec::Error) -> Self {
        match error {
            tidegraph_exec::Error::Storage(error) => error.into(),
            error => Self::caused_by(error.code(), error),
        }
    }
}

macro_rules! from {
    ($($source:ty),* $(,)?) => {
        $(impl From<$source> for Error {
            fn from(error: $source) -> Self {
                Self::caused_by(error.code(), error)
            }
        })*
    };
}

from!(
    tidegraph_load::Error,
    tidegraph_log::Error,
    tidegraph_plan::FrontEndError,
    tidegraph_platform::disk::Error,
    tidegraph_platform::objects::Error,
    tidegraph_storage::Error,
    tidegraph_txn::Error,
);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::database::Environment;
    use crate::{Database, Options};
    use std::error::Error as _;
    use tidegraph_platform::{FaultyDisk, RealClock, RealRandom};
    use tidegraph_types::Version;

    fn open(dir: &std::path::Path, disk: &FaultyDisk) -> Result<Arc<Database>, Error> {
        let options = Options { data_dir: Some(dir.to_owned()), ..Options::default() };
        let (clock, random) = (Arc::new(RealClock::new()), Arc::new(RealRandom));
        Database::open_with(options, Environment { clock, random, disk: Arc::new(disk.clone()) })
    }

    #[test]
    fn the_chain_leads_from_the_engine_to_the_io_error_of_the_disk() {
        let (dir, disk) = (tempfile::tempdir().unwrap(), FaultyDisk::new(1));
        let database = open(dir.path(), &disk).unwrap();
        let none = crate::Parameters::default();
        database.query(&crate::Query::new(crate::Language::OpenCypher, "CREATE (:N)", &none)).unwrap();
        drop(database);
        disk.fail_reads(true);
        let error = open(dir.path(), &disk).err().expect("the log cannot be read");
        assert_eq!((error.code(), error.retry()), (ErrorCode::Unavailable, Retry::Never));
        // A clone keeps its sources.
        let error = error.clone();
        let log = error.source().unwrap().downcast_ref::<tidegraph_log::Error>().unwrap();
        let disk = log.source().unwrap().downcast_ref::<tidegraph_platform::DiskError>().unwrap();
        let io = disk.source().unwrap().downcast_ref::<std::io::Error>().unwrap();
        assert!(io.source().is_none());
        let chain = error.chain().to_string();
        assert!(chain.starts_with(&error.to_string()) && chain.ends_with(&io.to_string()), "{chain}");
        assert_eq!(chain.matches(&io.to_string()).count(), 1, "{chain}");
    }

    #[test]
    fn a_chain_shows_each_cause_once() {
        let io = std::io::Error::other("the cable is out");
        let cause = tidegraph_platform::DiskError::new(tidegraph_platform::disk::Operation::Read, "/log", io);
        let error = Error::new(ErrorCode::Corrupt, "graph.json is damaged").with_source(cause);
        assert_eq!(error.to_string(), "graph.json is damaged");
        let chain = "graph.json is damaged: cannot read file /log: the cable is out";
        assert_eq!(error.chain().to_string(), chain);
    }

    #[test]
    fn a_retry_is_decided_by_the_type_of_the_cause() {
        let (applied, asked) = (Version(1), Version(2));
        let behind = || tidegraph_apl::Error::Behind { applied, asked };
        let lost = || tidegraph_apl::Error::Unavailable("node 3 is gone".into());
        let conflict = tidegraph_txn::Error::Conflict { read_version: applied, written: asked };
        let stopped = tidegraph_txn::Error::Unavailable {
            reason: std::sync::Arc::new(std::io::Error::other("the disk failed")),
        };
        let expected = [
            (Error::from(behind()), Retry::Wait),
            (tidegraph_exec::Error::from(behind()).into(), Retry::Wait),
            (lost().into(), Retry::OtherReplica),
            (tidegraph_exec::Error::from(lost()).into(), Retry::OtherReplica),
            (conflict.into(), Retry::NewerVersion),
            (stopped.into(), Retry::Never),
            (tidegraph_apl::Error::Cancelled.into(), Retry::Never),
        ];
        for (error, retry) in expected {
            assert_eq!(error.retry(), retry, "{error}");
        }
    }
}
