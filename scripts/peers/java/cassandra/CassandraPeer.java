import com.datastax.oss.driver.api.core.AllNodesFailedException;
import com.datastax.oss.driver.api.core.ConsistencyLevel;
import com.datastax.oss.driver.api.core.CqlSession;
import com.datastax.oss.driver.api.core.config.DefaultDriverOption;
import com.datastax.oss.driver.api.core.config.DriverConfigLoader;
import com.datastax.oss.driver.api.core.cql.PreparedStatement;
import com.datastax.oss.driver.api.core.cql.Row;
import com.datastax.oss.driver.api.core.cql.SimpleStatement;
import com.datastax.oss.driver.api.core.metadata.Node;
import com.datastax.oss.driver.api.core.metadata.NodeState;
import com.datastax.oss.driver.api.core.servererrors.UnavailableException;
import java.net.InetSocketAddress;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.TimeUnit;
import org.apache.cassandra.utils.FBUtilities;

/**
 * Apache Cassandra, one node or a cluster: `server SYNC NUMBER NODES FOLDER` runs a node over a folder that all nodes share until its input
 * ends, `client SYNC NODES ADDRESS` is a client for {@link Driver} that knows the mix of the ycsb workload and nothing else. SYNC is what
 * `commitlog_sync` is set to.
 *
 * <p>A record is a row with ten columns of text. The mix is that of `bench/src/ycsb/mix.rs`.
 */
final class CassandraPeer {
  private static final int FIELDS = 10;
  private static final int FIELD_BYTES = 200;

  private CassandraPeer() {}

  public static void main(String[] args) throws Exception {
    try {
      if (args[0].equals("server")) new CassandraNode(Path.of(args[4]), Integer.parseInt(args[2]), Integer.parseInt(args[3])).run(args[1]);
      else Driver.serve(new Remote(args[1], Integer.parseInt(args[2]), args[3]));
    } catch (Throwable failure) {
      // Threads of the server or the driver would keep the process alive, and the benchmark waiting.
      failure.printStackTrace();
      System.err.println(failure);
      Runtime.getRuntime().halt(1);
    }
    System.exit(0);
  }

  /**
   * The Java driver with prepared statements, which it sends to a node that has the record.
   *
   * <p>A cluster has two replicas of each record. Writes wait for both (ALL, which is also what QUORUM means of two), reads ask one: so every
   * read sees every write that was acknowledged, as it does in a fleet of ours. One node is written and read with ONE.
   */
  private static final class Remote implements Driver.Client {
    private static final int REPLICAS = 2;
    /** Records that are looked for to learn whether all nodes see each other: enough to meet every pair of them. */
    private static final int PROBES = 64;

    private final CqlSession session;
    private final String sync;
    private final int nodes;
    private final PreparedStatement read;
    private final PreparedStatement insert;
    private final PreparedStatement delete;
    private final List<PreparedStatement> updates = new ArrayList<>();

    Remote(String sync, int nodes, String address) throws InterruptedException {
      this.sync = sync;
      this.nodes = nodes;
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
      until("the driver is connected to all nodes", this::connected);
      session.execute(
          "CREATE KEYSPACE IF NOT EXISTS ycsb WITH replication = {'class': 'SimpleStrategy', 'replication_factor': "
              + Math.min(nodes, REPLICAS)
              + "}");
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
      insert = write("INSERT INTO ycsb.records (" + names + ") VALUES (" + marks + ")");
      delete = write("DELETE FROM ycsb.records WHERE id = ?");
      for (int n = 0; n < FIELDS; n++) updates.add(write("UPDATE ycsb.records SET field" + n + " = ? WHERE id = ?"));
      until("all nodes see each other", this::together);
    }

    private PreparedStatement write(String text) {
      return session.prepare(
          SimpleStatement.newInstance(text).setConsistencyLevel(nodes == 1 ? ConsistencyLevel.ONE : ConsistencyLevel.ALL));
    }

    private interface Condition {
      boolean holds();
    }

    private static void until(String what, Condition condition) throws InterruptedException {
      long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(60);
      while (!condition.holds()) {
        if (System.nanoTime() > end) throw new IllegalStateException("after a minute it does not hold that " + what);
        Thread.sleep(100);
      }
    }

    private boolean connected() {
      var known = session.getMetadata().getNodes().values();
      return known.size() == nodes && known.stream().allMatch(node -> node.getState() == NodeState.UP && node.getOpenConnections() > 0);
    }

    /** Whether every node takes every other one for alive: each is asked for records with both of their replicas. */
    private boolean together() {
      try {
        for (Node node : session.getMetadata().getNodes().values()) {
          for (int key = 0; key < PROBES; key++)
            session.execute(read.bind(Driver.Keys.name(key)).setConsistencyLevel(ConsistencyLevel.ALL).setNode(node));
        }
        return true;
      } catch (UnavailableException | AllNodesFailedException notYet) {
        return false;
      }
    }

    @Override
    public Map<String, String> about() {
      String disk =
          sync.equals("periodic")
              ? "commitlog_sync periodic: it acknowledges up to 10 s before the disk has it"
              : "commitlog_sync " + sync + ": it acknowledges when the disk has it";
      String name = "Apache Cassandra " + FBUtilities.getReleaseVersionString();
      if (nodes > 1) name += ", " + nodes + " nodes";
      if (!sync.equals("periodic")) name += ", commitlog_sync " + sync;
      return Map.of(
          "peer", name,
          "driver", "java-driver 4 (Java), prepared statements, " + (nodes == 1 ? "consistency ONE" : "writes ALL, reads ONE"),
          "note",
              (nodes == 1 ? "one node" : nodes + " nodes, " + REPLICAS + " replicas")
                  + ", "
                  + disk
                  + "; an insert of a key that is there overwrites it");
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
