"""Formats of keys and values: JSON, Avro, Protobuf and text, with or without a schema registry (docs/formats.md).

    orders = decoder("avro:orders-value", schema_registry_url="http://localhost:8081")
    column, errors = orders.decode(batch.column("value"))
    decoder("avro:order.avsc").decode_one(data)

| spec | what it is |
|---|---|
| `string` | text in UTF-8 |
| `json:<DDL>` | JSON, with columns as Spark's DDL names them |
| `avro`, `avro:registry` | Avro; each record by the schema that its header names, a column by its subject's latest |
| `avro:<subject>` | Avro; the schema is the latest of a subject |
| `avro:<file>.avsc` | Avro; the schema is a file's |
| `protobuf`, `protobuf:registry`, `protobuf:<subject>[#<message>]` | the same for Protobuf |
| `protobuf:<file>.proto#<message>` | the schema is a file's |
| `protobuf:<file>.desc#<message>` | the same, of a descriptor set |

Read in this order: `interface` (what a format is), `settings`, `framing` (what stands before a value), `registry/`,
then a format. Each is a module, or a package, with a `decoder` and an `encoder`; it is loaded when it is first named,
its library with it, and pyarrow only for columns.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, Final

from ottla.formats.errors import BadSpec
from ottla.formats.interface import Decoder, Encoder
from ottla.formats.settings import format_settings

__all__ = ["Decoder", "Encoder", "decoder", "encoder"]

#: Where `decoder(what, settings)` and `encoder(what, settings)` of a format are; `what` stands behind the colon.
_HOMES: Final = {
    "avro": "ottla.formats.avro",
    "json": "ottla.formats.json",
    "protobuf": "ottla.formats.protobuf",
    "string": "ottla.formats.text",
}


def decoder(spec: str, **settings: Any) -> Decoder:
    """The decoder that a spec names; raises BadSpec, and what the registry says where a schema comes from there."""
    home, what = _home(spec)
    made: Decoder = home.decoder(what, format_settings(settings))
    return made


def encoder(spec: str, **settings: Any) -> Encoder:
    """The encoder that a spec names; raises as `decoder` does."""
    home, what = _home(spec)
    made: Encoder = home.encoder(what, format_settings(settings))
    return made


def is_format(spec: Any) -> bool:
    """Whether a text names one of these formats, whatever stands behind its colon."""
    return isinstance(spec, str) and spec.partition(":")[0].strip().lower() in _HOMES


def _home(spec: str) -> tuple[Any, str]:
    name, _, what = spec.partition(":")
    home = _HOMES.get(name.strip().lower())
    if home is None:
        raise BadSpec(f"there is no format {spec!r}: it must begin with one of {', '.join(_HOMES)}")
    return import_module(home), what.strip()
