//! Commands for indexes and constraints: those that parse, and those that are refused
//! with a message and a position.

use tidegraph_opencypher::{SchemaCommand, Show, schema_command};

fn create(name: Option<&str>, unique: bool, if_not_exists: bool) -> SchemaCommand {
    let name = name.map(Into::into);
    SchemaCommand::Create { name, label: "Person".into(), key: "email".into(), unique, if_not_exists }
}

fn show(what: Show) -> SchemaCommand {
    SchemaCommand::Show { what, over_rows: None }
}

#[test]
fn commands() {
    let drop = |unique, if_exists| SchemaCommand::Drop { name: "i".into(), unique, if_exists };
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
        assert_eq!(schema_command(text), Ok(Some(expected.clone())), "{text}");
        // A printed command parses to the same command.
        assert_eq!(schema_command(&expected.to_string()), Ok(Some(expected)));
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
        "SHOW TRANSACTIONS",
        "DROP DATABASE x",
        "",
        "(",
    ] {
        assert_eq!(schema_command(text), Ok(None), "{text}");
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
        ("SHOW INDEXES YIELD nothing", "variable `nothing` is not defined at 1:20"),
        ("SHOW INDEXES WHERE x", "variable `x` is not defined at 1:20"),
    ] {
        assert_eq!(schema_command(text).map_err(|e| e.to_string()), Err(expected.to_owned()), "{text}");
    }
}
