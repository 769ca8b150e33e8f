//! An object store in memory, some of whose writes and removals fail, and how a process reaches it.

use crate::process::Process;
use async_trait::async_trait;
use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tidegraph_platform::{Random, SeededRandom};

/// Share of writes that fail, in thousandths, and whether as many removals fail.
#[derive(Clone, Debug, Default)]
pub(crate) struct ObjectFaults(pub Arc<AtomicU64>, pub bool);

#[derive(Debug)]
pub(crate) struct FaultyObjects {
    inner: InMemory,
    faults: ObjectFaults,
    random: Arc<SeededRandom>,
}

impl FaultyObjects {
    pub fn new(faults: ObjectFaults, seed: u64) -> Self {
        Self { inner: InMemory::new(), faults, random: Arc::new(SeededRandom::new(seed)) }
    }

    fn check(&self, location: &Path) -> Result<()> {
        check(&self.faults, &self.random, location)
    }
}

fn check(faults: &ObjectFaults, random: &SeededRandom, location: &Path) -> Result<()> {
    let wrong = faults.0.load(Ordering::Relaxed);
    if wrong > 0 && random.below(1000) < wrong {
        let source = format!("the change of {location} failed").into();
        return Err(Error::Generic { store: "simulated", source });
    }
    Ok(())
}

impl fmt::Display for FaultyObjects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("simulated objects")
    }
}

#[async_trait]
impl ObjectStore for FaultyObjects {
    async fn put_opts(&self, location: &Path, payload: PutPayload, opts: PutOptions) -> Result<PutResult> {
        self.check(location)?;
        self.inner.put_opts(location, payload, opts).await
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        opts: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.check(location)?;
        self.inner.put_multipart_opts(location, opts).await
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        self.inner.get_opts(location, options).await
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        if !self.faults.1 {
            return self.inner.delete_stream(locations);
        }
        let (faults, random) = (self.faults.clone(), self.random.clone());
        let checked = locations.map(move |location| {
            let location = location?;
            check(&faults, &random, &location).map(|()| location)
        });
        self.inner.delete_stream(checked.boxed())
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

/// An object store as one process reaches it: not at all once the process is killed.
#[derive(Debug)]
pub(crate) struct ProcessObjects {
    inner: Arc<dyn ObjectStore>,
    process: Arc<Process>,
    reads: Arc<AtomicU64>,
}

impl ProcessObjects {
    pub fn new(inner: Arc<dyn ObjectStore>, process: Arc<Process>) -> Self {
        Self { inner, process, reads: Arc::default() }
    }

    /// Counts reads in `reads`.
    pub fn counting(self, reads: Arc<AtomicU64>) -> Self {
        Self { reads, ..self }
    }

    fn check(&self) -> Result<()> {
        if self.process.is_alive() {
            return Ok(());
        }
        Err(Error::Generic { store: "simulated", source: "the process is dead".into() })
    }
}

impl fmt::Display for ProcessObjects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "simulated objects of {}", self.process.name)
    }
}

#[async_trait]
impl ObjectStore for ProcessObjects {
    async fn put_opts(&self, location: &Path, payload: PutPayload, opts: PutOptions) -> Result<PutResult> {
        self.check()?;
        self.inner.put_opts(location, payload, opts).await
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        opts: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.check()?;
        self.inner.put_multipart_opts(location, opts).await
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        self.check()?;
        self.reads.fetch_add(1, Ordering::Relaxed);
        self.inner.get_opts(location, options).await
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        match self.check() {
            Ok(()) => self.inner.delete_stream(locations),
            Err(error) => stream::once(async { Err(error) }).boxed(),
        }
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        match self.check() {
            Ok(()) => self.inner.list(prefix),
            Err(error) => stream::once(async { Err(error) }).boxed(),
        }
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.check()?;
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.check()?;
        self.inner.copy_opts(from, to, options).await
    }
}
