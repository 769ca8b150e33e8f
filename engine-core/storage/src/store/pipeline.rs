//! Going through a piece of a frontier while what lies ahead is fetched.
//!
//! What is read of a vertex stands behind addresses that depend on each other: line of the index, node, block or page. A
//! row goes through a stage for each of them, and a later row goes through an earlier stage in the same step: so some
//! reads of memory are always under way at once, and the row that is answered finds all of its lines near.
//!
//! What must never happen: a slot used of which the node was not compared with the GUI.

use super::locked::Reading;
use crate::partition::Partition;
use tidegraph_types::Gui;

/// Rows between one stage and the next: as many lines are fetched at once as a processor keeps under way.
const AHEAD: usize = 8;
/// Slots that were found and not used yet, and room to find them again.
const RING: usize = 64;
const _: () = assert!(2 * AHEAD < RING);
/// A vertex that the partition does not know.
const NO_SLOT: u32 = u32::MAX;

/// Whether to go on.
pub(super) type GoOn = bool;

/// Visits the rows of a piece in order, as long as `visit` says so: row, its partition, and its slot if it has one.
/// `behind` asks for what lies behind a node.
#[inline(always)]
pub(super) fn walk<'l>(
    reading: &'l Reading<'_>,
    guis: &[Gui],
    behind: impl Fn(&'l Partition, u32),
    mut visit: impl FnMut(usize, &'l Partition, Option<u32>) -> GoOn,
) {
    let guard = &reading.epoch;
    if let [gui] = guis {
        let partition = reading.of(*gui);
        let slot = partition.slot(*gui, guard);
        if let Some(slot) = slot {
            // Nothing else is under way, but the lines behind one node can be.
            behind(partition, slot);
        }
        visit(0, partition, slot);
        return;
    }
    let ahead = AHEAD.min(guis.len());
    let mut ring = [NO_SLOT; RING];
    for step in 0..guis.len() + 3 * ahead {
        let stage = |number: usize| {
            let row = step.wrapping_sub(number * ahead);
            guis.get(row).map(|gui| (row, reading.of(*gui), *gui))
        };
        if let Some((_, partition, gui)) = stage(0) {
            partition.prefetch_index(gui, guard);
        }
        if let Some((row, partition, gui)) = stage(1) {
            ring[row % RING] = partition.prefetch_node(gui, guard).unwrap_or(NO_SLOT);
        }
        if let Some((row, partition, gui)) = stage(2) {
            let slot = &mut ring[row % RING];
            if *slot != NO_SLOT {
                if partition.node(*slot).gui() != gui {
                    *slot = partition.slot(gui, guard).unwrap_or(NO_SLOT);
                }
                if *slot != NO_SLOT {
                    behind(partition, *slot);
                }
            }
        }
        if let Some((row, partition, _)) = stage(3) {
            let slot = ring[row % RING];
            if !visit(row, partition, (slot != NO_SLOT).then_some(slot)) {
                return;
            }
        }
    }
}
