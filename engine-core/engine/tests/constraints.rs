//! Unique constraints hold for every kind of write, for concurrent writes, and across restarts.

#![allow(clippy::disallowed_methods, reason = "a test reaches the machine itself")]

mod support;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use support::{ask, empty, open, refused, run};
use tidegraph_engine::loads::{Dialect, LoadSpec, LoadState};
use tidegraph_engine::plan::{Procedure, Procedures, Signature};
use tidegraph_engine::{Database, InlineLimits, Language, Options, Parameters, Query, Transaction};
use tidegraph_types::ErrorCode;

const CONSTRAINT: &str = "CREATE CONSTRAINT one_email FOR (n:User) REQUIRE n.email IS UNIQUE";
const CODE: &str = "UniqueConstraintViolationException";

#[test]
fn every_way_to_make_a_duplicate_is_refused() {
    let database = empty();
    run(&database, CONSTRAINT);
    assert_eq!(
        run(&database, "SHOW CONSTRAINTS"),
        ["one_email | UNIQUENESS | NODE | [User] | [email] | one_email"]
    );
    assert_eq!(
        run(&database, "SHOW INDEXES"),
        ["one_email | ONLINE | RANGE | NODE | [User] | [email] | one_email"]
    );
    run(&database, "CREATE (:User {`~id`: 'a', email: 'a@x'}), (:User {`~id`: 'b', email: 'b@x'})");
    // The constraint covers neither vertices of other labels nor vertices without a value.
    run(
        &database,
        "CREATE (:Guest {`~id`: 'g', email: 'a@x'}), (:User {`~id`: 'c'}), (:User), (:User {n: 1})",
    );
    assert_eq!(
        refused(&database, "CREATE (:User {`~id`: 'd', email: 'a@x'})"),
        format!(
            "{CODE}: vertices [\"a\", \"d\"] of label `User` would both have \"a@x\" for `email`, which is unique"
        )
    );
    for text in [
        "MATCH (n:User) WHERE id(n) = 'b' SET n.email = 'a@x'",
        "MATCH (n:User) WHERE id(n) = 'c' SET n += {email: 'b@x'}",
        "MATCH (n:Guest) WHERE id(n) = 'g' SET n:User",
        "CREATE (:User {email: 'new'}), (:User {email: 'new'})",
        "UNWIND [1, 1.0] AS v CREATE (:User {email: v})",
        "g.addV('User').property('email', 'a@x')",
        "g.V('c').property(single, 'email', 'a@x')",
        "g.V('c').property(set, 'email', 'b@x')",
    ] {
        assert!(refused(&database, text).starts_with(CODE), "{text}");
    }
    assert_eq!(run(&database, "MATCH (n:User) RETURN count(n), count(n.email)"), ["5 | 2"]);
    // None of these writes breaks the constraint.
    for text in [
        "MATCH (n:User {email: 'a@x'}) SET n.email = 'a@x'",
        "MERGE (n:User {email: 'a@x'}) SET n.seen = true",
        "MATCH (a:User {email: 'a@x'}), (b:User {email: 'b@x'}) SET a.email = 'b@x', b.email = 'a@x'",
        "MATCH (n:User {email: 'a@x'}) DELETE n CREATE (:User {email: 'a@x'})",
        "MATCH (n:User {email: 'b@x'}) REMOVE n:User",
        "CREATE (:User {email: 'b@x'})",
        "CREATE (:User {email: 0.0/0.0}), (:User {email: 0.0/0.0})",
    ] {
        run(&database, text);
    }
    run(&database, "DROP CONSTRAINT one_email");
    run(&database, "CREATE (:User {email: 'a@x'})");
    assert_eq!(run(&database, "MATCH (n:User {email: 'a@x'}) RETURN count(n)"), ["2"]);
}

#[test]
fn data_that_breaks_it_is_named_and_nothing_is_made() {
    let database = empty();
    run(&database, "UNWIND range(1, 500) AS i CREATE (:User {email: i})");
    run(&database, "CREATE (:User {`~id`: 'x', email: 'same'}), (:User {`~id`: 'y', email: 'same'})");
    let message = refused(&database, CONSTRAINT);
    assert!(message.starts_with(CODE) && message.contains("\"x\"") && message.contains("\"y\""), "{message}");
    assert_eq!(run(&database, "SHOW CONSTRAINTS"), Vec::<String>::new());
    assert_eq!(run(&database, "SHOW INDEXES"), Vec::<String>::new());
    run(&database, "CREATE (:User {email: 'same'})");
    run(&database, "MATCH (n:User {email: 'same'}) WITH n SKIP 1 DELETE n");
    run(&database, CONSTRAINT);
    assert!(refused(&database, "CREATE (:User {email: 500.0})").starts_with(CODE));
    assert_eq!(
        refused(&database, "DROP INDEX one_email"),
        "BadRequestException: index `one_email` belongs to a constraint: use DROP CONSTRAINT"
    );
}

