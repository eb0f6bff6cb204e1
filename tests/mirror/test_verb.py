"""`ottla mirror` as a person uses it: its one line, its page of metrics, its messages and exit codes."""

from __future__ import annotations

import asyncio
import re
import signal
import urllib.request
from pathlib import Path

import pytest

from ottla.client.admin.admin import Admin
from ottla.testing.in_process import InProcessBroker
from tests.cli.conftest import Command, in_process, run_process
from tests.mirror.flows import SECONDS_MAX, Clusters, append, create, limits, produce
from tests.mirror.processes import mirror_process
from tests.mirror.test_kills import QUICK, until_end
from tests.mirror.test_stops import one_record
from tests.searches import slow
from tests.spark.processes import listening

__all__ = ["in_process"]


def written(folder: Path, properties: dict[str, str]) -> str:
    path = folder / "mm2.properties"
    path.write_text("".join(f"{name} = {value}\n" for name, value in properties.items()))
    return str(path)


def scraped(address: str) -> str:
    with urllib.request.urlopen(f"http://{address}/metrics", timeout=30) as page:
        text: str = page.read().decode()
    return text


@pytest.mark.parametrize("number", [signal.SIGTERM, slow(signal.SIGHUP)])
async def test_it_copies_until_a_signal_ends_it(clusters: Clusters, tmp_path: Path, number: signal.Signals) -> None:
    topic = f"until-{number.name}"
    await create(clusters.source, topic, 2)
    await produce(clusters.source, topic, [b"x"] * 10)
    properties = clusters.properties(topics=topic, tasks_max="2")
    async with Admin(bootstrap_servers=clusters.target) as admin:
        with mirror_process(tmp_path, properties, "--metrics-port", "0") as running:
            assert running.started() == "Ottla is mirroring A->B\n"
            await until_end(admin, f"A.{topic}", 10)
            log = running.log.read_text()
            assert 'a property has no effect property=tasks.max why="one process' in log
            address = re.search(r"metrics are served address=(\S+)", log)
            assert address is not None
            # The metrics are all that anybody can connect to, and on this host alone.
            assert listening([running.process.pid]) == {address[1].replace(":", " ")}
            text = await asyncio.to_thread(scraped, address[1])
            labels = f'source="A",target="B",topic="{topic}",partition="0"'
            assert f"ottla_mirror_stopped{{{labels}}} 0" in text
            assert f"ottla_mirror_records_total{{{labels}}} " in text
            running.signal(number)
            assert running.wait() == 0


async def test_two_processes_share_the_partitions(clusters: Clusters, tmp_path: Path) -> None:
    await create(clusters.source, "shared", 4)
    properties = {**clusters.properties(topics="shared"), **QUICK}
    async with Admin(bootstrap_servers=clusters.source) as source, Admin(bootstrap_servers=clusters.target) as target:
        with mirror_process(tmp_path / "1", properties) as first, mirror_process(tmp_path / "2", properties) as second:
            for one in (first, second):
                assert one.started()
            async with asyncio.timeout(SECONDS_MAX):
                members: list[int] = []
                while members != [2, 2]:
                    described = (await source.describe_groups(["ottla-mirror.A->B"]))["ottla-mirror.A->B"]
                    members = [len(one.assignment) for one in described.members]
                    await asyncio.sleep(0.02)
            for partition in range(4):
                await produce(clusters.source, "shared", [b"x"] * 5, partition)
            for partition in range(4):
                await until_end(target, "A.shared", 5, partition)


def test_all_that_is_there_is_copied_and_then_it_ends(
    clusters: Clusters, tmp_path: Path, source_broker: InProcessBroker
) -> None:
    """In a process of its own: here the brokers would write their warnings of a slow machine beside its errors."""
    source_broker.create_topic("ends")
    asyncio.run(produce(clusters.source, "ends", [b"x"] * 10))
    config = written(tmp_path, clusters.properties(topics="ends"))
    ran = run_process(("mirror", "--config", config, "-e", "--log-level", "error"))
    assert (ran.code, ran.out, ran.err) == (0, "Ottla is mirroring A->B\n", "")
    assert asyncio.run(limits(clusters.target, "A.ends")) == (0, 10)

    asyncio.run(append(clusters.target, "A.ends", one_record(b"mine")))
    ran = run_process(("mirror", "--config", config, "--exit-at-end", "--log-level", "off"))
    assert ran.code == 1
    assert ran.err.startswith("ottla: 1 partition could not be copied: A.ends-0: the batch at 10 was not written by")


@pytest.mark.parametrize(
    ("more", "code", "said"),
    [
        ({"topics.exlude": "x"}, 2, "there is no property topics.exlude; did you mean topics.exclude?"),
        ({"B.bootstrap.servers": "127.0.0.1:1"}, 4, "no broker was reached"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(
    clusters: Clusters, tmp_path: Path, in_process: Command, more: dict[str, str], code: int, said: str
) -> None:
    config = written(tmp_path, {**clusters.properties(topics="x"), **more})
    ran = in_process("mirror", "--config", config, "-e", "--log-level", "off")
    assert ran.code == code
    assert said in ran.err
    assert len(ran.err.splitlines()) == 1


def test_a_file_that_is_not_there_is_named(in_process: Command) -> None:
    ran = in_process("mirror", "--config", "/nowhere/mm2.properties")
    assert (ran.code, ran.err) == (3, "ottla: cannot read /nowhere/mm2.properties: No such file or directory\n")


def test_a_cluster_that_the_file_does_not_have_is_refused(
    clusters: Clusters, tmp_path: Path, in_process: Command
) -> None:
    config = written(tmp_path, clusters.properties(topics="x"))
    ran = in_process("mirror", "--config", config, "--clusters", "C")
    assert ran.code == 2
    assert "C is not among the clusters of the file: A, B" in ran.err
