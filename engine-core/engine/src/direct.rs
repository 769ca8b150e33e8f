//! The graph without a query language: for programs that embed the engine and speak its own terms.
//!
//! Reads go through the APL at a pinned version, as the executor's do; writes are commit requests, checked and logged
//! as any. What a query language would refuse is not refused here: a request must keep the rules that
//! [`tidegraph_types::Mutation`] states.

use crate::backend::{Asking, Reader, Snapshot};
use crate::{Database, Error};
use tidegraph_apl::Catalog;
use tidegraph_storage::Memory;
use tidegraph_types::{CommitRequest, Gui, Str, Version};

impl Database {
    /// The graph's data. Read it at a version of [`Database::snapshot`].
    #[must_use]
    pub fn apl(&self) -> Reader<'_> {
        self.backend.reader(Asking::default())
    }

    /// The graph's dictionary and its source of SIDs.
    #[must_use]
    pub fn catalog(&self) -> &dyn Catalog {
        self.backend.catalog()
    }

    /// Where in time to read now, and what keeps that readable for as long as it lives.
    pub fn snapshot(&self) -> Result<Snapshot, Error> {
        self.backend.snapshot(None)
    }

    /// What storage in this process holds in memory, by purpose. Walks all of it: for reports.
    #[must_use]
    pub fn memory(&self) -> Memory {
        self.local.as_ref().map_or_else(Memory::default, |local| local.store.memory())
    }

    /// The GUI of an id that collided with none.
    #[must_use]
    pub fn plain_gui(&self, id: &Str) -> Gui {
        self.backend.hasher().gui(id)
    }

    /// Commits changes; answers the version from which they can be read. They are durable then.
    pub fn commit(&self, request: CommitRequest) -> Result<Version, Error> {
        self.backend.commit(request)
    }
}
