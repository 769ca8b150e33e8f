//! Object storage for threads: a blocking interface of the `object_store` crate.
//!
//! Roles: [`Objects`] starts each request on its own small tokio runtime and waits for the answer on a channel. So it
//! may be called from any thread, also inside another runtime, whose thread it then blocks. [`ObjectReader`] streams an
//! object with a bounded number of chunks in flight. [`Pending`] is the answer of a request that was only started.
//! [`ObjectWriter`] uploads in parts.
//!
//! Flow of a write: the writer buffers up to [`PART_BYTES`]. A smaller object is one atomic put, a larger one a
//! multipart upload. An object is not visible before [`ObjectWriter::finish`] returns; a dropped writer leaves nothing
//! behind.

use crate::pending::Pending;
use crate::{Disk, RealDisk};
use bytes::Bytes;
use futures_util::StreamExt;
use object_store::path::Path;
use object_store::{
    GetOptions, GetRange, GetResultPayload, ObjectStore, ObjectStoreExt, PutMode, PutOptions, WriteMultipart,
};
use std::fmt::{self, Debug};
use std::future::Future;
use std::io::{self, Read, Seek, Write};
use std::ops::Range;
use std::sync::{Arc, mpsc};
use std::time::Duration;
use tidegraph_types::ErrorCode;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::Semaphore;
use tokio::task::AbortHandle;

/// Size of one part of an upload, and the most that a writer buffers before it uploads, in bytes.
pub const PART_BYTES: usize = 8 << 20;

/// Number of parts of one upload in flight.
const PARTS_IN_FLIGHT: usize = 4;

/// Number of chunks of one download that wait for the reader.
const CHUNKS_IN_FLIGHT: usize = 32;

/// Most threads that a store's requests run on, a quarter of the processors. They decrypt what comes from the network.
const MOST_THREADS: usize = 8;

/// Time after which a request looks whether its caller cancelled it.
const LOOK_FOR_CANCEL: Duration = Duration::from_millis(50);

/// An object store, or one part of it. Clones share it.
#[derive(Clone)]
pub struct Objects {
    store: Arc<dyn ObjectStore>,
    runtime: Arc<OwnRuntime>,
    name: Arc<str>,
}

/// An object in a listing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ObjectInfo {
    /// Path within the store, parts separated by `/`.
    pub path: String,
    /// Size in bytes.
    pub bytes: u64,
    /// Time of its last write, in milliseconds since 1970.
    pub modified_ms: i64,
    /// ETag, which changes with every write, if the store has one.
    pub etag: Option<String>,
}

/// A failed request to an object store.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is no such object.
    #[error("there is no object {object}")]
    NotFound {
        /// The object, with its store.
        object: String,
    },
    /// The object was written since its ETag was read.
    #[error("the object {object} has changed")]
    Changed {
        /// The object, with its store.
        object: String,
    },
    /// The path cannot name an object.
    #[error("{path} is not the path of an object: {source}")]
    InvalidPath {
        /// The path.
        path: String,
        /// Why not.
        source: object_store::path::Error,
    },
    /// The name of a bucket or region violates its grammar.
    #[error("{what} {name:?}: {reason}")]
    InvalidName {
        /// What it names.
        what: &'static str,
        /// The name.
        name: String,
        /// Why it is none.
        reason: &'static str,
    },
    /// A listing has more objects than its caller takes.
    #[error("more than {most} objects are below {prefix}")]
    TooMany {
        /// The prefix, with its store.
        prefix: String,
        /// The limit.
        most: usize,
    },
    /// The caller cancelled the request.
    #[error("the request to {operation} object {object} was cancelled")]
    Cancelled {
        /// The operation.
        operation: &'static str,
        /// The object, with its store.
        object: String,
    },
    /// The store could not be reached, or failed.
    #[error("cannot {operation} object {object}: {source}")]
    Store {
        /// The operation.
        operation: &'static str,
        /// The object, with its store.
        object: String,
        /// Why it failed.
        source: object_store::Error,
    },
    /// The store refused the credentials, or they lack the permission.
    #[error("cannot {operation} object {object}: {source}")]
    Denied {
        /// The operation.
        operation: &'static str,
        /// The object, with its store.
        object: String,
        /// What the store said.
        source: Box<object_store::Error>,
    },
    /// The store could not be opened.
    #[error("cannot open object store {store}: {source}")]
    Open {
        /// The store.
        store: String,
        /// Why not.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The request ended without an answer: its task panicked or the process is going down.
    #[error("the request to {operation} object {object} was dropped")]
    Dropped {
        /// The operation.
        operation: &'static str,
        /// The object, with its store.
        object: String,
    },
}

