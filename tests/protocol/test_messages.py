"""What generated classes promise besides their bytes: defaults, errors of encoding, tagged fields, equality."""

from __future__ import annotations

import pytest

from ottla.protocol.errors import DecodeError, EncodeError
from ottla.protocol.generated import (
    alter_partition,
    create_topics,
    describe_groups,
    describe_topic_partitions,
    fetch,
    join_group,
    metadata,
    produce,
    update_metadata,
)
from ottla.protocol.primitives import STRING_BYTES_MAX
from ottla.steps import at_once


def test_defaults_are_those_of_kafka() -> None:
    request = create_topics.CreateTopicsRequest()
    assert (request.topics, request.timeout_ms, request.validate_only) == ([], 60000, False)
    assert fetch.FetchRequest().max_bytes == 0x7FFF_FFFF
    assert fetch.FetchPartition().high_watermark == 0x7FFF_FFFF_FFFF_FFFF
    assert metadata.MetadataResponse().cluster_authorized_operations == -(1 << 31)
    assert produce.ProduceRequest().transactional_id is None
    assert describe_topic_partitions.DescribeTopicPartitionsRequest().cursor is None


def test_lists_are_not_shared() -> None:
    one, other = create_topics.CreateTopicsRequest(), create_topics.CreateTopicsRequest()
    one.topics.append(create_topics.CreatableTopic(name="a"))
    assert other.topics == []
    assert one != other


def test_equality_goes_by_class_and_fields() -> None:
    assert create_topics.CreatableTopic(name="a") == create_topics.CreatableTopic(name="a")
    assert create_topics.CreatableTopic(name="a") != create_topics.CreatableTopic(name="b")
    assert produce.LeaderIdAndEpoch() != fetch.LeaderIdAndEpoch()
    with pytest.raises(TypeError, match="unhashable"):
        hash(create_topics.CreatableTopic())


def test_repr_shows_unknown_tags_only_where_there_are_some() -> None:
    assert repr(produce.LeaderIdAndEpoch()) == "LeaderIdAndEpoch(leader_id=-1, leader_epoch=-1)"
    tagged = produce.LeaderIdAndEpoch(unknown_tags={7: b"x"})
    assert repr(tagged) == "LeaderIdAndEpoch(leader_id=-1, leader_epoch=-1, unknown_tags={7: b'x'})"


def test_field_that_a_version_lacks_is_refused_unless_it_may_be_lost() -> None:
    request = metadata.MetadataRequest(allow_auto_topic_creation=False)
    with pytest.raises(EncodeError, match="allow_auto_topic_creation is set, but version 3"):
        request.encode(3)
    assert request.encode(4)
    # Marked ignorable: an old reader does without.
    assert fetch.FetchRequest(rack_id="r").encode(4) == fetch.FetchRequest().encode(4)
    topics = [alter_partition.RequestTopicData(partitions=[alter_partition.RequestPartitionData(new_isr=[1])])]
    with pytest.raises(EncodeError, match="new_isr is set, but version 3"):
        alter_partition.AlterPartitionRequest(topics=topics).encode(3)


def test_tagged_field_is_refused_before_its_version() -> None:
    partition = fetch.PartitionData(current_leader=fetch.LeaderIdAndEpoch(leader_id=1))
    response = fetch.FetchResponse(responses=[fetch.FetchableTopicResponse(partitions=[partition])])
    assert response.encode(12)
    with pytest.raises(EncodeError, match="current_leader is set, but version 11"):
        response.encode(11)
    with pytest.raises(EncodeError, match="unknown_tags is set, but version 11"):
        fetch.FetchResponse(unknown_tags={9: b""}).encode(11)


def test_null_is_refused_where_a_version_has_none() -> None:
    everything = metadata.MetadataRequest(topics=None)
    assert everything.encode(1)
    with pytest.raises(EncodeError, match="topics is null"):
        everything.encode(0)
    with pytest.raises(EncodeError, match="cannot say"):
        create_topics.CreateTopicsRequest(topics=[create_topics.CreatableTopic(name=None)]).encode(7)  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [1 << 31, "text", None, 1.5])
def test_value_of_another_type_or_range_is_an_encode_error(value: object) -> None:
    with pytest.raises(EncodeError):
        create_topics.CreateTopicsRequest(timeout_ms=value).encode(7)  # type: ignore[arg-type]


def test_text_without_utf8_form_is_an_encode_error() -> None:
    with pytest.raises(EncodeError):
        create_topics.CreateTopicsRequest(topics=[create_topics.CreatableTopic(name="\ud800")]).encode(7)


@pytest.mark.parametrize("version", [0, 6])
def test_string_longer_than_kafka_allows_is_refused_both_ways(version: int) -> None:
    longest = join_group.JoinGroupRequest(group_id="g" * 0x7FFF)
    again, _ = join_group.JoinGroupRequest.decode(longest.encode(version), version)
    assert again == longest
    with pytest.raises(EncodeError, match="longer than 32767"):
        join_group.JoinGroupRequest(group_id="g" * 0x8000).encode(version)
    with pytest.raises(DecodeError):
        join_group.JoinGroupRequest.decode(b"\x81\x80\x02" + b"g" * 0x9000, 6)


def test_id_of_another_length_is_an_encode_error() -> None:
    for topic_id in (b"", bytes(15), bytes(17)):
        topics = [update_metadata.UpdateMetadataTopicState(topic_id=topic_id)]
        with pytest.raises(EncodeError, match="instead of 16"):
            update_metadata.UpdateMetadataRequest(topic_states=topics).encode(7)


