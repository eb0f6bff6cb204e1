"""The attacks' machinery: frames are what they claim to be, figures are those of the probe, and nothing runs on."""

from __future__ import annotations

import importlib
import pkgutil
from pathlib import Path

import pytest
from bench.attack import every_attack, main, run_one, table
from bench.attacks.attack import MB, Attack, Bound, Outcome, Victim
from bench.attacks.baseline import Idle
from bench.attacks.long_frames import Filling, LongArray, long_arrays, repeated
from bench.attacks.names import METADATA, metadata, same
from bench.attacks.probe import Waits
from bench.servers import OTTLA, Places

from bench import attack as command
from bench import attacks
from ottla.handlers.routes import advertised
from ottla.protocol.apis import api
from ottla.protocol.generated.find_coordinator import FindCoordinatorRequest
from ottla.protocol.generated.metadata import MetadataRequest, MetadataRequestTopic
from ottla.protocol.header import decode_request_header
from ottla.protocol.message import Message

ARRAYS = [array for key, _, highest in advertised() for array in long_arrays(key, highest)]


def decoded(frame: bytes) -> Message:
    header, start = decode_request_header(frame, 4)
    message, end = api(header.api_key).request_type().decode(frame, header.api_version, start)
    assert end == len(frame) == 4 + int.from_bytes(frame[:4], "big")
    return message


@pytest.mark.parametrize("version", [8, 12], ids=["a count of four bytes", "a compact count"])
@pytest.mark.parametrize("count", [0, 1, 126, 127, 128, 511, 512, 513, 1024, 20_000])
def test_a_repeated_element_stands_in_the_frame_as_often_as_it_should(version: int, count: int) -> None:
    topic = MetadataRequestTopic(name="t")
    frame = repeated(METADATA, version, lambda topics: MetadataRequest(topics=topics), same(topic), count_max=count)
    assert decoded(frame) == MetadataRequest(topics=[topic] * count)


def test_elements_that_differ_stand_in_their_order() -> None:
    frame = repeated(
        10,
        6,
        lambda keys: FindCoordinatorRequest(coordinator_keys=keys),
        lambda first, how_many: [f"group-{number}" for number in range(first, first + how_many)],
        count_max=3_000,
    )
    assert decoded(frame) == FindCoordinatorRequest(coordinator_keys=[f"group-{number}" for number in range(3_000)])


@pytest.mark.in_turns
@pytest.mark.parametrize("filling", Filling, ids=lambda filling: filling.value)
@pytest.mark.parametrize("array", ARRAYS, ids=lambda array: array.id)
def test_every_array_of_every_api_is_made_as_long_as_the_frame_carries(array: LongArray, filling: Filling) -> None:
    frame = array.frame(filling, bytes_max=40_000)
    assert 16_000 < len(frame) <= 40_004
    found: object = decoded(frame)
    for name in array.path[:-1]:
        found = getattr(found, name)
        if isinstance(found, list):
            (found,) = found
    assert len(getattr(found, array.path[-1])) >= 512


def test_every_module_of_attacks_is_asked_for_its_own() -> None:
    modules = {f"bench.attacks.{module.name}" for module in pkgutil.iter_modules(attacks.__path__)}
    with_attacks = {name for name in modules if hasattr(importlib.import_module(name), "attacks")}
    assert {type(attack).__module__ for attack in every_attack()} <= with_attacks | {"bench.attacks.attack"}
    names = [attack.name for attack in every_attack()]
    assert len(names) == len(set(names))
    for module in with_attacks:
        assert {attack.name for attack in importlib.import_module(module).attacks()} <= set(names)


def test_the_list_says_what_is_sent_and_its_bound(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(every_attack())
    assert "DescribeConfigs of one broker, 20,000 times in a request; at most 50 ms, 64 MB" in "\n".join(lines)


def test_more_ids_than_usual_may_be_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--list", "--ids", "1000100"]) == 0
    said = capsys.readouterr().out
    assert "InitProducerId of 1,000,100 new transactional ids; at most 50 ms, 1000.1 MB" in said


def test_a_name_that_no_attack_has_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["no-such"]) == 2
    assert "no-such" in capsys.readouterr().err


class Small(Attack):
    name = "small"
    sends = "next to nothing"

    def run(self, victim: Victim) -> Outcome:
        (frame,) = metadata(3)()
        with victim.connect() as attacker:
            return Outcome(sent=len(frame), answers=[attacker.ask(frame)])


class Unanswered(Attack):
    """Waits for an answer to the first half of a request."""

    name = "unanswered"
    sends = "half a request"
    seconds_max = 1.0

    def run(self, victim: Victim) -> Outcome:
        (frame,) = metadata(3)()
        with victim.connect() as attacker:
            attacker.socket.settimeout(60)
            attacker.send(frame[:10])
            return Outcome(answers=[attacker.answer_to(frame)])


@pytest.fixture
def places(tmp_path: Path) -> Places:
    return Places(scratch=tmp_path, cache=tmp_path, kafka_jars=None)


def test_an_attack_is_measured_by_a_probe_beside_it(places: Places) -> None:
    row = run_one(Small(), OTTLA, places, quiet_seconds=0.05)
    assert row.waits.asked > 0
    assert 0 < row.waits.p99_ms <= row.waits.longest_ms
    # Nothing is left of a wait in which the broker and the probe had no core.
    assert 0 <= row.waits.served_ms <= row.waits.longest_ms
    assert not row.waits.lost
    assert not row.ended
    assert "INVALID_TOPIC_EXCEPTION" in row.said
    assert "small" in table([row], markdown=True)


def test_an_attack_that_does_not_end_is_ended_with_its_broker(places: Places) -> None:
    row = run_one(Unanswered(), OTTLA, places, quiet_seconds=0.05)
    assert row.ended == "ended: not answered in 1 s"
    assert row.waits.lost
    assert row.ended in row.faults()


def test_what_is_over_its_bound_is_said() -> None:
    attack = Idle()
    attack.bound = Bound(stall_ms=50, memory_mb=64, seconds=3, honest_seconds=3)
    fast = Waits(asked=1, longest_ms=500, served_ms=50, p99_ms=1, computed_ms=1)
    slow = Waits(asked=1, longest_ms=51, served_ms=51, p99_ms=1, computed_ms=1)

    def faults(waits: Waits, grown: int, seconds: float, honest: float | None) -> list[str]:
        outcome = Outcome(honest_seconds=honest)
        row = command.Row(attack=attack, waits=waits, grown=grown, seconds=seconds, said="", outcome=outcome)
        return row.faults()

    assert faults(fast, 64 * MB, 3, 3) == []
    assert faults(slow, 65 * MB, 3.1, 3.1) == ["stall", "memory", "time", "honest clients"]
    assert faults(fast, 0, 0, None) == ["honest clients"]
