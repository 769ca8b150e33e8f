//! Loads of other processes, which report whether the last changes concern them.

use super::loads::load_of;
use super::*;
use crate::{Comparison, LoadProgress, ReportLimit};
use std::sync::mpsc;
use tidegraph_platform::ManualClock;
use tidegraph_types::{LoadChange, RequestId};

const WITHIN: Duration = Duration::from_millis(500);

/// The vertices of a load that another process compares.
#[derive(Debug)]
struct Elsewhere(Arc<dyn Clock>);

impl NewVertices for Elsewhere {
    fn collision(&self, made: &mut dyn Iterator<Item = (Version, Gui, &Str)>) -> Option<Version> {
        made.next().map(|(version, ..)| version)
    }

    fn compare(
        &self,
        made: &mut dyn Iterator<Item = (Version, Gui, &Str)>,
        changes: &mut dyn Iterator<Item = (Version, LoadChange)>,
    ) -> Comparison {
        match self.conflict(made, changes) {
            Some(_) => Comparison::Asked(ReportLimit { clock: self.0.clone(), within: WITHIN }),
            None => Comparison::Free,
        }
    }
}

/// A sequencer that has just asked a load, with the clock of the question, its number, and the last version.
fn asked() -> (Arc<Sequencer>, Arc<ManualClock>, u64, Version) {
    let (sequencer, _) = in_memory();
    let clock = Arc::new(ManualClock::default());
    let watch = sequencer.begin_load();
    let base = sequencer.version();
    delete(&sequencer);
    let newest = sequencer.version();
    let vertices = Box::new(Elsewhere(clock.clone()));
    let load = LoadCommit { vertices, first_asked: Some(base), ..load_of(base, &[]) };
    let LoadProgress::Asked(number) = sequencer.commit_or_ask_load(&watch, load).unwrap() else { panic!() };
    (sequencer, clock, number, newest)
}

fn delete(sequencer: &Sequencer) -> Version {
    let mutations = vec![Mutation::DeleteVertex { gui: Gui(5), edges_left: false }];
    sequencer.commit(CommitRequest { mutations, ..request(Version(0), &[], &[]) }).unwrap()
}

/// Queues a commit, and returns where its answer arrives.
fn later(sequencer: &Sequencer) -> mpsc::Receiver<Result<Version, Error>> {
    let (sender, answer) = mpsc::channel();
    sequencer.commit_later(
        request(Version(0), &[], &[(1, 1)]),
        Box::new(move |answer| sender.send(answer).unwrap()),
    );
    answer
}

fn load_id() -> RequestId {
    RequestId::of_text("load-1")
}

#[test]
fn commits_wait_for_the_report_of_a_load_and_no_lock_is_held() {
    let (sequencer, clock, number, newest) = asked();
    let answer = later(&sequencer);
    clock.advance(WITHIN / 2);
    assert_eq!(sequencer.report_due(), Some(WITHIN / 2));
    // What needs no commit goes on.
    let another = sequencer.begin_load();
    assert!(sequencer.made_since(&another, newest, 1).is_some());
    assert_eq!(sequencer.load_changes(Version(0), 10).changes.len(), 1);
    assert_eq!(sequencer.version(), newest);
    // A report of another load, or on another question, is none.
    assert!(!sequencer.report_load(RequestId::of_text("other"), None, None, true));
    assert!(!sequencer.report_load(load_id(), Some(number + 1), None, true));
    assert!(sequencer.report_load(load_id(), Some(number), None, true));
    let loaded = newest.next();
    assert_eq!((sequencer.newest_load(), sequencer.report_due()), (loaded, None));
    assert_eq!(answer.recv().unwrap().unwrap(), loaded.next());
    assert!(!sequencer.report_load(load_id(), None, None, true));
    assert_eq!(sequencer.outcome(load_id(), Version(0)).unwrap(), Some(loaded));
}

#[test]
fn a_load_with_a_collision_is_not_committed() {
    let (sequencer, _, number, newest) = asked();
    let answer = later(&sequencer);
    assert!(sequencer.report_load(load_id(), Some(number), Some(newest), true));
    assert_eq!(answer.recv().unwrap().unwrap(), newest.next());
    assert_eq!(sequencer.newest_load(), Version(0));
    assert_eq!(sequencer.outcome(load_id(), Version(0)).unwrap(), None);
}

#[test]
fn commits_go_on_without_a_report() {
    let (sequencer, clock, number, newest) = asked();
    let answer = later(&sequencer);
    clock.advance(WITHIN);
    // The next request notices it, without any thread.
    let next = sequencer.commit(request(Version(0), &[], &[(2, 2)])).unwrap();
    assert_eq!((answer.recv().unwrap().unwrap(), next), (newest.next(), newest.next().next()));
    // The report is too late.
    assert!(!sequencer.report_load(load_id(), Some(number), None, true));
    assert_eq!(sequencer.newest_load(), Version(0));
}

#[test]
fn a_thread_notices_that_a_report_is_missing() {
    let (sequencer, clock, number, newest) = asked();
    let answer = later(&sequencer);
    clock.advance(WITHIN);
    // No request comes any more.
    sequencer.watch_report(load_id(), number).unwrap();
    assert_eq!(answer.recv().unwrap().unwrap(), newest.next());
    assert_eq!(sequencer.newest_load(), Version(0));
}

#[test]
fn a_thread_commits_a_load_whose_report_does_not_wait() {
    let (sequencer, _, number, newest) = asked();
    let answer = later(&sequencer);
    sequencer.watch_report(load_id(), number).unwrap();
    assert!(sequencer.report_load(load_id(), Some(number), None, false));
    assert_eq!(answer.recv().unwrap().unwrap(), newest.next().next());
    assert_eq!(sequencer.newest_load(), newest.next());
}

#[test]
fn a_shutdown_does_not_wait_for_a_report() {
    let (sequencer, _, number, _) = asked();
    let answer = later(&sequencer);
    sequencer.shutdown();
    assert!(!sequencer.report_load(load_id(), Some(number), None, true));
    // It was queued before the shutdown.
    answer.recv().unwrap().unwrap();
    assert_eq!(sequencer.newest_load(), Version(0));
}
