"""Regular expressions that clients send: RE2's, with bounds on what each may cost.

RE2 promises to match in linear time whatever a client sends: linear in the text times the size of the compiled program,
which nested repeats make a thousand times the size of the expression. So the program has a bound, and a user of
`compiled` counts `programsize` for each character.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import re2

#: RE2's memory for one expression, program and states.
PATTERN_BYTES_MAX: Final = 256 * 1024
#: Of an expression: two hundred topics one beside the other fit, and it is compiled within five milliseconds.
EXPRESSION_LENGTH_MAX: Final = 4_096
#: RE2's instructions for one expression. Each takes some three nanoseconds a character: a name of 249 characters, the
#: longest of a topic, takes four milliseconds at the most.
PROGRAM_SIZE_MAX: Final = 5_000
#: Repetitions that an expression counts, all together: each makes one instruction at least, and takes time before RE2
#: finds that the program becomes too large.
REPETITIONS_MAX: Final = PROGRAM_SIZE_MAX
#: `\\p{...}` takes a hundred microseconds each to compile, and no topic's name has a letter beyond ASCII.
UNICODE_CLASSES_MAX: Final = 32

_COUNTED: Final = re.compile(r"\{(\d{1,9})(?:,(\d{0,9}))?\}")
_UNICODE_CLASS: Final = re.compile(r"\\[pP]")
#: What RE2 reads otherwise, or more slowly, where a character is a byte.
_NEEDS_UNICODE: Final = re.compile(r"\\[pPx]|[^\x00-\x7f]")


class BadExpression(Exception):
    """It is no expression, or too costly a one; the message says which, for the client."""


def compiled(pattern: str, *, is_ascii: bool) -> re2._Regexp[bytes]:
    """`is_ascii`: what it is matched with."""
    import re2  # a native library that few brokers ever need: 20 ms of start-up

    _check_cost(pattern)
    options = re2.Options()
    options.log_errors = False
    options.max_mem = PATTERN_BYTES_MAX
    options.never_capture = True
    if is_ascii and _NEEDS_UNICODE.search(pattern) is None:
        # A dot is one instruction then, and not nine.
        options.encoding = re2.Options.Encoding.LATIN1
    try:
        found = re2.compile(pattern.encode(), options)
    except re2.error as fault:
        said = fault.args[0] if fault.args else fault
        reason = said.decode(errors="replace") if isinstance(said, bytes) else str(said)
        raise _bad(pattern, reason) from fault
    if found.programsize > PROGRAM_SIZE_MAX:
        raise _bad(pattern, "pattern too large")
    return found


def _check_cost(pattern: str) -> None:
    """What takes long before RE2 itself finds that it is too much."""
    if len(pattern) > EXPRESSION_LENGTH_MAX:
        raise _bad(f"{pattern[:100]}...", f"it has more than {EXPRESSION_LENGTH_MAX} characters")
    if sum(int(most or least) for least, most in _COUNTED.findall(pattern)) > REPETITIONS_MAX:
        raise _bad(pattern, f"it counts more than {REPETITIONS_MAX} repetitions")
    if len(_UNICODE_CLASS.findall(pattern)) > UNICODE_CLASSES_MAX:
        raise _bad(pattern, f"it has more than {UNICODE_CLASSES_MAX} classes of Unicode")


def _bad(pattern: str, reason: str) -> BadExpression:
    return BadExpression(f"`{pattern}` is no regular expression: {reason}")
