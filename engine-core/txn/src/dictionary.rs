//! The token dictionary. Only the committer adds entries; any thread reads them.
//!
//! `name` takes no lock, because every row of an answer calls it for each label and key. `lookup` is called when a
//! query is planned. An entry is added to `names` before `by_name`, so a reader that finds a token finds its name.

use parking_lot::RwLock;
use rustc_hash::FxHashMap;
use tidegraph_types::{Str, Token};

#[derive(Debug, Default)]
pub(crate) struct Dictionary {
    /// By token; `None` for numbers without a name, 0 among them.
    names: boxcar::Vec<Option<Str>>,
    by_name: RwLock<FxHashMap<Str, Token>>,
}

impl Dictionary {
    /// The dictionary of a recovered graph. The same entry may occur twice; a token with two names is an error.
    pub fn new(mut entries: Vec<(Token, Str)>) -> Result<Self, String> {
        entries.sort_unstable();
        entries.dedup();
        let dictionary = Self::default();
        // Token 0 is never assigned: a field that was never set would have it.
        dictionary.names.push(None);
        for (token, name) in entries {
            if (token.0 as usize) < dictionary.names.count() {
                return Err(format!("token {token} stands for {name:?} and for another name"));
            }
            while dictionary.names.count() < token.0 as usize {
                dictionary.names.push(None);
            }
            if let Some(other) = dictionary.lookup(&name) {
                return Err(format!("tokens {other} and {token} both stand for {name:?}"));
            }
            dictionary.add(token, name);
        }
        Ok(dictionary)
    }

    /// The next free token; `None` if all are used.
    pub fn next(&self) -> Option<Token> {
        u32::try_from(self.names.count()).ok().map(Token)
    }

    /// Adds the entry of the next token.
    pub fn add(&self, token: Token, name: Str) {
        let index = self.names.push(Some(name.clone()));
        debug_assert_eq!(index, token.0 as usize, "tokens are added in order by one thread");
        self.by_name.write().insert(name, token);
    }

    pub fn lookup(&self, name: &str) -> Option<Token> {
        self.by_name.read().get(name).copied()
    }

    /// Tokens of all names; `None` if one is unknown.
    pub fn lookup_all(&self, names: &[Str]) -> Option<Vec<Token>> {
        let by_name = self.by_name.read();
        names.iter().map(|name| by_name.get(name).copied()).collect()
    }

    pub fn name(&self, token: Token) -> Option<Str> {
        self.names.get(token.0 as usize).cloned().flatten()
    }

    /// All entries, in order of token.
    pub fn entries(&self) -> Vec<(Token, Str)> {
        self.names.iter().filter_map(|(i, name)| Some((Token(i as u32), name.clone()?))).collect()
    }

    pub fn len(&self) -> usize {
        self.by_name.read().len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recovers_with_holes_and_repetitions() {
        let entry = |token, name: &str| (Token(token), Str::from(name));
        let dictionary = Dictionary::new(vec![entry(5, "e"), entry(1, "a"), entry(1, "a")]).unwrap();
        assert_eq!(dictionary.entries(), [entry(1, "a"), entry(5, "e")]);
        assert_eq!(dictionary.name(Token(3)), None);
        assert_eq!(dictionary.name(Token(0)), None);
        assert_eq!(dictionary.name(Token(99)), None);
        assert_eq!(dictionary.next(), Some(Token(6)));
        dictionary.add(Token(6), "f".into());
        assert_eq!(dictionary.lookup("f"), Some(Token(6)));
        assert_eq!(dictionary.lookup_all(&["a".into(), "f".into()]), Some(vec![Token(1), Token(6)]));
        assert_eq!(dictionary.lookup_all(&["a".into(), "x".into()]), None);
        assert_eq!(dictionary.len(), 3);
    }

    #[test]
    fn one_meaning_for_a_token_and_one_token_for_a_name() {
        assert!(Dictionary::new(vec![(Token(1), "a".into()), (Token(1), "b".into())]).is_err());
        assert!(Dictionary::new(vec![(Token(1), "a".into()), (Token(2), "a".into())]).is_err());
        assert!(Dictionary::new(vec![(Token(0), "a".into())]).is_err());
    }
}
