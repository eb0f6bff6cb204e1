"""Tables that take in changes: the newest row of each key (SCD 1), or all of them, from when until when (SCD 2).

A change may come late: what `sequence_by` says counts, not when it was read. So nothing of a key is forgotten that an
older change could depend on: of SCD 1 the newest row, deletions too; of SCD 2 all rows. Rows of SCD 2 that follow one
another without a difference in the tracked columns are one to a reader, who is shown the last of them, from the first
one's start; the others stay for a change that comes late and parts them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ottla.pipeline.columns import check_ordered, is_comparable, quoted
from ottla.pipeline.definitions import Flow, Kind, enter
from ottla.pipeline.errors import BadDefinition
from ottla.pipeline.reading import ERROR, RECORD, read_stream
from ottla.pipeline.tables.reading import CHANGED_AT, DELETED, SEQUENCE

#: The columns of SCD 2, as Databricks and Spark call them.
START_AT: Final = "__START_AT"
END_AT: Final = "__END_AT"
#: Columns that a table with keys has only while it is written. Users' columns cannot have these names.
MARK: Final = "_ottla_mark"
NUMBER: Final = "_ottla_number"
RUN: Final = "_ottla_run"
#: Maps and variants cannot be compared: their texts are, to the microsecond.
_AS_TEXT: Final = {
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
    "ignoreNullFields": "false",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    sequence_by: str
    #: SQL; a change for which it is true deletes its key.
    deletes: str | None
    #: Which of the source's columns the table has; all where both are empty.
    columns: tuple[str, ...] = ()
    except_columns: tuple[str, ...] = ()
    #: 1 or 2.
    scd_type: int
    #: Of SCD 2: whose values begin a new row; all but the keys where both are empty.
    tracked: tuple[str, ...] = ()
    except_tracked: tuple[str, ...] = ()


def apply_changes(
    *,
    target: str,
    source: str,
    keys: Sequence[str],
    sequence_by: str,
    apply_as_deletes: str | None = None,
    column_list: Sequence[str] | None = None,
    except_column_list: Sequence[str] | None = None,
    stored_as_scd_type: int | str = 1,
    track_history_column_list: Sequence[str] | None = None,
    track_history_except_column_list: Sequence[str] | None = None,
) -> None:
    """Defines the table `target`, which takes in the rows of `source`, a table or view, as changes.

    `keys` say which row a change is of, `sequence_by` which of two is the later. A row for which `apply_as_deletes` is
    true deletes. With `stored_as_scd_type=2` older rows stay, with `__START_AT` and `__END_AT`; a change begins a new
    row where it differs in a column that is tracked.
    """
    where = f"apply_changes of {target}"
    if str(stored_as_scd_type) not in {"1", "2"}:
        raise BadDefinition(f"{where}: stored_as_scd_type is 1 or 2, not {stored_as_scd_type!r}")
    key_names = _names(where, "keys", keys)
    if not key_names:
        raise BadDefinition(f'{where}: keys is a list of columns: keys=["id"]')
    changes = Changes(
        sequence_by=sequence_by,
        deletes=apply_as_deletes,
        columns=_names(where, "column_list", column_list),
        except_columns=_names(where, "except_column_list", except_column_list),
        scd_type=int(stored_as_scd_type),
        tracked=_names(where, "track_history_column_list", track_history_column_list),
        except_tracked=_names(where, "track_history_except_column_list", track_history_except_column_list),
    )
    if changes.columns and changes.except_columns:
        raise BadDefinition(f"{where}: column_list and except_column_list exclude each other: give one")
    if changes.tracked and changes.except_tracked:
        raise BadDefinition(
            f"{where}: track_history_column_list and track_history_except_column_list exclude each other: give one"
        )
    if (changes.tracked or changes.except_tracked) and changes.scd_type == 1:
        raise BadDefinition(f"{where}: history is kept with stored_as_scd_type=2 alone: track_history_* says of what")

    def function() -> Any:
        return changed(read_stream(source), changes, where)

    enter(
        Flow(
            name=target,
            kind=Kind.TABLE,
            function=function,
            line=sys._getframe(1).f_lineno,  # noqa: SLF001 - it is no decorator: nothing else knows the line
            comment=f"changes of {source}, SCD {changes.scd_type}",
            keys=key_names,
            changes=changes,
        )
    )


def _names(where: str, argument: str, given: Sequence[str] | None) -> tuple[str, ...]:
    """A text would be taken for a list of its letters, and a Column for what has no name yet."""
    if isinstance(given, str) or not all(isinstance(name, str) for name in given or ()):
        raise BadDefinition(f'{where}: {argument} is a list of columns: {argument}=["id"]')
    return tuple(given or ())


def changed(frame: Any, changes: Changes, where: str) -> Any:
    """The source's rows as the table stores them, before they are joined with what it has."""
    from pyspark.sql import functions as F  # noqa: N812 - as everybody calls them
    from pyspark.sql.types import BooleanType

    # What cannot be decoded is no change: it is dropped as from every table, and its record goes to the dead letters.
    of_record = [F.col(name) for name in (RECORD, ERROR) if name in frame.columns]
    names = [name for name in frame.columns if name not in {RECORD, ERROR}]
    _check_there(where, names, column_list=changes.columns, except_column_list=changes.except_columns)
    names = [name for name in changes.columns or names if name not in changes.except_columns]
    kept = [F.col(quoted(name)) for name in names]
    sequence, deletes = F.expr(changes.sequence_by), F.expr(changes.deletes or "false")
    kinds = frame.select(sequence.alias("sequence"), deletes.alias("deletes")).schema
    check_ordered(f"{where}: sequence_by {changes.sequence_by!r}", kinds["sequence"].dataType)
    if not isinstance(kinds["deletes"].dataType, BooleanType):
        raise BadDefinition(
            f"{where}: apply_as_deletes {changes.deletes!r} is {kinds['deletes'].dataType.simpleString()}, not true or "
            "false: write a comparison"
        )
    deleted = F.coalesce(deletes, F.lit(False))
    if changes.scd_type == 1:
        return frame.select(*kept, sequence.alias(SEQUENCE), deleted.alias(DELETED), *of_record)
    _check_there(
        where,
        names,
        track_history_column_list=changes.tracked,
        track_history_except_column_list=changes.except_tracked,
    )
    end = F.lit(None).cast(kinds["sequence"].dataType)
    started, changed_at = sequence.alias(START_AT), sequence.alias(CHANGED_AT)
    return frame.select(*kept, started, end.alias(END_AT), changed_at, deleted.alias(DELETED), *of_record)


