"""What `ottla --help` and `ottla topic --help` print. Made by hand: argparse takes longer to load than all of this."""

from __future__ import annotations

from ottla.cli.verbs import VERBS, below

_FOOT = """\
`ottla VERB --help` shows a verb's options. Verbs that talk to a broker take
-b HOST[:PORT] (--bootstrap-server), OTTLA_BOOTSTRAP_SERVER in the environment,
or a profile (`ottla profile add`); localhost:9092 where none is given.
"""


def of_program() -> str:
    return "usage: ottla VERB [OPTION...]\n\nA Kafka-compatible event log.\n\n" + _listed(_all()) + "\n" + _FOOT


def of_group(word: str) -> str:
    return f"usage: ottla {word} VERB [OPTION...]\n\n" + _listed(below(word)) + "\n" + _FOOT


def _all() -> list[tuple[str, str]]:
    return [(verb, summary) for verb, _, summary in VERBS]


def _listed(verbs: list[tuple[str, str]]) -> str:
    width = max(len(verb) for verb, _ in verbs)
    return "".join(f"  {verb:<{width}}  {summary}\n" for verb, summary in verbs)
