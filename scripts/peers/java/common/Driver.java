import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.TreeMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicLong;
import org.HdrHistogram.Histogram;

/**
 * The part that all Java clients of peers share: it reads commands, one JSON object a line, from standard input and answers each
 * with one line on standard output. `bench/src/peers/program.rs` is the other end.
 *
 * <p>It ends when its input does, so it never outlives the benchmark.
 */
final class Driver {
  /** What a peer's own client has to offer. */
  interface Client extends AutoCloseable {
    /** Name and version of the peer, of the client library, and what a reader of the figures has to know. */
    Map<String, String> about();

    /** Loads a folder of Gremlin CSV files by the client's usual means; counts of what was loaded. */
    long[] load(Path folder) throws Exception;

    /** A connection of one client. */
    Caller caller();

    /** Inserts the records of the ycsb workload with these numbers. */
    default void fill(long from, long to) throws Exception {
      throw new UnsupportedOperationException("it has no part in the mix");
    }

    /** One client of the ycsb workload. */
    default Mixer mixer(long seed, Keys keys) {
      throw new UnsupportedOperationException("it has no part in the mix");
    }

    @Override
    void close();
  }

  /** One client that blocks on its answer. */
  interface Caller extends AutoCloseable {
    /** Runs a query, takes the whole answer, and throws it away. */
    void call(String text, Map<String, Object> parameters) throws Exception;

    /** Runs a query; every row in the notation that all peers share (see {@link Rows}). */
    List<String> rows(String text, Map<String, Object> parameters) throws Exception;

    @Override
    void close();
  }

  /** One client of the ycsb workload: makes one operation after the other. */
  interface Mixer {
    void next() throws Exception;
  }

  /** Which records of the ycsb workload there are, as `bench/src/ycsb/mix.rs` has it. */
  static final class Keys {
    private final AtomicLong gone;
    private final AtomicLong next;
    /** Records so near to either end may be under way. */
    private final long margin;

    Keys(long gone, long next, long margin) {
      this.gone = new AtomicLong(gone);
      this.next = new AtomicLong(next);
      this.margin = margin;
    }

    /** One that is there. */
    long one(SplittableRandom random) {
      long from = gone.get() + margin;
      return from + random.nextLong(Math.max(1, next.get() - margin - from));
    }

    long fresh() {
      return next.getAndIncrement();
    }

    long oldest() {
      return gone.getAndIncrement();
    }

    static String name(long number) {
      return String.format("user%016x", number * 0x9e3779b97f4a7c15L);
    }
  }

  private interface Step {
    void run() throws Exception;
  }

  private record Call(String text, Map<String, Object> parameters) {}

  private record Result(long calls, String error, Histogram latencies) {}

  private Driver() {}

