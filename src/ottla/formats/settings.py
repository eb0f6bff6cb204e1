"""What a format may be given beside its name, under the names of Confluent's serializers where they have one.

decoder("avro:orders-value", **{"schema.registry.url": "http://localhost:8081"})
decoder("avro:orders-value", schema_registry_url="/srv/schemas")
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from typing import Any, Final

from ottla.formats.errors import BadSpec

FRAMINGS: Final = ("confluent", "plain")


@dataclass(frozen=True, slots=True, kw_only=True)
class FormatSettings:
    #: One or several URLs with commas between them, or a folder (`docs/formats.md` has its layout).
    schema_registry_url: str | None = None
    #: `user:password`, for a registry that asks for them.
    basic_auth_user_info: str | None = field(default=None, repr=False)
    http_connect_timeout_ms: int = 10_000
    http_read_timeout_ms: int = 10_000
    #: Whether an encoder registers its schema; otherwise the registry must have it.
    auto_register_schemas: bool = True
    #: TopicNameStrategy, RecordNameStrategy, TopicRecordNameStrategy (Confluent's class names too), or a callable
    #: `(topic, is_key, record name) -> subject`.
    subject_name_strategy: Any = "TopicNameStrategy"
    #: Instead of what the strategy says.
    subject: str | None = None
    topic: str | None = None
    is_key: bool = False
    #: `confluent`: five bytes before each value (magic 0, schema id); `plain`: none. None: confluent with a registry.
    framing: str | None = None
    #: A further string column of the decoded struct, with what its schema does not know, as JSON.
    rescue_column: str | None = None


def format_settings(given: Mapping[str, Any]) -> FormatSettings:
    """Checked settings; names may have dots or underscores, values may be texts."""
    known = {one.name: one for one in fields(FormatSettings)}
    found: dict[str, Any] = {}
    for name, value in given.items():
        plain = name.replace(".", "_")
        if plain not in known:
            near = get_close_matches(plain, known, n=1, cutoff=0.5)
            hint = f"; did you mean {near[0].replace('_', '.')}?" if near else ""
            raise BadSpec(f"a format has no setting {name}{hint}")
        found[plain] = _checked(plain, known[plain].default, value)
    return FormatSettings(**found)


def _checked(name: str, default: Any, value: Any) -> Any:
    dotted = name.replace("_", ".")
    if isinstance(default, bool):
        if isinstance(value, bool):
            return value
        if str(value).strip().lower() not in {"true", "false"}:
            raise BadSpec(f"{dotted} must be true or false, not {value!r}")
        return str(value).strip().lower() == "true"
    if isinstance(default, int):
        if not str(value).isdecimal() or not 0 < int(value) < 2**31:
            raise BadSpec(f"{dotted} must be a whole number of milliseconds, not {value!r}")
        return int(value)
    if name == "framing" and value is not None and value not in FRAMINGS:
        raise BadSpec(f"framing must be one of {', '.join(FRAMINGS)}, not {value!r}")
    if name != "subject_name_strategy" and value is not None and not isinstance(value, str):
        raise BadSpec(f"{dotted} must be a text, not {value!r}")
    return value
