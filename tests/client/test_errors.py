"""Errors: each has Kafka's code and a class that says what it is."""

from __future__ import annotations

import copy
import inspect
import pickle
import re
from pathlib import Path

import pytest

from ottla.client import errors
from ottla.client.errors import BrokerError, KafkaError, error_of
from ottla.model import ErrorCode, TopicPartition

CLIENT = Path(inspect.getfile(errors)).parent.parent


@pytest.mark.parametrize("code", [code for code in ErrorCode if code is not ErrorCode.NONE])
def test_an_answered_code_is_no_bare_error(code: ErrorCode) -> None:
    error = error_of(code, "no", about="orders")
    assert type(error) is not KafkaError
    assert (error.code, error.retriable, str(error)) == (code, code.retriable, "orders: no")


def test_an_unknown_code_is_a_brokers_all_the_same() -> None:
    assert type(error_of(9999)) is BrokerError
    assert str(error_of(9999)) == "the broker answered an unknown error code 9999"
    assert str(error_of(9999, about="orders")) == "orders: the broker answered an unknown error code 9999"


def test_every_class_of_a_code_is_made_from_it() -> None:
    """One that is left out of the table would never be raised."""
    for name in errors.__all__:
        kind = getattr(errors, name)
        if inspect.isclass(kind) and issubclass(kind, BrokerError) and kind is not BrokerError:
            assert type(error_of(kind.default_code)) is kind


def test_the_client_raises_no_bare_error_of_its_own() -> None:
    for path in CLIENT.rglob("*.py"):
        if "errors" not in path.parts:
            assert not re.search(r"(?<![A-Za-z])KafkaError\(", path.read_text()), path


PARTITION = TopicPartition("orders", 3)


@pytest.mark.parametrize(
    "error",
    [
        errors.CorruptRecords("damaged", PARTITION, 5),
        errors.NoOffset("no position", PARTITION),
        errors.LogTruncated("lost", PARTITION, 5, 4),
        errors.SomeFailed({PARTITION: errors.BadAnswer("nothing")}, {}),
        errors.OffsetOutOfRange("gone", partition=PARTITION, offset=5),
        errors.NoBrokerReached("nobody", faults=[errors.ConnectFailed("refused")]),
        errors.TransactionTimedOut("late", code=ErrorCode.PRODUCER_FENCED),
        errors.RequestTimedOut("late"),
        errors.BadArgument("no"),
    ],
)
def test_an_error_goes_to_another_process_and_comes_back(error: KafkaError) -> None:
    """One that cannot be read again there is lost, and a pool of processes with it."""
    for other in pickle.loads(pickle.dumps(error)), copy.copy(error), copy.deepcopy(error):
        assert type(other) is type(error)
        assert (str(other), other.code) == (str(error), error.code)
        assert {name: str(one) for name, one in vars(other).items()} == {
            name: str(one) for name, one in vars(error).items()
        }
