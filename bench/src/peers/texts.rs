//! The questions in the languages of the peers. Parameters have the same names as in Tidegraph's texts.

use super::Kind;

const NEO4J: &[(&str, &str)] = &[
    ("point read", "MATCH (n:GoldenEntity {id: $ge}) RETURN n"),
    (
        "SR1",
        "MATCH (:GoldenEntity {id: $ge})-[:HAS_PARTNER]->(p) RETURN {id: p.id, label: labels(p)[0], type: p.type}",
    ),
    (
        "SR2",
        "MATCH (:GoldenEntity {id: $ge})-[:HAS_PARTNER]->(p) WHERE p.type = $T1 MATCH (p)-->(s) RETURN s",
    ),
    (
        "SR3",
        "MATCH (:GoldenEntity {id: $ge})--(n) OPTIONAL MATCH (n)-->(s) WHERE n:Partner \
         WITH CASE WHEN n:Partner THEN s ELSE n END AS r WHERE r IS NOT NULL RETURN DISTINCT r",
    ),
    (
        "SR4",
        "MATCH (:Device {id: $dev})<-[:HAS_DEVICE|PROVIDED_DEVICE]-(o) \
         CALL { WITH o WITH o WHERE o:GoldenEntity RETURN o AS g \
         UNION ALL WITH o WITH o WHERE NOT o:GoldenEntity MATCH (o)--(m) RETURN m AS g } \
         CALL { WITH g WITH g WHERE NOT g:GoldenEntity RETURN g AS r \
         UNION ALL WITH g WITH g WHERE g:GoldenEntity MATCH (g)-->(n) WHERE NOT n:Partner RETURN n AS r \
         UNION ALL WITH g WITH g WHERE g:GoldenEntity MATCH (g)-->(n:Partner) MATCH (n)-->(s) RETURN s AS r } \
         WITH r WHERE NOT r:Household RETURN r",
    ),
    (
        "SR5",
        "MATCH (:Device {id: $dev})<-[:HAS_DEVICE|PROVIDED_DEVICE]-(o) \
         MATCH (o)-[:HAS_PARTNER|HAS_DEVICE|PROVIDED_DEVICE]-(b) \
         CALL { WITH b WITH b WHERE NOT (b:Partner OR b:GoldenEntity) RETURN b AS c \
         UNION ALL WITH b WITH b WHERE b:Partner OR b:GoldenEntity \
         MATCH (b)-[:PROVIDED_DEVICE|HAS_DEVICE|HAS_PARTNER]->(x) RETURN x AS c } \
         CALL { WITH c WITH c WHERE NOT c:Partner RETURN c AS r \
         UNION ALL WITH c WITH c WHERE c:Partner MATCH (c)-[:PROVIDED_DEVICE]->(x) RETURN x AS r } \
         RETURN DISTINCT r",
    ),
    (
        "SW1",
        "MATCH (:GoldenEntity {id: $ge1})-[:HAS_HOUSEHOLD]->(h) WITH h LIMIT 1 \
         MATCH (b:GoldenEntity {id: $ge2}) CREATE (b)-[e:HAS_HOUSEHOLD]->(h) RETURN e",
    ),
    (
        "SW2",
        "MATCH (d:Device {id: $dev}) CREATE (p:Partner {type: $T1})-[:PROVIDED_COOKIE]->(:Cookie), \
         (p)-[:PROVIDED_IP_ADDR]->(:IpAddress), (p)-[:PROVIDED_DEVICE]->(d) \
         WITH d, p MATCH (g)-[:HAS_DEVICE]->(d) WITH g, p LIMIT 1 CREATE (g)-[e:HAS_PARTNER]->(p) RETURN e",
    ),
    ("SW3", "MATCH (:Partner {id: $partner})-->(s) SET s.last_updated_ts = $rnd RETURN s"),
    (
        "SW4",
        "MATCH (g:GoldenEntity {id: $ge}) SET g += {first_name: $rnd, last_name: $rnd, email_hash: $rnd, \
         date_of_birth_day: 1, date_of_birth_month: 2, date_of_birth_year: 1990, demonym: $rnd, \
         educationalAttainment: $rnd, maritalStatus: $rnd, race: $rnd, sex: $rnd} RETURN g",
    ),
    (
        "SW5",
        "MATCH (:GoldenEntity {id: $ge})-[e:HAS_PARTNER]->(p) WHERE p.type = $T1 SET e.score = $rnd RETURN e",
    ),
    ("single read", "MATCH (n:Profile {id: $id}) RETURN n"),
    ("neighbours of neighbours, ids", "MATCH (:Profile {id: $id0})-[:FRIEND*1..2]->(x) RETURN DISTINCT x.id"),
    (
        "neighbours of neighbours, profiles",
        "MATCH (:Profile {id: $id0})-[:FRIEND*1..2]->(x) RETURN DISTINCT x",
    ),
    (
        "shortest path",
        "MATCH (a:Profile {id: $a}), (b:Profile {id: $b}) \
         MATCH p = shortestPath((a)-[:FRIEND*..15]->(b)) RETURN length(p)",
    ),
    ("ages of all", "MATCH (n:Profile) RETURN n.age AS age, count(*) AS profiles"),
    ("single write", "CREATE (n:Written {age: $age, region: 'bench', completion: 50}) RETURN elementId(n)"),
];

