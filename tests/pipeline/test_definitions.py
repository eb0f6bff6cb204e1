"""What a file may say, and what is wrong with one that may not: the message has the line and the next step."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

import pytest

from ottla.pipeline.definitions import Kind
from ottla.pipeline.errors import BadDefinition, NotFound
from ottla.pipeline.example import TEXT
from ottla.pipeline.expectations import Action
from ottla.pipeline.loading import PipelineFile, load


def loaded(folder: Path, text: str, name: str = "shop.py") -> PipelineFile:
    path = folder / name
    path.write_text("from ottla.pipeline import *\n" + textwrap.dedent(text))
    return load(str(path))


def test_decorators_in_any_order(tmp_path: Path) -> None:
    file = loaded(
        tmp_path,
        """
        @expect("outer", "a > 0")
        @table(retain="2d", comment="said")
        @expect_or_drop("inner", "a > 1")
        @expect_all_or_fail({"first": "b", "second": "c"})
        def orders():
            "Text."

        @view
        def seen(): pass

        @sink(topic="out", options={"kafka.linger.ms": "5"})
        def out(): pass

        apply_changes(target="people", source="seen", keys=["id"], sequence_by="at", stored_as_scd_type="2")
        """,
    )
    flows = file.definitions.flows
    assert file.name == "shop"
    assert [(flow.name, flow.kind) for flow in flows.values()] == [
        ("orders", Kind.TABLE),
        ("seen", Kind.VIEW),
        ("out", Kind.SINK),
        ("people", Kind.TABLE),
    ]
    assert [(rule.name, rule.action) for rule in flows["orders"].rules] == [
        ("outer", Action.WARN),
        ("inner", Action.DROP),
        ("first", Action.FAIL),
        ("second", Action.FAIL),
    ]
    assert (flows["orders"].retain_ms, flows["orders"].comment) == (2 * 86_400_000, "said")
    assert (flows["out"].topic, flows["out"].options) == ("out", {"kafka.linger.ms": "5"})
    assert flows["people"].changes is not None
    assert flows["people"].line == 16


def test_the_example(tmp_path: Path) -> None:
    (tmp_path / "orders.py").write_text(TEXT)
    assert list(load(str(tmp_path / "orders.py")).definitions.flows) == ["orders_raw", "orders", "totals", "totals_out"]


TABLE = "@table\ndef one(): pass\n"
CHANGES = "apply_changes(target='a', source='b', keys=['id'], sequence_by='at', "
MISTAKES = {
    "def one(:\n": r"shop\.py, line 2: .*: mend the line",
    "1 / 0\n": r"shop\.py, line 2: ZeroDivisionError: division by zero",
    "x = 1\n": r"defines no table and no sink: put @table above a function",
    TABLE + TABLE: r"there are two of the name one: in line 2 and in line 4; rename one",
    "@table\ndef one(a): pass\n": r"line 2: one takes arguments: it must be a function without any",
    "@table(name='a b')\ndef one(): pass\n": r"line 2: 'a b' cannot be the name of a table: give a letter",
    "@table(retain='soon')\ndef one(): pass\n": r"line 2: retain: 'soon' is no duration",
    "@table(retain='2d', keys=['a'])\ndef one(): pass\n": r"retain is for tables without keys",
    "@table(keys='a')\ndef one(): pass\n": r'keys is a list: keys=\["a"\]',
    "@sink(topic='a b')\ndef one(): pass\n": r"@sink: no topic can have this name",
    "@expect('a', 'b')\n@expect('a', 'c')\ndef one(): pass\n": r"one has two expectations of the name 'a': rename one",
    "@expect('a,b', 'c')\ndef one(): pass\n": r"'a,b' cannot be the name of an expectation",
    "@expect('a', 3)\ndef one(): pass\n": r"an expectation is a name and a condition",
    "@expect_all(['a'])\ndef one(): pass\n": r"expect_all takes a dictionary",
    "@expect_on_time('at', 'long')\ndef one(): pass\n": r"expect_on_time: 'long' is no duration",
    TABLE
    + "@expect('a', 'b')\n@view\ndef two(): pass\n": r"view two \(line 4\) has expectations.*the tables that read it",
    TABLE + "read_topic('a')\n": r"read_topic works inside of a function of a pipeline",
    "apply_changes(target='a', source='b', keys='id', sequence_by='at')\n": r"keys is a list of columns",
    "apply_changes(target='a', source='b', keys=['id'], sequence_by='at', stored_as_scd_type=3)\n": r"is 1 or 2, not 3",
    CHANGES + "except_column_list='gone')\n": r'except_column_list is a list of columns: except_column_list=\["id"\]',
    CHANGES + "column_list=[1])\n": r"column_list is a list of columns",
    CHANGES
    + "column_list=['a'], except_column_list=['b'])\n": r"column_list and except_column_list exclude each other",
    CHANGES + "track_history_column_list=['a'])\n": r"history is kept with stored_as_scd_type=2 alone",
    CHANGES + "stored_as_scd_type=2, track_history_column_list=['a'], track_history_except_column_list=['b'])\n": (
        r"track_history_column_list and track_history_except_column_list exclude each other"
    ),
}


@pytest.mark.parametrize("text", MISTAKES, ids=range(len(MISTAKES)))
def test_mistakes(tmp_path: Path, text: str) -> None:
    with pytest.raises(BadDefinition) as caught:
        loaded(tmp_path, text)
    assert re.search(MISTAKES[text], str(caught.value)), caught.value


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match=r"`ottla pipeline init .*shop.py` writes an example"):
        load(str(tmp_path / "shop.py"))


def test_a_file_whose_name_is_none(tmp_path: Path) -> None:
    with pytest.raises(BadDefinition, match="rename the file"):
        loaded(tmp_path, TABLE, "my shop.py")
