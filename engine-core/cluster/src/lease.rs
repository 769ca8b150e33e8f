//! Leases: who has a role of a graph, and until when he may believe so.
//!
//! Nobody compares clocks. The item holds a counter that the holder raises; its holder counts from the moment *before*
//! he asked for the last renewal that succeeded, and whoever wants the lease counts from the moment *after* he first saw the counter
//! as it is, and somewhat longer. Both count on clocks that never go back. So the holder's time is over before another's
//! begins, as long as their clocks do not differ in speed by more than [`ElectionConfig::margin_percent`].
//!
//! What must never happen: two holders of one epoch. Taking a lease is one conditional write that raises the epoch.

use crate::{Error, MapStore};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use tidegraph_platform::Clock;
use tidegraph_types::Epoch;

/// The lease that a graph's sequencer has.
pub const SEQUENCER: &str = "sequencer";

/// A lease as the map has it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Lease {
    /// Who has it; empty when he gave it back. No two processes may have one name: see [`Claim`].
    pub holder: String,
    /// `host:port` where the holder answers.
    pub endpoint: String,
    /// Grows whenever the lease gets another holder.
    pub epoch: Epoch,
    /// Grows whenever the holder renews it.
    pub counter: u64,
    /// How long the holder believes to have it after a renewal.
    pub ttl_ms: u64,
}

impl Lease {
    /// Whether nobody has it.
    #[must_use]
    pub fn is_free(&self) -> bool {
        self.holder.is_empty()
    }

    /// What the next holder writes.
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

/// Who wants a lease.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Claim {
    /// A name that no other process has, nor had: a node's id and generation, say.
    pub holder: String,
    /// `host:port` where he answers.
    pub endpoint: String,
    /// How long he believes to have it after a renewal.
    pub ttl: Duration,
    /// The epoch has to be above this one, whatever the item says: what the log has, should the item have been lost.
    pub above: Epoch,
}

/// Times of an election.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ElectionConfig {
    /// How long a holder believes to have the lease after a renewal.
    pub ttl_ms: u64,
    /// How often it is renewed, and looked at by those who wait for it.
    pub step_ms: u64,
    /// How much longer than the time of the lease others wait.
    pub margin_percent: u32,
}

impl Default for ElectionConfig {
    fn default() -> Self {
        Self { ttl_ms: 1500, step_ms: 300, margin_percent: 20 }
    }
}

/// A time as the holder of a lease, as he may believe it to be. Shared with what must stop when it ends.
#[derive(Debug)]
pub struct Tenure {
    epoch: Epoch,
    clock: Arc<dyn Clock>,
    until_nanos: AtomicU64,
    ended: AtomicBool,
}

impl Tenure {
    /// A tenure of an epoch that lasts until a moment of the clock.
    #[must_use]
    pub fn new(epoch: Epoch, clock: Arc<dyn Clock>, until: Duration) -> Self {
        Self { epoch, clock, until_nanos: AtomicU64::new(nanos(until)), ended: AtomicBool::new(false) }
    }

    /// The time of the clock that it goes by.
    #[must_use]
    pub fn now(&self) -> Duration {
        self.clock.now()
    }

    /// The epoch of the lease.
    #[must_use]
    pub fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// Whether nobody else can have the lease now.
    #[must_use]
    pub fn is_sure(&self) -> bool {
        !self.has_ended() && nanos(self.clock.now()) < self.until_nanos.load(Ordering::Acquire)
    }

    /// Whether it is known to be over: another has the lease, or it was given back.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }

    /// It lasts until a later moment of the clock.
    pub fn extend(&self, until: Duration) {
        self.until_nanos.fetch_max(nanos(until), Ordering::AcqRel);
    }

