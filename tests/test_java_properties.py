import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla import java_properties

pairs = st.dictionaries(st.text(max_size=20), st.text(max_size=20), max_size=5)


@given(pairs)
def test_what_was_written_is_read(mapping):
    assert java_properties.decode(java_properties.encode(mapping).decode("ascii")) == mapping


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a=b", {"a": "b"}),
        ("  a : b ", {"a": "b "}),
        ("a b=c", {"a": "b=c"}),
        ("a", {"a": ""}),
        ("a=\\\n   b\\\r\n\tc", {"a": "bc"}),
        ("a=b\\\\\nc=d", {"a": "b\\", "c": "d"}),
        ("# a=b\n! c=d\n\n e=f", {"e": "f"}),
        ("a=b\\\n# no comment", {"a": "b# no comment"}),
        ("a\\ b\\=c\\:d=\\t\\n\\x\\u00e9", {"a b=c:d": "\t\nxé"}),
        ("a=\\ud83d\\ude00", {"a": "😀"}),
        ("a=1\na=2", {"a": "2"}),
        ("a=b\\", {"a": "b"}),
        ("=b", {"": "b"}),
        ("a==b", {"a": "=b"}),
    ],
)
def test_syntax_is_javas(text, expected):
    assert java_properties.decode(text) == expected