def test_unknown_tags_are_kept_and_put_in_order() -> None:
    message = produce.ProduceResponse(
        node_endpoints=[produce.NodeEndpoint(node_id=1)], unknown_tags={200: b"b", 5: b"a", 300: b""}
    )
    again, _ = produce.ProduceResponse.decode(message.encode(10), 10)
    assert again == message
    assert list(again.unknown_tags) == [5, 200, 300]


def test_defined_tag_may_not_be_an_unknown_one() -> None:
    with pytest.raises(EncodeError, match="tag 0 is a defined field"):
        produce.ProduceResponse(unknown_tags={0: b"x"}).encode(10)


def test_defined_tag_before_its_version_is_refused() -> None:
    raw = fetch.FetchRequest(replica_state=fetch.ReplicaState(replica_id=3)).encode(15)
    assert fetch.FetchRequest.decode(raw, 15)[0].replica_state.replica_id == 3
    plain = fetch.FetchRequest().encode(14)
    with pytest.raises(DecodeError, match="tag 1 of FetchRequest does not exist in version 14"):
        fetch.FetchRequest.decode(plain[:-1] + b"\x01\x01\x00", 14)


def test_tags_out_of_order_are_read_as_kafka_reads_them() -> None:
    plain = produce.ProduceRequest().encode(9)
    message, _ = produce.ProduceRequest.decode(plain[:-1] + b"\x03\x09\x01a\x07\x01b\x09\x01c", 9)
    assert message.unknown_tags == {9: b"c", 7: b"b"}


def test_tag_with_another_size_than_its_field_is_refused() -> None:
    plain = fetch.FetchRequest().encode(15)
    good = b"\x01\x01\x0d" + b"\x00" * 12 + b"\x00"
    assert fetch.FetchRequest.decode(plain[:-1] + good, 15)[0].replica_state.replica_id == 0
    for size in (0x0C, 0x0E):
        with pytest.raises(DecodeError):
            fetch.FetchRequest.decode(plain[:-1] + good[:2] + bytes((size,)) + good[3:] + b"\x00", 15)


def test_varint_of_six_bytes_or_beyond_int32_is_refused() -> None:
    for varint in (b"\x80\x80\x80\x80\x80\x01", b"\xff\xff\xff\xff\x0f", b"\xff\xff\xff\xff\xff"):
        with pytest.raises(DecodeError, match="varint"):
            create_topics.CreateTopicsRequest.decode(varint, 7)


@pytest.mark.parametrize("version", [2, 7])
def test_text_that_is_no_utf8_is_read_as_by_java(version: int) -> None:
    raw = create_topics.CreateTopicsRequest(topics=[create_topics.CreatableTopic(name="abcd")]).encode(version)
    read, _ = create_topics.CreateTopicsRequest.decode(raw.replace(b"abcd", b"a\xe2\x82c"), version)
    assert read.topics[0].name == "a\ufffdc"


@pytest.mark.parametrize("version", [2, 7])
def test_text_that_is_no_utf8_is_refused_where_no_answer_could_say_it(version: int) -> None:
    name = "a" * 32_000
    raw = create_topics.CreateTopicsRequest(topics=[create_topics.CreatableTopic(name=name)]).encode(version)
    with pytest.raises(DecodeError, match="no UTF-8"):
        create_topics.CreateTopicsRequest.decode(raw.replace(b"a" * 32_000, b"\xff" * 32_000), version)


def test_trailing_bytes_are_left_to_the_caller() -> None:
    raw = create_topics.CreateTopicsRequest().encode(7)
    _, end = create_topics.CreateTopicsRequest.decode(raw + b"more", 7)
    assert end == len(raw)


def test_records_of_a_view_are_not_copied() -> None:
    partition = produce.PartitionProduceData(records=b"batch")
    topics = [produce.TopicProduceData(name="t", partition_data=[partition])]
    buffer = bytearray(produce.ProduceRequest(topic_data=topics).encode(9))
    message, _ = produce.ProduceRequest.decode(memoryview(buffer), 9)
    records = message.topic_data[0].partition_data[0].records
    assert isinstance(records, memoryview)
    buffer[buffer.index(b"batch")] = ord("B")
    assert bytes(records) == b"Batch"


@pytest.mark.parametrize("letter", ["g", "\u00fc", "\u4e16", "\N{GRINNING FACE}"])
def test_an_error_says_as_much_as_a_string_holds(letter: str) -> None:
    """A name may be as long as a string itself: with the sentence around it the whole answer could not be sent."""
    name = letter * (STRING_BYTES_MAX // len(letter.encode()))
    sentence = f"Group {name} not found."
    answer = describe_groups.DescribeGroupsResponse(
        groups=[describe_groups.DescribedGroup(group_id=name, error_message=sentence)]
    )
    stepped = bytearray()
    at_once(answer.encode_steps(stepped, 6))
    assert stepped == answer.encode(6)
    (group,) = describe_groups.DescribeGroupsResponse.decode(answer.encode(6), 6)[0].groups
    assert group.group_id == name
    assert sentence.startswith(group.error_message)
    assert STRING_BYTES_MAX - 4 < len(group.error_message.encode()) <= STRING_BYTES_MAX
    # What is no sentence is not cut: it would be another name.
    with pytest.raises(EncodeError, match="a string of"):
        describe_groups.DescribeGroupsRequest(groups=[sentence]).encode(5)
