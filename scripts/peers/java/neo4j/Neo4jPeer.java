import java.io.BufferedReader;
import java.io.BufferedWriter;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import org.neo4j.cli.AdminTool;
import org.neo4j.configuration.GraphDatabaseSettings;
import org.neo4j.configuration.connectors.BoltConnector;
import org.neo4j.configuration.helpers.SocketAddress;
import org.neo4j.dbms.api.DatabaseManagementService;
import org.neo4j.dbms.api.DatabaseManagementServiceBuilder;
import org.neo4j.driver.AuthTokens;
import org.neo4j.driver.Config;
import org.neo4j.driver.GraphDatabase;
import org.neo4j.driver.Record;
import org.neo4j.driver.Session;
import org.neo4j.driver.Value;
import org.neo4j.driver.exceptions.ClientException;
import org.neo4j.driver.types.Node;

/**
 * Neo4j Community: `server FOLDER` runs the server over a data folder until its input ends, `client ADDRESS` is a client for {@link
 * Driver}, `prepare CSV OUT` rewrites the headers of Gremlin CSV files for the importer, `import OUT FOLDER` runs neo4j-admin's importer.
 */
final class Neo4jPeer {
  private Neo4jPeer() {}

  public static void main(String[] args) throws Exception {
    switch (args[0]) {
      case "server" -> server(Path.of(args[1]));
      case "client" -> Driver.serve(new Remote(args[1]));
      case "prepare" -> prepare(Path.of(args[1]), Path.of(args[2]));
      case "import" -> importFiles(Path.of(args[1]));
      default -> throw new IllegalArgumentException("unknown command " + args[0]);
    }
    System.exit(0);
  }

  private static void server(Path folder) throws Exception {
    var out = System.out;
    System.setOut(System.err);
    int port;
    try (ServerSocket free = new ServerSocket(0)) {
      port = free.getLocalPort();
    }
    DatabaseManagementService service =
        new DatabaseManagementServiceBuilder(folder)
            .setConfig(BoltConnector.enabled, true)
            .setConfig(BoltConnector.listen_address, new SocketAddress("127.0.0.1", port))
            .setConfig(BoltConnector.advertised_address, new SocketAddress("127.0.0.1", port))
            .setConfig(GraphDatabaseSettings.auth_enabled, false)
            .setConfig(GraphDatabaseSettings.pagecache_memory, 1L << 30)
            .build();
    if (!service.database("neo4j").isAvailable(120_000)) throw new IllegalStateException("the database does not become available");
    out.println("listening on 127.0.0.1:" + port);
    while (System.in.read() >= 0) {}
    service.shutdown();
  }

  /** For each table a header as the importer wants it, and the rows without one. */
  private static void prepare(Path csv, Path out) throws Exception {
    for (boolean edges : new boolean[] {false, true}) {
      for (Path file : Tables.files(csv, edges)) {
        String name = file.getFileName().toString();
        try (BufferedReader reader = Files.newBufferedReader(file);
            BufferedWriter rows = Files.newBufferedWriter(out.resolve((edges ? "edges." : "nodes.") + name))) {
          List<String> columns = new ArrayList<>();
          List<String> given = List.of(reader.readLine().split(","));
          // A property of this name is the id that queries ask for; otherwise it is the element's own.
          String own = given.stream().anyMatch(column -> column.startsWith("id:")) ? ":ID" : "id:ID";
          for (String column : given) {
            columns.add(
                switch (column) {
                  case "~id" -> edges ? "eid:IGNORE" : own;
                  case "~label" -> edges ? ":TYPE" : ":LABEL";
                  case "~from" -> ":START_ID";
                  case "~to" -> ":END_ID";
                  default -> column.replaceAll("\\(.*", "").replaceAll("(?i):bool$", ":boolean").replaceAll("(?i):datetime$", ":datetime");
                });
          }
          Files.writeString(out.resolve("header." + name), String.join(",", columns) + "\n");
          reader.transferTo(rows);
        }
      }
    }
  }

  private static void importFiles(Path out) throws Exception {
    List<String> args = new ArrayList<>(List.of("database", "import", "full", "neo4j", "--overwrite-destination", "--max-off-heap-memory=2G"));
    args.add("--report-file=" + out.resolve("report.txt"));
    try (var files = Files.list(out)) {
      for (Path file : files.sorted().toList()) {
        String name = file.getFileName().toString();
        if (name.startsWith("nodes.")) args.add("--nodes=" + out.resolve("header." + name.substring(6)) + "," + file);
        if (name.startsWith("edges.")) args.add("--relationships=" + out.resolve("header." + name.substring(6)) + "," + file);
      }
    }
    System.setOut(System.err);
    AdminTool.main(args.toArray(String[]::new));
  }

