//! The order of clauses: reading, then updating, then RETURN. WITH starts a new order.

use crate::ast::{Clause, ClauseKind, ExprKind, Subquery};
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
    /// Inside COLLECT, or one of several inside EXISTS or COUNT that UNION joins.
    SubqueryPart,
    /// Inside CALL.
    Call,
    /// The body of FOREACH.
    Foreach,
}

/// Checks the order of at least one clause.
pub(super) fn check(clauses: &[Clause], role: Role) -> Result<()> {
    let mut updated: Option<&str> = None;
    let in_expression = matches!(role, Role::Subquery | Role::SubqueryPart);
    for (i, clause) in clauses.iter().enumerate() {
        let name = name(&clause.kind);
        let fault = |message: String| Err(Fault::syntax(clause.place.0, message));
        let last = i + 1 == clauses.len();
        match &clause.kind {
            _ if role == Role::Foreach && !updates(&clause.kind) => {
                return fault(format!("unexpected {name} inside FOREACH, expected an updating clause"));
            }
            ClauseKind::Return(_) | ClauseKind::Finish if !last => {
                return fault(format!("{name} must be the last clause"));
            }
            ClauseKind::Finish if matches!(role, Role::Query | Role::Call) => {}
            ClauseKind::Finish => {
                return fault(format!("unexpected {name}, expected RETURN"));
            }
            ClauseKind::Return(_) => {}
            ClauseKind::Subquery(subquery) if in_expression && writes(subquery) => {
                return fault("unexpected updating CALL inside a subquery, expected a reading clause".into());
            }
            ClauseKind::With(_) => updated = None,
            kind if updates(kind) => {
                if in_expression {
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
                ClauseKind::Return(_) | ClauseKind::Finish => {}
                kind if updates(kind) && matches!(role, Role::Query | Role::Call) => {}
                ClauseKind::Call(_) if clauses.len() == 1 && role != Role::SubqueryPart => {}
                ClauseKind::Subquery(subquery)
                    if is_unit(subquery) && matches!(role, Role::Query | Role::Call) => {}
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
            | ClauseKind::LoadCsv { .. }
            | ClauseKind::With(_)
            | ClauseKind::Return(_)
            | ClauseKind::Call(_)
            | ClauseKind::Subquery(_)
            | ClauseKind::Finish
    )
}

/// Whether a subquery yields no columns.
pub(super) fn is_unit(subquery: &Subquery) -> bool {
    let last = subquery.query.parts.first().and_then(|part| part.clauses.last());
    !last.is_some_and(|clause| matches!(clause.kind, ClauseKind::Return(_)))
}

/// Whether a subquery has an updating clause.
fn writes(subquery: &Subquery) -> bool {
    let mut clauses = subquery.query.parts.iter().flat_map(|part| &part.clauses);
    clauses.any(|clause| match &clause.kind {
        ClauseKind::Subquery(inner) => writes(inner),
        kind => updates(kind),
    })
}

fn name(kind: &ClauseKind) -> &'static str {
    match kind {
        ClauseKind::Match { optional: false, .. } => "MATCH",
        ClauseKind::Match { .. } => "OPTIONAL MATCH",
        ClauseKind::Unwind { .. } => "UNWIND",
        ClauseKind::LoadCsv { .. } => "LOAD CSV",
        ClauseKind::With(_) => "WITH",
        ClauseKind::Return(_) => "RETURN",
        ClauseKind::Create(_) => "CREATE",
        ClauseKind::Merge { .. } => "MERGE",
        ClauseKind::Set(_) => "SET",
        ClauseKind::Remove(_) => "REMOVE",
        ClauseKind::Delete { .. } => "DELETE",
        ClauseKind::Foreach { .. } => "FOREACH",
        ClauseKind::Call(_) | ClauseKind::Subquery(_) => "CALL",
        ClauseKind::Finish => "FINISH",
    }
}
