"""`ottla pipeline` where no Spark has to start: mistakes, exit codes, and what `status` shows."""

from __future__ import annotations

import argparse
import io
import json
import os
import signal
import socket
from pathlib import Path
from types import SimpleNamespace

import pytest

from ottla.cli import faults
from ottla.cli.main import main
from ottla.cli.pipeline import stopped_by_signals
from ottla.cli.pipeline.run import Progress, _range, _said
from ottla.pipeline.example import TEXT
from ottla.pipeline.flows import lag_sum
from ottla.pipeline.places import Places
from ottla.pipeline.status import FlowStatus, write_status
from ottla.testing import InProcessBroker


def test_status(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = str(tmp_path / "shop.py")
    assert main(["pipeline", "status", file]) == faults.NOT_FOUND
    assert f"no pipeline has run in {tmp_path}/shop-data: `ottla pipeline run {file}`" in capsys.readouterr().err
    places = Places(str(tmp_path / "shop-data"))
    write_status(places, FlowStatus(flow="raw", kind="table", batch=3, rows_in=5, rows_out=5, lag=7))
    assert main(["pipeline", "status", file]) == faults.OK
    assert capsys.readouterr().out.splitlines()[1].split() == [
        "raw",
        "table",
        "running",
        "3",
        "5",
        "5",
        "0",
        "0",
        "0",
        "7",
        "-",
        "-",
    ]
    write_status(places, FlowStatus(flow="orders", kind="table", state="failed", failed={"a": 2}, error="no " * 100))
    assert main(["pipeline", "status", file, "-o", "json"]) == faults.UNHEALTHY
    first, second = json.loads(capsys.readouterr().out)
    assert (first["flow"], first["failed"], first["error"]) == ("orders", {"a": 2}, "no " * 100)
    assert (second["flow"], second["lag"]) == ("raw", 7)


def test_a_lag_says_of_how_many_sources_it_is_not(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sources = [
        SimpleNamespace(endOffset='{"t": {"0": 5}}', latestOffset='{"t": {"0": 8, "1": 4}}'),
        SimpleNamespace(endOffset='{"u": {"0": 5}}', latestOffset=None),
        SimpleNamespace(endOffset=None, latestOffset=None),
    ]
    assert lag_sum(sources[:1]) == (7, 0)
    assert lag_sum(sources[1:]) == (None, 2)
    lag, unknown = lag_sum(sources)
    assert (lag, unknown) == (7, 2)
    status = FlowStatus(flow="joined", kind="table", lag=lag, lag_unknown=unknown)
    assert _said(status).endswith(", lag 7, of 2 sources unknown")
    write_status(Places(str(tmp_path / "shop-data")), status)
    file = str(tmp_path / "shop.py")
    assert main(["pipeline", "status", file]) == faults.OK
    assert " 7, of 2 sources unknown " in capsys.readouterr().out
    assert main(["pipeline", "status", file, "-o", "json"]) == faults.OK
    (shown,) = json.loads(capsys.readouterr().out)
    assert (shown["lag"], shown["lag_unknown"]) == (7, 2)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--mode", "backfill"], "--mode backfill needs --from and --to"),
        (["--from", "1"], "--from and --to are for --mode backfill"),
        (["--mode", "backfill", "--from", "2", "--to", "2"], "--from 2 is not before --to 2"),
        (["--mode", "backfill", "--from", "soon", "--to", "2"], "--from is no time"),
        (["--interval", "soon"], "--interval: 'soon' is no duration"),
        (["--conf", "spark"], "--conf spark: give NAME=VALUE"),
    ],
)
def test_mistakes_on_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], said: str
) -> None:
    assert main(["pipeline", "run", str(tmp_path / "shop.py"), *words]) == faults.USAGE
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "ms"),
    [("20261101", 1_793_491_200_000), ("1793491200", 1_793_491_200_000), ("2026-11-01", 1_793_491_200_000), ("7", 7)],
)
def test_times_of_a_backfill_are_those_of_other_verbs(text: str, ms: int) -> None:
    """Dates without separators, and seconds, were milliseconds of 1970: the backfill took the wrong rows."""
    span = _range(argparse.Namespace(mode="backfill", first="1", to=text))
    assert span is not None
    assert span.to_ms == ms


def test_nobody_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Before Spark starts."""
    file = tmp_path / "shop.py"
    file.write_text(TEXT)
    assert main(["pipeline", "run", str(file), "-b", "127.0.0.1:1"]) == faults.UNREACHABLE
    assert "start one with `ottla up`" in capsys.readouterr().err


def test_a_file_with_a_mistake(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "shop.py"
    assert main(["pipeline", "run", str(file)]) == faults.NOT_FOUND
    file.write_text("def one(:\n")
    assert main(["pipeline", "run", str(file)]) == faults.USAGE
    assert f"{file}, line 1: invalid syntax: mend the line" in capsys.readouterr().err


def test_a_port_for_metrics_that_is_taken_is_said_before_java_starts(
    tmp_path: Path, ottla_broker: InProcessBroker, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "shop.py"
    file.write_text(TEXT)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        words = ["pipeline", "run", str(file), "-b", ottla_broker.bootstrap, "--metrics-port", port]
        assert main(words) == faults.FAILED
        assert f"--metrics-port: cannot listen on 127.0.0.1:{port}: " in capsys.readouterr().err
    assert main([*words, "--engine", "sdp", "--mode", "catch-up"]) == faults.USAGE
    assert "--metrics-port is not for --engine sdp" in capsys.readouterr().err


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_on_a_terminal_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    shown = Progress()
    raw = FlowStatus(flow="raw", kind="table", batch=3, lag=7, rows_a_second=12_345.6)
    shown([raw, FlowStatus(flow="out", kind="sink")])
    first = "raw: micro-batch 3, 12,346 rows/s, lag 7; out: micro-batch -"
    assert terminal.getvalue() == f"\r{first}"
    shown([raw])
    # What was longer before is written over.
    assert (
        terminal.getvalue().removeprefix(f"\r{first}")
        == f"\r{'raw: micro-batch 3, 12,346 rows/s, lag 7':<{len(first)}}"
    )
    shown.end()
    assert terminal.getvalue().endswith("\n")


def test_progress_in_a_file_is_a_line_now_and_then(capsys: pytest.CaptureFixture[str]) -> None:
    shown = Progress()
    for batch in range(3):
        shown([FlowStatus(flow="raw", kind="table", batch=batch, lag=0)])
    shown.end()
    assert capsys.readouterr().err == "raw: micro-batch 0, lag 0\n"


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGTERM, faults.TERMINATED), (signal.SIGHUP, faults.HUNG_UP)], ids=["TERM", "HUP"]
)
def test_a_signal_ends_a_run_so_that_spark_is_stopped(number: signal.Signals, code: int) -> None:
    before = signal.getsignal(number)

    def runs() -> None:
        with stopped_by_signals():
            os.kill(os.getpid(), number)

    with pytest.raises(faults.StopSignal) as stopped:
        runs()
    assert (stopped.value.code, signal.getsignal(number)) == (code, before)


def test_a_run_that_outlives_its_terminal_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as `nohup` does
    try:
        with stopped_by_signals():
            os.kill(os.getpid(), signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)
