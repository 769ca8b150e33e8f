//! The lease of a process that rebalances a graph. The holder may be an execution of a state machine, whose
//! steps run in different processes. So the holder is identified by its name, and its clock is never read.
//!
//! As with the sequencer's lease, a waiting candidate takes the lease when its counter has not changed
//! for the duration of the lease plus a fifth of it ([`takeover_wait`]). The candidate measures that
//! with its own clock or with the wait of its state machine, and passes the lease that it saw before.

use super::Rebalance;
use crate::{Claim, Error, Lease};
use std::time::Duration;
use tidegraph_types::Epoch;

/// Name of the lease for rebalancing.
pub const REBALANCER: &str = "rebalancer";

/// The holder of the lease after an attempt to acquire it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Acquired {
    /// The caller has it.
    Ours(Lease),
    /// Another holder has it.
    Theirs(Lease),
}

/// How long a lease of another holder must stay unchanged before it may be taken.
#[must_use]
pub fn takeover_wait(lease: &Lease) -> Duration {
    Duration::from_millis(lease.ttl_ms.saturating_add(lease.ttl_ms / 5))
}

impl Rebalance {
    /// Takes the lease, or renews it if `holder` has it. `seen` is the lease that an earlier call returned,
    /// [`takeover_wait`] ago.
    ///
    /// # Errors
    /// The same as [`MapStore::take_lease`](crate::MapStore::take_lease), if the store does not answer.
    pub fn acquire(&self, holder: &str, ttl: Duration, seen: Option<&Lease>) -> Result<Acquired, Error> {
        let claim = Claim { holder: holder.into(), endpoint: String::new(), ttl, above: Epoch(0) };
        let found = self.store.lease(&self.graph, REBALANCER)?;
        match &found {
            Some(lease) if lease.holder == holder => {
                match self.store.renew_lease(&self.graph, REBALANCER, lease) {
                    Ok(lease) => Ok(Acquired::Ours(lease)),
                    Err(error) => self.lost(holder, error),
                }
            }
            Some(lease) if !lease.is_free() && seen != Some(lease) => Ok(Acquired::Theirs(lease.clone())),
            _ => match self.store.take_lease(&self.graph, REBALANCER, found.as_ref(), &claim) {
                Ok(lease) => Ok(Acquired::Ours(lease)),
                Err(error) => self.lost(holder, error),
            },
        }
    }

    /// Returns the lease of a faster candidate, if the error is a conflict.
    fn lost(&self, holder: &str, error: Error) -> Result<Acquired, Error> {
        match (error, self.store.lease(&self.graph, REBALANCER)?) {
            (Error::Conflict { .. }, Some(lease)) if lease.holder != holder && !lease.is_free() => {
                Ok(Acquired::Theirs(lease))
            }
            (error, _) => Err(error),
        }
    }

    /// Renews the lease.
    ///
    /// # Errors
    /// [`Error::Conflict`] if another holder has it.
    pub fn renew(&self, holder: &str) -> Result<(), Error> {
        let found = self.store.lease(&self.graph, REBALANCER)?;
        match found {
            Some(lease) if lease.holder == holder => {
                self.store.renew_lease(&self.graph, REBALANCER, &lease).map(|_| ())
            }
            found => Err(Error::Conflict {
                item: format!("lease {REBALANCER}"),
                found: crate::memory::describe(found.as_ref()),
            }),
        }
    }

    /// Gives the lease back. Does nothing if another holder has it.
    ///
    /// # Errors
    /// The same as [`MapStore::release_lease`](crate::MapStore::release_lease), if the store does not answer.
    pub fn release(&self, holder: &str) -> Result<(), Error> {
        match self.store.lease(&self.graph, REBALANCER)? {
            Some(lease) if lease.holder == holder => {
                match self.store.release_lease(&self.graph, REBALANCER, &lease) {
                    // An earlier call gave it back, and its answer was lost.
                    Err(Error::Conflict { .. }) => Ok(()),
                    other => other,
                }
            }
            _ => Ok(()),
        }
    }
}
