//! The serial orders of a round, and what the statements become in each.

use super::round::{Round, Statement};
use super::run::{Became, Ended, in_order};
use crate::Stop;
use std::collections::BTreeSet;

/// Returns every order of the items.
pub fn orders(items: &[usize]) -> Vec<Vec<usize>> {
    let Some((first, rest)) = items.split_first() else { return vec![vec![]] };
    let places = |order: Vec<usize>| {
        (0..=order.len()).map(move |at| {
            let mut longer = order.clone();
            longer.insert(at, *first);
            longer
        })
    };
    orders(rest).into_iter().flat_map(places).collect()
}

/// Whether no statement comes before one that has to come before it.
pub fn is_in_time(order: &[usize], ended: &[Ended]) -> bool {
    let is_late = |at: usize| order[at + 1..].iter().any(|later| ended[*later].precedes(&ended[order[at]]));
    !(0..order.len()).any(is_late)
}

/// Whether two of the statements overlap, one of which wrote.
pub fn overlap(all: &[usize], ended: &[Ended]) -> bool {
    let overlaps = |one: &Ended, other: &Ended| one.time.0 < other.time.1 && other.time.0 < one.time.1;
    all.iter().any(|one| {
        let (one, number) = (&ended[*one], one);
        one.wrote && all.iter().any(|other| other != number && overlaps(one, &ended[*other]))
    })
}

/// Whether a statement takes the evaluator too many steps on the first graph. The engine may take minutes for it.
pub fn is_too_much(round: &Round) -> bool {
    let is_too_much = |statement: &Statement| {
        matches!(statement.drawn.evaluate(&mut round.graph.clone()), Err(Stop::TooMuch))
    };
    round.statements.iter().any(is_too_much)
}

/// Evaluates statements one after the other. Returns what became of them by their numbers, and the graph that is left.
///
/// # Errors
///
/// An evaluator takes too many steps, or has no answer.
pub fn evaluate(
    round: &Round,
    order: &[usize],
    known: &BTreeSet<String>,
) -> Result<(Vec<Became>, Vec<String>), Stop> {
    let mut graph = round.graph.clone();
    let mut became = vec![Became::Lost; round.statements.len()];
    for number in order {
        let statement = &round.statements[*number].drawn;
        let mut after = graph.clone();
        let rows = statement.evaluate(&mut after)?;
        // A constraint concerns what the statement leaves, not what it passes through.
        if round.schema.is_broken_by(&after) {
            became[*number] = Became::Refused;
            continue;
        }
        graph = after;
        let show = |value| graph.show(value, statement.has_bags(), known);
        let rows = rows.iter().map(|row| row.iter().map(show).collect::<Vec<_>>().join(" | "));
        became[*number] = Became::Answered(in_order(statement, rows));
    }
    Ok((became, graph.lines(known)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_order_comes_once() {
        let orders: BTreeSet<Vec<usize>> = orders(&[4, 5, 6]).into_iter().collect();
        assert_eq!(orders.len(), 6);
        assert!(orders.iter().all(|order| order.iter().sum::<usize>() == 15));
    }

    fn ended(time: (usize, usize), site: usize, wrote: bool, follows: bool) -> Ended {
        Ended { became: Became::Refused, time, site, wrote, follows }
    }

    #[test]
    fn only_reads_of_other_workers_may_be_behind() {
        let first = ended((0, 1), 0, true, false);
        for (later, may_come_first) in [
            (ended((2, 3), 0, false, false), false),
            (ended((2, 3), 1, false, false), true),
            (ended((2, 3), 1, false, true), false),
            (ended((2, 3), 1, true, false), false),
            // It began before the other one had ended.
            (ended((0, 3), 0, true, true), true),
        ] {
            assert!(is_in_time(&[0, 1], &[first.clone(), later.clone()]));
            assert_eq!(is_in_time(&[1, 0], &[first.clone(), later.clone()]), may_come_first, "{later:?}");
        }
    }
}
