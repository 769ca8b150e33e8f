//! Authentication: who sent a request, and whether that is proven.
//!
//! Roles: [`Authentication`] is the mode of a service, the same in all protocols; [`Users`] knows passwords;
//! [`Signers`] knows the secrets of access keys; [`signature`] verifies what was signed; [`Callers`] asks AWS who signed a
//! proof. Each protocol reads the proof in its own
//! form (a header, SASL, LOGON), asks here, and gets a [`Principal`] or a [`Refusal`].
//!
//! A file with users or secrets is read again when it changes. Sessions that last ask [`Authentication::still_known`]
//! before each request, so that a removed user or role holds for open connections, too. It also says which roles a caller
//! has in one graph: a proof alone gives those that hold in all graphs.
//!
//! What must never happen: a secret in a log or in an error; a difference in the answer, or much of one in its time,
//! between a user who does not exist and a wrong password; a stranger who makes the service work or remember without
//! bounds.

mod attempts;
mod callers;
mod follow;
mod grants;
mod proof;
mod remembered;
pub mod signature;
mod signers;
mod slow;
mod users;

pub use callers::{Callers, Sts};
pub use grants::Grant;
pub use signers::Signers;
pub use users::{Entry, Users, UsersFile, check_name, hash};

use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use subtle::ConstantTimeEq;
use tidegraph_engine::Principal;
use tidegraph_types::ErrorCode;

/// How callers prove who they are.
#[derive(Clone, Debug, Default)]
pub enum Authentication {
    /// They do not.
    #[default]
    Off,
    /// With one token that all of them share.
    Token(Token),
    /// With a name and a password.
    Users(Arc<Users>),
    /// With AWS's signature of their request.
    SigV4(Arc<Signers>),
    /// With a request to AWS that they signed and did not send.
    Aws(Arc<Callers>),
}

/// A token. Its text is not printed.
#[derive(Clone)]
pub struct Token(Arc<str>);

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token")
    }
}

impl From<Option<String>> for Authentication {
    fn from(token: Option<String>) -> Self {
        token.map_or(Self::Off, |token| Self::Token(Token(token.into())))
    }
}

/// Why a caller was not let in.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{message}")]
pub struct Refusal {
    code: ErrorCode,
    message: String,
}

impl Refusal {
    pub(crate) fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }

    /// Returns the code of the error.
    #[must_use]
    pub fn code(&self) -> ErrorCode {
        self.code
    }
}

/// Why a file with users or credentials cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{}: {problem}", file.display())]
pub struct FileError {
    file: PathBuf,
    problem: String,
}

impl FileError {
    fn new(file: &std::path::Path, problem: impl std::fmt::Display) -> Self {
        Self { file: file.to_owned(), problem: problem.to_string() }
    }
}

impl Authentication {
    /// Returns whether callers must prove anything.
    #[must_use]
    pub fn is_on(&self) -> bool {
        !matches!(self, Self::Off)
    }

    /// Returns whether a client may connect first and prove itself with a password afterwards.
    #[must_use]
    pub fn takes_passwords_later(&self) -> bool {
        matches!(self, Self::Token(_) | Self::Users(_) | Self::Aws(_))
    }

    /// Returns who sends a token.
    ///
    /// # Errors
    ///
    /// `AccessDenied` if it is wrong, or if the service has none; where AWS says who callers are, also
    /// `TooManyRequests` after many wrong proofs, and `Unavailable` if AWS does not answer.
    pub async fn token(&self, sent: &str, from: Option<IpAddr>) -> Result<Principal, Refusal> {
        match self {
            Self::Off => Ok(Principal::Anonymous),
            // The comparison takes the same time whatever part of the token is right.
            Self::Token(Token(token)) if bool::from(sent.as_bytes().ct_eq(token.as_bytes())) => {
                Ok(Principal::SharedToken)
            }
            Self::Token(_) => Err(Refusal::new(ErrorCode::AccessDenied, "the service's token is wrong")),
            Self::Users(_) => Err(Refusal::new(
                ErrorCode::Unauthorized,
                "the service takes no token: send a user's name and password",
            )),
            Self::SigV4(_) => Err(signature::missing()),
            Self::Aws(callers) => callers.verify(sent, from).await,
        }
    }

    /// Returns who sends a name and a password. Where there is a token or a proof, it is the password, and any name will do.
    ///
    /// # Errors
    ///
    /// `AccessDenied` for a wrong token; `Unauthorized` for a wrong user or password; `TooManyRequests` after many of
    /// them, or if many callers wait.
    pub async fn password(
        &self,
        name: &str,
        password: &str,
        from: Option<IpAddr>,
    ) -> Result<Principal, Refusal> {
        match self {
            Self::Off => Ok(Principal::Anonymous),
            Self::Token(_) => self
                .token(password, from)
                .await
                .map_err(|refusal| Refusal::new(refusal.code, "the password must be the service's token")),
            Self::Users(users) => users.verify(name, password, from).await,
            Self::SigV4(_) => Err(signature::missing()),
            Self::Aws(callers) => callers.verify(password, from).await,
        }
    }

    /// Returns why a caller that proves nothing is refused; `None` if it is not.
    #[must_use]
    pub fn refusal_of_strangers(&self) -> Option<Refusal> {
        match self {
            Self::Off => None,
            Self::Token(_) => {
                Some(Refusal::new(ErrorCode::AccessDenied, "the request lacks the service's token"))
            }
            Self::Users(_) => {
                let message = "the service knows users: send a name and a password (HTTP's scheme Basic)";
                Some(Refusal::new(ErrorCode::Unauthorized, message))
            }
            Self::SigV4(_) => Some(signature::missing()),
            Self::Aws(_) => {
                let message = "the request lacks a proof of who sends it: send the output of `tidegraph prove` as its \
                               token (Authorization: Bearer) or as the password";
                Some(Refusal::new(ErrorCode::AccessDenied, message))
            }
        }
    }

    /// Returns a principal that was proven with the roles that it has in a graph now.
    ///
    /// # Errors
    ///
    /// `AccessDenied` if its user or access key has been removed.
    pub fn still_known(&self, principal: &Principal, graph: &str) -> Result<Principal, Refusal> {
        let found = match (self, principal) {
            (Self::Users(users), Principal::User(name, _)) => {
                users.roles(name, graph).map(|roles| Principal::User(name.clone(), roles))
            }
            (Self::SigV4(signers), Principal::AccessKey(id, _)) => {
                signers.roles(id, graph).map(|roles| Principal::AccessKey(id.clone(), roles))
            }
            (Self::Aws(callers), Principal::Iam(arn, _)) => {
                callers.roles(arn, graph).map(|roles| Principal::Iam(arn.clone(), roles))
            }
            _ => Some(principal.clone()),
        };
        found.ok_or_else(|| {
            Refusal::new(ErrorCode::AccessDenied, format!("{principal} was removed from the service"))
        })
    }

    /// Reads the file with users or access keys again and again, as long as the future is polled.
    pub async fn follow(self) {
        match self {
            Self::Off | Self::Token(_) => {}
            Self::Users(users) => users.follow().await,
            Self::SigV4(signers) => signers.follow().await,
            Self::Aws(callers) => callers.follow().await,
        }
    }
}
