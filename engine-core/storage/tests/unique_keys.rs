//! The constraints that a replica reports.

// The whole file is a test, its helpers too.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use tidegraph_apl::{Apl, At, Error};
use tidegraph_platform::{ManualClock, Objects};
use tidegraph_storage::checkpoint::restore_newest;
use tidegraph_storage::{CheckpointMeta, Store, StoreConfig};
use tidegraph_types::{Epoch, Gui, IndexDefinition, Mutation, Token, Version};

const PAIR: (Token, Token) = (Token(1), Token(2));

fn asked(store: &Store, version: u64) -> Result<Vec<(Token, Token)>, Error> {
    Apl::unique_keys(store, At { version: Version(version), epoch: Epoch::default() })
}

fn define() -> Mutation {
    let (name, (label, key)) = ("ids".into(), PAIR);
    Mutation::DefineIndex { index: IndexDefinition { name, label, key, unique: true, unchecked: false } }
}

#[test]
fn a_replica_that_was_late_does_not_forget_one() {
    let store = Store::new(StoreConfig::new(Arc::new(ManualClock::default())));
    let apply = |version, mutation| {
        store.apply(Version(version), &[mutation]);
        store.publish(Version(version));
    };
    apply(1, define());
    // The index is filled, here and on other replicas; the constraint is not confirmed yet.
    assert_eq!(asked(&store, 1).unwrap(), []);
    // The engine has seen the index complete on all replicas that answered, and confirms
    // it. This replica did not answer.
    apply(2, define());
    assert!(matches!(asked(&store, 2), Err(Error::Unavailable(reason)) if reason.contains("`ids`")));
    store.fill_indexes(&|| false).unwrap();
    assert_eq!(asked(&store, 2).unwrap(), [PAIR]);
    assert!(matches!(asked(&store, 3), Err(Error::Behind { applied: Version(2), asked: Version(3) })));
    apply(3, Mutation::DropIndex { name: "ids".into() });
    assert_eq!(asked(&store, 3).unwrap(), []);
}

/// Who reads an older version must not be told of a constraint that it did not have: it would be compared with values that
/// were gone when the constraint came.
#[test]
fn a_version_has_the_constraints_that_were_defined_before_it() {
    let store = Store::new(StoreConfig::new(Arc::new(ManualClock::default())));
    let apply = |version, mutations: &[Mutation]| {
        store.apply(Version(version), mutations);
        store.publish(Version(version));
    };
    apply(1, &[Mutation::CreateVertex { gui: Gui(1), id: "a".into(), labels: vec![], properties: vec![] }]);
    let _pin = store.pin(Version(1)).unwrap();
    apply(2, &[define()]);
    store.fill_indexes(&|| false).unwrap();
    apply(3, &[define()]);
    assert_eq!(asked(&store, 1).unwrap(), []);
    assert_eq!(asked(&store, 2).unwrap(), [PAIR]);
    // A reset begins the index anew, but the constraint was there before.
    apply(4, &[Mutation::Reset]);
    assert_eq!(asked(&store, 1).unwrap(), []);
    assert_eq!([2, 3, 4].map(|version| asked(&store, version).unwrap()), [[PAIR]; 3]);
}

/// A checkpoint does not say when an index was defined, so its store answers for no version before its own.
#[test]
fn a_restored_replica_does_not_answer_for_versions_before_its_checkpoint() {
    let config = StoreConfig::new(Arc::new(ManualClock::default()));
    let store = Store::new(config.clone());
    store.apply(Version(1), &[define()]);
    store.apply(Version(2), &[]);
    store.publish(Version(2));
    let objects = Objects::memory().unwrap();
    let meta = CheckpointMeta { graph: "g".into(), epoch: Epoch::default(), next_sid: 0, tokens: vec![] };
    store.checkpoint(Version(2), &objects, "c", meta).unwrap();
    let restored = restore_newest(&config, &objects, "c").unwrap().unwrap().store;
    restored.fill_indexes(&|| false).unwrap();
    assert_eq!(asked(&restored, 2).unwrap(), [PAIR]);
    assert!(matches!(asked(&restored, 1), Err(Error::TooOld { oldest: Version(2), asked: Version(1) })));
}
