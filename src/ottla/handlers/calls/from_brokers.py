"""What requests between brokers have to show: that they may, and which life of a broker they come from.

They come on the listeners that brokers use among themselves (`handlers/routes.py`); with an authorizer their principal
needs the right to ClusterAction as well, as in Kafka.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, cast

from ottla import logs
from ottla.controller.interface import Controller
from ottla.coordination.errors import CoordinationError
from ottla.handlers.calls.call import Call
from ottla.model import BrokerId, ErrorCode
from ottla.protocol.errors import DecodeError
from ottla.security.authorizer import Operation

log_event = logs.logger("handlers")

#: Of one cluster: no cluster of Kafka's has had a tenth of that. A list of them is put in order, or copied, at once.
BROKERS_MAX: Final = 10_000
#: What `client_id_to_controller` gives.
_TO_CONTROLLER: Final = re.compile(r"broker-[0-9]{1,10}-to-controller")


def from_broker(call: Call, *, is_kraft: bool = False) -> ErrorCode:
    """`is_kraft`: of a controller that moves a cluster out of ZooKeeper, which nobody does here."""
    if not call.allowed_on_cluster(Operation.CLUSTER_ACTION):
        return ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    return ErrorCode.INVALID_REQUEST if is_kraft else ErrorCode.NONE


def broker_ids(numbers: Sequence[int]) -> tuple[BrokerId, ...]:
    """Replicas, as a broker names them. Raises DecodeError, which ends the connection."""
    if len(numbers) > BROKERS_MAX:
        raise DecodeError(f"a list of {len(numbers)} brokers")
    return _as_ids(numbers)


def broker_ids_of_client(numbers: Sequence[int]) -> tuple[BrokerId, ...]:
    """Replicas, as a client names them. Of too many one more is left than there can be: they are refused for that."""
    return _as_ids(numbers[: BROKERS_MAX + 1])


def _as_ids(numbers: Sequence[int]) -> tuple[BrokerId, ...]:
    return cast("tuple[BrokerId, ...]", tuple(numbers))  # at once: a call for each takes twenty times as long


def client_id_to_controller(broker: int) -> str:
    """Of the link by which a broker passes on to the controller what its clients ask for."""
    return f"broker-{broker}-to-controller"


def controller_for(call: Call) -> Controller:
    """Who decides what is asked for here. A broker that passes a request on is answered NOT_CONTROLLER, and asks the
    next controller itself: passed on from here too, it might be carried out long after that, behind later ones."""
    services = call.services
    is_passed_on = _TO_CONTROLLER.fullmatch(call.client_id or "") is not None
    return services.own_controller if is_passed_on else services.controller


def of_registered_broker(call: Call, broker: int, epoch: int) -> ErrorCode:
    """For requests to the controller: what an earlier life of a broker asked for is not done for the present one."""
    refusal = from_broker(call)
    if refusal is not ErrorCode.NONE:
        return refusal
    known = call.services.own_controller.broker_epoch(BrokerId(broker))
    if known is None or known != epoch:
        return ErrorCode.STALE_BROKER_EPOCH
    return ErrorCode.NONE


def tree_is_away(what: str, fault: CoordinationError) -> ErrorCode:
    """The answer where settings cannot be read: the controller tries again."""
    log_event.warning_limited("an announcement waits for the coordination tree", key=what, what=what, fault=str(fault))
    return ErrorCode.UNKNOWN_SERVER_ERROR
