//! The identity graph: golden entities (GE), each the root of a small tree of signals.
//!
//! Means for each GE: 5 partners (binomial 10 × ½), 14.8 cookies (2.96 of each partner), 3 own devices and 5 of
//! partners, 2 own IP addresses and 5 of partners, 1.5 accounts, 1 household: 38.3 vertices, 37.3 edges, 148.2 property
//! values. Every vertex but the GE has exactly one edge to it.

use super::{Element, RandomStream, Table};
use crate::convert::Type;
use std::fmt::Write;
use tidegraph_types::Value;

/// Types of partners.
pub const PARTNER_TYPES: [&str; 17] = [
    "TDID",
    "Tapad",
    "UID2",
    "Lotame",
    "RampID",
    "ID5",
    "Epsilon",
    "Qualtrics",
    "DataAxle",
    "Moneris",
    "CriticalMention",
    "Clutch",
    "Datarade",
    "Adobe",
    "Tableau",
    "CleverTab",
    "Marketo",
];

macro_rules! table {
    ($name:ident, $file:literal, $label:literal, $edges:literal, [$($key:literal $type:ident),*]) => {
        #[doc = concat!("Table of ", $label, ".")]
        pub static $name: Table = Table {
            name: $file,
            label: $label,
            edges: $edges,
            keys: &[$(($key, Type::$type)),*],
            lists: &[],
        };
    };
}

table!(GOLDEN_ENTITY, "golden_entity", "GoldenEntity", false, [
    "first_name" String, "last_name" String, "email_hash" String, "date_of_birth_day" Int,
    "date_of_birth_month" Int, "date_of_birth_year" Int, "demonym" String, "educationalAttainment" String,
    "maritalStatus" String, "race" String, "sex" String
]);
table!(PARTNER, "partner", "Partner", false, ["type" String, "last_updated_ts" Long]);
table!(COOKIE, "cookie", "Cookie", false, [
    "last_updated_ts" Long, "expiration_ts" Long, "size" Int, "domain_hash" String
]);
table!(DEVICE, "device", "Device", false, [
    "last_updated_ts" Long, "expiration_ts" Long, "os" String, "model" String
]);
table!(IP_ADDRESS, "ip_address", "IpAddress", false, [
    "last_updated_ts" Long, "expiration_ts" Long, "address" String
]);
table!(ACCOUNT, "account", "Account", false, [
    "last_updated_ts" Long, "expiration_ts" Long, "provider" String, "account_hash" String
]);
table!(HOUSEHOLD, "household", "Household", false, [
    "last_updated_ts" Long, "size" Int, "postal_code" String, "income_band" Int
]);
table!(HAS_PARTNER, "has_partner", "HAS_PARTNER", true, ["score" Double]);
table!(HAS_DEVICE, "has_device", "HAS_DEVICE", true, []);
table!(HAS_IP_ADDR, "has_ip_addr", "HAS_IP_ADDR", true, []);
table!(HAS_ACCOUNT, "has_account", "HAS_ACCOUNT", true, []);
table!(HAS_HOUSEHOLD, "has_household", "HAS_HOUSEHOLD", true, []);
table!(PROVIDED_COOKIE, "provided_cookie", "PROVIDED_COOKIE", true, []);
table!(PROVIDED_DEVICE, "provided_device", "PROVIDED_DEVICE", true, []);
table!(PROVIDED_IP_ADDR, "provided_ip_addr", "PROVIDED_IP_ADDR", true, []);

/// All tables.
pub static TABLES: &[&Table] = &[
    &GOLDEN_ENTITY,
    &PARTNER,
    &COOKIE,
    &DEVICE,
    &IP_ADDRESS,
    &ACCOUNT,
    &HOUSEHOLD,
    &HAS_PARTNER,
    &HAS_DEVICE,
    &HAS_IP_ADDR,
    &HAS_ACCOUNT,
    &HAS_HOUSEHOLD,
    &PROVIDED_COOKIE,
    &PROVIDED_DEVICE,
    &PROVIDED_IP_ADDR,
];

