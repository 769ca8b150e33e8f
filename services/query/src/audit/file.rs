//! The file of an audit log, and the thread that writes it.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::mpsc as threads;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tidegraph_platform::{Clock, spawn};
use tokio::sync::mpsc;

/// Pause before the file is written again that could not be written.
const PAUSE: Duration = Duration::from_secs(1);
/// Lines are written together up to this length.
const BATCH_BYTES: usize = 256 << 10;

/// What the thread does next.
#[derive(Debug)]
pub(super) enum Message {
    Line(Vec<u8>),
    /// The file may have been renamed.
    Reopen,
    /// Nothing more comes.
    Close(threads::Sender<()>),
}

/// What the log knows of its thread.
#[derive(Debug, Default)]
pub(super) struct State {
    /// Why the file cannot be written; `None` if it can.
    problem: Mutex<Option<String>>,
}

impl State {
    fn lock(&self) -> MutexGuard<'_, Option<String>> {
        self.problem.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn problem(&self) -> Option<String> {
        self.lock().clone()
    }

    /// Ends the thread once it has written what waits, and waits for that.
    pub(super) fn close(&self, lines: &mpsc::Sender<Message>, patience: Duration) {
        let (ended, end) = threads::channel();
        let (lines, mut message) = (lines.clone(), Some(Message::Close(ended)));
        // Room comes with each batch that is written. Without a thread that makes room there is nothing to wait for.
        let handed = spawn("audit-close", move || message.take().map(|message| lines.blocking_send(message)));
        if handed.is_err() || end.recv_timeout(patience).is_err() {
            tracing::error!("the last lines of the audit log are not written");
        }
    }
}

/// Opens the file and starts the thread.
pub(super) fn start(
    path: PathBuf,
    waiting: mpsc::Receiver<Message>,
    clock: Arc<dyn Clock>,
) -> io::Result<Arc<State>> {
    let file = open(&path)?;
    let state = Arc::new(State::default());
    let mut writer = Writer { path, file, state: state.clone(), clock };
    spawn("audit", move || writer.run(waiting))?;
    Ok(state)
}

/// Opens the file for appending. Others cannot read one that is made here.
#[expect(clippy::disallowed_methods, reason = "the file is one that the operator names")]
fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).create(true).mode(0o600).open(path)
}

struct Writer {
    path: PathBuf,
    file: File,
    state: Arc<State>,
    clock: Arc<dyn Clock>,
}

impl Writer {
    fn run(&mut self, mut waiting: mpsc::Receiver<Message>) {
        let mut batch = Vec::new();
        while let Some(message) = waiting.blocking_recv() {
            let mut next = Some(message);
            let mut closes = None;
            while let Some(message) = next.take() {
                match message {
                    Message::Line(line) => batch.extend_from_slice(&line),
                    Message::Reopen => {}
                    Message::Close(ended) => {
                        waiting.close();
                        closes = Some(ended);
                    }
                }
                if batch.len() < BATCH_BYTES {
                    next = waiting.try_recv().ok();
                }
            }
            self.write(&batch, closes.is_some());
            batch.clear();
            if let Some(ended) = closes {
                while let Some(message) = waiting.blocking_recv() {
                    if let Message::Line(line) = message {
                        self.write(&line, true);
                    }
                }
                let _ = ended.send(());
                return;
            }
        }
    }

    /// Writes bytes, however often it takes; once if the service stops.
    fn write(&mut self, mut bytes: &[u8], is_last: bool) {
        loop {
            let written = self.follow_name().and_then(|()| {
                while !bytes.is_empty() {
                    match self.file.write(bytes) {
                        Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                        Ok(count) => bytes = &bytes[count..],
                        Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                        Err(error) => return Err(error),
                    }
                }
                Ok(())
            });
            match written {
                Ok(()) => {
                    if self.state.lock().take().is_some() {
                        tracing::info!(file = %self.path.display(), "the audit log can be written again");
                    }
                    return;
                }
                Err(error) => {
                    let problem = format!("{}: {error}", self.path.display());
                    if self.state.lock().replace(problem.clone()).is_none() {
                        tracing::error!(%problem, "the audit log cannot be written: requests are refused until it can");
                    }
                    if is_last {
                        return;
                    }
                    self.clock.sleep(PAUSE);
                }
            }
        }
    }

    /// Opens the file of the name, if it is another one by now: what rotates logs renames them.
    #[expect(clippy::disallowed_methods, reason = "the file is one that the operator names")]
    fn follow_name(&mut self) -> io::Result<()> {
        let ours = self.file.metadata()?;
        let is_same = match std::fs::metadata(&self.path) {
            Ok(named) => (named.dev(), named.ino()) == (ours.dev(), ours.ino()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => false,
            Err(error) => return Err(error),
        };
        if !is_same {
            self.file = open(&self.path)?;
        }
        Ok(())
    }
}
