//! Property keys that must have unique values. Every transaction that writes asks for them; partitions are asked again
//! only after they may have changed.
//!
//! With each version the sequencer reports the version after which no index or constraint
//! changed. An answer of the partitions at a version holds for every version since then.
//!
//! Must never: answer without a constraint that holds at the asked version.

use super::FleetApl;
use parking_lot::Mutex;
use tidegraph_apl::{At, Error};
use tidegraph_types::{Token, Version};
use tidegraph_wire::apl::request;

/// The unique keys known so far.
#[derive(Debug, Default)]
pub(super) struct Schema(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    /// No index or constraint changed after this version…
    since: Version,
    /// …up to this one.
    upto: Version,
    /// The version at which partitions answered, and their answer.
    unique: Option<(Version, Vec<(Token, Token)>)>,
}

impl Known {
    /// Returns whether the answers at two versions are equal.
    fn same(&self, a: Version, b: Version) -> bool {
        a == b || (self.since <= a.min(b) && a.max(b) <= self.upto)
    }
}

impl Schema {
    pub fn know(&self, since: Version, upto: Version) {
        let mut known = self.0.lock();
        known.since = known.since.max(since);
        known.upto = known.upto.max(upto);
    }

    fn unique(&self, at: Version) -> Option<Vec<(Token, Token)>> {
        let known = self.0.lock();
        let (answered, keys) = known.unique.as_ref()?;
        known.same(*answered, at).then(|| keys.clone())
    }

    fn answered(&self, at: Version, keys: &[(Token, Token)]) {
        let mut known = self.0.lock();
        if known.unique.as_ref().is_none_or(|(answered, _)| *answered < at) {
            known.unique = Some((at, keys.to_vec()));
        }
    }
}

impl FleetApl {
    /// Returns the keys that are unique in every partition: a constraint counts once it is complete everywhere.
    pub(super) fn known_unique_keys(&self, at: At) -> Result<Vec<(Token, Token)>, Error> {
        if let Some(keys) = self.shared.schema.unique(at.version) {
            return Ok(keys);
        }
        let mut lists = self.ask_all(at, request::UniqueKeys)?.into_iter();
        let mut keys = lists.next().unwrap_or_default();
        lists.for_each(|list| keys.retain(|pair| list.contains(pair)));
        self.shared.schema.answered(at.version, &keys);
        Ok(keys)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(token: u32) -> Vec<(Token, Token)> {
        vec![(Token(token), Token(token))]
    }

    #[test]
    fn an_answer_holds_from_the_last_change_to_the_newest_version_that_is_known() {
        let schema = Schema::default();
        assert_eq!(schema.unique(Version(5)), None);
        schema.know(Version(3), Version(10));
        schema.answered(Version(5), &keys(1));
        for (at, known) in [(2, false), (3, true), (5, true), (10, true), (11, false)] {
            assert_eq!(schema.unique(Version(at)).is_some(), known, "{at}");
        }
        schema.know(Version(3), Version(11));
        assert_eq!(schema.unique(Version(11)), Some(keys(1)));
        // A change at version 12: earlier answers are no longer valid after it, and it is
        // not known from which version on they were.
        schema.know(Version(12), Version(14));
        for at in [4, 6, 11, 12, 14] {
            assert_eq!(schema.unique(Version(at)), None, "{at}");
        }
        assert_eq!(schema.unique(Version(5)), Some(keys(1)), "what was answered at that very version");
        schema.answered(Version(13), &keys(2));
        schema.answered(Version(11), &keys(1));
        assert_eq!(schema.unique(Version(14)), Some(keys(2)), "a late answer about an older version");
        assert_eq!(schema.unique(Version(11)), None);
    }

    #[test]
    fn what_is_told_late_takes_nothing_back() {
        let schema = Schema::default();
        schema.know(Version(12), Version(14));
        schema.answered(Version(12), &keys(1));
        schema.know(Version(3), Version(10));
        assert_eq!(schema.unique(Version(14)), Some(keys(1)));
        assert_eq!(schema.unique(Version(10)), None);
    }
}
