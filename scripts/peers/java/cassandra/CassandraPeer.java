import com.datastax.oss.driver.api.core.CqlSession;
import com.datastax.oss.driver.api.core.config.DefaultDriverOption;
import com.datastax.oss.driver.api.core.config.DriverConfigLoader;
import com.datastax.oss.driver.api.core.cql.PreparedStatement;
import com.datastax.oss.driver.api.core.cql.Row;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.concurrent.CompletionStage;
import org.apache.cassandra.service.CassandraDaemon;
import org.apache.cassandra.utils.FBUtilities;

/**
 * Apache Cassandra, one node: `server FOLDER` runs it over a data folder until its input ends, `client ADDRESS` is a client for
 * {@link Driver} that knows the mix of the ycsb workload and nothing else.
 *
 * <p>A record is a row with ten columns of text. The mix is that of `services/query/src/bench/ycsb/mix.rs`.
 */
final class CassandraPeer {
  private static final int FIELDS = 10;
  private static final int FIELD_BYTES = 200;

  private CassandraPeer() {}

  public static void main(String[] args) throws Exception {
    if (args[0].equals("server")) server(Path.of(args[1]));
    else Driver.serve(new Remote(args[1]));
    System.exit(0);
  }

  private static void server(Path folder) throws Exception {
    var out = System.out;
    System.setOut(System.err);
    int port;
    int storage;
    try (ServerSocket first = new ServerSocket(0);
        ServerSocket second = new ServerSocket(0)) {
      port = first.getLocalPort();
      storage = second.getLocalPort();
    }
    // What the distribution's own file says, but for addresses and folders: above all, commitlog_sync is periodic.
    Path config = folder.resolve("cassandra.yaml");
    Files.writeString(
        config,
        """
        cluster_name: tidegraph
        num_tokens: 16
        partitioner: org.apache.cassandra.dht.Murmur3Partitioner
        authenticator: AllowAllAuthenticator
        authorizer: AllowAllAuthorizer
        endpoint_snitch: SimpleSnitch
        commitlog_sync: periodic
        commitlog_sync_period: 10000ms
        commitlog_segment_size: 32MiB
        concurrent_reads: 32
        concurrent_writes: 32
        listen_address: 127.0.0.1
        rpc_address: 127.0.0.1
        native_transport_port: %d
        storage_port: %d
        seed_provider:
          - class_name: org.apache.cassandra.locator.SimpleSeedProvider
            parameters:
              - seeds: "127.0.0.1:%d"
        data_file_directories: ["%s"]
        commitlog_directory: %s
        saved_caches_directory: %s
        hints_directory: %s
        cdc_raw_directory: %s
        """
            .formatted(
                port,
                storage,
                storage,
                folder.resolve("data"),
                folder.resolve("commitlog"),
                folder.resolve("saved_caches"),
                folder.resolve("hints"),
                folder.resolve("cdc")));
    System.setProperty("cassandra.config", config.toUri().toString());
    System.setProperty("cassandra.storagedir", folder.toString());
    System.setProperty("cassandra-foreground", "true");
    // Nobody else is in this cluster: it need not wait for others.
    System.setProperty("cassandra.skip_wait_for_gossip_to_settle", "0");
    System.setProperty("cassandra.ring_delay_ms", "0");
    CassandraDaemon daemon = new CassandraDaemon(true);
    daemon.activate();
    out.println("listening on 127.0.0.1:" + port);
    while (System.in.read() >= 0) {}
    daemon.deactivate();
  }

  /** The Java driver with prepared statements, consistency ONE. */
  private static final class Remote implements Driver.Client {
    private final CqlSession session;
    private final PreparedStatement read;
    private final PreparedStatement insert;
    private final PreparedStatement delete;
    private final List<PreparedStatement> updates = new ArrayList<>();

