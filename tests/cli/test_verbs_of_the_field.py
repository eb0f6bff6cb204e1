"""What users of rpk and kcat expect to find."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
import yaml
from tools.ottla_server import ottla_up

from ottla import __version__
from ottla.cli import faults
from ottla.cli.addresses import with_ports
from ottla.cli.profiles import changed_profiles, read_profiles
from ottla.ports.real.whole_file import write_file
from ottla.testing import InProcessBroker
from ottla.testing import broker as broker_in_process
from tests.cli.conftest import SECONDS_MAX, Command, environment, run_process
from tests.cli.test_starting import started
from tests.system_calls import called_in

KEPT = pytest.mark.ottla_topic(configs={"retention.ms": "-1"})
TIME_MS = 1_700_000_000_000


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("a", "a:9092"),
        ("a:1,b", "a:1,b:9092"),
        ("a:,", "a:9092"),
        ("[::1]", "[::1]:9092"),
        ("[::1]:5", "[::1]:5"),
        ("::1", "[::1]:9092"),
        ("nowhere:port", "nowhere:port"),
    ],
)
def test_default_ports(given: str, meant: str) -> None:
    assert with_ports(given) == meant


# produce


def consumed(ottla: Command, topic: str, format_: str) -> list[str]:
    return ottla("consume", topic, "--from-beginning", "-e", "-f", f"{format_}\\n").lines


@KEPT
def test_produce_says_where_records_went(ottla: Command, topic: str) -> None:
    ran = ottla("produce", topic, "-o", "%p %o %k=%v\\n", "-K", ":", stdin=b"a:1\nb:2\n")
    assert (ran.code, ran.lines) == (0, ["0 0 a=1", "0 1 b=2"])
    rpks = "Produced to partition %p at offset %o with timestamp %d.\\n"
    ran = ottla("produce", topic, "-o", rpks, "--timestamp", str(TIME_MS), stdin=b"x\n")
    assert ran.lines == [f"Produced to partition 0 at offset 2 with timestamp {TIME_MS}."]


@KEPT
@pytest.mark.parametrize(
    ("format_", "given", "records"),
    [
        ("%v\\n", b"one\ntwo", ["-=one", "-=two"]),
        ("%k %v\\n", b"a one\nb two words\n", ["a=one", "b=two words"]),
        ("%K{2}%V{3}%k%v", b"01003aone02000bb", ["a=one", "bb="]),
        ("%V{big32}%v", b"\0\0\0\3one\0\0\0\0", ["-=one", "-="]),
        ("%k{hex}:%v{base64}\\n", b"6161:b25l\n", ["aa=one"]),
        ("%k,%v;", b"a,1;b,2;", ["a=1", "b=2"]),
        ("%v", b"all\nof it\n", ["-=all", "of it"]),
        ("%d %v\\n", b"1700000000000 one\n", ["-=one"]),
    ],
)
def test_formats_of_input(ottla: Command, topic: str, format_: str, given: bytes, records: list[str]) -> None:
    ran = ottla("produce", topic, "-f", format_, stdin=given)
    assert ran.code == 0, ran.err
    shown = ottla("consume", topic, "--from-beginning", "-e", "--null", "-", "-f", "%k=%v\\n").lines
    assert [line for line in shown if line] == records


@pytest.mark.ottla_topic(partitions=2, configs={"retention.ms": "-1"})
def test_headers_topics_and_partitions_of_input(ottla: Command, topic: str) -> None:
    line = f"{topic} 1 %d|a=1;b=2;|value\n".replace("%d", str(TIME_MS)).encode()
    ran = ottla("produce", "-f", "%t %p %d|%H{1}%h{%k=%v;}|%v\\n", stdin=line.replace(b"|a", b"|2a"))
    assert ran.code == 0, ran.err
    shown = consumed(ottla, topic, "%p %d %h %v")
    assert shown == [f"1 {TIME_MS} a=1,b=2 value"]


@pytest.mark.parametrize(
    ("format_", "given", "said"),
    [
        ("%k:%v\\n", b"a:1\nb\n", "record 2: "),
        ("%V{3}%v", b"abc", "'abc' is not a number; no records before it were sent"),
        ("%V{3}%v", b"005ab", "the input ends where 5 bytes are due"),
        ("%v{hex}\\n", b"zz\n", "'zz' is not hex"),
        ("%p %v\\n", b"x y\n", "'' is not a number"),
    ],
)
def test_input_that_is_not_made_so(ottla: Command, topic: str, format_: str, given: bytes, said: str) -> None:
    ran = ottla("produce", topic, "-f", format_, stdin=given)
    assert ran.code == faults.FAILED
    assert said in ran.err
    assert ran.err.count("\n") == 1


@pytest.mark.parametrize(
    ("format_", "said"),
    [
        ("%k%v", "nobody can tell where %k ends and %v begins"),
        ("x", "the format has nothing of a record in it"),
        ("%x", "there is no %x to read"),
        ("%h", "say how a header is made"),
        ("%v{rot13}", "there is no form {rot13} to read"),
    ],
)
def test_formats_that_nothing_can_be_read_by(ottla: Command, topic: str, format_: str, said: str) -> None:
    ran = ottla("produce", topic, "-f", format_, stdin=b"x")
    assert (ran.code, said in ran.err) == (faults.USAGE, True), ran.err


def test_a_large_record_by_a_format_comes_in_many_pieces(ottla: Command, topic: str) -> None:
    body = b"x" * 900_000
    ran = ottla("produce", topic, "-f", "%V{6}%v", stdin=(b"900000" + body) * 2)
    assert ran.code == 0, ran.err
    assert consumed(ottla, topic, "%V") == ["900000", "900000"]


@KEPT
def test_keys_and_headers_of_any_bytes(ottla: Command, topic: str) -> None:
    """A command line has bytes, and so have records."""
    ran = ottla("produce", topic, "-k", "\udcff", "-H", "trace=\udcfe", stdin=b"one\n")
    assert (ran.code, ran.err) == (0, "")
    ran = ottla("consume", topic, "-o", "start", "-e", "-f", "%k{hex} %h{%k=%v{hex}}\n")
    assert ran.lines == ["ff trace=fe"]


def test_tombstones(ottla: Command, topic: str) -> None:
    assert ottla("produce", topic, "-K", ":", "-Z", stdin=b"a:\nb:1\n").code == 0
    assert consumed(ottla, topic, "%k %V") == ["a -1", "b 1"]


def test_headers_may_be_given_twice_and_as_rpk_has_them(ottla: Command, topic: str) -> None:
    assert ottla("produce", topic, "-H", "a=1", "-H", "a=2", "-H", "b:3", stdin=b"x\n").code == 0
    assert consumed(ottla, topic, "%h") == ["a=1,a=2,b=3"]


# Several topics, and patterns


@pytest.fixture
def three(ottla: Command, topic: str) -> list[str]:
    names = [f"{topic}-{letter}" for letter in "abc"]
    ran = ottla("topic", "create", *names, "-p", "2", "-c", "retention.ms=-1")
    assert (ran.code, ran.lines) == (0, [f"created {name}, partitions: 2" for name in names])
    for name in names:
        assert ottla("produce", name, "-p", "0", stdin=name.encode()).code == 0
    return names


def test_consume_of_several_topics(ottla: Command, three: list[str], topic: str) -> None:
    for words in (three, ["-r", f"{topic}-[abc]"], ["--include", f"{topic}-."], ["-r", three[0], f"{topic}-[bc]"]):
        ran = ottla("consume", *words, "-o", "start", "-e")
        assert (ran.code, sorted(ran.lines)) == (0, three), ran.err
    ran = ottla("consume", "-g", f"g-{topic}", "-r", f"{topic}-[ab]", "--from-beginning", "-e")
    assert (ran.code, sorted(ran.lines)) == (0, three[:2]), ran.err
    assert ottla("consume", "-r", f"{topic}-x", "-e").code == faults.NOT_FOUND
    assert ottla("consume", "-r", "(", "-e").code == faults.USAGE
    assert ottla("consume", three[0], "-p", "1,0", "-o", "start", "-e").lines == three[:1]


def test_describe_and_delete_by_patterns(ottla: Command, three: list[str], topic: str) -> None:
    ran = ottla("topic", "describe", "-r", f"{topic}-[ab]", "-o", "json")
    assert [one["topic"] for one in json.loads(ran.out)] == three[:2]
    ran = ottla("topic", "delete", "-r", f"{topic}-[ab]", "-o", "json")
    assert (ran.code, [one["topic"] for one in json.loads(ran.out)]) == (faults.NOT_CONFIRMED, three[:2])
    assert ottla("topic", "delete", "-r", f"{topic}-[ab]", "--yes").code == 0
    assert ottla("topic", "delete", "-r", f"{topic}-[ab]", "--yes").code == faults.NOT_FOUND
    assert ottla("topic", "describe", three[2]).code == 0
    # A pattern is for whole names: part of one deletes nothing.
    assert ottla("topic", "delete", "-r", f"{topic}-", "--yes").code == faults.NOT_FOUND


def test_each_pattern_is_matched_by_itself(ottla: Command, three: list[str], topic: str) -> None:
    """Flags and groups of one are not the others': a back-reference means its own."""
    ran = ottla("topic", "create", f"{topic}-bb", f"{topic}-ab")
    assert ran.code == 0, ran.err

    def matched(*expressions: str) -> list[str]:
        ran = ottla("topic", "describe", "-r", *expressions, "-o", "json")
        assert ran.code == 0, ran.err
        return [one["topic"] for one in json.loads(ran.out)]

    assert matched(f"(?i){topic.upper()}-a") == three[:1]
    assert matched(f"{topic}-c", f"(?i){topic.upper()}-a") == [three[0], three[2]]
    assert matched(f"{topic}-(?P<last>a)", f"{topic}-(?P<last>b)") == three[:2]
    assert matched(f"{topic}-(a)", rf"{topic}-(b)\1") == [three[0], f"{topic}-bb"]
    group = ("consume", "-g", f"g-{topic}", "--from-beginning", "-e", "-r")
    assert sorted(ottla(*group, f"{topic}-a", f"{topic}-[b]").lines) == three[:2]
    ran = ottla(*group, f"{topic}-(a)", f"{topic}-(b)")
    assert (ran.code, "a group subscribes to one regular expression" in ran.err) == (faults.USAGE, True)
    assert ottla("consume", "-r", "a{1,99999999999}", "-e").code == faults.USAGE


