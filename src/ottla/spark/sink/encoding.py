"""Columns that tasks encode (`key_as`, `value_as`): keys and values in a format, from columns of any type.

The driver makes the encoder, and so reads its schema and has it registered before a row is written; it goes to the
tasks with that schema.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from ottla.arrow.schema import KEY, VALUE
from ottla.spark.options import OptionError, refuse_unknown
from ottla.spark.sink.errors import BadSinkColumns

if TYPE_CHECKING:
    from ottla.formats import Encoder

#: What ends the name of the option, behind the column's.
AS: Final = "_as"
#: Settings of formats that writers have, by the names that their room gives them.
FORMAT_SETTINGS: Final = (
    *("schema.registry.url", "basic.auth.user.info", "http.connect.timeout.ms", "http.read.timeout.ms"),
    *("framing", "auto.register.schemas", "subject.name.strategy"),
)
#: Nothing else that begins so means anything here.
_OURS: Final = ("schema.", "basic.", "http.", "auto.", "subject.")


def encoders_of(options: Mapping[str, str], topic: str | None) -> dict[str, Encoder]:
    """By the column that each encodes. Options are folded; raises OptionError, which names the option."""
    specs = {name: options[f"{name}{AS}"] for name in (KEY, VALUE) if f"{name}{AS}" in options}
    if not specs:
        return {}
    refuse_unknown({name: "" for name in options if name.startswith(_OURS)}, FORMAT_SETTINGS)
    beside: dict[str, Any] = {name: options[name] for name in FORMAT_SETTINGS if name in options}
    if topic is not None:
        beside["topic"] = topic  # a registry names schemas after it
    from ottla.formats import encoder
    from ottla.formats.errors import FormatError, LibraryMissing

    found = {}
    for column, spec in specs.items():
        try:
            made = encoder(spec.strip(), is_key=column == KEY, **beside)
            load = made.missing_for(None)
            if load is not None:
                load()
        except (FormatError, LibraryMissing) as error:
            raise OptionError(f"{column}{AS}: {error}") from error
        found[column] = made
    return found


def encoded(encoder: Encoder, name: str, column: Any, first_row: int) -> Any:
    """The column as bytes; raises BadSinkColumns, which names the row."""
    from ottla.formats.errors import BadValue, FormatError

    try:
        return encoder.encode(column)
    except BadValue as error:
        row = "" if error.row is None else f"row {first_row + error.row}: "
        raise BadSinkColumns(
            f"{row}the {name} is none that {name}{AS} can write: {error.message}; change the column, or the schema"
        ) from error
    except FormatError as error:
        raise BadSinkColumns(f"{name}{AS}: {error}") from error
