import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.model import TopicPartition
from ottla.storage.formats import names
from ottla.storage.formats.errors import FormatError
from ottla.storage.formats.names import FolderKind, FolderName, SegmentFileName, format_folder, parse_folder

topics = st.text("abcXYZ019._-", min_size=1, max_size=200).filter(lambda name: name not in {".", ".."})
partitions = st.builds(TopicPartition, topics, st.integers(0, 2**31 - 1))
UNIQUE = "0123456789abcdef0123456789abcdef"
MARKED = [FolderKind.DELETE, FolderKind.FUTURE, FolderKind.STRAY]


@given(partitions)
def test_a_current_folder_is_read_back(partition):
    assert parse_folder(format_folder(partition)) == FolderName(partition, FolderKind.CURRENT, "")


@given(partitions, st.sampled_from(MARKED))
def test_a_marked_folder_is_read_back(partition, kind):
    assert parse_folder(format_folder(partition, kind, UNIQUE)) == FolderName(partition, kind, UNIQUE)


@given(st.text(max_size=60))
def test_any_name_is_read_or_refused(name):
    try:
        folder = parse_folder(name)
    except FormatError:
        return
    assert format_folder(*folder) == name


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("a-0", FolderName(TopicPartition("a", 0), FolderKind.CURRENT, "")),
        ("a-b-12", FolderName(TopicPartition("a-b", 12), FolderKind.CURRENT, "")),
        ("x.y-delete-3", FolderName(TopicPartition("x.y-delete", 3), FolderKind.CURRENT, "")),
        ("--1", FolderName(TopicPartition("-", 1), FolderKind.CURRENT, "")),
        ("a-0.cafe-delete", FolderName(TopicPartition("a", 0), FolderKind.DELETE, "cafe")),
        ("a-1.b-2.cafe-future", FolderName(TopicPartition("a-1.b", 2), FolderKind.FUTURE, "cafe")),
        ("-7.cafe-stray", FolderName(TopicPartition("", 7), FolderKind.STRAY, "cafe")),
    ],
)
def test_names_are_read_from_their_end(name, expected):
    assert parse_folder(name) == expected


@pytest.mark.parametrize(
    "name", ["", "a", "a-", "-0", "a-01", "a-4294967296", "a b-0", "..-0", "a-0-delete", "ä-1", "a-\u0661"]
)
def test_other_names_are_refused(name):
    with pytest.raises(FormatError):
        parse_folder(name)


@pytest.mark.parametrize("kind", [FolderKind.DELETE, FolderKind.STRAY])
def test_a_long_topic_is_cut_where_its_name_is_not_needed_any_more(kind):
    name = format_folder(TopicPartition("t" * 249, 2147483647), kind, UNIQUE)
    assert len(name) == names.NAME_BYTES_MAX
    assert name.endswith(f"-2147483647.{UNIQUE}{kind.value}")
    assert parse_folder(name).kind is kind


def test_a_long_topic_has_no_future_folder():
    with pytest.raises(FormatError, match="255"):
        format_folder(TopicPartition("t" * 249, 0), FolderKind.FUTURE, UNIQUE)


@given(
    st.integers(0, 2**63 - 1),
    st.sampled_from([names.LOG, names.INDEX, names.TIME_INDEX, names.TXN_INDEX, names.SNAPSHOT]),
    st.sampled_from(["", names.DELETED, names.CLEANED, names.SWAP]),
)
def test_segment_files_are_read_back(offset, kind, suffix):
    name = names.format_segment_file(offset, kind, suffix)
    assert names.parse_segment_file(name) == SegmentFileName(offset, kind, suffix)


def test_segment_names_sort_as_their_offsets():
    assert names.format_segment_file(368769, names.LOG) == "00000000000000368769.log"


@pytest.mark.parametrize(
    "name",
    [
        "0.log",
        "00000000000000000000",
        "00000000000000000000.log.tmp",
        "99999999999999999999.log",
        "partition.metadata",
        "0000000000000000000a.log",
        "00000000000000000000.log.deleted.deleted",
        "leader-epoch-checkpoint",
    ],
)
def test_other_files_are_no_segment_files(name):
    assert names.parse_segment_file(name) is None
