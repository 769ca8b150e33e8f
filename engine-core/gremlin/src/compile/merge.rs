//! `mergeV` and `mergeE` with maps that are written out.

use super::{Compiler, Cursor, Flow, Result};
use crate::ast::Step;
use crate::error::Failure;
use tidegraph_plan::Slot;

impl Compiler {
    pub(super) fn merge_vertex(
        &mut self,
        _flow: &mut Flow,
        _cursor: &mut Cursor<'_, '_>,
        step: &Step<'_>,
        _dest: Option<Slot>,
    ) -> Result<()> {
        Err(Failure::unsupported(step.at, "mergeV()"))
    }

    pub(super) fn merge_edge(
        &mut self,
        _flow: &mut Flow,
        _cursor: &mut Cursor<'_, '_>,
        step: &Step<'_>,
        _dest: Option<Slot>,
    ) -> Result<()> {
        Err(Failure::unsupported(step.at, "mergeE()"))
    }
}
