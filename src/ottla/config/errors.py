"""What is wrong with a configuration, in one line that names the property."""

from __future__ import annotations

from ottla.model import ErrorCode

#: What stands in a message in the place of a password.
HIDDEN = "[hidden]"


class ConfigError(ValueError):
    """A property's value cannot be used: which property, what it was set to, and why not.

    The broker does not start on it, and a client that sent it is answered INVALID_CONFIG with this text.
    """

    def __init__(self, name: str, value: str | None, why: str) -> None:
        self.name = name
        self.value = value
        self.why = why
        self.code = ErrorCode.INVALID_CONFIG
        shown = "" if value is None else value.replace("\n", "\\n").replace("\r", "\\r")
        if len(shown) > 200:
            shown = f"{shown[:200]}..."
        super().__init__(f"Invalid value {shown} for configuration {name}: {why}")


class UnknownConfigError(ConfigError):
    """A client named a property that does not exist (in a file this is only a warning)."""

    def __init__(self, name: str, kind: str, nearest: str | None) -> None:
        super().__init__(name, None, f"Unknown {kind} config name")
        hint = "" if nearest is None else f" (nearest known name: {nearest})"
        self.args = (f"Unknown {kind} config name: {name}{hint}",)
