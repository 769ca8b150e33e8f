import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutionException;
import java.util.stream.IntStream;
import org.apache.tinkerpop.gremlin.driver.Cluster;
import org.apache.tinkerpop.gremlin.driver.exception.ResponseException;
import org.apache.tinkerpop.gremlin.driver.remote.DriverRemoteConnection;
import org.apache.tinkerpop.gremlin.process.traversal.AnonymousTraversalSource;
import org.apache.tinkerpop.gremlin.process.traversal.Merge;
import org.apache.tinkerpop.gremlin.process.traversal.Order;
import org.apache.tinkerpop.gremlin.process.traversal.P;
import org.apache.tinkerpop.gremlin.process.traversal.TextP;
import org.apache.tinkerpop.gremlin.process.traversal.dsl.graph.GraphTraversalSource;
import org.apache.tinkerpop.gremlin.process.traversal.dsl.graph.__;
import org.apache.tinkerpop.gremlin.structure.T;
import org.apache.tinkerpop.gremlin.structure.VertexProperty.Cardinality;
import org.apache.tinkerpop.gremlin.util.ser.GraphBinaryMessageSerializerV1;
import org.apache.tinkerpop.gremlin.util.ser.GraphSONMessageSerializerV2;
import org.apache.tinkerpop.gremlin.util.ser.GraphSONMessageSerializerV3;
import org.apache.tinkerpop.gremlin.util.MessageSerializer;

/** TinkerPop's Java driver against the service. Arguments: the address, and the password or an empty text. */
public final class GremlinDriver {
  private static final int ROWS = 100_000;

  private static void ensure(boolean holds, Object what) {
    if (!holds) throw new AssertionError(what);
  }

  private static void fails(Runnable work, int status, String text) {
    try {
      work.run();
    } catch (RuntimeException error) {
      for (Throwable cause = error; cause != null; cause = cause.getCause()) {
        if (cause instanceof ResponseException response) {
          ensure(response.getResponseStatusCode().getValue() == status, error);
          ensure(response.getMessage().contains(text), error);
          return;
        }
      }
      throw error;
    }
    throw new AssertionError("not refused: " + text);
  }

  private static Cluster cluster(String[] args, MessageSerializer<?> serializer, String password) {
    var address = args[0].split(":");
    var builder = Cluster.build(address[0]).port(Integer.parseInt(address[1])).serializer(serializer);
    if (!password.isEmpty()) builder.credentials("any name", password);
    return builder.create();
  }

  private static void traversals(GraphTraversalSource g) {
    g.V().drop().iterate();
    var ada = g.addV("person").property(T.id, "ada").property("name", "Ada").property("age", 36).next();
    ensure(ada.id().equals("ada") && ada.label().equals("person") && ada.value("name").equals("Ada"), ada);
    g.addV("person").property(T.id, "bob").property(Cardinality.single, "name", "Bob 🌊").iterate();
    var knows = g.V(ada).addE("knows").to(__.V("bob")).property("since", 1842L).next();
    ensure(knows.inVertex().id().equals("bob") && knows.value("since").equals(1842L), knows);
    ensure(g.V("ada").out("knows").values("name").next().equals("Bob 🌊"), "out");
    ensure(g.V().has("name", P.within("Ada", "nobody")).count().next() == 1, "within");
    ensure(g.V().has("person", "age", P.gt(30).and(P.lt(40))).count().next() == 1, "and");
    ensure(g.V().has("name", P.not(P.eq("Ada"))).count().next() == 1, "not");
    ensure(g.V().has("name", TextP.startingWith("A")).count().next() == 1, "startingWith");
    ensure(g.V().order().by("name", Order.desc).values("name").toList().equals(List.of("Bob 🌊", "Ada")), "order");
    ensure(g.V("ada").as("a").outE().inV().path().next().size() == 3, "path");
    ensure(g.V().group().by(T.label).by(__.count()).next().get("person").equals(2L), "group");
    ensure(g.V("ada").elementMap("name").next().get("name").equals("Ada"), "elementMap");
    ensure(g.with("evaluationTimeout", 100_000L).V().count().next() == 2, "with");
    ensure(!g.V("nobody").hasNext(), "hasNext");
    fails(() -> g.V().id().pageRank().toList(), 597, "UnsupportedOperationException");
    fails(() -> g.addV("person").property(T.id, "ada").iterate(), 597, "ConstraintViolationException");
  }

