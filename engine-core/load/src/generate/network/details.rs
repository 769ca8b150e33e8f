//! The properties of the network's elements, if it has any.
//!
//! Dates follow each other as they do in life: a forum is younger than the person who moderates it, a membership younger
//! than forum and member, a message younger than the membership of its author and than the message that it replies to, a
//! like younger than its message. All dates are milliseconds since 1970, and persons join in the first two years.

use super::{CREATED_STREAM, FORUM_DETAIL_STREAM, KNOWS_DETAIL_STREAM, PERSON_DETAIL_STREAM, RandomStream};
use tidegraph_types::Value;

/// Values of one element; empty if the network has no properties.
pub type Values = Vec<Option<Value>>;

/// 2010-01-01 in milliseconds since 1970.
const START_MS: u64 = 1_262_304_000_000;
const MINUTE_MS: u64 = 60_000;
const DAY_MS: u64 = 1_440 * MINUTE_MS;
const YEAR_S: u64 = 365 * 86_400;
/// The longest time between a message and a reply or a like.
const REACTION_MINUTES: u64 = 30 * 1_440;
/// 1980-01-01 in days since 1970; persons were born in the ten years after it.
const FIRST_BIRTHDAY: u64 = 3_652;

const FEMALE_NAMES: [&str; 24] = [
    "Ada", "Anita", "Barbara", "Carol", "Elena", "Frances", "Grace", "Hedy", "Jean", "Karen", "Lynn",
    "Margaret", "Maria", "Radia", "Shafi", "Sophie", "Zoë", "Chen", "Fatima", "Ingrid", "Joan", "Keiko",
    "Lucia", "Yang",
];
const MALE_NAMES: [&str; 24] = [
    "Jan", "José", "John", "Ali", "Alan", "Bjarne", "Claude", "Dennis", "Donald", "Edsger", "Ivan", "Ken",
    "Leslie", "Linus", "Maurice", "Niklaus", "Otto", "Peter", "Rahul", "Robin", "Tony", "Wei", "Abdul",
    "Carlos",
];
const LAST_NAMES: [&str; 48] = [
    "Zhang", "Singh", "Li", "Kumar", "Khan", "Garcia", "Silva", "Müller", "Allen", "Bartik", "Boole", "Chen",
    "Clarke", "Codd", "Conway", "Cray", "Dijkstra", "Engel", "Estrin", "Goldberg", "Gray", "Hamilton",
    "Hoare", "Holt", "Hopper", "Kay", "Kilburn", "Knuth", "Lamarr", "Lamport", "Liskov", "Lovelace",
    "McCarthy", "Naur", "O'Neil", "Perlman", "Ritchie", "Shannon", "Turing", "Wilkes", "Kim", "Nguyen",
    "Novak", "Rossi", "Sato", "Smith", "Yilmaz", "Adeyemi",
];
const BROWSERS: [&str; 5] = ["Chrome", "Firefox", "Internet Explorer", "Opera", "Safari"];
const LANGUAGES: [&str; 12] = ["ar", "cs", "de", "es", "fr", "hi", "it", "ja", "ko", "pl", "pt", "zh"];
const PROVIDERS: [&str; 5] = ["example.com", "example.net", "example.org", "mail.example", "post.example"];
const WORDS: [&str; 32] = [
    "about", "after", "also", "and", "band", "battle", "book", "born", "city", "early", "film", "first",
    "great", "history", "island", "king", "later", "life", "music", "north", "of", "played", "river",
    "season", "the", "time", "to", "town", "war", "was", "with", "year",
];

/// Draws properties.
pub struct Details {
    seed: u64,
    /// Time between the start and each person's joining in seconds; `None` if the network has no properties.
    joined: Option<Vec<u32>>,
    /// The stream of the person or forum of which properties are drawn.
    random: RandomStream,
}

impl Details {
    /// Draws when each of `persons` persons joined the network. `None` stands for a network without properties.
    pub fn new(seed: u64, persons: Option<u64>) -> Self {
        let mut random = RandomStream::new(seed, CREATED_STREAM);
        let joined = persons.map(|count| (0..count).map(|_| random.below(2 * YEAR_S) as u32).collect());
        Self { seed, joined, random }
    }

    /// Returns the random stream of the person or the forum of which properties are drawn; `None` if the network has no
    /// properties.
    pub fn random(&mut self) -> Option<&mut RandomStream> {
        self.joined.as_ref().map(|_| &mut self.random)
    }

    fn begin(&mut self, stream: u64) {
        if self.joined.is_some() {
            self.random = RandomStream::new(self.seed, stream);
        }
    }

    /// Begins with the acquaintances of a person.
    pub fn begin_acquaintances(&mut self, person: u64) {
        self.begin(KNOWS_DETAIL_STREAM + person);
    }

    /// Returns when a person joined the network.
    fn joined(&self, person: u64) -> u64 {
        let seconds = self.joined.as_ref().and_then(|all| all.get(person as usize)).copied();
        START_MS + u64::from(seconds.unwrap_or_default()) * 1_000
    }

    /// Returns the values of a place, a tag, a class of tags or an organisation.
    pub fn named(&self, kind: &str, number: u64) -> Values {
        if self.joined.is_none() {
            return Values::new();
        }
        let name = format!("{kind}_{number}");
        let url = format!("http://social.example/{name}");
        vec![long(number), text(&name), text(&url)]
    }

