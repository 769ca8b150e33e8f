//! Versions of formats: what a release reads and writes of each format on disk and between processes.
//!
//! A release reads what it writes and what the release before it wrote, and writes what the release before it reads
//! (`docs/upgrade.md`). So the processes of two successive releases can be in one fleet, and read each other's files.

use std::fmt;

/// The versions of one format: a release reads all from `oldest` to `newest`, and writes `newest`.
///
/// ```
/// use tidegraph_types::Formats;
///
/// let checkpoints = Formats::new(2, 3);
/// assert!(checkpoints.check(2).is_ok());
/// let error = checkpoints.check(4).unwrap_err().to_string();
/// assert!(error.starts_with("it has format 4, this release reads 2 to 3"));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Formats {
    /// The oldest version that is read.
    pub oldest: u32,
    /// The newest version that is read, and the one that is written.
    pub newest: u32,
}

/// A version of a format that this release does not read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UnknownFormat {
    /// The version that was found.
    pub found: u32,
    /// The versions that this release reads.
    pub known: Formats,
}

impl Formats {
    /// The versions from `oldest` to `newest`.
    #[must_use]
    pub const fn new(oldest: u32, newest: u32) -> Self {
        Self { oldest, newest }
    }

    /// A single version.
    #[must_use]
    pub const fn only(version: u32) -> Self {
        Self::new(version, version)
    }

    /// Whether a version is read.
    #[must_use]
    pub const fn reads(self, version: u32) -> bool {
        self.oldest <= version && version <= self.newest
    }

    /// Checks that a version is read.
    ///
    /// # Errors
    /// [`UnknownFormat`], which says what to do, if it is not.
    pub const fn check(self, found: u32) -> Result<(), UnknownFormat> {
        if self.reads(found) { Ok(()) } else { Err(UnknownFormat { found, known: self }) }
    }

    /// Returns the newest version that both sides have, or `None` if they have none in common.
    #[must_use]
    pub fn common(self, other: Self) -> Option<u32> {
        let newest = self.newest.min(other.newest);
        (newest >= self.oldest.max(other.oldest)).then_some(newest)
    }
}

impl UnknownFormat {
    /// What a person does about it.
    #[must_use]
    pub const fn advice(self) -> &'static str {
        if self.found > self.known.newest {
            "a newer release wrote it; start that release, or a later one"
        } else {
            "a release before the last one wrote it; upgrade one release after the other, so that each writes it anew"
        }
    }
}

/// Writes `2`, or `2 to 3`.
impl fmt::Display for Formats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.oldest == self.newest {
            true => write!(f, "{}", self.newest),
            false => write!(f, "{} to {}", self.oldest, self.newest),
        }
    }
}

impl fmt::Display for UnknownFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { found, known } = self;
        write!(f, "it has format {found}, this release reads {known}: {}", self.advice())
    }
}

impl std::error::Error for UnknownFormat {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_sides_use_the_newest_version_that_both_have() {
        for (ours, theirs, common) in [
            (Formats::only(2), Formats::only(2), Some(2)),
            (Formats::new(2, 3), Formats::only(2), Some(2)),
            (Formats::new(2, 3), Formats::new(3, 4), Some(3)),
            (Formats::new(2, 3), Formats::new(2, 9), Some(3)),
            (Formats::new(3, 4), Formats::only(2), None),
            (Formats::only(2), Formats::new(3, 4), None),
            // A range that a peer made up.
            (Formats::only(2), Formats::new(9, 1), None),
        ] {
            assert_eq!(ours.common(theirs), common, "{ours} and {theirs}");
            assert_eq!(theirs.common(ours), common, "{theirs} and {ours}");
        }
    }

    #[test]
    fn a_refusal_names_both_sides_and_the_way_out() {
        let known = Formats::new(2, 3);
        assert_eq!((known.check(2), known.check(3)), (Ok(()), Ok(())));
        let newer = known.check(4).unwrap_err().to_string();
        assert!(newer.contains("has format 4") && newer.contains("reads 2 to 3"), "{newer}");
        assert!(newer.contains("start that release"), "{newer}");
        let older = known.check(1).unwrap_err().to_string();
        assert!(older.contains("has format 1") && older.contains("one release after the other"), "{older}");
    }
}
