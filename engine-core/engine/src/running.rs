//! Transactions that are open: the commands that list and end them.
//!
//! The engine knows no transaction but the one that it runs. A service keeps the list and hands it on with each request
//! ([`Query::running`]).

use crate::deadline::Deadline;
use crate::plans::CachedPlan;
use crate::query::{Answer, Query};
use crate::{Database, Error, Principal};
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use tidegraph_opencypher::TransactionCommand;
use tidegraph_plan::Plan;
use tidegraph_types::temporal::Duration;
use tidegraph_types::{ErrorCode, Temporal, Value};

/// The open transactions of a service. A query outside of a transaction counts as one.
pub trait Running: Sync + fmt::Debug {
    /// Returns those that `asker` may see: its own, or with the role admin all.
    fn visible_to(&self, asker: &Principal) -> Vec<RunningTransaction>;

    /// Asks one to end. Returns whose it is; `None` if there is none that `asker` may see.
    fn terminate(&self, id: &str, asker: &Principal) -> Option<Principal>;
}

/// An open transaction, as it was when the list was read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RunningTransaction {
    /// Id of the transaction. That of a query outside of a transaction is the id of the query.
    pub id: String,
    /// The query that waits or runs; `None` between two queries of a transaction.
    pub query: Option<RunningStatement>,
    /// Who began it.
    pub principal: Principal,
    /// The address of the client, if the service knows it.
    pub address: Option<SocketAddr>,
    /// The protocol.
    pub protocol: &'static str,
    /// When it began.
    pub started: jiff::Timestamp,
    /// Whether it was asked to end.
    pub terminated: bool,
}

/// A query of an open transaction.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RunningStatement {
    /// Id of the query.
    pub id: String,
    /// Its text.
    pub text: String,
    /// When it arrived.
    pub started: jiff::Timestamp,
}

impl Database {
    /// Returns the rows of `SHOW TRANSACTIONS`. `ids`: a plan that yields the ids of those to show.
    pub(crate) fn show_transactions(
        &self,
        ids: Option<&Plan>,
        query: &Query<'_>,
        deadline: &Deadline<'_>,
    ) -> Result<Vec<Vec<Value>>, Error> {
        let ids = ids.map(|plan| self.transaction_ids(plan, query, deadline)).transpose()?;
        self.shown_transactions(ids.as_deref(), query)
    }

    fn shown_transactions(
        &self,
        ids: Option<&[String]>,
        query: &Query<'_>,
    ) -> Result<Vec<Vec<Value>>, Error> {
        let running = running(query)?;
        let now = self.now();
        let mut all = running.visible_to(query.principal);
        all.retain(|one| ids.is_none_or(|ids| ids.contains(&one.id)));
        all.sort_by(|a, b| (a.started, &a.id).cmp(&(b.started, &b.id)));
        Ok(all.iter().map(|one| row(one, now)).collect())
    }

    /// Ends transactions, and returns the rows of `TERMINATE TRANSACTIONS`: one for each id, in their order.
    pub(crate) fn terminate_transactions(
        &self,
        ids: &Plan,
        query: &Query<'_>,
        deadline: &Deadline<'_>,
    ) -> Result<Vec<Vec<Value>>, Error> {
        terminated(self.transaction_ids(ids, query, deadline)?, query)
    }

    /// Runs several such commands: each for every row of the one before.
    pub(crate) fn run_composed(
        &self,
        commands: &[TransactionCommand],
        query: &Query<'_>,
        deadline: &Deadline<'_>,
    ) -> Result<Answer, Error> {
        let mut answer: Option<Answer> = None;
        for TransactionCommand { terminates, ids, yields, over_rows } in commands {
            let plan = |plan: &Plan| self.planned_part(plan.clone(), false, query, deadline);
            let (ids, over_rows) = (ids.as_deref().map(plan).transpose()?, plan(over_rows)?);
            let before = answer.map_or_else(|| vec![vec![]], |answer| answer.rows);
            let (mut rows, mut bytes) = (vec![], 0);
            for row in before {
                deadline.ensure()?;
                let ids = ids.as_ref().map(|ids| self.ids_over(ids, row.clone(), query, deadline));
                let found = match ids.transpose()? {
                    Some(ids) if *terminates => terminated(ids, query)?,
                    ids => self.shown_transactions(ids.as_deref(), query)?,
                };
                for own in found {
                    let yielded = yields.iter().filter_map(|at| own.get(*at)).cloned();
                    let joined = Value::list(row.iter().cloned().chain(yielded).collect());
                    bytes += (size_of::<Value>() + joined.heap_bytes()) as u64;
                    self.ensure_room(bytes, query)?;
                    rows.push(joined);
                }
            }
            answer = Some(self.run_part(&over_rows, &rows, query, deadline)?);
        }
        answer.ok_or_else(|| Error::new(ErrorCode::MalformedQuery, "no command"))
    }

