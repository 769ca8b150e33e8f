//! Writes full buffers in a thread of its own, so that a load reads on meanwhile.

use super::buffer::Buffer;
use super::{Kind, SegmentInfo};
use crate::error::Error;
use crossbeam_channel::{Receiver, Sender};
use std::thread::JoinHandle;
use tidegraph_platform::Objects;
use tidegraph_wire::segment::{SegmentHeader, SegmentWriter as WireWriter};

/// A segment to be written.
pub(super) struct Job {
    pub buffer: Buffer,
    pub object: String,
    pub kind: Kind,
    pub header: SegmentHeader,
}

impl Job {
    /// Sorts, encodes and stores the mutations.
    pub fn run(self, objects: &Objects) -> Result<SegmentInfo, Error> {
        let Self { mut buffer, object, kind, header } = self;
        buffer.sort();
        let failed = |source| Error::Segment { object: object.clone(), source };
        // A tag and a length are before each mutation.
        let expected = buffer.length + 5 * buffer.order.len() + 4096;
        let mut writer = WireWriter::create(Vec::with_capacity(expected), &header).map_err(failed)?;
        for entry in &buffer.order {
            writer.push_bytes(buffer.bytes(entry)).map_err(failed)?;
        }
        let mutations = buffer.order.len() as u64;
        drop(buffer);
        let (bytes, length) = writer.finish().map_err(failed)?;
        objects.put(&object, bytes)?;
        Ok(SegmentInfo { object, partition: header.partition, kind, mutations, bytes: length })
    }
}

/// The bytes that a job held in memory, and its segment.
pub(super) type Done = (usize, Result<SegmentInfo, Error>);

/// A thread that runs jobs one after the other. It ends when this value is dropped, after the jobs that it was sent.
pub(super) struct Background {
    jobs: Option<Sender<Job>>,
    done: Receiver<Done>,
    thread: Option<JoinHandle<()>>,
    pending: usize,
    bytes: usize,
}

impl Background {
    /// Starts the thread; `None` if the system has none left.
    pub fn start(objects: Objects) -> Option<Self> {
        // The budget of the writer bounds what is in the channels.
        let (jobs, to_run) = crossbeam_channel::unbounded::<Job>();
        let (results, done) = crossbeam_channel::unbounded();
        let work = move || {
            for job in to_run {
                let bytes = job.buffer.size();
                if results.send((bytes, job.run(&objects))).is_err() {
                    return;
                }
            }
        };
        let thread = tidegraph_platform::spawn("segments", work).ok()?;
        Some(Self { jobs: Some(jobs), done, thread: Some(thread), pending: 0, bytes: 0 })
    }

    /// Returns the bytes of the jobs that are not done.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Sends a job.
    pub fn send(&mut self, job: Job) -> Result<(), Error> {
        let bytes = job.buffer.size();
        let sent = self.jobs.as_ref().and_then(|jobs| jobs.send(job).ok());
        sent.ok_or(Error::Internal("the thread that writes segments has ended"))?;
        (self.pending, self.bytes) = (self.pending + 1, self.bytes + bytes);
        Ok(())
    }

    /// Returns a job that is done already.
    pub fn done_already(&mut self) -> Option<Done> {
        let done = self.done.try_recv().ok()?;
        (self.pending, self.bytes) = (self.pending - 1, self.bytes - done.0);
        Some(done)
    }

    /// Waits for a job; `None` if all are done.
    pub fn next_done(&mut self) -> Option<Done> {
        if self.pending == 0 {
            return None;
        }
        self.pending -= 1;
        // A thread that panicked sends no more.
        let done = self.done.recv();
        let lost = |_| (self.bytes, Err(Error::Internal("the thread that writes segments has ended")));
        let done = done.unwrap_or_else(lost);
        self.bytes -= done.0;
        Some(done)
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        drop(self.jobs.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
