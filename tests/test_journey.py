"""The way of a Produce request is the one that `docs/architecture.md` draws: ten files at most, in one direction."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import FrameType

import ottla
from ottla.protocol.generated.produce import ProduceResponse
from tests.handlers.frames import batch, produce_request
from tests.server.conftest import BrokerThread

PAGE = Path(__file__).parents[1] / "docs" / "architecture.md"
SOURCE = f"{Path(ottla.__file__).parent}/"
FILES_MAX = 10


def drawn() -> list[tuple[str, str]]:
    """Files and functions, in the page's order."""
    journey = PAGE.read_text(encoding="utf-8").partition("## The journey of a Produce request")[2]
    block = journey.split("```")[1]
    return [(file, function) for file, function in re.findall(r"^(\S+\.py) +(\w+) ", block, re.MULTILINE)]


def followed(folder: Path) -> list[tuple[str, str]]:
    """Files and functions that are called on the broker's loop, from a first Produce of a connection to its answer."""
    calls: list[tuple[str, str]] = []

    def note(frame: FrameType, event: str, _: object) -> None:
        path = frame.f_code.co_filename
        if event == "call" and path.startswith(SOURCE):
            calls.append((path.removeprefix(SOURCE), frame.f_code.co_name))

    async def follow(profile: object) -> None:
        sys.setprofile(profile)  # type: ignore[arg-type]

    with BrokerThread(f"{folder}") as broker:
        broker.create_topic("t")
        with broker.connect() as peer:
            broker.run(follow(note))
            peer.ask(produce_request(batch(b"value"), topic="t"), 9, ProduceResponse)
            broker.run(follow(None))
    return calls


def test_a_produce_goes_through_the_files_that_the_page_draws(tmp_path: Path) -> None:
    way = drawn()
    assert 0 < len({file for file, _ in way}) == len(way) <= FILES_MAX
    left = iter(followed(tmp_path))
    assert [call for call in way if call not in left] == []