const FIRST_NAMES: [&str; 32] = [
    "Ada", "Alan", "Anita", "Barbara", "Bjarne", "Carol", "Claude", "Dennis", "Donald", "Edsger", "Elena",
    "Frances", "Grace", "Hedy", "Ivan", "Jean", "John", "Karen", "Ken", "Leslie", "Linus", "Lynn",
    "Margaret", "Maurice", "Niklaus", "Peter", "Radia", "Robin", "Shafi", "Sophie", "Tony", "Zoë",
];
const LAST_NAMES: [&str; 32] = [
    "Allen",
    "Bartik",
    "Boole",
    "Chen",
    "Clarke",
    "Codd",
    "Conway",
    "Cray",
    "Dijkstra",
    "Engelbart",
    "Estrin",
    "Goldberg",
    "Gray",
    "Hamilton",
    "Hoare",
    "Holberton",
    "Hopper",
    "Kay",
    "Kilburn",
    "Knuth",
    "Lamarr",
    "Lamport",
    "Liskov",
    "Lovelace",
    "McCarthy",
    "Naur",
    "O'Neil",
    "Perlman",
    "Ritchie",
    "Shannon",
    "Turing",
    "Wilkes",
];
const DEMONYMS: [&str; 12] = [
    "American",
    "Canadian",
    "British",
    "German",
    "French",
    "Indian",
    "Brazilian",
    "Japanese",
    "Nigerian",
    "Mexican",
    "Polish",
    "Turkish",
];
const EDUCATION: [&str; 6] = ["none", "high school", "college", "bachelor", "master", "doctorate"];
const MARITAL: [&str; 4] = ["single", "married", "divorced", "widowed"];
const RACES: [&str; 6] = ["asian", "black", "latino", "native", "white", "other"];
const SEXES: [&str; 2] = ["F", "M"];
const SYSTEMS: [&str; 5] = ["android", "ios", "linux", "macos", "windows"];
const PROVIDERS: [&str; 6] = ["bank", "mail", "shop", "social", "telecom", "video"];

/// 2024-01-01 in milliseconds since 1970; all timestamps are in the two years after it.
const START_MS: u64 = 1_704_067_200_000;
const TWO_YEARS_MS: u64 = 63_072_000_000;

/// Returns the id of a golden entity.
#[must_use]
pub fn ge_id(index: u64) -> String {
    format!("ge-{index}")
}

fn text(value: &str) -> Option<Value> {
    Some(Value::string(value))
}

fn word(random: &mut RandomStream, from: &[&str]) -> Option<Value> {
    random.pick(from).map(Value::string)
}

fn int(random: &mut RandomStream, low: i32, count: u64) -> Option<Value> {
    Some(Value::Int(low + random.below(count) as i32))
}

fn hash(random: &mut RandomStream) -> Option<Value> {
    Some(Value::string(format!("{:016x}", random.next())))
}

/// Returns `last_updated_ts` and an expiry up to a year after it.
fn times(random: &mut RandomStream) -> [Option<Value>; 2] {
    let updated = START_MS + random.below(TWO_YEARS_MS);
    let expires = updated + random.below(TWO_YEARS_MS / 2);
    [updated, expires].map(|t| Some(Value::Long(t as i64)))
}

