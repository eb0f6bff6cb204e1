"""A topic's small `segment.bytes` is taken, as Kafka 3.9 takes it, and said once."""

from __future__ import annotations

import pytest

from ottla.broker.announcements import sound_log_config
from ottla.config import Config


@pytest.mark.parametrize(("size", "times"), [(14, 1), (1_048_575, 1), (1_048_576, 0)])
def test_a_topics_small_segments_are_said_once(size: int, times: int, log_lines: list[str]) -> None:
    defaults = Config.parse({}).log
    topic = f"small-{size}"
    for _ in range(2):
        assert sound_log_config(topic, {"segment.bytes": str(size)}, defaults).segment_bytes == size
    said = [line for line in log_lines if topic in line]
    assert len(said) == times
    assert all(f"segment.bytes is {size}: segments below 1048576 bytes" in line for line in said)
