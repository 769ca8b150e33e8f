//! The order of clauses: reading, then updating, then RETURN. WITH starts a new order.

use crate::ast::{Clause, ClauseKind, ExprKind};
use crate::fault::{Fault, Result};

/// The construct that a list of clauses belongs to.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// A whole query.
    Query,
    /// One of several joined by UNION.
    UnionPart,
    /// Inside EXISTS or COUNT.
    Subquery,
    /// The body of FOREACH.
    Foreach,
}

/// Checks the order of at least one clause.
pub(super) fn check(clauses: &[Clause], role: Role) -> Result<()> {
    let mut updated: Option<&str> = None;
    for (i, clause) in clauses.iter().enumerate() {
        let name = name(&clause.kind);
        let fault = |message: String| Err(Fault::syntax(clause.place.0, message));
        let last = i + 1 == clauses.len();
        match &clause.kind {
            _ if role == Role::Foreach && !updates(&clause.kind) => {
                return fault(format!("unexpected {name} inside FOREACH, expected an updating clause"));
            }
            ClauseKind::Return(_) if !last => {
                return fault("RETURN must be the last clause".into());
            }
            ClauseKind::Return(_) => {}
            ClauseKind::With(_) => updated = None,
            kind if updates(kind) => {
                if role == Role::Subquery {
                    return fault(format!("unexpected {name} inside a subquery, expected a reading clause"));
                }
                updated = Some(name);
            }
            _ => {
                if let Some(before) = updated {
                    return fault(format!("WITH is required between {before} and {name}"));
                }
            }
        }
        if last && role != Role::Subquery && role != Role::Foreach {
            match &clause.kind {
                ClauseKind::Return(_) => {}
                kind if updates(kind) && role == Role::Query => {}
                ClauseKind::Call(_) if clauses.len() == 1 => {}
                kind if updates(kind) => {
                    return fault(format!("a part of a UNION cannot end with {name}, expected RETURN"));
                }
                _ => {
                    let message =
                        format!("a query cannot end with {name}, expected RETURN or an updating clause");
                    return fault(message);
                }
            }
        }
        if let ClauseKind::With(projection) = &clause.kind
            && let Some(item) = projection
                .items
                .iter()
                .find(|i| i.alias.is_none() && !matches!(i.expr.kind, ExprKind::Variable(_)))
        {
            let message = format!("expression in WITH must be aliased, expected AS after '{}'", item.text);
            return Err(Fault::syntax(item.expr.place.0, message));
        }
    }
    Ok(())
}

fn updates(kind: &ClauseKind) -> bool {
    !matches!(
        kind,
        ClauseKind::Match { .. }
            | ClauseKind::Unwind { .. }
            | ClauseKind::With(_)
            | ClauseKind::Return(_)
            | ClauseKind::Call(_)
    )
}

fn name(kind: &ClauseKind) -> &'static str {
    match kind {
        ClauseKind::Match { optional: false, .. } => "MATCH",
        ClauseKind::Match { .. } => "OPTIONAL MATCH",
        ClauseKind::Unwind { .. } => "UNWIND",
        ClauseKind::With(_) => "WITH",
        ClauseKind::Return(_) => "RETURN",
        ClauseKind::Create(_) => "CREATE",
        ClauseKind::Merge { .. } => "MERGE",
        ClauseKind::Set(_) => "SET",
        ClauseKind::Remove(_) => "REMOVE",
        ClauseKind::Delete { .. } => "DELETE",
        ClauseKind::Foreach { .. } => "FOREACH",
        ClauseKind::Call(_) => "CALL",
    }
}
