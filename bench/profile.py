"""Where our broker spends its time: ``python -m bench.profile produce-small`` runs it under cProfile and a load.

For developers: cProfile triples the cost of a Python call, so read the shares and never the rates.
"""

from __future__ import annotations

import argparse
import pstats
import shutil
import sys
import tempfile
from pathlib import Path

from tools.server_process import ServerProcess

from bench.groups import Commits, shared_scenarios
from bench.servers import OTTLA, Places, Running, make
from bench.throughput import Throughput, scenarios

_REPOSITORY = Path(__file__).resolve().parent.parent


def profile(scenario: Throughput | Commits, seconds: float, places: Places) -> Path:
    """Returns the file with the profile."""
    plain = make(OTTLA, "profiled", places)
    found = places.scratch / "profile"
    command = [plain.command[0], "-m", "cProfile", "-o", str(found), *plain.command[1:]]
    server = ServerProcess(command, port=plain.port, log=plain.log, environment=plain.environment)
    server.start()
    try:
        running = Running(kind=OTTLA, server=server)
        if isinstance(scenario, Commits):
            scenario.prepare(running)
        outcome = scenario.once(running, seconds, places)
        print(f"{outcome.rate:,.0f} requests/s under the profiler")
    finally:
        server.stop()
    return found


def main() -> int:
    names: dict[str, Throughput | Commits] = {each.name: each for each in scenarios()}
    names |= {each.name: each for each in shared_scenarios()}
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("scenario", choices=names)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--lines", type=int, default=35)
    parser.add_argument("--order", default="tottime", choices=["tottime", "cumtime", "ncalls"])
    options = parser.parse_args()
    cache = _REPOSITORY / ".cache"
    cache.mkdir(exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix="profile-", dir=cache))
    places = Places(scratch=scratch, cache=cache / "bench", kafka_jars=None)
    try:
        found = profile(names[options.scenario], options.seconds, places)
        pstats.Stats(str(found), stream=sys.stdout).strip_dirs().sort_stats(options.order).print_stats(options.lines)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
