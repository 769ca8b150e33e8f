//! Access to the graph without a query language, for programs that embed the engine.
//!
//! Reads go through the APL at a pinned version, as the executor's do. Writes are commit requests, checked and logged
//! like any other. The checks of a query language are missing here: a request must keep the rules of
//! [`tidegraph_types::Mutation`].

use crate::backend::{ReadOptions, Reader, Snapshot};
use crate::{Database, Error};
use tidegraph_apl::Catalog;
use tidegraph_storage::Memory;
use tidegraph_types::{CommitRequest, Gui, Str, Version};

impl Database {
    /// Returns access to the graph's data. Read it at the version of a [`Database::snapshot`].
    #[must_use]
    pub fn apl(&self) -> Reader<'_> {
        self.backend.reader(ReadOptions::default())
    }

    /// Returns the graph's store, for searches that no query makes yet. `None`: the data is in other processes.
    #[cfg(feature = "searches")]
    #[must_use]
    pub fn searches(&self) -> Option<&dyn tidegraph_apl::searches::Searches> {
        self.local.as_ref().map(|local| &*local.store as &dyn tidegraph_apl::searches::Searches)
    }

    /// Returns the graph's dictionary, which also allocates SIDs.
    #[must_use]
    pub fn catalog(&self) -> &dyn Catalog {
        self.backend.catalog()
    }

    /// Returns a snapshot of the newest version.
    ///
    /// # Errors
    ///
    /// `Unavailable` if a worker of a fleet knows of no version yet.
    pub fn snapshot(&self) -> Result<Snapshot, Error> {
        self.backend.snapshot(None)
    }

    /// Returns the memory of storage in this process, by purpose. Walks all of storage: for reports.
    #[must_use]
    pub fn memory(&self) -> Memory {
        self.local.as_ref().map_or_else(Memory::default, |local| local.store.memory())
    }

    /// Returns the GUI of an id whose hash collides with no other.
    #[must_use]
    pub fn plain_gui(&self, id: &Str) -> Gui {
        self.backend.hasher().gui(id)
    }

    /// Commits changes durably and returns the version from which they can be read.
    ///
    /// # Errors
    ///
    /// The same as [`Backend::commit`](crate::Backend::commit).
    pub fn commit(&self, request: CommitRequest) -> Result<Version, Error> {
        self.backend.commit(request)
    }
}
