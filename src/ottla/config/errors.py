"""What is wrong with a configuration, in one line that names the property."""

from __future__ import annotations

from typing import Final

from ottla.model import ErrorCode

#: What stands in a message in the place of a password.
HIDDEN: Final = "[hidden]"
#: What of a name or a value stands in a message.
SHOWN_MAX: Final = 200


class ConfigError(ValueError):
    """A property's value cannot be used: which property, what it was set to, and why not.

    The broker does not start on it, and a client that sent it is answered INVALID_CONFIG with this text.
    """

    def __init__(self, name: str, value: str | None, why: str) -> None:
        self.name = name
        self.value = value
        self.why = why
        self.code = ErrorCode.INVALID_CONFIG
        shown = "" if value is None else value
        if len(shown) > SHOWN_MAX:
            shown = f"{shown[:SHOWN_MAX]}..."
        super().__init__(one_line(f"Invalid value {shown} for configuration {name}: {why}"))


def one_line(text: str) -> str:
    """The text with everything that could break a line written out: values come from files and from clients."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


class BrokenRuleError(ConfigError):
    """What is wrong takes a sentence of its own: properties that do not go together, a change that is not allowed."""

    def __init__(self, sentence: str, code: ErrorCode = ErrorCode.INVALID_CONFIG, *, name: str = "") -> None:
        super().__init__(name, None, sentence)
        self.code = code
        self.args = (one_line(sentence),)


class UnknownConfigError(ConfigError):
    """A client named a property that does not exist (in a file this is only a warning)."""

    def __init__(self, name: str, kind: str) -> None:
        super().__init__(name, None, f"Unknown {kind} config name")
        self.args = (one_line(f"Unknown {kind} config name: {name[:SHOWN_MAX]}"),)
