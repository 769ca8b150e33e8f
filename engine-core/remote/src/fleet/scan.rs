//! Scans: partition after partition, several small ones at once. A cursor names the graph's partition; the node holds it
//! as the only one.

use super::gather::{Answered, Asked};
use super::{Query, strange};
use std::sync::atomic::Ordering;
use tidegraph_apl::{At, EdgeRuns, EdgeScan, Error, Reservoir, ScanCursor, ScannedValues, VertexScan};
use tidegraph_types::{Gui, PartitionId, Token};
use tidegraph_wire::apl::{Answer, Request};

/// Most partitions that are asked at once.
const WINDOW: u32 = 64;

impl Query {
    /// Asks the partition of a cursor, and some that follow. `take` gets their answers in order, says where each stopped,
    /// and whether there is enough.
    fn scan(
        &self,
        at: At,
        from: ScanCursor,
        rows: usize,
        window: u32,
        request: impl Fn(ScanCursor) -> Request,
        take: &mut dyn FnMut(Answer) -> Result<(Option<ScanCursor>, bool), Error>,
    ) -> Result<Option<ScanCursor>, Error> {
        let count = self.count.get();
        let mut partition = from.partition;
        if partition >= count {
            return Ok(None);
        }
        let last = u32::from(partition).saturating_add(window.max(1)).min(u32::from(count)) as u16;
        let asked = (partition..last).map(|number| {
            let first = number == from.partition;
            let start = if first { from } else { ScanCursor::default() };
            let pin = if first { self.pin(from.replica)? } else { None };
            let request = request(ScanCursor { partition: 0, replica: 0, ..start });
            Ok(Asked { partition: PartitionId(number), request, pin })
        });
        let asked = asked.collect::<Result<Vec<_>, Error>>()?;
        for Answered { answer, by } in self.gather(at, rows, asked)? {
            let (next, enough) = take(answer)?;
            if let Some(next) = next {
                // Those that follow were asked in vain.
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

    /// How many partitions to ask: one, and twice as many after each time that all of them were small.
    fn window(&self) -> u32 {
        let window = self.window.load(Ordering::Relaxed).clamp(1, WINDOW);
        self.window.store((window * 2).min(WINDOW), Ordering::Relaxed);
        window
    }

    pub(super) fn scan_vertices(
        &self,
        at: At,
        scan: &VertexScan,
        from: ScanCursor,
        out: &mut Vec<Gui>,
    ) -> Result<Option<ScanCursor>, Error> {
        let most = scan.max_rows.max(1) as usize;
        let limit = out.len().saturating_add(most);
        let request = |from| Request::ScanVertices(scan.clone(), from);
        self.scan(at, from, most, self.window(), request, &mut |answer| {
            let Answer::ScanVertices(found, next) = answer else { return Err(strange()) };
            out.extend(found);
            Ok((next, out.len() >= limit))
        })
    }

    pub(super) fn scan_values(
        &self,
        at: At,
        scan: &VertexScan,
        keys: &[Token],
        from: ScanCursor,
        out: &mut ScannedValues,
    ) -> Result<Option<ScanCursor>, Error> {
        let most = scan.max_rows.max(1) as usize;
        let limit = out.vertices.len().saturating_add(most);
        let request = |from| Request::ScanValues(scan.clone(), keys.to_vec(), from);
        self.scan(at, from, most, self.window(), request, &mut |answer| {
            let Answer::ScanValues(found, next) = answer else { return Err(strange()) };
            if found.columns.len() != keys.len() || out.columns.len() != keys.len() {
                return Err(strange());
            }
            out.vertices.extend(found.vertices);
            for (column, more) in out.columns.iter_mut().zip(found.columns) {
                column.extend(more);
            }
            Ok((next, out.vertices.len() >= limit))
        })
    }

    pub(super) fn count_vertices(
        &self,
        at: At,
        scan: &VertexScan,
        from: ScanCursor,
        count: &mut u64,
    ) -> Result<Option<ScanCursor>, Error> {
        // What was counted of those after the first that has more would be lost: so few are asked while there are such.
        let request = |from| Request::CountVertices(scan.clone(), from);
        self.scan(at, from, usize::MAX, self.window(), request, &mut |answer| {
            let Answer::CountVertices(more, next) = answer else { return Err(strange()) };
            *count += more;
            Ok((next, false))
        })
    }

    pub(super) fn sample_vertices(
        &self,
        at: At,
        scan: &VertexScan,
        from: ScanCursor,
        sample: &mut Reservoir<Gui>,
    ) -> Result<Option<ScanCursor>, Error> {
        // One after the other: the sample goes with the request.
        let so_far = sample.clone();
        let request = |from| Request::SampleVertices(scan.clone(), from, so_far.clone());
        self.scan(at, from, usize::MAX, 1, request, &mut |answer| {
            let Answer::SampleVertices(more, next) = answer else { return Err(strange()) };
            if more.items.len() > more.count as usize || more.count != sample.count {
                return Err(strange());
            }
            *sample = more;
            Ok((next, false))
        })
    }

    pub(super) fn scan_edges(
        &self,
        at: At,
        scan: &EdgeScan,
        from: ScanCursor,
        out: &mut EdgeRuns,
    ) -> Result<Option<ScanCursor>, Error> {
        let most = scan.max_rows.max(1) as usize;
        let limit = out.len().saturating_add(most);
        let request = |from| Request::ScanEdges(scan.clone(), from);
        self.scan(at, from, most, self.window(), request, &mut |answer| {
            let Answer::ScanEdges(found, next) = answer else { return Err(strange()) };
            let mut start = 0;
            for run in &found.runs {
                let rows = start..run.end as usize;
                start = rows.end;
                out.target.extend_from_slice(&found.target[rows.clone()]);
                out.sid.extend_from_slice(&found.sid[rows]);
                out.end_run(run.source, run.label);
            }
            Ok((next, out.len() >= limit))
        })
    }
}