/// Generates the tree of one golden entity.
pub(crate) fn entity<E>(
    seed: u64,
    index: u64,
    element: &mut impl FnMut(Element<'_>) -> Result<(), E>,
) -> Result<(), E> {
    let mut random = RandomStream::new(seed, index);
    let ge = ge_id(index);
    let values = [
        word(&mut random, &FIRST_NAMES),
        word(&mut random, &LAST_NAMES),
        hash(&mut random),
        int(&mut random, 1, 28),
        int(&mut random, 1, 12),
        int(&mut random, 1930, 80),
        word(&mut random, &DEMONYMS),
        word(&mut random, &EDUCATION),
        word(&mut random, &MARITAL),
        word(&mut random, &RACES),
        word(&mut random, &SEXES),
    ];
    element(Element::Vertex { table: &GOLDEN_ENTITY, id: &ge, values: &values })?;
    let mut tree = Tree { index, made: [0; 6], id: String::new(), edge: String::new(), edges: 0, element };
    for _ in 0..random.binomial(6, 500) {
        tree.device(&mut random, &HAS_DEVICE, &ge)?;
    }
    for _ in 0..random.binomial(4, 500) {
        tree.address(&mut random, &HAS_IP_ADDR, &ge)?;
    }
    for _ in 0..random.binomial(3, 500) {
        let [updated, expires] = times(&mut random);
        let values = [updated, expires, word(&mut random, &PROVIDERS), hash(&mut random)];
        tree.leaf(&ACCOUNT, "acc", 3, &values, &HAS_ACCOUNT, &ge, &[])?;
    }
    let [updated, _] = times(&mut random);
    let code = format!("{:05}", random.below(100_000));
    let values = [updated, int(&mut random, 1, 6), text(&code), int(&mut random, 1, 10)];
    tree.leaf(&HOUSEHOLD, "hh", 4, &values, &HAS_HOUSEHOLD, &ge, &[])?;
    // No entity has the same partner twice.
    let mut types: [usize; 17] = std::array::from_fn(|i| i);
    for n in 0..random.binomial(10, 500) as usize {
        let other = n + random.below((PARTNER_TYPES.len() - n) as u64) as usize;
        types.swap(n, other);
        let [updated, _] = times(&mut random);
        let values = [text(PARTNER_TYPES[types[n]]), updated];
        let score = [Some(Value::Double(random.below(1000) as f64 / 1000.0))];
        let partner = tree.leaf(&PARTNER, "par", 5, &values, &HAS_PARTNER, &ge, &score)?;
        // 37 of 75 is 0.4933: 2.96 cookies from six tosses.
        for _ in 0..(0..6).filter(|_| random.below(75) < 37).count() {
            let [updated, expires] = times(&mut random);
            let values = [updated, expires, int(&mut random, 16, 4000), hash(&mut random)];
            tree.leaf(&COOKIE, "ck", 0, &values, &PROVIDED_COOKIE, &partner, &[])?;
        }
        for _ in 0..random.binomial(2, 500) {
            tree.device(&mut random, &PROVIDED_DEVICE, &partner)?;
        }
        for _ in 0..random.binomial(2, 500) {
            tree.address(&mut random, &PROVIDED_IP_ADDR, &partner)?;
        }
    }
    Ok(())
}

/// State of the generation of one tree.
struct Tree<'a, F> {
    index: u64,
    /// Number of elements of each kind, for ids.
    made: [u64; 6],
    edges: u64,
    id: String,
    edge: String,
    element: &'a mut F,
}

impl<E, F: FnMut(Element<'_>) -> Result<(), E>> Tree<'_, F> {
    fn leaf(
        &mut self,
        table: &'static Table,
        prefix: &str,
        kind: usize,
        values: &[Option<Value>],
        edge: &'static Table,
        from: &str,
        edge_values: &[Option<Value>],
    ) -> Result<String, E> {
        self.id.clear();
        self.edge.clear();
        // Writing to a string cannot fail.
        let _ = write!(self.id, "{prefix}-{}-{}", self.index, self.made[kind]);
        let _ = write!(self.edge, "e-{}-{}", self.index, self.edges);
        self.made[kind] += 1;
        self.edges += 1;
        (self.element)(Element::Vertex { table, id: &self.id, values })?;
        let (id, to) = (&self.edge, &self.id);
        (self.element)(Element::Edge { table: edge, id, from, to, values: edge_values })?;
        Ok(self.id.clone())
    }

    fn device(&mut self, random: &mut RandomStream, edge: &'static Table, from: &str) -> Result<(), E> {
        let [updated, expires] = times(random);
        let model = format!("model-{}", random.below(400));
        let values = [updated, expires, word(random, &SYSTEMS), text(&model)];
        self.leaf(&DEVICE, "dev", 1, &values, edge, from, &[]).map(|_| ())
    }

    fn address(&mut self, random: &mut RandomStream, edge: &'static Table, from: &str) -> Result<(), E> {
        let [updated, expires] = times(random);
        let [a, b, c, d, ..] = random.next().to_le_bytes();
        let values = [updated, expires, text(&format!("{a}.{b}.{c}.{d}"))];
        self.leaf(&IP_ADDRESS, "ip", 2, &values, edge, from, &[]).map(|_| ())
    }
}
