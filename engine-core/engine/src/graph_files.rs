//! The files that `io()` reads: those that the options allow, found as a bulk load finds its sources.

use crate::Database;
use crate::csv_files::of_load;
use tidegraph_exec::{FileError, GraphElements, GraphFiles, GraphStep, Interrupt};
use tidegraph_load::graph_file::{self, GraphReader, Step};
use tidegraph_load::source::Access;
use tidegraph_types::{Elements, FileElement, GraphFormat};

impl GraphFiles for Database {
    fn open_graph(
        &self,
        url: &str,
        format: GraphFormat,
        elements: Elements,
        interrupt: &dyn Interrupt,
    ) -> Result<Box<dyn GraphElements>, FileError> {
        let cancelled = || interrupt.check().is_err();
        let access = Access { cancelled: &cancelled, ..Access::to(&self.options.load_from) };
        let reader = graph_file::open(url, format, elements, &access).map_err(of_load)?;
        Ok(Box::new(Reader(reader)))
    }
}

struct Reader(GraphReader);

impl GraphElements for Reader {
    fn file(&self) -> &str {
        self.0.file()
    }

    fn step(&mut self, found: &mut Vec<FileElement>) -> Result<GraphStep, FileError> {
        Ok(match self.0.step(found).map_err(of_load)? {
            Step::More => GraphStep::More,
            Step::End => GraphStep::End,
        })
    }

    fn held_bytes(&self) -> usize {
        self.0.held_bytes()
    }
}
