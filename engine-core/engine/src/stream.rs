//! Rows that leave while their request runs.
//!
//! A [`RowSink`] gets the rows of a request that only reads, batch by batch. In a transaction of several requests it gets
//! those of writes, too, once all writes of the request are performed: nobody takes them for committed.
//! It may wait for the receiver of the rows, which is
//! the back pressure: the next batch is made when it returns. The version that the request reads stays pinned meanwhile,
//! so the time limit of the request holds for the waiting too: the sink checks the [`Interrupt`] that it is given.
//!
//! What must never happen: rows of an attempt that is repeated reach a sink; nor do rows of a request that is committed
//! by itself, before its commit.

use crate::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tidegraph_exec::view::Counters;
use tidegraph_exec::{Execution, Interrupt, Stop};
use tidegraph_types::{Str, Value, Version};

/// What is known of an answer before its rows.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Head {
    /// Names of the columns; the one column of Gremlin is named `result`.
    pub columns: Arc<[Str]>,
    /// The version that is read.
    pub version: Version,
    /// Whether the request changed the graph as its transaction sees it.
    pub wrote: bool,
    /// Counts of what it changed there.
    pub counters: Counters,
}

/// Takes the rows of an answer while its request runs, on the request's thread.
pub trait RowSink {
    /// Takes the next rows, at least one. They count as memory of the request until this returns. If it waits, it checks
    /// `interrupt` from time to time.
    ///
    /// # Errors
    ///
    /// Why the request must stop: what `interrupt` says, or `Cancelled` if nobody wants more rows.
    fn take(&mut self, head: &Head, rows: Vec<Vec<Value>>, interrupt: &dyn Interrupt) -> Result<(), Stop>;
}

/// Where the rows of a request go.
pub(crate) struct Rows<'s> {
    /// `None`: they are kept for the answer.
    sink: Option<&'s mut dyn RowSink>,
    were_handed: bool,
    /// Set when the sink is given rows.
    tells: Option<Arc<AtomicBool>>,
}

impl<'s> Rows<'s> {
    pub(crate) fn kept() -> Self {
        Self { sink: None, were_handed: false, tells: None }
    }

    pub(crate) fn handed_to(sink: &'s mut dyn RowSink) -> Self {
        Self { sink: Some(sink), were_handed: false, tells: None }
    }

    /// Whether the sink was given rows.
    pub(crate) fn were_handed(&self) -> bool {
        self.were_handed
    }

    /// Sets a flag as soon as the sink is given rows.
    pub(crate) fn tell(&mut self, flag: Arc<AtomicBool>) {
        self.tells = Some(flag);
    }

    /// Makes all rows, and returns those that are kept: all, if `keeps` says that none may leave yet.
    pub(crate) fn take_all(
        &mut self,
        execution: &mut Execution<'_, '_>,
        head: &Head,
        keeps: bool,
        interrupt: &dyn Interrupt,
    ) -> Result<Vec<Vec<Value>>, Error> {
        let Some(sink) = self.sink.as_deref_mut().filter(|_| !keeps) else {
            return Ok(execution.rows()?);
        };
        while let Some(rows) = execution.next_rows()? {
            self.were_handed = true;
            if let Some(flag) = self.tells.take() {
                flag.store(true, Ordering::Relaxed);
            }
            sink.take(head, rows, interrupt).map_err(tidegraph_exec::Error::from)?;
            execution.release_rows();
        }
        Ok(vec![])
    }
}
