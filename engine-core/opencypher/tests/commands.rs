//! Commands: those that parse, and those that are refused
//! with a message and a position.

use tidegraph_opencypher::{Command, Show, command};

fn create(name: Option<&str>, unique: bool, if_not_exists: bool) -> Command {
    let name = name.map(Into::into);
    Command::Create { name, label: "Person".into(), key: "email".into(), unique, if_not_exists }
}

fn show(what: Show) -> Command {
    Command::Show { what, over_rows: None }
}

#[test]
fn commands() {
    let drop = |unique, if_exists| Command::Drop { name: "i".into(), unique, if_exists };
    for (text, expected) in [
        ("CREATE INDEX FOR (n:Person) ON (n.email)", create(None, false, false)),
        ("create range index i for (x:Person) on (x.email);", create(Some("i"), false, false)),
        ("CREATE INDEX IF NOT EXISTS FOR (n:Person) ON (n.email)", create(None, false, true)),
        (
            " /* a */ CREATE\nINDEX `a b` IF NOT EXISTS FOR (n:Person) ON (n.email)",
            create(Some("a b"), false, true),
        ),
        ("CREATE CONSTRAINT FOR (n:Person) REQUIRE n.email IS UNIQUE", create(None, true, false)),
        (
            "CREATE CONSTRAINT c IF NOT EXISTS FOR (n:Person) REQUIRE (n.email) IS NODE UNIQUE",
            create(Some("c"), true, true),
        ),
        ("DROP INDEX i", drop(false, false)),
        ("DROP INDEX i IF EXISTS", drop(false, true)),
        ("DROP CONSTRAINT i;", drop(true, false)),
        ("SHOW INDEXES", show(Show::Indexes)),
        ("SHOW ALL INDEXES", show(Show::Indexes)),
        ("show constraints", show(Show::Constraints)),
        ("SHOW PROCEDURES", show(Show::Procedures)),
        ("SHOW BUILT IN FUNCTIONS", show(Show::Functions)),
        ("SHOW DATABASES", show(Show::Databases)),
    ] {
        assert_eq!(command(text), Ok(Some(expected.clone())), "{text}");
        // A printed command parses to the same command.
        assert_eq!(command(&expected.to_string()), Ok(Some(expected)));
    }
}

#[test]
fn commands_about_transactions() {
    assert_eq!(command("SHOW TRANSACTIONS"), Ok(Some(show(Show::Transactions(None)))));
    for (text, has_ids, has_rows) in [
        ("show transaction $id", true, false),
        ("SHOW TRANSACTIONS 'a', $b + 'c' YIELD protocol", true, true),
        ("SHOW TRANSACTIONS WHERE status = 'Running'", false, true),
    ] {
        let Ok(Some(Command::Show { what: Show::Transactions(ids), over_rows })) = command(text) else {
            panic!("{text}")
        };
        assert_eq!((ids.is_some(), over_rows.is_some()), (has_ids, has_rows), "{text}");
    }
    for (text, has_rows) in [
        ("terminate transaction 'a';", false),
        ("TERMINATE TRANSACTIONS ['a', $b], 'c' YIELD message WHERE message <> '' RETURN count(*)", true),
    ] {
        let Ok(Some(Command::Terminate { over_rows, .. })) = command(text) else { panic!("{text}") };
        assert_eq!(over_rows.is_some(), has_rows, "{text}");
    }
}

#[test]
fn commands_about_transactions_are_composed() {
    for (text, parts, columns) in [
        (
            "SHOW TRANSACTIONS YIELD transactionId AS id, username WHERE username <> 'a' \
             TERMINATE TRANSACTIONS id YIELD message",
            vec![(false, false, vec![1, 4]), (true, true, vec![2])],
            vec!["id", "message", "username"],
        ),
        (
            "terminate transaction 'a' yield transactionId as t show transactions t yield status \
             order by t limit 3 return status, t;",
            vec![(true, true, vec![0]), (false, true, vec![7])],
            vec!["status", "t"],
        ),
        (
            "SHOW TRANSACTIONS YIELD transactionId AS a SHOW TRANSACTIONS YIELD transactionId AS b \
             TERMINATE TRANSACTIONS [a, b] YIELD * RETURN count(*) AS n",
            vec![(false, false, vec![1]), (false, false, vec![1]), (true, true, vec![0, 1, 2])],
            vec!["n"],
        ),
    ] {
        let Ok(Some(Command::Composed(found))) = command(text) else { panic!("{text}: {:?}", command(text)) };
        let shown: Vec<_> =
            found.iter().map(|part| (part.terminates, part.ids.is_some(), part.yields.clone())).collect();
        assert_eq!(shown, parts, "{text}");
        let last = found.last().expect("a part");
        let mut names: Vec<&str> = last.over_rows.columns.iter().map(|column| &*column.name).collect();
        if !text.contains("return") {
            names.sort_unstable();
        }
        assert_eq!(names, columns, "{text}");
    }
}

