"""What is advertised is served, and documented."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

from ottla.handlers.routes import ROUTES, advertised
from ottla.protocol.apis import APIS


def test_every_route_has_a_handler() -> None:
    for route in ROUTES.values():
        assert callable(import_module(f"ottla.handlers.{route.module}").handle)


def test_no_range_goes_beyond_the_codecs() -> None:
    for key, low, high in advertised():
        assert APIS[key].min <= low <= high <= APIS[key].max


def test_the_compatibility_page_lists_what_is_advertised() -> None:
    page = (Path(__file__).parents[2] / "docs" / "compatibility.md").read_text()
    rows = re.findall(r"^\| (\d+) (\w+) \| (\d+)-(\d+) \|", page, re.MULTILINE)
    assert [(int(key), name, int(low), int(high)) for key, name, low, high in rows] == [
        (key, APIS[key].name, low, high) for key, low, high in advertised()
    ]
