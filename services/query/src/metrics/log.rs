//! The thread that writes the selected metrics to standard output.

use super::event::lines;
use super::install;
use super::recorder::{Before, LogRecorder};
use super::selection::Dimensions;
use std::io::{self, Write};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;
use tidegraph_platform::{Clock, RealClock};

/// A log of metrics that records, and is not written yet.
pub struct MetricsLog {
    recorder: LogRecorder,
    dimensions: Dimensions,
    every: Duration,
}

impl std::fmt::Debug for MetricsLog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MetricsLog").field("every", &self.every).finish_non_exhaustive()
    }
}

impl MetricsLog {
    /// Installs the recorders of the process, with the one of this log. Call it before anything is recorded.
    ///
    /// # Errors
    ///
    /// If the process has a recorder already.
    pub fn install(dimensions: Dimensions, every: Duration) -> anyhow::Result<Self> {
        let recorder = LogRecorder::new();
        let mut log = Some(recorder.clone());
        let installed = install(&mut log);
        anyhow::ensure!(
            installed.is_some() && log.is_none(),
            "metrics cannot be written to the log: the process has a recorder of metrics already"
        );
        Ok(Self { recorder, dimensions, every })
    }

    /// Writes events to standard output from now on. `refresh` sets the metrics that somebody has to look at first.
    ///
    /// # Errors
    ///
    /// The system's error if it cannot start a thread.
    pub fn start(self, refresh: impl Fn() + Send + 'static) -> io::Result<RunningLog> {
        let (stop, stopped) = mpsc::channel::<mpsc::Sender<()>>();
        let every = self.every;
        let mut writer =
            Writer { log: self, clock: RealClock::new(), before: Before::default(), has_failed: false };
        tidegraph_platform::spawn("metrics-log", move || {
            loop {
                let stopping = stopped.recv_timeout(every);
                refresh();
                writer.write();
                match stopping {
                    Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) => return,
                    Ok(ended) => {
                        // The caller may have waited long enough.
                        let _ = ended.send(());
                        return;
                    }
                }
            }
        })?;
        Ok(RunningLog(stop))
    }
}

struct Writer {
    log: MetricsLog,
    clock: RealClock,
    before: Before,
    /// Whether an event could not be written.
    has_failed: bool,
}

impl Writer {
    /// Writes what was recorded since the last time.
    fn write(&mut self) {
        let snapshot = self.log.recorder.take(&mut self.before);
        let lines = lines(snapshot, &self.log.dimensions, self.clock.wall().as_millisecond());
        let mut out = io::stdout().lock();
        // Each event with one call, so that nothing comes between its bytes.
        let written = lines.iter().try_for_each(|line| out.write_all(line.as_bytes()));
        drop(out);
        if let Err(error) = written
            && !std::mem::replace(&mut self.has_failed, true)
        {
            tracing::warn!(%error, "metrics cannot be written to standard output");
        }
    }
}

/// A log of metrics that is written.
#[derive(Debug)]
pub struct RunningLog(mpsc::Sender<mpsc::Sender<()>>);

impl RunningLog {
    /// Writes what was recorded since the last event, and ends. Waits for that, but no longer than `patience`.
    pub fn stop(self, patience: Duration) {
        let (ended, end) = mpsc::channel();
        if self.0.send(ended).is_err() || end.recv_timeout(patience).is_err() {
            tracing::warn!("the last metrics are not written to standard output");
        }
    }
}
