"""``python -m bench.attack [NAME...]``: what one client can do to all others, each attack against a broker of its own.

A probe in another process asks ApiVersions every five milliseconds meanwhile; its longest wait is what the attack costs
everybody else. The first two rows are what it waits when nobody attacks, on this machine and now.
"""

from __future__ import annotations

import argparse
import fnmatch
import os
import shlex
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

_REPOSITORY = Path(__file__).resolve().parent.parent
if __name__ == "__main__":  # also from a checkout whose package is not installed
    _sources = str(_REPOSITORY / "src")
    sys.path.insert(0, _sources)
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [_sources, os.environ.get("PYTHONPATH")]))

from tools.kafka_jars import JarsUnavailable, jars  # noqa: E402
from tools.server_process import ServerFailed, ServerProcess, raise_open_files_limit  # noqa: E402

from bench import machine  # noqa: E402
from bench.attacks import (  # noqa: E402
    arrays,
    baseline,
    batches,
    bombs,
    connections,
    crowds,
    fetches,
    groups,
    long_answers,
    names,
    overdue,
    partitions,
    scrapes,
    transactional_ids,
    transactions,
)
from bench.attacks.attack import MB, Attack, Outcome, Victim, in_words  # noqa: E402
from bench.attacks.probe import Probe, Waits  # noqa: E402
from bench.servers import KAFKA, OTTLA, Places, make  # noqa: E402

#: The machine is to survive a broker that does not.
MEMORY_MAX = 6_000 * MB
#: How often its memory is looked at, and whether the attack has ended.
LOOK_SECONDS = 0.02
#: Before and after an attack, for what the broker does on its own.
QUIET_SECONDS = 0.5
#: The least that a process may be asked to yield: nobody shall wait for the attacker's own work.
NICEST = 19


def every_attack(ids: int = transactional_ids.IDS) -> list[Attack]:
    """In the order of the table. `ids`: for how many transactional ids is asked."""
    before = (baseline, connections, crowds, long_answers, names, groups)
    behind = (partitions, fetches, batches, bombs, scrapes, transactions, overdue, arrays)
    return [
        *(attack for kind in before for attack in kind.attacks()),
        *transactional_ids.attacks(ids),
        *(attack for kind in behind for attack in kind.attacks()),
    ]


@dataclass(frozen=True, kw_only=True)
class Row:
    attack: Attack
    waits: Waits
    #: Bytes over what the broker had before, and over what was sent.
    grown: int
    seconds: float
    said: str
    outcome: Outcome
    #: Why the broker, or the attack, was ended.
    ended: str = ""

    def faults(self) -> list[str]:
        """What is beyond the attack's bound."""
        bound, found = self.attack.bound, list(self.outcome.faults)
        measured = [
            (bound.stall_ms, self.waits.served_ms, "stall"),
            (bound.memory_mb, self.grown / MB, "memory"),
            (bound.seconds, self.seconds, "time"),
            (bound.honest_seconds, self.outcome.honest_seconds, "honest clients"),
        ]
        found += [name for most, reached, name in measured if most is not None and (reached is None or reached > most)]
        if self.waits.lost:
            found.append("the probe was not answered")
        if self.ended:
            found.append(self.ended)
        return found


def run_one(attack: Attack, kind: str, places: Places, quiet_seconds: float = QUIET_SECONDS) -> Row:
    """Starts a broker, attacks it, and ends it."""
    with _started(attack, kind, places) as server:
        victim = Victim(
            kind=kind,
            port=server.port,
            pid=server.pid,
            data=places.scratch / attack.name,
            seconds_max=attack.seconds_max,
        )
        attack.prepare(victim)
        time.sleep(quiet_seconds)
        base = victim.resident()
        _forget_peak(server)
        with Probe(server.port, server.pid) as probe:
            work = Work(attack, victim)
            ended = _watch(work, server, victim)
            time.sleep(quiet_seconds)
            peak = _peak(server)
            waits = probe.waits()
        return Row(
            attack=attack,
            waits=waits,
            grown=max(0, peak - base - work.outcome.sent),
            seconds=work.seconds if work.outcome.seconds is None else work.outcome.seconds,
            said=work.in_words(),
            outcome=work.outcome,
            ended=ended or _exit(server),
        )


class Work:
    """The attack in a thread of its own, which yields to everybody else."""

    def __init__(self, attack: Attack, victim: Victim) -> None:
        self._attack = attack
        self._victim = victim
        self._failed = ""
        self.outcome = Outcome()
        self.seconds = 0.0
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.began = time.monotonic()
        self.thread.start()

    def _run(self) -> None:
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICEST)
        try:
            self.outcome = self._attack.run(self._victim)
        except ConnectionError as failed:  # a broker may refuse what it is sent
            self._failed = str(failed) or type(failed).__name__
        except TimeoutError:
            self.outcome.faults.append("not answered")
        except Exception as failed:  # of the attack itself, or of an honest client in it
            self._failed = str(failed) or type(failed).__name__
            self.outcome.faults.append("the attack failed")
        self.seconds = time.monotonic() - self.began

    def in_words(self) -> str:
        return self._failed or in_words(self.outcome)


def _watch(work: Work, server: ServerProcess, victim: Victim) -> str:
    """Until the attack has ended; says why it was ended, where it did not end by itself."""
    why = ""
    while work.thread.is_alive():
        if not why and server.running:
            with suppress(OSError):
                if victim.resident() > MEMORY_MAX:
                    why = f"ended: more than {MEMORY_MAX / MB:,.0f} MB"
            if time.monotonic() - work.began > victim.seconds_max:
                why = f"ended: not answered in {victim.seconds_max:g} s"
            if why:
                server.kill()  # closes the attack's connections, which ends it
        work.thread.join(LOOK_SECONDS)
    return why


