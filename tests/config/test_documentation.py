"""`docs/configuration.md` says of every property what the table says."""

from __future__ import annotations

import re
from pathlib import Path

from ottla.config.definitions import broker_definitions, group_definitions, topic_definitions
from ottla.config.values import Definition

PAGE = Path(__file__).parents[2] / "docs" / "configuration.md"
CHANGES = {"read-only": "no", "cluster-wide": "all brokers", "per-broker": "one broker"}


def row(definition: Definition) -> str:
    default = {None: "none", "": "(empty)"}.get(definition.default, f"`{definition.default}`")
    cells = [f"`{definition.name}`", definition.type, default, f"`{definition.rule}`" if definition.rule else ""]
    if definition.update_mode in CHANGES:
        cells.append(CHANGES[definition.update_mode])
    return f"| {' | '.join([*cells, definition.documentation])} |"


def test_every_property_stands_on_the_page_as_in_the_table() -> None:
    effective, _, rest = PAGE.read_text(encoding="utf-8").partition("## Properties that have no effect yet")
    later, _, ineffective = rest.partition("## Properties that are known and have no effect")
    known = [*broker_definitions().values(), *topic_definitions().values(), *group_definitions().values()]
    rows = {row(definition) for definition in known if definition.has_effect and not definition.is_internal}
    on_the_page = {line for line in effective.splitlines() if line.startswith("| `")}
    assert rows - on_the_page == set()
    assert on_the_page - rows == set()
    assert names_in(later) == {definition.name for definition in known if definition.status == "later"}
    assert names_in(ineffective) == {definition.name for definition in known if definition.status == "unused"}


def names_in(text: str) -> set[str]:
    return set(re.findall(r"`([^`]+)`", text))
