//! Scans: partition after partition, several small partitions at once. A cursor has the number of the partition among
//! those of the graph; for the node's store it is partition 0, the only one.

use super::FleetApl;
use super::gather::Asked;
use std::sync::atomic::Ordering;
use tidegraph_apl::{At, Error, ScanCursor};
use tidegraph_wire::apl::Request;

/// Maximum number of partitions that a scan asks at once.
const WINDOW: u32 = 64;

impl FleetApl {
    /// Asks the partition of a cursor and some of the following ones. Calls `take` with their answers in order; it
    /// returns where the partition stopped, and whether the answer is full.
    pub(super) fn scan<R: Request>(
        &self,
        at: At,
        from: ScanCursor,
        rows: usize,
        window: u32,
        request: impl Fn(ScanCursor) -> R,
        take: &mut dyn FnMut(R::Answer) -> Result<(Option<ScanCursor>, bool), Error>,
    ) -> Result<Option<ScanCursor>, Error> {
        let count = self.layout.count().get();
        let mut partition = from.partition;
        if partition >= count {
            return Ok(None);
        }
        let last = u32::from(partition).saturating_add(window.max(1)).min(u32::from(count)) as u16;
        let asked = (partition..last).map(|number| {
            let first = number == from.partition;
            let start = if first { from } else { ScanCursor::default() };
            let pin = if first { self.pin(from.replica)? } else { None };
            let request = request(ScanCursor { partition: 0, replica: 0, ..start }).into();
            Ok(Asked { partition: self.layout.at(number), request, pin })
        });
        let asked = asked.collect::<Result<Vec<_>, Error>>()?;
        for answered in self.gather(at, rows, asked)? {
            let by = answered.by.clone();
            let (next, enough) = take(answered.to::<R>()?)?;
            if let Some(next) = next {
                // The answers of the following partitions are discarded.
                self.window.store(1, Ordering::Relaxed);
                return Ok(Some(ScanCursor { partition, replica: self.number(&by)?, ..next }));
            }
            partition += 1;
            if enough {
                break;
            }
        }
        if partition >= count {
            return Ok(None);
        }
        Ok(Some(ScanCursor { partition, ..ScanCursor::default() }))
    }

    /// Returns how many partitions to ask: one at first, then twice as many each
    /// time that all were answered completely.
    pub(super) fn window(&self) -> u32 {
        let window = self.window.load(Ordering::Relaxed).clamp(1, WINDOW);
        self.window.store((window * 2).min(WINDOW), Ordering::Relaxed);
        window
    }
}
