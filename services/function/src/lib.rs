//! What the Lambda functions of state machines have in common: configuration from variables, logs, and the loop that
//! answers events.
//!
//! Flow: Lambda starts a program under the name `bootstrap`; [`main()`] reads its configuration and asks Lambda's Runtime
//! API for events until Lambda ends the process. Each event is answered on a thread that may block.
//!
//! Must never: end the process because of an event. A step that fails is an answer with the name of its error, which
//! the state machine's `Catch` and `Retry` name.

use lambda_runtime::{Diagnostic, LambdaEvent, service_fn};
use serde::Serialize;
use serde_json::Value;
use std::fmt::Display;
use std::process::ExitCode;
use std::sync::Arc;
use tidegraph_platform::chain;

/// A step that failed: what the state machine gets as `Error` and `Cause`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Failure {
    name: String,
    message: String,
}

impl Failure {
    /// Makes the failure of an error.
    ///
    /// `name` is what the state machine's `Retry` and `Catch` compare with.
    pub fn new(name: &str, error: &impl Display) -> Self {
        Self { name: name.to_owned(), message: error.to_string() }
    }
}

impl From<Failure> for Diagnostic {
    fn from(Failure { name, message }: Failure) -> Self {
        Self { error_type: name, error_message: message }
    }
}

/// Returns the environment variables.
///
/// Bytes that are not UTF-8 are replaced; a variable of Tidegraph with such a value is refused by its reader.
#[expect(clippy::disallowed_methods, reason = "configuration is read here")]
pub fn variables() -> impl Iterator<Item = (String, String)> {
    let text = |value: std::ffi::OsString| value.to_string_lossy().into_owned();
    std::env::vars_os().map(move |(name, value)| (text(name), text(value)))
}

/// Runs a program to its end and returns its exit code. An error is logged with its causes.
#[must_use]
pub fn exit_code(program: &str, ended: anyhow::Result<()>) -> ExitCode {
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!("{program}: {}", chain(error.as_ref()));
            ExitCode::FAILURE
        }
    }
}

/// The whole of a function: writes logs, makes what answers events from the variables, and answers until Lambda ends
/// the process.
///
/// `start` makes the function that answers one event. That function may block.
pub fn main<F, A>(
    program: &'static str,
    start: impl FnOnce(&mut dyn Iterator<Item = (String, String)>) -> anyhow::Result<F>,
) -> ExitCode
where
    F: Fn(Value) -> Result<A, Failure> + Send + Sync + 'static,
    A: Serialize + Send + 'static,
{
    let telemetry = tidegraph_telemetry::start(program);
    exit_code(program, telemetry.and_then(|_telemetry| start(&mut variables()).and_then(answer_events)))
}

fn answer_events<F, A>(answer: F) -> anyhow::Result<()>
where
    F: Fn(Value) -> Result<A, Failure> + Send + Sync + 'static,
    A: Serialize + Send + 'static,
{
    let answer = Arc::new(answer);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let each = service_fn(move |event: LambdaEvent<Value>| {
        let answer = answer.clone();
        async move { on_own_thread(&answer, event.payload).await.map_err(Diagnostic::from) }
    });
    let ended = runtime.block_on(lambda_runtime::run(each));
    ended.map_err(|error| anyhow::anyhow!("the Runtime API failed: {error}"))
}

/// Answers one event on a thread of its own. A panic is a failure named `Defect`.
async fn on_own_thread<F, A>(answer: &Arc<F>, event: Value) -> Result<A, Failure>
where
    F: Fn(Value) -> Result<A, Failure> + Send + Sync + 'static,
    A: Send + 'static,
{
    let answer = answer.clone();
    let answered = tokio::task::spawn_blocking(move || answer(event)).await;
    let answered = answered.unwrap_or_else(|panicked| Err(Failure::new("Defect", &panicked)));
    if let Err(failure) = &answered {
        tracing::warn!(error = failure.message, name = failure.name, "a step failed");
    }
    answered
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn answered(answer: fn(Value) -> Result<Value, Failure>, event: Value) -> Result<Value, Failure> {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(on_own_thread(&Arc::new(answer), event))
    }

    #[test]
    fn an_event_gets_its_answer_or_a_named_failure() {
        assert_eq!(answered(Ok, json!({"step": 1})), Ok(json!({"step": 1})));
        let failed = answered(|event| Err(Failure::new("Unreadable", &event)), json!(7));
        assert_eq!(failed, Err(Failure { name: "Unreadable".into(), message: "7".into() }));
    }

    #[test]
    fn a_panic_is_a_failure() {
        let failure = answered(|event| panic!("{event}"), json!("boom")).unwrap_err();
        assert_eq!(failure.name, "Defect");
        assert!(failure.message.contains("panic"), "{failure:?}");
    }
}