impl Error {
    /// Returns the stable code that a client sees.
    #[must_use]
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::NotFound { .. } => ErrorCode::NotFound,
            Self::InvalidPath { .. }
            | Self::InvalidName { .. }
            | Self::TooMany { .. }
            | Self::Open { .. }
            | Self::Changed { .. } => ErrorCode::InvalidParameter,
            Self::Cancelled { .. } => ErrorCode::Cancelled,
            Self::Store { .. } | Self::Denied { .. } => ErrorCode::Unavailable,
            Self::Dropped { .. } => ErrorCode::Internal,
        }
    }

    fn into_io(self) -> io::Error {
        let kind = match self {
            Self::NotFound { .. } => io::ErrorKind::NotFound,
            _ => io::ErrorKind::Other,
        };
        io::Error::new(kind, self)
    }
}

/// A runtime that does not block when it is dropped, so that it may be dropped inside another runtime.
struct OwnRuntime(Option<Runtime>);

impl Drop for OwnRuntime {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

impl Debug for Objects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Objects({})", self.name)
    }
}

impl Objects {
    /// Wraps a store. In errors, `name` (`s3://bucket`) is before the path.
    ///
    /// # Errors
    ///
    /// [`Error::Open`] if the runtime cannot be started.
    pub fn new(store: Arc<dyn ObjectStore>, name: &str) -> Result<Self, Error> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let runtime = Builder::new_multi_thread()
            .worker_threads((cores / 4).clamp(2, MOST_THREADS))
            .thread_name("objects")
            .enable_all()
            .build()
            .map_err(|e| Error::Open { store: name.into(), source: e.into() })?;
        Ok(Self { store, runtime: Arc::new(OwnRuntime(Some(runtime))), name: name.into() })
    }

    /// Opens a local directory as a store; creates it if it does not exist. Written objects are synced to disk.
    ///
    /// # Errors
    ///
    /// [`Error::Open`] if the directory cannot be created or opened.
    pub fn local(dir: &std::path::Path) -> Result<Self, Error> {
        let name = format!("file://{}", dir.display());
        let open = |source| Error::Open { store: name.clone(), source };
        RealDisk.create_dir_all(dir).map_err(|e| open(e.source.into()))?;
        let store = object_store::local::LocalFileSystem::new_with_prefix(dir).map_err(|e| open(e.into()))?;
        Self::new(Arc::new(store.with_fsync(true)), &name)
    }

    /// Makes an empty store in memory.
    ///
    /// # Errors
    ///
    /// [`Error::Open`] if the runtime cannot be started.
    pub fn memory() -> Result<Self, Error> {
        Self::new(Arc::new(object_store::memory::InMemory::new()), "memory:/")
    }

    /// Opens a bucket of Amazon S3. Credentials come from the environment: variables, container or instance role.
    /// `options` are those of `object_store::aws::AmazonS3ConfigKey` (`endpoint`, `allow_http`, …) and override the
    /// environment.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidName`] if `bucket` or `region` is no such name; [`Error::Open`] if an option is not known or
    /// wrong.
    #[cfg(feature = "aws")]
    pub fn s3<'a>(
        bucket: &str,
        region: Option<&str>,
        options: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Self, Error> {
        use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
        crate::check_bucket(bucket)?;
        region.map_or(Ok(()), crate::check_region)?;
        let name = format!("s3://{bucket}");
        let open = |e: object_store::Error| Error::Open { store: name.clone(), source: e.into() };
        let mut builder = AmazonS3Builder::from_env().with_bucket_name(bucket);
        if let Some(region) = region {
            builder = builder.with_region(region);
        }
        for (key, value) in options {
            let key: AmazonS3ConfigKey = key.parse().map_err(open)?;
            builder = builder.with_config(key, value);
        }
        Self::new(Arc::new(builder.build().map_err(open)?), &name)
    }

    /// Returns the part of the store below a folder, whose paths begin there. Other objects can be neither seen nor changed
    /// through it.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidPath`] if `folder` is not a path.
    pub fn below(&self, folder: &str) -> Result<Self, Error> {
        let store = object_store::prefix::PrefixStore::new(self.store.clone(), parse(folder)?);
        let name = format!("{}/{folder}", self.name).into();
        Ok(Self { store: Arc::new(store), runtime: self.runtime.clone(), name })
    }

    /// Returns the name of the store in errors.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Writes an object atomically; replaces an object of the same path.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidPath`], or [`Error::Denied`], [`Error::Store`] and [`Error::Dropped`] if the request failed. So
    /// for every method here.
    pub fn put(&self, path: &str, bytes: impl Into<Bytes>) -> Result<(), Error> {
        let (store, location, bytes) = (self.store.clone(), parse(path)?, bytes.into());
        self.wait("write", path, async move { store.put(&location, bytes.into()).await.map(|_| ()) })
    }

    /// Writes an object unless one exists under the path. Returns whether it was written.
    pub fn put_new(&self, path: &str, bytes: impl Into<Bytes>) -> Result<bool, Error> {
        let (store, location, bytes) = (self.store.clone(), parse(path)?, bytes.into());
        self.wait("write", path, async move {
            let options = PutOptions { mode: PutMode::Create, ..PutOptions::default() };
            match store.put_opts(&location, bytes.into(), options).await {
                Ok(_) => Ok(true),
                Err(object_store::Error::AlreadyExists { .. }) => Ok(false),
                Err(error) => Err(error),
            }
        })
    }

    /// Starts to write an object of unknown size.
    pub fn writer(&self, path: &str) -> Result<ObjectWriter, Error> {
        Ok(ObjectWriter {
            objects: self.clone(),
            path: path.into(),
            location: parse(path)?,
            buffer: Vec::new(),
            upload: None,
            written: 0,
            failed: false,
        })
    }

    /// Reads a whole object.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`] if there is no such object.
    pub fn get(&self, path: &str) -> Result<Bytes, Error> {
        let (store, location) = (self.store.clone(), parse(path)?);
        self.wait("read", path, async move { store.get(&location).await?.bytes().await })
    }

    /// Reads some bytes of an object; fewer if it ends before.
    pub fn get_range(&self, path: &str, range: Range<u64>) -> Result<Bytes, Error> {
        self.start_range(path, range)?.wait()
    }

    /// Starts to read some bytes of an object, and returns before they are there.
    pub fn start_range(&self, path: &str, range: Range<u64>) -> Result<Pending<Bytes>, Error> {
        let (store, location) = (self.store.clone(), parse(path)?);
        Ok(self.start("read", path, async move { store.get_range(&location, range).await }))
    }

    /// Returns size and time of an object.
    pub fn head(&self, path: &str) -> Result<ObjectInfo, Error> {
        self.start_head(path)?.wait()
    }

    /// Starts to ask for size and time of an object, and returns before the answer is there.
    pub fn start_head(&self, path: &str) -> Result<Pending<ObjectInfo>, Error> {
        let (store, location) = (self.store.clone(), parse(path)?);
        Ok(self.start("look up", path, async move { Ok(info(store.head(&location).await?)) }))
    }

    /// Streams an object.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`] if there is no such object; this call sends the first request.
    pub fn reader(&self, path: &str) -> Result<ObjectReader, Error> {
        self.reader_of(path, None, None)
    }

    /// Streams an object, or some bytes of it.
    ///
    /// # Errors
    ///
    /// [`Error::Changed`] if its ETag ([`ObjectInfo::etag`]) is not `etag`.
    pub fn reader_of(
        &self,
        path: &str,
        range: Option<Range<u64>>,
        etag: Option<&str>,
    ) -> Result<ObjectReader, Error> {
        let (store, location) = (self.store.clone(), parse(path)?);
        let options = GetOptions {
            range: range.clone().map(GetRange::Bounded),
            if_match: etag.map(str::to_owned),
            ..GetOptions::default()
        };
        let got = self.wait("read", path, async move { store.get_opts(&location, options).await })?;
        let bytes = got.range.end - got.range.start;
        let source = match got.payload {
            // A local file is read directly, without another thread for each chunk.
            GetResultPayload::File(mut file, _) => {
                let from = io::SeekFrom::Start(got.range.start);
                file.seek(from).map_err(|e| {
                    self.error(
                        "read",
                        path,
                        object_store::Error::Generic { store: "local", source: e.into() },
                    )
                })?;
                Source::File(file.take(bytes))
            }
            GetResultPayload::Stream(mut stream) => {
                let (sender, chunks) = mpsc::channel();
                let room = Arc::new(Semaphore::new(CHUNKS_IN_FLIGHT));
                let task_room = room.clone();
                let task = async move {
                    while let Some(chunk) = stream.next().await {
                        match task_room.acquire().await {
                            Ok(permit) => permit.forget(),
                            Err(_) => return, // The reader is gone.
                        }
                        let end = chunk.is_err();
                        if sender.send(Some(chunk)).is_err() || end {
                            return;
                        }
                    }
                    // Marks the end: a closed channel means that the task died.
                    let _ = sender.send(None);
                };
                self.spawn(task);
                Source::Stream { chunks, room, chunk: Bytes::new(), done: false }
            }
        };
        Ok(ObjectReader { source, bytes, objects: self.clone(), path: path.into() })
    }

    /// Lists the objects whose path begins with `prefix`, sorted by path. The prefix may end within a name.
    pub fn list(&self, prefix: &str) -> Result<Vec<ObjectInfo>, Error> {
        self.list_at_most(prefix, usize::MAX, &|| false)
    }

    /// Lists as [`Objects::list`], at most `most` objects, until `cancelled` returns true.
    ///
    /// # Errors
    ///
    /// [`Error::TooMany`] if there are more, [`Error::Cancelled`] if `cancelled` ended the listing.
    pub fn list_at_most(
        &self,
        prefix: &str,
        most: usize,
        cancelled: &dyn Fn() -> bool,
    ) -> Result<Vec<ObjectInfo>, Error> {
        // The crate lists only whole directories; the rest of the prefix is compared here.
        let dir = prefix.rsplit_once('/').map_or("", |(dir, _)| dir);
        let (store, dir, start) = (self.store.clone(), parse(dir)?, prefix.to_owned());
        let (sender, answer) = mpsc::channel();
        let task = self.spawn(async move {
            let mut stream = store.list(Some(&dir));
            let mut found = Vec::new();
            while let Some(meta) = stream.next().await {
                match meta.map(info) {
                    Ok(object) if object.path.starts_with(&start) => found.push(object),
                    Ok(_) => {}
                    Err(error) => {
                        let _ = sender.send(Err(error));
                        return;
                    }
                }
                if found.len() > most {
                    break;
                }
            }
            let _ = sender.send(Ok(found));
        });
        let mut found = loop {
            match answer.recv_timeout(LOOK_FOR_CANCEL) {
                Ok(listed) => break listed.map_err(|source| self.error("list", prefix, source))?,
                Err(mpsc::RecvTimeoutError::Timeout) if cancelled() => {
                    if let Some(task) = task {
                        task.abort();
                    }
                    return Err(Error::Cancelled { operation: "list", object: self.object(prefix) });
                }
                Err(mpsc::RecvTimeoutError::Timeout) => {}
                Err(mpsc::RecvTimeoutError::Disconnected) => {
                    return Err(Error::Dropped { operation: "list", object: self.object(prefix) });
                }
            }
        };
        if found.len() > most {
            return Err(Error::TooMany { prefix: self.object(prefix), most });
        }
        found.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(found)
    }

    /// Removes an object; does nothing if it does not exist.
    pub fn delete(&self, path: &str) -> Result<(), Error> {
        let (store, location) = (self.store.clone(), parse(path)?);
        match self.wait("delete", path, async move { store.delete(&location).await }) {
            Err(Error::NotFound { .. }) => Ok(()),
            other => other,
        }
    }

    pub(crate) fn object(&self, path: &str) -> String {
        format!("{}/{path}", self.name)
    }

    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) -> Option<AbortHandle> {
        Some(self.runtime.0.as_ref()?.spawn(task).abort_handle())
    }

    /// Runs a request and waits for its answer.
    fn wait<T: Send + 'static>(
        &self,
        operation: &'static str,
        path: &str,
        request: impl Future<Output = object_store::Result<T>> + Send + 'static,
    ) -> Result<T, Error> {
        self.start(operation, path, request).wait()
    }

    /// Runs a request on the own runtime. Its answer comes on a channel, which works on threads of other runtimes too.
    fn start<T: Send + 'static>(
        &self,
        operation: &'static str,
        path: &str,
        request: impl Future<Output = object_store::Result<T>> + Send + 'static,
    ) -> Pending<T> {
        let (sender, answer) = mpsc::channel();
        let task = self.spawn(async move {
            let _ = sender.send(request.await);
        });
        Pending { answer, task, objects: self.clone(), operation, path: path.into() }
    }

    pub(crate) fn error(&self, operation: &'static str, path: &str, source: object_store::Error) -> Error {
        match source {
            object_store::Error::NotFound { .. } => Error::NotFound { object: self.object(path) },
            object_store::Error::Precondition { .. } => Error::Changed { object: self.object(path) },
            source if is_denied(&source) => {
                Error::Denied { operation, object: self.object(path), source: Box::new(source) }
            }
            source => Error::Store { operation, object: self.object(path), source },
        }
    }
}