  static void serve(Client client) throws Exception {
    // Libraries must not write between the answers.
    PrintStream out = new PrintStream(new java.io.FileOutputStream(java.io.FileDescriptor.out), true, StandardCharsets.UTF_8);
    System.setOut(System.err);
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line = in.readLine(); line != null; line = in.readLine()) {
      JsonObject answer = new JsonObject();
      try {
        answer = answer(client, JsonParser.parseString(line).getAsJsonObject());
      } catch (Exception | OutOfMemoryError error) {
        Throwable cause = error;
        while (cause.getCause() != null) cause = cause.getCause();
        answer.addProperty("error", cause.toString());
      }
      out.println(answer);
    }
    client.close();
  }

  private static JsonObject answer(Client client, JsonObject command) throws Exception {
    JsonObject answer = new JsonObject();
    switch (command.get("op").getAsString()) {
      case "hello" -> client.about().forEach(answer::addProperty);
      case "load" -> {
        long start = System.nanoTime();
        long[] counts = client.load(Path.of(command.get("folder").getAsString()));
        answer.addProperty("seconds", (System.nanoTime() - start) / 1e9);
        answer.addProperty("vertices", counts[0]);
        answer.addProperty("edges", counts[1]);
      }
      case "rows" -> {
        try (Caller caller = client.caller()) {
          JsonArray rows = new JsonArray();
          caller.rows(command.get("text").getAsString(), parameters(command.get("parameters"))).forEach(rows::add);
          answer.add("rows", rows);
        }
      }
      case "run" -> run(client, command, answer);
      case "fill" -> client.fill(command.get("from").getAsLong(), command.get("to").getAsLong());
      case "mix" -> mix(client, command, answer);
      default -> throw new IllegalArgumentException("unknown command " + command.get("op"));
    }
    return answer;
  }

  private static void run(Client client, JsonObject command, JsonObject answer) throws Exception {
    List<Call> calls = new ArrayList<>();
    JsonArray texts = command.getAsJsonArray("texts");
    for (JsonElement element : command.getAsJsonArray("calls")) {
      JsonArray call = element.getAsJsonArray();
      calls.add(new Call(texts.get(call.get(0).getAsInt()).getAsString(), parameters(call.get(1))));
    }
    int clients = command.get("clients").getAsInt();
    List<Caller> callers = new ArrayList<>();
    List<Step> steps = new ArrayList<>();
    try {
      for (int n = 0; n < clients; n++) {
        Caller caller = client.caller();
        callers.add(caller);
        // Each client begins elsewhere in the list and goes round it.
        int[] at = {(int) ((long) calls.size() * n / clients)};
        steps.add(
            () -> {
              Call call = calls.get(at[0]);
              at[0] = (at[0] + 1) % calls.size();
              try {
                caller.call(call.text, call.parameters);
              } catch (Exception failure) {
                throw new Exception(failure + " in " + call, failure);
              }
            });
      }
      keepBusy(steps, command, answer);
    } finally {
      callers.forEach(Caller::close);
    }
  }

  private static void mix(Client client, JsonObject command, JsonObject answer) throws Exception {
    int clients = command.get("clients").getAsInt();
    Keys keys = new Keys(command.get("gone").getAsLong(), command.get("next").getAsLong(), 4L * clients);
    List<Step> steps = new ArrayList<>();
    for (int n = 0; n < clients; n++) {
      Mixer mixer = client.mixer(command.get("seed").getAsLong() * 1_000 + n, keys);
      steps.add(mixer::next);
    }
    keepBusy(steps, command, answer);
    answer.addProperty("gone", keys.gone.get());
    answer.addProperty("next", keys.next.get());
  }

  /** A thread for each client, for as long as the command says. */
  private static void keepBusy(List<Step> steps, JsonObject command, JsonObject answer) throws Exception {
    long length = command.get("ms").getAsLong() * 1_000_000;
    ExecutorService threads = Executors.newFixedThreadPool(steps.size());
    try {
      List<Future<Result>> futures = new ArrayList<>();
      long start = System.nanoTime();
      for (Step step : steps) futures.add(threads.submit(() -> busy(step, start, length)));
      Histogram all = new Histogram(3);
      long count = 0;
      for (Future<Result> future : futures) {
        Result result = future.get();
        count += result.calls;
        all.add(result.latencies);
        if (result.error != null) answer.addProperty("failed", result.error);
      }
      answer.addProperty("seconds", (System.nanoTime() - start) / 1e9);
      answer.addProperty("calls", count);
      answer.addProperty("p50", all.getValueAtPercentile(50) / 1e3);
      answer.addProperty("p99", all.getValueAtPercentile(99) / 1e3);
      answer.addProperty("p999", all.getValueAtPercentile(99.9) / 1e3);
    } finally {
      threads.shutdown();
    }
  }

  private static Result busy(Step step, long start, long length) {
    Histogram latencies = new Histogram(3);
    long count = 0;
    String error = null;
    while (System.nanoTime() - start < length) {
      long began = System.nanoTime();
      try {
        step.run();
      } catch (Exception failure) {
        error = failure.toString();
        break;
      }
      latencies.recordValue(System.nanoTime() - began);
      count++;
    }
    return new Result(count, error, latencies);
  }

  private static Map<String, Object> parameters(JsonElement json) {
    Map<String, Object> parameters = new TreeMap<>();
    for (var entry : json.getAsJsonObject().entrySet()) {
      var value = entry.getValue().getAsJsonPrimitive();
      if (value.isBoolean()) parameters.put(entry.getKey(), value.getAsBoolean());
      else if (value.isString()) parameters.put(entry.getKey(), value.getAsString());
      else if (value.getAsString().matches("-?\\d+")) parameters.put(entry.getKey(), value.getAsLong());
      else parameters.put(entry.getKey(), value.getAsDouble());
    }
    return parameters;
  }
}
