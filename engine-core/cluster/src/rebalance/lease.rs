//! Who rebalances a graph. The holder may be no process but an execution of a state machine, whose steps run here and there: he is known by his
//! name, and nobody's clock is asked.
//!
//! As with the sequencer's lease, whoever waits takes it when he saw its counter stand still for its time and a fifth of it, by his own clock, or
//! by the wait of his state machine: he says what he saw before, and how long that is ago is for him to know ([`patience`]).

use super::Rebalance;
use crate::{Claim, Error, Lease};
use std::time::Duration;
use tidegraph_types::Epoch;

/// The lease of whoever rebalances.
pub const REBALANCER: &str = "rebalancer";

/// Whether the lease is ours.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Acquired {
    /// It is.
    Ours(Lease),
    /// Another one has it.
    Theirs(Lease),
}

/// How long another's lease has to stand still before it may be taken.
#[must_use]
pub fn patience(lease: &Lease) -> Duration {
    Duration::from_millis(lease.ttl_ms.saturating_add(lease.ttl_ms / 5))
}

impl Rebalance {
    /// Takes the lease, or renews it where it is ours already. `seen` is what was answered before, [`patience`] ago.
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

    /// Another one was faster, if the error says so.
    fn lost(&self, holder: &str, error: Error) -> Result<Acquired, Error> {
        match (error, self.store.lease(&self.graph, REBALANCER)?) {
            (Error::Conflict { .. }, Some(lease)) if lease.holder != holder && !lease.is_free() => {
                Ok(Acquired::Theirs(lease))
            }
            (error, _) => Err(error),
        }
    }

    /// Says that the lease is still in use. [`Error::Conflict`] if it is another's.
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

    /// Gives the lease back, if it is ours.
    pub fn release(&self, holder: &str) -> Result<(), Error> {
        match self.store.lease(&self.graph, REBALANCER)? {
            Some(lease) if lease.holder == holder => {
                match self.store.release_lease(&self.graph, REBALANCER, &lease) {
                    // Asked again, after an answer was lost.
                    Err(Error::Conflict { .. }) => Ok(()),
                    other => other,
                }
            }
            _ => Ok(()),
        }
    }
}
