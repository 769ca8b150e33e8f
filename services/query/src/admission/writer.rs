//! How a protocol writes an answer.

use super::Output;
use std::io;
use std::sync::Arc;
use tidegraph_engine::Answer;
use tidegraph_types::{Str, Value};

/// Writes an answer in the form of a protocol, row by row. A clone begins another answer of the same request.
pub trait Writer: Clone + Send + 'static {
    /// Writes what comes before the rows.
    ///
    /// # Errors
    ///
    /// Those of the output.
    fn begin(&mut self, columns: &Arc<[Str]>, out: &mut Output) -> io::Result<()>;

    /// Writes a row, and says with [`Output::cut`] or [`Output::end_message`] what may be sent.
    ///
    /// # Errors
    ///
    /// Those of the output, or that something is too large for the format.
    fn row(&mut self, row: &[Value], out: &mut Output) -> io::Result<()>;

    /// Writes what follows the rows.
    ///
    /// # Errors
    ///
    /// Those of the output.
    fn end(&mut self, out: &mut Output) -> io::Result<()>;

    /// Writes a whole answer.
    ///
    /// # Errors
    ///
    /// As [`Writer::row`].
    fn whole(&self, answer: &Answer, out: &mut Output) -> io::Result<()> {
        let mut writer = self.clone();
        writer.begin(&answer.columns, out)?;
        for row in &answer.rows {
            writer.row(row, out)?;
        }
        writer.end(out)
    }
}
