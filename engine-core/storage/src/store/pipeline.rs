//! Walks through a piece of a frontier and prefetches for the rows ahead.
//!
//! Reading a vertex follows a chain of addresses: index line, node, block or page. A row passes one stage for each of
//! them, and each step handles one row in every stage. So several memory reads are always in flight, and the row that
//! is answered finds its lines in the cache.
//!
//! What must never happen: a slot used without comparing its node with the GUI.

use super::reading::Reading;
use crate::partition::Partition;
use tidegraph_types::Gui;

/// Rows between two stages: as many as a processor has cache misses in flight.
const AHEAD: usize = 8;
/// Number of slots that are remembered between stages.
const RING: usize = 64;
const _: () = assert!(2 * AHEAD < RING);
/// Stands for a vertex that the partition does not have.
const NO_SLOT: u32 = u32::MAX;

/// Whether to continue.
pub(super) type GoOn = bool;

/// Visits the rows of a piece in order while `visit` returns true, with the partition of each row and its slot if it
/// has one. `behind` prefetches what a node refers to.
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
            // There is nothing to overlap with but the lines behind this node.
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