  /** The Java driver over Bolt, a session for each client, auto-commit. */
  private static final class Remote implements Driver.Client {
    private static final int BATCH = 5_000;
    private final org.neo4j.driver.Driver driver;

    Remote(String address) {
      driver =
          GraphDatabase.driver(
              "bolt://" + address,
              AuthTokens.none(),
              Config.builder().withMaxConnectionPoolSize(64).withConnectionAcquisitionTimeout(60, TimeUnit.SECONDS).build());
      driver.verifyConnectivity();
    }

    @Override
    public Map<String, String> about() {
      try (Session session = driver.session()) {
        return Map.of(
            "peer", name(session),
            "driver", "neo4j-java-driver, Bolt, auto-commit",
            "note", "commits are durable");
      }
    }

    /** Other servers that speak Bolt have no components. */
    private static String name(Session session) {
      try {
        var version = session.run("CALL dbms.components() YIELD versions, edition RETURN edition, versions[0]").single();
        return "Neo4j " + version.get(0).asString() + " " + version.get(1).asString();
      } catch (ClientException none) {
        return session.run("RETURN 1").consume().server().agent();
      }
    }

    /** UNWIND batches. An empty folder name only makes the constraints, for data that the importer brought. */
    @Override
    public long[] load(Path folder) throws Exception {
      long[] counts = {0, 0};
      try (Session session = driver.session()) {
        Set<String> labels = new HashSet<>();
        Map<String, String> labelOfPrefix = new HashMap<>();
        boolean imported = folder.toString().isEmpty();
        if (imported) session.run("CALL db.labels()").list(r -> labels.add(r.get(0).asString()));
        else {
          for (Path file : Tables.files(folder, false)) {
            Tables.Element first = Tables.first(file);
            String label = first.label().split(";")[0];
            labels.add(label);
            labelOfPrefix.put(prefix(first.id()), label);
          }
        }
        for (String label : labels) session.run("CREATE CONSTRAINT IF NOT EXISTS FOR (n:" + label + ") REQUIRE n.id IS UNIQUE").consume();
        session.run("CALL db.awaitIndexes(600)").consume();
        if (imported) {
          counts[0] = session.run("MATCH (n) RETURN count(n)").single().get(0).asLong();
          counts[1] = session.run("MATCH ()-[e]->() RETURN count(e)").single().get(0).asLong();
          return counts;
        }
        for (Path file : Tables.files(folder, false)) {
          counts[0] += Tables.read(file, BATCH, batch -> {
            List<Object> rows = new ArrayList<>();
            for (var e : batch) {
              Map<String, Object> row = new HashMap<>(e.properties());
              row.put("id", e.id());
              rows.add(row);
            }
            session.run("UNWIND $rows AS r CREATE (n:" + batch.get(0).label().replace(";", ":") + ") SET n = r", Map.of("rows", rows)).consume();
          });
        }
        for (Path file : Tables.files(folder, true)) {
          counts[1] += Tables.read(file, BATCH, batch -> {
            var first = batch.get(0);
            List<Object> rows = new ArrayList<>();
            for (var e : batch) rows.add(List.of(e.from(), e.to(), e.properties()));
            session
                .run(
                    "UNWIND $rows AS r MATCH (a:%s {id: r[0]}) MATCH (b:%s {id: r[1]}) CREATE (a)-[e:%s]->(b) SET e = r[2]"
                        .formatted(labelOfPrefix.get(prefix(first.from())), labelOfPrefix.get(prefix(first.to())), first.label()),
                    Map.of("rows", rows))
                .consume();
          });
        }
      }
      return counts;
    }

    /** What an id begins with says its label in the generated graphs; the files of edges do not say it. */
    private static String prefix(String id) {
      return id.replaceAll("[-0-9].*", "");
    }

    @Override
    public Driver.Caller caller() {
      Session session = driver.session();
      return new Driver.Caller() {
        @Override
        public void call(String text, Map<String, Object> parameters) {
          session.run(text, parameters).list();
        }

        @Override
        public List<String> rows(String text, Map<String, Object> parameters) {
          return session.run(text, parameters).list(Remote::row);
        }

        @Override
        public void close() {
          session.close();
        }
      };
    }

    private static String row(Record row) {
      return row.values().stream().map(Remote::value).collect(Collectors.joining("|"));
    }

    private static String value(Value value) {
      if (!value.hasType(org.neo4j.driver.types.TypeSystem.getDefault().NODE())) return Rows.value(value.asObject());
      Node node = value.asNode();
      Map<String, Object> properties = new HashMap<>(node.asMap());
      // Where the id is not a property, it is the element's own.
      Object id = properties.containsKey("id") ? properties.remove("id") : node.elementId();
      return Rows.vertex(id, node.labels().iterator().next(), properties);
    }

    @Override
    public void close() {
      driver.close();
    }
  }
}
