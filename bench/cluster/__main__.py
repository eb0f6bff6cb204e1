"""``python -m bench.cluster``: see ``command.py``."""

import os
import sys
from pathlib import Path


def start() -> int:
    """Also from a checkout whose package is not installed."""
    sources = str(Path(__file__).resolve().parents[2] / "src")
    sys.path.insert(0, sources)
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [sources, os.environ.get("PYTHONPATH")]))
    from bench.cluster.command import main

    return main()


if __name__ == "__main__":
    raise SystemExit(start())
