"""Bugs that are planted to show that the search finds them: each with its patch, its profile, its catcher, its seed.

    python -m tests.testing.sim.planted.registry NAME FIRST COUNT      which of these seeds find it, and by what
    python -m tests.testing.sim.planted.registry kept                  what finds each behind its kept seed, and its CPU

The patches stand in `replication.py`, `control.py` and `transactions.py`; nothing of them is in `src/`. The catcher is
the invariant that must name the bug; where several follow from one another, whichever is looked at first may.
`HistoryFault` is what clients see, or that the cluster is not well again in time.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import pytest
from tests.testing.sim.planted import control, replication, transactions

from ottla.testing.sim.profiles import PROFILES, Profile
from ottla.testing.sim.schedule import ScheduleFailed
from ottla.testing.sim.search import schedule

#: A member of an ISR, or a leader, lacks what is committed: which of the four names it depends on who is there.
LACKING: Final = frozenset({"WeakIsr", "StrongIsr", "LeaderCompleteness", "LeaderCandidateCompleteness"})


#: Every change of the broker changes what a seed does: one of so many behind the kept one finds it then.
SEEDS_BEHIND: Final = 12


@dataclass(frozen=True, slots=True)
class Planted:
    plant: Callable[[pytest.MonkeyPatch], None]
    profile: str
    caught_by: frozenset[str]
    #: One that finds it, at the time of writing; else one of those behind it.
    seed: int

    @property
    def name(self) -> str:
        return self.plant.__name__

    @property
    def faults(self) -> Profile:
        return PROFILES[self.profile]


def _one(name: str) -> frozenset[str]:
    return frozenset({name})


HISTORY: Final = _one("HistoryFault")

PLANTED: Final = (
    Planted(replication.truncated_to_the_watermark, "short terms", LACKING, 1),
    Planted(replication.never_truncated, "short terms", HISTORY, 4),
    Planted(replication.vouched_before_the_flush, "power", LACKING | {"LogMatching"}, 25),
    Planted(replication.shrunk_before_the_answer, "links", frozenset({"MaximalIsr", "WeakIsr", "ConsistentRead"}), 2),
    Planted(replication.joiner_counted_late, "processes", _one("MaximalIsr"), 1),
    Planted(replication.counts_itself_alone, "processes", LACKING, 1),
    Planted(replication.acknowledged_before_the_watermark, "processes", _one("AcknowledgedIsCommitted"), 1),
    Planted(replication.watermark_falls, "processes", _one("WatermarksNeverFall"), 1),
    Planted(replication.all_committed_on_taking_over, "short terms", LACKING, 5),
    Planted(replication.joins_at_once, "processes", LACKING, 1),
    Planted(replication.offsets_believed_too_much, "processes", LACKING, 1),
    Planted(replication.shown_above_the_watermark, "short terms", HISTORY, 1),
    Planted(replication.repetitions_stored_again, "short terms", HISTORY, 4),
    Planted(control.elected_outside_the_isr, "short terms", _one("ElectedFromIsr"), 1),
    Planted(control.led_in_the_same_term, "processes", _one("EpochsNeverFall"), 1),
    Planted(
        control.first_replica_elected, "short terms", frozenset({"ElectedFromIsr", "DeadLeaveAtOnce"}) | LACKING, 1
    ),
    Planted(control.watches_lost_after_a_reconnect, "tree", HISTORY, 2),
    Planted(control.stands_aside_for_good, "silence", HISTORY, 1),
    Planted(control.old_generation_accepted, "processes", HISTORY, 1),
    Planted(control.partitions_given_too_early, "processes", HISTORY, 2),
    Planted(control.old_member_epoch_accepted, "processes", HISTORY, 3),
    Planted(replication.counted_before_the_checks, "short terms", LACKING | HISTORY, 16),
    Planted(replication.watermark_moves_under_the_minimum, "quorum loss", _one("WatermarkKeepsMinimum"), 1),
    Planted(replication.the_segment_of_the_start_removed, "trimmed", HISTORY, 1),
    Planted(replication.batches_across_the_start_refused, "trimmed", HISTORY, 860000002),
    Planted(replication.joins_under_the_minimum_for_ever, "processes", _one("JoinsAtTheEnd"), 3),
    Planted(replication.followers_forget_producers, "short terms", HISTORY, 4),
    Planted(replication.two_fetchers, "short terms", HISTORY | LACKING | _one("LogMatching"), 34),
    Planted(replication.commits_before_the_watermark, "links", HISTORY, 1),
    Planted(control.bounce_unseen, "forgetful", LACKING, 2),
    Planted(control.dead_stay_in_the_isr, "deaths", _one("DeadLeaveAtOnce"), 2),
    Planted(control.lease_not_renewed, "quiet", HISTORY, 1),
    Planted(control.last_member_leaves, "processes", _one("LeaderInIsr"), 1),
    Planted(control.sessions_never_expire, "processes", HISTORY | _one("OwnIdIsWaitedFor"), 1),
    Planted(control.session_ids_given_twice, "quiet", HISTORY, 1),
    Planted(control.session_ids_given_again, "processes", frozenset({"OneOwnerPerSession", "DeadLeaveAtOnce"}), 1),
    Planted(control.producer_ids_given_twice, "processes", HISTORY, 2),
    Planted(replication.watermark_beyond_the_log, "small fetches", _one("WatermarkInLog"), 1),
    Planted(replication.diverging_by_the_end_alone, "unclean terms", HISTORY | LACKING | _one("LogMatching"), 2),
    Planted(replication.cut_where_the_leader_says, "unclean terms", HISTORY | _one("LogMatching"), 4),
    Planted(replication.epochs_kept_when_cut, "unclean terms", HISTORY | _one("LogMatching"), 19),
    Planted(replication.latest_before_the_watermark_is_known, "slow deaths", HISTORY, 3),
    Planted(replication.asked_once, "lost answers", HISTORY, 0),
    Planted(replication.followers_forgotten_in_the_same_term, "controllers", _one("LeadsOn"), 1),
    Planted(replication.waiters_failed_in_the_leaders_own_next_term, "processes", _one("LeadsOn"), 1),
    Planted(replication.parked_fetches_hear_of_records_alone, "quiet", _one("FollowersHearSoon"), 1),
    Planted(control.own_earlier_id_refused, "power", _one("OwnIdIsWaitedFor"), 1),
    Planted(replication.resigned_leaders_acknowledge, "cut off", _one("AcknowledgedIsCommitted"), 2),
    Planted(control.anybody_may_join, "rejoins", LACKING | HISTORY, 9),
    Planted(control.old_registration_may_join, "rejoins", LACKING, 31),
    Planted(replication.cleaned_above_the_watermark, "compacted", HISTORY, 64),
    Planted(control.unfenced_controller, "deposed", frozenset({"FencedChangesNothing", "EpochsNeverFall"}), 18),
    Planted(control.stale_controller_obeyed, "deposed", HISTORY | LACKING | _one("MaximalIsr"), 25),
    Planted(control.partition_epoch_ignored, "late answers", _one("MaximalIsr"), 5),
    Planted(control.older_states_of_the_term_taken, "late answers", _one("MaximalIsr"), 56),
    Planted(control.deletions_forgotten_by_a_takeover, "recreated", HISTORY, 1),
    Planted(control.marks_left_behind, "recreated", HISTORY, 10),
    Planted(control.stands_once, "controllers", HISTORY, 1),
    Planted(control.settings_read_at_a_start_alone, "settings", HISTORY, 1),
    Planted(control.moves_forgotten_by_a_takeover, "deposed", HISTORY, 5),
    Planted(control.strangers_taken_for_ours, "recreated", HISTORY | LACKING | _one("OneLeaderPerEpoch"), 4),
    Planted(transactions.commit_answered_before_it_is_decided, "transactions", _one("CommitIsDecided"), 1),
    Planted(
        transactions.epoch_kept_on_a_fence,
        "transactions",
        frozenset({"EveryTransactionEnds", "FencedProducersWriteNothing", "NoAbortedRead"}),
        1,
    ),
    Planted(transactions.decided_ends_forgotten_by_a_load, "transactions", _one("EveryTransactionEnds"), 2),
    Planted(transactions.time_never_over, "transactions", _one("EveryTransactionEnds"), 31),
    Planted(
        transactions.markers_become_aborts_when_sent_again,
        "transactions",
        frozenset({"OneOutcome", "AllOrNothing", "NoAbortedRead"}),
        4,
    ),
    Planted(
        transactions.late_batches_appended,
        "transactions",
        frozenset({"NothingBehindTheMarker", "FencedProducersWriteNothing"}),
        1,
    ),
    Planted(transactions.all_stable_to_the_watermark, "transactions", _one("StableBelowOpen"), 1),
    Planted(transactions.stable_before_the_marker_is_committed, "transactions", _one("StableBelowOpen"), 1),
    Planted(
        transactions.open_forgotten_by_a_restart, "transactions", frozenset({"StableBelowOpen", "NoAbortedRead"}), 2
    ),
    Planted(transactions.aborts_across_segments_missed, "transactions", _one("NoAbortedRead"), 2),
    Planted(transactions.aborts_never_listed, "transactions", _one("NoAbortedRead"), 1),
    Planted(transactions.open_ones_called_aborted, "transactions", _one("NoCycle"), 3),
    Planted(transactions.pending_offsets_seen_early, "transactions", _one("PendingOffsetsWait"), 1),
    Planted(transactions.offsets_of_fenced_producers_taken, "transactions", _one("FencedCommitNoOffsets"), 1),
    Planted(transactions.committed_offsets_forgotten, "transactions", frozenset({"AllOrNothing", "NothingTwice"}), 3),
    Planted(transactions.markers_sent_once, "transactions", _one("EveryTransactionEnds"), 2),
    Planted(
        transactions.earlier_partitions_forgotten,
        "transactions",
        frozenset({"EveryTransactionEnds", "FencedProducersWriteNothing", "NoAbortedRead"}),
        1,
    ),
)


def found_by(planted: Planted, seed: int) -> str | None:
    """What this seed finds with the bug in place; None: nothing."""
    try:
        schedule(seed, planted.faults).run()
    except ScheduleFailed as failed:
        return failed.invariant
    return None


def found_among(planted: Planted, first: int, count: int) -> tuple[int, str] | None:
    """The first of so many seeds that finds it, and what that finds."""
    for seed in range(first, first + count):
        caught = found_by(planted, seed)
        if caught is not None:
            return seed, caught
    return None


def main(arguments: list[str]) -> None:
    if arguments == ["kept"]:
        _look_at_kept()
        return
    name, first, count = arguments[0], int(arguments[1]), int(arguments[2])
    for planted in PLANTED:
        if name not in (planted.name, "all"):
            continue
        with pytest.MonkeyPatch.context() as patch:
            planted.plant(patch)
            found = {}
            for seed in range(first, first + count):
                if caught := found_by(planted, seed):
                    found[seed] = caught
                    if name == "all":
                        break
        print(planted.name, planted.profile, found or "NOT FOUND", flush=True)


def _look_at_kept() -> None:
    for planted in PLANTED:
        with pytest.MonkeyPatch.context() as patch:
            planted.plant(patch)
            began = time.process_time()
            found = found_among(planted, planted.seed, SEEDS_BEHIND)
            cpu_s = time.process_time() - began
        is_caught = found is not None and found[1] in planted.caught_by
        print(f"{planted.name}, kept {planted.seed}: {found if is_caught else 'NOT FOUND'}, {cpu_s:.1f} s", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
