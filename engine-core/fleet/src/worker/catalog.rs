//! Caches the graph's dictionary, and takes SIDs from the sequencer in ranges.
//!
//! The cache has all names of every version that this process reads ([`RemoteCatalog::cover`]), so an answer needs no
//! sequencer: a name that the cache does not have is not in the graph at that version, and every token has its name.

use super::sequencer::RemoteSequencer;
use parking_lot::{Mutex, RwLock};
use rustc_hash::FxHashMap;
use std::ops::Range;
use std::sync::Arc;
use tidegraph_apl::{Catalog, Error};
use tidegraph_remote::Commits;
use tidegraph_types::{Str, Token};

/// Number of SIDs that are taken with one request.
const SIDS_AT_ONCE: u64 = 4096;

pub(super) struct RemoteCatalog {
    sequencer: Arc<RemoteSequencer>,
    known: RwLock<Known>,
    sids: Mutex<Range<u64>>,
}

#[derive(Default)]
struct Known {
    by_name: FxHashMap<Str, Token>,
    by_token: FxHashMap<Token, Str>,
    /// The cache has all tokens up to this one.
    highest: Token,
}

impl Known {
    fn add(&mut self, token: Token, name: Str) {
        self.highest = self.highest.max(token);
        self.by_name.insert(name.clone(), token);
        self.by_token.insert(token, name);
    }
}

impl RemoteCatalog {
    pub fn new(sequencer: Arc<RemoteSequencer>) -> Self {
        Self { sequencer, known: RwLock::default(), sids: Mutex::new(0..0) }
    }

    /// Asks the sequencer for names that were added since the last time.
    pub fn refresh(&self) -> Result<(), tidegraph_remote::Error> {
        let above = self.known.read().highest;
        let new = self.sequencer.call_once(|sequencer| sequencer.tokens(above))?;
        let mut known = self.known.write();
        new.into_iter().for_each(|(token, name)| known.add(token, name));
        Ok(())
    }

    /// Makes sure that the cache has all tokens up to `token`, or with `None` all that the sequencer has. Call it
    /// before a version that uses them is read.
    ///
    /// # Errors
    /// [`tidegraph_remote::Error::Unavailable`] and other errors of the sequencer, if it does not give the names now.
    pub fn cover(&self, token: Option<Token>) -> Result<(), tidegraph_remote::Error> {
        let is_covered = |token| token <= self.known.read().highest;
        if token.is_some_and(is_covered) {
            return Ok(());
        }
        self.refresh()?;
        match token.filter(|token| !is_covered(*token)) {
            None => Ok(()),
            Some(token) => {
                let highest = self.known.read().highest;
                let text =
                    format!("the sequencer has names up to token {highest}, the graph uses token {token}");
                Err(tidegraph_remote::Error::Unavailable(text))
            }
        }
    }

    fn look<T>(&self, find: impl Fn(&Known) -> Option<T>) -> Option<T> {
        let found = find(&self.known.read());
        found.or_else(|| {
            // Another worker may have added it a moment ago, after the version that is read. Knowing it saves a
            // conflict; without it the answer is right for that version.
            if let Err(error) = self.refresh() {
                tracing::debug!(%error, "cannot refresh the dictionary");
            }
            find(&self.known.read())
        })
    }
}

impl Catalog for RemoteCatalog {
    fn token(&self, name: &str) -> Option<Token> {
        self.look(|known| known.by_name.get(name).copied())
    }

    fn name(&self, token: Token) -> Str {
        let found = self.look(|known| known.by_token.get(&token).cloned());
        found.unwrap_or_else(|| {
            // Versions are covered before they are read, so this is a defect.
            tracing::error!(%token, "a token in an answer has no name");
            Str::from(format!("token {token}"))
        })
    }

    fn intern(&self, names: &[Str]) -> Result<Vec<Token>, Error> {
        let known = {
            let known = self.known.read();
            names.iter().map(|name| known.by_name.get(name).copied()).collect::<Option<Vec<_>>>()
        };
        if let Some(tokens) = known {
            return Ok(tokens);
        }
        let tokens = self.sequencer.call(|sequencer| sequencer.intern(names)).map_err(Error::from)?;
        // `highest` stays, so that the next refresh asks for the tokens below these too.
        let mut known = self.known.write();
        for (token, name) in tokens.iter().zip(names) {
            known.by_name.insert(name.clone(), *token);
            known.by_token.insert(*token, name.clone());
        }
        Ok(tokens)
    }

    fn allocate_sids(&self, count: u64) -> Result<Range<u64>, Error> {
        let mut sids = self.sids.lock();
        if sids.end - sids.start < count {
            let wanted = count.max(SIDS_AT_ONCE);
            *sids = self.sequencer.call(|sequencer| sequencer.allocate_sids(wanted)).map_err(Error::from)?;
        }
        // IDS-1: the range is this process's alone, and each SID leaves it once.
        let taken = sids.start..sids.start + count;
        sids.start = taken.end;
        Ok(taken)
    }
}