/// Whether a store refused the credentials. `object_store` has no kind for a refused listing and does not export the
/// error that holds the status, so a generic error is recognised by the text of the answer.
fn is_denied(error: &object_store::Error) -> bool {
    match error {
        object_store::Error::PermissionDenied { .. } | object_store::Error::Unauthenticated { .. } => true,
        object_store::Error::Generic { source, .. } => {
            let text = source.to_string();
            ["403 Forbidden", "401 Unauthorized", "AccessDenied"].iter().any(|word| text.contains(word))
        }
        _ => false,
    }
}

fn parse(path: &str) -> Result<Path, Error> {
    Path::parse(path).map_err(|source| Error::InvalidPath { path: path.into(), source })
}

fn info(meta: object_store::ObjectMeta) -> ObjectInfo {
    ObjectInfo {
        path: meta.location.to_string(),
        bytes: meta.size,
        modified_ms: meta.last_modified.timestamp_millis(),
        etag: meta.e_tag,
    }
}

/// Stream of one object.
pub struct ObjectReader {
    source: Source,
    bytes: u64,
    objects: Objects,
    path: String,
}

enum Source {
    File(io::Take<std::fs::File>),
    Stream {
        chunks: mpsc::Receiver<Option<object_store::Result<Bytes>>>,
        room: Arc<Semaphore>,
        chunk: Bytes,
        done: bool,
    },
}

