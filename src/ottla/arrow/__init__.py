"""Record batches straight into Arrow, and back (`pip install 'ottla[arrow]'`; docs/arrow.md).

    for batch in decode(raw, topic="orders", partition=0):
        print(batch.num_rows)

Read in this order: `schema` (the columns), `survey` (which batches hold something to be read), `decoding` (from there
to Arrow), `memory` (what compiled code fills), `judge` (the same out of objects: what is always right). For the way
back: `given` (a caller's table), `encoding`, `plain_encoding`. Compiled code (`native/columns.c`, `native/batches.c`)
does the work where it is there.

Names are loaded when they are first used, and pyarrow with them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.lazy_names import lazy_names

if TYPE_CHECKING:
    from ottla.arrow.decoding import decode
    from ottla.arrow.encoding import encode
    from ottla.arrow.schema import COLUMNS, DEFAULT_COLUMNS, schema_of
    from ottla.arrow.survey import ReadBounds

__all__ = ["COLUMNS", "DEFAULT_COLUMNS", "ReadBounds", "decode", "encode", "schema_of"]

_HOMES = {
    "COLUMNS": "ottla.arrow.schema",
    "DEFAULT_COLUMNS": "ottla.arrow.schema",
    "ReadBounds": "ottla.arrow.survey",
    "decode": "ottla.arrow.decoding",
    "encode": "ottla.arrow.encoding",
    "schema_of": "ottla.arrow.schema",
}


if not TYPE_CHECKING:  # a type checker would take every name for one that exists
    __getattr__ = lazy_names(__name__, _HOMES)


def __dir__() -> list[str]:
    return __all__
