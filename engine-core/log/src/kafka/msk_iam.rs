//! Tokens for Amazon MSK: requests to its IAM endpoint, signed with the credentials of this process. Brokers check
//! them.

use crate::error::cause;
use crate::{Cause, Token, Tokens};
use aws_config::Region;
use aws_msk_iam_sasl_signer::{generate_auth_token, generate_auth_token_from_role};
use parking_lot::Mutex;
use std::sync::Arc;
use tidegraph_platform::Clock;

/// A token is reused while it is valid for at least this long: a third of MSK's 15
/// minutes. All clients of a process share it.
const LEAST_LEFT_MS: i64 = 5 * 60 * 1000;

/// Name of the principal. MSK takes the identity from the credentials and ignores this name.
const PRINCIPAL: &str = "tidegraph";

/// Signs tokens with the credentials of the process (variables, profile, container or instance).
pub struct MskIam {
    region: String,
    role: Option<String>,
    clock: Arc<dyn Clock>,
    held: Mutex<Option<Token>>,
}

impl std::fmt::Debug for MskIam {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MskIam")
            .field("region", &self.region)
            .field("role", &self.role)
            .finish_non_exhaustive()
    }
}

impl MskIam {
    /// Signs for the brokers of a region; as a role, if `role` is its ARN.
    #[must_use]
    pub fn new(region: impl Into<String>, role: Option<String>, clock: Arc<dyn Clock>) -> Self {
        Self { region: region.into(), role, clock, held: Mutex::default() }
    }

    fn sign(&self) -> Result<Token, String> {
        let (region, role) = (Region::new(self.region.clone()), self.role.clone());
        // On a thread of its own: the caller may be inside an async runtime, which must not wait for another one.
        let thread = tidegraph_platform::spawn("msk-iam", move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let runtime = runtime.map_err(|error| error.to_string())?;
            // The credential providers have their own timeouts.
            let signed = runtime.block_on(async {
                match role {
                    Some(role) => generate_auth_token_from_role(region, role, PRINCIPAL.into()).await,
                    None => generate_auth_token(region).await,
                }
            });
            signed.map_err(|error| error.to_string())
        });
        let thread = thread.map_err(|error| format!("no thread to sign a token: {error}"))?;
        let signed = thread.join().map_err(|_| "signing a token ended by a defect".to_owned())?;
        let (value, ends_ms) =
            signed.map_err(|error| format!("no token for MSK in {}: {error}", self.region))?;
        Ok(Token { value, principal: PRINCIPAL.into(), ends_ms })
    }
}

impl Tokens for MskIam {
    fn token(&self) -> Result<Token, Cause> {
        // Held while a token is signed: other callers wait for it.
        let mut held = self.held.lock();
        let now = self.clock.wall().as_millisecond();
        if let Some(token) = held.as_ref().filter(|token| token.ends_ms - now > LEAST_LEFT_MS) {
            return Ok(token.clone());
        }
        let token = self.sign().map_err(cause)?;
        tracing::debug!(?token, "signed a token for MSK");
        *held = Some(token.clone());
        Ok(token)
    }
}
