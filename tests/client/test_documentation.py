"""The examples in docs/client.md, docs/arrow.md and docs/formats.md run as they stand, but for the address."""

from __future__ import annotations

import inspect
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tools.ottla_server import ottla_tree

from ottla.client import Admin, Consumer, Producer, errors, sync
from ottla.client.errors import KafkaError
from ottla.client.errors import own as own_errors
from ottla.client.settings import AdminSettings, ConsumerSettings, ProducerSettings
from ottla.client.zookeeper_groups.settings import ZookeeperConsumerSettings
from ottla.testing import InProcessBroker
from tests.client.group.conftest import bootstrap

__all__ = ["bootstrap"]  # of a broker on which a new group does not wait for more members

REPOSITORY = Path(__file__).resolve().parent.parent.parent
TEXT = (REPOSITORY / "docs" / "client.md").read_text()
ARROW = (REPOSITORY / "docs" / "arrow.md").read_text()
FORMATS = (REPOSITORY / "docs" / "formats.md").read_text()
#: The tree of the page's groups of Kafka 0.8.
TREE_ADDRESS = "zk-1:2181/kafka"
EXAMPLES = re.findall(r"^```python\n(.*?)^```", TEXT + ARROW + FORMATS, re.DOTALL | re.MULTILINE)


@contextmanager
def addressed(program: str, bootstrap: str, folder: Path) -> Iterator[str]:
    """With the addresses of what is here; one that reads a tree gets one, and a broker that is registered in it."""
    if TREE_ADDRESS not in program:
        yield program.replace("localhost:9092", bootstrap)
        return
    with ottla_tree(folder / "tree") as tree:
        chroot = TREE_ADDRESS.partition("/")[2]
        connect = f"{tree.bootstrap}/{chroot}"
        with InProcessBroker(properties={"zookeeper.connect": connect}) as broker:
            yield program.replace("localhost:9092", broker.bootstrap).replace(TREE_ADDRESS, connect)


def test_no_program_is_left_out() -> None:
    """What is indented in place of fenced would not be found."""
    assert (
        re.findall(
            r"^    (?:async |with |import |from ).*",
            re.sub(r"(?ms)^```.*?^```", "", TEXT + ARROW + FORMATS),
            re.MULTILINE,
        )
        == []
    )


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_an_example(bootstrap: str, number: int, tmp_path: Path) -> None:
    with addressed(EXAMPLES[number], bootstrap, tmp_path) as program:
        check(program, tmp_path)


def check(program: str, folder: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY / "src")}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env=environment,
        cwd=folder,
    )
    # A session with a tree is an event of the log.
    said = [line for line in done.stderr.splitlines() if " INFO  coordination " not in line]
    assert (done.returncode, said) == (0, [])
    assert done.stdout


def test_every_setting_is_named() -> None:
    names = {
        name.replace("_", ".")
        for kind in (AdminSettings, ProducerSettings, ConsumerSettings, ZookeeperConsumerSettings)
        for name in kind.__dataclass_fields__
    }
    assert {name for name in names if f"`{name}`" not in TEXT} == set()


def test_importing_the_package_loads_next_to_nothing() -> None:
    program = "import sys, ottla.client; print(sorted(n for n in sys.modules if n.startswith(('ottla', 'asyncio'))))"
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY / "src")},
    )
    assert done.stdout.strip() == "['ottla', 'ottla.client', 'ottla.lazy_names']"


def test_every_error_that_is_named_is_there() -> None:
    """And every one of the client's own is named: which of them is caught is what a caller has to know."""
    section = TEXT.partition("\n## Errors\n")[2].partition("\n## ")[0]
    named = set(re.findall(r"`([A-Z][A-Za-z]+)`", section)) - {"ErrorCode", "ValueError"}
    assert {name for name in named if not hasattr(errors, name)} == set()
    beside = {"ClientFault", "CorruptRecords", "FencedInstanceId", "LogTruncated", "NoOffset", "SomeFailed"}
    own = {name for name, kind in vars(own_errors).items() if inspect.isclass(kind) and issubclass(kind, KafkaError)}
    assert {name for name in own - beside - {"KafkaError", "TooManyCommits"} if name not in section} == set()
    assert {name for name in beside - {"ClientFault"} if name not in TEXT} == set()


def test_every_method_that_is_named_is_there() -> None:
    faces = (Producer, Consumer, Admin)
    words = set(re.findall(r"`([a-z]+_[a-z_]+)`", TEXT))
    arguments = {"timeout_ms", "on_delivery", "group_id", "key_serializer", "value_serializer", "key_deserializer"}
    listeners = {"on_assigned", "on_revoked", "on_lost", "round_robin", "integer_key", "api_version"}
    for name in words - arguments - listeners - {"value_deserializer"}:
        assert any(hasattr(face, name) for face in faces), name


@pytest.mark.parametrize("name", ["Producer", "Consumer", "Admin"])
def test_both_faces_have_the_same_methods_with_the_same_arguments(name: str) -> None:
    plain, awaited = getattr(sync, name), {"Producer": Producer, "Consumer": Consumer, "Admin": Admin}[name]
    inner = {"try_send", "checked", "try_enter", "enter", "read_ahead", "next_ahead", "take_back", "is_known"}
    inner |= {"check_places_rows", "now_ms", "led_partitions", "enter_batch", "check_takes", "not_entered"}
    for method, function in inspect.getmembers(awaited, inspect.isfunction):
        if method.startswith("_") or method in inner:
            continue
        theirs = inspect.signature(function).parameters
        ours = inspect.signature(getattr(plain, method)).parameters
        assert list(ours)[: len(theirs)] == list(theirs), method
        assert set(ours) - set(theirs) <= {"timeout"}, method  # of a wait that a thread can end
        assert not function.__doc__ or getattr(plain, method).__doc__, method