impl ObjectReader {
    /// Returns the number of bytes that it reads.
    #[must_use]
    pub fn size_bytes(&self) -> u64 {
        self.bytes
    }
}

impl Debug for ObjectReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ObjectReader({})", self.objects.object(&self.path))
    }
}

impl Read for ObjectReader {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let (chunks, room, chunk, done) = match &mut self.source {
            Source::File(file) => return file.read(out),
            Source::Stream { chunks, room, chunk, done } => (chunks, room, chunk, done),
        };
        while chunk.is_empty() {
            if *done || out.is_empty() {
                return Ok(0);
            }
            match chunks.recv() {
                Ok(Some(Ok(next))) => {
                    room.add_permits(1);
                    *chunk = next;
                }
                Ok(Some(Err(source))) => {
                    return Err(self.objects.error("read", &self.path, source).into_io());
                }
                Ok(None) => *done = true,
                Err(_) => {
                    let object = self.objects.object(&self.path);
                    return Err(Error::Dropped { operation: "read", object }.into_io());
                }
            }
        }
        let n = chunk.len().min(out.len());
        out[..n].copy_from_slice(&chunk.split_to(n));
        Ok(n)
    }
}

impl Drop for ObjectReader {
    fn drop(&mut self) {
        if let Source::Stream { room, .. } = &self.source {
            room.close();
        }
    }
}

