"""Writes Air Routes as CSV, in Gremlin's and in openCypher's dialect, out of the package graph-notebook.

convert.py WHEEL FOLDER: FOLDER/gremlin and FOLDER/opencypher get nodes.csv and edges.csv, FOLDER/counts.json what is in them.

The package has the graph as Gremlin: `addV("label")` or `addE("label")`, and steps that say something of the element before. What is
none of these steps is refused, so that nothing is left out unseen.
"""

import csv
import json
import re
import sys
import zipfile
from pathlib import Path

SOURCE = "graph_notebook/seed/queries/propertygraph/gremlin/airports/"
TEXT = r'"((?:[^"\\]|\\.)*)"'
STEP = re.compile(
    rf"\.(?:(?P<add>add[VE])\({TEXT}\)"
    rf"|property\((?:id|{TEXT}),(?:{TEXT}|(?P<number>-?[\d.]+(?:[eE]-?\d+)?)d?)\)"
    rf"|(?P<end>from|to)\(V\({TEXT}\)\))"
)
BLANK = re.compile(r"\s+")


def unescaped(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text)


def elements(script: str):
    """The elements of a script, one after the other."""
    for line in script.splitlines():
        if not line.strip():
            continue
        at = re.match(r"\s*g", line)
        if at is None:
            raise SystemExit(f"no traversal: {line[:80]!r}")
        position, element = at.end(), None
        while blank_or_step := BLANK.match(line, position) or STEP.match(line, position):
            position = blank_or_step.end()
            if blank_or_step.re is BLANK:
                continue
            step = blank_or_step
            if step["add"]:
                if element:
                    yield element
                element = {"kind": step["add"], "label": unescaped(step[2]), "values": {}}
            elif step["end"]:
                element[step["end"]] = unescaped(step[7])
            elif step[3] is None:
                element["id"] = unescaped(step[4])
            elif step["number"]:
                number = step["number"]
                element["values"][step[3]] = float(number) if "." in number else int(number)
            else:
                element["values"][step[3]] = unescaped(step[4])
        if line[position:].strip(" ;"):
            raise SystemExit(f"neither a vertex nor an edge: {line[position:position + 80]!r}")
        if element:
            yield element


def kinds(rows: list[dict]) -> dict[str, str]:
    """The type of each key: the widest that its values need."""
    found: dict[str, str] = {}
    for row in rows:
        for key, value in row["values"].items():
            kind = {int: "int", float: "double", str: "string"}[type(value)]
            order = ["int", "double", "string"]
            found[key] = max(found.get(key, kind), kind, key=order.index)
    return found


def write(path: Path, header: list[str], rows) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)


def main(wheel: str, folder: Path) -> None:
    with zipfile.ZipFile(wheel) as package:
        names = sorted(name for name in package.namelist() if name.startswith(SOURCE) and name.endswith(".txt"))
        found = [element for name in names for element in elements(package.read(name).decode())]
    nodes = [element for element in found if element["kind"] == "addV"]
    edges = [element for element in found if element["kind"] == "addE"]
    for element in found:
        if "id" not in element or (element["kind"] == "addE" and not {"from", "to"} <= element.keys()):
            raise SystemExit(f"something is missing: {element}")
    for dialect, of_nodes, of_edges in [
        ("gremlin", ["~id", "~label"], ["~id", "~from", "~to", "~label"]),
        ("opencypher", [":ID", ":LABEL"], [":ID", ":START_ID", ":END_ID", ":TYPE"]),
    ]:
        for name, rows, header, fields in [
            ("nodes.csv", nodes, of_nodes, ["id", "label"]),
            ("edges.csv", edges, of_edges, ["id", "from", "to", "label"]),
        ]:
            keys = kinds(rows)
            typed = header + [f"{key}:{kind}" for key, kind in keys.items()]
            cells = ([row[f] for f in fields] + [row["values"].get(key) for key in keys] for row in rows)
            write(folder / dialect / name, typed, cells)
    counts = {
        "nodes": len(nodes),
        "edges": len(edges),
        "airports": sum(element["label"] == "airport" for element in nodes),
        "routes": sum(element["label"] == "route" for element in edges),
    }
    (folder / "counts.json").write_text(json.dumps(counts) + "\n")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
