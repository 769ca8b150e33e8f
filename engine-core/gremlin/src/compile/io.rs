//! `g.io(file)` with `read()`: creates the elements of a file that holds a graph.
//!
//! Which files a request may read is not known here. `write()` is refused: a service writes no files for its clients.

use super::{Compiler, Cursor, Flow, Result, wrong_arguments};
use crate::ast::{Arg, ArgKind, Step, StepName};
use crate::fault::Fault;
use crate::lexer::shorten;
use tidegraph_plan::Op;
use tidegraph_types::{GraphFormat, NoFormat};

/// Keys of `with()`, as TinkerPop's class `IO` names them.
const READER: &str = "~tinkerpop.io.reader";
const REGISTRY: &str = "~tinkerpop.io.registry";

impl Compiler {
    /// `io(file)`, its options, and `read()`
    pub(super) fn io(
        &mut self,
        flow: &mut Flow,
        cursor: &mut Cursor<'_, '_>,
        step: &Step<'_>,
        index: usize,
    ) -> Result<()> {
        let [file] = step.args.as_slice() else { return Err(wrong_arguments(step)) };
        if !matches!(file.kind, ArgKind::Text(_) | ArgKind::Variable(_)) {
            return Err(wrong_arguments(step));
        }
        if index > 0 || !flow.scope.root || flow.scope.cur.is_some() {
            return Err(Fault::syntax(step.at, "io() follows g".into()));
        }
        let mut format = None;
        for with in cursor.take_all(StepName::With) {
            match with.args.as_slice() {
                [Arg { kind: ArgKind::Text(key), .. }, reader] if key == READER => {
                    format = Some(named_format(with, reader)?);
                }
                [Arg { kind: ArgKind::Text(key), at }, _] if key == REGISTRY => {
                    return Err(Fault::unsupported(*at, "IO.registry, whose values are classes of Java"));
                }
                [Arg { kind: ArgKind::Text(key), at }, _] => {
                    let key = shorten(key);
                    return Err(Fault::unsupported(*at, format!("with('{key}') of io() and read()")));
                }
                _ => return Err(wrong_arguments(with)),
            }
        }
        match cursor.peek() {
            Some(read) if read.name == StepName::Read && read.args.is_empty() => cursor.next += 1,
            Some(write) if write.name == StepName::Write => {
                return Err(Fault::unsupported(write.at, "write() of io()"));
            }
            _ => return Err(Fault::syntax(step.at, "io() is followed by its with() and by read()".into())),
        }
        if let (None, ArgKind::Text(name)) = (format, &file.kind) {
            format = Some(GraphFormat::of_file(name).map_err(|none| match none {
                NoFormat::Gryo => gryo(file.at),
                NoFormat::Unknown => Fault::syntax(
                    file.at,
                    format!(
                        "the name '{}' tells no format: end it with .json or .xml, or add \
                         with(IO.reader, IO.graphson) or with(IO.reader, IO.graphml)",
                        shorten(name)
                    ),
                ),
            })?);
        }
        let url = self.expr(file)?;
        let cardinality = self.settings.default_cardinality;
        flow.wrap(|input| Op::ReadGraph { input, url, format, cardinality });
        flow.drop_rows();
        Ok(())
    }
}

/// Returns the format that a reader reads.
fn named_format(with: &Step<'_>, reader: &Arg<'_>) -> Result<GraphFormat> {
    let Some(name) = reader.text() else { return Err(wrong_arguments(with)) };
    GraphFormat::of_name(name).map_err(|none| match none {
        NoFormat::Gryo => gryo(reader.at),
        NoFormat::Unknown => Fault::unsupported(
            reader.at,
            format!("the reader '{}', expected graphson or graphml", shorten(name)),
        ),
    })
}

fn gryo(at: usize) -> Fault {
    Fault::unsupported(at, "the format gryo, which only Java reads")
}
