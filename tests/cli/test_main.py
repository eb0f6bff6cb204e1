"""What every verb has in common: help, mistakes, exit codes, and that nothing is loaded that is not used."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from ottla import __version__
from ottla.cli import faults, top_help
from ottla.cli.main import main
from ottla.cli.verbs import VERBS
from ottla.testing import InProcessBroker
from tests.cli.conftest import Command, environment, run_process

NAMES = [verb for verb, _, _ in VERBS]


def modules_after(*words: str) -> set[str]:
    """What is loaded when the command has run."""
    code = (
        f"import sys; from ottla.cli.main import main; main({list(words)!r});"
        "print(*sorted(sys.modules), file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment(), timeout=60, check=True
    )
    return set(done.stderr.split())


def test_help_lists_every_verb_once(in_process: Command) -> None:
    ran = in_process("--help")
    assert ran.code == 0
    for verb in NAMES:
        assert sum(line.startswith(f"  {verb}  ") for line in ran.lines) == 1, verb


def test_help_loads_nothing_but_the_table_of_verbs() -> None:
    ours = {name for name in modules_after("--help") if name.startswith("ottla")}
    own = {f"ottla.cli.{name}" for name in ("faults", "main", "streams", "top_help", "verbs")}
    assert ours == {"ottla", "ottla.cli", *own}
    assert not {"argparse", "asyncio", "typing", "re"} & (modules_after("--help") - modules_after())


@pytest.mark.parametrize("verb", NAMES)
def test_help_of_a_verb_names_its_options(in_process: Command, verb: str) -> None:
    ran = in_process(*verb.split(), "--help")
    assert ran.code == 0
    assert f"usage: ottla {verb}" in ran.out
    assert in_process("help", *verb.split()).out == ran.out


@pytest.mark.parametrize("verb", ["up", "topic create", "consume", "log dump", "completion"])
def test_a_verb_that_does_nothing_loads_neither_asyncio_nor_a_client_nor_a_broker(verb: str) -> None:
    loaded = modules_after(*verb.split(), "--help")
    assert not loaded & {"asyncio", "yaml", "tqdm", "argcomplete", "crc32c"}
    assert not {name for name in loaded if name.startswith(("ottla.client", "ottla.server", "ottla.storage"))}


def test_a_verb_of_the_client_loads_no_broker(ottla_broker: InProcessBroker) -> None:
    loaded = modules_after("topic", "list", "--bootstrap-server", ottla_broker.bootstrap)
    assert "ottla.client.admin.admin" in loaded
    layers = ("ottla.server", "ottla.storage", "ottla.replication", "ottla.handlers", "ottla.app")
    assert not {name for name in loaded if name.startswith((*layers, "ottla.client.producing.producer"))}


def test_a_tree_loads_no_broker(ottla_broker: InProcessBroker, tmp_path: Path) -> None:
    # It ends where it would begin to serve: that port is taken.
    loaded = modules_after("tree", "--dir", str(tmp_path), "--listen", ottla_broker.bootstrap)
    assert "ottla.coordination.served.server" in loaded
    rooms = ("server", "storage", "replication", "handlers", "groups", "client", "controller", "app", "broker")
    of_brokers = {name for name in loaded if name.startswith(tuple(f"ottla.{room}." for room in rooms))}
    assert of_brokers <= {"ottla.broker.garbage"}


def test_log_dump_loads_no_network_and_no_client(tmp_path_factory: pytest.TempPathFactory) -> None:
    empty = tmp_path_factory.mktemp("dump") / "leader-epoch-checkpoint"
    empty.write_text("0\n0\n")
    loaded = modules_after("log", "dump", str(empty))
    assert "ottla.storage.dump.files" in loaded
    assert not {name for name in loaded if name.startswith(("ottla.client", "ottla.server", "asyncio"))}


@pytest.mark.parametrize("group", ["topic", "config", "cluster", "log", "perf"])
def test_a_group_alone_lists_its_verbs_and_is_a_mistake(in_process: Command, group: str) -> None:
    assert in_process(group, "--help").out == top_help.of_group(group)
    ran = in_process(group)
    assert (ran.code, ran.out, ran.err) == (faults.USAGE, "", top_help.of_group(group))


def test_no_verb_at_all_is_a_mistake_that_shows_the_help(in_process: Command) -> None:
    ran = in_process()
    assert (ran.code, ran.out, ran.err) == (faults.USAGE, "", top_help.of_program())


def test_version(in_process: Command) -> None:
    assert in_process("--version").out == f"ottla {__version__}\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["topc"], "there is no verb 'topc' (did you mean 'topic'?)"),
        (["topic", "lst"], "there is no verb 'topic lst' (did you mean 'topic list'?)"),
        (["up", "--prot", "1"], "unrecognized arguments: --prot 1 (see ottla up --help)"),
        (["up", "--por", "1"], "unrecognized arguments: --por 1 (see ottla up --help)"),
        (["up", "--port", "65536"], "65536 is not between 0 and 65535"),
        (["topic", "create", "t", "--partitions", "0"], "0 is not between 1 and"),
        (["topic", "create"], "a topic is missing: give TOPIC or --topic TOPIC"),
        (["topic", "alter", "a", "--topic", "b", "--partitions", "2"], "the topic is named twice"),
        (["consume", "../x"], "no topic can have this name: '../x' contains one or more characters other than"),
        (["produce", "a,b"], "no topic can have this name: 'a,b' contains"),
        (["topic", "create", "t" * 250], "is longer than the max allowed length 249"),
        (["topic", "alter", "t"], "--partitions"),
        (["topic", "create", "t", "--config", "x"], "--config: 'x' is not NAME=VALUE"),
        (["topic", "create", "t", "--replica-assignment", "1;2"], "is not made like 1:2,2:3"),
        (["topic", "list", "-o", "xml"], "invalid choice: 'xml'"),
        (["config", "describe"], "say whose settings"),
        (["config", "describe", "--topic", "t", "--broker", "1"], "name one only"),
        (["config", "alter", "--broker", "one", "--config", "a=b"], "'one' is not a broker's id"),
        (["config", "alter", "--topic", "t"], "say what to change"),
        (["config", "alter", "--topic", "t", "--config", "a=b", "--delete-config", "a"], "set and deleted at once"),
        (["consume", "t", "--offset", "middle"], "'middle' is not an offset"),
        (["consume", "t", "-f", "%q"], "there is no %q"),
        (["consume", "t", "-f", "%v", "-J"], "give one of --format, --json and --property"),
        (["consume", "t", "--property", "print.colour=true"], "there is no print.colour"),
        (["log", "dump"], "name at least one file"),
        (["topic", "list", "--bootstrap-server", "nowhere:port"], "'nowhere:port' is no host:port"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(in_process: Command, words: list[str], said: str) -> None:
    ran = in_process(*words)
    assert ran.code == faults.USAGE
    assert said in ran.err
    assert ran.err.startswith("ottla: ")
    assert ran.err.count("\n") == 1
    assert not ran.out


@pytest.mark.parametrize(
    "words",
    [
        ("group", "describe", "\udcff"),
        ("consume", "t", "-e", "--group", "\udcff"),
        ("config", "alter", "--topic", "t", "--config", "retention.ms=\udcff"),
        ("config", "alter", "--topic", "t", "--add-config", "\udcff=1"),
        ("config", "describe", "--topic", "\udcff"),
        ("consume", "t", "--where", "key == '\udcff'"),
        ("produce", "t", "-H", "\udcff=1"),
        ("topic", "list", "--profile", "\udcff"),
        ("topic", "list", "-b", "\udcff"),
        ("topic", "list", "-b", f"{'a' * 64}"),
    ],
    ids=lambda words: " ".join(words).replace("\udcff", "..."),
)
def test_what_is_no_text_is_refused_before_anybody_is_asked(words: tuple[str, ...]) -> None:
    ran = run_process(words, stdin=b"x\n", env={} if "-b" in words else {"OTTLA_BOOTSTRAP_SERVER": "127.0.0.1:1"})
    assert (ran.code, ran.out) == (faults.USAGE, ""), ran
    assert "is no UTF-8 text" in ran.err or "is no host:port" in ran.err
    assert ran.err.count("\n") == 1


def test_what_is_repeated_of_a_command_line_steers_no_terminal(in_process: Command) -> None:
    ran = in_process("topic", "create", "\x1b]0;title\x07\r\n")
    assert ran.code == faults.USAGE
    assert r"no topic can have this name: '\x1b]0;title\x07' contains" in ran.err
    assert ran.err.count("\n") == 1


def test_what_is_long_is_shortened_and_the_next_step_stays(in_process: Command) -> None:
    ran = in_process("topic", "list", "-o", "x" * 100_000)
    assert ran.code == faults.USAGE
    assert len(ran.err) < 3_000
    assert ran.err.startswith("ottla: argument -o/--output: invalid choice: 'xxx")
    assert ran.err.endswith("(see ottla topic list --help)\n")


def test_nobody_listens_there(in_process: Command) -> None:
    ran = in_process("cluster", "describe", "--bootstrap-server", "127.0.0.1:1")
    assert ran.code == faults.UNREACHABLE
    assert "ottla up" in ran.err
    assert ran.err.count("\n") == 1


def test_a_client_property_file_that_is_wrong(in_process: Command, tmp_path_factory: pytest.TempPathFactory) -> None:
    file = tmp_path_factory.mktemp("client") / "client.properties"
    file.write_text("request.timout.ms=1\n")
    ran = in_process("topic", "list", "--command-config", str(file))
    assert (ran.code, ran.err) == (
        2,
        "ottla: there is no setting request.timout.ms; did you mean request.timeout.ms?\n",
    )
    ran = in_process("topic", "list", "--command-config", str(file) + ".missing")
    assert ran.code == faults.NOT_FOUND
    assert "No such file or directory" in ran.err
    assert in_process("topic", "list", "--command-config", str(file.parent)).code == faults.FAILED


def test_a_fault_of_ours_is_one_line_too(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> str:
        raise RuntimeError("two\nlines")

    monkeypatch.delenv("OTTLA_TRACEBACK", raising=False)
    monkeypatch.setattr(top_help, "of_program", broken)
    assert main(["--help"]) == faults.FAILED
    said = capsys.readouterr().err
    assert "RuntimeError: two lines" in said
    assert said.count("\n") == 1


def test_as_a_module() -> None:
    assert run_process(["--version"]).out == f"ottla {__version__}\n"


#: Of these the output is records, a line that is waited for, a file's content or a shell's code.
WITHOUT_FORMS = {
    "up",
    "broker",
    "tree",
    "tree dump",
    "produce",
    "consume",
    "mirror",
    "sim",
    "completion",
    "reassign plan",
    "pipeline init",
}


@pytest.mark.parametrize("verb", sorted(set(NAMES) - WITHOUT_FORMS))
def test_all_that_shows_things_shows_them_as_json_and_yaml_too(in_process: Command, verb: str) -> None:
    assert "-o {table,json,yaml}" in in_process(*verb.split(), "--help").out


def test_a_reader_that_has_enough_ends_the_command_quietly() -> None:
    command = [sys.executable, "-m", "ottla", "consume", "--help"]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment())
    assert child.stdout is not None
    child.stdout.close()
    assert child.stderr is not None
    said = child.stderr.read()
    assert child.wait(60) == faults.BROKEN_PIPE
    assert said == b""
    child.stderr.close()


def test_the_documentation_names_every_verb_and_every_exit_code() -> None:
    text = (Path(__file__).resolve().parents[2] / "docs" / "cli.md").read_text()
    for verb in NAMES:
        assert f"`{verb}`" in text, verb
    codes = [value for name, value in vars(faults).items() if name.isupper()]
    told = re.findall(r"^\| (\d+(?:, \d+)*) \|", text, re.MULTILINE)
    assert sorted(int(code) for cell in told for code in cell.split(", ")) == sorted(codes)
