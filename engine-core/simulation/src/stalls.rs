//! Commits that are under way for long, while another worker does what they must not miss.
//!
//! Such a coincidence is rare if all is drawn alone: the commit of a statement that has looked for a constraint, and the
//! whole creation of that constraint; the commit of a load, and the removal of a vertex that the load has met.

use crate::broker::Broker;
use crate::items::{ItemLog, Items, id_of};
use crate::load::SubmittedLoads;
use crate::statement::{CODES, CONSTRAINT, ITEMS, KEY, Statement};
use crate::worker::{Call, Wish};
use crate::world::World;
use std::collections::BTreeSet;
use tidegraph_log::Body;
use tidegraph_platform::{Random, SeededRandom};
use tidegraph_types::Version;
use tidegraph_wire::{Message, proto};

/// One of this many commits of a `Put` is under way for long, and one of this many commits of a load.
const PUTS_PER_STALL: u64 = 8;
const LOADS_PER_STALL: u64 = 2;
/// Items that only statements of the world create.
const OWN_ITEMS: u64 = 8;
/// Tags of statements that the world makes; those of workers are smaller.
const FIRST_TAG: i64 = 1 << 40;
/// How long a `Put` is under way that would break a constraint: less than the time after which a worker sends its commit
/// again, and long enough for a whole creation of the constraint. A least time, and what is drawn beyond it.
const STALL_MICROS: (u64, u64) = (500_000, 650_000);

/// Follows the items of the log.
#[derive(Default)]
pub(crate) struct ItemGuide {
    log: ItemLog,
    until: Version,
    /// Number of statements that it has made.
    puts: i64,
    /// Requests that were held. A worker sends a commit again under the same id, and then it is not held.
    held: BTreeSet<Vec<u8>>,
}

impl ItemGuide {
    /// Returns the newest items, if a constraint that is created now would hold.
    fn distinct(&mut self, broker: &Broker, loads: &SubmittedLoads) -> Option<Items> {
        let newest = broker.newest();
        while self.until < newest {
            let record = broker.record(self.until.next())?;
            if matches!(record.body, Body::Load { .. }) {
                self.log.submit(loads.lock().clone());
            }
            // What contradicts the log is found where all of it is checked.
            self.log.apply(&record).ok()?;
            self.until = self.until.next();
        }
        let has_constraint = self.log.indexes.contains_key(CONSTRAINT);
        let items = self.log.items().ok().filter(|_| !has_constraint)?;
        items.duplicate(KEY).is_none().then_some(items)
    }

    /// Returns a `Put` that would break the constraint.
    fn breaking_put(&mut self, items: &Items, random: &SeededRandom) -> Option<Statement> {
        let keys: Vec<(&String, i64)> =
            items.items.iter().filter_map(|(id, item)| Some((id, *item.properties.get(KEY)?))).collect();
        let (holder, key) = *keys.get(random.below(keys.len().max(1) as u64) as usize)?;
        // Statements of workers seldom touch these, so nothing else refuses the commit.
        let id = (0..OWN_ITEMS).map(|own| id_of(ITEMS + own)).find(|id| !items.items.contains_key(id));
        let id = id.or_else(|| (0..ITEMS).map(id_of).find(|id| id != holder))?;
        self.puts += 1;
        Some(Statement::Put { id, code: random.below(CODES) as i64, key, tag: FIRST_TAG + self.puts })
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
            (Some(Kind::Commit(commit)), Some(Statement::Put { .. }))
                if self.items.held.contains(&commit.request_id) =>
            {
                0
            }
            (Some(Kind::Commit(commit)), Some(Statement::Put { id, key, .. }))
                if let Some(items) = self.items.distinct(&self.broker, &self.loads) =>
            {
                if items.has_other(id, KEY, *key) {
                    if !self.let_another(call.worker, Statement::CreateConstraint) {
                        return 0;
                    }
                    self.items.held.insert(commit.request_id);
                    self.say(
                        "world",
                        format_args!("holds a commit that breaks a constraint which is created now"),
                    );
                    return STALL_MICROS.0 + self.random.below(STALL_MICROS.1);
                }
                if let Some(put) = self.items.breaking_put(&items, &self.random) {
                    self.let_another(call.worker, put);
                }
                0
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

    /// Lets another worker that rests run a statement next. Returns whether one does.
    fn let_another(&self, worker: usize, statement: Statement) -> bool {
        let mut others = self.workers.iter().enumerate().filter(|(other, _)| *other != worker);
        let idle = others.find_map(|(_, slot)| slot.running.as_ref().filter(|running| running.is_idle()));
        idle.map(|other| other.wish(Wish::Statement(statement))).is_some()
    }
}
