//! Proofs that were right a moment ago, so that what is slow is not done again for each request.

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tidegraph_platform::{Random, RealRandom};

/// How long a proof is remembered at most.
pub(super) const REMEMBERED: Duration = Duration::from_secs(60);
/// Most proofs that are remembered.
pub(super) const MOST_REMEMBERED: usize = 4_096;

pub(super) type Digest = [u8; 32];

/// Digests of right proofs under a key of this process, each with what it proved.
pub(super) struct Remembered<T> {
    key: [u8; 32],
    /// What was proven, and when it is forgotten.
    all: Mutex<BTreeMap<Digest, (T, Duration)>>,
}

impl<T: Clone> Remembered<T> {
    pub(super) fn new() -> Self {
        let mut key = [0; 32];
        RealRandom.fill(&mut key);
        Self { key, all: Mutex::default() }
    }

    /// Returns a digest of texts under the key of this process.
    pub(super) fn digest(&self, texts: &[&str]) -> Digest {
        // A key of any length will do, so there is no error.
        let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(&self.key) else { return [0; 32] };
        for text in texts {
            mac.update(&(text.len() as u64).to_le_bytes());
            mac.update(text.as_bytes());
        }
        mac.finalize().into_bytes().into()
    }

    fn all(&self) -> MutexGuard<'_, BTreeMap<Digest, (T, Duration)>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns what a proof proved, if it is remembered.
    pub(super) fn get(&self, digest: &Digest, now: Duration) -> Option<T> {
        self.all().get(digest).filter(|(_, until)| *until > now).map(|(proven, _)| proven.clone())
    }

    /// Remembers a right proof for a time. If there are too many, the one that would be forgotten first makes room.
    pub(super) fn put(&self, digest: Digest, proven: T, now: Duration, time: Duration) {
        let mut all = self.all();
        if all.len() >= MOST_REMEMBERED {
            all.retain(|_, (_, until)| *until > now);
        }
        if all.len() >= MOST_REMEMBERED {
            let oldest = all.iter().min_by_key(|(_, (_, until))| *until).map(|(digest, _)| *digest);
            oldest.map(|oldest| all.remove(&oldest));
        }
        all.insert(digest, (proven, now + time.min(REMEMBERED)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proofs_have_a_bound_and_a_time() {
        let (remembered, now) = (Remembered::new(), Duration::from_secs(5));
        for number in 0..=MOST_REMEMBERED as u64 {
            let digest = remembered.digest(&[&number.to_string()]);
            remembered.put(digest, number, now, Duration::from_secs(number + 1));
        }
        assert_eq!(remembered.all().len(), MOST_REMEMBERED);
        let get = |number: u64, now| remembered.get(&remembered.digest(&[&number.to_string()]), now);
        // The one that would be forgotten first made room.
        assert_eq!([get(0, now), get(1, now)], [None, Some(1)]);
        assert_eq!(get(1, now + Duration::from_secs(2)), None);
        assert_eq!(get(4_000, now + REMEMBERED), None);
        assert_ne!(remembered.digest(&["ab", "c"]), remembered.digest(&["a", "bc"]));
    }
}
