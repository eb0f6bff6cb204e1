"""What is wrong with a pipeline is said before anything runs, with the next step."""

from __future__ import annotations

import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from tests.pipeline.conftest import Pipeline

from ottla.pipeline.backfill import Range, backfill
from ottla.pipeline.changes import Changes
from ottla.pipeline.definitions import Flow, Kind
from ottla.pipeline.errors import BadDefinition, BadState, NotFound, PipelineError
from ottla.pipeline.places import Places, write_json
from ottla.pipeline.planning import check_keeping
from ottla.pipeline.tables.log import Commit, TableFile, TableLog, TableState
from ottla.pipeline.writing import check_follows

pytestmark = [pytest.mark.xdist_group("spark"), pytest.mark.timeout(1200)]

RAW = """
@table
def raw():
    return read_topic("TOPIC")
"""
TWO = "@table\ndef two(): return read_stream('one')\n"
MISTAKES = {
    "\n@table\ndef one(): return read_stream('rew')\n": r"table one \(line \d+\) reads 'rew', which is not there: "
    "did you mean raw",
    "\n@table\ndef one(): return read_stream('elsewhere')\n": "define it with @table or @view, or read a topic",
    "\n@table\ndef one(): return read_stream('two')\n@view\ndef two(): return read_stream('one')\n": (
        "tables read each other in a circle: one reads two reads one"
    ),
    "\n@table\ndef one(): pass\n": r"table one \(line \d+\) returned NoneType: it must return a frame",
    "\n@table\ndef one(): return read_stream('raw').select('nothing')\n": "UNRESOLVED_COLUMN.*`nothing`",
    "\n@table(keys=['id'])\ndef one(): return read_stream('raw')\n": "has the key 'id', and no such column: key, value",
    "\napply_changes(target='now', source='raw', keys=['key'], sequence_by='offset', except_column_list=['key'])\n": (
        "has the key 'key', and no such column: value"
    ),
    "\n@table\n@expect('no sql', 'amount >')\ndef one(): return read_stream('raw')\n": (
        "expectation 'no sql': 'amount >' is no condition on its columns .*PARSE_SYNTAX_ERROR"
    ),
    "\n@table\n@expect('no such', 'amount > 0')\ndef one(): return read_stream('raw')\n": "'amount > 0' is no",
    "\n@table\n@expect('a number', 'offset + 1')\ndef one(): return read_stream('raw')\n": (
        r"'offset \+ 1' is bigint, not true or false: write a comparison"
    ),
    "\n@table\n@expect_on_time('offset', '1h')\ndef one(): return read_stream('raw')\n": "must be a timestamp",
    "\n@table(dead_letters=True)\ndef one(): return read_stream('raw')\n": "its frame no column _record: keep it",
    "\n@table\ndef one(): return decode_json(read_stream('raw'), 'id WHAT')\n": "is no schema like",
    "\n@table\ndef one(): return decode_json(read_stream('raw').drop('key'), 'id INT')\n": "has no column key",
    **{
        f"\n@table\ndef one(): return read_stream('raw').selectExpr({it!r})\n": rf"\(line \d+\): the column it{said}"
        for it, said in {
            "make_interval(1, 2) AS it": " is interval, and Parquet has no intervals of both months and seconds",
            "array(make_interval(1, 2)) AS it": " is interval, ",
            "time'12:00:00' AS it": r" is time\(6\), which Spark has with --conf spark.sql.timeType.enabled=true alone",
            "struct(struct() AS a) AS it": r".a is struct<>, and Parquet has no structs without a field",
            "array() AS it": " is array<void>, which says no type of what is in it: cast it",
            "struct(map() AS a) AS it": r".a is map<void,void>, which says no type",
        }.items()
    },
    **{
        f"\n@table\ndef one(): return read_stream('raw').selectExpr({it!r})\n{TWO}": (
            rf"table two \(line \d+\) reads 'one' as a stream, and its column it{said}, which no stream"
        )
        for it, said in {
            "interval '1-2' year to month AS it": " is interval year to month",
            "struct(array(interval '1' month) AS a) AS it": ".a is interval month",
            "st_geomfromwkb(value) AS it": r" is geometry\(0\)",
        }.items()
    },
    **{
        f"\n@table(keys=['it'])\ndef one(): return read_stream('raw').selectExpr({it!r})\n": (
            rf"table one \(line \d+\) has the key 'it', which is {said}"
        )
        for it, said in {
            "map('a', 1) AS it": "map<string,int>, which Spark cannot compare: take a part of it, or a text",
            "struct(parse_json('1') AS v) AS it": "struct<v:variant>, which Spark cannot compare",
            "collate('a', 'UTF8_LCASE') AS it": "string collate UTF8_LCASE, and keys are compared byte by byte",
            "array(collate('a', 'UNICODE_CI')) AS it": "string collate UNICODE_CI, and keys",
        }.items()
    },
    "\napply_changes(target='now', source='raw', keys=['key'], sequence_by=\"map('a', 1)\")\n": (
        "apply_changes of now: sequence_by .* is map<string,int>, which Spark cannot compare"
    ),
    "\napply_changes(target='now', source='raw', keys=['key'], sequence_by='offset', apply_as_deletes=\"'op'\")\n": (
        "apply_changes of now: apply_as_deletes .* is string, not true or false: write a comparison"
    ),
    "\n@sink(topic='out')\ndef one(): return read('raw')\n": "a sink needs read_stream or read_topic",
}


