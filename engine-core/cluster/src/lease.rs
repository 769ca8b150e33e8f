//! Leases: which process has a role of a graph, and until when it may rely on that (MAP-3).
//!
//! Clocks are never compared. The item has a counter that the holder raises. The holder measures
//! its time from *before* it sent the last successful renewal. A process that wants the lease
//! measures from *after* it first saw the current counter, and waits somewhat longer. Both use
//! clocks that never go back. So the holder's time ends before another holder's begins, as long
//! as the speeds of their clocks differ by less than [`ElectionConfig::margin_percent`].
//!
//! What must never happen: two holders under one epoch. Taking a lease is one conditional write that raises the epoch.

use crate::{Error, MapStore};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use tidegraph_platform::Clock;
use tidegraph_types::Epoch;

/// Name of the lease of a graph's sequencer.
pub const SEQUENCER: &str = "sequencer";

/// A lease in the map.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Lease {
    /// Name of the holder; empty if the lease was given back. No two processes may have the same name: see [`Claim`].
    pub holder: String,
    /// `host:port` where the holder answers.
    pub endpoint: String,
    /// Grows whenever the lease gets another holder.
    pub epoch: Epoch,
    /// Grows whenever the holder renews it.
    pub counter: u64,
    /// How long the holder relies on the lease after a renewal.
    pub ttl_ms: u64,
}

impl Lease {
    /// Whether the lease was given back.
    #[must_use]
    pub fn is_free(&self) -> bool {
        self.holder.is_empty()
    }

    /// The lease as the next holder writes it.
    pub(crate) fn next(seen: Option<&Self>, claim: &Claim) -> Self {
        Self {
            holder: claim.holder.clone(),
            endpoint: claim.endpoint.clone(),
            epoch: Epoch(seen.map_or(claim.above.0, |lease| lease.epoch.0.max(claim.above.0)) + 1),
            counter: 1,
            ttl_ms: u64::try_from(claim.ttl.as_millis()).unwrap_or(u64::MAX),
        }
    }
}

/// A claim of a process to a lease.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Claim {
    /// A name that no other process has or had, such as a node's id with a random number.
    pub holder: String,
    /// `host:port` where the process answers.
    pub endpoint: String,
    /// How long the process relies on the lease after a renewal.
    pub ttl: Duration,
    /// The new epoch must be above this one, whatever the item says: the epoch of the log, in case the item was lost.
    pub above: Epoch,
}

/// Settings of an election.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ElectionConfig {
    /// How long a holder relies on the lease after a renewal.
    pub ttl: Duration,
    /// Time between two renewals, and between two checks of waiting candidates.
    pub renew_every: Duration,
    /// The time that others wait beyond `ttl`, in percent of `ttl`.
    pub margin_percent: u32,
}

impl Default for ElectionConfig {
    fn default() -> Self {
        Self { ttl: Duration::from_millis(1500), renew_every: Duration::from_millis(300), margin_percent: 20 }
    }
}

/// The time for which a process may rely on its lease. Everything that must stop when it ends shares it.
#[derive(Debug)]
pub struct Tenure {
    epoch: Epoch,
    clock: Arc<dyn Clock>,
    until_nanos: AtomicU64,
    ended: AtomicBool,
}

impl Tenure {
    /// A tenure of an epoch that lasts until a time of the clock.
    #[must_use]
    pub fn new(epoch: Epoch, clock: Arc<dyn Clock>, until: Duration) -> Self {
        Self { epoch, clock, until_nanos: AtomicU64::new(nanos(until)), ended: AtomicBool::new(false) }
    }

    /// The current time of the tenure's clock.
    #[must_use]
    pub fn now(&self) -> Duration {
        self.clock.now()
    }

    /// The epoch of the lease.
    #[must_use]
    pub fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// Whether no other process can have the lease now (MAP-3).
    #[must_use]
    pub fn is_sure(&self) -> bool {
        !self.has_ended() && nanos(self.clock.now()) < self.until_nanos.load(Ordering::Acquire)
    }

    /// Whether the tenure is known to be over: another process has the lease, or it was given back.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }

    /// Extends the tenure to a later time of the clock.
    pub fn extend(&self, until: Duration) {
        self.until_nanos.fetch_max(nanos(until), Ordering::AcqRel);
    }

