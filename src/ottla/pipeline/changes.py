"""Tables that take in changes: the newest row of each key (SCD 1), or all of them, from when until when (SCD 2).

A change may come late: what `sequence_by` says counts, not when it was read. So nothing of a key is forgotten that an
older change could depend on: of SCD 1 the newest row, deletions too; of SCD 2 all rows.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ottla.pipeline.definitions import Flow, Kind, enter
from ottla.pipeline.errors import BadDefinition
from ottla.pipeline.reading import ERROR, RECORD, read_stream
from ottla.pipeline.tables.reading import DELETED, SEQUENCE

#: The columns of SCD 2, as Databricks calls them.
START_AT: Final = "__START_AT"
END_AT: Final = "__END_AT"
#: Columns that a table with keys has only while it is written. Users' columns cannot have these names.
MARK: Final = "_ottla_mark"
NUMBER: Final = "_ottla_number"


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    sequence_by: str
    #: SQL; a change for which it is true deletes its key.
    deletes: str | None
    except_columns: tuple[str, ...]
    #: 1 or 2.
    scd_type: int


def apply_changes(
    *,
    target: str,
    source: str,
    keys: Sequence[str],
    sequence_by: str,
    apply_as_deletes: str | None = None,
    except_column_list: Sequence[str] = (),
    stored_as_scd_type: int | str = 1,
) -> None:
    """Defines the table `target`, which takes in the rows of `source`, a table or view, as changes.

    `keys` say which row a change is of, `sequence_by` which of two is the later. A row for which `apply_as_deletes` is
    true deletes. With `stored_as_scd_type=2` older rows stay, with `__START_AT` and `__END_AT`.
    """
    if isinstance(keys, str) or not keys:
        raise BadDefinition(f'apply_changes of {target}: keys is a list of columns: keys=["id"]')
    if str(stored_as_scd_type) not in {"1", "2"}:
        raise BadDefinition(f"apply_changes of {target}: stored_as_scd_type is 1 or 2, not {stored_as_scd_type!r}")
    changes = Changes(
        sequence_by=sequence_by,
        deletes=apply_as_deletes,
        except_columns=tuple(except_column_list),
        scd_type=int(stored_as_scd_type),
    )

    def function() -> Any:
        return changed(read_stream(source), changes)

    enter(
        Flow(
            name=target,
            kind=Kind.TABLE,
            function=function,
            line=sys._getframe(1).f_lineno,  # noqa: SLF001 - it is no decorator: nothing else knows the line
            comment=f"changes of {source}, SCD {changes.scd_type}",
            keys=tuple(keys),
            changes=changes,
        )
    )


def changed(frame: Any, changes: Changes) -> Any:
    """The source's rows as the table stores them, before they are joined with what it has."""
    from pyspark.sql import functions as F  # noqa: N812 - as everybody calls them

    left_out = {*changes.except_columns, RECORD, ERROR}
    kept = [F.col(f"`{name}`") for name in frame.columns if name not in left_out]
    deleted = F.coalesce(F.expr(changes.deletes), F.lit(False)) if changes.deletes else F.lit(False)
    sequence = F.expr(changes.sequence_by)
    if changes.scd_type == 1:
        return frame.select(*kept, sequence.alias(SEQUENCE), deleted.alias(DELETED))
    end = F.lit(None).cast(frame.select(sequence.alias(START_AT)).schema[START_AT].dataType)
    return frame.select(*kept, sequence.alias(START_AT), end.alias(END_AT), deleted.alias(DELETED))


def scd_type_of(columns: Iterable[str]) -> int | None:
    """What a table with these columns keeps; None where it takes in rows as they come."""
    names = set(columns)
    if DELETED not in names:
        return None
    return 1 if SEQUENCE in names else 2


def merged(there: Any, batch: Any, flow: Flow) -> Any:
    """What a table holds of the keys in some buckets: rows that were there, and those of a micro-batch."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F  # noqa: N812

    keys = [F.col(f"`{key}`") for key in flow.keys]
    if flow.changes is None:
        touched = batch.select(*keys).distinct()
        condition = None
        for key in flow.keys:
            same = F.col(f"there.`{key}`").eqNullSafe(F.col(f"touched.`{key}`"))
            condition = same if condition is None else condition & same
        kept = there.alias("there").join(touched.alias("touched"), condition, "left_anti")
        return kept.unionByName(batch, allowMissingColumns=True)
    everything = there.withColumn(MARK, F.lit(0)).unionByName(
        batch.withColumn(MARK, F.lit(1)), allowMissingColumns=True
    )
    if flow.changes.scd_type == 1:
        newest = Window.partitionBy(*keys).orderBy(F.col(SEQUENCE).desc(), F.col(MARK).desc())
        return first_of_each(everything, newest).drop(MARK)
    # A change of the same sequence again replaces the first: a backfill comes by the same rows.
    same = Window.partitionBy(*keys, F.col(START_AT)).orderBy(F.col(MARK).desc())
    once = first_of_each(everything, same).drop(MARK)
    following = Window.partitionBy(*keys).orderBy(F.col(START_AT))
    return once.withColumn(END_AT, F.lead(F.col(START_AT)).over(following))


def first_of_each(frame: Any, window: Any) -> Any:
    """The first row of each part of a window."""
    from pyspark.sql import functions as F  # noqa: N812

    return frame.withColumn(NUMBER, F.row_number().over(window)).where(F.col(NUMBER) == 1).drop(NUMBER)
