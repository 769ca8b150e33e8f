//! The social graph: 2^scale profiles and 19 times as many friendships, placed by R-MAT.
//!
//! R-MAT (Chakrabarti, Zhan, Faloutsos, 2004) chooses for each bit of source and target one of four quadrants, here
//! with a = 0.57, b = c = 0.19, d = 0.05. Numbers are scrambled afterwards, so that hubs are spread over the ids. There
//! are parallel edges, no loops.

use super::{Element, RandomStream, Table};
use crate::convert::Type;
use std::fmt::Write;
use tidegraph_types::Value;

/// Mean out-degree.
pub const OUT_DEGREE: u64 = 19;

/// The largest scale: four billion profiles.
pub const MAX_SCALE: u64 = 32;

/// Table of profiles.
pub static PROFILE: Table = Table {
    name: "profile",
    label: "Profile",
    edges: false,
    keys: &[
        ("age", Type::Int),
        ("gender", Type::String),
        ("region", Type::String),
        ("completion_percentage", Type::Int),
        ("public", Type::Bool),
        ("registration", Type::DateTime),
        ("hobbies", Type::String),
        ("music", Type::String),
        ("about", Type::String),
    ],
    lists: &[],
};

/// Table of friendships.
pub static FRIEND: Table = Table { name: "friend", label: "FRIEND", edges: true, keys: &[], lists: &[] };

/// All tables.
pub static TABLES: &[&Table] = &[&PROFILE, &FRIEND];

const WORDS: [&str; 40] = [
    "books",
    "chess",
    "cinema",
    "climbing",
    "coffee",
    "cooking",
    "cycling",
    "dancing",
    "dogs",
    "drawing",
    "fishing",
    "football",
    "games",
    "garden",
    "guitar",
    "hiking",
    "hockey",
    "horses",
    "jazz",
    "maps",
    "metal",
    "mountains",
    "opera",
    "painting",
    "photos",
    "piano",
    "poetry",
    "pop",
    "rock",
    "running",
    "sailing",
    "singing",
    "skiing",
    "sleep",
    "swimming",
    "tea",
    "tennis",
    "theatre",
    "travel",
    "yoga",
];

/// 2001-01-01 in seconds since 1970.
const START_S: i64 = 978_307_200;
const ELEVEN_YEARS_S: u64 = 347_155_200;

/// Returns the number of profiles at a scale.
#[must_use]
pub fn profiles(scale: u64) -> u64 {
    1 << scale.min(MAX_SCALE)
}

/// Returns the id of a profile.
#[must_use]
pub fn profile_id(number: u64) -> String {
    format!("u{number}")
}

/// Number of the first stream of edges; those of profiles begin at 0.
const EDGE_STREAM: u64 = 1 << 40;
/// Number of edges of one stream.
const CHUNK_EDGES: u64 = 1 << 12;

pub(crate) fn all<E>(
    seed: u64,
    scale: u64,
    element: &mut impl FnMut(Element<'_>) -> Result<(), E>,
) -> Result<(), E> {
    let count = profiles(scale);
    for number in 0..count {
        let mut random = RandomStream::new(seed, number);
        let values = profile(&mut random);
        element(Element::Vertex { table: &PROFILE, id: &profile_id(number), values: &values })?;
    }
    if count < 2 {
        return Ok(());
    }
    let edges = count * OUT_DEGREE;
    let (mut id, mut from, mut to) = (String::new(), String::new(), String::new());
    let mut random = RandomStream::new(seed, EDGE_STREAM);
    for number in 0..edges {
        if number % CHUNK_EDGES == 0 {
            random = RandomStream::new(seed, EDGE_STREAM + number / CHUNK_EDGES);
        }
        let (source, target) = edge(&mut random, scale);
        for (text, prefix, n) in [(&mut id, "f", number), (&mut from, "u", source), (&mut to, "u", target)] {
            text.clear();
            // Writing to a string cannot fail.
            let _ = write!(text, "{prefix}{n}");
        }
        element(Element::Edge { table: &FRIEND, id: &id, from: &from, to: &to, values: &[] })?;
    }
    Ok(())
}

/// Draws source and target of one edge.
fn edge(random: &mut RandomStream, scale: u64) -> (u64, u64) {
    loop {
        let (mut source, mut target) = (0, 0);
        for _ in 0..scale {
            let toss = random.below(100);
            (source, target) = (
                source << 1 | u64::from(toss >= 76),
                target << 1 | u64::from((57..76).contains(&toss) || toss >= 95),
            );
        }
        if source != target {
            return (scramble(source, scale), scramble(target, scale));
        }
    }
}

/// Permutes the numbers below 2^scale.
fn scramble(number: u64, scale: u64) -> u64 {
    let mask = (1 << scale) - 1;
    let mut x = number;
    for _ in 0..2 {
        x = x.wrapping_mul(0x9e37_79b9_7f4a_7c15) & mask;
        x ^= x >> (scale / 2).max(1);
    }
    x
}

fn profile(random: &mut RandomStream) -> [Option<Value>; 9] {
    // A third tells no age, which is 0; the others crowd at the young end.
    let skewed = random.below(100) * random.below(100) / 99;
    let age = if random.below(3) == 0 { 0 } else { 13 + skewed };
    let gender = if random.below(2) == 0 { "female" } else { "male" };
    let region = format!("region-{}", random.below(14) * random.below(14));
    let completion = random.below(101);
    let registered = START_S + random.below(ELEVEN_YEARS_S) as i64;
    let registration = jiff::Timestamp::from_second(registered).ok().map(Value::DateTime);
    [
        Some(Value::Int(age as i32)),
        Some(Value::string(gender)),
        Some(Value::string(region)),
        Some(Value::Int(completion as i32)),
        Some(Value::Bool(random.below(3) > 0)),
        registration,
        words(random, 40, 4, ", "),
        words(random, 30, 3, ", "),
        words(random, 25, 20, " "),
    ]
}

/// Draws some words, or most often nothing.
fn words(random: &mut RandomStream, percent: u64, most: u64, between: &str) -> Option<Value> {
    if random.below(100) >= percent {
        return None;
    }
    let mut text = String::new();
    for n in 0..=random.below(most) {
        if n > 0 {
            text.push_str(between);
        }
        text.push_str(random.pick(&WORDS).unwrap_or_default());
    }
    Some(Value::string(text))
}
