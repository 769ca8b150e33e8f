//! Loads beside transactions.

use super::*;

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
