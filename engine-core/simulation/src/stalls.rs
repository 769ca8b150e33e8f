//! Commits that are under way for long, while another worker does what they must not miss.
//!
//! Such a coincidence is rare if all is drawn alone: the commit of a statement that has looked for a constraint, and the
//! whole creation of that constraint; the commit of a load, and the removal of a vertex that the load has met.

use crate::items::id_of;
use crate::statement::{ITEMS, Statement};
use crate::worker::{Call, Wish};
use crate::world::World;
use tidegraph_platform::Random;
use tidegraph_wire::{Message, proto};

/// One of this many commits of a `Put` is under way for long, and one of this many commits of a load.
const PUTS_PER_STALL: u64 = 8;
const LOADS_PER_STALL: u64 = 2;

impl World {
    /// Draws for how long a call of a worker is under way beyond what all messages need, in microseconds.
    /// `statement` is what the worker runs.
    pub fn draw_stall(&self, call: &Call, statement: Option<&Statement>) -> u64 {
        if !self.profile.statements || !self.faulty {
            return 0;
        }
        use proto::call::Kind;
        let kind = proto::Call::decode(&call.bytes[..]).ok().and_then(|call| call.kind);
        match (kind, statement) {
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
