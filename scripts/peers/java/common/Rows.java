import java.time.OffsetDateTime;
import java.time.ZonedDateTime;
import java.util.Date;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Collectors;

/**
 * The notation in which answers of different databases are compared: `bench/src/peers/rows.rs` has the same for ours.
 *
 * <p>A vertex is `id:label{key=value,…}` with its keys in order, a map `{key=value,…}`, a list `[a,b]`, a point in time its milliseconds.
 */
final class Rows {
  private Rows() {}

  static String vertex(Object id, String label, Map<String, Object> properties) {
    return id + ":" + label + map(properties);
  }

  static String map(Map<?, ?> map) {
    Map<String, Object> sorted = new TreeMap<>();
    map.forEach((key, value) -> sorted.put(key.toString(), value));
    return sorted.entrySet().stream().map(e -> e.getKey() + "=" + value(e.getValue())).collect(Collectors.joining(",", "{", "}"));
  }

  static String value(Object value) {
    if (value instanceof ZonedDateTime time) return Long.toString(time.toInstant().toEpochMilli());
    if (value instanceof OffsetDateTime time) return Long.toString(time.toInstant().toEpochMilli());
    if (value instanceof Date time) return Long.toString(time.getTime());
    if (value instanceof Map<?, ?> map) return map(map);
    if (value instanceof List<?> list) return list.stream().map(Rows::value).collect(Collectors.joining(",", "[", "]"));
    return String.valueOf(value);
  }
}
