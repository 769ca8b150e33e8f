import java.io.IOException;
import java.math.BigInteger;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.StringJoiner;
import org.apache.cassandra.service.CassandraDaemon;

/**
 * A node of Apache Cassandra, alone or one of a cluster: the nodes have the addresses 127.0.0.1, 127.0.0.2 and so on, and the same ports,
 * as drivers expect it of a cluster. The first one chooses the ports and leaves them in the folder that all share.
 *
 * <p>The settings are those of the distribution's own file, but for addresses, folders, tokens, time limits and what the caller says of
 * commitlog_sync.
 */
final class CassandraNode {
  private static final int TOKENS = 16;

  private final Path folder;
  private final int number;
  private final int nodes;

  /** The node with this number, counted from 1. */
  CassandraNode(Path folder, int number, int nodes) {
    this.folder = folder;
    this.number = number;
    this.nodes = nodes;
  }

  /** Runs it until standard input ends. */
  void run(String sync) throws Exception {
    var out = System.out;
    System.setOut(System.err);
    // From the beginning: who started us may be killed while the node joins its cluster. Nothing here is worth an orderly end.
    Thread end = new Thread(CassandraNode::haltAtEndOfInput, "end of input");
    end.setDaemon(true);
    end.start();
    int[] ports = ports();
    Path home = Files.createDirectories(folder.resolve("node-" + number));
    Path config = home.resolve("cassandra.yaml");
    Files.writeString(config, settings(sync, home, ports[0], ports[1]));
    System.setProperty("cassandra.config", config.toUri().toString());
    System.setProperty("cassandra.storagedir", home.toString());
    System.setProperty("cassandra-foreground", "true");
    if (nodes == 1) {
      // Nobody else is in this cluster: it need not wait for others.
      System.setProperty("cassandra.skip_wait_for_gossip_to_settle", "0");
      System.setProperty("cassandra.ring_delay_ms", "0");
    }
    new CassandraDaemon(true).activate();
    out.println("listening on " + address(number) + ":" + ports[0]);
    end.join();
  }

  private static void haltAtEndOfInput() {
    try {
      while (System.in.read() >= 0) {}
    } catch (IOException closed) {
      // As good as its end.
    }
    Runtime.getRuntime().halt(0);
  }

  private static String address(int number) {
    return "127.0.0." + number;
  }

  /** Of clients, and of other nodes. */
  private int[] ports() throws IOException {
    Path file = folder.resolve("ports");
    if (number > 1) {
      String[] chosen = Files.readString(file).split(" ");
      return new int[] {Integer.parseInt(chosen[0]), Integer.parseInt(chosen[1])};
    }
    int[] ports = {freePort(0), 0};
    ports[1] = freePort(ports[0]);
    Files.writeString(file, ports[0] + " " + ports[1]);
    return ports;
  }

  /** A port that is free at the addresses of all nodes, and not this one. */
  private int freePort(int taken) throws IOException {
    IOException refused = null;
    for (int attempt = 0; attempt < 20; attempt++) {
      int port;
      try (ServerSocket first = new ServerSocket(0, 1, InetAddress.getByName(address(1)))) {
        port = first.getLocalPort();
      }
      if (port == taken) continue;
      try {
        for (int other = 1; other <= nodes; other++) {
          try (ServerSocket socket = new ServerSocket()) {
            socket.bind(new InetSocketAddress(address(other), port));
          }
        }
        return port;
      } catch (IOException failure) {
        refused = failure;
      }
    }
    throw new IOException("no port is free at 127.0.0.1 to " + address(nodes), refused);
  }

  /** Every node has the same share of the ring, whatever was drawn: tokens lie evenly, and the nodes take turns. */
  private String tokens() {
    BigInteger step = BigInteger.ONE.shiftLeft(64).divide(BigInteger.valueOf((long) TOKENS * nodes));
    StringJoiner tokens = new StringJoiner(",");
    for (int n = 0; n < TOKENS; n++) {
      BigInteger at = step.multiply(BigInteger.valueOf((long) n * nodes + number - 1));
      tokens.add(at.add(BigInteger.valueOf(Long.MIN_VALUE + 1)).toString());
    }
    return tokens.toString();
  }

  private String settings(String sync, Path home, int port, int storage) {
    // Only periodic syncing has a period, and the other way refuses one.
    String period = sync.equals("periodic") ? "commitlog_sync_period: 10000ms" : "";
    return """
        cluster_name: tidegraph
        num_tokens: %d
        initial_token: "%s"
        # An empty cluster has nothing to bring to a node that joins.
        auto_bootstrap: false
        partitioner: org.apache.cassandra.dht.Murmur3Partitioner
        authenticator: AllowAllAuthenticator
        authorizer: AllowAllAuthorizer
        endpoint_snitch: SimpleSnitch
        commitlog_sync: %s
        %s
        commitlog_segment_size: 32MiB
        concurrent_reads: 32
        concurrent_writes: 32
        # Clients and all nodes share the processor: a slow answer should be counted, not end the run.
        read_request_timeout: 20s
        write_request_timeout: 20s
        listen_address: %s
        rpc_address: %s
        native_transport_port: %d
        storage_port: %d
        seed_provider:
          - class_name: org.apache.cassandra.locator.SimpleSeedProvider
            parameters:
              - seeds: "%s:%d"
        data_file_directories: ["%s"]
        commitlog_directory: %s
        saved_caches_directory: %s
        hints_directory: %s
        cdc_raw_directory: %s
        """
        .formatted(
            TOKENS,
            tokens(),
            sync,
            period,
            address(number),
            address(number),
            port,
            storage,
            address(1),
            storage,
            home.resolve("data"),
            home.resolve("commitlog"),
            home.resolve("saved_caches"),
            home.resolve("hints"),
            home.resolve("cdc"));
  }
}
