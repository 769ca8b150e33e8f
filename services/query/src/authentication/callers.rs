//! Callers that AWS knows, and their roles from a file. STS tells who signed a [`Proof`].
//!
//! The service never learns the secret of a caller, and needs no credentials of its own for this. An answer of STS is
//! remembered for a minute, so a caller that sends its proof with each request costs one request to STS a minute.

use super::attempts::{Attempts, Key};
use super::follow::Followed;
use super::grants::Grants;
use super::proof::{BODY, BODY_TYPE, GRAPH_HEADER, Proof, Scope};
use super::remembered::Remembered;
use super::slow::{Busy, Slow};
use super::{FileError, Refusal};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tidegraph_engine::{Principal, Roles};
use tidegraph_platform::Clock;
use tidegraph_types::ErrorCode;

/// Requests to STS at the same time.
const AT_ONCE: usize = 16;
/// Time limit for an answer of STS.
const PATIENCE: Duration = Duration::from_secs(5);
/// Most bytes of an answer that are read.
const LONGEST_ANSWER: u64 = 64 << 10;

/// The file of callers.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CallersFile {
    callers: Vec<Entry>,
}

/// A caller in the file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    /// ARN of an IAM user or role.
    arn: String,
    roles: Vec<String>,
}

type ByArn = BTreeMap<String, Grants>;

fn parse(text: &str) -> Result<ByArn, String> {
    let file: CallersFile = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let mut callers = ByArn::new();
    for Entry { arn, roles } in file.callers {
        let known = identity(&arn).ok_or_else(|| {
            format!(
                "{arn:?} is not the ARN of an IAM user or role, such as arn:aws:iam::123456789012:role/NAME"
            )
        })?;
        let grants = Grants::parse(&roles).map_err(|error| format!("caller {arn}: {error}"))?;
        if callers.insert(known, grants).is_some() {
            return Err(format!("there are two callers {arn}"));
        }
    }
    Ok(callers)
}

/// Returns the ARN of the user or role that an ARN stands for: a session of a role is the role. Paths of roles are left
/// out, because sessions do not tell them; names of roles are unique in an account. `None` for other ARNs.
fn identity(arn: &str) -> Option<String> {
    let parts: Vec<&str> = arn.splitn(6, ':').collect();
    let &["arn", partition, service, "", account, resource] = parts.as_slice() else { return None };
    let is_name = |name: &str| {
        let is_one = |c: char| c.is_ascii_alphanumeric() || "_+=,.@-".contains(c);
        (1..=128).contains(&name.len()) && name.chars().all(is_one)
    };
    let is_known = partition.starts_with("aws") && account.len() == 12;
    if !is_known || !account.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let (kind, path) = resource.split_once('/')?;
    let role = |name: &str| is_name(name).then(|| format!("arn:{partition}:iam::{account}:role/{name}"));
    match (service, kind) {
        ("iam", "user") if path.split('/').all(is_name) => Some(arn.to_owned()),
        ("iam", "role") if path.split('/').all(is_name) => role(path.rsplit('/').next()?),
        ("sts", "assumed-role") => {
            let (name, session) = path.split_once('/')?;
            is_name(session).then(|| role(name)).flatten()
        }
        _ => None,
    }
}

/// How to reach STS, and what a proof has to be for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Sts {
    scope: Scope,
    url: String,
}

