//! What a principal's roles allow in queries, transactions and explanations.

#![allow(clippy::unwrap_used, reason = "a test ends by panicking")]

use tidegraph_engine::{
    Database, Explain, InlineLimits, Language, Options, Parameters, Principal, Query, Role, Transaction,
};
use tidegraph_types::ErrorCode;

fn user(roles: &[Role]) -> Principal {
    Principal::User("ada".into(), roles.iter().copied().collect())
}

#[test]
fn a_text_needs_the_role_of_what_it_does() {
    let database = Database::open(Options::default()).unwrap();
    let parameters = Parameters::default();
    let texts = [
        (Language::OpenCypher, "MATCH (n) RETURN count(n)", Role::Read),
        (Language::Gremlin, "g.V().count()", Role::Read),
        (Language::OpenCypher, "SHOW INDEXES", Role::Read),
        (Language::OpenCypher, "MATCH (n:None) SET n.k = 1", Role::Write),
        (Language::Gremlin, "g.V().drop()", Role::Write),
        (Language::OpenCypher, "CREATE INDEX IF NOT EXISTS FOR (n:A) ON (n.k)", Role::Admin),
    ];
    let limits = InlineLimits { time: std::time::Duration::from_secs(100), memory_bytes: 1 << 20, rows: 100 };
    for (language, text, needed) in texts {
        for role in [&[][..], &[Role::Load], &[Role::Read], &[Role::Write], &[Role::Admin]] {
            let principal = user(role);
            let query = Query { principal: &principal, ..Query::new(language, text, &parameters) };
            let refused = database.query(&query).err().map(|error| error.code());
            let expected = (!principal.may(needed)).then_some(ErrorCode::AccessDenied);
            assert_eq!(refused, expected, "{role:?}: {text}");
            // Again with the plan of the cache.
            if let Some(Err(error)) = database.query_inline(&query, limits) {
                assert_eq!(Some(error.code()), expected, "{role:?}: {text}");
            }
            let explained = database.query(&Query { explain: Some(Explain::Plan), ..query }).map(drop);
            assert_eq!(explained.is_ok(), principal.may(Role::Read), "{role:?}: {text}");
            let profiled = database.query(&Query { explain: Some(Explain::Profile), ..query });
            if !matches!(needed, Role::Admin) {
                assert_eq!(profiled.err().map(|error| error.code()), expected, "{role:?}: {text}");
            }
        }
    }
}

#[test]
fn a_transaction_is_refused_what_its_principal_may_not_do() {
    let database = Database::open(Options::default()).unwrap();
    let parameters = Parameters::default();
    let principal = user(&[Role::Read]);
    let mut transaction = Transaction::new(None, None, false);
    let mut run = |text| {
        let query = Query { principal: &principal, ..Query::new(Language::OpenCypher, text, &parameters) };
        database.query_within(&mut transaction, &query)
    };
    run("MATCH (n) RETURN n").unwrap();
    let error = run("CREATE (:A)").unwrap_err();
    assert_eq!(error.code(), ErrorCode::AccessDenied);
    assert_eq!(error.to_string(), "user:ada lacks the role write, which this needs");
}
