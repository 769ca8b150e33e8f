"""Reads gremlin-lang and makes the calls of gremlin-python that it stands for.

The text is only read: a step becomes a call of the method of gremlin-python with that name, and nothing is evaluated.
"""

import inspect
import re
import uuid
from datetime import datetime
from decimal import Decimal

from gremlin_python.process import strategies
from gremlin_python.process import traversal as words
from gremlin_python.process.graph_traversal import GraphTraversal, GraphTraversalSource, __
from gremlin_python.statics import BigDecimal, SingleByte, bigint, long, short

ENUMS = ("T", "Scope", "Order", "Column", "Pop", "Cardinality", "Operator", "Direction", "Merge", "Pick", "Barrier", "DT", "GType", "N")
PREDICATES = {
    "P": ("between", "eq", "gt", "gte", "inside", "lt", "lte", "neq", "not", "outside", "typeOf", "within", "without"),
    "TextP": ("containing", "endingWith", "notContaining", "notEndingWith", "notRegex", "notStartingWith", "regex", "startingWith"),
}
TERMINALS = {"toList", "iterate", "next", "toSet", "toBulkSet", "hasNext", "tryNext", "explain"}
TOKENS = re.compile(
    r"""\s+|//[^\n]*|
    (?P<number>[-+]?(?:\d+\.\d+(?:[eE][-+]?\d+)?|\d+(?:[eE][-+]?\d+)?)[bBsSiIlLfFdDmMnN]?)(?![\w])|
    (?P<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|
    (?P<name>[A-Za-z_$][\w$]*)|
    (?P<special>[-+]Infinity)|
    (?P<sign>[.,()\[\]{}:;])""",
    re.VERBOSE,
)
ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}


class Absent(Exception):
    """gremlin-python has no word for a part of the text."""


def snake(name):
    return re.sub(r"(?<=[a-z0-9])([A-Z])|(?<=[A-Z])([A-Z])(?=[a-z])", lambda m: "_" + m.group(0), name).lower()


def member(owner, name):
    """Returns the attribute that gremlin-python has for a name of gremlin-lang."""
    for candidate in (snake(name) + "_", snake(name), name + "_", name):
        # `GraphTraversal` takes any other name for a property.
        if inspect.getattr_static(owner, candidate, None) is not None:
            return candidate
    raise Absent(f"{getattr(owner, '__name__', owner)} has no {name}")


def constant(enum, name):
    """Returns the constant that an enum of gremlin-python has for a name of gremlin-lang."""
    members = enum.__members__
    for candidate in (name + "_", name, snake(name) + "_", snake(name)):
        if candidate in members:
            return members[candidate]
    raise Absent(f"{enum.__name__} has no {name}")


def unquoted(text):
    def escape(match):
        code = match.group(1)
        if code[0] == "u":
            return chr(int(code[1:], 16))
        return ESCAPES.get(code, code)

    return re.sub(r"\\(u[0-9a-fA-F]{4}|.)", escape, text[1:-1], flags=re.DOTALL)


def tokens(text):
    found, at = [], 0
    while at < len(text):
        match = TOKENS.match(text, at)
        if not match:
            raise ValueError(f"unreadable at {at}: {text[at:at + 20]!r}")
        # A sign after a value is no part of the number, as in `1..5`.
        if match.lastgroup:
            found.append((match.lastgroup, match.group()))
        at = match.end()
    return found + [("end", "")]


def number(text):
    suffix = text[-1].lower() if text[-1].isalpha() else ""
    digits = text[:-1] if suffix else text
    if suffix == "m":
        scale = -Decimal(digits).as_tuple().exponent
        return BigDecimal(scale, int(Decimal(digits).scaleb(scale)))
    if suffix in ("f", "d") or re.search(r"[.eE]", digits):
        return float(digits)
    value = int(digits)
    kinds = {"b": SingleByte, "s": short, "l": long, "n": bigint}
    if suffix in kinds:
        return kinds[suffix](value)
    return value if -(2**31) <= value < 2**31 else long(value)


