"""Name a cluster: its addresses and the client's settings for it. One that has the name already is replaced.

ottla profile add staging -b 10.0.0.5,10.0.0.6 --set request.timeout.ms=5000 --use
"""

from __future__ import annotations

import argparse

from ottla.cli import options as shared
from ottla.cli.addresses import BOOTSTRAP_DEFAULT, with_ports
from ottla.cli.faults import OK, UsageFault

ADDRESSES = "bootstrap.servers"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="what to call it")
    parser.add_argument(
        "-b",
        "--bootstrap-server",
        "--brokers",
        dest="bootstrap_server",
        metavar="HOST[:PORT]",
        help=f"any brokers of the cluster, separated by commas (default: {BOOTSTRAP_DEFAULT})",
    )
    parser.add_argument(
        "--set", dest="settings", metavar="NAME=VALUE", action="append", default=[], help="a setting of the client"
    )
    parser.add_argument("-d", "--description", metavar="TEXT", help="what it is, for people to read")
    parser.add_argument("--use", action="store_true", help="and use it from now on; the first one always is")
    shared.output(parser)


def run(options: argparse.Namespace) -> int:
    from ottla.cli.assignments import assignments
    from ottla.cli.output import show
    from ottla.cli.parser import is_text
    from ottla.cli.profiles import changed_profiles
    from ottla.client.errors import SettingsError
    from ottla.client.settings import parse_addresses

    if not options.name.strip() or not options.name.isprintable() or "," in options.name:
        raise UsageFault("a profile's name is not empty, and has no commas")
    if not is_text(options.description or ""):  # YAML could not be read again
        raise UsageFault("--description: it is no UTF-8 text")
    brokers = with_ports(options.bootstrap_server or BOOTSTRAP_DEFAULT)
    settings = assignments("--set", options.settings)
    if ADDRESSES in settings:  # of two places nobody could tell which one holds
        raise UsageFault(f"--set {ADDRESSES}: the addresses are those of -b")
    try:
        parse_addresses(brokers)
        check_settings(settings)
    except SettingsError as error:
        raise UsageFault(str(error)) from error
    found: dict[str, object] = {"name": options.name}
    if options.description:
        found["description"] = options.description
    found["kafka_api"] = {"brokers": brokers.split(",")}
    if settings:
        found["settings"] = settings
    with changed_profiles() as profiles:
        profiles.put(found)
        if options.use or profiles.current is None:
            profiles.use(options.name)
    used = profiles.current == options.name
    data = {"name": options.name, "brokers": brokers.split(","), "settings": settings, "current": used}
    then = ", which is used from now on" if used else f"; `ottla profile use {options.name}` has it used"
    show(options.output, data, f"added {options.name} ({brokers}) to {profiles.path}{then}\n")
    return OK


def check_settings(settings: dict[str, str]) -> None:
    """Each has to be one that some client has: a slip would be met with every verb. Raises SettingsError."""
    from ottla.client.errors import SettingsError
    from ottla.client.settings import AdminSettings, ConsumerSettings, ProducerSettings, parse_settings

    for name, value in settings.items():
        fault: SettingsError | None = None
        for kind in (AdminSettings, ProducerSettings, ConsumerSettings):
            try:
                parse_settings(kind, {"bootstrap.servers": BOOTSTRAP_DEFAULT, name: value}, {})
                break
            except SettingsError as error:
                fault = error
        else:
            assert fault is not None
            raise fault
