//! The slots of queries, and the queue before them, which is fair between callers.
//!
//! Roles: [`Slots`] is the counter with its queue; a [`Caller`] is a connection of a party; a [`Slot`] is the right to
//! run, given back when it is dropped. A party is a user that proved who it is, or else the address of a machine.
//!
//! Flow: a free slot goes to the party whose turn it is, in it to the connection whose turn it is, and there to the query
//! that came first. Both then go to the end of their turns. So a client that sends a thousand queries delays the next
//! query of another one by one query, and not by a thousand.
//!
//! Queries may run for minutes, so turns alone would let one client take every slot before another one comes. Therefore
//! a connection, and a user, that holds slots gets another one only while it holds fewer than [`SHARE`] times as many as
//! are free: one client alone leaves a quarter of the slots free, and several leave a smaller part.
//!
//! A service with several graphs limits each graph in the same way, for all callers together: its queries leave a quarter of the
//! slots to those of the others. A graph may have a quota besides, which it never holds more slots than.
//!
//! The queue is bounded. When it is full, the party and the connection with the most waiting queries lose their newest
//! one, in favour of a caller with fewer; if there is none, the query that comes is refused.
//!
//! What must never happen: a slot stays free although a query waits that may have it; a query that is refused, or whose
//! caller has gone, gets a slot.

use crate::audit::Source;
use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tidegraph_engine::Principal;
use tokio::sync::oneshot;

/// How many slots a caller may hold for each one that is free, when it gets another one.
const SHARE: usize = 3;

/// A user, or the address of a machine.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Party {
    User(String),
    /// `None`: the address is not known.
    Machine(Option<IpAddr>),
}

/// Who asks for a slot: a connection of a party.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Caller {
    party: Party,
    /// `None`: not known, so that it may be several.
    connection: Option<SocketAddr>,
    /// The graph of the query; `None`: the service has one graph.
    graph: Option<Arc<str>>,
}

impl Caller {
    /// Returns the caller of a request. Callers that share a token, or give none, are told apart by their addresses.
    pub fn new(principal: &Principal, source: Source) -> Self {
        let connection = source.address;
        let party = match principal {
            Principal::Anonymous | Principal::SharedToken => {
                Party::Machine(connection.map(|address| address.ip()))
            }
            named => Party::User(named.to_string()),
        };
        Self { party, connection, graph: None }
    }

    /// Returns the same caller, who asks one graph of several.
    pub fn within(self, graph: Option<Arc<str>>) -> Self {
        Self { graph, ..self }
    }
}

/// The queue is full.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Full {
    /// Number of queries that wait.
    pub waiting: usize,
}

/// Slots with a queue.
pub(super) struct Slots {
    all: usize,
    most_waiting: usize,
    state: Mutex<State>,
}

struct State {
    free: usize,
    /// Number of waiting queries that may be refused.
    waiting: usize,
    next_ticket: u64,
    /// Number of slots that queries of a graph hold.
    graphs: BTreeMap<Arc<str>, usize>,
    /// Most slots that queries of a graph may hold.
    quotas: BTreeMap<Arc<str>, usize>,
    /// Parties that hold slots or wait.
    parties: BTreeMap<Party, Members>,
    /// Parties that wait, the next one first.
    turns: VecDeque<Party>,
}

/// The connections of a party.
#[derive(Default)]
struct Members {
    held: usize,
    connections: BTreeMap<Option<SocketAddr>, Connection>,
    /// Connections that wait, the next one first.
    turns: VecDeque<Option<SocketAddr>>,
}

#[derive(Default)]
struct Connection {
    held: usize,
    queue: VecDeque<Waiter>,
}

struct Waiter {
    ticket: u64,
    graph: Option<Arc<str>>,
    may_be_refused: bool,
    answer: oneshot::Sender<Result<Slot, Full>>,
}

/// The right of one query to run. Dropping it lets the next query run.
pub(super) struct Slot {
    slots: Arc<Slots>,
    caller: Caller,
}

impl Slot {
    /// Returns who holds it.
    pub fn caller(&self) -> &Caller {
        &self.caller
    }
}

impl std::fmt::Debug for Slot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Slot").field("caller", &self.caller).finish_non_exhaustive()
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.slots.give_back(&self.caller);
    }
}

/// The place of a query in the queue, which it leaves when this is dropped.
struct Place<'s> {
    slots: &'s Slots,
    caller: Caller,
    ticket: u64,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.slots.state().leave(&self.caller, self.ticket);
    }
}

impl Slots {
    /// Makes slots. At most `most_waiting` queries wait for one. Queries of a graph with a quota hold at most that number.
    pub fn new(slots: usize, most_waiting: usize, quotas: BTreeMap<Arc<str>, usize>) -> Arc<Self> {
        let state = State {
            free: slots,
            waiting: 0,
            next_ticket: 0,
            graphs: BTreeMap::new(),
            quotas,
            parties: BTreeMap::new(),
            turns: VecDeque::new(),
        };
        Arc::new(Self { all: slots, most_waiting, state: Mutex::new(state) })
    }

