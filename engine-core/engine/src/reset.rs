//! Fast reset: removes all vertices and edges, in two steps, so that nobody does it by accident.
//!
//! Flow: [`Database::begin_reset`] writes a token to the graph's object store, `resets/TOKEN.json`. [`Database::reset`]
//! finds it there, in any process of the graph, claims it by writing `resets/TOKEN.used`, and commits one change,
//! [`Mutation::Reset`]. The store takes the claim once, so a token resets a graph at most once. If the commit certainly
//! failed, the claim is given back.
//!
//! The change writes [`Key::GRAPH`]: every transaction and every load that read before it conflicts. Queries that began
//! before read on at their version.
//!
//! What must never happen: a reset by a token that was used, or that is too old; a transaction that read before a reset
//! and commits after it.

use crate::{Database, Error};
use serde::{Deserialize, Serialize};
use std::time::Duration;
use tidegraph_platform::ObjectError;
use tidegraph_types::{CommitRequest, ErrorCode, Key, Mutation, Version};

/// How long a token is valid: as long as Neptune's.
pub const RESET_TOKEN_VALID: Duration = Duration::from_secs(60 * 60);
/// Maximum number of valid tokens of a graph.
const MOST_TOKENS: usize = 64;
const RESETS: &str = "resets/";

/// A token in the object store.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct TokenFile {
    /// When it was made, in milliseconds since 1970.
    made_ms: i64,
}

impl Database {
    /// Returns a token with which [`Database::reset`] removes the whole graph. It is valid once, for an hour, in every
    /// process of the graph.
    ///
    /// ```
    /// use tidegraph_engine::{Database, Language, Options, Parameters, Query};
    ///
    /// let database = Database::open(Options::default())?;
    /// let none = Parameters::default();
    /// database.query(&Query::new(Language::OpenCypher, "CREATE (:Person)", &none))?;
    /// let token = database.begin_reset()?;
    /// let version = database.reset(&token)?;
    /// assert_eq!(database.status().version, version.0);
    /// assert_eq!(database.summary().vertices, 0);
    /// // A token is valid once.
    /// assert!(database.reset(&token).is_err());
    /// # Ok::<(), tidegraph_engine::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// `TooManyRequests` if there are 64 valid tokens; those of the object store.
    pub fn begin_reset(&self) -> Result<String, Error> {
        let now = self.now_ms();
        let mut valid = 0;
        for object in self.objects.list(RESETS)? {
            if is_old(object.modified_ms, now) {
                self.objects.delete(&object.path)?;
            } else if object.path.ends_with(".json") {
                valid += 1;
            }
        }
        if valid >= MOST_TOKENS {
            let message =
                format!("{valid} tokens of resets are valid: use one of them, or wait until they expire");
            return Err(Error::new(ErrorCode::TooManyRequests, message));
        }
        let mut random = [0; 16];
        self.random.fill(&mut random);
        let token = uuid::Builder::from_random_bytes(random).into_uuid().to_string();
        let file = serde_json::to_vec(&TokenFile { made_ms: now });
        let file = file.map_err(|error| Error::caused_by(ErrorCode::Internal, error))?;
        self.objects.put(&path(&token, "json"), file)?;
        Ok(token)
    }

    /// Removes all vertices and edges as one change; returns its version. Indexes and constraints stay, empty; so do the
    /// list of loads and all names. Takes as long for a large graph as for a small one: its memory is freed when no
    /// version before the reset can be read.
    ///
    /// # Errors
    ///
    /// `InvalidParameter` if the token is none of this graph; `PreconditionsFailed` if it was used or has expired;
    /// `CommitOutcomeUnknown` if it is not known whether the graph was reset; those of a commit and of the object store.
    pub fn reset(&self, token: &str) -> Result<Version, Error> {
        let unknown = || {
            let message =
                format!("{token:?} is no token of a reset of this graph: initiateDatabaseReset makes one");
            Error::new(ErrorCode::InvalidParameter, message)
        };
        // The token becomes part of a path, in the spelling in which it was made.
        let token = uuid::Uuid::try_parse(token).map_err(|_| unknown())?.to_string();
        let file = match self.objects.get(&path(&token, "json")) {
            Err(ObjectError::NotFound { .. }) => return Err(unknown()),
            file => file?,
        };
        let file: TokenFile = serde_json::from_slice(&file).map_err(|error| {
            let message = format!("{} is damaged: {error}", path(&token, "json"));
            Error::new(ErrorCode::Corrupt, message).with_source(error)
        })?;
        if is_old(file.made_ms, self.now_ms()) {
            let minutes = RESET_TOKEN_VALID.as_secs() / 60;
            let message =
                format!("the token {token} was valid for {minutes} minutes and has expired: get another one");
            return Err(Error::new(ErrorCode::PreconditionsFailed, message));
        }
        let claim = path(&token, "used");
        if !self.objects.put_new(&claim, Vec::new())? {
            let message = format!("the token {token} was used already: get another one");
            return Err(Error::new(ErrorCode::PreconditionsFailed, message));
        }
        match self.commit_reset() {
            Ok(version) => {
                // Plans for the graph that was are seldom good for the one that comes.
                self.plans.clear();
                tracing::info!(version = version.0, "the graph was reset");
                Ok(version)
            }
            Err(error) => {
                if error.code() != ErrorCode::CommitOutcomeUnknown
                    && let Err(error) = self.objects.delete(&claim)
                {
                    tracing::warn!(%error, "the token of a reset that failed cannot be used again");
                }
                Err(error)
            }
        }
    }

    fn commit_reset(&self) -> Result<Version, Error> {
        let read_version = self.backend.snapshot(None)?.at.version;
        self.backend.commit(CommitRequest {
            read_version,
            write_keys: vec![Key::GRAPH],
            mutations: vec![Mutation::Reset],
            ..CommitRequest::default()
        })
    }

    fn now_ms(&self) -> i64 {
        self.clock.wall().as_millisecond()
    }
}

fn path(token: &str, kind: &str) -> String {
    format!("{RESETS}{token}.{kind}")
}

fn is_old(made_ms: i64, now_ms: i64) -> bool {
    now_ms.saturating_sub(made_ms) > RESET_TOKEN_VALID.as_millis() as i64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Options;
    use crate::database::Environment;
    use std::sync::Arc;
    use tidegraph_platform::{ManualClock, RealDisk, RealRandom};

    #[test]
    fn a_token_expires() {
        let clock = Arc::new(ManualClock::default());
        let environment =
            Environment { clock: clock.clone(), random: Arc::new(RealRandom), disk: Arc::new(RealDisk) };
        let database = Database::open_with(Options::default(), environment).unwrap();
        let token = database.begin_reset().unwrap();
        clock.advance(RESET_TOKEN_VALID);
        let other = database.begin_reset().unwrap();
        clock.advance(Duration::from_secs(1));
        let expired = database.reset(&token).unwrap_err();
        assert_eq!(expired.code(), ErrorCode::PreconditionsFailed, "{expired}");
        database.reset(&other).unwrap();
    }
}
