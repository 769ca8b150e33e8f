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
        start, label_of, counts = time.perf_counter(), {}, [0, 0]
        tables = []
        for file in sorted(Path(folder).glob("*.csv")):
            with file.open(encoding="utf-8") as lines:
                header, first = next(lines).strip().split(","), next(lines).strip().split(",")
            columns = [c.split("(")[0].split(":") for c in header]
            names = ["" if c[0][0] == "~" else c[0] for c in columns]
            declared = ", ".join(f"c{n} {TYPES[c[1].lower()] if len(c) > 1 else 'STRING'}" for n, c in enumerate(columns))
            tables.append(("~from" in header, file, header, first, names, declared))
        for edges, file, header, first, names, declared in sorted(tables, key=lambda t: t[0]):
            label = first[header.index("~label")]
            types = [d.split(" ")[1] for d in declared.split(", ")]
            kept = [(n, name) for n, name in enumerate(names) if name]
            properties = "".join(f", `{name}` {types[n]}" for n, name in kept)
            if edges:
                a, b = (label_of[first[header.index(c)].rstrip("0123456789-")] for c in ("~from", "~to"))
                self.execute(f"CREATE REL TABLE `{label}`(FROM `{a}` TO `{b}`{properties})")
                ids = [header.index("~from"), header.index("~to")]
            else:
                label_of[first[header.index("~id")].rstrip("0123456789-")] = label
                self.execute(f"CREATE NODE TABLE `{label}`(id STRING PRIMARY KEY{properties})")
                ids = [header.index("~id")]
            returned = ", ".join(f"c{n}" for n in ids + [n for n, _ in kept])
            self.execute(
                f"COPY `{label}` FROM (LOAD WITH HEADERS ({declared}) FROM '{file}' (header=true, escape='\"') RETURN {returned})"
            )
        counts[0] = self.execute("MATCH (n) RETURN count(*)").get_next()[0]
        counts[1] = self.execute("MATCH ()-[e]->() RETURN count(*)").get_next()[0]
        seconds = time.perf_counter() - start
        self.execute("CREATE NODE TABLE IF NOT EXISTS Written(number SERIAL PRIMARY KEY, age INT64, region STRING, completion INT64)")
        return {"seconds": seconds, "vertices": counts[0], "edges": counts[1]}

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
                "rows": lambda: client.rows(command),
                "run": lambda: client.run(command),
            }[command["op"]]()
        except Exception as error:  # whatever it is, the other end has to know
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), flush=True)


main()
