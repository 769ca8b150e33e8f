//! Test graphs: the same bytes for the same seed on any machine.
//!
//! Roles: [`identity`] and [`social`] make elements one after the other, this module names their tables and calls back
//! for each ([`each`]), [`files`] writes them as CSV.
//!
//! Only integers of a ChaCha stream decide what is made, by arithmetic written here: floating point and the sampling of
//! a library may differ between machines and releases. Each golden entity and each profile has a stream of its own, so
//! that it does not depend on how many there are.

pub mod files;
pub mod identity;
pub mod social;

use crate::convert::Type;
use crate::error::Error;
use rand::{RngCore, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};
use tidegraph_types::Value;

/// Which graph.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Graph {
    /// Golden entities with their signals, small trees. The scale is their number.
    Identity,
    /// A social network with hubs (R-MAT). The scale is the binary logarithm of the number of profiles.
    Social,
}

/// A graph to make.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Spec {
    /// Which graph.
    pub graph: Graph,
    /// How large; see [`Graph`].
    pub scale: u64,
    /// Seed of everything random.
    pub seed: u64,
}

/// A set of elements with the same label and keys.
#[derive(Debug, PartialEq, Eq)]
pub struct Table {
    /// Name of its file, without `vertices_` or `edges_`.
    pub name: &'static str,
    /// Label.
    pub label: &'static str,
    /// Whether it holds edges.
    pub edges: bool,
    /// Property keys and their types; every property has one value.
    pub keys: &'static [(&'static str, Type)],
}

/// One element; `values` are those of the table's keys.
#[derive(Debug)]
pub enum Element<'a> {
    /// A vertex.
    Vertex {
        /// Its table.
        table: &'static Table,
        /// Its id.
        id: &'a str,
        /// Its values.
        values: &'a [Option<Value>],
    },
    /// An edge; both ends were made before it.
    Edge {
        /// Its table.
        table: &'static Table,
        /// Its id.
        id: &'a str,
        /// Id of the source vertex.
        from: &'a str,
        /// Id of the target vertex.
        to: &'a str,
        /// Its values.
        values: &'a [Option<Value>],
    },
}

impl Spec {
    /// The tables of the graph.
    #[must_use]
    pub fn tables(&self) -> &'static [&'static Table] {
        match self.graph {
            Graph::Identity => identity::TABLES,
            Graph::Social => social::TABLES,
        }
    }

    /// How many steps [`each`] takes: golden entities, or profiles and edges.
    #[must_use]
    pub fn steps(&self) -> u64 {
        match self.graph {
            Graph::Identity => self.scale,
            Graph::Social => social::profiles(self.scale) * (1 + social::OUT_DEGREE),
        }
    }

    fn check(&self) -> Result<(), Error> {
        if self.graph == Graph::Social && self.scale > social::MAX_SCALE {
            let reason =
                format!("a social graph has 2^scale profiles, with a scale of at most {}", social::MAX_SCALE);
            return Err(Error::Parameter { name: "scale", value: self.scale.to_string(), reason });
        }
        Ok(())
    }
}

/// Makes a graph; `element` hears of each element and may end it with an error.
pub fn each<E: From<Error>>(
    spec: &Spec,
    mut element: impl FnMut(Element<'_>) -> Result<(), E>,
) -> Result<(), E> {
    spec.check()?;
    match spec.graph {
        Graph::Identity => {
            (0..spec.scale).try_for_each(|index| identity::entity(spec.seed, index, &mut element))
        }
        Graph::Social => social::all(spec.seed, spec.scale, &mut element),
    }
}

/// Random integers of one stream.
pub(crate) struct Dice(ChaCha8Rng);

impl Dice {
    pub fn new(seed: u64, stream: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(stream);
        Self(rng)
    }

    pub fn next(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A number below `bound`, each equally likely up to 2⁻⁶⁴ of its share.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }

    /// How many of `n` tosses succeed, each with a probability of `per_mille` thousandths.
    pub fn binomial(&mut self, n: u64, per_mille: u64) -> u64 {
        (0..n).filter(|_| self.below(1000) < per_mille).count() as u64
    }

    pub fn pick<T: Copy>(&mut self, from: &[T]) -> Option<T> {
        from.get(self.below(from.len() as u64) as usize).copied()
    }
}

#[cfg(test)]
mod tests;