#[test]
fn of_several_at_the_same_time_exactly_one_commits() {
    let database = empty();
    run(&database, CONSTRAINT);
    for round in 0..30 {
        let text = format!("CREATE (:User {{email: 'race {round}'}})");
        let committed: usize = std::thread::scope(|scope| {
            let threads: Vec<_> =
                (0..4).map(|_| scope.spawn(|| ask(&database, &text, &Parameters::default()))).collect();
            let results = threads.into_iter().map(|thread| thread.join().expect("no panic"));
            results
                .filter(|result| match result {
                    Ok(_) => true,
                    Err(error) => {
                        assert_eq!(error.code().as_str(), CODE);
                        false
                    }
                })
                .count()
        });
        assert_eq!(committed, 1);
    }
    assert_eq!(run(&database, "MATCH (n:User) RETURN count(n), count(DISTINCT n.email)"), ["30 | 30"]);
}

#[test]
fn made_while_others_write_it_holds_afterwards() {
    for round in 0..5 {
        let database = empty();
        run(&database, "UNWIND range(1, 2000) AS i CREATE (:User {email: i})");
        let made = std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    for n in 0..40 {
                        let text = format!("CREATE (:User {{email: 'w{n}'}})");
                        // Both threads write the same values, so either the second write
                        // or the constraint is refused.
                        let _ = ask(&database, &text, &Parameters::default());
                    }
                });
            }
            ask(&database, CONSTRAINT, &Parameters::default()).is_ok()
        });
        let counts = run(&database, "MATCH (n:User) RETURN count(n), count(DISTINCT n.email)");
        assert!(!made || counts == ["2040 | 2040"], "round {round}: {counts:?}");
        assert_eq!(run(&database, "SHOW CONSTRAINTS").len(), usize::from(made));
    }
}

#[test]
fn it_outlives_a_restart() {
    let home = tempfile::tempdir().expect("a folder");
    let database = open(home.path());
    run(&database, "CREATE (:User {email: 'a'})");
    run(&database, CONSTRAINT);
    database.close();
    drop(database);
    let database = open(home.path());
    assert_eq!(run(&database, "SHOW CONSTRAINTS").len(), 1);
    assert!(refused(&database, "CREATE (:User {email: 'a'})").starts_with(CODE));
    run(&database, "CREATE (:User {email: 'b'})");
}

#[test]
fn rows_of_a_load_that_break_it_are_refused() {
    let home = tempfile::tempdir().expect("a folder");
    let database = empty();
    run(&database, CONSTRAINT);
    run(&database, "CREATE (:User {`~id`: 'old', email: 'taken'}), (:Guest {`~id`: 'guest', email: 'own'})");
    let csv = "~id,~label,email:String\n\
        n1,User,fresh\n\
        n2,User,taken\n\
        n3,User,fresh\n\
        n4,Guest,taken\n\
        n4,User,\n\
        old,User,taken\n\
        guest,User,\n\
        n5,User,own\n\
        n6,User,last\n";
    std::fs::write(home.path().join("users.csv"), csv).expect("written");
    let source = format!("file://{}", home.path().display());
    let mut spec = LoadSpec::new(vec![source], Some(Dialect::GREMLIN));
    spec.fail_on_error = false;
    let id = database.loads().submit(spec).expect("taken");
    let status = database.loads().wait(&id).expect("known");
    assert_eq!(status.overall.state, LoadState::Completed, "{:?}", status.errors);
    let lines: Vec<_> =
        status.errors.iter().map(|e| (e["recordNum"].clone(), e["errorCode"].clone())).collect();
    // A batch checks new vertices before existing ones, so line 9 gets the value and line 8 is refused.
    let refused = |line: u64| (line.into(), "UNIQUE_CONSTRAINT_VIOLATION".into());
    assert_eq!(lines, [3, 4, 6, 8].map(refused), "{:?}", status.errors);
    assert_eq!(run(&database, "MATCH (n:User) RETURN count(n), count(DISTINCT n.email)"), ["4 | 4"]);
}

