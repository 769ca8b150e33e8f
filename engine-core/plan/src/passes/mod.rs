//! The optimiser: passes that rewrite a plan, a file each, in a fixed order.

pub mod bulk;
pub mod columns;
pub mod counts;
pub mod cycles;
pub mod digests;
pub mod eager;
pub mod ends;
mod estimate;
pub mod firsts;
mod implied;
pub mod keep;
pub mod late;
mod lessons;
pub mod match_order;
mod rows;
#[cfg(test)]
mod testing;
mod trace;

pub use lessons::{Judgement, Lessons};
pub use rows::{EstimatedRows, shown_rows};
pub use trace::Trace;

use crate::{Limits, Plan, Stopped};
use tidegraph_apl::{Catalog, Statistics};
use tidegraph_types::{Direction, Str, Token};

/// The knowledge of the graph that the passes use.
pub struct Knowledge<'a> {
    /// Counts of vertices, edges and values.
    pub statistics: &'a Statistics,
    /// Tokens of names.
    pub catalog: &'a dyn Catalog,
    /// Answers questions about single vertices; `None`: only the statistics are known.
    pub instances: Option<&'a dyn Instances>,
    /// What earlier runs of the same text taught.
    pub lessons: Option<&'a Lessons>,
    /// Limits of time and memory.
    pub limits: &'a Limits<'a>,
    /// Whether storage is on other machines, so that rows cost more than work.
    pub is_far: bool,
}

/// Tells the planner about single vertices: the few whose ids a query names. The mean degree says nothing about a hub.
pub trait Instances {
    /// Returns about how many edges with one of `labels` (`None`: any label) the vertex with this id has. `None`:
    /// unknown.
    fn degree(&self, id: &Str, direction: Direction, labels: Option<&[Token]>) -> Option<u64>;
}

/// A rewrite of plans.
struct Pass {
    name: &'static str,
    run: fn(&mut Plan, &Knowledge<'_>) -> Result<(), Stopped>,
}

/// All passes in their order. Patterns become operators first, because the other passes look at operators.
const PASSES: [Pass; 11] = [
    Pass { name: "match_order", run: match_order::run },
    Pass {
        name: "eager",
        run: |plan, _| {
            eager::run(plan);
            Ok(())
        },
    },
    Pass {
        name: "firsts",
        run: |plan, _| {
            firsts::run(plan);
            Ok(())
        },
    },
    Pass {
        name: "columns",
        run: |plan, _| {
            columns::run(plan);
            Ok(())
        },
    },
    Pass {
        name: "late",
        run: |plan, _| {
            late::run(plan);
            Ok(())
        },
    },
    Pass {
        name: "cycles",
        run: |plan, _| {
            cycles::run(plan);
            Ok(())
        },
    },
    Pass {
        name: "counts",
        run: |plan, _| {
            counts::run(plan);
            Ok(())
        },
    },
    Pass {
        name: "digests",
        run: |plan, knowledge| {
            if knowledge.is_far {
                digests::run(plan);
            }
            Ok(())
        },
    },
    Pass {
        name: "bulk",
        run: |plan, _| {
            bulk::run(plan);
            Ok(())
        },
    },
    Pass {
        name: "keep",
        run: |plan, _| {
            keep::run(plan);
            Ok(())
        },
    },
    Pass {
        name: "ends",
        run: |plan, _| {
            ends::run(plan);
            Ok(())
        },
    },
];

/// Optimises the plan of a front end: chooses an order for its patterns and moves work into storage.
///
/// The result has no [`Op::Match`](crate::Op::Match), so that the executor can run it. It gives the same rows.
///
/// ```
/// # use std::ops::Range;
/// # use tidegraph_apl::{Catalog, Error, Statistics};
/// # use tidegraph_types::{Str, Token};
/// # use tidegraph_plan::Limits;
/// # struct Empty;
/// # impl Catalog for Empty {
/// #     fn token(&self, _: &str) -> Option<Token> { None }
/// #     fn name(&self, _: Token) -> Str { "".into() }
/// #     fn intern(&self, _: &[Str]) -> Result<Vec<Token>, Error> { Ok(vec![]) }
/// #     fn allocate_sids(&self, _: u64) -> Result<Range<u64>, Error> { Ok(0..0) }
/// # }
/// use tidegraph_plan::passes::{Knowledge, optimize};
/// use tidegraph_plan::{Column, Expr, Op, Plan, ScanFilter, Slot};
///
/// // MATCH (n) RETURN n.name
/// let scan = Op::ScanVertices {
///     input: Box::new(Op::Argument),
///     out: Slot(0),
///     filter: ScanFilter::default(),
///     columns: vec![],
/// };
/// let name = Expr::Property(Box::new(Expr::Slot(Slot(0))), "name".into());
/// let plan = Plan {
///     root: Op::Let { input: Box::new(scan), bindings: vec![(Slot(1), name)] },
///     slots: 2,
///     columns: vec![Column { name: "n.name".into(), slot: Slot(1) }],
///     timeout: None,
///     seed: None,
///     references: false,
/// };
/// let (statistics, limits) = (Statistics::default(), Limits::none());
/// let knowledge =
///     Knowledge { statistics: &statistics, catalog: &Empty, instances: None, lessons: None, limits: &limits, is_far: false };
/// // The scan reads the property beside the vertex.
/// assert_eq!(
///     optimize(plan, &knowledge, |_, _| {})?.to_string(),
///     "scan vertices $0 with $2 = $0.name\nlet $1 = $2\nanswer n.name=$1\n"
/// );
/// # Ok::<(), tidegraph_plan::Stopped>(())
/// ```
///
/// `after` gets the name of each pass that ran and the plan that it made.
///
/// # Errors
/// [`Stopped`] if a limit of the knowledge was reached.
pub fn optimize(
    mut plan: Plan,
    knowledge: &Knowledge<'_>,
    mut after: impl FnMut(&'static str, &Plan),
) -> Result<Plan, Stopped> {
    for pass in &PASSES {
        // Each pass walks the whole plan.
        knowledge.limits.spend(usize::MAX)?;
        (pass.run)(&mut plan, knowledge)?;
        after(pass.name, &plan);
    }
    Ok(plan)
}
