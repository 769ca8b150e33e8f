//! Draws `CALL { … }` and `CALL procedure()`.

use super::{Generator, Kind};
use crate::cypher::ast::{Clause, Procedure, Projection, Query};
use rand::Rng;

impl Generator<'_> {
    /// Puts an update into a subquery, whose variables are unknown afterwards. `outer`: those that it may use.
    pub(super) fn writing_call(&mut self, update: Clause, outer: Vec<(String, Kind)>) -> Clause {
        let imports = outer.iter().map(|(name, _)| name.clone()).collect();
        self.scope = outer;
        Clause::Call { optional: false, imports, query: Query { parts: vec![vec![update]], all: false } }
    }

    /// Draws a call, whose columns are in scope afterwards.
    pub(super) fn call(&mut self) -> Clause {
        if self.coin(0.25) {
            let procedure = if self.coin(0.5) { Procedure::Labels } else { Procedure::Types };
            let name = self.fresh("x");
            self.scope.push((name.clone(), Kind::Text));
            return Clause::Procedure { procedure, name };
        }
        let outer = self.scope.clone();
        let imported: Vec<(String, Kind)> =
            outer.iter().filter(|_| self.rng.random_bool(0.6)).cloned().collect();
        self.calls = false;
        let columns: Vec<String> = (0..self.rng.random_range(1..3)).map(|_| self.fresh("x")).collect();
        let mut parts = vec![];
        let mut kinds: Vec<Option<Kind>> = vec![None; columns.len()];
        for _ in 0..if self.coin(0.2) { 2 } else { 1 } {
            self.scope.clone_from(&imported);
            let mut part = self.part_before_return();
            let mut body = self.projection(columns.len(), false);
            for (at, (expr, name)) in body.items.iter_mut().enumerate() {
                name.clone_from(&columns[at]);
                let kind = self.kind_of(expr);
                // The parts of a UNION may return different kinds.
                kinds[at] = Some(kinds[at].filter(|other| *other != kind).map_or(kind, |_| Kind::Other));
            }
            body = Projection { order: vec![], skip: None, limit: None, ..body };
            part.push(Clause::Project(body));
            parts.push(part);
        }
        self.calls = true;
        self.scope = outer;
        let imports = imported.into_iter().map(|(name, _)| name).collect();
        let named = columns.into_iter().zip(kinds.into_iter().map(|kind| kind.unwrap_or(Kind::Other)));
        self.scope.extend(named);
        let (optional, all) = (self.coin(0.25), self.rng.random());
        Clause::Call { optional, imports, query: Query { parts, all } }
    }
}
