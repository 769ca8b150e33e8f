"""Runs TinkerPop's Gherkin scenarios through gremlin-python, which sends bytecode over WebSocket.

Usage: gremlin_features VERSION FEATURES GRATEFUL GRAPHS LIST FILES NAME=ENDPOINT...

VERSION is that of the scenarios: 3.7 or 3.8. GRAPHS is the folder with the graphs as traversals, GRATEFUL the file of one
more. LIST has a line `name | reason` for each scenario that is known to fail. FILES is the folder with the files that
scenarios read. Each ENDPOINT is an empty graph, which gets the graph that its NAME stands for. A graph `NAME-of-tinkergraph`
has settings of TinkerGraph, which the scenarios in `settings.txt` of GRAPHS presuppose.

The service may refuse a scenario as not supported yet; gremlin-python may have no words for it. Any other failure that is
not listed ends the run with an error, and so does a listed scenario that does not fail.
"""

import json
import os
import re
import sys
import urllib.parse
import urllib.request
import warnings
from collections import Counter
from pathlib import Path as File

from gherkin.parser import Parser
from gremlin_python.driver.client import Client
from gremlin_python.driver.driver_remote_connection import DriverRemoteConnection
from gremlin_python.driver.protocol import GremlinServerError
from gremlin_python.process.anonymous_traversal import traversal
from gremlin_python.structure.graph import Path

from text import Absent, read
from values import Items, LeftOut, same, same_bag, value

# gremlin-python warns of names that it will drop, such as `hasLabel`.
warnings.simplefilter("ignore")


# The end of the names of graphs that have settings of TinkerGraph.
OF_TINKERGRAPH = "-of-tinkergraph"


class Failed(Exception):
    """The answer is not the expected one."""


class Refused(Exception):
    """The service does not support a part of the scenario yet."""


class Service:
    """A graph behind an endpoint."""

    def __init__(self, endpoint):
        self.endpoint = endpoint
        url = endpoint.replace("http", "ws", 1) + "/gremlin"
        self.client = Client(url, "g")
        self.connection = DriverRemoteConnection(url, "g")
        self.g = traversal().with_remote(self.connection)

    def run(self, text):
        return self.client.submit(text).all().result()

    def cypher(self, text, rows):
        fields = {"query": text, "parameters": json.dumps({"rows": rows})}
        body = urllib.parse.urlencode(fields).encode()
        with urllib.request.urlopen(self.endpoint + "/openCypher", body) as answer:
            answer.read()

    def close(self):
        self.connection.close()
        self.client.close()


def grateful(service, file):
    """Loads GraphSON 1 with a line for each vertex and its outgoing edges."""
    vertices, edges = {}, {}
    for line in File(file).read_text().splitlines():
        vertex = json.loads(line)
        held = {key: vertex["properties"].get(key, [{"value": None}])[0]["value"] for key in ("name", "songType", "performances")}
        vertices.setdefault(vertex["label"], []).append({"id": str(vertex["id"]), **held})
        for label, found in vertex.get("outE", {}).items():
            for edge in found:
                ends = {"id": str(edge["id"]), "from": str(vertex["id"]), "to": str(edge["inV"])}
                edges.setdefault(label, []).append({**ends, "weight": edge.get("properties", {}).get("weight")})
    for label, rows in vertices.items():
        names = "name: r.name, songType: r.songType, performances: r.performances"
        service.cypher(f"UNWIND $rows AS r CREATE (:{label} {{`~id`: r.id, {names}}})", rows)
    for label, rows in edges.items():
        ends = "MATCH (a), (b) WHERE id(a) = r.from AND id(b) = r.to"
        service.cypher(f"UNWIND $rows AS r {ends} CREATE (a)-[:{label} {{`~id`: r.id, weight: r.weight}}]->(b)", rows)