    /// Waits for a slot. Dropping the future gives up the place in the queue.
    ///
    /// # Errors
    ///
    /// [`Full`] if too many queries wait, now or before the slot was free.
    pub async fn acquire(self: &Arc<Self>, caller: Caller) -> Result<Slot, Full> {
        self.wait(caller, true).await
    }

    /// Waits for a slot for a query that had one before; it is not refused. Dropping the future gives up the place.
    pub async fn acquire_again(self: &Arc<Self>, caller: Caller) -> Option<Slot> {
        self.wait(caller, false).await.ok()
    }

    async fn wait(self: &Arc<Self>, caller: Caller, may_be_refused: bool) -> Result<Slot, Full> {
        let (answer, answered) = oneshot::channel();
        let ticket = {
            let mut state = self.state();
            let is_full = may_be_refused && state.waiting >= self.most_waiting;
            let evicted =
                if is_full && !state.may_have(&caller) { Some(state.evict_for(&caller)?) } else { None };
            let full = Full { waiting: state.waiting };
            let ticket = state.enter(&caller, may_be_refused, answer);
            drop(state);
            if let Some(evicted) = evicted {
                // Its caller may have gone.
                let _ = evicted.answer.send(Err(full));
            }
            ticket
        };
        let _place = Place { slots: self, caller, ticket };
        self.pass_on();
        let lost = |_| Full { waiting: self.state().waiting };
        answered.await.map_err(lost)?
    }

    /// Whether a slot is free.
    pub fn has_free(&self) -> bool {
        self.state().free > 0
    }

    /// Returns the number of queries that hold a slot, and of those that wait for one.
    pub fn used_and_waiting(&self) -> (usize, usize) {
        let state = self.state();
        (self.all.saturating_sub(state.free), state.waiting)
    }

    /// Returns the number of free slots.
    #[cfg(test)]
    pub fn free(&self) -> usize {
        self.state().free
    }

    /// Returns the number of queries that wait.
    #[cfg(test)]
    pub fn waiting(&self) -> usize {
        self.state().waiting
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn give_back(self: &Arc<Self>, caller: &Caller) {
        self.state().give_back(caller);
        self.pass_on();
    }

    /// Gives free slots to those who may have them.
    fn pass_on(self: &Arc<Self>) {
        loop {
            let Some((caller, waiter)) = self.state().take_next() else { return };
            // If its caller has gone meanwhile, dropping the slot gives it to the next one. The state is not locked here.
            let _ = waiter.answer.send(Ok(Slot { slots: self.clone(), caller }));
        }
    }
}

impl State {
    /// Whether a caller may have a slot now, if no other one waits.
    fn may_have(&self, caller: &Caller) -> bool {
        let members = self.parties.get(&caller.party);
        let held =
            members.and_then(|members| members.connections.get(&caller.connection)).map_or(0, |c| c.held);
        self.party_may(&caller.party, members.map_or(0, |members| members.held))
            && self.connection_may(caller.connection, held)
            && self.graph_may(caller.graph.as_ref())
    }

    fn leaves_room(&self, held: usize) -> bool {
        self.free > 0 && (held == 0 || held < SHARE.saturating_mul(self.free))
    }

    fn party_may(&self, party: &Party, held: usize) -> bool {
        // Many clients may be behind one address.
        let is_one = matches!(party, Party::User(_));
        self.leaves_room(if is_one { held } else { 0 })
    }

    fn connection_may(&self, connection: Option<SocketAddr>, held: usize) -> bool {
        self.leaves_room(if connection.is_some() { held } else { 0 })
    }

    fn graph_may(&self, graph: Option<&Arc<str>>) -> bool {
        let Some(graph) = graph else { return self.leaves_room(0) };
        let held = self.graphs.get(graph).copied().unwrap_or_default();
        self.quotas.get(graph).is_none_or(|most| held < *most) && self.leaves_room(held)
    }

    fn enter(
        &mut self,
        caller: &Caller,
        may_be_refused: bool,
        answer: oneshot::Sender<Result<Slot, Full>>,
    ) -> u64 {
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        self.waiting += usize::from(may_be_refused);
        let members = self.parties.entry(caller.party.clone()).or_default();
        if members.turns.is_empty() {
            self.turns.push_back(caller.party.clone());
        }
        let connection = members.connections.entry(caller.connection).or_default();
        if connection.queue.is_empty() {
            members.turns.push_back(caller.connection);
        }
        let graph = caller.graph.clone();
        connection.queue.push_back(Waiter { ticket, graph, may_be_refused, answer });
        ticket
    }

