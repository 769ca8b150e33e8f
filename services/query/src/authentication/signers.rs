//! Access keys whose secrets the service knows, from a file.

use super::follow::Followed;
use super::grants::Grants;
use super::signature::{Checked, Scope, Signed};
use super::{FileError, Refusal, signature};
use aws_credential_types::Credentials;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use tidegraph_engine::{Principal, Roles};

/// The file of credentials.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CredentialsFile {
    credentials: Vec<Entry>,
}

/// A credential in the file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Entry {
    access_key_id: String,
    secret_access_key: String,
    session_token: Option<String>,
    roles: Vec<String>,
}

/// An access key. Its secret is not printed.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct AccessKey {
    pub(super) credentials: Credentials,
    grants: Grants,
}

type ById = BTreeMap<String, AccessKey>;

fn parse(text: &str) -> Result<ById, String> {
    let file: CredentialsFile = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let mut keys = ById::new();
    for Entry { access_key_id: id, secret_access_key: secret, session_token, roles } in file.credentials {
        // As in IAM: letters and digits, so that it needs no quotes in a header.
        if !(4..=128).contains(&id.len()) || !id.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
            return Err(format!("{id:?} cannot be an access key id: it has 4 to 128 letters and digits"));
        }
        let of = |problem: &str| format!("access key {id}: {problem}");
        if secret.len() < 16 {
            return Err(of("its secret has fewer than 16 characters"));
        }
        let grants = Grants::parse(&roles).map_err(|error| of(&error))?;
        let credentials = Credentials::new(&id, secret, session_token, None, "file");
        if keys.insert(id.clone(), AccessKey { credentials, grants }).is_some() {
            return Err(format!("there are two access keys {id}"));
        }
    }
    Ok(keys)
}

/// The access keys of a service, and the region for which requests are signed.
#[derive(Debug)]
pub struct Signers {
    file: Arc<Followed<ById>>,
    region: String,
}

impl Signers {
    /// Reads a file of credentials.
    ///
    /// # Errors
    ///
    /// If it cannot be read, if others can read or write it, or if it names no credentials in the right form.
    pub fn read(file: &Path, region: String) -> Result<Arc<Self>, FileError> {
        Ok(Arc::new(Self { file: Arc::new(Followed::read(file, parse)?), region }))
    }

    pub(super) async fn follow(&self) {
        self.file.follow().await;
    }

    /// Reads the file again now.
    ///
    /// # Errors
    ///
    /// As [`Signers::read`]; what the file said before holds then.
    pub fn look(&self) -> Result<(), FileError> {
        self.file.look()
    }

    /// Returns the roles of an access key in a graph; `None` if there is none of this id.
    pub(super) fn roles(&self, id: &str, graph: &str) -> Option<Roles> {
        self.file.now().get(id).map(|key| key.grants.within(graph))
    }

    /// Checks all of a signed request but its signature, which also covers the body: so the body of a stranger is not
    /// read.
    ///
    /// # Errors
    ///
    /// `AccessDenied`, in AWS's words.
    pub fn check(&self, signed: &Signed<'_>, now: jiff::Timestamp) -> Result<Checked, Refusal> {
        let scope = Scope { region: &self.region };
        signature::check(signed, scope, now, |id| self.file.now().get(id).map(|key| key.credentials.clone()))
    }

    /// Returns who signed a request, with the roles that hold in all graphs.
    ///
    /// # Errors
    ///
    /// `AccessDenied`, in AWS's words.
    pub fn verify(&self, checked: &Checked, signed: &Signed<'_>, body: &[u8]) -> Result<Principal, Refusal> {
        let id = checked.verify(signed, body)?;
        let roles = self.file.now().get(id).map(|key| key.grants.everywhere()).unwrap_or_default();
        Ok(Principal::AccessKey(id.into(), roles))
    }
}