    /// It is over, for good.
    pub fn end(&self) {
        self.ended.store(true, Ordering::Release);
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// How the election stands.
#[derive(Clone, Debug)]
pub enum Standing {
    /// This one has the lease. It may be unsure of it: see [`Tenure::is_sure`].
    Holds(Arc<Tenure>),
    /// Another one has it, or nobody.
    Waits(Option<Lease>),
}

/// Tries to get a lease and to keep it. Whoever owns it calls [`Election::step`] every [`ElectionConfig::step_ms`].
#[derive(Debug)]
pub struct Election {
    store: Arc<dyn MapStore>,
    clock: Arc<dyn Clock>,
    graph: String,
    name: String,
    claim: Claim,
    config: ElectionConfig,
    /// What was last seen of another's lease, and when first.
    seen: Option<(Lease, Duration)>,
    held: Option<(Lease, Arc<Tenure>)>,
}

impl Election {
    /// For the lease `name` of a graph. The claim's `ttl` is the configuration's.
    pub fn new(
        store: Arc<dyn MapStore>,
        clock: Arc<dyn Clock>,
        graph: &str,
        name: &str,
        claim: Claim,
        config: ElectionConfig,
    ) -> Self {
        let claim = Claim { ttl: Duration::from_millis(config.ttl_ms), ..claim };
        let (graph, name) = (graph.into(), name.into());
        Self { store, clock, graph, name, claim, config, seen: None, held: None }
    }

    /// How long to wait between two steps.
    #[must_use]
    pub fn pause(&self) -> Duration {
        Duration::from_millis(self.config.step_ms)
    }

    /// The epoch has to be above this one when the lease is taken next.
    pub fn stay_above(&mut self, epoch: Epoch) {
        self.claim.above = self.claim.above.max(epoch);
    }

    /// Renews the lease, or looks whether it can be had. An error leaves things as they are: whoever holds the lease
    /// still does, until his time is over.
    pub fn step(&mut self) -> Result<Standing, Error> {
        match self.held.take() {
            Some((lease, tenure)) => self.renew(lease, tenure),
            None => self.look(),
        }
    }

    fn renew(&mut self, lease: Lease, tenure: Arc<Tenure>) -> Result<Standing, Error> {
        let began = self.clock.now();
        match self.store.renew_lease(&self.graph, &self.name, &lease) {
            Ok(renewed) => {
                tenure.extend(began + self.claim.ttl);
                self.held = Some((renewed, tenure.clone()));
                Ok(Standing::Holds(tenure))
            }
            Err(error) if error.will_pass() => {
                self.held = Some((lease, tenure));
                Err(error)
            }
            Err(error) => {
                tracing::warn!(lease = self.name, epoch = %lease.epoch, %error, "the lease is lost");
                tenure.end();
                self.seen = None;
                Ok(Standing::Waits(None))
            }
        }
    }

    fn look(&mut self) -> Result<Standing, Error> {
        let found = self.store.lease(&self.graph, &self.name)?;
        let now = self.clock.now();
        if let Some(lease) = found.as_ref().filter(|lease| !lease.is_free()) {
            let since = match &self.seen {
                Some((seen, since)) if seen == lease => *since,
                _ => now,
            };
            self.seen = Some((lease.clone(), since));
            if now.saturating_sub(since) < self.patience(lease) {
                return Ok(Standing::Waits(found));
            }
        }
        let began = self.clock.now();
        match self.store.take_lease(&self.graph, &self.name, found.as_ref(), &self.claim) {
            Ok(lease) => {
                tracing::info!(lease = self.name, epoch = %lease.epoch, holder = lease.holder, "took the lease");
                let tenure = Arc::new(Tenure::new(lease.epoch, self.clock.clone(), began + self.claim.ttl));
                self.held = Some((lease, tenure.clone()));
                self.seen = None;
                Ok(Standing::Holds(tenure))
            }
            // Another one was faster.
            Err(Error::Conflict { .. }) => Ok(Standing::Waits(None)),
            Err(error) => Err(error),
        }
    }

    /// How long a lease has to stand still before it may be taken.
    fn patience(&self, lease: &Lease) -> Duration {
        let ttl = Duration::from_millis(lease.ttl_ms);
        ttl.saturating_add(ttl.saturating_mul(self.config.margin_percent) / 100)
    }

    /// Gives the lease back, so that another one needs not wait.
    pub fn give_back(&mut self) {
        let Some((lease, tenure)) = self.held.take() else { return };
        tenure.end();
        if let Err(error) = self.store.release_lease(&self.graph, &self.name, &lease) {
            tracing::info!(lease = self.name, %error, "the lease could not be given back; it runs out");
        }
    }
}
