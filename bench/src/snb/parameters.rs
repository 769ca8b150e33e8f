//! Parameters of the reads, drawn from what the graph has.
//!
//! As LDBC's curation does, complex reads start from persons whose number of acquaintances is in the middle half, so that
//! the times of one read are comparable, and ask for countries, tags and dates that occur. Short reads start from anyone
//! and from any message.

use crate::clients::Call;
use anyhow::ensure;
use rand::Rng;
use rand_chacha::ChaCha8Rng;
use tidegraph_engine::Database;
use tidegraph_types::Value;

const DAY_MS: i64 = 86_400_000;
/// Number of messages whose dates are sampled, and of replied messages that are known.
const SAMPLED: i64 = 20_000;

/// What a read asks for. The comment names the parameters.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Draw {
    /// `personId`: anyone.
    Anyone,
    /// `personId`: someone with a usual number of acquaintances.
    Person,
    /// `person1Id`, `person2Id`: two different such persons.
    TwoPersons,
    /// `messageId`: any message.
    Message,
    /// `messageId`: a message with replies.
    RepliedMessage,
    /// `firstName`: that of a person.
    FirstName,
    /// `countryName`: one where many live.
    Country,
    /// `countryXName`, `countryYName`: two different such countries.
    TwoCountries,
    /// `tagName`: a tag of many posts.
    Tag,
    /// `tagClassName`: a class that is neither the root nor a leaf far below it.
    TagClass,
    /// `maxDate`: in the later three quarters of the messages.
    MaxDate,
    /// `minDate`: in the later half of the messages.
    MinDate,
    /// `startDate`, `endDate`: four weeks.
    Month,
    /// `startDate`, `endDate`: thirteen weeks.
    Quarter,
    /// `month`: 1 to 12.
    BirthMonth,
    /// `workFromYear`: a year.
    WorkFromYear,
}

/// What the graph has.
pub struct Known {
    anyone: Vec<Value>,
    persons: Vec<Value>,
    messages: i64,
    replied: Vec<Value>,
    first_names: Vec<Value>,
    countries: Vec<Value>,
    tags: Vec<Value>,
    tag_classes: Vec<Value>,
    /// Dates of messages, in order.
    dates: Vec<i64>,
}

