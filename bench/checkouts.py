"""What a change costs: this checkout's broker and another's, in turns under the same load.

    git worktree add ../before COMMIT && (cd ../before && python setup.py build_ext --inplace)
    python -m bench.checkouts ../before --rounds 9

Both serve at the same time, each on the core that the load leaves free, and one of them is asked at a time; the order
changes from round to round. Ratios are medians of pairs that were measured one after the other.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from typing import Final

from tools.ottla_server import SOURCES, ottla_broker

from bench import machine
from bench.groups import Commits, shared_scenarios
from bench.servers import OTTLA, OURS, PROPERTIES, Places, Running
from bench.throughput import Throughput, figures, scenarios

_REPOSITORY: Final = Path(__file__).resolve().parent.parent
_WARM_SECONDS: Final = 2.0
#: Of each scenario, what its table shows.
_SHOWN: Final = {"rate": "k/s", "cpu": "us CPU a request", "cpu_gigabyte": "s CPU a GB", "p50": "us p50"}

Work = Throughput | Commits


@contextmanager
def _broker(sources: Path, name: str, places: Places) -> Iterator[Running]:
    server = ottla_broker(places.scratch / name / "data", properties={**PROPERTIES, **OURS}, sources=sources)
    try:
        server.start()
        yield Running(kind=OTTLA, server=server)
    finally:
        server.kill()


def compare(
    work: Work, brokers: Mapping[str, Running], rounds: int, seconds: float, places: Places
) -> dict[str, list[Mapping[str, float]]]:
    """By broker, what it reached in each round."""
    found: dict[str, list[Mapping[str, float]]] = {name: [] for name in brokers}
    for running in brokers.values():
        if isinstance(work, Commits):
            work.prepare(running)
        work.once(running, _WARM_SECONDS, places)
    names = list(brokers)
    for _ in range(rounds):
        for name in names:
            found[name].append(figures(work.once(brokers[name], seconds, places)))
        names.reverse()
    return found


def lines(title: str, found: Mapping[str, Sequence[Mapping[str, float]]], measures: Sequence[str]) -> Iterator[str]:
    """A line for each measure: each broker's median, and the others' ratios to the first one."""
    yield title
    for measure in (each for each in _SHOWN if each in measures):
        words = []
        for name, rounds in found.items():
            of_broker = [each[measure] for each in rounds]
            pairs = zip(of_broker, (each[measure] for each in next(iter(found.values()))), strict=True)
            ratio = median(mine / first for mine, first in pairs if first)
            words.append(f"{name} {median(of_broker):.2f} ({ratio:.3f})")
        yield f"  {_SHOWN[measure]:18} {'   '.join(words)}"


def main() -> int:
    works: dict[str, Work] = {each.name: each for each in scenarios()}
    works |= {each.name: each for each in shared_scenarios()}
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("others", nargs="+", type=Path, help="folders of other checkouts, compiled in place")
    parser.add_argument("--only", action="append", choices=works, help="one load; as often as wanted")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=3.0)
    options = parser.parse_args()
    cache = _REPOSITORY / ".cache"
    cache.mkdir(exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix="checkouts-", dir=cache))
    places = Places(scratch=scratch, cache=cache / "bench", kafka_jars=None)
    print(f"{machine.description()}, {options.rounds} rounds of {options.seconds:g} s; in brackets: ratio to the first")
    try:
        with ExitStack() as stack:
            sources = {other.resolve().name: other.resolve() / "src" for other in options.others} | {"this": SOURCES}
            brokers = {
                name: stack.enter_context(_broker(each, f"broker-{number}", places))
                for number, (name, each) in enumerate(sources.items())
            }
            for name in options.only or works:
                work = works[name]
                found = compare(work, brokers, options.rounds, options.seconds, places)
                measures = [each.name for each in work.measures]
                print(*lines(name, found, measures), sep="\n", flush=True)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
