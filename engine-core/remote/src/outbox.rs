//! Frames to be sent on a connection. A caller that finds no writer becomes the writer, and also writes the frames that
//! others add meanwhile. So a lone caller writes itself, and many callers share one write.
//!
//! Must never: grow without bound. A caller of a full outbox waits until there is room or the connection is lost; the
//! socket's time-out bounds how long a peer that reads nothing can hold it.

use crate::Error;
use crate::link::Link;
use parking_lot::{Condvar, Mutex};

/// Frames up to this size are copied together into one write.
const SMALL: usize = 16 << 10;

pub(crate) struct Outbox {
    link: Link,
    peer: String,
    /// Maximum number of bytes that wait to be written.
    limit: usize,
    state: Mutex<State>,
    room: Condvar,
}

#[derive(Default)]
struct State {
    frames: Vec<Vec<u8>>,
    bytes: usize,
    /// Whether a thread is writing.
    writing: bool,
    /// Why the connection is lost.
    broken: Option<String>,
}

impl Outbox {
    pub fn new(link: Link, peer: String, limit: usize) -> Self {
        Self { link, peer, limit, state: Mutex::default(), room: Condvar::new() }
    }

    /// Sends a frame, or leaves it to the thread that is writing.
    pub fn send(&self, frame: Vec<u8>) -> Result<(), Error> {
        let mut state = self.state.lock();
        while state.writing && state.bytes > self.limit && state.broken.is_none() {
            self.room.wait(&mut state);
        }
        if let Some(reason) = &state.broken {
            return Err(Error::lost(&self.peer, reason));
        }
        if state.writing {
            state.bytes += frame.len();
            state.frames.push(frame);
            return Ok(());
        }
        state.writing = true;
        let mut frames = vec![frame];
        loop {
            drop(state);
            let written = self.write(&frames);
            frames.clear();
            state = self.state.lock();
            if let Err(error) = &written {
                state.broken.get_or_insert_with(|| error.to_string());
            }
            if state.broken.is_some() {
                state.frames.clear();
                state.writing = false;
                self.room.notify_all();
                drop(state);
                self.link.close();
                return written.map_err(|error| Error::lost(&self.peer, error));
            }
            if state.frames.is_empty() {
                state.writing = false;
                return Ok(());
            }
            std::mem::swap(&mut frames, &mut state.frames);
            state.bytes = 0;
            self.room.notify_all();
        }
    }

    fn write(&self, frames: &[Vec<u8>]) -> std::io::Result<()> {
        let mut together = Vec::new();
        for (number, frame) in frames.iter().enumerate() {
            let follows = number + 1 < frames.len();
            if frame.len() <= SMALL && (follows || !together.is_empty()) {
                together.extend_from_slice(frame);
                if follows && together.len() < SMALL {
                    continue;
                }
                self.link.write_all(&together)?;
                together.clear();
                continue;
            }
            if !together.is_empty() {
                self.link.write_all(&together)?;
                together.clear();
            }
            self.link.write_all(frame)?;
        }
        if together.is_empty() { Ok(()) } else { self.link.write_all(&together) }
    }

    /// Ends the connection for a reason.
    pub fn close(&self, reason: &str) {
        self.state.lock().broken.get_or_insert_with(|| reason.to_owned());
        self.room.notify_all();
        self.link.close();
    }
}
