//! Persons: where they live, what interests them, and whom they know.
//!
//! Persons form a ring that is sorted by country and city. Acquaintances, members of a forum and those who like a
//! message are drawn by their distance on the ring, so that groups and triangles occur, mostly within a country; some
//! are drawn from the whole network, and a few persons are known everywhere.

use super::{
    CITIES_PER_COUNTRY, CITY, COUNTRIES, COUNTRY, Details, Element, Elements, HAS_INTEREST, INTEREST_STREAM,
    KNOWS, KNOWS_STREAM, PERSON, PERSON_IS_LOCATED_IN, PERSON_STREAM, RandomStream, TAG, Vertex, distinct,
    organisations, tag,
};

/// A prime above every number of persons: multiplication by it permutes their numbers.
const SCRAMBLE: u64 = 2_654_435_761;

/// The places of all persons.
pub struct People {
    /// City of each person.
    cities: Vec<u32>,
    /// Persons in the order of the ring.
    ring: Vec<u32>,
    /// Position of each person on the ring.
    positions: Vec<u32>,
}

impl People {
    /// Draws the cities of `count` persons and sorts the ring.
    pub fn draw(seed: u64, count: u64) -> Self {
        let city = |person| {
            let mut random = RandomStream::new(seed, PERSON_STREAM + person);
            let country = random.skewed(COUNTRIES, 2);
            (country * CITIES_PER_COUNTRY + random.skewed(CITIES_PER_COUNTRY, 0)) as u32
        };
        let cities: Vec<u32> = (0..count).map(city).collect();
        let mut ring: Vec<u32> = (0..count as u32).collect();
        ring.sort_by_key(|&person| (cities[person as usize], person));
        let mut positions = vec![0; ring.len()];
        for (position, &person) in ring.iter().enumerate() {
            positions[person as usize] = position as u32;
        }
        Self { cities, ring, positions }
    }

    /// Returns the number of persons.
    pub fn count(&self) -> u64 {
        self.ring.len() as u64
    }

    /// Returns the country of a person.
    pub fn country(&self, person: u64) -> Vertex {
        Vertex(&COUNTRY, u64::from(self.cities[person as usize]) / CITIES_PER_COUNTRY)
    }

    /// Returns the person at a distance on the ring after another.
    fn after(&self, person: u64, distance: u64) -> u64 {
        let position = u64::from(self.positions[person as usize]) + distance;
        u64::from(self.ring[(position % self.count()) as usize])
    }

    /// Draws someone who lives close to a person, or the person.
    pub fn near(&self, random: &mut RandomStream, person: u64) -> u64 {
        let distance = random.skewed(self.count(), 3);
        let backwards = random.below(2) == 0;
        self.after(person, if backwards { self.count() - distance } else { distance })
    }

    /// Draws anyone. Some are much more likely than others.
    pub fn popular(&self, random: &mut RandomStream) -> u64 {
        random.skewed(self.count(), 5) * SCRAMBLE % self.count()
    }

    /// Generates the persons, each with its city and its interests, and with properties also with its university and
    /// its companies.
    pub fn persons<E>(
        &self,
        seed: u64,
        details: &mut Details,
        out: &mut Elements<'_, impl FnMut(Element<'_>) -> Result<(), E>>,
    ) -> Result<(), E> {
        let mut interests = vec![];
        for (number, &city) in self.cities.iter().enumerate() {
            let person = Vertex(&PERSON, number as u64);
            out.vertex(person, &details.person(number as u64, u64::from(city) / CITIES_PER_COUNTRY))?;
            out.edge(&PERSON_IS_LOCATED_IN, person, Vertex(&CITY, u64::from(city)))?;
            let mut random = RandomStream::new(seed, INTEREST_STREAM + number as u64);
            distinct(random.amount(7), &mut interests, || Some(tag(&mut random)));
            interests.iter().try_for_each(|&n| out.edge(&HAS_INTEREST, person, Vertex(&TAG, n)))?;
            organisations::of_person(person, u64::from(city), details, out)?;
        }
        Ok(())
    }

    /// Generates acquaintances. Each pair of persons knows each other at most once: only the one from whom the way on
    /// the ring to the other is shorter can draw the other.
    pub fn acquaintances<E>(
        &self,
        seed: u64,
        details: &mut Details,
        out: &mut Elements<'_, impl FnMut(Element<'_>) -> Result<(), E>>,
    ) -> Result<(), E> {
        let half = self.count().saturating_sub(1) / 2;
        if half == 0 {
            return Ok(());
        }
        let mut known = vec![];
        for person in 0..self.count() {
            let mut random = RandomStream::new(seed, KNOWS_STREAM + person);
            distinct(random.amount(7), &mut known, || {
                if random.below(2) == 0 {
                    return Some(self.after(person, 1 + random.skewed(half, 3)));
                }
                let other = self.popular(&mut random);
                (1..=half).contains(&self.distance(person, other)).then_some(other)
            });
            details.begin_acquaintances(person);
            for &other in &known {
                let values = details.acquaintance(person, other);
                out.edge_with(&KNOWS, Vertex(&PERSON, person), Vertex(&PERSON, other), &values)?;
            }
        }
        Ok(())
    }

    /// Returns the distance on the ring from a person forwards to another.
    fn distance(&self, person: u64, other: u64) -> u64 {
        let position = |person: u64| u64::from(self.positions[person as usize]);
        (position(other) + self.count() - position(person)) % self.count()
    }
}