def complaint(pipeline: Pipeline) -> str:
    with pytest.raises(PipelineError) as caught:
        pipeline.run().plan.make()
    return str(caught.value)


def test_mistakes(pipeline: Pipeline) -> None:
    for text, expected in MISTAKES.items():
        pipeline.define(RAW + text)
        said = complaint(pipeline)
        assert re.search(expected, said), said
        assert "\n" not in said


def test_a_topic_that_is_not_there(pipeline: Pipeline) -> None:
    pipeline.define(RAW.replace("TOPIC", "TOPIC-away"))
    with pytest.raises(NotFound, match=rf"reads the topic {pipeline.topic}-away.*`ottla topic create"):
        pipeline.catch_up()
    pipeline.define(RAW + "\n@sink(topic='TOPIC-away')\ndef one(): return read_stream('raw')\n")
    with pytest.raises(NotFound, match=rf"sink one \(line \d+\) writes to the topic {pipeline.topic}-away"):
        pipeline.catch_up()


def test_an_aggregate_without_keys_or_a_watermark(pipeline: Pipeline) -> None:
    pipeline.define(RAW + "\n@table\ndef one(): return read_stream('raw').groupBy('partition').count()\n")
    with pytest.raises(BadDefinition, match=r"table one .*Give the table keys .*, or give the frame a watermark"):
        pipeline.catch_up()


def test_a_column_of_another_type(pipeline: Pipeline) -> None:
    one = "\n@table\ndef one(): return decode_json(read_stream('raw'), 'id BIGINT, more STRING')\n"
    pipeline.define(RAW + one)
    planned = pipeline.run().plan.make()[1]
    TableLog(pipeline.places.table("one")).commit(
        Commit(kind="append", written_ms=1, schema=planned.schema.jsonValue())
    )
    pipeline.define(RAW + one.replace("more STRING", "new DOUBLE"))
    assert pipeline.run().plan.make()[1].schema.fieldNames() == ["id", "more", "timestamp", "new"]
    pipeline.define(RAW + one.replace("BIGINT", "STRING"))
    assert re.search(r"the column id is bigint in .*, and would be string: cast it", complaint(pipeline))


def test_the_folder_of_another_pipeline(pipeline: Pipeline, tmp_path: Path) -> None:
    pipeline.define(RAW)
    write_json(str(Path(pipeline.places.folder) / "pipeline.json"), {"pipeline": "other"})
    with pytest.raises(BadState, match="belongs to the pipeline 'other', and this is 'shop': give it another --folder"):
        pipeline.catch_up()


def test_two_runs_at_once(tmp_path: Path) -> None:
    with (
        Places(str(tmp_path)).held("shop"),
        pytest.raises(BadState, match=r"is in use by another run \(process \d+\)"),
        Places(str(tmp_path)).held("shop"),
    ):
        pass


def test_a_table_that_another_checkpoint_has_written(pipeline: Pipeline) -> None:
    pipeline.define(RAW)
    pipeline.send(1)
    pipeline.catch_up()
    shutil.rmtree(pipeline.places.checkpoint("raw"))
    with pytest.raises(BadState, match=r"was written by the query .*: give back the flow's folder in checkpoints/"):
        pipeline.catch_up()
    assert len(pipeline.rows("raw", "offset")) == 1


@pytest.mark.parametrize(
    ("batches", "batch", "said"),
    [
        ({}, 0, None),
        ({"q": 3}, 4, None),
        ({"r": 3}, 4, "was written by the query r, and this checkpoint's is q"),
        ({}, 2, "has no micro-batch, and its checkpoint goes on with 2"),
        ({"q": 3}, 6, "ends with micro-batch 3, and its checkpoint goes on with 6"),
    ],
)
def test_a_checkpoint_that_does_not_go_with_the_table(batches: dict[str, int], batch: int, said: str | None) -> None:
    state = TableState(version=9, batches=batches)
    if said is None:
        check_follows(state, "q", batch, "orders")
        return
    with pytest.raises(BadState, match=said):
        check_follows(state, "q", batch, "orders")


def totals(*keys: str) -> Flow:
    return Flow(name="totals", kind=Kind.TABLE, function=lambda: None, line=7, keys=keys)


