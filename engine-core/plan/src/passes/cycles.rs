//! Finds the last steps of cycles, so that the executor intersects lists of edges instead of following one and looking up
//! the others.
//!
//! In `(a)-->(b)-->(c)-->(a)`, the step from `b` to `c` makes a row of each edge of `b`, and most of them have no edge to
//! `a`. An intersection of the two lists makes only the rows that do.
//!
//! The pass looks for an expansion whose new vertex is an end of the expansions between bound vertices that follow it.
//! Conditions in between are checked after the intersection, which has fewer rows.
//!
//! Source of the idea: Ngo, Porat, Ré and Rudra, "Worst-case optimal join algorithms", PODS 2012.

use crate::{Arm, Expr, Op, Plan, Slot};

/// Rewrites the cycles of the plan.
pub fn run(plan: &mut Plan) {
    walk(&mut plan.root);
}

fn walk(op: &mut Op) {
    if let Some(meeting) = meeting(op) {
        rewrite(op, meeting);
    }
    // The steps of an intersection are none themselves.
    match op {
        Op::Intersect { input, .. } => walk(input),
        other => other.children_mut().into_iter().for_each(walk),
    }
}

/// Expansions that meet at one vertex.
struct Meeting {
    to: Slot,
    /// The first one is the expansion that binds the vertex.
    arms: Vec<Arm>,
    /// The conditions between and after them, in their order.
    conditions: Vec<Expr>,
}

/// Returns the expansions that this operator and those below it are, if they meet at one vertex.
fn meeting(op: &Op) -> Option<Meeting> {
    let (mut at, mut closing, mut conditions) = (op, vec![], vec![]);
    loop {
        match at {
            Op::Filter { input, predicate } => {
                conditions.push(predicate.clone());
                at = input;
            }
            Op::Expand { input, from, direction, labels, edge, to: Some(to), into, loops_once, .. } => {
                let arm = |from: Slot, direction| Arm {
                    from,
                    direction,
                    labels: labels.clone(),
                    edge: *edge,
                    loops_once: *loops_once,
                };
                if *into {
                    closing.push((*from, *to, arm(*from, *direction), arm(*to, direction.reversed())));
                    at = input;
                    continue;
                }
                let mut arms = vec![arm(*from, *direction)];
                for (from, other, forward, backward) in closing.into_iter().rev() {
                    arms.push(match (from == *to, other == *to) {
                        (true, false) => backward,
                        (false, true) => forward,
                        _ => return None,
                    });
                }
                conditions.reverse();
                return (arms.len() > 1).then_some(Meeting { to: *to, arms, conditions });
            }
            _ => return None,
        }
    }
}

fn rewrite(op: &mut Op, Meeting { to, arms, conditions }: Meeting) {
    // The same steps without the conditions, over the rows of the input.
    let mut steps = std::mem::replace(op, Op::Argument);
    let mut at = &mut steps;
    loop {
        while let Op::Filter { input, .. } = at {
            *at = std::mem::replace(input, Op::Argument);
        }
        let Op::Expand { input, into, .. } = at else { return };
        if !*into {
            let input = std::mem::replace(input, Box::new(Op::Argument));
            let intersect =
                Op::Intersect { input, arms, to, steps: Box::new(steps), count: None, keep: None };
            *op = match conditions.into_iter().reduce(Expr::and) {
                Some(predicate) => Op::Filter { input: Box::new(intersect), predicate },
                None => intersect,
            };
            return;
        }
        at = input;
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{expand, unused};
    use super::*;
    use tidegraph_types::Direction;

    fn rewritten(root: Op) -> String {
        let mut plan =
            Plan { root, slots: 20, columns: vec![], timeout: None, seed: None, references: false };
        run(&mut plan);
        plan.to_string()
    }

    #[test]
    fn the_last_two_steps_of_a_triangle_intersect() {
        let two = unused(expand(expand(Op::Argument, 0, 1, 2, false), 2, 3, 4, false), 3, &[1]);
        let text = rewritten(unused(expand(two, 4, 5, 0, true), 5, &[3, 1]));
        assert_eq!(
            text,
            "expand $0 -[X]-> $2 edge $1\nintersect $4 of $2 -[X]-> edge $3, $0 <-[X]- edge $5\n  or step by \
             step:\n    argument\n    expand $2 -[X]-> $4 edge $3\n    expand $4 -[X]-> into $0 edge $5\nfilter \
             (not $3 = $1 and $5 not in [$3, $1])\n"
        );
    }

    #[test]
    fn all_steps_that_end_at_the_vertex_are_arms() {
        let bound = expand(expand(Op::Argument, 0, 1, 2, false), 0, 3, 4, false);
        let last = expand(expand(expand(bound, 0, 5, 6, false), 6, 7, 2, true), 4, 8, 6, true);
        let text = rewritten(last);
        let arms = "intersect $6 of $0 -[X]-> edge $5, $2 <-[X]- edge $7, $4 -[X]-> edge $8\n";
        assert!(text.contains(arms), "{text}");
    }

    #[test]
    fn steps_that_do_not_meet_stay() {
        // The second step closes a cycle between two vertices that were bound before.
        let apart = expand(expand(expand(Op::Argument, 0, 1, 2, false), 2, 3, 4, false), 2, 5, 0, true);
        assert!(!rewritten(apart).contains("intersect"));
        let text = rewritten(expand(expand(Op::Argument, 0, 1, 2, false), 2, 3, 2, true));
        assert!(!text.contains("intersect"), "a loop: {text}");
        // The step above does not touch the vertex where the two below meet.
        let two = expand(expand(Op::Argument, 0, 1, 2, false), 2, 3, 0, true);
        let text = rewritten(expand(two, 0, 5, 7, true));
        assert!(text.contains("intersect $2 of $0 -[X]-> edge $1, $0 <-[X]- edge $3"), "{text}");
        assert!(text.contains("expand $0 -[X]-> into $7"), "{text}");
    }

    #[test]
    fn directions_are_those_from_the_bound_vertices() {
        let mut last = expand(expand(Op::Argument, 0, 1, 2, false), 2, 3, 9, true);
        let Op::Expand { direction, .. } = &mut last else { panic!() };
        *direction = Direction::In;
        assert!(rewritten(last).contains("intersect $2 of $0 -[X]-> edge $1, $9 -[X]-> edge $3"));
    }
}
