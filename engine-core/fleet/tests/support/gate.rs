//! An object store some of whose requests wait at a gate.

// No test uses all of it.
#![allow(dead_code, clippy::unwrap_used)]

use async_trait::async_trait;
use futures_util::stream::BoxStream;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tidegraph_platform::Objects;
use tokio::sync::watch;

/// Objects in memory. Requests for those whose paths have a part wait until the gate is open.
#[derive(Debug)]
struct GatedObjects {
    inner: InMemory,
    gate: Gate,
}

/// The requests that wait.
#[derive(Debug)]
struct Closed {
    /// Part of the paths.
    part: String,
    reads: bool,
}

/// The gate of an object store. It is open at first.
#[derive(Clone, Debug)]
pub struct Gate {
    /// `None`: it is open.
    closed: Arc<watch::Sender<Option<Closed>>>,
    waiting: Arc<AtomicUsize>,
}

impl Gate {
    /// Makes an object store in memory, and its gate.
    pub fn objects() -> (Arc<Objects>, Self) {
        let gate = Self { closed: Arc::new(watch::Sender::new(None)), waiting: Arc::default() };
        let store = GatedObjects { inner: InMemory::new(), gate: gate.clone() };
        (Arc::new(Objects::new(Arc::new(store), "gated").unwrap()), gate)
    }

    /// Lets requests wait for objects whose paths have a part.
    pub fn close(&self, part: &str) {
        self.closed.send_replace(Some(Closed { part: part.to_owned(), reads: true }));
    }

    /// Lets writes wait of objects whose paths have a part.
    pub fn close_for_writes(&self, part: &str) {
        self.closed.send_replace(Some(Closed { part: part.to_owned(), reads: false }));
    }

    /// Lets all requests pass.
    pub fn open(&self) {
        self.closed.send_replace(None);
    }

    /// Number of requests that wait.
    pub fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Acquire)
    }

    async fn pass(&self, location: &Path, reads: bool) {
        let mut closed = self.closed.subscribe();
        let is_open = |closed: &Option<Closed>| {
            closed.as_ref().is_none_or(|closed| {
                reads && !closed.reads || !location.as_ref().contains(closed.part.as_str())
            })
        };
        if is_open(&closed.borrow()) {
            return;
        }
        self.waiting.fetch_add(1, Ordering::AcqRel);
        closed.wait_for(is_open).await.unwrap();
        self.waiting.fetch_sub(1, Ordering::AcqRel);
    }
}

impl fmt::Display for GatedObjects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("gated objects")
    }
}

#[async_trait]
impl ObjectStore for GatedObjects {
    async fn put_opts(&self, location: &Path, payload: PutPayload, opts: PutOptions) -> Result<PutResult> {
        self.gate.pass(location, false).await;
        self.inner.put_opts(location, payload, opts).await
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        opts: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.gate.pass(location, false).await;
        self.inner.put_multipart_opts(location, opts).await
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        self.gate.pass(location, true).await;
        self.inner.get_opts(location, options).await
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        self.inner.delete_stream(locations)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.inner.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.inner.copy_opts(from, to, options).await
    }
}
