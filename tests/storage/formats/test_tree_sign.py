from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.storage.formats import tree_sign
from ottla.storage.formats.errors import FormatError
from ottla.storage.formats.tree_sign import TreeSign

NUMBERS = st.integers(0, 2**63 - 1)


@given(st.text(st.characters(codec="utf-8"), max_size=80), st.text(max_size=22), NUMBERS, NUMBERS)
def test_what_was_written_is_read(tree, cluster, created, zxid):
    sign = TreeSign(tree, cluster, created, zxid)
    assert tree_sign.decode(tree_sign.encode(sign)) == sign


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(data):
    with suppress(FormatError):
        tree_sign.decode(data)


def test_the_bytes_are_as_documented():
    sign = TreeSign("/data/logs.coordination", "f1QaDVOrQkOTImXhFnZACg", 1795257467468, 41)
    assert tree_sign.encode(sign) == (
        b"cluster.id=f1QaDVOrQkOTImXhFnZACg\ncreated.ms=1795257467468\n"
        b"tree=/data/logs.coordination\nversion=0\nzxid=41\n"
    )


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"version=1\ntree=a\ncluster.id=b\ncreated.ms=1\nzxid=1\n",
        b"version=0\ntree=a\ncluster.id=b\ncreated.ms=1\n",
        b"version=0\ntree=a\ncluster.id=b\ncreated.ms=-1\nzxid=1\n",
        b"version=0\ntree=a\ncluster.id=b\ncreated.ms=1\nzxid=9223372036854775808\n",
        b"#" * (tree_sign.BYTES_MAX + 1),
    ],
)
def test_damage_is_refused(text):
    with pytest.raises(FormatError):
        tree_sign.decode(text)