def test_creating_several_of_which_some_exist(ottla: Command, three: list[str], topic: str) -> None:
    ran = ottla("topic", "create", three[0], f"{topic}-d")
    assert ran.code == faults.EXISTS
    assert ran.lines == [f"created {topic}-d, partitions: 1"]
    ran = ottla("topic", "create", three[0], f"{topic}-e", "--if-not-exists")
    assert (ran.code, ran.lines) == (0, [f"{three[0]} exists already", f"created {topic}-e, partitions: 1"])


def test_add_partitions(ottla: Command, three: list[str]) -> None:
    ran = ottla("topic", "add-partitions", *three[:2], "--num", "3")
    assert (ran.code, ran.lines) == (0, [f"{name} now has 5 partitions" for name in three[:2]])
    assert ottla("topic", "add-partitions", "none", "-n", "1").code == faults.NOT_FOUND
    assert ottla("topic", "add-partitions", three[0]).code == faults.USAGE


def test_describe_everything(ottla: Command, three: list[str]) -> None:
    (told,) = json.loads(ottla("topic", "describe", three[0], "-a", "-o", "json").out)
    assert {"name": "retention.ms", "value": "-1", "source": "topic"} in told["settings"]
    assert any(one["source"] == "default" for one in told["settings"])
    assert [(one["start"], one["end"]) for one in told["partitions"]] == [(0, 1), (0, 0)]
    table = ottla("topic", "describe", three[0], "-a").out
    assert "cleanup.policy " in table


