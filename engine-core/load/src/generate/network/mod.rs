//! The social network: persons who know each other, forums with members and posts, reply trees of comments, likes, and
//! hierarchies of places and tag classes. The labels and edges are those of the Labelled Subgraph Query Benchmark
//! (LSQB, <https://github.com/ldbc/lsqb>) without companies and universities. There are no properties, as in LSQB.
//!
//! Roles: this module holds the tables, the fixed part (places and tags) and the order of generation. [`people`] places
//! persons and chooses acquaintances, [`forums`] generates a forum with everything that is posted in it.
//!
//! Flow: places and tags, then persons, then acquaintances, then forums. Each person and each forum has its own stream,
//! but the persons near another depend on the scale.
//!
//! Means at a scale of a few thousand persons are close to those of the generator of the LDBC's Social Network Benchmark:
//! 18 acquaintances, 25 interests, 6 forums, 147 memberships, 92 posts, 201 comments and 248 likes for each person.

mod forums;
mod people;

use super::{Element, RandomStream, Table};
use std::fmt::Write;

/// The largest scale, which bounds the memory of the generator: about 12 bytes for each person.
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

macro_rules! vertices {
    ($($name:ident $file:literal $labels:literal),*) => { $(
        #[doc = concat!("Table of vertices with the labels ", $labels, ".")]
        pub static $name: Table = Table { name: $file, label: $labels, edges: false, keys: &[] };
    )* };
}

macro_rules! edges {
    ($($name:ident $file:literal $label:literal),*) => { $(
        #[doc = concat!("Table of edges ", $label, ".")]
        pub static $name: Table = Table { name: $file, label: $label, edges: true, keys: &[] };
    )* };
}

vertices!(
    CONTINENT "continent" "Continent",
    COUNTRY "country" "Country",
    CITY "city" "City",
    TAG_CLASS "tag_class" "TagClass",
    TAG "tag" "Tag",
    PERSON "person" "Person",
    FORUM "forum" "Forum",
    POST "post" "Post;Message",
    COMMENT "comment" "Comment;Message"
);

edges!(
    COUNTRY_IS_PART_OF "country_is_part_of_continent" "IS_PART_OF",
    CITY_IS_PART_OF "city_is_part_of_country" "IS_PART_OF",
    IS_SUBCLASS_OF "tag_class_is_subclass_of_tag_class" "IS_SUBCLASS_OF",
    HAS_TYPE "tag_has_type_tag_class" "HAS_TYPE",
    PERSON_IS_LOCATED_IN "person_is_located_in_city" "IS_LOCATED_IN",
    HAS_INTEREST "person_has_interest_tag" "HAS_INTEREST",
    KNOWS "person_knows_person" "KNOWS",
    HAS_MODERATOR "forum_has_moderator_person" "HAS_MODERATOR",
    HAS_MEMBER "forum_has_member_person" "HAS_MEMBER",
    FORUM_HAS_TAG "forum_has_tag_tag" "HAS_TAG",
    CONTAINER_OF "forum_container_of_post" "CONTAINER_OF",
    POST_HAS_CREATOR "post_has_creator_person" "HAS_CREATOR",
    POST_HAS_TAG "post_has_tag_tag" "HAS_TAG",
    POST_IS_LOCATED_IN "post_is_located_in_country" "IS_LOCATED_IN",
    LIKES_POST "person_likes_post" "LIKES",
    COMMENT_HAS_CREATOR "comment_has_creator_person" "HAS_CREATOR",
    COMMENT_HAS_TAG "comment_has_tag_tag" "HAS_TAG",
    COMMENT_IS_LOCATED_IN "comment_is_located_in_country" "IS_LOCATED_IN",
    LIKES_COMMENT "person_likes_comment" "LIKES",
    REPLY_OF_POST "comment_reply_of_post" "REPLY_OF",
    REPLY_OF_COMMENT "comment_reply_of_comment" "REPLY_OF"
);

