//! Several graphs at one server.

#![allow(clippy::disallowed_methods, reason = "a test reaches the machine itself")]
// The whole file is a test, its helpers too.
#![allow(clippy::unwrap_used)]

use parking_lot::{Condvar, Mutex};
use std::sync::Arc;
use std::time::Duration;
use tidegraph_platform::{RealClock, RealRandom};
use tidegraph_remote::{
    ClientConfig, Commits, Error, Graphs, RemoteCommits, RemoteNode, Security, Server, ServerConfig,
    Services, Status,
};

const LONG: Duration = Duration::from_secs(120);

/// A service that says its name, once a test has opened it.
#[derive(Default)]
struct Named {
    name: &'static str,
    /// Whether it is open, and how many requests came.
    state: Mutex<(bool, usize)>,
    opened: Condvar,
}

impl Named {
    fn closed(name: &'static str) -> Arc<Self> {
        Arc::new(Self { name, ..Self::default() })
    }

    fn open(&self) {
        self.state.lock().0 = true;
        self.opened.notify_all();
    }
}

impl Status for Named {
    fn status(&self) -> String {
        let mut state = self.state.lock();
        state.1 += 1;
        while !state.0 {
            self.opened.wait(&mut state);
        }
        self.name.into()
    }
}

fn services(named: &Arc<Named>) -> Services {
    Services { status: Some(named.clone()), ..Services::default() }
}

fn open(name: &'static str) -> Services {
    let named = Named::closed(name);
    named.open();
    services(&named)
}

fn serve(config: ServerConfig, graphs: &Graphs) -> Server {
    Server::start(config, Security::none(), graphs, Arc::new(RealClock::new()), &RealRandom).unwrap()
}

fn client(server: &Server, graph: &str) -> Arc<RemoteNode> {
    let config = ClientConfig { graph: graph.into(), ..ClientConfig::default() };
    let address = server.address().to_string();
    RemoteNode::new(&address, config, Security::none(), Arc::new(RealClock::new()), Arc::new(RealRandom))
}

#[test]
fn graphs_have_services_of_their_own_that_come_and_go() {
    let graphs = Graphs::one("one", open("first"));
    graphs.set("two", open("second"));
    let server = serve(ServerConfig::default(), &graphs);
    let (one, two) = (client(&server, "one"), client(&server, "two"));
    assert_eq!((one.status(LONG).unwrap(), two.status(LONG).unwrap()), ("first".into(), "second".into()));
    // Neither is a sequencer.
    assert!(matches!(RemoteCommits::new(one.clone(), LONG).newest(), Err(Error::NotSequencer(_))));
    let refused = client(&server, "three").status(LONG).unwrap_err();
    assert!(matches!(refused, Error::Refused { .. }), "{refused}");
    let refused = refused.to_string();
    assert!(refused.contains(r#""three""#) && refused.contains(r#"["one", "two"]"#), "{refused}");

    // A graph that is removed takes its connections with it, and only them.
    graphs.remove("one");
    server.end_stale_connections();
    while one.status(LONG).is_ok() {
        std::thread::yield_now();
    }
    let connections = server.counters().connections.load(std::sync::atomic::Ordering::Relaxed);
    assert_eq!(two.status(LONG).unwrap(), "second");
    assert_eq!(server.counters().connections.load(std::sync::atomic::Ordering::Relaxed), connections);
    // It comes back with other services, which its clients get from then on.
    graphs.set("one", open("third"));
    let answer = loop {
        if let Ok(answer) = one.status(LONG) {
            break answer;
        }
        std::thread::yield_now();
    };
    assert_eq!(answer, "third");
    // As if its node had failed: services are replaced without a pause.
    graphs.set("one", open("fourth"));
    server.end_stale_connections();
    while one.status(LONG).is_ok_and(|answer| answer == "third") {
        std::thread::yield_now();
    }
}

#[test]
fn clients_of_another_graph_of_the_name_are_refused() {
    let of = |incarnation: &str, name| Services { incarnation: incarnation.into(), ..open(name) };
    let graphs = Graphs::one("one", of("aa", "first"));
    let server = serve(ServerConfig::default(), &graphs);
    let client = |incarnation: &str| {
        let config =
            ClientConfig { graph: "one".into(), incarnation: incarnation.into(), ..ClientConfig::default() };
        let address = server.address().to_string();
        RemoteNode::new(&address, config, Security::none(), Arc::new(RealClock::new()), Arc::new(RealRandom))
    };
    let first = client("aa");
    assert_eq!(first.status(LONG).unwrap(), "first");
    // The graph is dropped and made again.
    graphs.remove("one");
    server.end_stale_connections();
    graphs.set("one", of("bb", "second"));
    let refused = loop {
        match first.status(LONG) {
            Err(error @ Error::Refused { .. }) => break error.to_string(),
            answered => assert_ne!(answered.unwrap_or_default(), "second"),
        }
    };
    assert!(refused.contains(r#"graph "one""#) && refused.contains(r#""aa", now "bb""#), "{refused}");
    assert_eq!(client("bb").status(LONG).unwrap(), "second");
    // Nor does one come in that knows a graph without an incarnation, or the other way round.
    for incarnation in ["", "aa"] {
        let refused = client(incarnation).status(LONG).unwrap_err();
        assert!(matches!(refused, Error::Refused { .. }), "{refused}");
    }
    graphs.set("one", open("third"));
    let refused = client("bb").status(LONG).unwrap_err();
    assert!(matches!(refused, Error::Refused { .. }), "{refused}");
}

#[test]
fn requests_that_wait_take_no_threads_of_other_graphs() {
    let stuck = Named::closed("stuck");
    let graphs = Graphs::one("stuck", services(&stuck));
    graphs.set("well", open("well"));
    let config = ServerConfig { waiters: 1, committers: 1, workers: 1, ..ServerConfig::default() };
    let server = serve(config, &graphs);
    let (waits, well) = (client(&server, "stuck"), client(&server, "well"));
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| waits.status(LONG));
        // It has the only thread of its graph.
        while stuck.state.lock().1 == 0 {
            std::thread::yield_now();
        }
        assert_eq!(well.status(LONG).unwrap(), "well");
        stuck.open();
        assert_eq!(waiting.join().unwrap().unwrap(), "stuck");
    });
}
