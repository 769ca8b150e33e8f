//! Transactions that are open: the commands that list and end them.
//!
//! The engine knows no transaction but the one that it runs. A service keeps the list and hands it on with each request
//! ([`Query::running`]).

use crate::deadline::Deadline;
use crate::query::Query;
use crate::{Database, Error, Principal};
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
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
        let running = running(query)?;
        let ids = ids.map(|plan| self.transaction_ids(plan, query, deadline)).transpose()?;
        let now = self.now();
        let mut all = running.visible_to(query.principal);
        all.retain(|one| ids.as_ref().is_none_or(|ids| ids.contains(&one.id)));
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
        let running = running(query)?;
        let ids = self.transaction_ids(ids, query, deadline)?;
        let end = |id: String| {
            let (name, message) = match running.terminate(&id, query.principal) {
                Some(principal) => (Value::from(&*principal.to_string()), "Transaction terminated."),
                None => (Value::Null, "Transaction not found."),
            };
            vec![Value::from(&*id), name, message.into()]
        };
        Ok(ids.into_iter().map(end).collect())
    }

    /// Evaluates the ids that a command names.
    fn transaction_ids(
        &self,
        plan: &Plan,
        query: &Query<'_>,
        deadline: &Deadline<'_>,
    ) -> Result<Vec<String>, Error> {
        let planned = self.planned_part(plan.clone(), false, query, deadline)?;
        let answer = self.run_part(&planned, &[Value::list(vec![])], query, deadline)?;
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
