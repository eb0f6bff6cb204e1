"""Finds the verb, and imports nothing else."""

from __future__ import annotations

import os
import sys

from ottla.cli import faults, streams
from ottla.cli.verbs import VERBS, below, find


def main(argv: list[str] | None = None) -> int:
    code = _main(argv)
    streams.settle_errors()
    return code


def _main(argv: list[str] | None) -> int:
    words = sys.argv[1:] if argv is None else argv
    streams.repair()
    if "_ARGCOMPLETE" in os.environ:
        from ottla.cli.completing import complete

        complete()
    try:
        code = _run(words)
        sys.stdout.flush()
    except faults.SaidFault as fault:
        return fault.code
    except faults.CommandFault as fault:
        return _say(str(fault), fault.code)
    except KeyboardInterrupt:
        return faults.INTERRUPTED
    except faults.StopSignal as stopped:
        return stopped.code
    except BrokenPipeError:
        streams.forget_output()  # its reader has enough
        return faults.BROKEN_PIPE
    except OSError as error:
        return _say(_world_fault(error), faults.FAILED)
    except Exception as error:
        if os.environ.get("OTTLA_TRACEBACK"):
            raise
        what = f"{type(error).__name__}: {error}"
        return _say(f"this should not have happened: {what} (OTTLA_TRACEBACK=1 shows where)", faults.FAILED)
    return code


def _world_fault(error: OSError) -> str:
    """What the system refused where no verb expected it."""
    if os.environ.get("OTTLA_TRACEBACK"):
        raise error
    reason = streams.output_fault(error)
    if reason is not None:
        streams.forget_output()
        return f"cannot write to standard output: {reason}"
    try:
        os.getcwd()
    except OSError:
        return "the current folder is gone: change to another, or name folders from the root on"
    where = f"{error.filename}: " if error.filename else ""
    return f"{where}{error.strerror or error}"


#: What is wrong stands at the beginning, and the next step at the end; an argument may be as long as it likes.
_BEGINNING_MAX, _END_MAX = 1500, 500


def _say(message: str, code: int) -> int:
    one_line = _printable(" ".join(message.split("\n")).strip())
    if len(one_line) > _BEGINNING_MAX + _END_MAX:
        one_line = f"{one_line[:_BEGINNING_MAX]} ... {one_line[-_END_MAX:]}"
    try:
        print(f"ottla: {one_line}", file=sys.stderr, flush=True)
    except OSError:  # nobody can read it: the exit code says enough
        return code
    return code


def _printable(text: str) -> str:
    """A name that is repeated may hold what a terminal would obey."""
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode("ascii") for one in text)


def _run(words: list[str]) -> int:
    if words[:1] == ["help"]:
        words = [*words[1:], "--help"]
    if not words or words[0] in {"-h", "--help"}:
        from ottla.cli.top_help import of_program

        print(of_program(), end="", file=sys.stdout if words else sys.stderr)
        return faults.OK if words else faults.USAGE
    if words[0] == "--version":
        from ottla import __version__

        print(f"ottla {__version__}")
        return faults.OK
    found = find(words)
    if found is None:
        return _run_group(words)
    verb, module, rest = found
    return _run_verb(verb, module, rest)


def _run_verb(verb: str, module: str, rest: list[str]) -> int:
    from importlib import import_module

    from ottla.cli.parser import Parser

    work = import_module(f"ottla.cli.{module}")
    parser = Parser(f"ottla {verb}", work.__doc__ or "")
    work.arguments(parser)
    try:
        options = parser.parse_args(rest)
    except SystemExit:
        return faults.OK  # argparse has printed the help; its mistakes are faults of ours
    code: int = work.run(options)
    return code


def _run_group(words: list[str]) -> int:
    if not below(words[0]):
        raise faults.UsageFault(f"there is no verb '{words[0]}'{_nearest(words[0])}; ottla --help lists all")
    from ottla.cli.top_help import of_group

    if len(words) == 1 or words[1] in {"-h", "--help"}:
        print(of_group(words[0]), end="", file=sys.stdout if words[1:] else sys.stderr)
        return faults.OK if words[1:] else faults.USAGE
    name = f"{words[0]} {words[1]}"
    raise faults.UsageFault(f"there is no verb '{name}'{_nearest(name)}; ottla {words[0]} --help lists all")


def _nearest(name: str) -> str:
    from difflib import get_close_matches

    known = {verb for verb, _, _ in VERBS} | {verb.split()[0] for verb, _, _ in VERBS}
    matches = get_close_matches(name, sorted(known), n=1)
    return f" (did you mean '{matches[0]}'?)" if matches else ""


if __name__ == "__main__":
    sys.exit(main())
