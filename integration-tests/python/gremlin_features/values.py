"""TinkerPop's notation for values in scenarios (`d[1].i`, `v[marko]`, `l[…]`), as values of gremlin-python.

Ids are strings in Tidegraph: where the notation has a number as an id, the id is its decimal text.
"""

import json
import math
import re
import uuid
from datetime import datetime, timezone
from decimal import Decimal

from gremlin_python.process.traversal import Direction, Merge, T
from gremlin_python.statics import BigDecimal, SingleByte, long, short
from gremlin_python.structure.graph import Edge, Path, Property, Vertex, VertexProperty

NUMBERS = {"b": SingleByte, "s": short, "i": int, "l": long, "n": long, "f": float, "d": float, "m": float}
TOKENS = {"id": T["id"], "label": T["label"], "key": T["key"], "value": T["value"]}
DIRECTIONS = {"OUT": Direction.OUT, "IN": Direction.IN, "from": Direction.OUT, "to": Direction.IN, "BOTH": Direction.BOTH}
MERGES = {"onCreate": Merge.on_create, "onMatch": Merge.on_match, "outV": Merge.out_v, "inV": Merge.in_v}


class LeftOut(Exception):
    """The notation stands for something that has no form here."""


def parts(text):
    """Splits a list at the commas that are in no brackets."""
    found, depth, last = [], 0, 0
    for at, sign in enumerate(text):
        depth += (sign == "[") - (sign == "]")
        if sign == "," and depth == 0:
            found.append(text[last:at].strip())
            last = at + 1
    rest = text[last:].strip()
    return found + [rest] if rest else found


def value(text, g):
    """Reads a value; vertices and edges are those of the graph."""
    plain = {"null": None, "true": True, "false": False}
    if text in plain:
        return plain[text]
    special = {"d[NaN]": "nan", "d[Infinity]": "inf", "d[-Infinity]": "-inf"}
    if text in special:
        return float(special[text])
    if match := re.fullmatch(r"d\[(.*)\]\.(\w)", text):
        digits = match[1]
        return SingleByte(int(digits)) if match[2] == "b" else NUMBERS[match[2]](digits)
    if match := re.fullmatch(r"([ve]\[.*\])\.s?id", text):
        return value(match[1], g).id
    match = re.fullmatch(r"([a-zA-Z]+)\[(.*)\]", text, re.DOTALL)
    return bracketed(match[1], match[2], g) if match else text


def bracketed(kind, inner, g):
    if kind == "str":
        return inner
    if kind == "v":
        return vertex(inner, g)
    if kind == "e":
        source, rest = inner.split("-", 1)
        label, target = rest.split("->", 1)
        edges = g.E().has_label(label).to_list()
        ends = (vertex(source, g).id, vertex(target, g).id)
        return next(edge for edge in edges if (edge.outV.id, edge.inV.id) == ends)
    if kind == "vp":
        owner, held = inner.split("->", 1)
        owner, key = owner.rsplit("-", 1)
        return VertexProperty(None, key, value(held, g), vertex(owner, g))
    if kind == "l":
        return [value(item, g) for item in parts(inner)]
    if kind == "s":
        return Items(value(item, g) for item in parts(inner))
    if kind == "p":
        return Path([], [value(item, g) for item in parts(inner)])
    if kind == "dt":
        return datetime.fromisoformat(inner.replace("Z", "+00:00"))
    if kind == "uuid":
        return uuid.UUID(inner)
    if kind == "m":
        return of_json(json.loads(inner), g)
    tables = {"t": TOKENS, "D": DIRECTIONS, "M": MERGES}
    if kind in tables:
        return tables[kind][inner]
    if kind == "c":
        raise LeftOut("a lambda")
    return f"{kind}[{inner}]"


class Items(list):
    """The items of a set, some of which Python cannot put into one."""


def of_json(found, g):
    if isinstance(found, dict):
        return {key(name, g): of_json(held, g) for name, held in found.items()}
    if isinstance(found, list):
        return [of_json(item, g) for item in found]
    return value(found, g) if isinstance(found, str) else found


def key(name, g):
    found = value(name, g)
    if isinstance(found, dict):
        return json.dumps(found)
    return tuple(found) if isinstance(found, list) else found


def vertex(name, g):
    found = g.V().has("name", name).to_list() or g.V(name).to_list()
    if not found:
        raise ValueError(f"no vertex is named {name}")
    return found[0]


def same(expected, actual):
    """Whether a value of an answer is the expected one. gremlin-python has one type for several numbers."""
    if isinstance(expected, bool) or isinstance(actual, bool) or expected is None or actual is None:
        return expected is actual
    if isinstance(expected, Path):
        return isinstance(actual, Path) and same_list(expected.objects, actual.objects)
    if isinstance(expected, (Vertex, Edge)):
        return type(expected) is type(actual) and expected.id == actual.id
    if isinstance(expected, VertexProperty):
        owner = getattr(actual, "vertex", None)
        return (
            isinstance(actual, VertexProperty)
            and expected.key == actual.key
            and same(expected.value, actual.value)
            and (owner is None or owner.id == expected.vertex.id)
        )
    if isinstance(expected, Property):
        return isinstance(actual, Property) and expected.key == actual.key and same(expected.value, actual.value)
    if isinstance(expected, dict):
        return same_map(expected, actual)
    if isinstance(expected, Items):
        return isinstance(actual, (set, frozenset, list)) and same_bag(expected, list(actual))
    if isinstance(expected, list):
        return isinstance(actual, (list, tuple)) and same_list(expected, list(actual))
    if isinstance(expected, datetime):
        return isinstance(actual, datetime) and instant(expected) == instant(actual)
    if isinstance(actual, BigDecimal):
        actual = actual.value
    if isinstance(expected, (int, float, Decimal)):
        if isinstance(expected, float) and expected != expected:
            return actual != actual
        is_number = isinstance(actual, (int, float, Decimal))
        if not is_number or isinstance(expected, int) != isinstance(actual, int):
            return False
        # A sum of decimals depends on the order of the traversers.
        return expected == actual if isinstance(expected, int) else math.isclose(expected, actual, rel_tol=1e-12)
    return type(expected) is type(actual) and expected == actual


def instant(time):
    return time if time.tzinfo else time.replace(tzinfo=timezone.utc)


def same_map(expected, actual):
    if not isinstance(actual, dict) or len(expected) != len(actual):
        return False
    rest = list(actual.items())
    for name, held in expected.items():
        for at, (other, found) in enumerate(rest):
            if same_key(name, other) and same(held, found):
                del rest[at]
                break
        else:
            return False
    return True


def same_key(expected, actual):
    if isinstance(expected, tuple):
        return isinstance(actual, (tuple, list)) and same_list(list(expected), list(actual))
    return same(expected, actual)


def same_list(expected, actual):
    return len(expected) == len(actual) and all(same(a, b) for a, b in zip(expected, actual))


def same_bag(expected, actual):
    rest = list(actual)
    for item in expected:
        at = next((at for at, other in enumerate(rest) if same(item, other)), None)
        if at is None:
            return False
        del rest[at]
    return not rest
