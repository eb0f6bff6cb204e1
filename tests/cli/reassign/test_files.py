"""The file of a reassignment: read as it was written, and each thing that can be wrong with it has a sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from ottla.cli.faults import NOT_FOUND, CommandFault
from ottla.cli.reassign.files import read, written
from ottla.model import TopicPartition

PLACEMENT = {TopicPartition("a", 0): [1, 2], TopicPartition("b", 3): [2, 3]}


def test_what_was_written_is_read(tmp_path: Path) -> None:
    path = tmp_path / "moves.json"
    path.write_text(written(PLACEMENT))
    assert read(str(path)) == PLACEMENT


def test_kafkas_file_is_read_with_what_else_stands_in_it(tmp_path: Path) -> None:
    path = tmp_path / "moves.json"
    path.write_text(
        '{"version":1,"partitions":[{"topic":"a","partition":0,"replicas":[1,2],"log_dirs":["any","any"]}]}'
    )
    assert read(str(path)) == {TopicPartition("a", 0): [1, 2]}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "Expecting"),
        ("[]", "it must be"),
        ('{"version":2,"partitions":[]}', "it must be"),
        ('{"version":1,"partitions":5}', "it must be"),
        ('{"version":1,"partitions":["x"]}', "'x' is not a topic"),
        ("[" * 100_000, "nested too deeply"),
        ('{"version":1}', "lacks 'partitions'"),
        ('{"version":1,"partitions":[{"topic":"a"}]}', "lacks 'partition'"),
        ('{"version":1,"partitions":[{"topic":"a","partition":"0","replicas":[1]}]}', "is not a topic"),
        ('{"version":1,"partitions":[{"topic":"a","partition":0,"replicas":[1,1]}]}', "different brokers"),
        ('{"version":1,"partitions":[{"topic":"a","partition":0,"replicas":[]}]}', "different brokers"),
        ('{"version":1,"partitions":[{"topic":"a","partition":0,"replicas":[true]}]}', "different brokers"),
        ('{"version":1,"partitions":[{"topic":"a","partition":-1,"replicas":[1]}]}', "is not a topic"),
        ('{"version":1,"partitions":[{"topic":"a","partition":0,"replicas":[-1]}]}', "different brokers"),
        ('{"version":1,"partitions":[{"topic":"a","partition":0,"replicas":[2147483648]}]}', "different brokers"),
        ('{"version":1,"partitions":[{"topic":"a b","partition":0,"replicas":[1]}]}', "no topic can have this name"),
        (
            '{"version":1,"partitions":[{"topic":"a","partition":0,"replicas":[1],"log_dirs":["/d"]}]}',
            "names log directories",
        ),
        (written(PLACEMENT).replace('"b", "partition": 3', '"a", "partition": 0'), "twice"),
    ],
)
def test_what_is_wrong_with_it_is_said(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "moves.json"
    path.write_text(text)
    with pytest.raises(CommandFault, match=said):
        read(str(path))


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(CommandFault, match="No such file") as fault:
        read(str(tmp_path / "none.json"))
    assert fault.value.code == NOT_FOUND


def test_a_plan_that_moves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "moves.json"
    path.write_text(written({}))
    assert read(str(path)) == {}