/// Tidegraph's texts of what Neo4j is asked over Bolt, whose answers have the same form.
const OVER_BOLT: &[(&str, &str)] = &[
    ("point read", "MATCH (n) WHERE id(n) = $ge RETURN n"),
    (
        "SR1",
        "MATCH (g)-[:HAS_PARTNER]->(p) WHERE id(g) = $ge RETURN {id: id(p), label: labels(p)[0], type: p.type}",
    ),
    ("SR2", "MATCH (g)-[:HAS_PARTNER]->(p)-->(s) WHERE id(g) = $ge AND p.type = $T1 RETURN s"),
    (
        "SR3",
        "MATCH (g)--(n) WHERE id(g) = $ge OPTIONAL MATCH (n)-->(s) WHERE n:Partner \
         WITH CASE WHEN n:Partner THEN s ELSE n END AS r WHERE r IS NOT NULL RETURN DISTINCT r",
    ),
];

/// Returns Tidegraph's text of a question that Neo4j is asked over Bolt.
pub fn over_bolt(name: &str) -> Option<&'static str> {
    OVER_BOLT.iter().find(|(n, _)| *n == name).map(|(_, text)| *text)
}

// The union of one and two hops is faster than `*1..2` in this version.
const KUZU: &[(&str, &str)] = &[
    ("single read", "MATCH (n:`Profile` {id: $id}) RETURN n"),
    (
        "neighbours of neighbours, ids",
        "MATCH (:`Profile` {id: $id0})-[:FRIEND]->(x) RETURN x.id AS id \
         UNION MATCH (:`Profile` {id: $id0})-[:FRIEND]->()-[:FRIEND]->(y) RETURN y.id AS id",
    ),
    (
        "neighbours of neighbours, profiles",
        "MATCH (:`Profile` {id: $id0})-[:FRIEND]->(x) RETURN x AS x \
         UNION MATCH (:`Profile` {id: $id0})-[:FRIEND]->()-[:FRIEND]->(x) RETURN x AS x",
    ),
    (
        "shortest path",
        "MATCH p = (a:`Profile` {id: $a})-[:FRIEND* SHORTEST 1..15]->(b:`Profile` {id: $b}) RETURN length(p)",
    ),
    ("ages of all", "MATCH (n:`Profile`) RETURN n.age AS age, count(*) AS profiles"),
    ("single write", "CREATE (n:Written {age: $age, region: 'bench', completion: 50}) RETURN id(n)"),
    // As in LSQB's texts for Kùzu, a message is one table whether it is a post or a comment, and a table of edges has one
    // kind of ends.
    (
        "q1",
        "MATCH (:Country)<-[:IS_PART_OF_City_Country]-(:City)<-[:IS_LOCATED_IN_Person_City]-(:Person)\
         <-[:HAS_MEMBER]-(:Forum)-[:CONTAINER_OF]->(:Message)<-[:REPLY_OF]-(:Message)\
         -[:HAS_TAG_Message_Tag]->(:Tag)-[:HAS_TYPE]->(:TagClass) \
         RETURN count(*) AS count",
    ),
    (
        "q2",
        "MATCH (person1:Person)-[:KNOWS]-(person2:Person), \
         (person1)<-[:HAS_CREATOR]-(comment:Message)-[:REPLY_OF_Post]->(post:Message)-[:HAS_CREATOR]->(person2) \
         RETURN count(*) AS count",
    ),
    (
        "q3",
        "MATCH (country:Country) \
         MATCH (person1:Person)-[:IS_LOCATED_IN_Person_City]->(city1:City)-[:IS_PART_OF_City_Country]->(country) \
         MATCH (person2:Person)-[:IS_LOCATED_IN_Person_City]->(city2:City)-[:IS_PART_OF_City_Country]->(country) \
         MATCH (person3:Person)-[:IS_LOCATED_IN_Person_City]->(city3:City)-[:IS_PART_OF_City_Country]->(country) \
         MATCH (person1)-[:KNOWS]-(person2)-[:KNOWS]-(person3)-[:KNOWS]-(person1) \
         RETURN count(*) AS count",
    ),
    (
        "q4",
        "MATCH (:Tag)<-[:HAS_TAG_Message_Tag]-(message:Message)-[:HAS_CREATOR]->(creator:Person), \
         (message)<-[:LIKES]-(liker:Person), (message)<-[:REPLY_OF]-(comment:Message) \
         RETURN count(*) AS count",
    ),
    (
        "q5",
        "MATCH (tag1:Tag)<-[:HAS_TAG_Message_Tag]-(message:Message)<-[:REPLY_OF]-(comment:Message)\
         -[:HAS_TAG_Message_Tag]->(tag2:Tag) \
         WHERE id(tag1) <> id(tag2) \
         RETURN count(*) AS count",
    ),
    (
        "q7",
        "MATCH (:Tag)<-[:HAS_TAG_Message_Tag]-(message:Message)-[:HAS_CREATOR]->(creator:Person) \
         OPTIONAL MATCH (message)<-[:LIKES]-(liker:Person) \
         OPTIONAL MATCH (message)<-[:REPLY_OF]-(comment:Message) \
         RETURN count(*) AS count",
    ),
    (
        "q8",
        "MATCH (tag1:Tag)<-[:HAS_TAG_Message_Tag]-(message:Message)<-[:REPLY_OF]-(comment:Message)\
         -[:HAS_TAG_Message_Tag]->(tag2:Tag) \
         WHERE NOT (comment)-[:HAS_TAG_Message_Tag]->(tag1) AND id(tag1) <> id(tag2) \
         RETURN count(*) AS count",
    ),
];

/// The queries of LSQB and the reads of SNB, which Neo4j is asked in Tidegraph's words, and Kùzu too those of LSQB of
/// which [`KUZU`] has no others.
const SAME: [&str; 30] = [
    "q1", "q2", "q3", "q4", "q5", "q6", "q7", "q8", "q9", "IS1", "IS2", "IS3", "IS4", "IS5", "IS6", "IS7",
    "IC1", "IC2", "IC3", "IC4", "IC5", "IC6", "IC7", "IC8", "IC9", "IC10", "IC11", "IC12", "IC13", "IC14",
];

/// Returns the text of a question for a peer, or `None` if the peer cannot be asked. `ours` is Tidegraph's text.
pub fn text(kind: Kind, name: &str, ours: &'static str) -> Option<&'static str> {
    let table = match kind {
        Kind::Gremlin => return Some(ours),
        Kind::Neo4j => NEO4J,
        Kind::Kuzu => KUZU,
        Kind::Postgres | Kind::Cassandra | Kind::CassandraDurable | Kind::CassandraCluster | Kind::None => {
            return None;
        }
    };
    let own = table.iter().find(|(n, _)| *n == name).map(|(_, text)| *text);
    own.or_else(|| SAME.contains(&name).then_some(ours))
}
