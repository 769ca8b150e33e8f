//! Offers the edges of a vertex to a sample.

use super::{ExpandRequest, Partition};
use crate::adjacency::{Each, Run};
use crossbeam_epoch::Guard;
use tidegraph_apl::{ExpansionRow, Reservoir};
use tidegraph_types::Gui;

impl Partition {
    /// Offers every edge that [`Self::expand`] would append. Entries that are not taken are not read.
    pub fn offer_edges(
        &self,
        slot: u32,
        row: u32,
        want: &ExpandRequest<'_>,
        guard: &Guard,
        taken: &mut Reservoir<ExpansionRow>,
    ) {
        let node = self.node(slot);
        let (wants_out, wants_in) = want.sides();
        for (list, outgoing) in [(&node.out, true), (&node.inward, false)] {
            if !(if outgoing { wants_out } else { wants_in }) {
                continue;
            }
            let skipped = want.skipped(node.gui()).filter(|_| !outgoing);
            let mut offer = Each(|run: Run<'_>| {
                let edge = |index: usize| ExpansionRow {
                    row,
                    neighbour: Gui(run.neighbours[index]),
                    sid: run.sids.get(index),
                    label: run.label,
                    outgoing,
                };
                match skipped {
                    None => taken.offer_run(run.neighbours.len() as u64, |index| Some(edge(index as usize))),
                    Some(itself) => {
                        let others = run.neighbours.iter().enumerate().filter(|(_, n)| **n != itself);
                        others.for_each(|(index, _)| taken.offer(|| edge(index)));
                    }
                }
            });
            self.links.read(list, want.at, want.filter.labels(), 0, guard, &mut offer);
        }
    }
}