impl Sts {
    /// Describes STS of a region. `endpoint`: the URL of another one, such as that of an interface endpoint in a VPC.
    ///
    /// # Errors
    ///
    /// The reason as text, if the graph, the region or the URL is not one.
    pub fn new(graph: &str, region: &str, endpoint: Option<&str>) -> Result<Self, String> {
        let is_region =
            region.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-');
        if !is_region || region.is_empty() || region.len() > 32 {
            return Err(format!("{region:?} is not a region of AWS, such as eu-central-1"));
        }
        if graph.is_empty() || graph.len() > 128 || !graph.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(format!(
                "{graph:?} cannot be the name of a graph in a header: 1 to 128 visible ASCII characters"
            ));
        }
        let domain = if region.starts_with("cn-") { "amazonaws.com.cn" } else { "amazonaws.com" };
        let url = endpoint.map_or_else(|| format!("https://sts.{region}.{domain}"), str::to_owned);
        let url = url.trim_end_matches('/').to_owned();
        let wrong = |problem: &str| format!("{url:?} is not an endpoint of STS: {problem}");
        let uri: axum::http::Uri = url.parse().map_err(|_| wrong("it is not a URL"))?;
        let host = uri.authority().map(|authority| authority.as_str().to_owned()).unwrap_or_default();
        let is_loopback = uri.host().is_some_and(|host| {
            let host = host.trim_start_matches('[').trim_end_matches(']');
            host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback()) || host == "localhost"
        });
        match uri.scheme_str() {
            Some("https") => {}
            Some("http") if is_loopback => {}
            _ => return Err(wrong("only https:// is spoken with other machines")),
        }
        if host.is_empty() || host.contains('@') || !matches!(uri.path(), "" | "/") || uri.query().is_some() {
            return Err(wrong("it is a scheme and a host, perhaps with a port"));
        }
        let scope = Scope { graph: graph.to_owned(), region: region.to_owned(), host };
        Ok(Self { scope, url })
    }

    /// Returns a proof for the owner of credentials, which a client sends as its token.
    ///
    /// # Errors
    ///
    /// The reason as text, if the credentials have characters that cannot be in a header.
    pub fn prove(
        &self,
        credentials: &aws_credential_types::Credentials,
        now: jiff::Timestamp,
    ) -> Result<String, String> {
        Proof::sign(&self.scope, credentials, now).map(|proof| proof.to_text())
    }

    /// Sends the request of a proof, and returns the ARN of its signer.
    fn ask(&self, agent: &ureq::Agent, proof: &Proof) -> Result<String, Refusal> {
        let unavailable = |problem: String| {
            Refusal::new(ErrorCode::Unavailable, format!("{} does not answer: {problem}", self.url))
        };
        let request = agent.post(format!("{}/", self.url)).header("content-type", BODY_TYPE);
        let request = request.header("authorization", &proof.authorization).header("x-amz-date", &proof.date);
        let request = request.header(GRAPH_HEADER, &proof.graph);
        let request = match &proof.token {
            Some(token) => request.header("x-amz-security-token", token),
            None => request,
        };
        let mut answer = request.send(BODY).map_err(|error| unavailable(error.to_string()))?;
        let status = answer.status();
        let body = answer.body_mut().with_config().limit(LONGEST_ANSWER).read_to_string();
        let body = body.map_err(|error| unavailable(error.to_string()))?;
        match status.as_u16() {
            200 => {
                let parsed: Answer = quick_xml::de::from_str(&body).map_err(|error| {
                    unavailable(format!("its answer is not one of GetCallerIdentity: {error}"))
                })?;
                Ok(parsed.result.arn)
            }
            400..=403 => {
                let failed = quick_xml::de::from_str::<Failed>(&body).ok();
                let error =
                    failed.and_then(|failed| failed.error.or(failed.errors.map(|errors| errors.error)));
                let code = error.map_or_else(|| status.to_string(), |error| error.code);
                let is_name = code.len() <= 64 && code.chars().all(|c| c.is_ascii_alphanumeric() || c == ' ');
                let code = if is_name { code } else { status.to_string() };
                Err(Refusal::new(ErrorCode::AccessDenied, format!("AWS does not accept the proof: {code}")))
            }
            _ => Err(unavailable(status.to_string())),
        }
    }
}

/// The answer of `GetCallerIdentity`.
#[derive(Deserialize)]
struct Answer {
    #[serde(rename = "GetCallerIdentityResult")]
    result: Identity,
}

#[derive(Deserialize)]
struct Identity {
    #[serde(rename = "Arn")]
    arn: String,
}

