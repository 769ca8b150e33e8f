//! Versions of Gremlin, and what differs between them ([ADR 0032]).
//!
//! Each difference is a method that names it. The compiler asks [`Version`] where the difference is decided, and nothing
//! else in the front end compares versions.
//!
//! [ADR 0032]: https://github.com/tidegraph/tidegraph/blob/main/docs/adr/0032-a-request-names-its-version-of-gremlin.md

use std::fmt;
use std::str::FromStr;
use tidegraph_types::GremlinSettings;

/// A version of TinkerPop, whose Gremlin a request speaks. Versions before 3.7 count as 3.7, and those after 3.8 as 3.8.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum Version {
    /// TinkerPop 3.7, which Neptune's engine 1.4 speaks.
    V3_7,
    /// TinkerPop 3.8.
    #[default]
    V3_8,
}

impl Version {
    /// Returns the version that the name of a language has: `gremlin-lang-3.7`. `None`: the name has none, as in
    /// `gremlin-lang`.
    ///
    /// # Errors
    /// [`UnknownLanguage`] if Tidegraph does not speak the language.
    pub fn of_language(name: &str) -> Result<Option<Self>, UnknownLanguage> {
        let unknown = || UnknownLanguage(name.to_owned());
        let rest = ["gremlin-lang", "gremlin-groovy"].iter().find_map(|known| name.strip_prefix(known));
        match rest.ok_or_else(unknown)? {
            "" => Ok(None),
            rest => {
                let version = rest.strip_prefix('-').ok_or_else(unknown)?;
                version.parse().map(Some).map_err(|_| unknown())
            }
        }
    }

    /// Returns the version of TinkerPop's driver that sends a user agent such as
    /// `NotAvailable Gremlin-Python.3.7.3 3.12.1 Linux.6.1 x86_64`. `None`: it is none of TinkerPop's drivers.
    #[must_use]
    pub fn of_user_agent(agent: &str) -> Option<Self> {
        agent.split_whitespace().find_map(|word| {
            let (_, version) = word.strip_prefix("Gremlin-")?.split_once('.')?;
            Self::of_release(version)
        })
    }

    /// Reads `major.minor` and what follows.
    fn of_release(text: &str) -> Option<Self> {
        let mut numbers = text.split('.').map(|part| part.parse::<u32>().ok());
        let release = (numbers.next()??, numbers.next()??);
        Some(if release < (3, 8) { Self::V3_7 } else { Self::V3_8 })
    }
}

impl FromStr for Version {
    type Err = UnknownVersion;

    fn from_str(text: &str) -> Result<Self, UnknownVersion> {
        match text {
            "3.7" => Ok(Self::V3_7),
            "3.8" => Ok(Self::V3_8),
            _ => Err(UnknownVersion(text.to_owned())),
        }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::V3_7 => "3.7",
            Self::V3_8 => "3.8",
        })
    }
}

/// What a text of Gremlin means: the version that the request speaks, and the settings of its graph.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Dialect {
    /// The version of Gremlin.
    pub version: Version,
    /// The types of ids, and the default cardinality.
    pub settings: GremlinSettings,
}

impl From<Version> for Dialect {
    /// Returns the dialect of a version on a graph that was made without settings.
    fn from(version: Version) -> Self {
        Self { version, settings: GremlinSettings::default() }
    }
}

/// A version that Tidegraph does not know.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UnknownVersion(String);

impl fmt::Display for UnknownVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Gremlin {:?} is not supported: use 3.7 or 3.8", self.0)
    }
}

impl std::error::Error for UnknownVersion {}

/// A language that Tidegraph does not speak.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UnknownLanguage(String);

impl fmt::Display for UnknownLanguage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "language {:?} is not supported: use gremlin-lang, gremlin-lang-3.7 or gremlin-lang-3.8",
            self.0
        )
    }
}

impl std::error::Error for UnknownLanguage {}

// Differences.

impl Version {
    /// `limit(local, 1)` of a list is its item, and not a list of one item. So are `range(local, …)` and `tail(local)`.
    pub(crate) fn unfolds_single_parts(self) -> bool {
        self == Self::V3_7
    }

    /// `choose(…).option(…)` drops a traverser for which no option matches, instead of passing it on.
    pub(crate) fn choose_drops_unmatched(self) -> bool {
        self == Self::V3_7
    }

