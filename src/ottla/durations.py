"""Lengths of time as people write them: `8d`, `1h30m`, `250ms`, and ISO 8601's `P8D`, `PT1H30M`, `PT0.25S`."""

from __future__ import annotations

import re
from typing import Final

_UNITS_MS: Final = {"w": 604_800_000, "d": 86_400_000, "h": 3_600_000, "m": 60_000, "s": 1000, "ms": 1}
_SHORT: Final = re.compile(r"(\d+(?:\.\d+)?)(ms|[wdhms])", re.IGNORECASE)
_ISO: Final = re.compile(r"P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?", re.IGNORECASE)
#: A thousand years: beyond it a number was mistyped, and sums with it would leave 64 bits.
DURATION_MS_MAX: Final = 1000 * 366 * 86_400_000


def duration_ms(text: str) -> int:
    """Whole milliseconds. Raises ValueError with what was expected."""
    stripped = text.strip()
    milliseconds = _iso_ms(stripped) if stripped[:1] in {"P", "p"} else _short_ms(stripped)
    if milliseconds is None:
        raise ValueError(f"'{text[:40]}' is no duration: give 8d, 1h30m, 250ms, or ISO 8601's P8D, PT1H30M")
    if milliseconds > DURATION_MS_MAX:
        raise ValueError(f"{text[:40]} is more than a thousand years")
    return round(milliseconds)


def _short_ms(text: str) -> float | None:
    found = _SHORT.findall(text)
    if not found or "".join(number + unit for number, unit in found) != text:
        return None
    total: float = sum(_number(number) * _UNITS_MS[unit.lower()] for number, unit in found)
    return total


def _iso_ms(text: str) -> float | None:
    found = _ISO.fullmatch(text)
    if found is None or not any(found.groups()) or text[-1] in {"T", "t"}:
        return None
    parts = [_number(part) if part else 0 for part in found.groups()]
    return sum(part * _UNITS_MS[unit] for part, unit in zip(parts, "dhms", strict=True))


def _number(text: str) -> float:
    """Whole numbers stay whole; a thousand digits are beyond the limit, and no float."""
    return float(text[:400]) if "." in text else int(text[:400])
