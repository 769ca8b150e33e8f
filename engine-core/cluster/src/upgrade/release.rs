//! Releases, and which of them may be in one fleet.

use crate::Error;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// A published version of the software, such as `0.2.1`. Ordered as versions are.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Release {
    /// Major version.
    pub major: u32,
    /// Minor version.
    pub minor: u32,
    /// Patch. The patches of a line read and write the same formats.
    pub patch: u32,
}

/// A major and a minor version: the releases that differ in their patch only.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Line {
    /// Major version.
    pub major: u32,
    /// Minor version.
    pub minor: u32,
}

/// A release, and the line that it upgrades from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Lineage {
    /// The release.
    pub release: Release,
    /// The line before it; `None` for the first line, which follows builds that state no release.
    pub follows: Option<Line>,
}

impl Release {
    /// The release of this build.
    pub const THIS: Self = Self {
        major: digits(env!("CARGO_PKG_VERSION_MAJOR")),
        minor: digits(env!("CARGO_PKG_VERSION_MINOR")),
        patch: digits(env!("CARGO_PKG_VERSION_PATCH")),
    };

    /// The line of the release.
    #[must_use]
    pub const fn line(self) -> Line {
        Line { major: self.major, minor: self.minor }
    }
}

impl Lineage {
    /// The release of this build. `contracts/releases.json` lists all lines; a test compares both.
    pub const THIS: Self = Self { release: Release::THIS, follows: None };

    /// Checks that a process of `other` may be upgraded to this release: that it is of the same line and not newer, or
    /// of the line before. `other` is `None` for a build that states no release.
    ///
    /// # Errors
    /// A text that names both, and says what to do, if it may not.
    pub fn check_from(&self, other: Option<Release>) -> Result<(), String> {
        let Self { release, follows } = self;
        let before = follows.map_or_else(|| "the builds before it".into(), |line| line.to_string());
        let Some(other) = other else {
            return match follows {
                None => Ok(()),
                Some(_) => {
                    let reason = "a build that states no release";
                    Err(format!("{reason} cannot be upgraded to {release} at once: go to {before} first"))
                }
            };
        };
        if other > *release {
            return Err(format!("{release} is older than {other}: a fleet is never downgraded"));
        }
        if other.line() == release.line() || Some(other.line()) == *follows {
            return Ok(());
        }
        Err(format!("{release} follows {before}, not {other}: upgrade to {before} first"))
    }
}

impl FromStr for Release {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let parsed = || {
            // No signs, spaces or leading zeros, as a version has none.
            let number = |part: &str| part.parse::<u32>().ok().filter(|number| number.to_string() == part);
            let mut parts = text.split('.').map(number);
            let (major, minor, patch) = (parts.next()??, parts.next()??, parts.next()??);
            parts.next().is_none().then_some(Self { major, minor, patch })
        };
        parsed().ok_or_else(|| {
            let reason = "has to be a version of three numbers, such as 0.2.1";
            Error::Invalid { what: "release", found: text.into(), reason }
        })
    }
}

impl TryFrom<String> for Release {
    type Error = Error;

    fn try_from(text: String) -> Result<Self, Error> {
        text.parse()
    }
}

impl From<Release> for String {
    fn from(release: Release) -> Self {
        release.to_string()
    }
}

impl fmt::Display for Release {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// Reads a number that cargo wrote.
const fn digits(text: &str) -> u32 {
    let (bytes, mut at, mut value) = (text.as_bytes(), 0, 0);
    while at < bytes.len() {
        value = value * 10 + (bytes[at] - b'0') as u32;
        at += 1;
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    fn release(text: &str) -> Release {
        text.parse().unwrap()
    }

    #[test]
    fn a_release_has_three_numbers() {
        assert_eq!(release("0.12.3"), Release { major: 0, minor: 12, patch: 3 });
        assert_eq!(Release::THIS.to_string(), env!("CARGO_PKG_VERSION"));
        for bad in ["", "1", "1.2", "1.2.3.4", "1.2.x", "+1.2.3", "01.2.3", "1.2.3 ", "1.2.4294967296"] {
            let error = bad.parse::<Release>().unwrap_err().to_string();
            assert!(error.contains("three numbers") && error.contains(bad), "{error}");
        }
        assert!(release("0.9.9") < release("0.10.0") && release("0.10.0") < release("1.0.0"));
    }

    #[test]
    fn a_release_follows_its_line_and_the_one_before() {
        let follows = Some(Line { major: 1, minor: 9 });
        let next = Lineage { release: release("2.0.1"), follows };
        for good in ["1.9.0", "1.9.7", "2.0.0", "2.0.1"] {
            next.check_from(Some(release(good))).unwrap();
        }
        let error = |from| next.check_from(from).unwrap_err();
        assert_eq!(error(Some(release("1.8.3"))), "2.0.1 follows 1.9, not 1.8.3: upgrade to 1.9 first");
        assert_eq!(error(Some(release("2.0.2"))), "2.0.1 is older than 2.0.2: a fleet is never downgraded");
        assert!(error(Some(release("2.1.0"))).contains("never downgraded"));
        assert!(error(None).contains("go to 1.9 first"), "{}", error(None));
        Lineage { release: release("0.1.0"), follows: None }.check_from(None).unwrap();
    }
}
