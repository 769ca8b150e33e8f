//! Users with passwords, from a file.
//!
//! A password is looked at with Argon2, which is slow on purpose. So a right one is remembered for [`REMEMBERED`], and
//! at most a few are looked at in parallel ([`Slow`]). [`Attempts`] limits wrong ones.

use super::attempts::{Attempts, Key};
use super::follow::Followed;
use super::grants::Grants;
use super::remembered::{REMEMBERED, Remembered};
use super::slow::{Busy, Slow};
use super::{FileError, Refusal};
use argon2::password_hash::PasswordVerifier;
use argon2::password_hash::phc::PasswordHash;
use argon2::{Argon2, Params, PasswordHasher};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;
use tidegraph_engine::{Principal, Roles};
use tidegraph_platform::{Clock, Random, RealRandom};
use tidegraph_types::ErrorCode;

/// Passwords that are looked at in parallel. One takes 19 MiB and some tens of milliseconds of a processor.
const AT_ONCE: usize = 2;
/// Longest password, and longest name, in bytes.
const LONGEST_PASSWORD: usize = 1_024;
const LONGEST_NAME: usize = 128;
/// Most memory and most rounds that a hash may ask for: the file may have been written elsewhere.
const MOST_KIB: u32 = 256 << 10;
const MOST_ROUNDS: u32 = 64;

/// The file of users.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UsersFile {
    /// The users, each name once.
    pub users: Vec<Entry>,
}

/// A user in the file.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// The name.
    pub name: String,
    /// The hash of the password, in the PHC format of Argon2.
    pub password: String,
    /// Names of roles, those in one graph as `GRAPH:ROLE`. Without any the user may read the health and the metrics of the service.
    pub roles: Vec<String>,
}

impl UsersFile {
    /// Reads the text of a file.
    ///
    /// # Errors
    ///
    /// If it is not JSON of this shape.
    pub fn parse(text: &str) -> Result<Self, String> {
        serde_json::from_str(text).map_err(|error| error.to_string())
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
struct User {
    hash: String,
    grants: Grants,
}

type ByName = BTreeMap<String, User>;

/// Checks a name.
///
/// # Errors
///
/// If it is empty, long, or has a colon or a control character, which HTTP's scheme Basic cannot send.
pub fn check_name(name: &str) -> Result<(), String> {
    let is_wrong = |c: char| c == ':' || c.is_control();
    if name.is_empty() || name.len() > LONGEST_NAME || name.contains(is_wrong) {
        return Err(format!(
            "{name:?} cannot be a user: a name has 1 to {LONGEST_NAME} bytes, and neither a colon nor \
             control characters"
        ));
    }
    Ok(())
}

fn parse(text: &str) -> Result<ByName, String> {
    let mut users = ByName::new();
    for Entry { name, password, roles } in UsersFile::parse(text)?.users {
        check_name(&name)?;
        let of = |problem: String| format!("user {name:?}: {problem}");
        check_hash(&password).map_err(of)?;
        let grants = Grants::parse(&roles).map_err(of)?;
        if users.insert(name.clone(), User { hash: password, grants }).is_some() {
            return Err(format!("there are two users {name:?}"));
        }
    }
    Ok(users)
}

fn check_hash(text: &str) -> Result<(), String> {
    let wrong = |error: argon2::password_hash::Error| {
        format!("the password is not a hash of Argon2, as `tidegraph user hash` makes it: {error}")
    };
    let hash = PasswordHash::new(text).map_err(|_| wrong(argon2::password_hash::Error::EncodingInvalid))?;
    argon2::Algorithm::try_from(hash.algorithm.as_str()).map_err(wrong)?;
    let params = Params::try_from(&hash).map_err(wrong)?;
    if hash.hash.is_none() || params.m_cost() > MOST_KIB || params.t_cost() > MOST_ROUNDS {
        return Err(format!(
            "the hash must ask for at most {MOST_KIB} KiB and {MOST_ROUNDS} rounds, and must have a result"
        ));
    }
    Ok(())
}

/// Hashes a password for the file.
///
/// # Errors
///
/// If the password is empty or too long.
pub fn hash(password: &str) -> Result<String, String> {
    if password.is_empty() || password.len() > LONGEST_PASSWORD {
        return Err(format!("a password has 1 to {LONGEST_PASSWORD} bytes"));
    }
    let mut salt = [0; 16];
    RealRandom.fill(&mut salt);
    let hash = Argon2::default().hash_password_with_salt(password.as_bytes(), &salt);
    hash.map(|hash: PasswordHash| hash.to_string()).map_err(|error| error.to_string())
}

fn is_right(hash: &str, password: &str) -> bool {
    let Ok(hash) = PasswordHash::new(hash) else { return false };
    Argon2::default().verify_password(password.as_bytes(), &hash).is_ok()
}

/// The users of a service.
pub struct Users {
    file: Arc<Followed<ByName>>,
    clock: Arc<dyn Clock>,
    remembered: Remembered<()>,
    attempts: Attempts,
    slow: Slow,
}

impl std::fmt::Debug for Users {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Users").finish_non_exhaustive()
    }
}

impl Users {
    /// Reads a file of users.
    ///
    /// # Errors
    ///
    /// If it cannot be read, if others can read or write it, or if it names no users in the right form.
    pub fn read(file: &Path, clock: Arc<dyn Clock>) -> Result<Arc<Self>, FileError> {
        Ok(Arc::new(Self {
            file: Arc::new(Followed::read(file, parse)?),
            clock,
            remembered: Remembered::new(),
            attempts: Attempts::default(),
            slow: Slow::new(AT_ONCE),
        }))
    }