def _check_there(where: str, names: Sequence[str], **lists: Sequence[str]) -> None:
    for argument, wanted in lists.items():
        for name in wanted:
            if name not in names:
                raise BadDefinition(
                    f"{where}: {argument} has {name!r}, and there is no such column: {', '.join(names)}"
                )


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

    keys = [F.col(quoted(key)) for key in flow.keys]
    if flow.changes is None:
        touched = batch.select(*keys).distinct()
        condition = None
        for key in flow.keys:
            same = F.col(f"there.{quoted(key)}").eqNullSafe(F.col(f"touched.{quoted(key)}"))
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
    everything = everything.withColumn(CHANGED_AT, F.coalesce(CHANGED_AT, START_AT))  # rows of before it was kept
    same = Window.partitionBy(*keys, F.col(CHANGED_AT)).orderBy(F.col(MARK).desc())
    return _with_history(first_of_each(everything, same).drop(MARK), flow.keys, flow.changes)


def _with_history(changes: Any, key_names: tuple[str, ...], wanted: Changes) -> Any:
    """All changes of some keys, of SCD 2, with what a reader is shown of them.

    Changes that follow one another without a difference in a tracked column are a run. Its last one is shown, from the
    run's first until the next run's; `DELETED` is null in the others.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as F  # noqa: N812

    untracked = {START_AT, END_AT, CHANGED_AT, DELETED, *key_names, *wanted.except_tracked}
    tracked = [name for name in wanted.tracked or changes.columns if name not in untracked]
    value = F.struct(F.lit(True), *(_comparable(changes, name) for name in tracked))
    keys = [F.col(quoted(key)) for key in key_names]
    deletes = F.coalesce(F.col(DELETED), F.lit(False))
    in_order = Window.partitionBy(*keys).orderBy(F.col(CHANGED_AT))
    goes_on = ~deletes & ~F.lag(deletes, 1, True).over(in_order) & value.eqNullSafe(F.lag(value).over(in_order))
    in_runs = changes.withColumn(RUN, F.sum(F.when(goes_on, 0).otherwise(1)).over(in_order))
    run = Window.partitionBy(*keys, F.col(RUN)).orderBy(F.col(CHANGED_AT))
    next_run = Window.partitionBy(*keys).orderBy(F.col(RUN)).rangeBetween(1, 1)
    is_last = F.lead(F.col(CHANGED_AT)).over(run).isNull()  # null comes before all others, so it never follows
    return in_runs.select(
        *(F.col(quoted(name)) for name in changes.columns if name not in {START_AT, END_AT, DELETED}),
        F.first(F.col(CHANGED_AT)).over(run).alias(START_AT),
        F.min(F.col(CHANGED_AT)).over(next_run).alias(END_AT),
        F.when(is_last, deletes).alias(DELETED),
    )


def _comparable(frame: Any, name: str) -> Any:
    from pyspark.sql import functions as F  # noqa: N812

    column = F.col(quoted(name))
    return column if is_comparable(frame.schema[name].dataType) else F.to_json(F.struct(column), _AS_TEXT)


def first_of_each(frame: Any, window: Any) -> Any:
    """The first row of each part of a window."""
    from pyspark.sql import functions as F  # noqa: N812

    return frame.withColumn(NUMBER, F.row_number().over(window)).where(F.col(NUMBER) == 1).drop(NUMBER)