/// Writer of one object of unknown size. The object is not visible before [`ObjectWriter::finish`].
pub struct ObjectWriter {
    objects: Objects,
    path: String,
    location: Path,
    buffer: Vec<u8>,
    upload: Option<WriteMultipart>,
    written: u64,
    failed: bool,
}

impl Debug for ObjectWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ObjectWriter({}, {} bytes)", self.objects.object(&self.path), self.written)
    }
}

impl ObjectWriter {
    /// Makes the object visible and returns its size in bytes.
    ///
    /// # Errors
    ///
    /// [`Error::Dropped`] if an earlier part could not be written.
    pub fn finish(mut self) -> Result<u64, Error> {
        if self.failed {
            return Err(Error::Dropped { operation: "write", object: self.objects.object(&self.path) });
        }
        let rest = std::mem::take(&mut self.buffer);
        match self.upload.take() {
            None => self.objects.put(&self.path, rest)?,
            Some(mut upload) => self.objects.wait("write", &self.path, async move {
                upload.write(&rest);
                upload.finish().await.map(|_| ())
            })?,
        }
        Ok(self.written)
    }

    /// Sends the buffered part; waits while too many parts are in flight.
    fn send_part(&mut self) -> Result<(), Error> {
        let part = std::mem::replace(&mut self.buffer, Vec::with_capacity(PART_BYTES));
        let (store, location, upload) =
            (self.objects.store.clone(), self.location.clone(), self.upload.take());
        // After a failed request there is no upload: `WriteMultipart` would continue without the part.
        self.failed = true;
        let upload = self.objects.wait("write", &self.path, async move {
            let mut upload = match upload {
                Some(upload) => upload,
                None => {
                    WriteMultipart::new_with_chunk_size(store.put_multipart(&location).await?, PART_BYTES)
                }
            };
            if let Err(error) = upload.wait_for_capacity(PARTS_IN_FLIGHT).await {
                let _ = upload.abort().await;
                return Err(error);
            }
            upload.put(part.into());
            Ok(upload)
        })?;
        self.failed = false;
        self.upload = Some(upload);
        Ok(())
    }
}

impl Write for ObjectWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.failed {
            return Err(io::Error::other("an earlier part of the object could not be written"));
        }
        let n = bytes.len().min(PART_BYTES - self.buffer.len());
        self.buffer.extend_from_slice(&bytes[..n]);
        self.written += n as u64;
        if self.buffer.len() == PART_BYTES {
            self.send_part().map_err(Error::into_io)?;
        }
        Ok(n)
    }

    /// Does nothing: only `finish` makes the object visible.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for ObjectWriter {
    fn drop(&mut self) {
        if let Some(upload) = self.upload.take() {
            let object = self.objects.object(&self.path);
            self.objects.spawn(async move {
                if let Err(error) = upload.abort().await {
                    tracing::warn!(object, %error, "the parts of an abandoned upload could not be removed");
                }
            });
        }
    }
}

#[cfg(test)]
#[path = "objects_tests.rs"]
mod tests;
