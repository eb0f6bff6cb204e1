"""From an expression to a function of a record. Python's parser reads it; of what it finds only what is here counts.

Nothing is evaluated by Python: each node becomes a closure over operations of our own, so an expression can neither
call nor reach anything that is not named below.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from typing import Any, Final, NoReturn

from ottla.cli.faults import UsageFault
from ottla.cli.where import operations as do
from ottla.cli.where.record_view import RecordView
from ottla.client.records import ConsumerRecord

Where = Callable[[ConsumerRecord], bool]
_Part = Callable[[RecordView], Any]

CHARACTERS_MAX: Final = 4096
#: Of an expression, in a message about it.
_SHOWN_MAX: Final = 80
#: Operators within operators: people write five. Building and asking both go a few calls deeper with each.
DEPTH_MAX: Final = 100

_NAMES: Final[dict[str, _Part]] = {
    "key": RecordView.key,
    "value": RecordView.value,
    "headers": RecordView.headers,
    "timestamp": lambda view: view.record.timestamp,
    "partition": lambda view: view.record.partition,
    "offset": lambda view: view.record.offset,
    "topic": lambda view: view.record.topic,
}
#: What a dot or a bracket behind a name looks into.
_INSIDES: Final[dict[str, _Part]] = {
    "key": RecordView.key_json,
    "value": RecordView.value_json,
    "headers": RecordView.headers,
}
_CONSTANTS: Final = {"true": True, "false": False, "null": None}
_COMPARISONS: Final[dict[type[ast.cmpop], Callable[[Any, Any], bool]]] = {
    ast.Eq: do.same,
    ast.NotEq: do.different,
    ast.Lt: do.LESS,
    ast.LtE: do.LESS_OR_EQUAL,
    ast.Gt: do.MORE,
    ast.GtE: do.MORE_OR_EQUAL,
    ast.In: do.inside,
    ast.NotIn: do.outside,
    ast.Is: do.same,
    ast.IsNot: do.different,
}
_CALCULATIONS: Final[dict[type[ast.operator], Callable[[Any, Any], Any]]] = {
    ast.Add: do.PLUS,
    ast.Sub: do.MINUS,
    ast.Mult: do.TIMES,
    ast.Div: do.DIVIDED,
    ast.Mod: do.REMAINDER,
}
_OF_ONE: Final[dict[str, Callable[[Any], Any]]] = {
    "len": do.length,
    "number": do.number,
    "lower": do.lower,
    "upper": do.upper,
}
_OF_TWO: Final[dict[str, Callable[[Any, Any], Any]]] = {"startswith": do.starts_with, "endswith": do.ends_with}
_FUNCTIONS: Final = (*_OF_ONE, *_OF_TWO, "matches", "time")


def parse_where(text: str) -> Where:
    """Raises UsageFault, which says where in the text what is wrong."""
    if len(text) > CHARACTERS_MAX:
        raise UsageFault(f"--where: the expression is longer than {CHARACTERS_MAX} characters")
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except SyntaxError as error:
        where = f" at column {error.offset}" if error.offset else ""
        raise UsageFault(
            f"--where: '{_shortened(text)}' is not an expression{where}: {error.msg}{_hint(text)}"
        ) from error
    except (RecursionError, MemoryError, ValueError) as error:
        raise UsageFault(
            "--where: the expression cannot be read: it is nested too deeply, or holds a null byte"
        ) from error
    if _depth(tree) > DEPTH_MAX:
        raise UsageFault("--where: the expression is nested too deeply")
    part = _part(tree.body)
    return lambda record: bool(part(RecordView(record)))


def _shortened(text: str) -> str:
    return text if len(text) <= _SHOWN_MAX else f"{text[:_SHOWN_MAX]}..."


def _depth(tree: ast.AST) -> int:
    """Counted without recursion: how deep it may go is what is asked."""
    level, depth = [tree], 0
    while level and depth <= DEPTH_MAX:
        level = [child for node in level for child in ast.iter_child_nodes(node)]
        depth += 1
    return depth


def _hint(text: str) -> str:
    if re.search(r"[^=!<>]=[^=]", text):
        return " (to compare, write ==)"
    if re.search(r"\.(?:class|from|in|is|for|if|not|and|or|import|return|pass|global|with|as|None|True|False)\b", text):
        return " (a field that Python has a meaning for stands in brackets: value['from'])"
    return " (text stands in quotes)"


def _wrong(node: ast.AST, message: str) -> NoReturn:
    column = getattr(node, "col_offset", 0) + 1
    raise UsageFault(f"--where, column {column}: {message}")


def _part(node: ast.AST) -> _Part:
    for kind, build in _BUILDERS.items():
        if isinstance(node, kind):
            return build(node)
    _wrong(node, f"there is nothing like {ast.unparse(node)[:40]} here")


def _constant(node: ast.Constant) -> _Part:
    constant = node.value
    if not isinstance(constant, str | int | float | None):
        _wrong(node, f"{ast.unparse(node)[:40]} is neither text nor a number")
    return lambda _: constant


def _name(node: ast.Name) -> _Part:
    if node.id in _CONSTANTS:
        constant = _CONSTANTS[node.id]
        return lambda _: constant
    found = _NAMES.get(node.id)
    if found is None:
        _wrong(
            node,
            f"there is no '{node.id}'; known are {', '.join(_NAMES)}. Text stands in quotes: '{node.id}'; a field with "
            "a - in its name in brackets: value['order-id']",
        )
    return found


def _inside(node: ast.expr) -> _Part:
    """What stands before a dot or a bracket."""
    if isinstance(node, ast.Name):
        if node.id in _NAMES and node.id not in _INSIDES:
            _wrong(node, f"{node.id} has no fields")
        return _INSIDES.get(node.id) or _name(node)
    return _part(node)


def _field(node: ast.Attribute) -> _Part:
    whole, name = _inside(node.value), node.attr
    return lambda view: do.looked_up(whole(view), name)


def _item(node: ast.Subscript) -> _Part:
    if isinstance(node.slice, ast.Slice):
        _wrong(node, "there are no slices: give a name or a number")
    whole, which = _inside(node.value), _part(node.slice)
    return lambda view: do.looked_up(whole(view), which(view))


def _list(node: ast.List | ast.Tuple | ast.Set) -> _Part:
    parts = [_part(each) for each in node.elts]
    return lambda view: [part(view) for part in parts]


def _both_or_either(node: ast.BoolOp) -> _Part:
    parts = [_part(each) for each in node.values]
    if isinstance(node.op, ast.And):
        return lambda view: all(part(view) for part in parts)
    return lambda view: any(part(view) for part in parts)


def _unary(node: ast.UnaryOp) -> _Part:
    part = _part(node.operand)
    if isinstance(node.op, ast.Not):
        return lambda view: not part(view)
    if isinstance(node.op, ast.USub):
        return lambda view: do.negative(part(view))
    return _wrong(node, "only not and - stand before a value")


def _compare(node: ast.Compare) -> _Part:
    """`1 < offset <= 5` too: each against its neighbour."""
    parts = [_part(each) for each in (node.left, *node.comparators)]
    steps = [(one, _COMPARISONS[type(op)], other) for one, op, other in zip(parts, node.ops, parts[1:], strict=False)]
    return lambda view: all(compare(one(view), other(view)) for one, compare, other in steps)


def _calculation(node: ast.BinOp) -> _Part:
    work = _CALCULATIONS.get(type(node.op))
    if work is None:
        _wrong(node, "numbers are added, subtracted, multiplied (*), divided (/) and taken modulo (%); nothing else")
    one, other = _part(node.left), _part(node.right)
    return lambda view: work(one(view), other(view))


def _call(node: ast.Call) -> _Part:
    if not isinstance(node.func, ast.Name):
        _wrong(node, "fields cannot be called; functions stand alone: startswith(value.name, 'a')")
    name, count = node.func.id, len(node.args)
    if node.keywords or any(isinstance(each, ast.Starred) for each in node.args):
        _wrong(node, f"{name} takes plain values")
    if name not in _FUNCTIONS:
        _wrong(node, f"there is no function '{name}'; known are {', '.join(_FUNCTIONS)}")
    wanted = 1 if name in _OF_ONE or name == "time" else 2
    if count != wanted:
        _wrong(node, f"{name} takes {wanted} value{'s' if wanted > 1 else ''}, not {count}")
    if name == "time":
        moment = _time(node.args[0])
        return lambda _: moment
    one = _part(node.args[0])
    if name in _OF_ONE:
        work = _OF_ONE[name]
        return lambda view: work(one(view))
    if name == "matches":
        match = _matcher(node.args[1])
        return lambda view: match(one(view))
    other, of_two = _part(node.args[1]), _OF_TWO[name]
    return lambda view: of_two(one(view), other(view))


def _text(node: ast.expr, what: str) -> str:
    if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
        _wrong(node, f"{what} stands here as text in quotes")
    return node.value


def _time(node: ast.expr) -> int:
    from ottla.cli.offsets import parse_time

    text = _text(node, "a time")
    found = parse_time(text)
    if found is None:
        _wrong(node, f"'{text}' is not a time: give ISO 8601 (2026-11-21T10:00)")
    return found


def _matcher(node: ast.expr) -> Callable[[Any], bool]:
    try:
        return do.matcher(_text(node, "a regular expression"))
    except (re.error, RecursionError, OverflowError) as error:
        _wrong(node, f"it is not a regular expression: {error}")


_BUILDERS: Final[dict[Any, Callable[[Any], _Part]]] = {
    ast.Constant: _constant,
    ast.Name: _name,
    ast.Attribute: _field,
    ast.Subscript: _item,
    (ast.List, ast.Tuple, ast.Set): _list,
    ast.BoolOp: _both_or_either,
    ast.UnaryOp: _unary,
    ast.Compare: _compare,
    ast.BinOp: _calculation,
    ast.Call: _call,
}
