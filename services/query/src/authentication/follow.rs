//! Files that are read again when they change.

use super::FileError;
use arc_swap::{ArcSwap, Guard};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tidegraph_platform::read_secret_file_up_to;

/// How often a file is read again.
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// Most bytes of a file: some thousand users.
const LONGEST_BYTES: u64 = 1 << 20;

/// What a file says, as it was last read.
#[derive(Debug)]
pub(super) struct Followed<T> {
    file: PathBuf,
    parse: fn(&str) -> Result<T, String>,
    now: ArcSwap<T>,
}

impl<T: PartialEq + Send + Sync + 'static> Followed<T> {
    /// Reads a file.
    ///
    /// # Errors
    ///
    /// If it cannot be read, if others can read or write it, or if it does not parse.
    pub(super) fn read(file: &Path, parse: fn(&str) -> Result<T, String>) -> Result<Self, FileError> {
        let now = ArcSwap::from_pointee(read(file, parse)?);
        Ok(Self { file: file.to_owned(), parse, now })
    }

    pub(super) fn now(&self) -> Guard<Arc<T>> {
        self.now.load()
    }

    /// Reads the file again. A file that cannot be used changes nothing.
    ///
    /// # Errors
    ///
    /// As [`Followed::read`].
    pub(super) fn look(&self) -> Result<(), FileError> {
        let new = read(&self.file, self.parse)?;
        if new != **self.now.load() {
            self.now.store(Arc::new(new));
            tracing::info!(file = %self.file.display(), "who may do what has changed");
        }
        Ok(())
    }

    /// Reads the file again and again.
    #[expect(clippy::disallowed_methods, reason = "the edge of the service: files of its operator change")]
    pub(super) async fn follow(self: &Arc<Self>) {
        let mut last_problem = String::new();
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            let followed = self.clone();
            let looked = tokio::task::spawn_blocking(move || followed.look()).await;
            let problem = looked
                .map_or_else(|error| Some(error.to_string()), |looked| looked.err().map(|e| e.to_string()));
            match problem {
                None => last_problem.clear(),
                Some(problem) if problem != last_problem => {
                    tracing::warn!(%problem, "the file cannot be used, and what it said before holds");
                    last_problem = problem;
                }
                Some(_) => {}
            }
        }
    }
}

fn read<T>(file: &Path, parse: fn(&str) -> Result<T, String>) -> Result<T, FileError> {
    let text = read_secret_file_up_to(file, LONGEST_BYTES).map_err(|error| FileError::new(file, error))?;
    parse(&text).map_err(|problem| FileError::new(file, problem))
}