    /// Refuses rows of commands that take more memory than a query may.
    fn ensure_room(&self, bytes: u64, query: &Query<'_>) -> Result<(), Error> {
        let limit = self.options.query_memory_bytes;
        if bytes > limit {
            let message =
                format!("the rows of the commands need more than the memory limit of {limit} bytes");
            return Err(Error::new(ErrorCode::QueryLimitExceeded, message));
        }
        query
            .memory
            .map_or(Ok(()), |memory| Ok(memory.grow_to(bytes).map_err(tidegraph_exec::Error::from)?))
    }

    /// Evaluates the ids that a command names.
    fn transaction_ids(
        &self,
        plan: &Plan,
        query: &Query<'_>,
        deadline: &Deadline<'_>,
    ) -> Result<Vec<String>, Error> {
        let planned = self.planned_part(plan.clone(), false, query, deadline)?;
        self.ids_over(&planned, vec![], query, deadline)
    }

    /// Evaluates ids over a row.
    fn ids_over(
        &self,
        planned: &CachedPlan,
        row: Vec<Value>,
        query: &Query<'_>,
        deadline: &Deadline<'_>,
    ) -> Result<Vec<String>, Error> {
        let answer = self.run_part(planned, &[Value::list(row)], query, deadline)?;
        let mut ids = vec![];
        for value in answer.rows.into_iter().flatten() {
            match &value {
                Value::List(values) => ids.extend(values.iter().map(id).collect::<Result<Vec<_>, _>>()?),
                one => ids.push(id(one)?),
            }
        }
        Ok(ids)
    }
}

/// Ends transactions, and returns a row for each id.
fn terminated(ids: Vec<String>, query: &Query<'_>) -> Result<Vec<Vec<Value>>, Error> {
    let running = running(query)?;
    let end = |id: String| {
        let (name, message) = match running.terminate(&id, query.principal) {
            Some(principal) => (Value::from(&*principal.to_string()), "Transaction terminated."),
            None => (Value::Null, "Transaction not found."),
        };
        vec![Value::from(&*id), name, message.into()]
    };
    Ok(ids.into_iter().map(end).collect())
}

fn running<'a>(query: &Query<'a>) -> Result<&'a dyn Running, Error> {
    query.running.ok_or_else(|| {
        let message = "this program keeps no list of its transactions: a service does";
        Error::new(ErrorCode::UnsupportedOperation, message)
    })
}

fn id(value: &Value) -> Result<String, Error> {
    value.as_str().map(str::to_owned).ok_or_else(|| {
        let message = format!("an id of a transaction is a string, not {}", value.for_message());
        Error::new(ErrorCode::InvalidArgument, message)
    })
}

/// Returns a value for each column of `SHOW TRANSACTIONS`.
fn row(one: &RunningTransaction, now: jiff::Timestamp) -> Vec<Value> {
    let query = one.query.as_ref();
    let statement = |of: fn(&RunningStatement) -> String| query.map_or_else(String::new, of);
    let status = match one.terminated {
        true => "Terminated with reason: a client asked for it",
        false => "Running",
    };
    let mut row: Vec<Value> = [
        // A process has one graph, which clients of Neo4j know by the name of its default database.
        "neo4j".to_owned(),
        one.id.clone(),
        statement(|query| query.id.clone()),
        one.address.map(|address| address.to_string()).unwrap_or_default(),
        one.principal.to_string(),
        statement(|query| query.text.clone()),
        one.started.to_string(),
        status.to_owned(),
    ]
    .iter()
    .map(|text| Value::from(&**text))
    .collect();
    row.push(elapsed(one.started, now));
    row.push(one.protocol.into());
    row.push(query.map_or(Value::Null, |query| Value::from(&*query.started.to_string())));
    row.push(query.map_or(Value::Null, |query| elapsed(query.started, now)));
    row
}

fn elapsed(from: jiff::Timestamp, to: jiff::Timestamp) -> Value {
    let nanos = to.duration_since(from).as_nanos().max(0);
    Duration::new(0, 0, 0, nanos)
        .map_or(Value::Null, |time| Value::Temporal(Temporal::Duration(Arc::new(time))))
}
