"""The file: run once, for what its decorators say.

It is no module that can be imported, so that Spark sends functions and classes of it to its workers whole.
"""

from __future__ import annotations

import os
import re
import sys
import traceback
from dataclasses import dataclass
from types import ModuleType
from typing import Final

from ottla.pipeline.definitions import Definitions, Kind, collecting
from ottla.pipeline.errors import BadDefinition, NotFound, PipelineError

#: A program that a person wrote is shorter.
FILE_BYTES_MAX: Final = 4_000_000
#: Names of queries, groups and folders are made of it.
_STEM: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")
#: As long as no module has this name, what is defined in the file is pickled by value.
_MODULE: Final = "__ottla_pipeline__"


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineFile:
    path: str
    #: The file's, without `.py`.
    name: str
    definitions: Definitions


def load(path: str) -> PipelineFile:
    """Raises NotFound and BadDefinition; the message has the file's line."""
    text = _text(path)
    stem = os.path.splitext(os.path.basename(path))[0]
    if _STEM.fullmatch(stem) is None:
        raise BadDefinition(
            f"{path}: the pipeline is called as the file, and {stem!r} has other characters than letters, digits, "
            "'_', '.' and '-': rename the file"
        )
    try:
        code = compile(text, path, "exec", dont_inherit=True)
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None) or 1
        said = getattr(error, "msg", None) or str(error)
        raise BadDefinition(f"{path}, line {line}: {said}: mend the line") from None
    module = ModuleType(_MODULE)
    module.__file__ = path
    folder = os.path.dirname(os.path.abspath(path))
    sys.path.insert(0, folder)  # as Python does for a program
    try:
        with collecting() as definitions:
            exec(code, module.__dict__)  # noqa: S102 - the user's own program
    except PipelineError as error:
        raise type(error)(f"{path}: {error}") from error
    except Exception as error:
        line = _line(error, path)
        raise BadDefinition(f"{path}, line {line}: {type(error).__name__}: {error}") from error
    finally:
        if folder in sys.path:
            sys.path.remove(folder)
    _check(path, definitions)
    return PipelineFile(path=path, name=stem, definitions=definitions)


def _check(path: str, definitions: Definitions) -> None:
    if not any(flow.kind is not Kind.VIEW for flow in definitions.flows.values()):
        raise BadDefinition(
            f"{path} defines no table and no sink: put @table above a function that returns a frame "
            "(`ottla pipeline init` writes an example)"
        )
    for flow in definitions.flows.values():
        if flow.rules and flow.kind is not Kind.TABLE:
            where = "the tables that read it" if flow.kind is Kind.VIEW else "the table that it reads"
            raise BadDefinition(
                f"{path}: {flow.text} has expectations, and rows are counted where they are stored: put them on {where}"
            )


def _text(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            text = file.read(FILE_BYTES_MAX + 1)
    except FileNotFoundError:
        raise NotFound(f"{path} is not there: `ottla pipeline init {path}` writes an example") from None
    except OSError as error:
        raise PipelineError(f"cannot read {path}: {error.strerror or error}") from error
    if len(text) > FILE_BYTES_MAX:
        raise BadDefinition(f"{path} has more than {FILE_BYTES_MAX} bytes: it is no pipeline")
    return text


def _line(error: Exception, path: str) -> int:
    """The last line of the file that the error came through."""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == path]
    return (lines[-1] or 1) if lines else 1
