//! `EXPLAIN` and `PROFILE` before a query.

/// What a prefix asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Prefix {
    /// `EXPLAIN`: the plan, without a run.
    Explain,
    /// `PROFILE`: a run, and what each operator did.
    Profile,
}

impl Prefix {
    /// Splits a text with a prefix. `None`: it has none.
    ///
    /// ```
    /// use tidegraph_opencypher::Prefix;
    ///
    /// assert_eq!(Prefix::of(" explain RETURN 1"), Some((Prefix::Explain, " RETURN 1")));
    /// assert_eq!(Prefix::of("/* why? */ PROFILE RETURN 1"), Some((Prefix::Profile, " RETURN 1")));
    /// assert_eq!(Prefix::of("RETURN 1"), None);
    /// ```
    #[must_use]
    pub fn of(text: &str) -> Option<(Self, &str)> {
        let mut rest = text;
        loop {
            rest = rest.trim_start();
            rest = if let Some(comment) = rest.strip_prefix("//") {
                comment.split_once('\n')?.1
            } else if let Some(comment) = rest.strip_prefix("/*") {
                comment.split_once("*/")?.1
            } else {
                break;
            };
        }
        let end = rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        let prefix = if word.eq_ignore_ascii_case("EXPLAIN") {
            Self::Explain
        } else if word.eq_ignore_ascii_case("PROFILE") {
            Self::Profile
        } else {
            return None;
        };
        after.starts_with(|c: char| c.is_whitespace() || c == '/').then_some((prefix, after))
    }
}
