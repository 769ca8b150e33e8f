//! Commits that are under way for long, while another worker does what they must not miss.
//!
//! Such a coincidence is rare if all is drawn alone: the commit of a statement that has looked for a constraint, and the
//! whole creation of that constraint; the commit of a load, and the removal of a vertex that the load has met.

use crate::broker::Broker;
use crate::items::{ItemLog, id_of};
use crate::load::SubmittedLoads;
use crate::statement::{CONSTRAINT, ITEMS, KEY, Statement};
use crate::worker::{Call, Wish};
use crate::world::World;
use tidegraph_log::Body;
use tidegraph_platform::Random;
use tidegraph_types::Version;
use tidegraph_wire::{Message, proto};

/// One of this many commits of a `Put` is under way for long, and one of this many commits of a load.
const PUTS_PER_STALL: u64 = 8;
const LOADS_PER_STALL: u64 = 2;
/// How long a `Put` is under way that would break a constraint: less than the time after which a worker sends its commit
/// again, and long enough for a whole creation of the constraint. A least time, and what is drawn beyond it.
const STALL_MICROS: (u64, u64) = (500_000, 650_000);

/// Follows the items of the log.
#[derive(Default)]
pub(crate) struct ItemGuide {
    log: ItemLog,
    until: Version,
}

impl ItemGuide {
    /// Whether a constraint that is created now would hold, and would no longer hold after a `Put` of this key whose reads
    /// were made before.
    fn would_break(&mut self, broker: &Broker, loads: &SubmittedLoads, id: &str, key: i64) -> bool {
        let newest = broker.newest();
        while self.until < newest {
            let Some(record) = broker.record(self.until.next()) else { return false };
            if matches!(record.body, Body::Load { .. }) {
                self.log.submit(loads.lock().clone());
            }
            // What contradicts the log is found where all of it is checked.
            if self.log.apply(&record).is_err() {
                return false;
            }
            self.until = self.until.next();
        }
        if self.log.indexes.contains_key(CONSTRAINT) {
            return false;
        }
        self.log.items().is_ok_and(|items| items.has_other(id, KEY, key) && items.duplicate(KEY).is_none())
    }
}

impl World {
    /// Draws for how long a call of a worker is under way beyond what all messages need, in microseconds.
    /// `statement` is what the worker runs.
    pub fn draw_stall(&mut self, call: &Call, statement: Option<&Statement>) -> u64 {
        if !self.profile.statements || !self.faulty {
            return 0;
        }
        use proto::call::Kind;
        let kind = proto::Call::decode(&call.bytes[..]).ok().and_then(|call| call.kind);
        match (kind, statement) {
            (Some(Kind::Commit(_)), Some(Statement::Put { id, key, .. }))
                if self.items.would_break(&self.broker, &self.loads, id, *key) =>
            {
                self.let_another(call.worker, Statement::CreateConstraint);
                STALL_MICROS.0 + self.random.below(STALL_MICROS.1)
            }
            (Some(Kind::Commit(_)), Some(Statement::Put { .. })) if self.random.one_in(PUTS_PER_STALL) => {
                let drops = self.random.one_in(3);
                self.let_another(
                    call.worker,
                    if drops { Statement::DropConstraint } else { Statement::CreateConstraint },
                );
                200_000 + self.random.below(1_000_000)
            }
            (Some(Kind::CommitLoad(commit)), _) if self.random.one_in(LOADS_PER_STALL) => {
                let loads = self.loads.lock();
                let Some(plan) = loads.get(&commit.load_id).map(|load| &load.plan) else { return 0 };
                let items: Vec<String> = (0..ITEMS).map(id_of).filter(|id| plan.meets(id)).collect();
                if items.is_empty() {
                    return 0;
                }
                let id = items[self.random.below(items.len() as u64) as usize].clone();
                self.let_another(call.worker, Statement::Remove { id });
                20_000 + self.random.below(200_000)
            }
            _ => 0,
        }
    }

    /// Lets another worker that rests run a statement next.
    fn let_another(&self, worker: usize, statement: Statement) {
        let mut others = self.workers.iter().enumerate().filter(|(other, _)| *other != worker);
        if let Some(other) =
            others.find_map(|(_, slot)| slot.running.as_ref().filter(|running| running.rests))
        {
            other.wish(Wish::Statement(statement));
        }
    }
}
