//! Cold starts of a worker as a Lambda function: from the start of the process to the end of its first answer, behind a
//! Runtime API that this process serves. The map and the nodes are on this machine, so the figures do not include the
//! network of a region.

use super::{COLD_START_MS, POINT, id};
use crate::Flags;
use crate::cluster::Cluster;
use crate::driver::median;
use crate::report::{Figure, Report};
use anyhow::{Context, ensure};
use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use serde_json::json;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};
use tokio::sync::mpsc;

/// A step of the function with its time.
enum Step {
    AsksForTheFirstEvent(Instant),
    Answered(Instant, Bytes),
}

/// The Runtime API of one function.
#[derive(Clone)]
struct Api {
    event: Arc<str>,
    asked: Arc<AtomicBool>,
    steps: mpsc::UnboundedSender<Step>,
}

/// A process that ends when this value is dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Measures starts of functions, one after the other.
pub fn cold_starts(
    flags: &Flags,
    report: &mut Report,
    cluster: &Cluster,
    vertices: u64,
) -> anyhow::Result<()> {
    ensure!(cluster.function.exists(), "there is no {}", cluster.function.display());
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let count = if flags.quick { 5 } else { 30 };
    let middle = |values: Vec<f64>| median(values).context("no starts");
    let beside = "exec of the same program that ends at once";
    for (mode, name) in [("stream", "streamed"), ("buffer", "whole")] {
        let (mut ready, mut answered, mut floor) = (vec![], vec![], vec![]);
        // The first start reads the program from disk, which neither Lambda nor a second start on this machine does.
        for number in 0..=count {
            let (asks, answers) = runtime.block_on(cold_start(cluster, mode, number as u64 % vertices))?;
            let least = exits_at_once(cluster)?;
            if number > 0 {
                ready.push(asks);
                answered.push(answers);
                floor.push(least);
            }
        }
        let worst = answered.iter().copied().fold(0.0, f64::max);
        let floor = middle(floor)?;
        if mode == "stream" {
            let metric = "cold start, exec to asking for an event, p50";
            report.add(Figure::cost(metric, "ms", middle(ready)?).beside(beside, floor));
        }
        let whole =
            Figure::cost(format!("cold start, exec to first answer, {name}, p50"), "ms", middle(answered)?);
        report.add(whole.beside(beside, floor).target(COLD_START_MS));
        report.add(Figure::cost(format!("cold start, exec to first answer, {name}, worst"), "ms", worst));
    }
    Ok(())
}

/// Returns the milliseconds until the function asks for its first event, and until it has answered the event.
#[allow(clippy::disallowed_methods, reason = "this measures the world")]
async fn cold_start(cluster: &Cluster, mode: &str, number: u64) -> anyhow::Result<(f64, f64)> {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let (steps, mut seen) = mpsc::unbounded_channel();
    let api = Api { event: event(number).into(), asked: Arc::default(), steps };
    let router = Router::new()
        .route("/2018-06-01/runtime/invocation/next", get(next))
        .route("/2018-06-01/runtime/invocation/{id}/response", post(response))
        .with_state(api);
    let server = tokio::spawn(async move { axum::serve(listener, router).await });
    let mut command = Command::new(&cluster.function);
    command
        .env_clear()
        .envs(&cluster.environment)
        .env("AWS_LAMBDA_RUNTIME_API", address.to_string())
        .env("AWS_LAMBDA_FUNCTION_NAME", "tidegraph")
        .env("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "1769")
        .env("AWS_LAMBDA_FUNCTION_VERSION", "1")
        .env("TIDEGRAPH_RESPONSES", mode)
        .env("TIDEGRAPH_LOG", "warn")
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    let start = Instant::now();
    let _running = Running(command.spawn()?);
    let mut asked = None;
    let (asked, answered, body) = loop {
        let step = tokio::time::timeout(Duration::from_secs(30), seen.recv()).await;
        match step.context("the function does not answer")?.context("the Runtime API ended")? {
            Step::AsksForTheFirstEvent(at) => asked = Some(at),
            Step::Answered(at, body) => {
                break (asked.context("the function answered before it asked for an event")?, at, body);
            }
        }
    };
    server.abort();
    let expected = format!("\"age\":{}", number % 100);
    // In the mode `buffer` the answer is text inside a JSON document.
    let text = String::from_utf8_lossy(&body).replace('\\', "");
    ensure!(text.contains(&expected), "the function answered {text:?}");
    let since = |end: Instant| end.duration_since(start).as_secs_f64() * 1e3;
    Ok((since(asked), since(answered)))
}

/// Returns the milliseconds of the process itself: without an environment it ends at once.
#[allow(clippy::disallowed_methods, reason = "this measures the world")]
fn exits_at_once(cluster: &Cluster) -> anyhow::Result<f64> {
    let start = Instant::now();
    let mut command = Command::new(&cluster.function);
    command.env_clear().stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let status = command.status()?;
    ensure!(!status.success(), "the function runs without an environment");
    Ok(start.elapsed().as_secs_f64() * 1e3)
}

#[allow(clippy::disallowed_methods, reason = "this measures the world")]
async fn next(State(api): State<Api>) -> Response {
    if api.asked.swap(true, Ordering::AcqRel) {
        // There is no second event.
        std::future::pending::<()>().await;
    }
    // There is no receiver if the run failed.
    let _ = api.steps.send(Step::AsksForTheFirstEvent(Instant::now()));
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let deadline = (now + Duration::from_secs(30)).as_millis().to_string();
    let headers = [
        ("content-type", "application/json"),
        ("lambda-runtime-aws-request-id", "8476a536-e9f4-11e8-9739-2dfe598c3fcd"),
        ("lambda-runtime-invoked-function-arn", "arn:aws:lambda:eu-west-3:123456789012:function:tidegraph"),
        ("lambda-runtime-deadline-ms", deadline.as_str()),
    ];
    (headers, api.event.to_string()).into_response()
}

#[allow(clippy::disallowed_methods, reason = "this measures the world")]
async fn response(State(api): State<Api>, body: Bytes) -> StatusCode {
    let _ = api.steps.send(Step::Answered(Instant::now(), body));
    StatusCode::ACCEPTED
}

/// Returns the event of a point read in the form of API Gateway's REST API.
fn event(number: u64) -> String {
    let body = json!({"query": POINT, "parameters": {"id": id(number).as_str()}}).to_string();
    let event = json!({
        "resource": "/{proxy+}",
        "path": "/openCypher",
        "httpMethod": "POST",
        "headers": {"Content-Type": "application/json", "Host": "abcdef.execute-api.eu-west-3.amazonaws.com"},
        "multiValueHeaders": {"Content-Type": ["application/json"]},
        "queryStringParameters": null,
        "multiValueQueryStringParameters": null,
        "pathParameters": {"proxy": "openCypher"},
        "stageVariables": null,
        "requestContext": {
            "accountId": "123456789012", "apiId": "abcdef", "httpMethod": "POST", "identity": {},
            "path": "/prod/openCypher", "protocol": "HTTP/1.1", "requestId": "1", "resourceId": "1",
            "resourcePath": "/{proxy+}", "stage": "prod",
        },
        "body": body,
        "isBase64Encoded": false,
    });
    event.to_string()
}
