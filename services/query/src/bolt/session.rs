//! The session of one connection: who asks, which transaction is open, which answers are open.

use super::codes::Failure;
use super::connection::{Connection, Interruption, Received, Waits};
use super::extra::Extra;
use crate::admission::{self, Lent, Output, Part, Parts, RequestMemory, Transaction, Writer, Written};
use crate::audit::{self, Source};
use crate::session::{NoGraph, Service, Sessions};
use bytes::Bytes;
use futures_util::FutureExt;
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tidegraph_bolt::{
    Budget, Dialect, Pull, Reply, Request, RequestError, Run, Version as Bolt, end_of_messages,
};
use tidegraph_engine::{Counters, Language, Principal, Reservation};
use tidegraph_platform::metric::{self, Ended, OpenTransaction, Protocol};
use tidegraph_types::{ErrorCode, Map, Str, Value, Version};
use tokio::io::{AsyncRead, AsyncWrite};

/// Longest message of a client that is not authenticated yet.
const GREETING_BYTES: usize = 64 << 10;
/// Most answers of a transaction that are open at once.
const MOST_ANSWERS: usize = 256;
/// The name of the default graph as a database, as drivers expect it. Other graphs have their own.
const DATABASE: &str = "neo4j";
/// A database that every server of Neo4j has. It has an address here, and nothing else.
const SYSTEM_DATABASE: &str = "system";
/// Seconds for which a client may keep the addresses of the database.
const ROUTES_SECONDS: i64 = 300;
/// Java's driver talks only to servers whose name begins so.
const SERVER: &str = concat!("Neo4j/5.26.0-tidegraph-", env!("CARGO_PKG_VERSION"));

/// How far the client has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    /// It must send HELLO.
    Greeting,
    /// It must send LOGON.
    Login,
    /// It may ask.
    Inside,
    /// A request failed: all are ignored until RESET.
    Failed,
}

/// What happens after a message.
enum Next {
    Continue,
    Close,
}

pub(super) struct Session<S> {
    connection: Connection<S>,
    sessions: Sessions,
    /// The graph of the open transaction and of the open answers, or of those before.
    service: Arc<Service>,
    /// Its name as a database.
    database: Str,
    version: Bolt,
    dialect: Dialect,
    /// The address that the client used, as far as it said.
    address: String,
    stage: Stage,
    /// Whether the client was let in, and may have logged off since: the time limit of newcomers is over then.
    was_inside: bool,
    principal: Principal,
    source: Source,
    transaction: Option<Open>,
    /// Answers by their number. Outside of a transaction there is at most one.
    answers: BTreeMap<i64, Answer>,
    next_answer: i64,
}

/// An open transaction.
struct Open {
    /// `None` while a request of it begins.
    place: Option<Place>,
    /// When it must have ended.
    until: jiff::Timestamp,
    read_only: bool,
    counted: OpenTransaction,
}

/// Where a transaction is.
enum Place {
    Here(Box<Transaction>),
    /// At its last query, which may still run.
    Lent(Lent),
}

