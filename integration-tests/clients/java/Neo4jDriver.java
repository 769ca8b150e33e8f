import java.util.List;
import java.util.Map;
import org.neo4j.driver.AuthToken;
import org.neo4j.driver.AuthTokens;
import org.neo4j.driver.Driver;
import org.neo4j.driver.GraphDatabase;
import org.neo4j.driver.SessionConfig;
import org.neo4j.driver.exceptions.ClientException;

/** Neo4j's Java driver against the service. Arguments: the address, and the password or an empty text. */
public final class Neo4jDriver {
  private static final int ROWS = 100_000;

  private static void ensure(boolean holds, Object what) {
    if (!holds) throw new AssertionError(what);
  }

  private static void elements(Driver driver) {
    var text = "CREATE (a:JavaPerson {`~id`: 'java-ada', name: 'Ada'})-[k:JAVA_KNOWS {since: 1842}]->(:JavaPerson)"
        + " RETURN a, k, $list AS list";
    List<Object> list = List.of(1L, 0.5, "Zoë", Map.of("k", true));
    var answer = driver.executableQuery(text).withParameters(Map.of("list", list)).execute();
    var row = answer.records().get(0);
    var a = row.get("a").asNode();
    var k = row.get("k").asRelationship();
    ensure(a.elementId().equals("java-ada") && a.hasLabel("JavaPerson"), a);
    ensure(k.hasType("JAVA_KNOWS") && k.startNodeElementId().equals("java-ada") && k.get("since").asInt() == 1842, k);
    ensure(row.get("list").asList().equals(list), row);
    ensure(answer.summary().counters().nodesCreated() == 2, answer.summary());
  }

  private static void transactions(Driver driver) {
    try (var session = driver.session(); var other = driver.session()) {
      try (var transaction = session.beginTransaction()) {
        transaction.run("CREATE (:Java)").consume();
        transaction.rollback();
      }
      session.run("CREATE (:JavaCounter {n: 0})").consume();
      // A transaction that conflicts once is run again.
      int[] tries = {0};
      session.executeWriteWithoutResult(work -> {
        tries[0]++;
        work.run("MATCH (c:JavaCounter) SET c.n = c.n + 1").consume();
        if (tries[0] == 1) other.run("MATCH (c:JavaCounter) SET c.n = c.n + 1").consume();
      });
      ensure(tries[0] == 2, tries[0]);
      var n = session.run("MATCH (c:JavaCounter) OPTIONAL MATCH (j:Java) WITH c, count(j) AS j RETURN c.n + j AS n").single();
      ensure(n.get("n").asInt() == 2, n);
      ensure(session.lastBookmarks().size() == 1, session.lastBookmarks());
    }
  }

  private static void failures(Driver driver) {
    try {
      driver.executableQuery("RETURN 1 +").execute();
      throw new AssertionError("the query has no end");
    } catch (ClientException failure) {
      ensure(failure.code().equals("Neo.ClientError.Statement.SyntaxError"), failure);
    }
  }

  private static void stream(Driver driver) {
    try (var session = driver.session(SessionConfig.builder().withFetchSize(1_000).build())) {
      var result = session.run("UNWIND range(1, $rows) AS n RETURN n", Map.of("rows", ROWS));
      int expected = 1;
      for (; result.hasNext(); expected++) {
        ensure(result.next().get("n").asInt() == expected, expected);
      }
      ensure(expected == ROWS + 1, expected);
    }
  }

  public static void main(String[] arguments) {
    String address = arguments[0];
    AuthToken auth = arguments[1].isEmpty() ? AuthTokens.none() : AuthTokens.basic("any name", arguments[1]);
    for (String scheme : List.of("bolt", "neo4j")) {
      try (var driver = GraphDatabase.driver(scheme + "://" + address, auth)) {
        driver.verifyConnectivity();
      }
    }
    try (var driver = GraphDatabase.driver("bolt://" + address, auth)) {
      elements(driver);
      transactions(driver);
      failures(driver);
      stream(driver);
    }
  }
}