/// A refusal of AWS: one error, or in some protocols a list.
#[derive(Deserialize)]
struct Failed {
    #[serde(rename = "Error")]
    error: Option<AwsError>,
    #[serde(rename = "Errors")]
    errors: Option<Errors>,
}

#[derive(Deserialize)]
struct Errors {
    #[serde(rename = "Error")]
    error: AwsError,
}

#[derive(Deserialize)]
struct AwsError {
    #[serde(rename = "Code")]
    code: String,
}

/// The callers of a service that AWS knows.
pub struct Callers {
    file: Arc<Followed<ByArn>>,
    sts: Arc<Sts>,
    agent: ureq::Agent,
    clock: Arc<dyn Clock>,
    remembered: Remembered<Arc<str>>,
    attempts: Attempts,
    slow: Slow,
}

impl std::fmt::Debug for Callers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Callers").field("sts", &self.sts).finish_non_exhaustive()
    }
}

impl Callers {
    /// Reads a file of callers.
    ///
    /// # Errors
    ///
    /// If it cannot be read, if others can read or write it, or if it names no callers in the right form.
    pub fn read(file: &Path, sts: Sts, clock: Arc<dyn Clock>) -> Result<Arc<Self>, FileError> {
        let config = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .timeout_global(Some(PATIENCE))
            // A redirection would send the proof elsewhere.
            .max_redirects(0)
            .build();
        Ok(Arc::new(Self {
            file: Arc::new(Followed::read(file, parse)?),
            sts: Arc::new(sts),
            agent: config.into(),
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
    /// As [`Callers::read`]; what the file said before holds then.
    pub fn look(&self) -> Result<(), FileError> {
        self.file.look()
    }

    /// Returns the roles of a caller in a graph; `None` if the file does not name it.
    pub(super) fn roles(&self, arn: &str, graph: &str) -> Option<Roles> {
        self.file.now().get(&identity(arn)?).map(|grants| grants.within(graph))
    }

    /// Returns who sends a proof, with the roles that hold in all graphs.
    pub(super) async fn verify(&self, text: &str, from: Option<IpAddr>) -> Result<Principal, Refusal> {
        let digest = self.remembered.digest(&[text]);
        if let Some(arn) = self.remembered.get(&digest, self.clock.now()) {
            return self.principal(arn);
        }
        let proof = Proof::read(text)?;
        let holds = proof.check(&self.sts.scope, self.clock.wall())?;
        let keys: Vec<Key> = from.map(Key::of_address).into_iter().collect();
        self.attempts.take(&keys, self.clock.now()).map_err(|wait| {
            let seconds = wait.as_secs() + 1;
            let message = format!("too many proofs that AWS does not accept: try again in {seconds} s");
            Refusal::new(ErrorCode::TooManyRequests, message)
        })?;
        let (sts, agent) = (self.sts.clone(), self.agent.clone());
        let asked = self.slow.run(move || sts.ask(&agent, &proof)).await.unwrap_or_else(|Busy| {
            let message = "too many proofs are being looked at: try again later";
            Err(Refusal::new(ErrorCode::TooManyRequests, message))
        });
        // Only what AWS refuses counts.
        if asked.as_ref().map_or_else(Refusal::code, |_| ErrorCode::Unavailable) != ErrorCode::AccessDenied {
            self.attempts.give_back(&keys);
        }
        let arn: Arc<str> = asked?.into();
        self.remembered.put(digest, arn.clone(), self.clock.now(), holds);
        self.principal(arn)
    }

    fn principal(&self, arn: Arc<str>) -> Result<Principal, Refusal> {
        let known = identity(&arn);
        match known.and_then(|known| self.file.now().get(&known).map(Grants::everywhere)) {
            Some(roles) => Ok(Principal::Iam(arn, roles)),
            None => {
                let message =
                    format!("AWS knows the caller as {}, who has no roles here", arn.escape_debug());
                Err(Refusal::new(ErrorCode::AccessDenied, message))
            }
        }
    }
}

#[cfg(test)]
#[path = "callers_tests.rs"]
mod tests;