@KEPT
@pytest.mark.parametrize(
    ("offset", "expected"),
    [
        *(("start", "01234"), ("end", ""), ("-2", "34"), ("+3", "34"), (":end", "01234"), (":2", "01"), ("1:3", "12")),
        *(("3:", "34"), ("3:end", "34"), ("@-1h", "4"), ("@-2h:-30m", "3"), (f"@{TIME_MS}:1h", "012")),
        *(("s@1700000000", "01234"), ("e@1700000001", "012")),
    ],
)
def test_offsets(ottla: Command, topic: str, offset: str, expected: str) -> None:
    now = time.time_ns() // 1_000_000
    times = [TIME_MS, TIME_MS + 1, TIME_MS + 2, now - 3_600_000 - 60_000, now]
    lines = "\n".join(json.dumps({"payload": str(n), "ts": at}) for n, at in enumerate(times))
    assert ottla("produce", topic, "-J", stdin=lines.encode()).code == 0
    ran = ottla("consume", topic, "-o", offset, "-e")
    assert (ran.code, "".join(ran.lines)) == (0, expected), ran.err


@pytest.mark.parametrize("offset", ["5:3", ":", "1:2:3", "@x", "+", "@2h:-1h", "end:5"])
def test_what_is_no_offset(in_process: Command, offset: str) -> None:
    ran = in_process("consume", "t", "-o", offset)
    assert (ran.code, ran.err.count("\n")) == (faults.USAGE, 1)


