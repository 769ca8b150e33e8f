//! Tries of queries on the thread that read them.

use super::held::Held;
use super::output::Output;
use super::{Admission, Error, Request, Written};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tidegraph_engine::{Answer, InlineLimits, PendingAnswer, Reservation};
use tidegraph_types::CommitRequest;

/// The resources of a query that runs on a thread which serves other connections too, by default.
pub const INLINE: InlineLimits = InlineLimits {
    time: Duration::from_micros(500),
    // 256 KiB for operators, and 1 KiB for each row.
    memory_bytes: (256 << 10) + (1 << 20),
    rows: 1_024,
};

/// How often a query is tried so while all slots are taken.
const TRIES_WITHOUT_SLOT: usize = 3;

/// Largest answer that is written on such a thread. Writing this many bytes takes about as long as [`INLINE`] allows.
pub(super) const INLINE_ANSWER_BYTES: usize = 512 << 10;

/// The outcome of an inline try.
pub(super) enum Attempt {
    /// The query is done.
    Finished(Result<Written, Error>),
    /// A write whose answer holds once the transaction has committed.
    Commits(CommitRequest, Written),
    /// An answer that is too large to be written on this thread.
    Answered(Answer),
    /// The query has to run in a slot.
    NotInline,
}

impl Admission {
    /// Tries a query on this thread. Where it would wait for a slot, it is tried again: a short query may have lost its
    /// time to long ones that use the processors, and would then wait for one of these to end.
    pub(super) fn try_inline(
        &self,
        request: &Request,
        memory: &Arc<Reservation>,
        write: impl Fn(&Request, &Answer, &mut Output) -> io::Result<()>,
    ) -> Attempt {
        for _ in 1..TRIES_WITHOUT_SLOT {
            let attempt = self.try_once(request, memory, &write);
            if !matches!(attempt, Attempt::NotInline) || self.slots.has_free() {
                return attempt;
            }
        }
        self.try_once(request, memory, write)
    }

    fn try_once(
        &self,
        request: &Request,
        memory: &Arc<Reservation>,
        write: impl Fn(&Request, &Answer, &mut Output) -> io::Result<()>,
    ) -> Attempt {
        // `run_in_slot` refuses the id of another running query.
        if self.running.contains(&request.id) {
            return Attempt::NotInline;
        }
        let query = request.query(self, None, memory);
        let attempt = || match self.database.query_inline(&query, self.limits.inline) {
            None => Attempt::NotInline,
            Some(Err(error)) => Attempt::Finished(Err(error.into())),
            Some(Ok(PendingAnswer { answer, commit })) => {
                let mut output = Output::up_to(INLINE_ANSWER_BYTES, self.memory.reserve());
                match (write(request, &answer, &mut output), commit) {
                    (Ok(()), None) => {
                        Attempt::Finished(Ok(Written::new(output.into_part(Held::default()), &answer)))
                    }
                    (Ok(()), Some(commit)) => {
                        Attempt::Commits(commit, Written::new(output.into_part(Held::default()), &answer))
                    }
                    (Err(_), None) => Attempt::Answered(answer),
                    (Err(_), Some(_)) => Attempt::NotInline,
                }
            }
        };
        let attempt = catch_unwind(AssertUnwindSafe(attempt)).unwrap_or_else(|panic| {
            let reason = panic.downcast_ref::<String>().map(String::as_str);
            let reason = reason.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic");
            Attempt::Finished(Err(Error::defect(reason)))
        });
        // A write counts once it is known that it does not run again.
        if matches!(attempt, Attempt::Finished(_) | Attempt::Answered(_)) {
            self.accepted.fetch_add(1, Ordering::Relaxed);
        }
        attempt
    }
}
