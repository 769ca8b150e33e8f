//! Generates test graphs: the same bytes for the same seed on every machine.
//!
//! Roles: [`identity`], [`social`] and [`network`] generate elements one after the other; the network comes without
//! properties or with them. This module names their tables and calls back for each element ([`each`]). [`files`] writes
//! them as CSV.
//!
//! Integers of a ChaCha stream and the arithmetic of this module decide everything: floating point and the sampling of
//! a library may differ between machines and releases. Each golden entity and each profile has its own stream, so that
//! it does not depend on the scale.

pub mod files;
pub mod identity;
pub mod network;
pub mod social;

use crate::convert::Type;
use crate::error::Error;
use rand::{RngCore, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};
use tidegraph_types::Value;

/// Kind of a generated graph.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Graph {
    /// Golden entities with their signals: small trees. The scale is the number of golden entities.
    Identity,
    /// A social network with hubs (R-MAT). The scale is the binary logarithm of the number of profiles.
    Social,
    /// A social network with forums, messages, tags and places. The scale is the number of persons.
    Network,
    /// The network with properties, companies and universities. The scale is the number of persons.
    Snb,
}

/// A graph to generate.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Spec {
    /// Kind of the graph.
    pub graph: Graph,
    /// Size of the graph; see [`Graph`].
    pub scale: u64,
    /// Seed of the random streams.
    pub seed: u64,
}

/// Property keys and the types of their values.
pub type Keys = &'static [(&'static str, Type)];

/// A set of elements with the same labels and keys.
#[derive(Debug, PartialEq, Eq)]
pub struct Table {
    /// Name of its file, without `vertices_` or `edges_`.
    pub name: &'static str,
    /// Label, or the labels of a vertex, separated by semicolons.
    pub label: &'static str,
    /// Whether it holds edges.
    pub edges: bool,
    /// Property keys and their types. The network without properties uses none of them ([`Spec::keys`]).
    pub keys: Keys,
    /// Keys whose properties have several values, each of the key's type. All other properties have one.
    pub lists: &'static [&'static str],
}

/// One element; `values` are those of the keys of its table ([`Spec::keys`]).
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
    /// An edge. Both ends come before it.
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
    /// Returns the tables of the graph.
    #[must_use]
    pub fn tables(&self) -> &'static [&'static Table] {
        match self.graph {
            Graph::Identity => identity::TABLES,
            Graph::Social => social::TABLES,
            Graph::Network => network::tables(false),
            Graph::Snb => network::tables(true),
        }
    }

    /// Returns the property keys of a table in this graph.
    #[must_use]
    pub fn keys(&self, table: &Table) -> Keys {
        if self.graph == Graph::Network { &[] } else { table.keys }
    }

    /// Returns the number of steps of [`each`]: golden entities, profiles and edges, or persons and forums.
    #[must_use]
    pub fn steps(&self) -> u64 {
        match self.graph {
            Graph::Identity => self.scale,
            Graph::Social => social::profiles(self.scale) * (1 + social::OUT_DEGREE),
            Graph::Network | Graph::Snb => self.scale.saturating_mul(1 + network::FORUMS_PER_PERSON),
        }
    }

    /// Returns whether each element of a table is a step.
    fn is_step(&self, table: &'static Table) -> bool {
        let among = |tables: &[&'static Table]| tables.iter().any(|t| std::ptr::eq(*t, table));
        match self.graph {
            Graph::Identity => among(&[&identity::GOLDEN_ENTITY]),
            Graph::Social => true,
            Graph::Network | Graph::Snb => among(&[&network::PERSON, &network::FORUM]),
        }
    }

    fn check(&self) -> Result<(), Error> {
        let (graph, most) = match self.graph {
            Graph::Identity => return Ok(()),
            Graph::Social => ("a social graph has 2^scale profiles", social::MAX_SCALE),
            Graph::Network | Graph::Snb => ("a network has scale persons", network::MAX_SCALE),
        };
        if self.scale > most {
            let reason = format!("{graph}, with a scale of at most {most}");
            return Err(Error::Parameter { name: "scale", value: self.scale.to_string(), reason });
        }
        Ok(())
    }
}

/// Generates a graph and calls `element` with each element.
///
/// # Errors
///
/// The first error of `element`, or [`Error::Parameter`] if the scale is too large.
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
        Graph::Network => network::all(spec.seed, spec.scale, false, &mut element),
        Graph::Snb => network::all(spec.seed, spec.scale, true, &mut element),
    }
}

/// A stream of random integers.
pub(crate) struct RandomStream(ChaCha8Rng);

impl RandomStream {
    pub fn new(seed: u64, stream: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(stream);
        Self(rng)
    }

    pub fn next(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Returns a number below `bound`, uniformly distributed up to a bias of `bound` / 2⁶⁴.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }

    /// Draws from a binomial distribution: the number of successes among `n` trials, each with probability `per_mille`
    /// / 1000.
    pub fn binomial(&mut self, n: u64, per_mille: u64) -> u64 {
        (0..n).filter(|_| self.below(1000) < per_mille).count() as u64
    }

    /// Draws a number from 1 to 2^`exponents` − 1; each power of two is as likely as the next, so that most numbers are
    /// small and some are large.
    pub fn amount(&mut self, exponents: u64) -> u64 {
        let power = 1 << self.below(exponents);
        power + self.below(power)
    }

    /// Draws a number below `bound`, which is not 0. A number n is about as likely as 1 / (n + 2^`flat`): as in Zipf's
    /// law, but without its steep beginning.
    pub fn skewed(&mut self, bound: u64, flat: u32) -> u64 {
        let first = 1 << flat;
        let exponents = (bound + first).ilog2() - flat + 1;
        loop {
            let power = first << self.below(u64::from(exponents));
            let number = power - first + self.below(power);
            if number < bound {
                return number;
            }
        }
    }

    pub fn pick<T: Copy>(&mut self, from: &[T]) -> Option<T> {
        from.get(self.below(from.len() as u64) as usize).copied()
    }
}

#[cfg(test)]
mod tests;