    /// Returns the values of a person, and begins with what the person has.
    pub fn person(&mut self, number: u64, country: u64) -> Values {
        self.begin(PERSON_DETAIL_STREAM + number);
        let joined = self.joined(number);
        let Some(random) = self.random() else { return Values::new() };
        let (gender, names) =
            if random.below(2) == 0 { ("female", FEMALE_NAMES) } else { ("male", MALE_NAMES) };
        let first = skewed(random, &names);
        let second = if random.below(2) == 0 { Some(skewed(random, &names)) } else { None };
        let birthday = FIRST_BIRTHDAY + random.below(3_653);
        let own = LANGUAGES[country as usize % LANGUAGES.len()];
        let speaks = [own, "en"].map(Value::string).to_vec();
        let (count, provider) = (2 + random.below(2), random.below(PROVIDERS.len() as u64));
        let email = |n: u64| {
            let provider = PROVIDERS[(provider + n) as usize % PROVIDERS.len()];
            Value::string(format!("{first}{number}@{provider}"))
        };
        vec![
            long(number),
            Some(second.map_or_else(|| Value::string(first), |s| Value::string(format!("{first} {s}")))),
            text(skewed(random, &LAST_NAMES)),
            text(gender),
            long(birthday * DAY_MS),
            long(joined),
            text(&address(random)),
            random.pick(&BROWSERS).map(Value::string),
            Some(Value::list(speaks)),
            Some(Value::list((0..count).map(email).collect::<Vec<_>>())),
        ]
    }

    /// Returns the values of an acquaintance.
    pub fn acquaintance(&mut self, person: u64, other: u64) -> Values {
        let known = self.joined(person).max(self.joined(other));
        let Some(random) = self.random() else { return Values::new() };
        vec![long(soon(random, known, 365))]
    }

    /// Returns the values of a forum and the time of its creation, and begins with what is in it.
    pub fn forum(&mut self, number: u64, moderator: u64, tag: u64) -> (Values, u64) {
        self.begin(FORUM_DETAIL_STREAM + number);
        let after = self.joined(moderator);
        let Some(random) = self.random() else { return (Values::new(), 0) };
        let created = soon(random, after, 365);
        (vec![long(number), text(&format!("Group {number} for Tag_{tag}")), long(created)], created)
    }

    /// Returns the values of a membership and its time.
    pub fn membership(&mut self, member: u64, forum: u64) -> (Values, u64) {
        let after = self.joined(member).max(forum);
        let Some(random) = self.random() else { return (Values::new(), 0) };
        let since = soon(random, after, 180);
        (vec![long(since)], since)
    }

    /// Returns the values of a post and its time.
    pub fn post(&mut self, number: u64, member_since: u64, country: u64) -> (Values, u64) {
        let Some(random) = self.random() else { return (Values::new(), 0) };
        let created = soon(random, member_since, 180);
        // One post out of eight is a photo.
        let photo = random.below(8) == 0;
        let mut values = message(random, number, created, photo);
        values.push(photo.then(|| Value::string(format!("photo{number}.jpg"))));
        values.push((!photo).then(|| Value::string(LANGUAGES[country as usize % LANGUAGES.len()])));
        (values, created)
    }

    /// Returns the values of a comment and its time. It comes after the message that it replies to.
    pub fn comment(&mut self, number: u64, member_since: u64, replied: u64) -> (Values, u64) {
        let Some(random) = self.random() else { return (Values::new(), 0) };
        let created = reaction(random, member_since.max(replied));
        (message(random, number, created, false), created)
    }

    /// Returns the values of a like.
    pub fn like(&mut self, person: u64, message: u64) -> Values {
        let after = self.joined(person).max(message);
        let Some(random) = self.random() else { return Values::new() };
        vec![long(reaction(random, after))]
    }
}

/// Returns the values that posts and comments have in common.
fn message(random: &mut RandomStream, number: u64, created: u64, photo: bool) -> Values {
    let content = if photo { String::new() } else { content(random) };
    vec![
        long(number),
        long(created),
        text(&address(random)),
        random.pick(&BROWSERS).map(Value::string),
        (!photo).then(|| Value::string(content.as_str())),
        Some(Value::Int(content.len() as i32)),
    ]
}

/// Draws a text of up to 255 letters. Most are short.
fn content(random: &mut RandomStream) -> String {
    let length = random.amount(8) as usize;
    let mut content = String::with_capacity(length + 8);
    let mut drawn = 0;
    while content.len() < length {
        // A number is enough for twelve words.
        if drawn < 32 {
            drawn = random.next() | 1 << 63;
        }
        if !content.is_empty() {
            content.push(' ');
        }
        content.push_str(WORDS[drawn as usize % 32]);
        drawn /= 32;
    }
    content
}

/// Returns a time in the days after another.
fn soon(random: &mut RandomStream, after: u64, days: u64) -> u64 {
    after + 1 + random.below(days * DAY_MS)
}

/// Returns a time within a month after another, mostly soon after it.
fn reaction(random: &mut RandomStream, after: u64) -> u64 {
    after + 1 + random.skewed(REACTION_MINUTES, 5) * MINUTE_MS + random.below(MINUTE_MS)
}

fn skewed<'a>(random: &mut RandomStream, from: &[&'a str]) -> &'a str {
    from[random.skewed(from.len() as u64, 2) as usize]
}

fn address(random: &mut RandomStream) -> String {
    let bits = random.next();
    let part = |shift: u32| 1 + (bits >> shift) % 254;
    format!("{}.{}.{}.{}", part(0), part(8), part(16), part(24))
}

fn long(value: u64) -> Option<Value> {
    Some(Value::Long(value as i64))
}

fn text(value: &str) -> Option<Value> {
    Some(Value::string(value))
}
