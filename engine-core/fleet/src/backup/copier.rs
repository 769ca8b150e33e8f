//! Copies objects from one object store to another, several at once, and computes their checksums on the way.

use super::{CopiedObject, Error};
use parking_lot::{Condvar, Mutex};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io::{self, Read, Write};
use tidegraph_platform::objects::ObjectReader;
use tidegraph_platform::{ObjectError, Objects};

/// Bytes that are read at once.
const STEP_BYTES: usize = 1 << 20;

/// Size and CRC-32C of an object.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Sum {
    pub bytes: u64,
    pub crc32c: u32,
}

/// Passes bytes on and sums them.
pub(super) struct Summing<W> {
    pub inner: W,
    pub sum: Sum,
}

impl<W> Summing<W> {
    pub fn new(inner: W) -> Self {
        Self { inner, sum: Sum { bytes: 0, crc32c: 0 } }
    }
}

impl<W: Write> Write for Summing<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let n = self.inner.write(bytes)?;
        self.sum.crc32c = crc32c::crc32c_append(self.sum.crc32c, &bytes[..n]);
        self.sum.bytes += n as u64;
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

/// Where objects are copied from and to.
pub(super) struct Copier<'a> {
    from: &'a Objects,
    /// Folder of the objects there, ending with `/`, or nothing.
    from_folder: String,
    to: &'a Objects,
    to_folder: String,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<String>,
    running: usize,
    is_closed: bool,
    /// Objects that were asked for.
    known: BTreeSet<String>,
    copied: BTreeMap<String, Sum>,
    missing: BTreeSet<String>,
    failed: Option<crate::Error>,
}

impl<'a> Copier<'a> {
    pub fn new(from: (&'a Objects, &str), to: (&'a Objects, &str)) -> Self {
        Self {
            from: from.0,
            from_folder: from.1.to_owned(),
            to: to.0,
            to_folder: to.1.to_owned(),
            state: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    /// Adds objects to those to copy. An object that was added before is not copied again, unless it was missing.
    pub fn add(&self, paths: impl IntoIterator<Item = String>) {
        let mut state = self.state.lock();
        for path in paths {
            if state.missing.remove(&path) || state.known.insert(path.clone()) {
                state.waiting.push_back(path);
            }
        }
        self.changed.notify_all();
    }

    /// Waits until all objects are copied or missing.
    ///
    /// # Errors
    /// The first failure; [`Error::Interrupted`] if the copier was closed before.
    pub fn wait(&self) -> Result<(), crate::Error> {
        let mut state = self.state.lock();
        while state.running > 0 || !state.is_closed && !state.waiting.is_empty() {
            self.changed.wait(&mut state);
        }
        match state.failed.take() {
            Some(error) => Err(error),
            None if !state.waiting.is_empty() => Err(Error::Interrupted.into()),
            None => Ok(()),
        }
    }

    /// Ends the workers once they have copied what they began.
    pub fn close(&self) {
        self.state.lock().is_closed = true;
        self.changed.notify_all();
    }

    pub fn is_closed(&self) -> bool {
        self.state.lock().is_closed
    }

    /// Returns those of some objects that are not there.
    pub fn missing<'p>(&self, paths: impl IntoIterator<Item = &'p String>) -> Vec<String> {
        let state = self.state.lock();
        paths.into_iter().filter(|path| state.missing.contains(*path)).cloned().collect()
    }

    /// Returns the sum of a copied object.
    pub fn sum(&self, path: &str) -> Option<Sum> {
        self.state.lock().copied.get(path).copied()
    }

    /// Returns the copied objects.
    pub fn copied(&self) -> Vec<CopiedObject> {
        let state = self.state.lock();
        let object = |(path, sum): (&String, &Sum)| CopiedObject {
            path: path.clone(),
            bytes: sum.bytes,
            crc32c: sum.crc32c,
        };
        state.copied.iter().map(object).collect()
    }

    /// Copies objects until the copier is closed. Several threads may do so.
    pub fn work(&self) {
        let _ending = Ending(self);
        let mut state = self.state.lock();
        loop {
            if state.is_closed {
                return;
            }
            let Some(path) = state.waiting.pop_front() else {
                self.changed.wait(&mut state);
                continue;
            };
            state.running += 1;
            drop(state);
            let copied = self.copy(&path);
            state = self.state.lock();
            state.running -= 1;
            match copied {
                Ok(Some(sum)) => {
                    state.copied.insert(path, sum);
                }
                Ok(None) => {
                    state.missing.insert(path);
                }
                Err(error) => {
                    state.is_closed = true;
                    state.failed.get_or_insert(error);
                }
            }
            self.changed.notify_all();
        }
    }

    /// Copies an object; `None` if it is not there.
    fn copy(&self, path: &str) -> Result<Option<Sum>, crate::Error> {
        let source = format!("{}{path}", self.from_folder);
        let reader = match self.from.reader(&source) {
            Ok(reader) => reader,
            Err(ObjectError::NotFound { .. }) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let expected = reader.size_bytes();
        let mut writer = Summing::new(self.to.writer(&format!("{}{path}", self.to_folder))?);
        match pass(reader, &mut writer) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Error::Copy { object: source, source: error }.into()),
        }
        let sum = writer.sum;
        if sum.bytes != expected {
            let (found, expected) = (format!("{} bytes", sum.bytes), format!("{expected} bytes"));
            return Err(Error::Differs { object: source, found, expected }.into());
        }
        writer.inner.finish()?;
        Ok(Some(sum))
    }
}

/// Closes a copier if its worker panics, so that nobody waits for it.
struct Ending<'a, 'b>(&'a Copier<'b>);

impl Drop for Ending<'_, '_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let mut state = self.0.state.lock();
            state.running -= 1;
            state.is_closed = true;
            self.0.changed.notify_all();
        }
    }
}

/// Closes a copier when it is dropped, so that its workers end whatever happens.
pub(super) struct Closing<'a, 'b>(pub &'a Copier<'b>);

impl Drop for Closing<'_, '_> {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// Passes all bytes of an object to a writer.
fn pass(mut reader: ObjectReader, writer: &mut impl Write) -> io::Result<()> {
    let mut buffer = vec![0; STEP_BYTES];
    loop {
        match reader.read(&mut buffer)? {
            0 => return Ok(()),
            n => writer.write_all(&buffer[..n])?,
        }
    }
}

/// Reads an object and sums it; `None` if it is not there.
pub(super) fn sum_of(objects: &Objects, path: &str) -> Result<Option<Sum>, crate::Error> {
    let reader = match objects.reader(path) {
        Ok(reader) => reader,
        Err(ObjectError::NotFound { .. }) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let mut sum = Summing::new(io::sink());
    pass(reader, &mut sum).map_err(|source| Error::Copy { object: path.to_owned(), source })?;
    Ok(Some(sum.sum))
}