#[test]
fn if_not_exists_is_no_promise_that_an_index_cannot_keep() {
    let database = empty();
    run(&database, "CREATE INDEX i FOR (n:User) ON (n.email)");
    for name in ["c", "i"] {
        let text = format!("CREATE CONSTRAINT {name} IF NOT EXISTS FOR (n:User) REQUIRE n.email IS UNIQUE");
        assert!(refused(&database, &text).contains("exists already"), "{name}");
    }
    assert_eq!(run(&database, "SHOW CONSTRAINTS"), [""; 0]);
    run(&database, "DROP INDEX i");
    run(&database, CONSTRAINT);
    // These are what is asked for.
    for text in [
        "CREATE CONSTRAINT IF NOT EXISTS FOR (n:User) REQUIRE n.email IS UNIQUE",
        "CREATE CONSTRAINT one_email IF NOT EXISTS FOR (n:Other) REQUIRE n.id IS UNIQUE",
        "CREATE INDEX IF NOT EXISTS FOR (n:User) ON (n.email)",
    ] {
        run(&database, text);
    }
    let text = "CREATE INDEX one_email IF NOT EXISTS FOR (n:Other) ON (n.id)";
    assert!(refused(&database, text).contains("a constraint with the name `one_email` exists already"));
    assert_eq!(run(&database, "SHOW INDEXES").len(), 1);
}

/// Whoever gets an answer while the constraint is being made gets the one that it ends with.
#[test]
fn if_not_exists_waits_for_a_constraint_that_is_being_made() {
    let database = empty();
    run(&database, "UNWIND range(1, 20000) AS i CREATE (:User {email: rand()})");
    run(&database, "CREATE (:User {email: 'same'}), (:User {email: 'same'})");
    let text = "CREATE CONSTRAINT c IF NOT EXISTS FOR (n:User) REQUIRE n.email IS UNIQUE";
    std::thread::scope(|scope| {
        let all: Vec<_> = (0..8).map(|_| scope.spawn(|| refused(&database, text))).collect();
        for one in all {
            let message = one.join().expect("no panic");
            assert!(message.contains("constraint `c` does not hold"), "{message}");
        }
    });
    assert_eq!(run(&database, "SHOW CONSTRAINTS"), [""; 0]);
}

#[test]
fn numbers_that_are_equal_are_not_unique() {
    let database = empty();
    run(&database, CONSTRAINT);
    for (whole, float) in
        [("9210000000000000000", "9.21e18"), ("-9223372036854775808", "-9223372036854775808.0")]
    {
        let text = format!("CREATE (:User {{email: {whole}}}), (:User {{email: {float}}})");
        assert!(refused(&database, &text).starts_with(CODE), "{text}");
        let text = format!("UNWIND [{whole}, {float}] AS x RETURN count(DISTINCT x)");
        assert_eq!(run(&database, &text), ["1"], "{text}");
    }
}

/// A database with the procedure `test.meanwhile`, whose first call runs `texts` as requests of their own. Returns the
/// number of its calls, too.
fn with_meanwhile(texts: &'static [&'static str]) -> (Arc<Database>, Arc<AtomicU64>) {
    let (database, calls) = (Arc::new(OnceLock::<Weak<Database>>::new()), Arc::new(AtomicU64::new(0)));
    let (inner, counted) = (database.clone(), calls.clone());
    let meanwhile = Procedure::new(Signature::new("test.meanwhile"), move |_, _| {
        if counted.fetch_add(1, Ordering::Relaxed) == 0 {
            let database = inner.get().and_then(Weak::upgrade).expect("it is open");
            texts.iter().for_each(|text| drop(run(&database, text)));
        }
        Ok(())
    });
    let procedures = Procedures::default().with(meanwhile).expect("a procedure");
    let opened = Database::open(Options { procedures, ..Options::default() }).expect("opens");
    database.set(Arc::downgrade(&opened)).expect("set once");
    (opened, calls)
}

