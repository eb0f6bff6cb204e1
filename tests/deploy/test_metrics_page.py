"""`docs/metrics.md` has every metric that a broker shows, with its type, its labels and its help."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

from tests.conftest import REPOSITORY

from ottla.app import running
from ottla.config import Config
from ottla.ports.real import real_ports

PAGE = REPOSITORY / "docs" / "metrics.md"


async def shown(folder: Path) -> tuple[dict[str, tuple[str, tuple[str, ...]]], str]:
    ports = real_ports()
    config = Config.parse({"listeners": "PLAINTEXT://127.0.0.1:0", "log.dirs": str(folder)})
    try:
        async with running(config, ports) as (broker, _):
            return broker.registry.families, broker.registry.render()
    finally:
        ports.network.close()
        ports.workers.close()


def test_the_page_has_every_metric(tmp_path: Path) -> None:
    families, text = asyncio.run(shown(tmp_path))
    helps = dict(re.findall(r"^# HELP (\S+) (.*)$", text, re.MULTILINE))
    types = dict(re.findall(r"^# TYPE (\S+) (.*)$", text, re.MULTILINE))
    labels = {name: ", ".join(names) for name, (_, names) in families.items()}
    wanted = [f"| `{name}` | {types[name]} | {labels.get(name, '')} | {helps[name]} |" for name in sorted(helps)]
    written = [line for line in PAGE.read_text().splitlines() if line.startswith("| `") and line.count(" | ") == 3]
    rows = [line for line in written if re.match(r"\| `(kafka|ottla|process)_", line)]
    assert sorted(rows) == sorted(wanted), "\n".join(wanted)


def test_the_page_has_every_alert() -> None:
    alerts = (REPOSITORY / "deploy" / "prometheus" / "ottla-alerts.yml").read_text()
    for name in re.findall(r"alert: (\w+)", alerts):
        assert f"`{name}`" in PAGE.read_text(), name


def test_the_page_shows_the_example_that_is_tested() -> None:
    (shown,) = re.findall(r"```yaml\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert shown == (REPOSITORY / "deploy" / "prometheus" / "prometheus.yml").read_text()