# The cluster


def test_log_dirs(ottla: Command, ottla_broker: InProcessBroker, three: list[str]) -> None:
    rows = json.loads(ottla("log-dirs", *three, "-o", "json").out)
    assert [(row["topic"], row["partition"]) for row in rows] == [(name, n) for name in three for n in range(2)]
    files = {(row["topic"], row["partition"]): row for row in rows}
    one = files[(three[0], 0)]
    assert one["size"] == os.path.getsize(f"{one['dir']}/{three[0]}-0/00000000000000000000.log") > 0
    summed = json.loads(ottla("log-dirs", *three, "--aggregate-into", "topic", "--sort-by-size", "-o", "json").out)
    assert [row["topic"] for row in summed] == three
    assert summed[0]["size"] == one["size"]
    (whole,) = ottla("log-dirs", "--aggregate-into", "broker", "-H").lines[1:]
    assert whole.split()[-1] in {"B", "KiB", "MiB"}
    assert ottla("log-dirs", "--broker", "4711").code == faults.NOT_FOUND
    assert ottla("log-dirs", "--broker", "x").code == faults.USAGE


def test_health(ottla: Command) -> None:
    ran = ottla("cluster", "health")
    assert (ran.code, ran.lines[0]) == (0, "healthy: yes")
    assert json.loads(ottla("cluster", "health", "-o", "json", "-e").out)["healthy"] is True


def test_health_is_awaited_from_a_broker_that_is_not_there_yet(tmp_path: Path) -> None:
    server = ottla_up(tmp_path / "data")
    words = ["cluster", "health", "-e", "--interval", "0.05", "-b", server.bootstrap]
    with subprocess.Popen(
        [sys.executable, "-m", "ottla", *words], env=environment(), stdout=subprocess.PIPE, text=True
    ) as waiting:
        try:
            # As long as it takes to be refused: what ends at once on that ends within this.
            with pytest.raises(subprocess.TimeoutExpired):
                waiting.wait(1)
            with server:
                assert waiting.stdout is not None
                assert waiting.stdout.readline() == "healthy: yes\n"
                assert waiting.wait(SECONDS_MAX) == 0
        finally:
            waiting.kill()


def test_a_cluster_that_is_not_healthy(in_process: Command, tmp_path: Path) -> None:
    folders = [tmp_path / "data", tmp_path / "more"]
    with broker_in_process(properties={"log.dirs": ",".join(map(str, folders))}) as broker:
        broker.create_topic("halved", partitions=2)
        shutil.rmtree(folders[1])
        folders[1].write_text("a file in its place")
        in_process("topic", "create", "notices", "--partitions", "2", "-b", broker.bootstrap)
        ran = in_process("cluster", "health", "-b", broker.bootstrap)
        dirs = in_process("log-dirs", "-b", broker.bootstrap)
    assert (ran.code, ran.lines[0]) == (faults.UNHEALTHY, "healthy: no")
    assert f":{folders[1]}): mend the disk and start the broker again" in ran.out
    assert dirs.code == faults.FAILED
    assert f"a log directory is offline: {folders[1]}" in dirs.err