    Remote(String address) {
      int colon = address.lastIndexOf(':');
      var config =
          DriverConfigLoader.programmaticBuilder()
              .withDuration(DefaultDriverOption.REQUEST_TIMEOUT, Duration.ofSeconds(30))
              .withString(DefaultDriverOption.REQUEST_CONSISTENCY, "ONE")
              .withInt(DefaultDriverOption.CONNECTION_POOL_LOCAL_SIZE, 2)
              .build();
      session =
          CqlSession.builder()
              .addContactPoint(new InetSocketAddress(address.substring(0, colon), Integer.parseInt(address.substring(colon + 1))))
              .withLocalDatacenter("datacenter1")
              .withConfigLoader(config)
              .build();
      session.execute(
          "CREATE KEYSPACE IF NOT EXISTS ycsb WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
      StringBuilder columns = new StringBuilder();
      StringBuilder marks = new StringBuilder("?");
      StringBuilder names = new StringBuilder("id");
      for (int n = 0; n < FIELDS; n++) {
        columns.append(", field").append(n).append(" text");
        names.append(", field").append(n);
        marks.append(", ?");
      }
      session.execute("CREATE TABLE IF NOT EXISTS ycsb.records (id text PRIMARY KEY" + columns + ")");
      read = session.prepare("SELECT * FROM ycsb.records WHERE id = ?");
      insert = session.prepare("INSERT INTO ycsb.records (" + names + ") VALUES (" + marks + ")");
      delete = session.prepare("DELETE FROM ycsb.records WHERE id = ?");
      for (int n = 0; n < FIELDS; n++)
        updates.add(session.prepare("UPDATE ycsb.records SET field" + n + " = ? WHERE id = ?"));
    }

    @Override
    public Map<String, String> about() {
      return Map.of(
          "peer", "Apache Cassandra " + FBUtilities.getReleaseVersionString(),
          "driver", "java-driver 4 (Java), prepared statements, consistency ONE",
          "note", "one node, commitlog_sync periodic: it acknowledges up to 10 s before the disk has it; an insert of a key that is there overwrites it");
    }

    @Override
    public long[] load(Path folder) {
      throw new UnsupportedOperationException("no graphs");
    }

    @Override
    public Driver.Caller caller() {
      throw new UnsupportedOperationException("only the mix");
    }

    private Object[] row(long key, SplittableRandom random) {
      Object[] row = new Object[FIELDS + 1];
      row[0] = Driver.Keys.name(key);
      for (int n = 1; n <= FIELDS; n++) row[n] = text(random);
      return row;
    }

    private static String text(SplittableRandom random) {
      byte[] bytes = new byte[FIELD_BYTES];
      for (int at = 0; at < FIELD_BYTES; at++) bytes[at] = (byte) ('a' + random.nextInt(26));
      return new String(bytes, java.nio.charset.StandardCharsets.ISO_8859_1);
    }

    @Override
    public void fill(long from, long to) throws Exception {
      SplittableRandom random = new SplittableRandom(from);
      List<CompletionStage<?>> open = new ArrayList<>();
      for (long key = from; key < to; key++) {
        open.add(session.executeAsync(insert.bind(row(key, random))));
        if (open.size() == 128 || key + 1 == to) {
          for (var each : open) each.toCompletableFuture().get();
          open.clear();
        }
      }
    }

    @Override
    public Driver.Mixer mixer(long seed, Driver.Keys keys) {
      SplittableRandom random = new SplittableRandom(seed);
      return () -> {
        int drawn = random.nextInt(100);
        if (drawn < 50) {
          Row row = session.execute(read.bind(Driver.Keys.name(keys.one(random)))).one();
          if (row == null) throw new IllegalStateException("a record that was inserted is not there");
          // As a client that wants the record does.
          for (int n = 0; n < FIELDS; n++) if (row.getString("field" + n) == null) throw new IllegalStateException("a record is not whole");
        } else if (drawn < 90) {
          session.execute(insert.bind(row(keys.fresh(), random)));
        } else if (drawn < 96) {
          session.execute(updates.get(random.nextInt(FIELDS)).bind(text(random), Driver.Keys.name(keys.one(random))));
        } else {
          session.execute(delete.bind(Driver.Keys.name(keys.oldest())));
        }
      };
    }

    @Override
    public void close() {
      session.close();
    }
  }
}