    pub(super) async fn follow(&self) {
        self.file.follow().await;
    }

    /// Reads the file again now.
    ///
    /// # Errors
    ///
    /// As [`Users::read`]; what the file said before holds then.
    pub fn look(&self) -> Result<(), FileError> {
        self.file.look()
    }

    /// Returns the roles of a user in a graph; `None` if there is none of this name.
    pub(super) fn roles(&self, name: &str, graph: &str) -> Option<Roles> {
        self.file.now().get(name).map(|user| user.grants.within(graph))
    }

    /// Returns the principal of a user whose password is right, with the roles that hold in all graphs.
    pub(super) async fn verify(
        &self,
        name: &str,
        password: &str,
        from: Option<IpAddr>,
    ) -> Result<Principal, Refusal> {
        if name.len() > LONGEST_NAME || password.len() > LONGEST_PASSWORD {
            return Err(wrong());
        }
        let users = self.file.now().clone();
        let user = users.get(name);
        let principal = |user: &User| Principal::User(name.into(), user.grants.everywhere());
        let digest = user.map(|user| self.remembered.digest(&[name, &user.hash, password]));
        if let (Some(user), Some(digest)) = (user, &digest)
            && self.remembered.get(digest, self.clock.now()).is_some()
        {
            return Ok(principal(user));
        }
        let mut keys = vec![Key::User(self.remembered.digest(&[name]))];
        keys.extend(from.map(Key::of_address));
        self.attempts.take(&keys, self.clock.now()).map_err(|wait| {
            let seconds = wait.as_secs() + 1;
            let message = format!("too many wrong passwords: try again in {seconds} s");
            Refusal::new(ErrorCode::TooManyRequests, message)
        })?;
        // A user who does not exist takes as long as one who does.
        let Some(hash) = user.or_else(|| users.values().next()).map(|user| user.hash.clone()) else {
            return Err(wrong());
        };
        let sent = password.to_owned();
        let right = self.slow.run(move || is_right(&hash, &sent)).await.map_err(|Busy| {
            self.attempts.give_back(&keys);
            let message = "too many passwords are being looked at: try again later";
            Refusal::new(ErrorCode::TooManyRequests, message)
        })?;
        match (user, digest) {
            (Some(user), Some(digest)) if right => {
                self.attempts.give_back(&keys);
                self.remembered.put(digest, (), self.clock.now(), REMEMBERED);
                Ok(principal(user))
            }
            _ => Err(wrong()),
        }
    }
}

fn wrong() -> Refusal {
    Refusal::new(ErrorCode::Unauthorized, "the user or the password is wrong")
}

#[cfg(test)]
#[path = "users_tests.rs"]
mod tests;