def test_version(in_process: Command) -> None:
    told = json.loads(in_process("version", "-o", "json").out)
    assert (told["ottla"], told["kafka"]) == (__version__, "4.3")
    assert in_process("version").lines[0].split() == ["ottla", __version__]


# Profiles


def test_profiles(
    in_process: Command, ottla_broker: InProcessBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.delenv("OTTLA_PROFILES", raising=False)
    monkeypatch.delenv("OTTLA_BOOTSTRAP_SERVER", raising=False)
    file = tmp_path / "ottla" / "profiles.yaml"
    assert in_process("profile", "list").lines == [
        "there are no profiles; `ottla profile add NAME -b HOST:PORT` makes one"
    ]
    ran = in_process("profile", "add", "tests", "-b", ottla_broker.bootstrap, "--set", "request.timeout.ms=5000")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out == f"added tests ({ottla_broker.bootstrap}) to {file}, which is used from now on\n"
    assert in_process("profile", "add", "gone", "-b", "127.0.0.1:1", "-d", "nobody there").code == 0
    assert yaml.safe_load(file.read_text()) == {
        "version": 1,
        "current_profile": "tests",
        "profiles": [
            {
                "name": "tests",
                "kafka_api": {"brokers": [ottla_broker.bootstrap]},
                "settings": {"request.timeout.ms": "5000"},
            },
            {"name": "gone", "description": "nobody there", "kafka_api": {"brokers": ["127.0.0.1:1"]}},
        ],
    }
    assert file.stat().st_mode & 0o777 == 0o600
    assert in_process("topic", "list").code == 0
    assert in_process("topic", "list", "--profile", "gone").code == faults.UNREACHABLE
    monkeypatch.setenv("OTTLA_PROFILE", "gone")
    assert in_process("topic", "list").code == faults.UNREACHABLE
    assert in_process("topic", "list", "--profile", "tests").code == 0
    assert in_process("topic", "list", "-b", ottla_broker.bootstrap).code == 0
    monkeypatch.delenv("OTTLA_PROFILE")
    assert in_process("profile", "use", "gone").out == "using gone (127.0.0.1:1)\n"
    assert in_process("topic", "list").code == faults.UNREACHABLE
    monkeypatch.setenv("OTTLA_BOOTSTRAP_SERVER", ottla_broker.bootstrap)
    assert in_process("topic", "list").code == 0
    table = in_process("profile", "list").lines
    assert [line.split()[0] for line in table] == ["NAME", "tests", "gone*"]
    ran = in_process("profile", "use", "test")
    assert (ran.code, "did you mean tests?" in ran.err) == (faults.NOT_FOUND, True)
    assert in_process("profile", "remove", "gone").code == 0
    assert [one["name"] for one in json.loads(in_process("profile", "list", "-o", "json").out)] == ["tests"]


def test_a_profile_of_rpk_is_understood_and_kept(
    in_process: Command, ottla_broker: InProcessBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "rpk.yaml"
    theirs = {
        "version": 1,
        "current_profile": "local",
        "cloud_auth": [{"name": "default"}],
        "profiles": [
            {
                "name": "local",
                "kafka_api": {"brokers": [ottla_broker.bootstrap]},
                "admin_api": {"addresses": ["x:9644"]},
            },
            {"name": "safe", "kafka_api": {"brokers": ["a:1"], "sasl": {"user": "u"}}},
        ],
    }
    file.write_text(yaml.safe_dump(theirs))
    monkeypatch.setenv("OTTLA_PROFILES", str(file))
    monkeypatch.delenv("OTTLA_BOOTSTRAP_SERVER", raising=False)
    assert in_process("topic", "list").code == 0
    ran = in_process("topic", "list", "--profile", "safe")
    assert (ran.code, "kafka_api.sasl cannot be used: there is no encryption and no authentication yet" in ran.err) == (
        1,
        True,
    )
    listed = in_process("profile", "list", "-o", "json")
    assert [(one["name"], one["brokers"]) for one in json.loads(listed.out)] == [
        ("local", [ottla_broker.bootstrap]),
        ("safe", ["a:1"]),
    ], "one that cannot be used is no reason not to name the others"
    assert in_process("profile", "use", "safe").code == faults.FAILED
    assert yaml.safe_load(file.read_text()) == theirs, "it is not used from now on"
    assert in_process("profile", "add", "more", "-b", "b").code == 0
    kept = yaml.safe_load(file.read_text())
    assert kept["profiles"].pop() == {"name": "more", "kafka_api": {"brokers": ["b:9092"]}}
    assert kept == theirs


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[1]", "it begins with no name"),
        ("a: [", "is not YAML"),
        ("description: 2026-13-45", "is not YAML"),
        ("description: !!int x", "is not YAML"),
        ("description: 0x_", "is not YAML"),
        ("profiles: [{}]", "in which each has a name"),
    ],
)
def test_a_file_of_profiles_that_is_damaged(
    in_process: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, said: str
) -> None:
    file = tmp_path / "profiles.yaml"
    file.write_text(text)
    monkeypatch.setenv("OTTLA_PROFILES", str(file))
    ran = in_process("profile", "list")
    assert (ran.code, said in ran.err, ran.err.count("\n")) == (faults.FAILED, True, 1)
    assert in_process("profile", "add", "x").code == faults.FAILED
    assert file.read_text() == text


