"""Start one broker from a property file in Kafka's format.

KAFKA_* variables come over the file, and --override over both. Prints `Ottla is listening on HOST:PORT` once clients
can connect; SIGTERM or Ctrl-C stops it cleanly.
"""

from __future__ import annotations

import argparse


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--config", metavar="FILE", required=True, help="a server.properties file")
    parser.add_argument(
        "--override", metavar="NAME=VALUE", action="append", default=[], help="set a property; may be given again"
    )
    parser.add_argument(
        "--end-with-input", action="store_true", help="stop when standard input ends, as it does with whoever holds it"
    )


def run(options: argparse.Namespace) -> int:
    from ottla.cli.assignments import assignments
    from ottla.cli.property_file import read_properties
    from ottla.cli.serving import configured, run_broker
    from ottla.cli.standard_input import check_ends_with_holder

    explicit = assignments("--override", options.override)
    if options.end_with_input:
        check_ends_with_holder("--end-with-input")
    config = configured(read_properties(options.config), explicit)
    hint = "name another in the property file, or with --override"
    return run_broker(config, hint, end_with_input=options.end_with_input)
