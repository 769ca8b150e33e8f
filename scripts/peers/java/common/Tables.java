import java.io.BufferedReader;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** The Gremlin CSV files of a generated graph. Only what the generator writes is understood: no arrays, no line breaks in fields. */
final class Tables {
  /** A vertex (`from` and `to` are null) or an edge. */
  record Element(String id, String label, String from, String to, Map<String, Object> properties) {}

  interface Batch {
    void take(List<Element> elements) throws Exception;
  }

  private Tables() {}

  static boolean edges(Path file) throws IOException {
    try (BufferedReader reader = Files.newBufferedReader(file)) {
      return reader.readLine().contains("~from");
    }
  }

  /** Files of vertices, or of edges. */
  static List<Path> files(Path folder, boolean edges) throws IOException {
    List<Path> files = new ArrayList<>();
    try (var all = Files.list(folder)) {
      for (Path file : all.filter(f -> f.toString().endsWith(".csv")).sorted().toList()) {
        if (edges(file) == edges) files.add(file);
      }
    }
    return files;
  }

  /** The first element of a file. */
  static Element first(Path file) throws IOException {
    try (BufferedReader reader = Files.newBufferedReader(file, StandardCharsets.UTF_8)) {
      List<String> header = split(reader.readLine());
      return element(header, split(reader.readLine()));
    }
  }

  /** Gives the elements of a file in batches; how many there were. */
  static long read(Path file, int size, Batch batch) throws Exception {
    long count = 0;
    try (BufferedReader reader = Files.newBufferedReader(file, StandardCharsets.UTF_8)) {
      List<String> header = split(reader.readLine());
      List<Element> elements = new ArrayList<>(size);
      for (String line = reader.readLine(); line != null; line = reader.readLine()) {
        elements.add(element(header, split(line)));
        count++;
        if (elements.size() == size) {
          batch.take(elements);
          elements = new ArrayList<>(size);
        }
      }
      if (!elements.isEmpty()) batch.take(elements);
    }
    return count;
  }

  private static Element element(List<String> header, List<String> fields) {
    String id = null, label = null, from = null, to = null;
    Map<String, Object> properties = new HashMap<>();
    for (int at = 0; at < header.size(); at++) {
      String text = fields.get(at);
      switch (header.get(at)) {
        case "~id" -> id = text;
        case "~label" -> label = text;
        case "~from" -> from = text;
        case "~to" -> to = text;
        default -> {
          if (!text.isEmpty()) {
            String[] column = header.get(at).split(":");
            properties.put(column[0], value(column[1].replaceAll("\\(.*", ""), text));
          }
        }
      }
    }
    return new Element(id, label, from, to, properties);
  }

  private static Object value(String type, String text) {
    return switch (type.toLowerCase(java.util.Locale.ROOT)) {
      case "int" -> Integer.valueOf(text);
      case "long" -> Long.valueOf(text);
      case "double" -> Double.valueOf(text);
      case "bool", "boolean" -> Boolean.valueOf(text);
      case "date", "datetime" -> Instant.parse(text).atZone(ZoneOffset.UTC);
      default -> text;
    };
  }

  private static List<String> split(String line) {
    List<String> fields = new ArrayList<>();
    StringBuilder field = new StringBuilder();
    boolean quoted = false;
    for (int at = 0; at < line.length(); at++) {
      char c = line.charAt(at);
      if (quoted) {
        if (c != '"') field.append(c);
        else if (at + 1 < line.length() && line.charAt(at + 1) == '"') field.append(line.charAt(++at));
        else quoted = false;
      } else if (c == '"') quoted = true;
      else if (c == ',') {
        fields.add(field.toString());
        field.setLength(0);
      } else field.append(c);
    }
    fields.add(field.toString());
    return fields;
  }
}
