//! Loads beside transactions.

use super::*;
use tidegraph_types::LoadChange;

/// The new vertices of a load.
#[derive(Debug)]
struct Vertices(Vec<(Gui, &'static str)>);

impl NewVertices for Vertices {
    fn collision(&self, made: &mut dyn Iterator<Item = (Version, Gui, &Str)>) -> Option<Version> {
        let collides = |gui: Gui, id: &str| self.0.iter().any(|(other, name)| *other == gui && *name != id);
        for (version, gui, id) in made {
            if collides(gui, id) {
                return Some(version);
            }
        }
        None
    }
}

pub(super) fn load_of(read_version: Version, vertices: &[(Gui, &'static str)]) -> LoadCommit {
    LoadCommit {
        load_id: "load-1".to_owned(),
        segments: vec!["s/0".to_owned()],
        read_version,
        read_keys: vec![],
        compared: read_version,
        changes_compared: read_version,
        first_asked: None,
        vertices: Box::new(Vertices(vertices.to_vec())),
    }
}

#[test]
fn a_load_whose_gui_went_to_another_id_is_refused() {
    let (sequencer, _) = in_memory();
    let make = |gui: u64, id: &str| {
        let mut write = request(Version(0), &[], &[]);
        let (gui, id) = (Gui(gui), id.into());
        write.mutations = vec![Mutation::CreateVertex { gui, id, labels: vec![], properties: vec![] }];
        sequencer.commit(write).unwrap()
    };
    let early = make(1, "before");
    // Vertices are not recorded for a version that was read before the load began.
    drop(sequencer.begin_load());
    make(2, "between");
    let watch = sequencer.begin_load();
    assert!(is_conflict(sequencer.commit_load(&watch, load_of(early, &[]))));
    let base = sequencer.version();
    make(3, "a");
    let collided = make(4, "other");
    let vertices = [(Gui(1), "x"), (Gui(2), "y"), (Gui(3), "a"), (Gui(4), "b")];
    match sequencer.commit_load(&watch, load_of(base, &vertices)) {
        Err(Error::Conflict { written, .. }) => assert_eq!(written, collided),
        other => panic!("{other:?}"),
    }
    // The same id twice is one vertex. Vertices that existed at the load's version are checked by the load itself.
    sequencer.commit_load(&watch, load_of(base, &vertices[..3])).unwrap();
}

/// The vertices of a load that knows which changes concern it.
#[derive(Debug)]
pub(super) struct Narrow(pub Gui);

impl NewVertices for Narrow {
    fn collision(&self, _: &mut dyn Iterator<Item = (Version, Gui, &Str)>) -> Option<Version> {
        None
    }

    fn depends_on(&self, changes: &mut dyn Iterator<Item = (Version, LoadChange)>) -> Option<Version> {
        let concerns = |change| change == LoadChange::Deleted(self.0) || change == LoadChange::Any;
        for (version, change) in changes {
            if concerns(change) {
                return Some(version);
            }
        }
        None
    }
}

#[test]
fn a_load_is_refused_for_changes_that_concern_it() {
    let (sequencer, _) = in_memory();
    let early = sequencer.commit(request(Version(0), &[], &[(1, 1)])).unwrap();
    let delete = |gui: u64| {
        let mutations = vec![Mutation::DeleteVertex { gui: Gui(gui), edges_left: false }];
        sequencer.commit(CommitRequest { mutations, ..request(Version(0), &[], &[]) }).unwrap()
    };
    delete(50);
    let watch = sequencer.begin_load();
    let load = |read_version| {
        let vertices = Box::new(Narrow(Gui(7)));
        sequencer.commit_load(&watch, LoadCommit { vertices, ..load_of(read_version, &[]) })
    };
    // What happened before the watch began is not known.
    assert!(is_conflict(load(early)));
    let base = sequencer.version();
    for gui in 100..200 {
        delete(gui);
    }
    let first = load(base).unwrap();
    // Another load concerns every load.
    assert!(is_conflict(load(base)));
    let deleted = delete(7);
    delete(8);
    match load(first) {
        Err(Error::Conflict { written, .. }) => assert_eq!(written, deleted),
        other => panic!("{other:?}"),
    }
    load(deleted).unwrap();
}

/// Shows TXN-2.
#[test]
fn a_reset_conflicts_with_what_was_read_before_it() {
    let (sequencer, _) = in_memory();
    let base = sequencer.commit(request(Version(0), &[], &[(1, 1), (2, 2)])).unwrap();
    let watch = sequencer.begin_load();
    let load = |read_version, compared| {
        let changes_compared = compared;
        sequencer.commit_load(&watch, LoadCommit { changes_compared, ..load_of(read_version, &[]) })
    };
    let reset = CommitRequest { mutations: vec![Mutation::Reset], ..request(base, &[], &[]) };
    // Those of the same group too, in the order of the group.
    let together = vec![request(base, &[1], &[(1, 3)]), reset, request(base, &[2], &[(2, 3)])];
    let [before, reset, after] = &sequencer.commit_together(together)[..] else { unreachable!() };
    let (before, reset) = (*before.as_ref().unwrap(), *reset.as_ref().unwrap());
    assert_eq!(reset, before.next());
    assert!(is_conflict(after.clone()));
    for read in [base, before] {
        assert!(is_conflict(sequencer.commit(request(read, &[99], &[(3, 3)]))));
        assert!(is_conflict(load(read, read)));
    }
    sequencer.commit(request(reset, &[1], &[(1, 4)])).unwrap();
    load(reset, reset).unwrap();
}

/// Shows TXN-2.
#[test]
fn loads_and_transactions() {
    let (sequencer, _) = in_memory();
    let watch = sequencer.begin_load();
    let load = |read_version| sequencer.commit_load(&watch, load_of(read_version, &[]));
    let write = |mutation| {
        let mut write = request(Version(0), &[], &[]);
        write.mutations = vec![mutation];
        sequencer.commit(write).unwrap()
    };
    let edge = Edge { sid: Sid(1), source: Gui(1), target: Gui(2), label: Token(1) };
    let make = |id: Option<Str>| Mutation::CreateEdge { edge, id, properties: vec![] };
    // Data that the load did not check may change.
    let base = write(set(1, 1));
    write(make(None));
    write(set(1, 2));
    let loaded = load(base).unwrap();
    // A transaction that read before the load may have missed its vertices; a blind one read nothing.
    assert!(is_conflict(sequencer.commit(request(base, &[77], &[(77, 1)]))));
    sequencer.commit(request(base, &[], &[(77, 1)])).unwrap();
    sequencer.commit(request(loaded, &[78], &[(78, 1)])).unwrap();
    // Data that the load checked may not change.
    let add = Mutation::AddException { id: "a".into(), gui: Gui(9) };
    for mutation in [Mutation::DeleteVertex { gui: Gui(5), edges_left: false }, make(Some("e".into())), add] {
        let base = sequencer.version();
        write(mutation);
        assert!(is_conflict(load(base)));
        load(sequencer.version()).unwrap();
    }
    // Another load was committed in between.
    let base = sequencer.version();
    load(base).unwrap();
    assert!(is_conflict(load(base)));
}

/// Shows TXN-4.
#[test]
fn a_load_that_is_asked_for_again_is_committed_once() {
    let (sequencer, _) = in_memory();
    let watch = sequencer.begin_load();
    let base = sequencer.version();
    let load = || LoadCommit { first_asked: Some(base), ..load_of(base, &[]) };
    let first = sequencer.commit_load(&watch, load()).unwrap();
    assert_eq!(sequencer.newest_load(), first);
    sequencer.commit(request(Version(0), &[], &[(1, 1)])).unwrap();
    assert_eq!(sequencer.commit_load(&watch, load()).unwrap(), first);
    assert_eq!(sequencer.version(), first.next());
}

#[test]
fn what_is_made_during_loads_can_be_asked_for_in_pieces() {
    let (sequencer, _) = in_memory();
    let make = |gui: u64| {
        let mut write = request(Version(0), &[], &[]);
        let id: Str = format!("v{gui}").into();
        write.mutations =
            vec![Mutation::CreateVertex { gui: Gui(gui), id, labels: vec![], properties: vec![] }];
        sequencer.commit(write).unwrap()
    };
    make(0);
    let watch = sequencer.begin_load();
    let base = sequencer.version();
    let versions: Vec<Version> = (1..=5).map(make).collect();
    assert_eq!(sequencer.made_since(&watch, Version(0), 1), None, "it was not noted");
    // Each piece has at least one version.
    let (mut at, mut pieces) = (base, 0);
    let mut met = Vec::new();
    while at < sequencer.version() {
        let some = sequencer.made_since(&watch, at, 1).unwrap();
        met.extend(some.vertices.iter().map(|made| (made.version, made.gui, made.id.to_string())));
        assert!(some.upto > at);
        at = some.upto;
        pieces += 1;
    }
    let expected = (1..=5_u64).zip(&versions).map(|(n, version)| (*version, Gui(n), format!("v{n}")));
    assert_eq!(met, expected.collect::<Vec<_>>());
    assert!(pieces > 1, "{pieces}");
    sequencer.forget_made(versions[2]);
    assert_eq!(sequencer.made_since(&watch, base, 1 << 20), None);
    let rest = sequencer.made_since(&watch, versions[2], 1 << 20).unwrap();
    assert_eq!(rest.vertices.len(), 2);
    // A load that compared only forgotten versions cannot be committed.
    assert!(is_conflict(sequencer.commit_load(&watch, load_of(base, &[]))));
    let compared = LoadCommit { compared: versions[2], ..load_of(base, &[]) };
    sequencer.commit_load(&watch, compared).unwrap();
}

/// Shows that a load ends beside writes of more keys than are remembered.
#[test]
fn a_load_meets_no_conflict_with_keys_that_it_never_read() {
    let config = SequencerConfig { remembered_keys: 10, ..SequencerConfig::default() };
    let applier = Box::new(Numbers::default());
    let sequencer = Sequencer::start(config, Box::new(MemoryLog::default()), Recovered::default(), applier);
    sequencer.commit(request(Version(0), &[], &[(1, 1)])).unwrap();
    let watch = sequencer.begin_load();
    let base = sequencer.version();
    for n in 0..100 {
        sequencer.commit(request(sequencer.version(), &[], &[(1_000 + n, 1)])).unwrap();
    }
    let any_unique = Key::any_unique(Token(1), Token(2));
    let load = |read_version| LoadCommit {
        read_keys: vec![Key::constraints(), any_unique],
        ..load_of(read_version, &[])
    };
    let loaded = sequencer.commit_load(&watch, load(base)).unwrap();
    // What it did read still counts, however many keys were written after that.
    sequencer
        .commit(CommitRequest { write_keys: vec![any_unique], ..request(loaded, &[], &[(1, 2)]) })
        .unwrap();
    for n in 0..100 {
        sequencer.commit(request(sequencer.version(), &[], &[(1_000 + n, 1)])).unwrap();
    }
    assert!(is_conflict(sequencer.commit_load(&watch, load(loaded))));
}
