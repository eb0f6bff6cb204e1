"""The conversations with coordinators, and what Apache Kafka 4.3 answered (``group-answers.txt``).

OTTLA_INTEROP_TARGET=kafka python -m tests.interop.group_answers    writes it anew; needs Java
"""

from __future__ import annotations

import itertools
import os
import tempfile
import uuid
from pathlib import Path

from confluent_kafka.admin import AdminClient

from tests.interop.group_scenarios import CLASSIC, Scenario
from tests.interop.group_scenarios_consumer import CONSUMER
from tests.interop.group_scenarios_offsets import OFFSETS
from tests.interop.group_scenarios_static import STATIC
from tests.interop.group_wire import Conversation

ANSWERS = Path(__file__).with_name("group-answers.txt")

SCENARIOS: dict[str, Scenario] = {**CLASSIC, **STATIC, **OFFSETS, **CONSUMER}

_numbers = itertools.count()


def converse(bootstrap: str, scenario: str, topic: str) -> list[str]:
    """Holds one conversation about a topic of two partitions; returns what was said."""
    talk = Conversation(bootstrap, topic, f"{uuid.uuid4().hex[:8]}-{next(_numbers)}")
    try:
        SCENARIOS[scenario](talk)
    finally:
        talk.close()
    return talk.lines


def recorded() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in ANSWERS.read_text().splitlines():
        if line.startswith("== "):
            lines = found[line[3:]] = []
        elif line:
            lines.append(line)
    return found


def main() -> None:
    from tests.interop.conftest import GROUP_PROPERTIES, TARGET, create_topic, new_broker

    assert TARGET == "kafka", "the answers are Apache Kafka's"
    with tempfile.TemporaryDirectory() as folder, new_broker(Path(folder), GROUP_PROPERTIES).server as server:
        create_topic(AdminClient({"bootstrap.servers": server.bootstrap}), "answers", partitions=2)
        text = ""
        for scenario in SCENARIOS:
            lines = converse(server.bootstrap, scenario, "answers")
            text += f"== {scenario}\n" + "".join(f"{line}\n" for line in lines) + "\n"
    ANSWERS.write_text(text)


if __name__ == "__main__":
    os.environ.setdefault("OTTLA_INTEROP_TARGET", "kafka")
    main()
