//! Answers of storage to questions of the planner.

use crate::backend::{Reader, Snapshot};
use tidegraph_apl::Expand;
use tidegraph_plan::passes::Instances;
use tidegraph_types::{Direction, Str, Token};

/// Answers the planner's questions about single vertices from storage.
pub(crate) struct StoreInstances<'d> {
    pub(crate) apl: Reader<'d>,
    pub(crate) at: Snapshot,
}

impl Instances for StoreInstances<'_> {
    fn degree(&self, id: &Str, direction: Direction, labels: Option<&[Token]>) -> Option<u64> {
        let at = self.at.at;
        let (mut found, mut degrees) = (vec![], vec![]);
        self.apl.resolve_vertices(at, std::slice::from_ref(id), &mut found).ok()?;
        let request = Expand { labels: labels.map(<[Token]>::to_vec), ..Expand::all(direction) };
        // A vertex that does not exist has no edges.
        let Some(gui) = found.pop().flatten() else { return Some(0) };
        self.apl.degrees(at, &request, &[gui], &mut degrees).ok()?;
        degrees.pop()
    }
}
