"""Kùzu: a client for the driver protocol of the benchmarks (see scripts/peers/java/common/Driver.java), with the library in this process.

It ends when its input does, so it never outlives the benchmark.
"""

import json
import sys
import time
from datetime import datetime, timezone
from pathlib import Path

import kuzu

TYPES = {"int": "INT32", "long": "INT64", "double": "DOUBLE", "bool": "BOOL", "datetime": "TIMESTAMP", "string": "STRING"}


def quoted(value):
    """A literal: prepared parameters keep this version from its key index."""
    if isinstance(value, str):
        return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
    return json.dumps(value)


def filled(text, parameters):
    """The text with literals in place of $name."""
    for name in sorted(parameters, key=len, reverse=True):
        text = text.replace("$" + name, quoted(parameters[name]))
    return text


def notation(value):
    """A value as all peers write it."""
    if isinstance(value, dict) and "_label" in value:
        keys = sorted(k for k, v in value.items() if k[0] != "_" and k != "id" and v is not None)
        return f"{value['id']}:{value['_label']}" + "{" + ",".join(f"{k}={notation(value[k])}" for k in keys) + "}"
    if isinstance(value, dict):
        return "{" + ",".join(f"{k}={notation(value[k])}" for k in sorted(value)) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(notation, value)) + "]"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime):
        return str(round(value.replace(tzinfo=timezone.utc).timestamp() * 1000))
    return "null" if value is None else str(value)


class Table:
    """A file of Gremlin CSV, and the queries that read it."""

    def __init__(self, file):
        self.file = file
        with file.open(encoding="utf-8") as lines:
            self.header, self.first = next(lines).strip().split(","), next(lines).strip().split(",")
        columns = [c.split("(")[0].split(":") for c in self.header]
        self.types = [TYPES[c[1].lower()] if len(c) > 1 else "STRING" for c in columns]
        self.kept = [(n, c[0]) for n, c in enumerate(columns) if c[0][0] != "~"]
        # A vertex has one label here: the last, which it shares with others.
        self.labels = self.first[self.header.index("~label")].split(";")
        self.label = self.labels[-1]

    def prefix(self, column):
        """What an id begins with tells its label in the generated graphs."""
        return self.first[self.header.index(column)].rstrip("0123456789-")

    def properties(self):
        return "".join(f", `{name}` {self.types[n]}" for n, name in self.kept)

    def rows(self, ids):
        declared = ", ".join(f"c{n} {type}" for n, type in enumerate(self.types))
        returned = ", ".join(f"c{n}" for n in [self.header.index(c) for c in ids] + [n for n, _ in self.kept])
        return f"LOAD WITH HEADERS ({declared}) FROM '{self.file}' (header=true, escape='\"') RETURN {returned}"


class Client:
    def __init__(self, folder):
        self.database = kuzu.Database(str(Path(folder) / "graph.kuzu"), buffer_pool_size=2 << 30)
        self.connection = kuzu.Connection(self.database)

    def execute(self, text):
        return self.connection.execute(text)

    def hello(self):
        return {
            "peer": f"Kùzu {kuzu.version}",
            "driver": "kuzu (Python), embedded: no protocol between client and database, literals instead of parameters",
            "note": "the Python call bounds short queries",
        }

    def load(self, folder):
        """COPY from the files; tables are made from their headers."""
        start, labels_of = time.perf_counter(), {}
        vertices, edges = {}, {}
        tables = [Table(file) for file in sorted(Path(folder).glob("*.csv"))]
        for table in tables:
            if "~from" not in table.header:
                labels_of[table.prefix("~id")] = table.labels
                vertices.setdefault(table.label, []).append(table)
        for label, files in vertices.items():
            self.execute(f"CREATE NODE TABLE `{label}`(id STRING PRIMARY KEY{files[0].properties()})")
            for table in files:
                self.execute(f"COPY `{label}` FROM ({table.rows(['~id'])})")
        for table in tables:
            if "~from" in table.header:
                table.ends = [labels_of[table.prefix(column)] for column in ("~from", "~to")]
                edges.setdefault(table.label, {}).setdefault(tuple(end[-1] for end in table.ends), []).append(table)
        names = []
        for label, by_ends in edges.items():
            for ends, files in by_ends.items():
                names.append(label if len(by_ends) == 1 else "_".join([label, *ends]))
                self.copy_edges(names[-1], files)
        counts = [self.execute("MATCH (n) RETURN count(*)").get_next()[0], 0]
        counts[1] = sum(self.execute(f"MATCH ()-[e:`{name}`]->() RETURN count(*)").get_next()[0] for name in names)
        seconds = time.perf_counter() - start
        # Where files with different ends share a table, each has one of its own too, as in LSQB.
        for label, by_ends in edges.items():
            for files in by_ends.values():
                own = {table.ends[1][0] for table in files}
                for table in files if len(own) > 1 else []:
                    self.copy_edges(f"{label}_{table.ends[1][0]}", [table])
        self.execute("CREATE NODE TABLE IF NOT EXISTS Written(number SERIAL PRIMARY KEY, age INT64, region STRING, completion INT64)")
        return {"seconds": seconds, "vertices": counts[0], "edges": counts[1]}

    def copy_edges(self, name, files):
        a, b = (end[-1] for end in files[0].ends)
        self.execute(f"CREATE REL TABLE `{name}`(FROM `{a}` TO `{b}`{files[0].properties()})")
        for table in files:
            self.execute(f"COPY `{name}` FROM ({table.rows(['~from', '~to'])})")

    def threads(self, threads):
        self.connection.set_max_threads_for_exec(threads)
        return {}

    def rows(self, command):
        result = self.execute(filled(command["text"], command["parameters"]))
        rows = []
        while result.has_next():
            rows.append("|".join(map(notation, result.get_next())))
        return {"rows": rows}

    def run(self, command):
        if command["clients"] != 1:
            raise ValueError("this client has one connection")
        texts = command["texts"]
        calls = [filled(texts[text], parameters) for text, parameters in command["calls"]]
        latencies, start, at = [], time.perf_counter_ns(), 0
        end = start + command["ms"] * 1_000_000
        while True:
            began = time.perf_counter_ns()
            if began >= end:
                break
            result = self.execute(calls[at % len(calls)])
            result.get_all()
            result.close()
            latencies.append(time.perf_counter_ns() - began)
            at += 1
        seconds = (time.perf_counter_ns() - start) / 1e9
        latencies.sort()
        quantile = lambda q: latencies[min(len(latencies) - 1, int(len(latencies) * q))] / 1e3
        return {"calls": at, "seconds": seconds, "p50": quantile(0.5), "p99": quantile(0.99), "p999": quantile(0.999)}


def main():
    client = Client(sys.argv[1])
    for line in sys.stdin:
        command = json.loads(line)
        try:
            answer = {
                "hello": lambda: client.hello(),
                "load": lambda: client.load(command["folder"]),
                "threads": lambda: client.threads(command["threads"]),
                "rows": lambda: client.rows(command),
                "run": lambda: client.run(command),
            }[command["op"]]()
        except Exception as error:  # whatever it is, the other end has to know
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), flush=True)


main()
