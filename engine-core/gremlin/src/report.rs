//! `explain()` and `profile()` at the end of a text: what to answer about the traversal instead of its result.

use crate::ast::{Request, Step, StepName, Terminal};

/// What a text asks about its traversals.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Report {
    /// `explain()`: their plans. They are not run.
    Explain,
    /// `profile()`: what the operators of their plans did.
    Profile,
}

impl Report {
    /// Splits `explain()`, or `profile()` as the last step, from a text. `None`: the text ends with neither.
    #[must_use]
    pub fn of(text: &str) -> Option<(Self, &str)> {
        // Most texts are not parsed here.
        let end = text.trim_end_matches(|c: char| c.is_whitespace() || c == ';');
        let words = ["explain", "profile", "iterate", "toList", "next"];
        let called = end.strip_suffix(')')?.trim_end().strip_suffix('(')?.trim_end();
        if !words.iter().any(|word| called.ends_with(word)) {
            return None;
        }
        let statements = crate::parse(text).ok()?;
        let Request { steps, terminal, .. } = statements.last()?;
        let (report, at) = match (terminal, steps.last()) {
            (Some(Step { at, name: Terminal::Explain, args }), _) if args.is_empty() => (Self::Explain, *at),
            (
                None | Some(Step { name: Terminal::Next | Terminal::ToList | Terminal::Iterate, .. }),
                Some(Step { at, name: StepName::Profile, args }),
            ) if args.is_empty() => (Self::Profile, *at),
            _ => return None,
        };
        Some((report, text[..at].trim_end().strip_suffix('.')?))
    }
}

#[cfg(test)]
mod tests {
    use super::Report;

    #[test]
    fn the_end_of_a_text_asks_for_a_report() {
        let cases = [
            ("g.V().explain()", Some((Report::Explain, "g.V()"))),
            ("g.V() . profile ( ) ;\n", Some((Report::Profile, "g.V() "))),
            ("g.addV(); g.V().out().profile().next()", Some((Report::Profile, "g.addV(); g.V().out()"))),
            ("g.V().profile().toList()", Some((Report::Profile, "g.V()"))),
            ("g.V().has('explain()')", None),
            ("g.V().profile('x')", None),
            ("g.V().where(out().profile())", None),
            ("g.V().explain(1)", None),
            ("g.V().next()", None),
            ("g.profile()", None),
            ("explain()", None),
            ("", None),
        ];
        for (text, report) in cases {
            assert_eq!(Report::of(text), report, "{text}");
        }
    }
}