/// The request reads a version at which the value has a holder, but no constraint. When it is checked there is a
/// constraint, but no holder.
#[test]
fn a_value_that_breaks_the_constraint_at_no_version_is_not_refused() {
    let (database, calls) = with_meanwhile(&["MATCH (n:User {email: 'a'}) DELETE n", CONSTRAINT]);
    run(&database, "CREATE (:User {email: 'a'})");
    run(&database, "CALL test.meanwhile() CREATE (:User {email: 'a'})");
    assert_eq!(calls.load(Ordering::Relaxed), 2);
    assert_eq!(run(&database, "MATCH (n:User) RETURN n.email"), ["a"]);
    assert!(refused(&database, "CALL test.meanwhile() CREATE (:User {email: 'a'})").starts_with(CODE));
    assert_eq!(calls.load(Ordering::Relaxed), 3);
}

#[test]
fn a_request_on_the_short_path_conflicts_instead() {
    let (database, calls) = with_meanwhile(&["MATCH (n:User {email: 'a'}) DELETE n", CONSTRAINT]);
    run(&database, "CREATE (:User {email: 'a'})");
    let (text, none) = ("CALL test.meanwhile() CREATE (:User {email: 'a'})", Parameters::default());
    let query = Query::new(Language::OpenCypher, text, &none);
    // The short path takes texts that were planned.
    database.explain(Language::OpenCypher, text).expect("a plan");
    let limits = InlineLimits { time: std::time::Duration::from_secs(60), memory_bytes: 1 << 20, rows: 10 };
    let answer = database.query_inline(&query, limits).expect("it is planned").expect("it breaks nothing");
    assert_eq!(calls.load(Ordering::Relaxed), 1);
    let (sender, committed) = std::sync::mpsc::channel();
    let done = Box::new(move |ended| drop(sender.send(ended)));
    database.commit_later(answer.commit.expect("a write"), done);
    let error = committed.recv().expect("an end").expect_err("there is a constraint now");
    assert_eq!(error.code(), ErrorCode::ConcurrentModification);
    database.query(&query).expect("no vertex has the value");
}

/// A transaction of several requests is not run again here, so its client has to be told that it can be.
#[test]
fn a_transaction_that_read_before_the_constraint_conflicts() {
    let database = empty();
    run(&database, "CREATE (:User {email: 'a'})");
    let none = Parameters::default();
    let query = |text| Query::new(Language::OpenCypher, text, &none);
    let mut transaction = Transaction::new(None, None, false);
    database.query_within(&mut transaction, &query("MATCH (n:User) RETURN n.email")).expect("a version");
    run(&database, "MATCH (n:User {email: 'a'}) DELETE n");
    run(&database, CONSTRAINT);
    database
        .query_within(&mut transaction, &query("CREATE (:User {email: 'a'})"))
        .expect("no constraint yet");
    let profile = query("PROFILE CREATE (:User {email: 'a'})");
    database.query_within(&mut transaction, &profile).expect("not even for two of them");
    let error = database.commit_transaction(transaction).expect_err("there is a constraint now");
    assert_eq!(error.code(), ErrorCode::ConcurrentModification);
    // At the newest version the request itself is refused.
    let mut transaction = Transaction::new(None, None, false);
    database.query_within(&mut transaction, &query("CREATE (:User {email: 'a'})")).expect("it is free");
    let again = database.query_within(&mut transaction, &query("CREATE (:User {email: 'a'})"));
    assert_eq!(again.expect_err("it is taken").code(), ErrorCode::UniqueViolation);
}

/// A profile runs once: its client sends it again after a conflict.
#[test]
fn a_profile_of_a_write_conflicts_with_a_later_constraint() {
    let (database, calls) = with_meanwhile(&["MATCH (n:User {email: 'a'}) DELETE n", CONSTRAINT]);
    run(&database, "CREATE (:User {email: 'a'})");
    let text = "PROFILE CALL test.meanwhile() CREATE (:User {email: 'a'})";
    assert!(refused(&database, text).starts_with("ConcurrentModificationException"));
    run(&database, text);
    assert_eq!(calls.load(Ordering::Relaxed), 2);
    assert_eq!(run(&database, "MATCH (n:User) RETURN n.email"), ["a"]);
}

/// What is refused at the newest version, too, is refused with that version's reason.
#[test]
fn a_value_that_breaks_the_constraint_at_the_newest_version_is_refused() {
    let (database, calls) = with_meanwhile(&["CREATE (:Other)", CONSTRAINT]);
    run(&database, "CREATE (:User {`~id`: 'x', email: 'a'})");
    let message = refused(&database, "CALL test.meanwhile() CREATE (:User {email: 'a'})");
    assert!(message.starts_with(CODE) && message.contains("\"x\""), "{message}");
    assert_eq!(calls.load(Ordering::Relaxed), 2);
}
