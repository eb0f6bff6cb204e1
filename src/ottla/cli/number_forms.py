"""How a format has numbers: `%o{big64}` as eight bytes, `%K{hex8}` as two hexadecimal digits. The words are rpk's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from ottla.cli.faults import UsageFault

#: Bytes of the forms that take so many, whatever the number is.
BYTES = {"8": 1, "16": 2, "32": 4, "64": 8}
#: Hexadecimal digits likewise.
HEX_DIGITS = {"hex4": 1, "hex8": 2, "hex16": 4, "hex32": 8, "hex64": 16}
NAMES = (
    "ascii",
    *HEX_DIGITS,
    *(f"{order}{bits}" for order in ("big", "little") for bits in BYTES),
    "byte",
    "bool",
)


def written(form: str | None) -> Callable[[int], bytes]:
    """Numbers that are too large for their form lose their upper end, as they do in rpk."""
    if form is None or form == "ascii":
        return lambda number: b"%d" % number
    if form == "bool":
        return lambda number: b"true" if number else b"false"
    if form in HEX_DIGITS:
        digits = HEX_DIGITS[form]
        mask = (1 << 4 * digits) - 1
        return lambda number: b"%0*x" % (digits, number & mask)
    order, size = byte_form(form)
    byte_mask = (1 << 8 * size) - 1
    return lambda number: (number & byte_mask).to_bytes(size, order)


def byte_form(form: str) -> tuple[Literal["big", "little"], int]:
    """The order and the number of bytes."""
    if form == "byte":
        return "big", 1
    orders: tuple[Literal["big", "little"], ...] = ("big", "little")
    for order in orders:
        if form.startswith(order) and form[len(order) :] in BYTES:
            return order, BYTES[form[len(order) :]]
    raise UsageFault(f"there is no form {{{form[:40]}}} of a number; known are {', '.join(NAMES)}")