impl Known {
    /// Asks the graph.
    pub fn of(database: &Database) -> anyhow::Result<Self> {
        let column = |text: &'static str, step: i64| -> anyhow::Result<Vec<Value>> {
            let rows = Call::cypher(text, vec![("step", Value::Long(step))]).embedded(database)?;
            Ok(rows.into_iter().filter_map(|row| row.into_iter().next()).collect())
        };
        let numbers = |text, step| -> anyhow::Result<Vec<i64>> {
            Ok(column(text, step)?.iter().filter_map(Value::as_i64).collect())
        };
        let messages = numbers("MATCH (m:Message) RETURN count(*)", 1)?.first().copied().unwrap_or_default();
        let step = 1 + messages / SAMPLED;
        let known = column(
            "MATCH (p:Person)-[:KNOWS]-() WITH p, count(*) AS known RETURN p.id ORDER BY known, p.id",
            1,
        )?;
        let middle = known.len() / 4..known.len() - known.len() / 4;
        let this = Self {
            anyone: column("MATCH (p:Person) RETURN p.id ORDER BY p.id", 1)?,
            persons: known[middle].to_vec(),
            messages,
            replied: column(
                "MATCH (m:Message)<-[:REPLY_OF]-() WITH DISTINCT m.id AS id WHERE id % $step = 0 RETURN id ORDER BY id",
                step,
            )?,
            first_names: column("MATCH (p:Person) RETURN p.firstName ORDER BY p.id", 1)?,
            countries: column(
                "MATCH (c:Country)<-[:IS_PART_OF]-()<-[:IS_LOCATED_IN]-(:Person) \
                 WITH c, count(*) AS persons RETURN c.name ORDER BY persons DESC, c.id LIMIT 10",
                1,
            )?,
            tags: column(
                "MATCH (:Post)-[:HAS_TAG]->(t) WITH t, count(*) AS posts \
                 RETURN t.name ORDER BY posts DESC, t.id LIMIT 100",
                1,
            )?,
            tag_classes: column(
                "MATCH (c:TagClass)-[:IS_SUBCLASS_OF*1..2]->(root) WHERE NOT (root)-[:IS_SUBCLASS_OF]->() \
                 RETURN DISTINCT c.name AS name ORDER BY name",
                1,
            )?,
            dates: numbers(
                "MATCH (m:Message) WHERE m.id % $step = 0 RETURN m.creationDate AS date ORDER BY date",
                step,
            )?,
        };
        let enough = this.persons.len() > 1
            && this.countries.len() > 1
            && [&this.anyone, &this.replied, &this.tags, &this.tag_classes].iter().all(|all| !all.is_empty())
            && !this.dates.is_empty();
        ensure!(enough, "the graph is too small: use a larger --scale");
        Ok(this)
    }

    fn date(&self, random: &mut ChaCha8Rng, from_percent: usize, to_percent: usize) -> i64 {
        let at = |percent| self.dates.len() * percent / 100;
        let drawn = random.random_range(at(from_percent)..at(to_percent).max(at(from_percent) + 1));
        self.dates[drawn.min(self.dates.len() - 1)]
    }

    fn range(&self, random: &mut ChaCha8Rng, days: i64) -> Vec<(&'static str, Value)> {
        let start = self.date(random, 10, 90);
        vec![("startDate", Value::Long(start)), ("endDate", Value::Long(start + days * DAY_MS))]
    }

    /// Draws the parameters of a call.
    pub fn draw(&self, draw: &[Draw], random: &mut ChaCha8Rng) -> Vec<(&'static str, Value)> {
        draw.iter().flat_map(|draw| self.one(*draw, random)).collect()
    }

    fn one(&self, draw: Draw, random: &mut ChaCha8Rng) -> Vec<(&'static str, Value)> {
        match draw {
            Draw::Anyone => vec![("personId", pick(&self.anyone, random))],
            Draw::Person => vec![("personId", pick(&self.persons, random))],
            Draw::TwoPersons => {
                let (one, other) = two(&self.persons, random);
                vec![("person1Id", one), ("person2Id", other)]
            }
            // Messages are numbered from 0 on.
            Draw::Message => vec![("messageId", Value::Long(random.random_range(0..self.messages)))],
            Draw::RepliedMessage => vec![("messageId", pick(&self.replied, random))],
            Draw::FirstName => vec![("firstName", pick(&self.first_names, random))],
            Draw::Country => vec![("countryName", pick(&self.countries, random))],
            Draw::TwoCountries => {
                let (one, other) = two(&self.countries, random);
                vec![("countryXName", one), ("countryYName", other)]
            }
            Draw::Tag => vec![("tagName", pick(&self.tags, random))],
            Draw::TagClass => vec![("tagClassName", pick(&self.tag_classes, random))],
            Draw::MaxDate => vec![("maxDate", Value::Long(self.date(random, 25, 100)))],
            Draw::MinDate => vec![("minDate", Value::Long(self.date(random, 50, 90)))],
            Draw::Month => self.range(random, 28),
            Draw::Quarter => self.range(random, 91),
            Draw::BirthMonth => vec![("month", Value::Long(random.random_range(1..=12)))],
            Draw::WorkFromYear => vec![("workFromYear", Value::Long(random.random_range(2003..=2013)))],
        }
    }
}

fn pick(from: &[Value], random: &mut ChaCha8Rng) -> Value {
    from[random.random_range(0..from.len())].clone()
}

/// Returns two different values.
fn two(from: &[Value], random: &mut ChaCha8Rng) -> (Value, Value) {
    let one = random.random_range(0..from.len());
    let other = (one + random.random_range(1..from.len())) % from.len();
    (from[one].clone(), from[other].clone())
}
