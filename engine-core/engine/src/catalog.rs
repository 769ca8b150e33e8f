//! The graph's dictionary for the query side: names and SIDs come from the sequencer. An inline request gets one that adds no
//! names.
//!
//! The sequencer hands out each SID once (IDS-1).

use std::ops::Range;
use std::sync::Arc;
use tidegraph_apl::{Catalog, Error};
use tidegraph_txn::Sequencer;
use tidegraph_types::{Str, Token};

/// The sequencer as a catalog.
pub(crate) struct SequencerCatalog(pub Arc<Sequencer>);

impl Catalog for SequencerCatalog {
    fn token(&self, name: &str) -> Option<Token> {
        self.0.lookup(name)
    }

    fn name(&self, token: Token) -> Str {
        self.0.name(token).unwrap_or_else(|| Str::from(format!("token {token}")))
    }

    fn intern(&self, names: &[Str]) -> Result<Vec<Token>, Error> {
        self.0.intern(names).map_err(|e| Error::Unavailable(e.to_string()))
    }

    fn allocate_sids(&self, count: u64) -> Result<Range<u64>, Error> {
        Ok(self.0.allocate_sids(count))
    }
}

/// A catalog that adds no names, because that waits for the disk.
pub(crate) struct FixedCatalog<'c>(pub(crate) &'c dyn Catalog);

impl Catalog for FixedCatalog<'_> {
    fn token(&self, name: &str) -> Option<Token> {
        self.0.token(name)
    }

    fn name(&self, token: Token) -> Str {
        self.0.name(token)
    }

    fn intern(&self, names: &[Str]) -> Result<Vec<Token>, Error> {
        let tokens: Option<Vec<Token>> = names.iter().map(|name| self.0.token(name)).collect();
        // To add a name takes longer than an inline request may.
        tokens.ok_or(Error::Overdue)
    }

    fn allocate_sids(&self, count: u64) -> Result<Range<u64>, Error> {
        self.0.allocate_sids(count)
    }
}
