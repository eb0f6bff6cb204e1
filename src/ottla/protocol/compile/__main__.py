"""`python -m ottla.protocol.compile [--check]`: makes the generated modules from the schema files.

With --check nothing is written; the exit code says whether the modules are what the schemas say.
"""

from __future__ import annotations

import argparse
import os
import sys

from ottla.protocol.compile.catalogue import catalogue
from ottla.protocol.compile.module import module
from ottla.protocol.compile.schema import Schema, SchemaError, parse
from ottla.protocol.compile.shape import snake
from ottla.protocol.compile.steps_module import steps_module

_HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SCHEMAS = os.path.join(_HERE, "schemas")
GENERATED = os.path.join(_HERE, "generated")
_PACKAGE = '"""Messages made from the schema files; each module is imported when its API is first used."""\n'


def load_schemas(folder: str = SCHEMAS) -> dict[str, Schema]:
    """All schema files by their file name."""
    found: dict[str, Schema] = {}
    for name in sorted(os.listdir(folder)):
        if not name.endswith(".schema"):
            continue
        with open(os.path.join(folder, name), encoding="utf-8") as file:
            try:
                schema = parse(file.read())
            except SchemaError as fault:
                raise SchemaError(f"{name}: {fault}") from fault
        if name != f"{snake(schema.name)}.schema":
            raise SchemaError(f"{name} holds {schema.name}: the names differ")
        found[name] = schema
    return found


def compile_all(folder: str = SCHEMAS) -> dict[str, str]:
    """The text of every generated file, by file name."""
    schemas = load_schemas(folder)
    files = {"__init__.py": _PACKAGE, "catalogue.py": catalogue(list(schemas.values()))}
    for name, schema in schemas.items():
        files[f"{snake(schema.name)}.py"] = module(schema, f"schemas/{name}")
        if text := steps_module(schema, f"schemas/{name}"):
            files[f"{snake(schema.name)}_steps.py"] = text
    return files


def differences(files: dict[str, str], folder: str = GENERATED) -> list[str]:
    """The files of `folder` that are missing, other than they should be, or too many."""
    present = {name for name in os.listdir(folder) if name.endswith(".py")}
    wrong = sorted(present ^ files.keys())
    for name in sorted(present & files.keys()):
        with open(os.path.join(folder, name), encoding="utf-8") as file:
            if file.read() != files[name]:
                wrong.append(name)
    return wrong


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m ottla.protocol.compile", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing, say what differs")
    options = parser.parse_args(arguments)
    try:
        files = compile_all()
    except SchemaError as fault:
        sys.stderr.write(f"{fault}\n")
        return 2
    wrong = differences(files)
    if options.check:
        sys.stderr.writelines(f"{name} is not what the schemas say\n" for name in wrong)
        return 1 if wrong else 0
    for name in wrong:
        path = os.path.join(GENERATED, name)
        if name not in files:
            os.remove(path)
            continue
        with open(path, "w", encoding="utf-8") as file:
            file.write(files[name])
    sys.stderr.write(f"{len(wrong)} of {len(files)} files written\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