    /// `dateDiff` counts seconds, and not milliseconds.
    pub(crate) fn date_differences_are_seconds(self) -> bool {
        self == Self::V3_7
    }

    /// `split('')` keeps the string whole, instead of taking its characters apart.
    pub(crate) fn keeps_strings_split_by_nothing(self) -> bool {
        self == Self::V3_7
    }

    /// `sum` of integers is a long, and not of the widest type among them that holds it.
    pub(crate) fn sums_are_long(self) -> bool {
        self == Self::V3_7
    }

    /// In the second `by` of a `group`, a barrier such as `order` without objects drops the group also before `fold` or
    /// `count`.
    pub(crate) fn barriers_drop_empty_groups(self) -> bool {
        self == Self::V3_7
    }

    /// `inject` and `cap` may stand in the body of a `repeat`.
    pub(crate) fn bodies_may_inject(self) -> bool {
        self == Self::V3_7
    }

    /// `option(onCreate)` may contradict the map of a merge that finds an element.
    pub(crate) fn contradictions_wait_for_creation(self) -> bool {
        self == Self::V3_7
    }

    /// `from` and `to` of `addE` take the id of a vertex where they take a vertex.
    pub(crate) fn ends_may_be_ids(self) -> bool {
        self == Self::V3_8
    }

    /// `asString` passes a null on, instead of refusing it.
    pub(crate) fn null_has_text(self) -> bool {
        self == Self::V3_7
    }

    /// A comparison without a result drops its traverser also under `not`, instead of counting as false.
    pub(crate) fn comparisons_have_three_results(self) -> bool {
        self == Self::V3_7
    }

    /// `has(key, traversal)` tests whether the traversal has a result for the value of the property.
    pub(crate) fn has_takes_traversals(self) -> bool {
        self == Self::V3_7
    }

    /// The keys `id`, `label`, `from` … of a map stand for the constants of these names also without parentheses.
    pub(crate) fn bare_keys_are_constants(self) -> bool {
        self == Self::V3_7
    }

    /// Steps with one value take several `by()`, of which the last one counts.
    /// `valueMap` and `propertyMap` apply them in turn.
    pub(crate) fn last_by_counts(self) -> bool {
        self == Self::V3_7
    }

    /// `group`, `groupCount`, `tree` and `subgraph` with a key add traverser by traverser, and not the values of all
    /// traversers before the first one goes on.
    pub(crate) fn keyed_steps_are_lazy(self) -> bool {
        self == Self::V3_7
    }

    /// The children of `option()` of a `mergeV` in mid-traversal start from the incoming traverser, and not from the element.
    pub(crate) fn merge_options_see_the_incoming(self) -> bool {
        self == Self::V3_7
    }
}

#[cfg(test)]
mod tests {
    use super::Version;

    #[test]
    fn drivers_and_languages_name_versions() {
        let agents = [
            ("NotAvailable Gremlin-Python.3.7.3 3.12.1 Linux.6.1 x86_64", Some(Version::V3_7)),
            ("myapp Gremlin-Java.3.8.1 17.0.2 Mac_OS_X.13 aarch64", Some(Version::V3_8)),
            ("NotAvailable Gremlin-Javascript.3.6.0 v18 Linux x64", Some(Version::V3_7)),
            ("NotAvailable Gremlin-Go.4.0.0 go1.25 linux amd64", Some(Version::V3_8)),
            ("NotAvailable Gremlin-Go.3.8.0-SNAPSHOT go1.25 linux amd64", Some(Version::V3_8)),
            ("curl/8.5.0", None),
            ("Gremlin-Go.x.y", None),
            ("Gremlin-3", None),
            ("", None),
        ];
        for (agent, version) in agents {
            assert_eq!(Version::of_user_agent(agent), version, "{agent}");
        }
        let languages = [
            ("gremlin-lang", Ok(None)),
            ("gremlin-groovy", Ok(None)),
            ("gremlin-lang-3.7", Ok(Some(Version::V3_7))),
            ("gremlin-groovy-3.8", Ok(Some(Version::V3_8))),
        ];
        for (name, version) in languages {
            assert_eq!(Version::of_language(name), version, "{name}");
        }
        for name in ["sql", "", "gremlin-lang-", "gremlin-lang-3.9", "gremlin-lang3.7"] {
            assert!(Version::of_language(name).is_err(), "{name}");
        }
    }
}
