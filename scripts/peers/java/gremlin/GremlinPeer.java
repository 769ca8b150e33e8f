import java.net.ServerSocket;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.apache.tinkerpop.gremlin.driver.Client;
import org.apache.tinkerpop.gremlin.driver.Cluster;
import org.apache.tinkerpop.gremlin.driver.RequestOptions;
import org.apache.tinkerpop.gremlin.driver.Result;
import org.apache.tinkerpop.gremlin.server.GremlinServer;
import org.apache.tinkerpop.gremlin.server.Settings;
import org.apache.tinkerpop.gremlin.structure.Vertex;
import org.apache.tinkerpop.gremlin.util.Gremlin;

/**
 * Gremlin Server with TinkerGraph: `server FOLDER` runs the server until its input ends, `client ADDRESS` is a client for {@link
 * Driver}. FOLDER holds `server.yaml` and the files that it names.
 */
final class GremlinPeer {
  private GremlinPeer() {}

  public static void main(String[] args) throws Exception {
    if (args[0].equals("server")) server(Path.of(args[1]));
    else Driver.serve(new Remote(args[1]));
    System.exit(0);
  }

  private static void server(Path folder) throws Exception {
    // The server's own start-up writes to standard output; ours is for the address.
    var out = System.out;
    System.setOut(System.err);
    Settings settings = Settings.read(folder.resolve("server.yaml").toString());
    settings.host = "127.0.0.1";
    try (ServerSocket free = new ServerSocket(0)) {
      settings.port = free.getLocalPort();
    }
    settings.graphs.replaceAll((name, file) -> folder.resolve(file).toString());
    var config = settings.scriptEngines.get("gremlin-groovy").plugins;
    config.put(
        "org.apache.tinkerpop.gremlin.jsr223.ScriptFileGremlinPlugin",
        Map.of("files", List.of(folder.resolve("start.groovy").toString())));
    GremlinServer server = new GremlinServer(settings);
    server.start().get(120, TimeUnit.SECONDS);
    out.println("listening on 127.0.0.1:" + settings.port);
    while (System.in.read() >= 0) {}
    server.stop().get(10, TimeUnit.SECONDS);
  }

  /** The Java driver: scripts with bindings over WebSocket, GraphBinary. */
  private static final class Remote implements Driver.Client {
    private static final String VERTICES =
        "rows.each { r -> def v = graph.addVertex(T.id, r[0], T.label, r[1]); r[2].each { k, x -> v.property(k, x) } }; rows.size()";
    private static final String EDGES =
        "rows.each { r -> def e = graph.vertices(r[2]).next().addEdge(r[1], graph.vertices(r[3]).next(), T.id, r[0]);"
            + " r[4].each { k, x -> e.property(k, x) } }; rows.size()";
    private static final int BATCH = 1_000;

    private final Cluster cluster;
    /** One for all callers: its connections carry several requests at once. */
    private final Client client;

    Remote(String address) {
      int colon = address.lastIndexOf(':');
      cluster =
          Cluster.build(address.substring(0, colon))
              .port(Integer.parseInt(address.substring(colon + 1)))
              .minConnectionPoolSize(8)
              .maxConnectionPoolSize(8)
              .maxWaitForConnection(30_000)
              .maxContentLength(1 << 26)
              .create();
      client = cluster.connect().init();
    }

    @Override
    public Map<String, String> about() {
      return Map.of(
          "peer", "Gremlin Server " + Gremlin.version() + ", TinkerGraph",
          "driver", "gremlin-driver (Java), scripts with bindings, GraphBinary",
          "note", "in memory: nothing that it acknowledges is durable");
    }

    @Override
    public long[] load(Path folder) throws Exception {
      long[] counts = {0, 0};
      for (int round = 0; round < 2; round++) {
        boolean edges = round == 1;
        for (Path file : Tables.files(folder, edges)) {
          CompletableFuture<?>[] last = {CompletableFuture.completedFuture(null)};
          counts[round] += Tables.read(file, BATCH, batch -> {
            List<Object> rows = new ArrayList<>(batch.size());
            for (var e : batch) {
              rows.add(edges ? List.of(e.id(), e.label(), e.from(), e.to(), e.properties()) : List.of(e.id(), e.label(), e.properties()));
            }
            var options = RequestOptions.build().timeout(600_000).addParameter("rows", rows).create();
            // A batch is read while the server works at the one before; TinkerGraph is not made for two writers.
            last[0].get();
            last[0] = client.submitAsync(edges ? EDGES : VERTICES, options).thenCompose(results -> results.all());
          });
          last[0].get();
        }
      }
      return counts;
    }

    @Override
    public Driver.Caller caller() {
      return new Driver.Caller() {
        @Override
        public void call(String text, Map<String, Object> parameters) throws Exception {
          client.submit(text, parameters).all().get();
        }

        @Override
        public List<String> rows(String text, Map<String, Object> parameters) throws Exception {
          List<String> rows = new ArrayList<>();
          for (Result result : client.submit(text, parameters).all().get()) rows.add(row(result.getObject()));
          return rows;
        }

        @Override
        public void close() {}
      };
    }

    private static String row(Object value) {
      if (value instanceof Vertex vertex) {
        Map<String, Object> properties = new HashMap<>();
        vertex.properties().forEachRemaining(p -> properties.put(p.key(), p.value()));
        return Rows.vertex(vertex.id(), vertex.label(), properties);
      }
      if (value instanceof Map<?, ?> map) {
        Map<String, Object> named = new LinkedHashMap<>();
        map.forEach((key, v) -> named.put(key instanceof org.apache.tinkerpop.gremlin.structure.T t ? t.getAccessor().substring(1) : key.toString(), v));
        return Rows.map(named);
      }
      return Rows.value(value);
    }

    @Override
    public void close() {
      cluster.close();
    }
  }
}