  private static void merges(GraphTraversalSource g) {
    Map<Object, Object> carl = Map.of(T.id, "carl", T.label, "person", "name", "Carl");
    g.mergeV(carl).option(Merge.onMatch, Map.of("name", Cardinality.single("Carl again"))).iterate();
    g.mergeV(Map.of(T.id, "carl")).option(Merge.onMatch, Map.of("name", Cardinality.single("Carl again"))).iterate();
    ensure(g.V("carl").values("name").next().equals("Carl again"), "merge");
  }

  private static void transactions(GraphTraversalSource g) throws Exception {
    for (boolean commits : new boolean[] {true, false}) {
      var transaction = g.tx();
      GraphTraversalSource inside = transaction.begin();
      inside.addV("inside").iterate();
      ensure(inside.V().hasLabel("inside").hasNext(), "a transaction does not see its own write");
      if (commits) transaction.commit();
      else transaction.rollback();
      ensure(g.V().hasLabel("inside").count().next() == 1, commits);
    }
  }

  private static void conflict(GraphTraversalSource g) {
    g.addV("counter").property(T.id, "counter").property("n", 0).iterate();
    var transaction = g.tx();
    GraphTraversalSource inside = transaction.begin();
    int n = (int) inside.V("counter").values("n").next();
    inside.V("counter").property(Cardinality.single, "n", n + 1).iterate();
    g.V("counter").property(Cardinality.single, "n", 7).iterate();
    fails(transaction::commit, 596, "ConcurrentModificationException");
    ensure(g.V("counter").values("n").next().equals(7), "a transaction that lost was committed");
  }

  public static void main(String[] args) throws Exception {
    var password = args[1];
    var serializers =
        List.of(
            new GraphBinaryMessageSerializerV1(), new GraphSONMessageSerializerV3(), new GraphSONMessageSerializerV2());
    for (var serializer : serializers) {
      var cluster = cluster(args, serializer, password);
      try {
        var connection = DriverRemoteConnection.using(cluster, "g");
        var g = AnonymousTraversalSource.traversal().withRemote(connection);
        traversals(g);
        // There are no maps of T in GraphSON 2.
        if (!(serializer instanceof GraphSONMessageSerializerV2)) merges(g);
        transactions(g);
        conflict(g);
        var client = cluster.connect();
        var age = client.submit("g.V().has('name', name).values('age')", Map.of("name", "Ada")).one();
        ensure(age.getInt() == 36, age);
        fails(() -> client.submit("g.V(").all().join(), 597, "MalformedQueryException");
        var many =
            client.submit("g.inject(0).repeat(union(identity(), identity())).times(17).limit(" + ROWS + ")");
        ensure(many.stream().count() == ROWS, "rows");
        var asked = IntStream.range(0, 200).mapToObj(at -> client.submitAsync("g.inject(" + at + ")")).toList();
        for (int at = 0; at < asked.size(); at++) {
          int got = asked.get(at).get().one().getInt();
          ensure(got == at, got);
        }
        connection.close();
      } catch (CompletionException | ExecutionException error) {
        throw new AssertionError(serializer.toString(), error);
      } finally {
        cluster.close();
      }
    }
    if (!password.isEmpty()) {
      var cluster = cluster(args, new GraphBinaryMessageSerializerV1(), "wrong");
      fails(() -> cluster.connect().submit("g.V()").all().join(), 401, "AccessDeniedException");
      cluster.close();
    }
    System.exit(0);
  }
}