def _forget_peak(server: ServerProcess) -> None:
    """The kernel begins anew to look for the most that is resident."""
    Path(f"/proc/{server.pid}/clear_refs").write_text("5")


def _peak(server: ServerProcess) -> int:
    with suppress(OSError):
        return machine.peak_memory(server.pid)
    return 0


def _exit(server: ServerProcess) -> str:
    return "" if server.running else f"the broker ended with {server.exit_code()}"


@contextmanager
def _started(attack: Attack, kind: str, places: Places) -> Iterator[ServerProcess]:
    server = make(kind, attack.name, places, properties=attack.properties)
    if attack.open_files is not None:
        soft, hard = attack.open_files
        limits = f'ulimit -Sn {soft} && ulimit -Hn {hard} && exec "$@"'
        server.command = ["sh", "-c", limits, "sh", *server.command]
    try:
        server.start()
        yield server
    finally:
        server.kill()
        shutil.rmtree(places.scratch / attack.name, ignore_errors=True)


# -- the table

HEADINGS = (
    "attack",
    "longest wait, ms",
    "while there was a core, ms",
    "computed, ms",
    "p99, ms",
    "memory, MB",
    "answered in, s",
    "the broker answered",
    "at most",
    "holds",
)
_NUMERIC = range(1, 7)


def cells(row: Row) -> list[str]:
    faults = row.faults()
    waits = row.waits
    honest = row.outcome.honest_seconds
    said = row.said if honest is None else f"{row.said}; honest clients waited {honest:.2f} s"
    return [
        row.attack.name,
        f"{waits.longest_ms:,.1f}",
        f"{waits.served_ms:,.1f}",
        f"{waits.computed_ms:,.0f}",
        f"{waits.p99_ms:,.1f}",
        f"{row.grown / MB:,.1f}",
        f"{row.seconds:,.2f}",
        said,
        row.attack.bound.text(),
        "yes" if not faults else f"NO: {', '.join(faults)}",
    ]


def table(rows: Sequence[Row], *, markdown: bool) -> str:
    lines = [list(HEADINGS), *map(cells, rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(HEADINGS))]
    shown = [
        [
            cell.rjust(width) if column in _NUMERIC else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ]
        for line in lines
    ]
    if markdown:
        rule = ["-" * (width - 1) + ":" if column in _NUMERIC else "-" * width for column, width in enumerate(widths)]
        return "\n".join("| " + " | ".join(line) + " |" for line in [shown[0], rule, *shown[1:]])
    body = ["  ".join(line).rstrip() for line in shown]
    return "\n".join([body[0], "  ".join("-" * width for width in widths), *body[1:]])


def arguments(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench.attack", description="What one client can do to all others, and what it is to cost them."
    )
    parser.add_argument(
        "name", nargs="*", help="attacks, or patterns of shells such as long-*; all of them where none is named"
    )
    parser.add_argument("--target", choices=[OTTLA, KAFKA], default=OTTLA, help="the broker that is attacked")
    parser.add_argument("--list", action="store_true", help="say what each attack sends and what its bound is")
    parser.add_argument("--markdown", action="store_true", help="print the table as docs/reliability.md has it")
    parser.add_argument(
        "--ids",
        type=int,
        default=transactional_ids.IDS,
        metavar="COUNT",
        help=f"how many ids txn-ids asks for ({transactional_ids.IDS:,}); a broker has room for 1,000,000",
    )
    parser.add_argument("--data", type=Path, default=_REPOSITORY / ".cache", help="folder on the disk to use")
    return parser.parse_args(words)


def main(words: Sequence[str] | None = None) -> int:
    options = arguments(words)
    every = {attack.name: attack for attack in every_attack(options.ids)}
    if unknown := [pattern for pattern in options.name if not fnmatch.filter(every, pattern)]:
        print(f"no attack is called {', '.join(unknown)}; --list says which there are", file=sys.stderr)
        return 2
    wanted = [name for name in every if not options.name or any(fnmatch.fnmatch(name, one) for one in options.name)]
    if options.list:
        width = max(map(len, every))
        for attack in every.values():
            print(f"{attack.name:{width}}  {attack.sends}; at most {attack.bound.text() or 'what it takes'}")
        return 0
    try:
        kafka_jars = jars() if options.target == KAFKA else None
    except JarsUnavailable as missing:
        print(missing, file=sys.stderr)
        return 1
    raise_open_files_limit()
    options.data.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix="attack-", dir=options.data))
    places = Places(scratch=scratch, cache=_REPOSITORY / ".cache" / "bench", kafka_jars=kafka_jars)
    try:
        rows = run([every[name] for name in wanted], options.target, places)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    said = shlex.join(["python", "-m", "bench.attack", *(sys.argv[1:] if words is None else words)])
    print(f"`{said}` on {machine.description()}.\n")
    print(table(rows, markdown=options.markdown))
    missed = [row.attack.name for row in rows if row.faults()]
    print(f"\n{len(missed)} of {len(rows)} beyond their bounds{': ' if missed else ''}{', '.join(missed)}")
    return 1 if missed else 0


def run(attacks: Sequence[Attack], kind: str, places: Places) -> list[Row]:
    rows = []
    for attack in attacks:
        print(f"{attack.name}: {attack.sends}", file=sys.stderr, flush=True)
        try:
            row = run_one(attack, kind, places)
        except ServerFailed as failed:
            print(f"  {failed}", file=sys.stderr, flush=True)
            continue
        rows.append(row)
        shown = ", ".join(f"{name} {cell}" for name, cell in zip(HEADINGS[1:], cells(row)[1:], strict=True))
        print(f"  {shown}", file=sys.stderr, flush=True)
    return rows


if __name__ == "__main__":
    raise SystemExit(main())
