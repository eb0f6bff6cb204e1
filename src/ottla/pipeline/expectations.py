"""Expectations: rules of SQL that each row of a table should keep, and what happens to a row that does not.

    expect           the row stays, and is counted
    expect_or_drop   the row is left out; it goes to the dead letters if its record is known
    expect_or_fail   nothing of its micro-batch is written, and the pipeline stops

A rule is broken by a row for which it is anything but true: false, or null.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, TypeVar

from ottla.durations import duration_ms
from ottla.pipeline.errors import BadDefinition

F = TypeVar("F", bound=Callable[[], Any])

_RULES: Final = "__ottla_rules__"
#: The rule that a row breaks that could not be decoded.
DECODES: Final = "decodes"
#: A record has a few headers, and a status line room for so many.
RULES_MAX: Final = 200
_NAME_CHARACTERS_MAX: Final = 200


class Action(Enum):
    WARN = "warn"
    DROP = "drop"
    FAIL = "fail"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    name: str
    #: In SQL.
    condition: str
    action: Action
    #: Of a rule that says when a row is late: its column is `condition`, and so much younger ones may be there before.
    late_ms: int | None = None


def rules_of(function: Any) -> tuple[Rule, ...]:
    """Those of a function, the uppermost first."""
    found: tuple[Rule, ...] = getattr(function, _RULES, ())
    return found


def expect(name: str, condition: str) -> Callable[[F], F]:
    """Rows that break it are kept and counted."""
    return _adding({name: condition}, Action.WARN)


def expect_or_drop(name: str, condition: str) -> Callable[[F], F]:
    """Rows that break it are left out, counted, and go to the dead letters if their records are known."""
    return _adding({name: condition}, Action.DROP)


def expect_or_fail(name: str, condition: str) -> Callable[[F], F]:
    """A row that breaks it stops the pipeline; nothing of its micro-batch is written."""
    return _adding({name: condition}, Action.FAIL)


def expect_all(expectations: Mapping[str, str]) -> Callable[[F], F]:
    """As `expect` for each name and condition."""
    return _adding(expectations, Action.WARN)


def expect_all_or_drop(expectations: Mapping[str, str]) -> Callable[[F], F]:
    return _adding(expectations, Action.DROP)


def expect_all_or_fail(expectations: Mapping[str, str]) -> Callable[[F], F]:
    return _adding(expectations, Action.FAIL)


def expect_on_time(column: str, within: str, *, name: str = "on time", drop: bool = True) -> Callable[[F], F]:
    """A row is late when the table already has, from an earlier micro-batch, one that is younger by more than `within`.

    A window over this table whose watermark is no shorter than `within` then drops nothing of its own accord: what is
    late is counted here, and goes to the dead letters. `drop=False` only counts.
    """
    try:
        late_ms = duration_ms(within)
    except ValueError as error:
        raise BadDefinition(f"expect_on_time: {error}") from None
    rule = Rule(name=name, condition=column, action=Action.DROP if drop else Action.WARN, late_ms=late_ms)
    return _with([rule])


def _adding(expectations: Mapping[str, str], action: Action) -> Callable[[F], F]:
    if not isinstance(expectations, Mapping):
        raise BadDefinition('expect_all takes a dictionary: {"positive amount": "amount > 0"}')
    return _with([Rule(name=name, condition=condition, action=action) for name, condition in expectations.items()])


def _with(rules: list[Rule]) -> Callable[[F], F]:
    for rule in rules:
        if not isinstance(rule.name, str) or not isinstance(rule.condition, str):
            raise BadDefinition(f'an expectation is a name and a condition: expect("positive", "amount > 0"): {rule}')
        if not rule.name.isprintable() or not 0 < len(rule.name) <= _NAME_CHARACTERS_MAX or "," in rule.name:
            raise BadDefinition(
                f"{rule.name[:300]!r} cannot be the name of an expectation: give up to "
                f"{_NAME_CHARACTERS_MAX} printable characters without a comma"
            )

    def add(function: F) -> F:
        there = rules_of(function)
        names = {rule.name for rule in there} | {DECODES}
        for rule in rules:
            if rule.name in names:
                raise BadDefinition(f"{function.__name__} has two expectations of the name {rule.name!r}: rename one")
            names.add(rule.name)
        if len(there) + len(rules) > RULES_MAX:
            raise BadDefinition(f"{function.__name__} has more than {RULES_MAX} expectations: join some of them by AND")
        setattr(function, _RULES, (*rules, *there))
        return function

    return add
