//! Tokens of labels and property keys.

use super::target::LoadTarget;
use crate::error::Error;
use crate::rows::Name;
use rustc_hash::FxHashMap;
use tidegraph_types::{Str, Token};

/// The names that a load has met, with their tokens.
pub(super) struct Names {
    tokens: Tokens,
    interned: FxHashMap<Str, Token>,
}

/// How a [`Name`] in a row becomes a token.
enum Tokens {
    /// A name is an index into the tokens of its file.
    OfFiles(Vec<Vec<Token>>),
    /// A name is the number of its token.
    Numbers,
}

impl Names {
    /// Names in rows are indexes into the names of their file.
    pub fn of_files(files: usize) -> Self {
        Self { tokens: Tokens::OfFiles(vec![Vec::new(); files]), interned: FxHashMap::default() }
    }

    /// Names in rows are numbers of tokens; `interned` has their texts.
    pub fn of_tokens(interned: impl IntoIterator<Item = (Str, Token)>) -> Self {
        Self { tokens: Tokens::Numbers, interned: interned.into_iter().collect() }
    }

    pub fn token(&self, file: usize, name: Name) -> Token {
        match &self.tokens {
            Tokens::OfFiles(files) => files[file][name.0 as usize],
            Tokens::Numbers => Token(name.0),
        }
    }

    /// Returns the text of a token, for messages; empty if the load has not met it.
    pub fn text(&self, token: Token) -> String {
        let found = self.interned.iter().find(|(_, t)| **t == token);
        found.map(|(name, _)| name.to_string()).unwrap_or_default()
    }

    /// Appends names to those of a file.
    pub fn extend_file(&mut self, file: usize, names: &[Str], target: &dyn LoadTarget) -> Result<(), Error> {
        let tokens = self.intern(names, target)?;
        if let Tokens::OfFiles(files) = &mut self.tokens {
            files[file].extend(tokens);
        }
        Ok(())
    }

    /// Returns the tokens of names. Asks the graph once for each name.
    pub fn intern(&mut self, names: &[Str], target: &dyn LoadTarget) -> Result<Vec<Token>, Error> {
        let mut unknown: Vec<Str> =
            names.iter().filter(|name| !self.interned.contains_key(*name)).cloned().collect();
        if !unknown.is_empty() {
            unknown.sort();
            unknown.dedup();
            let tokens = target.intern(&unknown)?;
            self.interned.extend(unknown.into_iter().zip(tokens));
        }
        let token = |name| self.interned.get(name).copied();
        let missing = Error::Internal("the graph gave no token for a name");
        names.iter().map(token).collect::<Option<_>>().ok_or(missing)
    }
}
