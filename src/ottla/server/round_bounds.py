"""What one round may take and do, so that others wait for milliseconds only (`docs/decisions/whose-turn.md`)."""

from __future__ import annotations

from typing import Final

#: Frames of one connection in one round; the others' turn comes before its next ones.
FRAMES_A_ROUND: Final = 32
#: Of a crowd together, one after the other: a thousand that pipeline have so many turns a second the more.
FRAMES_A_CYCLE: Final = 512
NO_CROWD: Final = FRAMES_A_CYCLE // FRAMES_A_ROUND
#: What frames may take in one round: those that come whole, then those that come in pieces, then those that waited;
#: frames of control connections apart.
ROUND_MS: Final = 5
#: The same for long frames and for what earlier rounds left, and for closing, while a round is over before all that are
#: ready had their turn: these wait for the sum of all.
CROWDED_MS: Final = 2
CLOSING_CROWDED_MS: Final = 1
#: A long frame takes time again when the round writes it, which is counted at once: a millisecond for each 512 KB.
WRITTEN_A_MS_SHIFT: Final = 19
#: What closing of connections may take in one round.
CLOSING_MS: Final = 3
#: A look at the clock comes after so many answers and one more.
SETTLED_A_LOOK: Final = 7
#: A look at the clock comes after so many requests that lanes have taken, by some microseconds each.
DONE_A_LOOK: Final = 16
#: What a short frame of a hot API counts more than one of those.
DONE_BY_HOT: Final = 3
#: A frame of more may name some tens of partitions, and its batches may each roll a segment.
SHORT_BYTES: Final = 2048
#: Patient requests in one round: a thousand members that join at once take as long as ever, but others come between.
PATIENT_A_ROUND: Final = 64
