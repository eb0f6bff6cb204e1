"""A .proto file's text to its descriptor: proto2 and proto3, all that says how messages are on the wire.

Options, services and extensions say nothing of that and are passed over, but `packed`, `default` and `json_name`. Types
are left by the names that they are written with; the pool that the file is put into finds them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
)

from ottla.formats.errors import BadSpec
from ottla.formats.protobuf.tokens import Token, bytes_of, escaped, tokens

#: Messages within messages; protoc takes no more than 32 either.
DEPTH_MAX: Final = 32
_SCALARS: Final = {
    "double": FieldDescriptorProto.TYPE_DOUBLE,
    "float": FieldDescriptorProto.TYPE_FLOAT,
    "int64": FieldDescriptorProto.TYPE_INT64,
    "uint64": FieldDescriptorProto.TYPE_UINT64,
    "int32": FieldDescriptorProto.TYPE_INT32,
    "fixed64": FieldDescriptorProto.TYPE_FIXED64,
    "fixed32": FieldDescriptorProto.TYPE_FIXED32,
    "bool": FieldDescriptorProto.TYPE_BOOL,
    "string": FieldDescriptorProto.TYPE_STRING,
    "bytes": FieldDescriptorProto.TYPE_BYTES,
    "uint32": FieldDescriptorProto.TYPE_UINT32,
    "sfixed32": FieldDescriptorProto.TYPE_SFIXED32,
    "sfixed64": FieldDescriptorProto.TYPE_SFIXED64,
    "sint32": FieldDescriptorProto.TYPE_SINT32,
    "sint64": FieldDescriptorProto.TYPE_SINT64,
}
_WHOLE: Final = re.compile("0[xX][0-9a-fA-F]+|[0-9]+")
_LABELS: Final = {
    "optional": FieldDescriptorProto.LABEL_OPTIONAL,
    "required": FieldDescriptorProto.LABEL_REQUIRED,
    "repeated": FieldDescriptorProto.LABEL_REPEATED,
}


def parse_proto(source: str, name: str) -> FileDescriptorProto:
    """Raises BadSpec, which names the line."""
    return _Parser(tokens(source), name).file()


class _Parser:
    def __init__(self, words: Iterable[Token], name: str) -> None:
        self._words = iter(words)
        self._next = next(self._words)
        self._file: Any = FileDescriptorProto(name=name)
        self._proto3 = False

    def file(self) -> FileDescriptorProto:
        first = True
        while self._next.kind != "end":
            word = self._next.text
            if word in {"syntax", "edition"}:
                if not first:
                    raise self._unexpected()
                self._syntax()
            elif word == "import":
                self._import()
            elif word == "package":
                self._take()
                self._file.package = self._name()
                self._sign(";")
            elif word == "message":
                self._message(self._file.message_type.add(), 1)
            elif word == "enum":
                self._enum(self._file.enum_type.add())
            elif word in {"service", "extend", "option"} or word == ";":
                self._skip_statement()
            else:
                raise self._unexpected()
            first = False
        made: FileDescriptorProto = self._file
        return made

    def _syntax(self) -> None:
        word = self._take().text
        self._sign("=")
        said = self._text()
        if word == "edition" or said not in {"proto2", "proto3"}:
            raise BadSpec(f"the Protobuf schema has {word} {said!r}: proto2 and proto3 are known")
        self._proto3 = said == "proto3"
        if self._proto3:
            self._file.syntax = said
        self._sign(";")

    def _import(self) -> None:
        self._take()
        if self._next.text in {"public", "weak"} and self._take().text == "public":
            self._file.public_dependency.append(len(self._file.dependency))
        self._file.dependency.append(self._text())
        self._sign(";")

    # Messages

    def _message(self, made: Any, depth: int) -> None:
        if depth > DEPTH_MAX:
            raise BadSpec(f"the Protobuf schema has messages {DEPTH_MAX} deep in messages")
        self._take()
        made.name = self._plain_name()
        self._sign("{")
        optionals: list[Any] = []
        while not self._is_sign("}"):
            self._element(made, depth, optionals)
        # Each proto3 optional is alone in a oneof that nobody wrote; these stand behind those that somebody did.
        for one in optionals:
            one.oneof_index = len(made.oneof_decl)
            made.oneof_decl.add(name=_free_name(one.name, made))

    def _element(self, made: Any, depth: int, optionals: list[Any]) -> None:
        word = self._next.text
        if word == "message" and self._next.kind == "name":
            self._message(made.nested_type.add(), depth + 1)
        elif word == "enum":
            self._enum(made.enum_type.add())
        elif word == "oneof":
            self._oneof(made)
        elif word == "map":
            self._map(made)
        elif word in {"option", "reserved", "extensions", "extend", ";"}:
            self._skip_statement()
        else:
            self._field(made, optionals)

    def _field(self, made: Any, optionals: list[Any]) -> None:
        label = self._take().text if self._next.text in _LABELS else None
        field = self._typed_field(made)
        field.label = _LABELS[label or "optional"]
        if self._proto3 and label == "required":
            raise BadSpec(f"the Protobuf schema has a required field {field.name}, which proto3 has not")
        if self._proto3 and label == "optional":
            field.proto3_optional = True
            optionals.append(field)
        if not self._proto3 and label is None:
            raise BadSpec(f"the Protobuf schema has a field {field.name} without a label, which proto2 wants")

    def _typed_field(self, made: Any) -> Any:
        """A type, a name, a number and options; the label is the caller's."""
        kind = self._name()
        if kind == "group":
            raise BadSpec("the Protobuf schema has a group: make a message of it")
        field = made.field.add(label=FieldDescriptorProto.LABEL_OPTIONAL)
        if kind in _SCALARS:
            field.type = _SCALARS[kind]
        else:
            field.type_name = kind
        self._name_and_number(field)
        self._options(field)
        self._sign(";")
        return field

    def _oneof(self, made: Any) -> None:
        self._take()
        number = len(made.oneof_decl)
        made.oneof_decl.add(name=self._plain_name())
        self._sign("{")
        while not self._is_sign("}"):
            if self._next.text in {"option", ";"}:
                self._skip_statement()
            else:
                self._typed_field(made).oneof_index = number

    def _map(self, made: Any) -> None:
        """A map is a repeated message of keys and values that nobody wrote."""
        self._take()
        self._sign("<")
        key = self._name()
        if key not in _SCALARS or key in {"float", "double", "bytes"}:
            raise BadSpec(f"the Protobuf schema has a map with keys of {key}")
        self._sign(",")
        value = self._name()
        self._sign(">")
        field = made.field.add(label=FieldDescriptorProto.LABEL_REPEATED, type=FieldDescriptorProto.TYPE_MESSAGE)
        self._name_and_number(field)
        self._options(field)
        self._sign(";")
        entry = made.nested_type.add(name=_entry_name(field.name))
        entry.options.map_entry = True
        optional = FieldDescriptorProto.LABEL_OPTIONAL
        entry.field.add(name="key", number=1, label=optional, type=_SCALARS[key])
        held = entry.field.add(name="value", number=2, label=optional)
        if value in _SCALARS:
            held.type = _SCALARS[value]
        else:
            held.type_name = value
        field.type_name = entry.name

    def _name_and_number(self, field: Any) -> None:
        field.name = self._plain_name()
        self._sign("=")
        field.number = self._integer()

    def _options(self, field: Any) -> None:
        """In brackets; those that say how a field is on the wire are kept."""
        if self._next.text != "[":
            return
        self._take()
        while True:
            name = self._option_name()
            self._sign("=")
            if name == "default":
                field.default_value = self._default(field)
            else:
                value = self._option_value()
            if name == "packed":
                field.options.packed = value == "true"
            elif name == "json_name" and value is not None:
                field.json_name = value
            if self._is_sign("]"):
                return
            self._sign(",")

    def _default(self, field: Any) -> str:
        """As a descriptor has it: bytes with escapes, whole numbers in decimals."""
        if self._next.kind == "text":
            return escaped(self._bytes()) if field.type == FieldDescriptorProto.TYPE_BYTES else self._text()
        sign = "-" if self._is_sign("-") else ""
        word = self._next
        if word.kind not in {"name", "number"}:
            raise self._unexpected()
        if word.kind == "number" and _WHOLE.fullmatch(word.text):
            return f"{sign}{self._whole()}"
        return sign + self._take().text

    def _option_name(self) -> str:
        """`name`, or `(an.extension).name`."""
        found = ""
        while self._next.text != "=":
            if self._next.kind not in {"name", "sign"} or self._next.text in {";", "{", "}", "["}:
                raise self._unexpected()
            found += self._take().text
        return found

    def _option_value(self) -> str | None:
        """None for a message in braces."""
        if self._next.text == "{":
            self._skip_braces()
            return None
        if self._next.kind == "text":
            return self._text()
        sign = self._take().text if self._next.text in {"-", "+"} else ""
        if self._next.kind not in {"name", "number"}:
            raise self._unexpected()
        return sign.replace("+", "") + self._take().text

    # Enums

    def _enum(self, made: Any) -> None:
        self._take()
        made.name = self._plain_name()
        self._sign("{")
        while not self._is_sign("}"):
            if self._next.text == "option":
                self._enum_option(made)
            elif self._next.text in {"reserved", ";"}:
                self._skip_statement()
            else:
                value = made.value.add(name=self._plain_name())
                self._sign("=")
                value.number = self._integer()
                if self._next.text == "[":
                    self._skip_brackets()
                self._sign(";")
        if not made.value:
            raise BadSpec(f"the Protobuf enum {made.name} has no values")

    def _enum_option(self, made: EnumDescriptorProto) -> None:
        self._take()
        name = self._option_name()
        self._sign("=")
        value = self._option_value()
        if name == "allow_alias":
            made.options.allow_alias = value == "true"
        self._sign(";")

    # Words

    def _take(self) -> Token:
        found = self._next
        if found.kind == "end":
            raise self._unexpected()
        self._next = next(self._words)
        return found

    def _name(self) -> str:
        if self._next.kind != "name":
            raise self._unexpected()
        return self._take().text

    def _plain_name(self) -> str:
        if "." in self._next.text:
            raise self._unexpected()
        return self._name()

    def _text(self) -> str:
        line = self._next.line
        try:
            return self._bytes().decode()
        except UnicodeDecodeError:
            raise BadSpec(f"line {line} of the Protobuf schema: a text that is no UTF-8") from None

    def _bytes(self) -> bytes:
        if self._next.kind != "text":
            raise self._unexpected()
        found = bytes_of(self._take())
        while self._next.kind == "text":  # texts that follow each other are one
            found += bytes_of(self._take())
        return found

    def _integer(self) -> int:
        sign = -1 if self._is_sign("-") else 1
        number = self._whole(most=2**31 - (sign > 0))
        return sign * number

    def _whole(self, most: int | None = None) -> int:
        try:
            number = _integer(self._next.text)
        except ValueError:
            raise self._unexpected() from None
        if most is not None and number > most:
            raise self._unexpected()
        self._take()
        return number

    def _sign(self, wanted: str) -> None:
        if self._next.text != wanted:
            raise self._unexpected(wanted)
        self._take()

    def _is_sign(self, wanted: str) -> bool:
        if self._next.text != wanted:
            return False
        self._take()
        return True

    def _skip_statement(self) -> None:
        """To its semicolon, or over its braces; those of options in brackets do not end it."""
        while not self._is_sign(";"):
            if self._next.text == "{":
                self._skip_braces()
                self._is_sign(";")
                return
            if self._next.text == "[":
                self._skip_brackets()
            else:
                self._take()

    def _skip_braces(self) -> None:
        self._skip_pair("{", "}")

    def _skip_brackets(self) -> None:
        self._skip_pair("[", "]")

    def _skip_pair(self, opening: str, closing: str) -> None:
        depth = 0
        while True:
            word = self._take().text
            depth += (word == opening) - (word == closing)
            if not depth:
                return

    def _unexpected(self, wanted: str | None = None) -> BadSpec:
        instead = "" if wanted is None else f" in place of {wanted!r}"
        return BadSpec(
            f"line {self._next.line} of the Protobuf schema: {self._next.text[:80]!r} is unexpected{instead}"
        )


def _integer(text: str) -> int:
    if text[:2] in {"0x", "0X"}:
        return int(text, 16)
    return int(text, 8) if len(text) > 1 and text[0] == "0" else int(text)


def _entry_name(field: str) -> str:
    """`prices_by_day` has entries `PricesByDayEntry`, as protoc names them."""
    found, upper = "", True
    for letter in field:
        if letter == "_":
            upper = True
        else:
            found += letter.upper() if upper else letter
            upper = False
    return f"{found}Entry"


def _free_name(field: str, made: DescriptorProto) -> str:
    """`_field`, with as many more letters before it as another field or oneof makes necessary, as protoc names it."""
    taken = {one.name for one in (*made.field, *made.oneof_decl)}
    name = field if field.startswith("_") else f"_{field}"
    while name in taken:
        name = f"X{name}"
    return name
