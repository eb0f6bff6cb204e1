"""What administrators are answered, each answer compared with Apache Kafka's to the same request.

`DIFFERENT` names every answer that is another one here, with the reason.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.conftest import WatchServer
from tests.interop.admin_answers import QUESTIONS, ask, prepare, recorded
from tests.interop.broker import Broker
from tests.interop.conftest import TARGET, new_broker

DIFFERENT: dict[str, str] = {
    "set 1 topic 't' segment.bytes='1'": "the least is Kafka 3.9's, 14",
    "replace 1 topic 't' segment.bytes='1'": "the same",
}


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory, watch_server: WatchServer) -> Iterator[Broker]:
    broker = new_broker(tmp_path_factory.mktemp("admin-broker"))
    with watch_server(broker.server), broker.server:
        prepare(broker.bootstrap)
        yield broker


def by_question(lines: list[str]) -> dict[str, list[tuple[str, ...]]]:
    """The answers to each line that is a question; some are asked more than once."""
    found: dict[str, list[tuple[str, ...]]] = {}
    asked: list[str] = []
    answers: list[str] = []
    for line in [*lines, ""]:
        if line.startswith("  "):
            answers.append(line)
            continue
        if answers:
            for each in asked:
                found.setdefault(each, []).append(tuple(answers))
            asked, answers = [], []
        asked.append(line)
    return found


def test_every_question_is_recorded() -> None:
    assert list(recorded()) == list(QUESTIONS)


@pytest.mark.parametrize("question", QUESTIONS)
def test_answers_are_kafkas(fresh: Broker, question: str) -> None:
    kafkas, ours = by_question(recorded()[question]), by_question(ask(fresh.bootstrap, question))
    assert kafkas.keys() == ours.keys()
    known = () if TARGET == "kafka" else tuple(DIFFERENT)
    differing = {each: (kafkas[each], ours[each]) for each in kafkas if kafkas[each] != ours[each]}
    assert {each: pair for each, pair in differing.items() if not each.startswith(known)} == {}
