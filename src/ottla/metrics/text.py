"""Prometheus' text format 0.0.4: lines of samples, names and escapes."""

from __future__ import annotations

from typing import Final

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"


def labelled(label_names: tuple[str, ...], values: tuple[str, ...]) -> str:
    """The labels between their braces, without these.

    A label without a value is none, to Prometheus as well: a family may have one series without it.
    """
    pairs = zip(label_names, values, strict=True)
    return ",".join([f'{label}="{_escape_value(value)}"' for label, value in pairs if value])


def sample(name: str, labels: str, value: float) -> str:
    return f"{name}{{{labels}}} {number(value)}" if labels else f"{name} {number(value)}"


def number(value: float) -> str:
    if isinstance(value, int):  # bool as well
        return str(int(value))
    if value != value:  # noqa: PLR0124 - NaN is the one number that differs from itself
        return "NaN"
    if value in {float("inf"), float("-inf")}:
        return "+Inf" if value > 0 else "-Inf"
    return str(int(value)) if value.is_integer() and abs(value) < 2**53 else repr(value)


def head(name: str, type_: str, help_: str) -> str:
    text = help_.replace("\\", "\\\\").replace("\n", "\\n")
    return f"# HELP {name} {text}\n# TYPE {name} {type_}"


def _escape_value(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


def check_names(name: str, label_names: tuple[str, ...]) -> None:
    assert _is_name(name), name
    assert all(_is_name(label) and ":" not in label for label in label_names), label_names


def _is_name(name: str) -> bool:
    return name.isascii() and name.replace(":", "_").isidentifier()