/// All tables.
pub static TABLES: &[&Table] = &[
    &CONTINENT,
    &COUNTRY,
    &CITY,
    &TAG_CLASS,
    &TAG,
    &PERSON,
    &FORUM,
    &POST,
    &COMMENT,
    &COUNTRY_IS_PART_OF,
    &CITY_IS_PART_OF,
    &IS_SUBCLASS_OF,
    &HAS_TYPE,
    &PERSON_IS_LOCATED_IN,
    &HAS_INTEREST,
    &KNOWS,
    &HAS_MODERATOR,
    &HAS_MEMBER,
    &FORUM_HAS_TAG,
    &CONTAINER_OF,
    &POST_HAS_CREATOR,
    &POST_HAS_TAG,
    &POST_IS_LOCATED_IN,
    &LIKES_POST,
    &COMMENT_HAS_CREATOR,
    &COMMENT_HAS_TAG,
    &COMMENT_IS_LOCATED_IN,
    &LIKES_COMMENT,
    &REPLY_OF_POST,
    &REPLY_OF_COMMENT,
];

// Numbers of the first streams.
const TAG_STREAM: u64 = 1 << 40;
const PERSON_STREAM: u64 = 2 << 40;
const INTEREST_STREAM: u64 = 3 << 40;
const KNOWS_STREAM: u64 = 4 << 40;
const FORUM_STREAM: u64 = 5 << 40;

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
    fn vertex(&mut self, Vertex(table, number): Vertex) -> Result<(), E> {
        rewrite(&mut self.id, table.name, number);
        (self.element)(Element::Vertex { table, id: &self.id, values: &[] })
    }

    fn edge(&mut self, table: &'static Table, from: Vertex, to: Vertex) -> Result<(), E> {
        rewrite(&mut self.id, "e", self.edges);
        rewrite(&mut self.from, from.0.name, from.1);
        rewrite(&mut self.to, to.0.name, to.1);
        self.edges += 1;
        (self.element)(Element::Edge { table, id: &self.id, from: &self.from, to: &self.to, values: &[] })
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
    element: &mut impl FnMut(Element<'_>) -> Result<(), E>,
) -> Result<(), E> {
    let [id, from, to] = Default::default();
    let mut out = Elements { element, edges: 0, id, from, to };
    places(&mut out)?;
    tags(seed, &mut out)?;
    let people = people::People::draw(seed, scale);
    people.persons(seed, &mut out)?;
    people.acquaintances(seed, &mut out)?;
    let mut forums = forums::Forums::new(seed, &people);
    (0..scale * FORUMS_PER_PERSON).try_for_each(|number| forums.forum(number, &mut out))
}

fn places<E>(out: &mut Elements<'_, impl FnMut(Element<'_>) -> Result<(), E>>) -> Result<(), E> {
    (0..CONTINENTS).try_for_each(|number| out.vertex(Vertex(&CONTINENT, number)))?;
    for number in 0..COUNTRIES {
        let country = Vertex(&COUNTRY, number);
        out.vertex(country)?;
        out.edge(&COUNTRY_IS_PART_OF, country, Vertex(&CONTINENT, number % CONTINENTS))?;
    }
    for number in 0..COUNTRIES * CITIES_PER_COUNTRY {
        let city = Vertex(&CITY, number);
        out.vertex(city)?;
        out.edge(&CITY_IS_PART_OF, city, Vertex(&COUNTRY, number / CITIES_PER_COUNTRY))?;
    }
    Ok(())
}

fn tags<E>(seed: u64, out: &mut Elements<'_, impl FnMut(Element<'_>) -> Result<(), E>>) -> Result<(), E> {
    for number in 0..TAG_CLASSES {
        let class = Vertex(&TAG_CLASS, number);
        out.vertex(class)?;
        if number > 0 {
            out.edge(&IS_SUBCLASS_OF, class, Vertex(&TAG_CLASS, (number - 1) / SUBCLASSES))?;
        }
    }
    let mut random = RandomStream::new(seed, TAG_STREAM);
    for number in 0..TAGS {
        let tag = Vertex(&TAG, number);
        out.vertex(tag)?;
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