class Reader:
    def __init__(self, text, source, parameters):
        self.tokens, self.at = tokens(text), 0
        self.source, self.parameters = source, parameters

    def peek(self, ahead=0):
        return self.tokens[min(self.at + ahead, len(self.tokens) - 1)]

    def take(self):
        token = self.peek()
        self.at += 1
        return token

    def accept(self, sign):
        if self.peek() == ("sign", sign):
            self.at += 1
            return True
        return False

    def expect(self, sign):
        if not self.accept(sign):
            raise ValueError(f"expected {sign!r}, found {self.peek()}")

    def name(self):
        kind, text = self.take()
        if kind != "name":
            raise ValueError(f"expected a name, found {text!r}")
        return text

    def request(self):
        """Returns the traversal, and the call that ends it in the text."""
        if self.name() != "g":
            raise ValueError("expected g")
        current, terminal = self.source, None
        while self.accept("."):
            name = self.name()
            args = self.args()
            if name in TERMINALS and isinstance(current, GraphTraversal):
                terminal = name
            else:
                current = self.call(current, name, args)
        self.accept(";")
        if self.peek()[0] != "end":
            raise Absent("several statements")
        return current, terminal

    @staticmethod
    def call(owner, name, args):
        if isinstance(owner, GraphTraversalSource) and name == "withoutStrategies":
            args = [arg if inspect.isclass(arg) else type(arg) for arg in args]
        elif isinstance(owner, GraphTraversalSource) and name == "withStrategies":
            args = [arg() if inspect.isclass(arg) else arg for arg in args]
        kind = owner if inspect.isclass(owner) else type(owner)
        return getattr(owner, member(kind, name))(*args)

    def args(self):
        self.expect("(")
        return self.items(")")

    def items(self, end):
        found = []
        while not self.accept(end):
            found.append(self.arg())
            if not self.accept(",") and self.peek() != ("sign", end):
                raise ValueError(f"expected {end!r}, found {self.peek()}")
        return found

    def arg(self):
        kind, text = self.peek()
        if kind in ("number", "text", "special"):
            self.take()
            if self.peek() == ("sign", ".") and self.peek(1) == ("sign", "."):
                raise Absent("a range")
            return number(text) if kind == "number" else unquoted(text) if kind == "text" else float(text)
        if self.accept("["):
            return self.list_or_map()
        if self.accept("{"):
            return set(self.items("}"))
        return self.named(self.name())

    def list_or_map(self):
        if self.accept(":"):
            self.expect("]")
            return {}
        if self.accept("]"):
            return []
        found, is_map = [], False
        while True:
            key = self.key()
            if self.accept(":"):
                is_map = True
                found.append((key, self.arg()))
            else:
                found.append(key)
            if not self.accept(","):
                break
        self.expect("]")
        return dict(found) if is_map else found

    def key(self):
        if self.peek()[0] == "name" and self.peek(1) == ("sign", ":"):
            name = self.name()
            return constant(words.T, name) if name in ("id", "label") and self.bare_keys else name
        if self.accept("("):
            key = self.arg()
            self.expect(")")
            return key
        return self.arg()

    # Whether keys of maps without parentheses may be tokens, as in 3.7.
    bare_keys = True

    def named(self, name):
        constants = {"true": True, "false": False, "null": None, "NaN": float("nan"), "Infinity": float("inf")}
        if name in constants:
            return constants[name]
        if name == "__":
            self.expect(".")
            return self.anonymous(self.name())
        if name == "new":
            name = self.name()
        if name.endswith("Strategy"):
            return self.strategy(name)
        if name in ("P", "TextP") and self.accept("."):
            return self.predicate(self.name())
        if name == "IO":
            self.expect(".")
            return getattr(words.IO, member(words.IO, self.name()))
        if name == "WithOptions":
            self.expect(".")
            return getattr(words.WithOptions, member(words.WithOptions, self.name()))
        if name == "VertexProperty":
            self.expect(".")
            name = self.name()
        if name in ENUMS and self.accept("."):
            return self.constant(getattr(words, name, None), name, self.name())
        if self.peek() != ("sign", "("):
            return self.bare(name)
        if name in ("datetime", "DateTime"):
            return datetime.fromisoformat(self.args()[0].replace("Z", "+00:00"))
        if name == "UUID":
            args = self.args()
            return uuid.UUID(*args) if args else uuid.uuid4()
        if name in ("single", "list", "set"):
            return self.constant(words.Cardinality, "Cardinality", name)
        if name in ("Vertex", "ReferenceVertex"):
            raise Absent("Vertex()")
        if any(name in known for known in PREDICATES.values()) and name != "not":
            return self.predicate(name)
        return self.anonymous(name)

    def bare(self, name):
        if name in self.parameters:
            value = self.parameters[name]
            if isinstance(value, Exception):
                raise value
            return value
        for enum in ENUMS:
            owner = getattr(words, enum, None)
            try:
                if owner is not None:
                    return constant(owner, name)
            except Absent:
                continue
        raise Absent(f"the word {name}")

    def constant(self, owner, enum, name):
        if owner is None:
            raise Absent(enum)
        if self.peek() == ("sign", "("):
            return getattr(words.CardinalityValue, member(words.CardinalityValue, name))(*self.args())
        return constant(owner, name)

    def strategy(self, name):
        kind = getattr(strategies, name, None)
        if kind is None:
            raise Absent(name)
        if not self.accept("("):
            return kind
        known = inspect.signature(kind.__init__).parameters
        settings = {}
        while not self.accept(")"):
            key = self.name()
            self.expect(":")
            settings[key if key in known else snake(key)] = self.arg()
            self.accept(",")
        unknown = [key for key in settings if key not in known]
        if unknown:
            raise Absent(f"{unknown[0]} of {name}")
        return kind(**settings)

    def predicate(self, name):
        owner = words.TextP if name in PREDICATES["TextP"] else words.P
        found = getattr(owner, member(owner, name))(*self.args())
        while self.accept("."):
            link = self.name()
            args = self.args()
            if link == "negate":
                found = words.P.not_(found)
            else:
                found = getattr(found, member(type(found), link))(*args)
        return found

    def anonymous(self, name):
        args = self.args()
        if name == "not" and len(args) == 1 and isinstance(args[0], words.P):
            return words.P.not_(args[0])
        current = getattr(__, member(__, name))(*args)
        while self.accept("."):
            name = self.name()
            current = self.call(current, name, self.args())
        return current


def read(text, source, parameters, bare_keys):
    reader = Reader(text, source, parameters)
    reader.bare_keys = bare_keys
    return reader.request()
