//! Scans that answer less than rows: groups, ends of edges with their numbers, and first vertices. All partitions are asked at
//! once, because their answers are short. If a partition has more to answer, the next calls ask fewer at once, as other
//! scans do.
//!
//! A node of an earlier release does not know these requests. Then the answers are composed of those to the basic
//! requests until the query ends.

use super::hedge::DIGEST;
use super::{FleetApl, unfitting};
use std::sync::atomic::Ordering;
use tidegraph_apl::{
    At, EndCounts, Error, Expand, Grouping, Groups, ScanCursor, ScannedValues, TopVertices, VertexScan,
    fallback,
};
use tidegraph_types::Token;
use tidegraph_wire::apl::{Request, request};

/// Maximum number of partitions that such a scan asks at once.
pub(super) const WINDOW: u32 = 16;

impl FleetApl {
    /// Answers [`tidegraph_apl::Apl::group_vertices`].
    pub(super) fn gather_groups(
        &self,
        at: At,
        scan: &VertexScan,
        grouping: &Grouping,
        from: ScanCursor,
        out: &mut Groups,
    ) -> Result<Option<ScanCursor>, Error> {
        let ask = |from| request::GroupVertices { scan: scan.clone(), grouping: grouping.clone(), from };
        let answered =
            self.digest(
                at,
                from,
                ask,
                |groups: Groups| {
                    if out.merge(grouping, &groups) { Ok(()) } else { Err(unfitting()) }
                },
            );
        match answered {
            Some(answered) => answered,
            None => fallback::group_vertices(self, at, scan, grouping, from, out),
        }
    }

    /// Answers [`tidegraph_apl::Apl::count_ends`].
    pub(super) fn gather_ends(
        &self,
        at: At,
        scan: &VertexScan,
        expand: &Expand,
        from: ScanCursor,
        out: &mut EndCounts,
    ) -> Result<Option<ScanCursor>, Error> {
        let ask = |from| request::CountEnds { scan: scan.clone(), expand: expand.clone(), from };
        let answered = self.digest(at, from, ask, |counts: EndCounts| {
            out.merge(&counts);
            Ok(())
        });
        match answered {
            Some(answered) => answered,
            None => {
                // What a call adds before it fails must not stay.
                let mut counts = EndCounts::default();
                let next = fallback::count_ends(self, at, scan, expand, from, &mut counts)?;
                out.merge(&counts);
                Ok(next)
            }
        }
    }

    /// Answers [`tidegraph_apl::Apl::top_vertices`].
    pub(super) fn gather_top(
        &self,
        at: At,
        scan: &VertexScan,
        keys: &[Token],
        top: &TopVertices,
        from: ScanCursor,
        out: &mut ScannedValues,
    ) -> Result<Option<ScanCursor>, Error> {
        let ask = |from| {
            let scan = request::ScanValues { scan: scan.clone(), keys: keys.to_vec(), from };
            request::TopVertices { scan, top: top.clone() }
        };
        let answered = self.digest(at, from, ask, |found: ScannedValues| {
            if found.columns.len() != keys.len() || out.columns.len() != keys.len() {
                return Err(unfitting());
            }
            out.extend(found);
            Ok(())
        });
        match answered {
            Some(answered) => answered,
            None => fallback::top_vertices(self, at, scan, keys, top, from, out),
        }
    }

    /// Asks partitions from a cursor on, and calls `take` with their answers. Returns where to continue; `None` if a
    /// node does not know the request.
    fn digest<D, R: Request<Answer = (D, Option<ScanCursor>)>>(
        &self,
        at: At,
        from: ScanCursor,
        ask: impl Fn(ScanCursor) -> R,
        mut take: impl FnMut(D) -> Result<(), Error>,
    ) -> Option<Result<Option<ScanCursor>, Error>> {
        if self.lacks_digests.load(Ordering::Relaxed) {
            return None;
        }
        let window = self.digest_window.load(Ordering::Relaxed);
        let mut is_cut = false;
        let answered = self.scan(at, from, DIGEST, window, ask, &mut |(digest, next)| {
            is_cut |= next.is_some();
            take(digest)?;
            Ok((next, false))
        });
        if let Err(Error::NotServed(reason)) = &answered {
            tracing::debug!(reason, "a node of an earlier release answers rows instead");
            self.lacks_digests.store(true, Ordering::Relaxed);
            return None;
        }
        let next_window = if is_cut { 1 } else { (window * 2).min(WINDOW) };
        self.digest_window.store(next_window, Ordering::Relaxed);
        Some(answered)
    }
}
