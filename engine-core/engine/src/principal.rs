//! The principal of a request: the identity that the shell of the service has established
//! before it hands the request to the engine, and what it may do.

use crate::Error;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use tidegraph_types::ErrorCode;

/// What a principal may do.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Role {
    /// Run queries that read, and read the statistics.
    Read,
    /// Run queries that write, too.
    Write,
    /// Submit, watch and cancel loads. It allows no queries.
    Load,
    /// Everything: also the schema, the whole graph, and the queries of others.
    Admin,
}

impl Role {
    /// Every role.
    pub const ALL: [Self; 4] = [Self::Read, Self::Write, Self::Load, Self::Admin];

    /// Returns the name of the role in files and messages.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Load => "load",
            Self::Admin => "admin",
        }
    }

    /// The roles that this role includes, as bits.
    fn included(self) -> u8 {
        match self {
            Self::Read => 1,
            Self::Write => 2 | 1,
            Self::Load => 4,
            Self::Admin => 8 | 4 | 2 | 1,
        }
    }

    fn bit(self) -> u8 {
        match self {
            Self::Read => 1,
            Self::Write => 2,
            Self::Load => 4,
            Self::Admin => 8,
        }
    }
}

/// A text that names no [`Role`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UnknownRole(String);

impl fmt::Display for UnknownRole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "there is no role {:?}: use read, write, load or admin", self.0)
    }
}

impl std::error::Error for UnknownRole {}

impl FromStr for Role {
    type Err = UnknownRole;

    fn from_str(name: &str) -> Result<Self, UnknownRole> {
        Self::ALL.into_iter().find(|role| role.as_str() == name).ok_or_else(|| UnknownRole(name.to_owned()))
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A set of roles, with those that they include.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Roles(u8);

impl Roles {
    /// Returns the set of every role.
    #[must_use]
    pub fn all() -> Self {
        Role::ALL.into_iter().collect()
    }

    /// Returns whether the set has a role, or one that includes it.
    #[must_use]
    pub fn has(self, role: Role) -> bool {
        self.0 & role.bit() != 0
    }
}

impl FromIterator<Role> for Roles {
    fn from_iter<I: IntoIterator<Item = Role>>(roles: I) -> Self {
        Self(roles.into_iter().fold(0, |bits, role| bits | role.included()))
    }
}

/// The caller of a request.
///
/// A shell (the HTTP service, a Lambda function) establishes it; the engine notes it in its traces and trusts it.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub enum Principal {
    /// A caller that gave no identity: a service on a loopback address, or a caller inside this process.
    #[default]
    Anonymous,
    /// A caller that sent the token which all callers of the service share.
    SharedToken,
    /// A caller that AWS authenticated, with the ARN of its IAM identity.
    Iam(Arc<str>, Roles),
    /// A user who sent the password.
    User(Arc<str>, Roles),
    /// A caller that signed its request with the secret of an access key.
    AccessKey(Arc<str>, Roles),
}

impl Principal {
    /// Returns whether the principal has a role. Principals without roles of their own have all of them.
    #[must_use]
    pub fn may(&self, role: Role) -> bool {
        match self {
            Self::Anonymous | Self::SharedToken => true,
            Self::Iam(_, roles) | Self::User(_, roles) | Self::AccessKey(_, roles) => roles.has(role),
        }
    }

    /// Refuses a principal that lacks a role.
    ///
    /// # Errors
    ///
    /// `AccessDenied`; the message names the principal and the role.
    pub fn ensure(&self, role: Role) -> Result<(), Error> {
        if self.may(role) {
            return Ok(());
        }
        Err(Error::new(ErrorCode::AccessDenied, format!("{self} lacks the role {role}, which this needs")))
    }

    /// Returns whether both are the same caller, perhaps with other roles.
    #[must_use]
    pub fn is_same_caller(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::User(one, _), Self::User(two, _))
            | (Self::AccessKey(one, _), Self::AccessKey(two, _))
            | (Self::Iam(one, _), Self::Iam(two, _)) => one == two,
            _ => self == other,
        }
    }

    /// Returns whether the principal may see and cancel a request of another one: its own requests, and with the role
    /// admin those of all.
    #[must_use]
    pub fn may_see_requests_of(&self, other: &Self) -> bool {
        self.is_same_caller(other) || self.may(Role::Admin)
    }
}

impl fmt::Display for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Anonymous => f.write_str("anonymous"),
            Self::SharedToken => f.write_str("shared-token"),
            Self::Iam(arn, _) => f.write_str(arn),
            Self::User(name, _) => write!(f, "user:{name}"),
            Self::AccessKey(id, _) => write!(f, "access-key:{id}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(name: &str, roles: &[Role]) -> Principal {
        Principal::User(name.into(), roles.iter().copied().collect())
    }

    #[test]
    fn roles_include_others() {
        let of = |role| Role::ALL.map(|needed| user("u", &[role]).may(needed));
        assert_eq!(of(Role::Read), [true, false, false, false]);
        assert_eq!(of(Role::Write), [true, true, false, false]);
        assert_eq!(of(Role::Load), [false, false, true, false]);
        assert_eq!(of(Role::Admin), [true; 4]);
        assert_eq!(Role::ALL.map(|role| user("u", &[]).may(role)), [false; 4]);
        for all in [Principal::Anonymous, Principal::SharedToken, Principal::Iam("arn".into(), Roles::all())]
        {
            assert!(Role::ALL.iter().all(|role| all.may(*role)), "{all}");
        }
        assert_eq!("reed".parse::<Role>().unwrap_err().to_string().matches("read").count(), 1);
    }

    #[test]
    fn requests_of_others_are_the_administrators() {
        let (ada, bob) = (user("ada", &[Role::Write]), user("bob", &[Role::Admin]));
        let ada_with_other_roles = user("ada", &[Role::Read]);
        assert!(ada.may_see_requests_of(&ada_with_other_roles) && bob.may_see_requests_of(&ada));
        assert!(!ada.may_see_requests_of(&bob) && !ada.may_see_requests_of(&Principal::Anonymous));
        let key = Principal::AccessKey("ada".into(), Roles::default());
        assert!(!key.is_same_caller(&ada));
    }
}
