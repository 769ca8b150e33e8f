//! Explanations of queries: `/{language}/explain`, `/gremlin/profile` and the parameter `explain` of `/openCypher`. The
//! answer is text, HTML or JSON, as the header `Accept` asks.

use super::body::Fields;
use super::queries::Origin;
use super::{Failure, Service, gremlin, opencypher};
use crate::json::plain;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, header};
use axum::response::Response;
use std::fmt::Write as _;
use std::io::{self, Write};
use tidegraph_engine::{Answer, Explain};
use tidegraph_types::{ErrorCode, Value};

/// `/openCypher/explain`: explains the query in the parameter `query`, in the mode of the parameter `explain`.
///
/// # Errors
///
/// `MissingParameter` or `InvalidParameter` for a wrong request; the failure of the query or of its admission.
pub async fn open_cypher(State(service): State<Service>, request: Request) -> Result<Response, Failure> {
    let origin = Origin::of(&request);
    let (fields, headers) = Fields::read(&service, request).await?;
    let explain = mode(&fields)?.unwrap_or(Explain::Plan);
    opencypher::run(&service, origin, &fields, &headers, Some(explain)).await
}

/// `/gremlin/explain`: answers with the plan of a traversal, which is not run.
///
/// # Errors
///
/// As [`open_cypher`].
pub async fn traversal(State(service): State<Service>, request: Request) -> Result<Response, Failure> {
    gremlin::run(&service, request, Some(Explain::Plan)).await
}

/// `/gremlin/profile`: runs a traversal and answers with what its operators did.
///
/// # Errors
///
/// As [`open_cypher`].
pub async fn profile(State(service): State<Service>, request: Request) -> Result<Response, Failure> {
    gremlin::run(&service, request, Some(Explain::Profile)).await
}

/// Returns what the parameter `explain` asks for.
///
/// # Errors
///
/// `InvalidParameter` for another mode than static, dynamic and details.
pub(super) fn mode(fields: &Fields) -> Result<Option<Explain>, Failure> {
    let Some(mode) = fields.text("explain")? else { return Ok(None) };
    match mode.to_ascii_lowercase().as_str() {
        "static" => Ok(Some(Explain::Plan)),
        "dynamic" | "details" => Ok(Some(Explain::Profile)),
        _ => {
            let message = format!("parameter \"explain\" must be static, dynamic or details, not {mode:?}");
            Err(Failure::new(ErrorCode::InvalidParameter, message))
        }
    }
}

/// The form of an explanation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Form {
    Text,
    Html,
    Json,
}

impl Form {
    /// Returns the first form that the client accepts. Text is the default.
    pub(super) fn accepted(headers: &HeaderMap) -> Self {
        let accept = headers.get(header::ACCEPT).and_then(|v| v.to_str().ok()).unwrap_or_default();
        let kinds = accept.split(',').map(|kind| kind.split(';').next().unwrap_or_default().trim());
        kinds
            .filter_map(|kind| match kind {
                "text/plain" => Some(Self::Text),
                "text/html" => Some(Self::Html),
                kind if kind.ends_with("json") => Some(Self::Json),
                _ => None,
            })
            .next()
            .unwrap_or(Self::Text)
    }

    /// Returns the value of `Content-Type`.
    pub(super) fn media_type(self) -> &'static str {
        match self {
            Self::Text => "text/plain; charset=utf-8",
            Self::Html => "text/html; charset=utf-8",
            Self::Json => "application/json",
        }
    }

    /// Writes an explanation.
    ///
    /// # Errors
    ///
    /// The errors of the output.
    pub(super) fn write(self, answer: &Answer, output: &mut impl Write) -> io::Result<()> {
        match self {
            Self::Json => {
                let results = plain::Results { columns: &answer.columns, rows: &answer.rows };
                Ok(serde_json::to_writer(output, &results)?)
            }
            Self::Text => output.write_all(text(answer).as_bytes()),
            Self::Html => {
                let text = text(answer).replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
                write!(output, "<pre>\n{text}</pre>\n")
            }
        }
    }
}

/// Returns the rows as text: lines, or a table if there are several columns.
fn text(answer: &Answer) -> String {
    let cells: Vec<Vec<String>> = answer.rows.iter().map(|row| row.iter().map(cell).collect()).collect();
    let mut text = String::new();
    if answer.columns.len() == 1 {
        for line in cells.iter().flatten() {
            let _ = writeln!(text, "{line}");
        }
        return text;
    }
    let names: Vec<String> = answer.columns.iter().map(|name| name.to_string()).collect();
    let width = |at: usize| {
        cells.iter().chain([&names]).filter_map(|row| row.get(at)).map(|cell| cell.chars().count()).max()
    };
    let widths: Vec<usize> = (0..names.len()).map(|at| width(at).unwrap_or(0)).collect();
    for row in [&names].into_iter().chain(&cells) {
        for (at, (cell, width)) in row.iter().zip(&widths).enumerate() {
            // The first column is text; numbers are easier to compare at the right.
            let _ = if at == 0 { write!(text, "{cell:<width$}") } else { write!(text, "  {cell:>width$}") };
        }
        text.push('\n');
    }
    text
}

fn cell(value: &Value) -> String {
    match value {
        Value::String(text) => text.to_string(),
        Value::Double(number) => format!("{number:.3}"),
        Value::Long(number) => number.to_string(),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    #[test]
    fn the_first_known_form_is_answered() {
        let of = |accept: &'static str| {
            Form::accepted(&HeaderMap::from_iter([(header::ACCEPT, HeaderValue::from_static(accept))]))
        };
        assert_eq!(of("*/*"), Form::Text);
        assert_eq!(of("text/html;q=0.9, application/json"), Form::Html);
        assert_eq!(of("image/png, application/json"), Form::Json);
        assert_eq!(Form::accepted(&HeaderMap::new()), Form::Text);
    }
}
