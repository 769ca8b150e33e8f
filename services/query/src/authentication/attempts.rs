//! Limits of wrong passwords, by address and by user.
//!
//! Each attempt is counted before its password is looked at, and given back if the password was right. So guesses that
//! run at the same time are limited as well.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How many wrong passwords may follow each other at once.
const BURST: u32 = 20;
/// How long it takes until one more is allowed.
const EACH: Duration = Duration::from_secs(3);
/// Most addresses and users that are remembered.
const MOST_KEYS: usize = 10_000;

/// Whose wrong passwords are counted.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Key {
    /// Those from an address; of IPv6, from a network of one customer.
    Address(u128),
    /// Those for a user, by a digest of the name.
    User([u8; 32]),
}

impl Key {
    pub(super) fn of_address(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V4(address) => Self::Address(u128::from(u32::from(address))),
            // The last 64 bits are the customer's to choose.
            IpAddr::V6(address) => Self::Address(u128::from(address) >> 64 << 64),
        }
    }
}

/// The wrong passwords of late. Each key has the time at which all of its attempts are forgotten: it moves by [`EACH`]
/// with each of them (the generic cell rate algorithm).
#[derive(Debug, Default)]
pub(super) struct Attempts(Mutex<BTreeMap<Key, Duration>>);

impl Attempts {
    fn all(&self) -> MutexGuard<'_, BTreeMap<Key, Duration>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts an attempt of all keys.
    ///
    /// # Errors
    ///
    /// How long to wait, if one of them has had too many. None is counted then.
    pub(super) fn take(&self, keys: &[Key], now: Duration) -> Result<(), Duration> {
        let mut all = self.all();
        let most = EACH * BURST;
        let wait = keys.iter().filter_map(|key| {
            let forgotten = all.get(key)?.saturating_sub(now);
            (forgotten + EACH).checked_sub(most).filter(|wait| !wait.is_zero())
        });
        if let Some(wait) = wait.max() {
            return Err(wait);
        }
        for key in keys {
            if !all.contains_key(key) && all.len() >= MOST_KEYS {
                make_room(&mut all, now);
            }
            let forgotten = all.entry(*key).or_default();
            *forgotten = (*forgotten).max(now) + EACH;
        }
        Ok(())
    }

    /// Gives an attempt back: its password was right.
    pub(super) fn give_back(&self, keys: &[Key]) {
        let mut all = self.all();
        for key in keys {
            if let Some(forgotten) = all.get_mut(key) {
                *forgotten = forgotten.saturating_sub(EACH);
            }
        }
    }
}

/// Drops what is forgotten, or else the key with the fewest attempts.
fn make_room(all: &mut BTreeMap<Key, Duration>, now: Duration) {
    all.retain(|_, forgotten| *forgotten > now);
    if all.len() >= MOST_KEYS
        && let Some(least) = all.iter().min_by_key(|(_, forgotten)| **forgotten).map(|(key, _)| *key)
    {
        all.remove(&least);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: u32) -> Key {
        Key::of_address(IpAddr::from(number.to_be_bytes()))
    }

    #[test]
    fn after_a_burst_attempts_come_one_by_one() {
        let (attempts, now) = (Attempts::default(), Duration::from_secs(100));
        for _ in 0..BURST {
            attempts.take(&[key(1)], now).unwrap();
        }
        let wait = attempts.take(&[key(1)], now).unwrap_err();
        assert_eq!(wait, EACH);
        attempts.take(&[key(2)], now).unwrap();
        // Neither of the two is counted if one of them may not.
        assert!(attempts.take(&[key(1), key(3)], now).is_err());
        assert_eq!(attempts.all().len(), 2);
        attempts.take(&[key(1)], now + EACH).unwrap();
        assert!(attempts.take(&[key(1)], now + EACH).is_err());
        attempts.give_back(&[key(1)]);
        attempts.take(&[key(1)], now + EACH).unwrap();
    }

    #[test]
    fn memory_has_a_bound_and_the_worst_are_remembered() {
        let (attempts, now) = (Attempts::default(), Duration::from_secs(1));
        for _ in 0..BURST {
            attempts.take(&[key(0)], now).unwrap();
        }
        for number in 1..=MOST_KEYS as u32 + 200 {
            attempts.take(&[key(number)], now).unwrap();
        }
        assert_eq!(attempts.all().len(), MOST_KEYS);
        assert!(attempts.take(&[key(0)], now).is_err());
        attempts.take(&[key(7)], now + EACH * BURST * 2).unwrap();
    }

    #[test]
    fn a_customer_of_ipv6_is_one_address() {
        let of = |text: &str| Key::of_address(text.parse().unwrap());
        assert_eq!(of("2001:db8::1"), of("2001:db8::ffff:1"));
        assert_ne!(of("2001:db8::1"), of("2001:db8:0:1::1"));
        assert_eq!(of("::ffff:10.0.0.1"), of("10.0.0.1"));
    }
}
