"""Runs `./test` many times, some with processes beside it that do nothing but compute, and counts what failed.

    python -m tools.test_many_times --times 10                       # as it is
    python -m tools.test_many_times --times 10 --spinning 3          # on a machine that has too much to do
    python -m tools.test_many_times --times 50 -- tests/interop -k groups_sharing

What stands behind `--` goes to `./test`, and by it to pytest. The output of a run that failed is kept in `--keep`, and
the table at the end is one for `docs/reliability.md`.
"""

from __future__ import annotations

import argparse
import re
import shlex
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Final, NamedTuple

_REPOSITORY: Final = Path(__file__).resolve().parent.parent
_SPIN: Final = "while True: pass"
#: Pytest's short summary has a line for each.
_FAILED: Final = re.compile(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", re.MULTILINE)
#: Its last line: so many passed, in so many seconds.
_PASSED: Final = re.compile(r"(\d+) passed")


class Run(NamedTuple):
    code: int
    seconds: float
    passed: int
    failed: list[str]


@contextmanager
def spinning(count: int) -> Iterator[list[subprocess.Popen[bytes]]]:
    processes = [subprocess.Popen([sys.executable, "-c", _SPIN]) for _ in range(count)]
    try:
        yield processes
    finally:
        for process in processes:
            process.kill()
            process.wait()


def run_once(words: Sequence[str], output: Path) -> Run:
    began = time.monotonic()
    with output.open("wb") as written:
        ran = subprocess.run(
            [str(_REPOSITORY / "test"), *words], cwd=_REPOSITORY, stdout=written, stderr=subprocess.STDOUT, check=False
        )
    text = output.read_text("utf-8", "replace")
    passed = _PASSED.findall(text)
    return Run(ran.returncode, time.monotonic() - began, int(passed[-1]) if passed else 0, failed_in(text))


def failed_in(text: str) -> list[str]:
    return [name for name in _FAILED.findall(text) if "::" in name or name.endswith(".py")]


def summary(runs: Sequence[Run], words: Sequence[str], processes: int) -> Iterator[str]:
    """A table, as `docs/reliability.md` has it."""
    yield "| what ran | runs | passed | tests in all | wall p50, s | wall max, s | failed, and how often |"
    yield "|---|--:|--:|--:|--:|--:|---|"
    what = f"`{shlex.join(['./test', *words])}`"
    if processes:
        what += f" beside {processes} spinning {'process' if processes == 1 else 'processes'}"
    times = Counter(name for run in runs for name in run.failed)
    # Linters, types, and what died before it could say what failed.
    unnamed = sum(run.code != 0 and not run.failed for run in runs)
    failed = [f"`{name}` {count}" for name, count in times.most_common()]
    if unnamed:
        failed.append(f"no test by name {unnamed}")
    seconds = sorted(run.seconds for run in runs)
    cells = (
        what,
        str(len(runs)),
        str(sum(run.code == 0 for run in runs)),
        f"{sum(run.passed for run in runs):,}",
        f"{median(seconds):.0f}",
        f"{seconds[-1]:.0f}",
        "; ".join(failed) or "nothing",
    )
    yield "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--times", type=int, default=10, metavar="N")
    parser.add_argument("--spinning", type=int, default=0, metavar="N", help="processes that compute beside it")
    parser.add_argument("--keep", type=Path, default=_REPOSITORY / ".cache" / "test-many-times", metavar="FOLDER")
    parser.add_argument("words", nargs="*", metavar="ARG", help="for ./test")
    options = parser.parse_args()
    options.keep.mkdir(parents=True, exist_ok=True)
    runs: list[Run] = []
    try:
        with spinning(options.spinning):
            for number in range(1, options.times + 1):
                output = options.keep / f"{time.strftime('%Y%m%d-%H%M%S')}-{number}.txt"
                run = run_once(options.words, output)
                runs.append(run)
                print(
                    f"{number} of {options.times}: {'passed' if not run.code else f'failed, see {output}'}", flush=True
                )
                for name in run.failed:
                    print(f"    {name}", flush=True)
                if not run.code:
                    output.unlink()
    except KeyboardInterrupt:
        print("ended before its time", file=sys.stderr)
    if runs:
        print("\n".join(summary(runs, options.words, options.spinning)))
    return 0 if runs and all(run.code == 0 for run in runs) else 1


if __name__ == "__main__":
    sys.exit(main())
