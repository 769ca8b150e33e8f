//! The social network: persons who know each other, forums with members and posts, reply trees of comments, likes, and
//! hierarchies of places and tag classes. The labels and edges are those of the Labelled Subgraph Query Benchmark
//! (LSQB, <https://github.com/ldbc/lsqb>) without companies and universities. There are no properties, as in LSQB.
//!
//! The same network comes with the properties that the reads of LDBC's SNB Interactive workload ask for, and then with
//! companies and universities. Some messages are then written on a journey, in another country.
//!
//! Roles: this module holds the fixed part (places and tags) and the order of generation. `tables` names the tables.
//! `people` places persons and chooses acquaintances, `forums` generates a forum with everything that is posted in it.
//! `details` draws properties, from streams of its own, so that they do not change the network; `organisations` draws
//! companies and universities.
//!
//! Flow: places and tags, then organisations, persons, acquaintances and forums. Each person and each forum has its own
//! streams, but the persons near another depend on the scale.
//!
//! Means at a scale of a few thousand persons are close to those of the generator of the LDBC's Social Network Benchmark:
//! 18 acquaintances, 25 interests, 6 forums, 147 memberships, 92 posts, 201 comments and 248 likes for each person.

mod details;
mod forums;
mod organisations;
mod people;
mod tables;

use super::{Element, RandomStream, Table};
use details::Details;
use std::fmt::Write;
pub use tables::*;
use tidegraph_types::Value;

/// The largest scale, which bounds the memory of the generator: about 12 bytes for each person, or 16 with properties.
pub const MAX_SCALE: u64 = 100_000_000;

/// Number of forums of each person.
pub const FORUMS_PER_PERSON: u64 = 6;

const CONTINENTS: u64 = 6;
const COUNTRIES: u64 = 110;
const CITIES_PER_COUNTRY: u64 = 12;
const TAG_CLASSES: u64 = 70;
const TAGS: u64 = 16_000;
/// Number of direct subclasses of a tag class.
const SUBCLASSES: u64 = 3;

// Numbers of the first streams.
const TAG_STREAM: u64 = 1 << 40;
const PERSON_STREAM: u64 = 2 << 40;
const INTEREST_STREAM: u64 = 3 << 40;
const KNOWS_STREAM: u64 = 4 << 40;
const FORUM_STREAM: u64 = 5 << 40;
// Those of properties.
const CREATED_STREAM: u64 = 6 << 40;
const PERSON_DETAIL_STREAM: u64 = 7 << 40;
const KNOWS_DETAIL_STREAM: u64 = 8 << 40;
const FORUM_DETAIL_STREAM: u64 = 9 << 40;

/// A vertex: its table and its number in it.
#[derive(Clone, Copy)]
struct Vertex(&'static Table, u64);

/// Passes elements to the caller. Texts of ids are reused.
struct Elements<'a, F> {
    element: &'a mut F,
    edges: u64,
    id: String,
    from: String,
    to: String,
}

impl<E, F: FnMut(Element<'_>) -> Result<(), E>> Elements<'_, F> {
    fn vertex(&mut self, Vertex(table, number): Vertex, values: &[Option<Value>]) -> Result<(), E> {
        rewrite(&mut self.id, table.name, number);
        (self.element)(Element::Vertex { table, id: &self.id, values })
    }

    fn edge(&mut self, table: &'static Table, from: Vertex, to: Vertex) -> Result<(), E> {
        self.edge_with(table, from, to, &[])
    }

    fn edge_with(
        &mut self,
        table: &'static Table,
        from: Vertex,
        to: Vertex,
        values: &[Option<Value>],
    ) -> Result<(), E> {
        rewrite(&mut self.id, "e", self.edges);
        rewrite(&mut self.from, from.0.name, from.1);
        rewrite(&mut self.to, to.0.name, to.1);
        self.edges += 1;
        (self.element)(Element::Edge { table, id: &self.id, from: &self.from, to: &self.to, values })
    }
}

fn rewrite(text: &mut String, prefix: &str, number: u64) {
    text.clear();
    // Writing to a string cannot fail.
    let _ = write!(text, "{prefix}{number}");
}

/// Generates the network with `scale` persons.
pub(crate) fn all<E>(
    seed: u64,
    scale: u64,
    properties: bool,
    element: &mut impl FnMut(Element<'_>) -> Result<(), E>,
) -> Result<(), E> {
    let [id, from, to] = Default::default();
    let mut out = Elements { element, edges: 0, id, from, to };
    let mut details = Details::new(seed, properties.then_some(scale));
    places(&details, &mut out)?;
    tags(seed, &details, &mut out)?;
    if properties {
        organisations::all(&details, &mut out)?;
    }
    let people = people::People::draw(seed, scale);
    people.persons(seed, &mut details, &mut out)?;
    people.acquaintances(seed, &mut details, &mut out)?;
    let mut forums = forums::Forums::new(seed, &people, details);
    (0..scale * FORUMS_PER_PERSON).try_for_each(|number| forums.forum(number, &mut out))
}

fn places<E>(
    details: &Details,
    out: &mut Elements<'_, impl FnMut(Element<'_>) -> Result<(), E>>,
) -> Result<(), E> {
    for number in 0..CONTINENTS {
        out.vertex(Vertex(&CONTINENT, number), &details.named("Continent", number))?;
    }
    for number in 0..COUNTRIES {
        let country = Vertex(&COUNTRY, number);
        out.vertex(country, &details.named("Country", number))?;
        out.edge(&COUNTRY_IS_PART_OF, country, Vertex(&CONTINENT, number % CONTINENTS))?;
    }
    for number in 0..COUNTRIES * CITIES_PER_COUNTRY {
        let city = Vertex(&CITY, number);
        out.vertex(city, &details.named("City", number))?;
        out.edge(&CITY_IS_PART_OF, city, Vertex(&COUNTRY, number / CITIES_PER_COUNTRY))?;
    }
    Ok(())
}

fn tags<E>(
    seed: u64,
    details: &Details,
    out: &mut Elements<'_, impl FnMut(Element<'_>) -> Result<(), E>>,
) -> Result<(), E> {
    for number in 0..TAG_CLASSES {
        let class = Vertex(&TAG_CLASS, number);
        out.vertex(class, &details.named("Class", number))?;
        if number > 0 {
            out.edge(&IS_SUBCLASS_OF, class, Vertex(&TAG_CLASS, (number - 1) / SUBCLASSES))?;
        }
    }
    let mut random = RandomStream::new(seed, TAG_STREAM);
    for number in 0..TAGS {
        let tag = Vertex(&TAG, number);
        out.vertex(tag, &details.named("Tag", number))?;
        out.edge(&HAS_TYPE, tag, Vertex(&TAG_CLASS, random.skewed(TAG_CLASSES, 1)))?;
    }
    Ok(())
}

/// Draws a tag. Some are much more likely than others.
fn tag(random: &mut RandomStream) -> u64 {
    random.skewed(TAGS, 5)
}

/// Calls `draw` a number of times and keeps each number once, in the order in which it was drawn first.
fn distinct(times: u64, into: &mut Vec<u64>, mut draw: impl FnMut() -> Option<u64>) {
    into.clear();
    for number in (0..times).filter_map(|_| draw()) {
        // The lists are short, so a scan is cheaper than a set.
        if !into.contains(&number) {
            into.push(number);
        }
    }
}
