//! Rows in the order, and of the choice, that Java's random numbers make: `order().by(shuffle)` and `sample()` with a seed.

use super::buffer::{Buffer, Pieces};
use super::{Boxed, Feed, Operator, Want, compute};
use crate::java_random::JavaRandom;
use crate::{Batch, Context, Error, Result};
use tidegraph_plan::{Drawn, Expr};

/// Yields the rows of each origin, or a sample of them. It draws as TinkerPop's steps do, so that the same rows in the same
/// order give the same result.
pub(super) struct Draw<'p> {
    input: Boxed<'p>,
    drawn: &'p Drawn,
    place: u32,
    buffer: Buffer,
    pieces: Option<Pieces>,
}

impl<'p> Draw<'p> {
    pub(super) fn new(input: Boxed<'p>, drawn: &'p Drawn, place: u32) -> Self {
        Self { input, drawn, place, buffer: Buffer::default(), pieces: None }
    }

    fn drain(&mut self, ctx: &Context<'_>) -> Result<Pieces> {
        while let Some(batch) = self.input.next(ctx, Want::ALL)? {
            ctx.check()?;
            self.buffer.push(batch, ctx)?;
        }
        let all = self.buffer.take(ctx);
        let mut rows: Vec<u32> = (0..all.len as u32).collect();
        rows.sort_by_key(|row| all.origin_of(*row as usize));
        let mut order = Vec::with_capacity(rows.len());
        let sample = match self.drawn {
            Drawn::Shuffled => None,
            Drawn::Sample { count, weight } => {
                Some((compute::count("sample()", count, ctx)?, weights(weight, &all, ctx)?))
            }
        };
        for of_origin in rows.chunk_by_mut(|a, b| all.origin_of(*a as usize) == all.origin_of(*b as usize)) {
            match &sample {
                None => {
                    ctx.seeded(self.place, |random| random.shuffle(of_origin, || ctx.spend(1)))?;
                    order.extend_from_slice(of_origin);
                }
                Some((count, _)) if of_origin.len() as u64 <= *count => order.extend_from_slice(of_origin),
                Some((count, weights)) => {
                    let picks =
                        |random: &mut JavaRandom| sampled(of_origin, *count as usize, weights, random, ctx);
                    order.extend(ctx.seeded(self.place, picks)?);
                }
            }
        }
        Pieces::new(all, order, ctx)
    }
}

/// Computes the weight of each row.
fn weights(weight: &Expr, all: &Batch, ctx: &Context<'_>) -> Result<Vec<f64>> {
    let column = compute::column(weight, all, ctx)?;
    let weight = |row| {
        let value = column.get(row);
        match value.as_f64() {
            Some(weight) if weight >= 0.0 => Ok(weight),
            _ => Err(Error::of_type("by() of sample()", "a number that is not negative", &value)),
        }
    };
    (0..all.len).map(weight).collect()
}

/// Picks rows, as `SampleGlobalStep` of TinkerPop does: it goes over those that are left until it picks one, and begins again.
/// It may come to the end without a pick, because the picked ones still count in the sum of all weights.
fn sampled(
    rows: &[u32],
    count: usize,
    weights: &[f64],
    random: &mut JavaRandom,
    ctx: &Context<'_>,
) -> Result<Vec<u32>> {
    let total: f64 = rows.iter().map(|row| weights[*row as usize]).sum();
    let mut left = rows.to_vec();
    let mut picks = Vec::with_capacity(count);
    while picks.len() < count {
        let mut sum = total;
        let mut picked = None;
        for (at, row) in left.iter().enumerate() {
            ctx.spend(1)?;
            let weight = weights[*row as usize];
            if random.unit() <= weight / sum {
                picked = Some(at);
                break;
            }
            sum -= weight;
        }
        match picked {
            Some(at) => picks.push(left.remove(at)),
            // Nothing that is left can be picked; TinkerPop would try without an end.
            None if !total.is_finite() || left.iter().all(|row| weights[*row as usize] <= 0.0) => {
                let missing = count - picks.len();
                picks.extend(left.drain(..missing));
            }
            None => {}
        }
    }
    Ok(picks)
}

impl Operator for Draw<'_> {
    fn next(&mut self, ctx: &Context<'_>, want: Want<'_>) -> Result<Option<Batch>> {
        if self.pieces.is_none() {
            self.pieces = Some(self.drain(ctx)?);
        }
        Ok(self.pieces.as_mut().and_then(|pieces| pieces.next(want, ctx)))
    }

    fn feed(&mut self, ctx: &Context<'_>, feed: Feed) {
        self.buffer.clear(ctx);
        if let Some(mut pieces) = self.pieces.take() {
            pieces.clear(ctx);
        }
        self.input.feed(ctx, feed);
    }
}