class World:
    """What the steps of a scenario have set so far."""

    def __init__(self, services, version, files):
        self.services, self.bare_keys, self.files = services, version == "3.7", files
        self.service, self.parameters, self.side_effects = None, {}, []
        self.text, self.result, self.error = "", [], None

    def ask(self, text, is_asked=False):
        source = self.service.g
        if is_asked:
            for key, held in self.side_effects:
                source = source.with_side_effect(key, held)
        current, terminal = read(text, source, self.parameters, self.bare_keys)
        try:
            if terminal == "iterate":
                current.iterate()
                return []
            found = current.to_list()
        except GremlinServerError as error:
            if "not supported yet" in str(error):
                raise Refused(re.sub(r" at \d+:\d+.*", "", str(error).split("not supported yet: ")[-1])) from error
            raise
        except (AttributeError, ValueError) as error:
            if "TinkerGraph deserialization" in str(error) or "is not a valid DataType" in str(error):
                raise LeftOut("gremlin-python cannot read a graph or a tree") from error
            raise
        return found[:1] if terminal in ("next", "tryNext") else found

    def step(self, step):
        text = step["text"]
        docstring = step.get("docString", {}).get("content", "")
        quoted = re.search(r'"(.*)"', text)
        quoted = quoted.group(1).replace('\\"', '"') if quoted else ""
        if match := re.fullmatch(r"the (\w+) graph", text):
            self.service = self.services[match[1]]
            if match[1] == "empty":
                self.service.run("g.V().drop()")
        elif text == "an unsupported test":
            raise LeftOut("TinkerPop does not run it either")
        elif text == "the graph initializer of":
            self.ask(docstring)
        elif match := re.match(r"using the (parameter|side effect) (\w+) ", text):
            self.define(match, text, quoted)
        elif text == "the traversal of":
            # As TinkerPop's own runners do, the path of a file becomes that of this machine.
            self.text = docstring.replace('io("data/', f'io("{self.files}/')
        elif text in ("iterated to list", "iterated next"):
            self.iterate(text == "iterated next")
        else:
            self.check(text, step, quoted)

    def define(self, match, text, quoted):
        predicate = re.search(r" of (P|TextP)\.(\w+)\(", text)
        try:
            held = value(quoted, self.service.g)
            if isinstance(held, Items):
                held = set(held)
            if predicate:
                held, _ = read(f"g.V().is({predicate[1]}.{predicate[2]}(x))", self.service.g, {"x": held}, True)
                held = held.bytecode.step_instructions[-1][1]
        except (LeftOut, Absent) as why:
            held = why
        if match[1] == "parameter":
            self.parameters[match[2]] = held
        else:
            self.side_effects.append((match[2], held))

    def iterate(self, only_next):
        try:
            self.result = self.ask(self.text, is_asked=True)
        except GremlinServerError as error:
            self.error = error
            return
        if only_next:
            first = self.result[:1]
            if first and isinstance(first[0], Path):
                first = [first[0].objects]
            has_items = first and isinstance(first[0], (list, set, frozenset))
            self.result = list(first[0]) if has_items else first

    def check(self, text, step, quoted):
        if text.startswith("the traversal will raise an error"):
            if self.error is None:
                raise Failed(f"an error was expected, found {self.result}")
            return
        if self.error is not None:
            raise Failed(f"{self.error}")
        rows = step.get("dataTable", {}).get("rows", [])[1:]
        if match := re.match(r"the result should have a count of (\d+)", text):
            found = self.result
            count = len(found[0]) if match[1] != "1" and len(found) == 1 and isinstance(found[0], dict) else len(found)
            self.holds(count == int(match[1]), f"{match[1]} results")
        elif match := re.match(r"the graph should return (\d+) for count of", text):
            found = len(self.ask(quoted))
            self.holds(found == int(match[1]), f"{match[1]} instead of {found} of {quoted}")
        elif text == "the result should be empty":
            self.holds(not self.result, "no result")
        elif text in ("the result should be ordered", "the result should be unordered", "the result should be of"):
            expected = [value(row["cells"][0]["value"].strip(), self.service.g) for row in rows]
            if text.endswith(" ordered"):
                holds = len(expected) == len(self.result) and all(map(same, expected, self.result))
            elif text.endswith("unordered"):
                holds = same_bag(expected, self.result)
            else:
                holds = all(any(same(e, found) for e in expected) for found in self.result)
            self.holds(holds, str(expected))
        elif not text.startswith("nothing should happen because"):
            raise LeftOut(f"a step that this runner does not know: {re.sub(r'[0-9]+', 'n', text)}")

    def holds(self, holds, expected):
        if not holds:
            raise Failed(f"expected {expected}\n      found    {self.result}")


def outcome(scenario, services, version, files):
    """Returns how a scenario ends: passed, or why not."""
    world = World(services, version, files)
    try:
        for step in scenario["steps"]:
            world.step(step)
    except Refused as why:
        return "refused", str(why)
    except (LeftOut, Absent) as why:
        return "left out", str(why)
    except Exception as why:  # Whatever happens is the outcome of this scenario only.
        return "failed", f"{type(why).__name__}: {why}\n      {' '.join(world.text.split())}"
    return "passed", ""


def scenarios(folder):
    for file in sorted(File(folder).rglob("*.feature")):
        for child in Parser().parse(file.read_text() + "\n")["feature"]["children"]:
            if "scenario" in child:
                yield f"{file.stem}: {child['scenario']['name']}", child["scenario"]


def expected_failures(file):
    lines = [line for line in File(file).read_text().splitlines() if line and not line.startswith("#")]
    return dict(line.split(" | ", 1) for line in lines)


def main():
    version, features, grateful_file, graphs, known, files, *endpoints = sys.argv[1:]
    services = {name: Service(endpoint) for name, endpoint in (each.split("=", 1) for each in endpoints)}
    for name, service in services.items():
        graph = name.removesuffix(OF_TINKERGRAPH)
        if graph == "grateful":
            grateful(service, grateful_file)
        elif graph != "empty":
            service.run((File(graphs) / f"{graph}.gremlin").read_text())
    of_tinkergraph = {
        name.removesuffix(OF_TINKERGRAPH): service for name, service in services.items() if name.endswith(OF_TINKERGRAPH)
    }
    presupposing = expected_failures(File(graphs) / "settings.txt")
    only, known = os.environ.get("GREMLIN_SCENARIO", ""), expected_failures(known)
    counts, why, wrong, listed = Counter(), {"refused": Counter(), "left out": Counter()}, [], 0
    for name, scenario in scenarios(features):
        if only not in name:
            continue
        given = of_tinkergraph if name in presupposing else services
        how, reason = outcome(scenario, given, version, files)
        is_known = known.pop(name, None) is not None
        counts[how] += 1
        if how in why:
            why[how][reason] += 1
        if how == "failed" and is_known:
            listed += 1
        elif how == "failed":
            wrong.append(f"{name}\n      {reason}")
        elif is_known:
            wrong.append(f"{name}\n      is listed as a failure and does not fail")
        presupposing.pop(name, None)
    if not only:
        wrong += [f"{name}\n      needs settings and does not exist" for name in presupposing]
        wrong += [f"{name}\n      is listed as a failure and does not exist" for name in known]
    for service in services.values():
        service.close()
    print(f"{sum(counts.values())} scenarios of {version}: {dict(counts)}, {listed} of the failures are listed")
    for how, reasons in why.items():
        for reason, count in reasons.most_common():
            print(f"{how:9} {count:4} {reason}")
    if wrong:
        print(f"{len(wrong)} scenarios are wrong", *wrong, sep="\n")
        sys.exit(1)


if __name__ == "__main__":
    main()