@pytest.mark.parametrize(
    ("before", "now", "said"),
    [
        (("id",), ("id",), None),
        ((), (), None),
        (None, ("id",), None),  # of a table that an earlier version wrote
        ((), ("id",), "has the keys id, and .* was written with no keys: rows with the same keys would be there twice"),
        (("id",), (), "has no keys, and .* was written with the keys id:"),
        (("id", "day"), ("day",), "has the keys day, and .* was written with the keys id, day:"),
    ],
)
def test_keys_that_were_changed(
    tmp_path: Path, before: tuple[str, ...] | None, now: tuple[str, ...], said: str | None
) -> None:
    """Rows lie in buckets by the keys of then: by others, the rows that they replace would not be found."""
    log = TableLog(str(tmp_path))
    check_keeping(totals(*now), log)
    file = TableFile(path="data/a", rows=1, bytes=1, written_ms=1)
    log.commit(Commit(kind="append", written_ms=1, query="q", batch=0, added=(file,), keys=before))
    log.commit(Commit(kind="append", written_ms=1, query="q", batch=1))
    if said is None:
        check_keeping(totals(*now), TableLog(log.folder))
        return
    with pytest.raises(BadState, match=rf"table totals \(line 7\) {said}"):
        check_keeping(totals(*now), TableLog(log.folder))


def changing(scd_type: int | None) -> Flow:
    changes = None
    if scd_type is not None:
        changes = Changes(sequence_by="at", deletes=None, scd_type=scd_type)
    return replace(totals("id"), changes=changes)


@pytest.mark.parametrize("before", [None, 1, 2])
@pytest.mark.parametrize("now", [None, 1, 2])
def test_changes_of_another_kind(tmp_path: Path, before: int | None, now: int | None) -> None:
    """SCD 1 knows which row is the later by a column that SCD 2 does not have, and rows as they come have neither."""
    columns = {None: ["id"], 1: ["id", "__SEQUENCE", "__DELETED"], 2: ["id", "__START_AT", "__END_AT", "__DELETED"]}
    log = TableLog(str(tmp_path))
    check_keeping(changing(now), log)
    file = TableFile(path="data/a", rows=1, bytes=1, written_ms=1)
    schema = {"type": "struct", "fields": [{"name": name} for name in columns[before]]}
    log.commit(Commit(kind="upsert", written_ms=1, query="q", batch=0, added=(file,), schema=schema, keys=("id",)))
    if before == now:
        check_keeping(changing(now), TableLog(log.folder))
        return
    said = {None: "rows as they come", 1: "changes as SCD 1", 2: "changes as SCD 2"}
    with pytest.raises(BadState, match=rf"\(line 7\) keeps {said[now]}, and .* was written with {said[before]}: "):
        check_keeping(changing(now), TableLog(log.folder))


def test_a_backfill_needs_a_column_of_time(pipeline: Pipeline) -> None:
    pipeline.define(RAW + "\n@table\ndef one(): return read_stream('raw').select('offset')\n")
    with pytest.raises(BadDefinition, match=r'say it by @table\(time="column"\)'):
        backfill(pipeline.run(), Range(0, 1))


def test_a_column_that_comes_back_in_other_letters(pipeline: Pipeline) -> None:
    log = TableLog(pipeline.places.table("raw"))
    schema = {"type": "struct", "fields": [{"name": "OFFSET", "type": "long", "nullable": True, "metadata": {}}]}
    log.commit(Commit(kind="append", written_ms=1, query="q", batch=0, schema=schema, keys=()))
    pipeline.define(RAW)
    assert re.search(r"the column offset is OFFSET in .*/raw, and to Spark the two names are one", complaint(pipeline))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("before", "now", "said"),
    [
        (
            "read_topic('TOPIC')",
            "read_stream('raw')",
            "checkpoint has TOPIC in place of a version of .*/raw: these are",
        ),
        (
            "read_stream('raw')",
            "read_topic('TOPIC')",
            "another source's offsets.* Its function was another one before:",
        ),
        (
            "read_stream('raw')",
            "read_stream('raw').union(read_stream('raw'))",
            "sources in the .* Its function was another",
        ),
        (
            "read_stream('raw')",
            "read_stream('raw').dropDuplicates(['key'])",
            "Its function was another one before: give",
        ),
    ],
)
def test_a_function_that_reads_something_else_than_before(pipeline: Pipeline, before: str, now: str, said: str) -> None:
    pipeline.send({})
    pipeline.define(f"{RAW}\n@table\ndef one(): return {before}\n")
    pipeline.catch_up()
    pipeline.send({})
    pipeline.define(f"{RAW}\n@table\ndef one(): return {now}\n")
    said = (
        rf"table one .*{said.replace('TOPIC', pipeline.topic)}.*delete the flow's folders in checkpoints/ and tables/"
    )
    with pytest.raises(PipelineError, match=said) as caught:
        pipeline.catch_up()
    assert str(caught.value).count("run it anew") == 1