/// An answer whose rows are pulled.
struct Answer {
    /// The answer, with the part that is being sent.
    written: Written,
    /// Parts that follow it, and were kept because the next query of the transaction had to begin.
    kept: VecDeque<Part>,
    /// How many bytes of the part were sent.
    sent: usize,
    any_sent: bool,
    started: jiff::Timestamp,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Session<S> {
    pub(super) fn new(
        connection: Connection<S>,
        sessions: Sessions,
        service: Arc<Service>,
        version: Bolt,
        address: &str,
        source: Source,
    ) -> Self {
        let is_new = version >= Bolt::new(5, 0);
        Self {
            connection,
            sessions,
            service,
            database: DATABASE.into(),
            version,
            dialect: Dialect { element_ids: is_new, utc: is_new },
            address: address.to_owned(),
            stage: Stage::Greeting,
            was_inside: false,
            principal: Principal::Anonymous,
            source: source.by(audit::Protocol::Bolt),
            transaction: None,
            answers: BTreeMap::new(),
            next_answer: 0,
        }
    }

    /// Answers messages until either side ends the connection.
    pub(super) async fn run(mut self) -> io::Result<()> {
        loop {
            let mut memory = RequestMemory::default();
            let (limit, waits) = self.waits();
            let received =
                self.connection.receive(limit, waits, &self.service.admission, &mut memory).await?;
            let result = match received {
                Received::Closed => return Ok(()),
                Received::Message(bytes) => match self.read(&bytes, &mut memory) {
                    Ok(request) => self.answer(request, memory.reserved()).await?,
                    Err(failure) => Err(failure),
                },
                Received::TooLong => {
                    let message = format!("the message is longer than the limit of {limit} bytes");
                    Err(Failure::new(ErrorCode::RequestTooLarge, message))
                }
                Received::NoMemory(refused) => Err(Failure::new(refused.code(), refused.to_string())),
            };
            match result {
                Ok(Next::Continue) => {}
                Ok(Next::Close) => return self.connection.close().await,
                Err(failure) => {
                    let is_outside = matches!(self.stage, Stage::Greeting | Stage::Login);
                    self.fail(failure);
                    if is_outside {
                        return self.connection.close().await;
                    }
                }
            }
        }
    }

    fn waits(&self) -> (usize, Waits) {
        match self.stage {
            Stage::Greeting | Stage::Login if !self.was_inside => (GREETING_BYTES, Waits::Outside),
            Stage::Greeting | Stage::Login => (GREETING_BYTES, Waits::Idle),
            _ if self.transaction.is_some() || !self.answers.is_empty() => {
                (self.service.message_bytes, Waits::Open)
            }
            _ => (self.service.message_bytes, Waits::Idle),
        }
    }

    fn read(&self, bytes: &Bytes, memory: &mut RequestMemory) -> Result<Request, Failure> {
        let admission = &self.service.admission;
        let counted = memory.grow(bytes.len(), admission);
        counted.map_err(|refused| Failure::new(refused.code(), refused.to_string()))?;
        let mut take = |bytes| memory.grow(bytes, admission).is_ok();
        Request::read(bytes, self.version, Budget::new(&mut take)).map_err(|error| match &error {
            RequestError::Value(tidegraph_bolt::packstream::Error::Memory) => {
                Failure::new(ErrorCode::MemoryLimitExceeded, error.to_string())
            }
            RequestError::Value(tidegraph_bolt::packstream::Error::Unsupported { .. }) => {
                Failure::new(ErrorCode::UnsupportedOperation, error.to_string())
            }
            _ => Failure::of_format(error.to_string()),
        })
    }

    fn succeed(&mut self, entries: Vec<(&'static str, Value)>) -> Result<Next, Failure> {
        self.connection.reply(&Reply::Success(entries));
        Ok(Next::Continue)
    }

    fn fail(&mut self, failure: Failure) {
        self.connection.reply(&failure.reply(self.version));
        self.stage = Stage::Failed;
        self.answers.clear();
        self.transaction = None;
    }

    async fn answer(
        &mut self,
        request: Request,
        memory: Option<Arc<Reservation>>,
    ) -> io::Result<Result<Next, Failure>> {
        Ok(match (self.stage, request) {
            (_, Request::Goodbye) => Ok(Next::Close),
            (Stage::Greeting, Request::Hello(extra)) => self.hello(&extra).await,
            (Stage::Login, Request::Logon(auth)) => self.logon(&auth).await,
            (Stage::Inside | Stage::Failed, Request::Reset) => {
                self.stage = Stage::Inside;
                self.roll_back();
                self.succeed(vec![])
            }
            (Stage::Failed, _) => {
                self.connection.reply(&Reply::Ignored);
                Ok(Next::Continue)
            }
            (Stage::Inside, Request::Run(run)) if self.transaction.is_some() || self.answers.is_empty() => {
                return self.run_query(run, memory).await;
            }
            (Stage::Inside, Request::Pull(pull)) if !self.answers.is_empty() => {
                return self.pull(pull, true).await;
            }
            (Stage::Inside, Request::Discard(pull)) if !self.answers.is_empty() => {
                return self.pull(pull, false).await;
            }
            (Stage::Inside, Request::Begin(extra)) if self.is_free() => self.begin(&extra),
            (Stage::Inside, Request::Commit) if self.transaction.is_some() => return self.commit().await,
            (Stage::Inside, Request::Rollback) if self.transaction.is_some() => {
                self.roll_back();
                self.succeed(vec![])
            }
            (Stage::Inside, Request::Logoff) if self.is_free() => {
                self.principal = Principal::Anonymous;
                self.stage = Stage::Login;
                self.succeed(vec![])
            }
            (Stage::Inside, Request::Route { routing, extra }) if self.is_free() => {
                self.route(&routing, &extra)
            }
            (Stage::Inside, Request::Telemetry) => self.succeed(vec![]),
            (_, request) => {
                let state = match self.stage {
                    Stage::Greeting => "before HELLO",
                    Stage::Login => "before LOGON",
                    _ if self.transaction.is_some() => "in a transaction",
                    _ if !self.answers.is_empty() => "while an answer is open",
                    _ => "while nothing is open",
                };
                // The client and the server disagree about the state of the session, so it cannot go on.
                self.fail(Failure::of_protocol(format!("{} does not come {state}", request.name())));
                Ok(Next::Close)
            }
        })
    }

    fn roll_back(&mut self) {
        self.answers.clear();
        if let Some(open) = self.transaction.take() {
            open.counted.end(Ended::RolledBack);
        }
    }

    /// Whether neither a transaction nor an answer is open.
    fn is_free(&self) -> bool {
        self.transaction.is_none() && self.answers.is_empty()
    }

    async fn hello(&mut self, extra: &Map) -> Result<Next, Failure> {
        if let Some(Value::Map(routing)) = extra.get(&Value::from("routing")) {
            self.take_address(routing);
        }
        let number = self.service.bolt_sessions.fetch_add(1, Ordering::Relaxed);
        let mut entries = vec![
            ("server", Value::from(SERVER)),
            ("connection_id", Value::string(format!("bolt-{number}"))),
            ("hints", Value::map(Map::from_iter([("telemetry.enabled".into(), false.into())]))),
        ];
        let patches = extra.get(&Value::from("patch_bolt")).and_then(Value::as_slice).unwrap_or_default();
        if !self.dialect.utc && patches.contains(&Value::from("utc")) {
            self.dialect.utc = true;
            entries.push(("patch_bolt", Value::list(vec!["utc".into()])));
        }
        self.stage = Stage::Login;
        if self.version < Bolt::new(5, 1) {
            self.let_in(extra).await?;
        }
        self.succeed(entries)
    }

    async fn logon(&mut self, auth: &Map) -> Result<Next, Failure> {
        self.let_in(auth).await?;
        self.succeed(vec![])
    }

    async fn let_in(&mut self, auth: &Map) -> Result<(), Failure> {
        let text = |name: &'static str| auth.get(&Value::from(name)).and_then(Value::as_str);
        let (service, source) = (self.service.clone(), self.source);
        let proven = match (text("scheme").unwrap_or("none"), text("credentials")) {
            ("basic", sent) => {
                let name = text("principal").unwrap_or_default();
                service.password(name, sent.unwrap_or_default(), source).await
            }
            ("none", _) => service.token(None, source).await,
            ("bearer", sent) => service.token(Some(sent.unwrap_or_default()), source).await,
            (other, _) => {
                let message = format!("the scheme {other:?} is not supported: use basic, bearer or none");
                return Err(Failure::unauthorized(message));
            }
        };
        self.principal = proven.map_err(|refusal| {
            metric::unauthenticated(Protocol::Bolt);
            Failure::refused(&refusal)
        })?;
        self.stage = Stage::Inside;
        self.was_inside = true;
        Ok(())
    }

    fn take_address(&mut self, routing: &Map) {
        if let Some(address) = routing.get(&Value::from("address")).and_then(Value::as_str) {
            address.clone_into(&mut self.address);
        }
    }

    fn route(&mut self, routing: &Map, extra: &Map) -> Result<Next, Failure> {
        self.take_address(routing);
        let asked = extra.get(&Value::from("db")).and_then(Value::as_str);
        let database = match asked {
            // Java's driver asks for this one to see whether it is connected.
            Some(name) if name.eq_ignore_ascii_case(SYSTEM_DATABASE) => SYSTEM_DATABASE,
            _ => {
                self.enter(extra)?;
                &*self.database
            }
        };
        let database = Value::from(database);
        let servers = ["ROUTE", "READ", "WRITE"].map(|role| {
            let addresses = Value::list(vec![self.address.as_str().into()]);
            Value::map(Map::from_iter([("addresses".into(), addresses), ("role".into(), role.into())]))
        });
        let table = [
            ("ttl", Value::Long(ROUTES_SECONDS)),
            ("db", database),
            ("servers", Value::list(servers.to_vec())),
        ];
        let table = table.into_iter().map(|(key, value)| (key.into(), value));
        self.succeed(vec![("rt", Value::map(table.collect()))])
    }

    /// Takes the graph that a request names. Within a transaction it is that of the transaction.
    fn enter(&mut self, extra: &Map) -> Result<(), Failure> {
        let asked = match extra.get(&Value::from("db")) {
            None | Some(Value::Null) => None,
            Some(Value::String(name)) if name.is_empty() => None,
            Some(Value::String(name)) => Some(name.as_str()),
            Some(_) => return Err(Failure::no_database("")),
        };
        if self.transaction.is_some() {
            return match asked {
                Some(name) if *name != *self.database && !name.eq_ignore_ascii_case(&self.database) => {
                    let message = format!("the transaction is one of the database {:?}", self.database);
                    Err(Failure::of_protocol(message))
                }
                _ => Ok(()),
            };
        }
        let missing = |missing: NoGraph| match missing {
            NoGraph::Unknown(name) => Failure::no_database(&name),
            absent @ NoGraph::Absent(_) => Failure::new(ErrorCode::Unavailable, absent.to_string()),
        };
        // A graph may be called as the default one is to drivers.
        let (service, database) = match asked {
            Some(name) => match self.sessions.find(Some(name)) {
                Ok(service) => (service, Str::from(name)),
                Err(NoGraph::Unknown(_)) if name.eq_ignore_ascii_case(DATABASE) => {
                    (self.sessions.find(None).map_err(missing)?, DATABASE.into())
                }
                Err(other) => return Err(missing(other)),
            },
            None => (self.sessions.find(None).map_err(missing)?, DATABASE.into()),
        };
        (self.service, self.database) = (service, database);
        Ok(())
    }

    fn begin(&mut self, extra: &Map) -> Result<Next, Failure> {
        self.enter(extra)?;
        let extra = Extra::read(extra)?;
        let longest = self.service.admission.limits().query_timeout;
        let limit = extra.timeout.map_or(longest, |asked| asked.min(longest));
        let until = self.service.database.now() + jiff::SignedDuration::try_from(limit).unwrap_or_default();
        let transaction =
            self.service.admission.begin(&self.principal, self.source, extra.at_least, extra.read_only);
        let transaction = transaction.map_err(|error| Failure::new(error.code(), error.to_string()))?;
        let counted = OpenTransaction::new(Protocol::Bolt);
        self.transaction = Some(Open {
            place: Some(Place::Here(transaction.into())),
            until,
            read_only: extra.read_only,
            counted,
        });
        self.succeed(if self.version >= Bolt::new(5, 8) {
            vec![("db", self.database.as_str().into())]
        } else {
            vec![]
        })
    }

    async fn run_query(
        &mut self,
        run: Run,
        memory: Option<Arc<Reservation>>,
    ) -> io::Result<Result<Next, Failure>> {
        if let Err(failure) = self.keep_rest().await? {
            return Ok(Err(failure));
        }
        if let Err(failure) = self.enter(&run.extra) {
            return Ok(Err(failure));
        }
        let started = self.service.database.now();
        let asked = match self.request(run, memory, started) {
            Ok(asked) => asked,
            Err(failure) => return Ok(Err(failure)),
        };
        let writer = Records { dialect: self.dialect, scratch: vec![] };
        let admission = &self.service.admission;
        let transaction = match &mut self.transaction {
            None => None,
            Some(open) => match open.take().await {
                Ok(transaction) => Some(transaction),
                Err(failure) => return Ok(Err(failure)),
            },
        };
        let query = async move {
            match transaction {
                None => Ok((admission.stream(asked, writer).await?, None)),
                Some(transaction) => {
                    let (written, lent) = admission.stream_within(transaction, asked, writer).await?;
                    Ok((written, Some(lent)))
                }
            }
        };
        let begun: Result<_, admission::Error> = tokio::select! {
            biased;
            begun = query => begun,
            interruption = self.connection.interrupted() => return interruption.ended(),
        };
        let (written, lent) = match begun {
            Ok(begun) => begun,
            Err(error) => return Ok(Err(of_query(&error))),
        };
        if let Some(open) = &mut self.transaction {
            open.place = lent.map(Place::Lent);
        }
        let number = self.next_answer;
        self.next_answer += 1;
        let columns: Vec<Value> = written.columns.iter().map(|name| Value::String(name.clone())).collect();
        let mut entries = vec![
            ("fields", Value::list(columns)),
            ("t_first", Value::Long(milliseconds(started, self.service.database.now()))),
        ];
        if self.transaction.is_some() {
            entries.push(("qid", Value::Long(number)));
        }
        let kept = VecDeque::new();
        self.answers.insert(number, Answer { written, kept, sent: 0, any_sent: false, started });
        Ok(self.succeed(entries))
    }

    /// Makes the request of the engine.
    fn request(
        &self,
        run: Run,
        memory: Option<Arc<Reservation>>,
        now: jiff::Timestamp,
    ) -> Result<admission::Request, Failure> {
        let mut extra = Extra::read(&run.extra)?;
        let known = self.service.still_known(&self.principal);
        let principal = known.map_err(|refusal| Failure::new(refusal.code(), refusal.to_string()))?;
        if let Some(open) = &self.transaction {
            if self.answers.len() >= MOST_ANSWERS {
                let message =
                    format!("{MOST_ANSWERS} answers of the transaction are open: pull or discard some");
                return Err(Failure::new(ErrorCode::QueryLimitExceeded, message));
            }
            let Ok(left) = Duration::try_from(open.until.duration_since(now)) else {
                let message = "the transaction took longer than its limit";
                return Err(Failure::new(ErrorCode::TimeLimitExceeded, message));
            };
            extra.timeout = Some(extra.timeout.map_or(left, |asked| asked.min(left)));
            extra.read_only |= open.read_only;
        }
        Ok(admission::Request {
            id: self.service.database.request_id().to_string(),
            language: Language::OpenCypher,
            gremlin_version: None,
            text: run.text.to_string(),
            parameters: run.parameters,
            timeout: extra.timeout,
            at_least: extra.at_least,
            read_only: extra.read_only,
            key: None,
            principal,
            source: self.source,
            memory,
            frees_slot: true,
            explain: None,
        })
    }

    async fn pull(&mut self, pull: Pull, sends: bool) -> io::Result<Result<Next, Failure>> {
        let number = pull.answer.or_else(|| self.answers.keys().next_back().copied()).unwrap_or_default();
        if !self.answers.contains_key(&number) {
            return Ok(Err(Failure::of_protocol(format!("there is no open answer {number}"))));
        }
        let mut left = pull.rows;
        while let Some(answer) = self.answers.get_mut(&number) {
            let rest = answer.written.first.bytes.slice(answer.sent..);
            let (rows, length) = match left {
                // The length of the rest says it all.
                None => (u64::from(!rest.is_empty()), rest.len()),
                Some(rows) => end_of_messages(&rest, rows),
            };
            if sends && length > 0 {
                answer.any_sent = true;
                self.connection.send(rest.slice(..length)).await?;
            }
            answer.sent += length;
            left = left.map(|left| left - rows);
            if length < rest.len() {
                return Ok(self.succeed(vec![("has_more", true.into())]));
            }
            drop(rest);
            // What was sent holds its memory until here.
            answer.written.first = Part::default();
            answer.sent = 0;
            if !sends && left.is_none() {
                // Nobody wants the rows that are not made yet.
                answer.kept.clear();
                match &mut answer.written.more {
                    // The end of its query gives the transaction back.
                    Some(more) if self.transaction.is_some() => more.discard(),
                    more => *more = None,
                }
            }
            if let Some(part) = answer.kept.pop_front() {
                answer.written.first = part;
                continue;
            }
            // Whether there is more is known when there is, or when the query has ended.
            let Some(more) = &mut answer.written.more else { break };
            match next_part(more, &mut self.connection).await? {
                Ok(Some(part)) => answer.written.first = part,
                Ok(None) => break,
                Err(failure) => return Ok(Err(failure)),
            }
        }
        let Some(answer) = self.answers.remove(&number) else { return Ok(Ok(Next::Continue)) };
        let entries = self.summary(&answer);
        Ok(self.succeed(entries))
    }

    fn summary(&self, answer: &Answer) -> Vec<(&'static str, Value)> {
        let Answer { written, started, any_sent, .. } = answer;
        let kind = match (written.wrote, written.columns.is_empty()) {
            _ if changes_schema(&written.counters) => "s",
            (false, _) => "r",
            (true, true) => "w",
            (true, false) => "rw",
        };
        let mut entries = vec![
            ("type", kind.into()),
            ("t_last", Value::Long(milliseconds(*started, self.service.database.now()))),
            ("db", self.database.as_str().into()),
        ];
        if self.transaction.is_none() {
            entries.push(("bookmark", bookmark(written.version)));
        }
        if let Some(counts) = counts(&written.counters) {
            entries.push(("stats", counts));
        }
        if self.version >= Bolt::new(5, 5) {
            let (state, description) = match (any_sent, written.columns.is_empty()) {
                (true, _) => ("00000", "note: successful completion"),
                (false, true) => ("00001", "note: successful completion - omitted result"),
                (false, false) => ("02000", "note: no data"),
            };
            let status: [(&str, &str); 2] = [("gql_status", state), ("status_description", description)];
            let status = status.into_iter().map(|(key, value)| (key.into(), value.into()));
            entries.push(("statuses", Value::list(vec![Value::map(status.collect())])));
        }
        entries
    }

    /// Waits for the end of the query that runs in the transaction, and keeps those of its rows that were not pulled: the
    /// next query reads what this one carries on.
    async fn keep_rest(&mut self) -> io::Result<Result<(), Failure>> {
        let most = self.service.database.query_memory_bytes();
        let Some(answer) = self.answers.values_mut().find(|answer| answer.written.more.is_some()) else {
            return Ok(Ok(()));
        };
        let mut bytes = 0;
        while let Some(more) = &mut answer.written.more {
            match next_part(more, &mut self.connection).await? {
                Ok(Some(part)) => {
                    bytes += part.bytes.len() as u64;
                    if bytes > most {
                        let message = format!(
                            "the rows of an earlier query of the transaction that were not pulled take more than \
                             {most} bytes: pull or discard them before the next query"
                        );
                        return Ok(Err(Failure::new(ErrorCode::QueryLimitExceeded, message)));
                    }
                    answer.kept.push_back(part);
                }
                Ok(None) => answer.written.more = None,
                Err(failure) => return Ok(Err(failure)),
            }
        }
        Ok(Ok(()))
    }

    /// Ends the query that runs in the transaction. Nobody pulls its rows any more.
    async fn discard_rest(&mut self) -> io::Result<Result<(), Failure>> {
        let answers = std::mem::take(&mut self.answers);
        for mut more in answers.into_values().filter_map(|answer| answer.written.more) {
            more.discard();
            loop {
                match next_part(&mut more, &mut self.connection).await? {
                    Ok(Some(_)) => {}
                    Ok(None) => break,
                    Err(failure) => return Ok(Err(failure)),
                }
            }
        }
        Ok(Ok(()))
    }

    async fn commit(&mut self) -> io::Result<Result<Next, Failure>> {
        if let Err(failure) = self.discard_rest().await? {
            return Ok(Err(failure));
        }
        let Some(mut open) = self.transaction.take() else {
            return Ok(Err(Failure::of_protocol("there is no transaction to commit")));
        };
        let transaction = match open.take().await {
            Ok(transaction) => transaction,
            Err(failure) => return Ok(Err(failure)),
        };
        let Open { until, counted, .. } = open;
        if until < self.service.database.now() {
            let message = "the transaction took longer than its limit, and is not committed";
            return Ok(Err(Failure::new(ErrorCode::TimeLimitExceeded, message)));
        }
        let admission = &self.service.admission;
        match admission.commit_transaction(transaction, &self.principal, self.source).await {
            Ok(version) => {
                counted.end(Ended::Committed);
                Ok(self.succeed(vec![("bookmark", bookmark(version))]))
            }
            Err(error) => Ok(Err(of_query(&error))),
        }
    }
}

impl Open {
    /// Takes the transaction. Its last query has ended.
    async fn take(&mut self) -> Result<Transaction, Failure> {
        let transaction = match self.place.take() {
            Some(Place::Here(transaction)) => Some(*transaction),
            Some(Place::Lent(lent)) => lent.back().await,
            None => None,
        };
        // A query that fails ends the transaction, so this one is there.
        transaction.ok_or_else(|| Failure::new(ErrorCode::Internal, "the transaction was lost"))
    }
}

impl Interruption {
    /// Returns how the request that it interrupts ends.
    fn ended<T>(self) -> io::Result<Result<T, Failure>> {
        match self {
            Self::Reset => Ok(Err(Failure::terminated())),
            Self::Closed => Err(io::ErrorKind::ConnectionAborted.into()),
        }
    }
}

/// Waits for the next part of an answer; `None` after the last. Sends all replies before it waits.
async fn next_part<S: AsyncRead + AsyncWrite + Unpin>(
    more: &mut Parts,
    connection: &mut Connection<S>,
) -> io::Result<Result<Option<Part>, Failure>> {
    let next = match more.next().now_or_never() {
        Some(next) => next,
        None => {
            connection.flush().await?;
            tokio::select! {
                biased;
                next = more.next() => next,
                interruption = connection.interrupted() => return interruption.ended(),
            }
        }
    };
    Ok(next.transpose().map_err(|error| of_query(&error)))
}

/// Writes a record for each row.
#[derive(Clone)]
struct Records {
    dialect: Dialect,
    scratch: Vec<u8>,
}

impl Writer for Records {
    fn begin(&mut self, _: &Arc<[Str]>, _: &mut Output) -> io::Result<()> {
        Ok(())
    }

    fn row(&mut self, row: &[Value], out: &mut Output) -> io::Result<()> {
        Reply::write_record(row, self.dialect, &mut self.scratch, out)?;
        out.cut();
        Ok(())
    }

    fn end(&mut self, _: &mut Output) -> io::Result<()> {
        Ok(())
    }
}

fn of_query(error: &admission::Error) -> Failure {
    let code = error.code();
    if matches!(code, ErrorCode::Internal | ErrorCode::Corrupt) {
        tracing::error!(%code, %error, "request failed");
    }
    Failure::new(code, error.to_string())
}

fn milliseconds(from: jiff::Timestamp, to: jiff::Timestamp) -> i64 {
    to.as_millisecond().saturating_sub(from.as_millisecond()).max(0)
}

/// The version in digits, as HTTP's header has it.
fn bookmark(version: Version) -> Value {
    Value::string(version.0.to_string())
}

fn changes_schema(counters: &Counters) -> bool {
    let Counters { indexes_added, indexes_removed, constraints_added, constraints_removed, .. } = *counters;
    indexes_added + indexes_removed + constraints_added + constraints_removed > 0
}

/// Neo4j's counts; `None` if nothing changed.
fn counts(counters: &Counters) -> Option<Value> {
    let counts = [
        ("nodes-created", counters.vertices_created),
        ("nodes-deleted", counters.vertices_deleted),
        ("relationships-created", counters.edges_created),
        ("relationships-deleted", counters.edges_deleted),
        ("properties-set", counters.properties_written),
        ("labels-added", counters.labels_added),
        ("labels-removed", counters.labels_removed),
        ("indexes-added", counters.indexes_added),
        ("indexes-removed", counters.indexes_removed),
        ("constraints-added", counters.constraints_added),
        ("constraints-removed", counters.constraints_removed),
    ];
    let counts: Map = counts
        .into_iter()
        .filter(|(_, count)| *count > 0)
        .map(|(key, count)| (key.into(), Value::Long(count.cast_signed())))
        .collect();
    if counts.is_empty() {
        return None;
    }
    let mut counts = counts;
    counts.insert("contains-updates".into(), true.into());
    Some(Value::map(counts))
}