#[test]
fn queries_are_none() {
    for text in [
        "CREATE (n)",
        "CREATE index = (n)-[:A]->(m)",
        "CREATE constraint=(n)",
        "MATCH (n) RETURN n",
        "RETURN 'CREATE INDEX'",
        "SHOW USERS",
        "TERMINATE SESSIONS 'a'",
        "DROP DATABASE x",
        "",
        "(",
    ] {
        assert_eq!(command(text), Ok(None), "{text}");
    }
}

#[test]
fn refused() {
    for (text, expected) in [
        ("CREATE TEXT INDEX FOR (n:A) ON (n.b)", "not supported yet: TEXT INDEX at 1:8"),
        ("CREATE POINT INDEX p FOR (n:A) ON (n.b)", "not supported yet: POINT INDEX at 1:8"),
        ("CREATE INDEX FOR (n:A) ON (n.b, n.c)", "not supported yet: composite index at 1:31"),
        (
            "CREATE INDEX FOR ()-[r:A]-() ON (r.b)",
            "not supported yet: index or constraint over relationships at 1:19",
        ),
        (
            "CREATE INDEX FOR (n:A|B) ON (n.b)",
            "not supported yet: index or constraint over several labels at 1:22",
        ),
        ("CREATE INDEX FOR (n:A) ON (n.b) OPTIONS {}", "not supported yet: OPTIONS at 1:33"),
        (
            "CREATE INDEX ON :A(b)",
            "not supported yet: CREATE INDEX ON (write CREATE INDEX FOR (n:Label) ON (n.key)) at 1:14",
        ),
        ("CREATE INDEX FOR (n:A) ON (m.b)", "variable `m` is not defined at 1:28"),
        ("CREATE INDEX FOR (n) ON (n.b)", "unexpected ')', expected ':' and a label at 1:20"),
        ("CREATE INDEX FOR (n:A) ON n.b", "unexpected 'n', expected '(' at 1:27"),
        ("CREATE INDEX $x FOR (n:A) ON (n.b)", "not supported yet: parameter as a name at 1:14"),
        (
            "CREATE INDEX i FOR (n:A) ON (n.b) RETURN 1",
            "unexpected 'RETURN', expected the end of the command at 1:35",
        ),
        (
            "CREATE CONSTRAINT FOR (n:A) REQUIRE n.b IS NOT NULL",
            "not supported yet: property existence constraint at 1:44",
        ),
        (
            "CREATE CONSTRAINT FOR (n:A) REQUIRE n.b IS NODE KEY",
            "not supported yet: node key constraint at 1:49",
        ),
        (
            "CREATE CONSTRAINT FOR (n:A) REQUIRE n.b IS :: STRING",
            "not supported yet: property type constraint at 1:44",
        ),
        (
            "CREATE CONSTRAINT FOR (n:A) REQUIRE (n.b, n.c) IS UNIQUE",
            "not supported yet: composite constraint at 1:41",
        ),
        ("DROP INDEX", "unexpected end of the query, expected a name at 1:11"),
        ("DROP INDEX ON :A(b)", "not supported yet: DROP … ON (write the name) at 1:12"),
        ("TERMINATE TRANSACTIONS", "unexpected end of the query, expected the id of a transaction at 1:23"),
        (
            "TERMINATE TRANSACTION YIELD message",
            "unexpected 'YIELD', expected the id of a transaction at 1:23",
        ),
        ("TERMINATE TRANSACTION id", "variable `id` is not defined at 1:23"),
        ("SHOW TRANSACTIONS 'a' WHERE protocol = 'x'", "variable `protocol` is not defined at 1:29"),
        (
            "SHOW TRANSACTIONS YIELD transactionId AS id TERMINATE TRANSACTIONS id",
            "unexpected end of the query, expected YIELD at 1:70",
        ),
        (
            "SHOW TRANSACTIONS WHERE status = 'Running' TERMINATE TRANSACTIONS 'a' YIELD message",
            "unexpected 'WHERE', expected YIELD at 1:19",
        ),
        (
            "SHOW TRANSACTIONS YIELD transactionId TERMINATE TRANSACTIONS transactionId YIELD transactionId",
            "variable `transactionId` is already declared at 1:82",
        ),
        (
            "SHOW TRANSACTIONS YIELD username TERMINATE TRANSACTIONS transactionId YIELD message",
            "variable `transactionId` is not defined at 1:57",
        ),
        (
            "SHOW TRANSACTIONS YIELD transactionId AS a TERMINATE TRANSACTIONS a YIELD status",
            "variable `status` is not defined at 1:75",
        ),
        (
            "SHOW TRANSACTIONS YIELD transactionId + '' AS a TERMINATE TRANSACTIONS a YIELD message",
            "YIELD of several commands takes names of columns at 1:39",
        ),
        (
            "SHOW TRANSACTIONS YIELD transactionId AS a RETURN a TERMINATE TRANSACTIONS a YIELD message",
            "unexpected 'TERMINATE', expected the end of the command at 1:53",
        ),
        ("SHOW INDEXES YIELD nothing", "variable `nothing` is not defined at 1:20"),
        ("SHOW INDEXES WHERE x", "variable `x` is not defined at 1:20"),
    ] {
        assert_eq!(command(text).map_err(|e| e.to_string()), Err(expected.to_owned()), "{text}");
    }
}
