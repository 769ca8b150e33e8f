//! What a message of Gremlin Server's protocol asks for, whether it came over WebSocket or in the body of a request
//! of HTTP.

use super::codes::Failure;
use indexmap::IndexMap;
use std::sync::Arc;
use tidegraph_engine::{GremlinVersion, Principal, Reservation};
use tidegraph_gremlin_io::{Argument, Format, Options, Request, Script};
use tidegraph_types::{Str, Value};
use uuid::Uuid;

/// The name of the graph's traversal source.
const SOURCE: &str = "g";

/// What a message asks for.
pub(crate) struct Asked {
    pub(crate) id: Uuid,
    pub(crate) format: Format,
    pub(crate) what: Script,
    /// The version of Gremlin that the message names.
    pub(crate) gremlin_version: Option<GremlinVersion>,
    /// Options of the request; those of its traversal win.
    pub(crate) options: Options,
    /// Whether the client sent steps, and wants traversers.
    pub(crate) traversers: bool,
    pub(crate) session: Option<Str>,
    /// Whether the session ends with this request.
    pub(crate) ends_session: bool,
    /// Whether the request is a transaction of its own, although it is one of a session.
    pub(crate) commits: bool,
    pub(crate) principal: Principal,
    pub(crate) memory: Option<Arc<Reservation>>,
}

/// Reads what a message asks for.
///
/// # Errors
///
/// If the message names what there is not, or an argument does not fit.
pub(crate) fn asked(
    request: Request,
    format: Format,
    principal: Principal,
    memory: Option<Arc<Reservation>>,
) -> Result<Asked, Failure> {
    let session = match (request.processor.as_str(), request.argument("session")) {
        ("" | "traversal", _) => None,
        ("session", Some(name)) => {
            Some(name.as_text().ok_or_else(|| Failure::argument("session must be a text"))?.clone())
        }
        ("session", None) => {
            return Err(Failure::argument("a request of a session names it: session is missing"));
        }
        (other, _) => {
            return Err(Failure::malformed(format!(
                "there is no processor {other:?}: use traversal or session"
            )));
        }
    };
    let mut options = Options::default();
    for name in ["evaluationTimeout", "batchSize", "materializeProperties"] {
        if let Some(value) = request.argument(name) {
            options.take(name, value).map_err(|error| Failure::argument(error.to_string()))?;
        }
    }
    let mut asked = Asked {
        id: request.id,
        format,
        what: Script::Commit,
        gremlin_version: version_of_language(&request)?,
        options,
        traversers: request.op == "bytecode",
        session,
        ends_session: false,
        commits: matches!(request.argument("manageTransaction"), Some(Argument::Value(Value::Bool(true)))),
        principal,
        memory,
    };
    match request.op.as_str() {
        "close" => {
            asked.ends_session = true;
            return Ok(asked);
        }
        "bytecode" => {
            check_aliases(&request)?;
            let Some(Argument::Bytecode(bytecode)) = request.argument("gremlin") else {
                return Err(Failure::argument("a request of the operation bytecode has bytecode in gremlin"));
            };
            asked.what = Script::of(bytecode).map_err(|error| Failure::argument(error.to_string()))?;
        }
        "eval" => {
            check_aliases(&request)?;
            asked.what = script(&request)?;
        }
        // The client is known already.
        "authentication" => asked.ends_session = true,
        other => {
            let message =
                format!("there is no operation {other:?}: use bytecode, eval, authentication or close");
            return Err(Failure::malformed(message));
        }
    }
    if asked.session.is_none() && !matches!(asked.what, Script::Traversal { .. }) {
        return Err(Failure::argument("g.tx() needs a session: begin the transaction with g.tx().begin()"));
    }
    Ok(asked)
}

/// Returns the version of Gremlin in the name of a request's language.
fn version_of_language(request: &Request) -> Result<Option<GremlinVersion>, Failure> {
    match request.argument("language") {
        None => Ok(None),
        Some(language) => {
            let name = language.as_text().map_or("", Str::as_str);
            GremlinVersion::of_language(name).map_err(|error| Failure::argument(error.to_string()))
        }
    }
}

/// Reads the text of a request and its bindings.
fn script(request: &Request) -> Result<Script, Failure> {
    let text = request.argument("gremlin").and_then(Argument::as_text);
    let text =
        text.ok_or_else(|| Failure::argument("a request of the operation eval has a text in gremlin"))?;
    match text.trim().trim_end_matches(';') {
        "g.tx().commit()" => return Ok(Script::Commit),
        "g.tx().rollback()" => return Ok(Script::Rollback),
        _ => {}
    }
    let mut parameters = IndexMap::new();
    match request.argument("bindings") {
        None | Some(Argument::Value(Value::Null)) => {}
        Some(Argument::Map(entries)) => {
            for (name, value) in entries {
                let name = name.as_text().ok_or_else(|| Failure::argument("names of bindings are texts"))?;
                let value = value.to_value().map_err(|found| {
                    Failure::argument(format!("the binding {name:?} must be a value, not {found}"))
                })?;
                parameters.insert(name.clone(), value);
            }
        }
        Some(other) => {
            return Err(Failure::argument(format!("bindings must be a map, not {}", other.describe())));
        }
    }
    Ok(Script::Traversal { text: text.to_string(), parameters, options: Options::default() })
}

/// Checks that a request means the one graph that there is.
fn check_aliases(request: &Request) -> Result<(), Failure> {
    let Some(Argument::Map(aliases)) = request.argument("aliases") else { return Ok(()) };
    for (name, source) in aliases {
        if let Some(other) = source.as_text().filter(|source| *source != SOURCE) {
            let message = format!("there is no traversal source {other:?}: the graph's is {SOURCE:?}");
            return Err(Failure::argument(message));
        }
        if let Some(other) = name.as_text().filter(|name| *name != SOURCE) {
            return Err(Failure::argument(format!("the alias {other:?} is not supported: use {SOURCE:?}")));
        }
    }
    Ok(())
}