def test_settings_of_a_profile_are_checked(
    in_process: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTTLA_PROFILES", str(tmp_path / "p.yaml"))
    ran = in_process("profile", "add", "x", "--set", "request.timout.ms=1")
    assert (ran.code, "did you mean request.timeout.ms?" in ran.err) == (faults.USAGE, True)
    assert in_process("profile", "add", "x", "-b", "a:b").code == faults.USAGE
    ran = in_process("profile", "add", "x", "-b", "a", "-d", "\udcff")
    assert (ran.code, ran.err) == (faults.USAGE, "ottla: --description: it is no UTF-8 text\n")
    ran = in_process("profile", "add", "x", "-b", "a", "--set", "bootstrap.servers=b:1")
    assert (ran.code, ran.err) == (faults.USAGE, "ottla: --set bootstrap.servers: the addresses are those of -b\n")
    assert not (tmp_path / "p.yaml").exists()


@pytest.mark.parametrize("value", ["", "[5000]", "{a: 1}"])
def test_a_setting_of_a_profile_that_has_no_value(
    in_process: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    file = tmp_path / "p.yaml"
    monkeypatch.setenv("OTTLA_PROFILES", str(file))
    file.write_text(f"current_profile: x\nprofiles: [{{name: x, settings: {{client.id: {value}}}}}]\n")
    ran = in_process("topic", "list")
    said = f"ottla: {file}, profile x: the value of client.id is no text and no number\n"
    assert (ran.code, ran.err) == (faults.FAILED, said)


def test_a_linked_file_of_profiles_stays_a_link(
    in_process: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As those have it who keep such files in a repository."""
    kept, link = tmp_path / "kept" / "profiles.yaml", tmp_path / "profiles.yaml"
    kept.parent.mkdir()
    link.symlink_to(kept)
    monkeypatch.setenv("OTTLA_PROFILES", str(link))
    assert in_process("profile", "add", "x", "-b", "a").code == 0
    assert link.is_symlink()
    assert yaml.safe_load(kept.read_text())["current_profile"] == "x"


def test_what_is_written_is_on_the_medium_before_it_takes_the_old_ones_place(
    in_process: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a power cut a file that was not synced is empty, and all clusters would be forgotten without a word."""
    done = called_in(tmp_path, monkeypatch)
    monkeypatch.setenv("OTTLA_PROFILES", str(tmp_path / "p.yaml"))
    assert in_process("profile", "add", "x", "-b", "a").code == 0
    assert done == ["fsync", "replace", "fsync"]
    assert os.listdir(tmp_path) == ["p.yaml"]


def test_the_profiles_of_a_device_stay_a_device(
    in_process: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OTTLA_PROFILES=/dev/null has none read; to root that would have become a file."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        write_file(str(pipe), b"all of it")
        assert (os.read(reader, 100), pipe.is_fifo()) == (b"all of it", True)
    finally:
        os.close(reader)
    monkeypatch.setenv("OTTLA_PROFILES", "/dev/null")
    assert in_process("profile", "add", "x", "-b", "a").code == 0
    assert Path("/dev/null").is_char_device()


def test_of_two_who_add_a_profile_neither_is_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a script has it that names several clusters at once, on a machine where nobody named one before."""
    monkeypatch.setenv("OTTLA_PROFILES", str(tmp_path / "ottla" / "profiles.yaml"))
    begun, others = threading.Event(), []

    def add_another() -> None:
        begun.set()
        with changed_profiles() as profiles:
            profiles.put({"name": "second"})
            others.extend(profiles.names())

    adding = threading.Thread(target=add_another)
    with changed_profiles() as profiles:
        profiles.put({"name": "first"})
        adding.start()
        begun.wait(60)
        adding.join(0.2)
        assert others == []
    adding.join(60)
    assert read_profiles().names() == others == ["first", "second"]


# up


def test_up_with_host_level_properties_and_topics(tmp_path: Path) -> None:
    words = ("up", "--host", "127.0.0.2", "--port", "0", "--data", str(tmp_path), "--log-level", "warn")
    topics = ("--topic", "orders:3", "--topic", "plain", "--set", "num.partitions=2")

    child = subprocess.Popen(
        [sys.executable, "-m", "ottla", *words, *topics],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(KAFKA_ADVERTISED_LISTENERS="PLAINTEXT://elsewhere.example:1"),
    )
    try:
        assert child.stdout is not None
        line = child.stdout.readline()
        found = re.fullmatch(r"Ottla is listening on 127\.0\.0\.2:(\d+)\n", line)
        assert found, line
        child.terminate()
        _, err = child.communicate(timeout=60)
        assert (child.returncode, err) == (0, "")
    finally:
        child.kill()
        child.communicate()
    with started("up", "--port", "0", "--data", str(tmp_path), "--topic", "orders:5") as up:
        ran = run_process(("topic", "list", "-o", "json", "-b", f"127.0.0.1:{up.port}"))
        assert {one["topic"]: one["partitions"] for one in json.loads(ran.out)} == {"orders": 3, "plain": 2}
        _, _, err = up.stop()
    assert "a topic of --topic was there with another number of partitions topic=orders wanted=5 has=3" in err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--topic", "a/b"], "no topic can have this name"),
        (["--topic", "a:0"], "--topic a:0: 0 is not between 1 and"),
        (["--topic", "a:x"], "--topic a:x: 'x' is not a whole number"),
        (["--set", "x"], "--set: 'x' is not NAME=VALUE"),
        (["--port", "1", "--set", "listeners=PLAINTEXT://:2"], "--set listeners: another option says that already"),
        (["--log-level", "loud"], "invalid choice: 'LOUD'"),
        (["--host", ""], "--host is empty"),
    ],
)
def test_mistakes_of_up(in_process: Command, words: list[str], said: str) -> None:
    ran = in_process("up", *words)
    assert (ran.code, said in ran.err) == (faults.USAGE, True), ran.err


@pytest.mark.parametrize("verb", [("mirror", "--config"), ("pipeline", "run")])
def test_an_empty_host_of_metrics_does_not_mean_all_addresses(in_process: Command, verb: tuple[str, ...]) -> None:
    ran = in_process(*verb, "no-such-file", "--metrics-port", "0", "--metrics-host", "")
    assert (ran.code, "--metrics-host: it is empty: name an address" in ran.err) == (faults.USAGE, True), ran.err