    /// Ends the tenure for good.
    pub fn end(&self) {
        self.ended.store(true, Ordering::Release);
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// The state of an election, as one candidate sees it.
#[derive(Clone, Debug)]
pub enum ElectionState {
    /// This candidate has the lease. Its time may be over: see [`Tenure::is_sure`].
    Held(Arc<Tenure>),
    /// Another process has the lease, or none has.
    Waiting(Option<Lease>),
}

/// Gets a lease and keeps it. Its owner calls [`Election::step`] every [`ElectionConfig::renew_every`].
#[derive(Debug)]
pub struct Election {
    store: Arc<dyn MapStore>,
    clock: Arc<dyn Clock>,
    graph: String,
    name: String,
    claim: Claim,
    config: ElectionConfig,
    /// The lease of another process as it was last read, and the time when it was first read with this content.
    seen: Option<(Lease, Duration)>,
    held: Option<(Lease, Arc<Tenure>)>,
}

impl Election {
    /// An election for the lease `name` of a graph. The claim's `ttl` is replaced by that of `config`.
    pub fn new(
        store: Arc<dyn MapStore>,
        clock: Arc<dyn Clock>,
        graph: &str,
        name: &str,
        claim: Claim,
        config: ElectionConfig,
    ) -> Self {
        let claim = Claim { ttl: config.ttl, ..claim };
        let (graph, name) = (graph.into(), name.into());
        Self { store, clock, graph, name, claim, config, seen: None, held: None }
    }

    /// How long to wait between two steps.
    #[must_use]
    pub fn pause(&self) -> Duration {
        self.config.renew_every
    }

    /// Requires an epoch above this one when the lease is taken next.
    pub fn stay_above(&mut self, epoch: Epoch) {
        self.claim.above = self.claim.above.max(epoch);
    }

    /// Renews the lease, or takes it if the time of its holder is over.
    ///
    /// # Errors
    /// The errors of the [`MapStore`], if it does not answer. The state stays as it was: a holder keeps the lease until
    /// its time is over.
    pub fn step(&mut self) -> Result<ElectionState, Error> {
        match self.held.take() {
            Some((lease, tenure)) => self.renew(lease, tenure),
            None => self.look(),
        }
    }

    fn renew(&mut self, lease: Lease, tenure: Arc<Tenure>) -> Result<ElectionState, Error> {
        let began = self.clock.now();
        match self.store.renew_lease(&self.graph, &self.name, &lease) {
            Ok(renewed) => {
                tenure.extend(began + self.claim.ttl);
                self.held = Some((renewed, tenure.clone()));
                Ok(ElectionState::Held(tenure))
            }
            Err(error) if error.will_pass() => {
                self.held = Some((lease, tenure));
                Err(error)
            }
            Err(error) => {
                tracing::warn!(lease = self.name, epoch = %lease.epoch, %error, "the lease is lost");
                tenure.end();
                self.seen = None;
                Ok(ElectionState::Waiting(None))
            }
        }
    }

    fn look(&mut self) -> Result<ElectionState, Error> {
        let found = self.store.lease(&self.graph, &self.name)?;
        let now = self.clock.now();
        if let Some(lease) = found.as_ref().filter(|lease| !lease.is_free()) {
            let since = match &self.seen {
                Some((seen, since)) if seen == lease => *since,
                _ => now,
            };
            self.seen = Some((lease.clone(), since));
            if now.saturating_sub(since) < self.takeover_wait(lease) {
                return Ok(ElectionState::Waiting(found));
            }
        }
        let began = self.clock.now();
        match self.store.take_lease(&self.graph, &self.name, found.as_ref(), &self.claim) {
            Ok(lease) => {
                tracing::info!(lease = self.name, epoch = %lease.epoch, holder = lease.holder, "took the lease");
                let tenure = Arc::new(Tenure::new(lease.epoch, self.clock.clone(), began + self.claim.ttl));
                self.held = Some((lease, tenure.clone()));
                self.seen = None;
                Ok(ElectionState::Held(tenure))
            }
            // Another candidate took it first.
            Err(Error::Conflict { .. }) => Ok(ElectionState::Waiting(None)),
            Err(error) => Err(error),
        }
    }

    /// How long a lease must stay unchanged before it may be taken.
    fn takeover_wait(&self, lease: &Lease) -> Duration {
        let ttl = Duration::from_millis(lease.ttl_ms);
        ttl.saturating_add(ttl.saturating_mul(self.config.margin_percent) / 100)
    }

    /// Gives the lease back, so that another candidate need not wait.
    pub fn give_back(&mut self) {
        let Some((lease, tenure)) = self.held.take() else { return };
        tenure.end();
        if let Err(error) = self.store.release_lease(&self.graph, &self.name, &lease) {
            tracing::info!(lease = self.name, %error, "the lease could not be given back; it runs out");
        }
    }
}
