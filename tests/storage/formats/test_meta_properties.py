from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.storage.formats import meta_properties
from ottla.storage.formats.errors import FormatError
from ottla.storage.formats.meta_properties import MetaProperties

texts = st.text(max_size=30)
others = st.dictionaries(
    texts.filter(lambda key: key not in {"version", "cluster.id", "broker.id", "node.id", "directory.id"}),
    texts,
    max_size=4,
)


@given(
    st.sampled_from([0, 1]),
    texts,
    st.integers(0, 2**31 - 1),
    st.none() | st.binary(min_size=16, max_size=16),
    others,
)
def test_what_was_written_is_read(version, cluster_id, broker_id, directory_id, more):
    meta = MetaProperties(
        version=version, cluster_id=cluster_id, broker_id=broker_id, directory_id=directory_id, others=more
    )
    assert meta_properties.decode(meta_properties.encode(meta)) == meta


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(data):
    with suppress(FormatError):
        meta_properties.decode(data)


def test_version_0_names_the_broker():
    meta = MetaProperties(version=0, cluster_id="c", broker_id=7)
    assert meta_properties.encode(meta) == b"broker.id=7\ncluster.id=c\nversion=0\n"


def test_version_1_names_node_and_directory():
    meta = MetaProperties(version=1, cluster_id="c", broker_id=7, directory_id=bytes(16))
    assert meta_properties.encode(meta) == (
        b"cluster.id=c\ndirectory.id=AAAAAAAAAAAAAAAAAAAAAA\nnode.id=7\nversion=1\n"
    )


def test_keys_of_a_newer_kafka_survive():
    meta = meta_properties.decode(b"#\n#date\nversion=0\nbroker.id=1\nfuture.key=a\\=b\n")
    assert meta.others == {"future.key": "a=b"}
    assert b"future.key=a\\=b\n" in meta_properties.encode(meta)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b"version=2\n", "version 2"),
        (b"version=x\n", "version 'x'"),
        (b"version=0\nbroker.id=-1\n", "broker.id"),
        (b"version=1\ncluster.id=c\n", "lacks node.id"),
        (b"version=1\nnode.id=1\n", "lacks cluster.id"),
        (b"version=0\ndirectory.id=abc\n", "directory.id"),
        (b"version=0\nx=\\u12\n", "hexadecimal"),
    ],
)
def test_damage_is_named(text, reason):
    with pytest.raises(FormatError, match=reason):
        meta_properties.decode(text)
