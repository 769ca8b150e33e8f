//! The principal of a request: the identity that the shell of the service has established
//! before it hands the request to the engine.

use std::fmt;
use std::sync::Arc;

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
    Iam(Arc<str>),
}

impl fmt::Display for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Anonymous => f.write_str("anonymous"),
            Self::SharedToken => f.write_str("shared-token"),
            Self::Iam(arn) => f.write_str(arn),
        }
    }
}
