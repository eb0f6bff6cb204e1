"""Which values of a file stand out of line, where each should lie above the one before it.

Offsets and leader epochs of batches are not covered by their checksums, so a damaged one looks sound by itself. A value
that is too high makes all that follow it look too low: blaming each value that is less than one before it would name
the sound ones. Instead the fewest values are blamed that leave the rest in order:

    100  101  258  103  104           258 is out of line, and 103 and 104 are not
    100  101  102    7  104           7 is

A value takes as much room as its batch has offsets, which its checksum does cover: 102 cannot be what is wrong in
`102, 102, 104` if there is no room for it before the second. Doubt is resolved within a few values: memory is bounded.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

#: So many values in a row may be out of line, and the ones behind them still show which these are.
OUT_OF_LINE_MAX: Final = 8


class MisplacedValue(NamedTuple):
    """A value out of line: where it stands in the file, and between which it would have to lie."""

    position: int
    value: int
    #: The least that it could be.
    due: int
    #: What it would have to end before; None where nothing limits it.
    before: int | None


#: Position, the value, its span, and the least that it could be by those before it.
LineValue = tuple[int, int, int, int]


class RisingOrder:
    """Values in the order of the file; `span` is how much of the range a value takes, from itself on."""

    def __init__(self, due: int, end: int | None = None) -> None:
        #: The least that the next value may be.
        self.due = due
        #: No value goes beyond this one.
        self.end_max = end
        #: The last values that are in line.
        self._line: deque[LineValue] = deque(maxlen=OUT_OF_LINE_MAX)
        #: Values that are too low, or behind which a few others are too high.
        self._suspects: list[LineValue] = []

    def takes(self, position: int, first: int, span: int) -> bool:
        """Takes a value that is in line while nothing is in doubt, as nearly all are; False where `add` has to look."""
        due = first + span
        if first < self.due or self._suspects or (self.end_max is not None and due > self.end_max):
            return False
        self._line.append((position, first, span, self.due))
        self.due = due
        return True

    @property
    def is_in_doubt(self) -> bool:
        return bool(self._suspects)

    def has_taken(self, last: Sequence[LineValue], due: int) -> None:
        """Some values were in line, each behind the one before, of which these are the last."""
        assert not self._suspects
        assert due >= self.due
        self._line.extend(last)
        self.due = due

    def add(self, position: int, first: int, span: int) -> Iterator[MisplacedValue]:
        """Takes the next value; yields what turns out to be out of line, perhaps values before it."""
        if self.end_max is not None and first + span > self.end_max:
            yield MisplacedValue(position, first, self.due, self.end_max)
        elif first >= self.due:
            yield from self.end()
            self._accept(position, first, span)
        elif self._suspects and first < self._suspects[-1][1] + self._suspects[-1][2]:
            yield MisplacedValue(position, first, self.due, None)
        else:
            self._suspects.append((position, first, span, self.due))
            yield from self._weigh()

    def end(self) -> Iterator[MisplacedValue]:
        """What is still in doubt is out of line: the values before it are more."""
        for position, first, _, due in self._suspects:
            yield MisplacedValue(position, first, due, None)
        self._suspects.clear()

    def _accept(self, position: int, first: int, span: int) -> None:
        self._line.append((position, first, span, self.due))
        self.due = first + span

    def _weigh(self) -> Iterator[MisplacedValue]:
        wrong = self._fewest_too_high()
        if wrong is None:
            yield from self.end()
        elif len(self._suspects) >= wrong:
            suspects, self._suspects = self._suspects, []
            blamed = [self._line.pop() for _ in range(wrong)][::-1]
            due, before = blamed[0][3], suspects[0][1]
            for position, first, _, _ in blamed:
                yield MisplacedValue(position, first, due, before)
            self.due = due
            for position, first, span, _ in suspects:
                self._accept(position, first, span)

    def _fewest_too_high(self) -> int | None:
        """How many of the last values would have to be wrong for the suspects to be right, if so few can be."""
        room = 0
        for count, (_, _, span, due) in enumerate(reversed(self._line), 1):
            room += span
            if due + room <= self._suspects[0][1]:
                return count
        return None