    /// Takes the query out of the queue whose turn it is, and a slot for it.
    fn take_next(&mut self) -> Option<(Caller, Waiter)> {
        let caller = self.next_caller()?;
        let Caller { party, connection, graph } = &caller;
        let members = self.parties.get_mut(party)?;
        let member = members.connections.get_mut(connection)?;
        let at = member.queue.iter().position(|waiter| waiter.graph == *graph)?;
        let waiter = member.queue.remove(at)?;
        member.held += 1;
        members.held += 1;
        self.free -= 1;
        if let Some(graph) = graph {
            *self.graphs.entry(graph.clone()).or_default() += 1;
        }
        self.waiting -= usize::from(waiter.may_be_refused);
        // Both go to the end of their turns.
        let waits = !member.queue.is_empty();
        members.turns.retain(|other| other != connection);
        if waits {
            members.turns.push_back(*connection);
        }
        let waits = !members.turns.is_empty();
        self.turns.retain(|other| other != party);
        if waits {
            self.turns.push_back(party.clone());
        }
        Some((caller, waiter))
    }

    fn next_caller(&self) -> Option<Caller> {
        if self.free == 0 {
            return None;
        }
        self.turns.iter().find_map(|party| {
            let members = self.parties.get(party)?;
            if !self.party_may(party, members.held) {
                return None;
            }
            let held = |connection| members.connections.get(connection).map_or(0, |c| c.held);
            members.turns.iter().find_map(|connection| {
                if !self.connection_may(*connection, held(connection)) {
                    return None;
                }
                let mut queue = members.connections.get(connection)?.queue.iter();
                let next = queue.find(|waiter| self.graph_may(waiter.graph.as_ref()))?;
                Some(Caller { party: party.clone(), connection: *connection, graph: next.graph.clone() })
            })
        })
    }

    fn give_back(&mut self, caller: &Caller) {
        self.free += 1;
        if let Some(graph) = &caller.graph
            && let Some(held) = self.graphs.get_mut(graph)
        {
            *held -= 1;
            if *held == 0 {
                self.graphs.remove(graph);
            }
        }
        if let Some(members) = self.parties.get_mut(&caller.party) {
            members.held -= 1;
            if let Some(connection) = members.connections.get_mut(&caller.connection) {
                connection.held -= 1;
            }
        }
        self.forget(caller);
    }

    /// Takes a query out of the queue, if it is there.
    fn leave(&mut self, caller: &Caller, ticket: u64) -> Option<Waiter> {
        let members = self.parties.get_mut(&caller.party)?;
        let connection = members.connections.get_mut(&caller.connection)?;
        let at = connection.queue.iter().position(|waiter| waiter.ticket == ticket)?;
        let waiter = connection.queue.remove(at)?;
        self.waiting -= usize::from(waiter.may_be_refused);
        if connection.queue.is_empty() {
            members.turns.retain(|other| *other != caller.connection);
        }
        if members.turns.is_empty() {
            self.turns.retain(|other| *other != caller.party);
        }
        self.forget(caller);
        Some(waiter)
    }

    /// Forgets a caller that neither waits nor holds a slot.
    fn forget(&mut self, caller: &Caller) {
        let Some(members) = self.parties.get_mut(&caller.party) else { return };
        let is_idle = |connection: &Connection| connection.held == 0 && connection.queue.is_empty();
        if members.connections.get(&caller.connection).is_some_and(is_idle) {
            members.connections.remove(&caller.connection);
        }
        if members.connections.is_empty() {
            self.parties.remove(&caller.party);
        }
    }

    /// Takes the newest query of those out of the queue that have the most there, in favour of a caller with fewer.
    ///
    /// # Errors
    ///
    /// The caller is one of those.
    fn evict_for(&mut self, caller: &Caller) -> Result<Waiter, Full> {
        let full = Full { waiting: self.waiting };
        let refusable =
            |connection: &Connection| connection.queue.iter().filter(|w| w.may_be_refused).count();
        let of_party = |members: &Members| members.connections.values().map(refusable).sum::<usize>();
        let (party, members) =
            self.parties.iter().max_by_key(|(_, members)| of_party(members)).ok_or(full)?;
        let longest = members.connections.iter().max_by_key(|(_, connection)| refusable(connection));
        let (connection, longest) = longest.ok_or(full)?;
        let own = self.parties.get(&caller.party);
        let (most, mine) = if *party == caller.party {
            let mine = own.and_then(|members| members.connections.get(&caller.connection));
            (refusable(longest), mine.map_or(0, refusable))
        } else {
            (of_party(members), own.map_or(0, of_party))
        };
        // The caller has one more when its query waits too.
        if most <= mine + 1 {
            return Err(full);
        }
        let newest = longest.queue.iter().rev().find(|waiter| waiter.may_be_refused).ok_or(full)?;
        let (ticket, from) =
            (newest.ticket, Caller { party: party.clone(), connection: *connection, graph: None });
        self.leave(&from, ticket).ok_or(full)
    }
}

#[cfg(test)]
#[path = "slots_tests.rs"]
mod tests;
