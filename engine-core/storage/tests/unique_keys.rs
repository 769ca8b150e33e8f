//! The constraints that a replica reports.

// The whole file is a test, its helpers too.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use tidegraph_apl::{Apl, At, Error};
use tidegraph_platform::ManualClock;
use tidegraph_storage::{Store, StoreConfig};
use tidegraph_types::{Epoch, IndexDefinition, Mutation, Token, Version};

const PAIR: (Token, Token) = (Token(1), Token(2));

fn asked(store: &Store, version: u64) -> Result<Vec<(Token, Token)>, Error> {
    Apl::unique_keys(store, At { version: Version(version), epoch: Epoch::default() })
}

#[test]
fn a_replica_that_was_late_does_not_forget_one() {
    let store = Store::new(StoreConfig::new(Arc::new(ManualClock::default())));
    let define = || Mutation::DefineIndex {
        index: IndexDefinition {
            name: "ids".into(),
            label: PAIR.0,
            key: PAIR.1,
            unique: true,
            unchecked: false,
        },
    };
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
