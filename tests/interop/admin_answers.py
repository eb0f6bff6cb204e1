"""What administrators ask, and what Apache Kafka 4.3 answered (``admin-answers.txt``).

OTTLA_INTEROP_TARGET=kafka python -m tests.interop.admin_answers    writes it anew; needs Java
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from ottla.protocol.generated.create_topics import CreatableTopic, CreateTopicsRequest
from tests.interop.admin_questions import QUESTIONS
from tests.interop.admin_talk import AdminTalk

ANSWERS = Path(__file__).with_name("admin-answers.txt")


def prepare(bootstrap: str) -> None:
    with AdminTalk(bootstrap) as talk:
        topic = CreatableTopic(name="t", num_partitions=1, replication_factor=1)
        (created,) = talk.ask(CreateTopicsRequest(topics=[topic], timeout_ms=10_000), 7).topics
    assert created.error_code == 0, created


def ask(bootstrap: str, question: str) -> list[str]:
    with AdminTalk(bootstrap) as talk:
        QUESTIONS[question](talk)
        return talk.lines


def recorded() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for line in ANSWERS.read_text().splitlines():
        if line.startswith("== "):
            lines = found[line[3:]] = []
        elif line:
            lines.append(line)
    return found


def main() -> None:
    from tests.interop.conftest import TARGET, new_broker

    assert TARGET == "kafka", "the answers are Apache Kafka's"
    text = ""
    with tempfile.TemporaryDirectory() as folder, new_broker(Path(folder)).server as server:
        prepare(server.bootstrap)
        for question in QUESTIONS:
            text += f"== {question}\n" + "".join(f"{line}\n" for line in ask(server.bootstrap, question)) + "\n"
    ANSWERS.write_text(text)


if __name__ == "__main__":
    os.environ.setdefault("OTTLA_INTEROP_TARGET", "kafka")
    main()
