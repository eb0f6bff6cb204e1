"""May they? Handlers ask here, by Kafka's operations and resource types, before they do anything."""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from typing import Final, Protocol

from ottla.security.principal import Principal


class Operation(IntEnum):
    """Kafka's ACL operations, by their codes on the wire."""

    UNKNOWN = 0
    ANY = 1
    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15


class Resource(IntEnum):
    """Kafka's resource types, by their codes on the wire."""

    UNKNOWN = 0
    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


#: The one name under which the cluster is a resource.
CLUSTER_NAME: Final = "kafka-cluster"

#: What may be done with each kind of resource, as answers with authorized operations list it.
OPERATIONS: Final[dict[Resource, tuple[Operation, ...]]] = {
    Resource.TOPIC: (
        Operation.READ,
        Operation.WRITE,
        Operation.CREATE,
        Operation.DELETE,
        Operation.ALTER,
        Operation.DESCRIBE,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
    ),
    Resource.CLUSTER: (
        Operation.CREATE,
        Operation.ALTER,
        Operation.DESCRIBE,
        Operation.CLUSTER_ACTION,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
        Operation.IDEMPOTENT_WRITE,
    ),
    Resource.GROUP: (
        Operation.READ,
        Operation.DELETE,
        Operation.DESCRIBE,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
    ),
    Resource.TRANSACTIONAL_ID: (Operation.WRITE, Operation.DESCRIBE, Operation.TWO_PHASE_COMMIT),
}


class Authorizer(Protocol):
    @property
    def allows_all(self) -> bool:
        """True where every question is answered with yes, so that handlers need not ask. It never changes."""
        ...

    @property
    def announces(self) -> bool:
        """Whether it calls what `listen` was given before any answer differs from the one before; it never changes.

        What it has allowed is remembered then until it calls. Another is asked about each request.
        """
        ...

    def listen(self, changed: Callable[[], None]) -> None: ...

    def allowed(self, principal: Principal, host: str, operation: Operation, resource: Resource, name: str) -> bool: ...


class AllowAll:
    """No ACLs: everyone may do everything, as with Kafka before an authorizer is set."""

    allows_all = announces = True

    def listen(self, changed: Callable[[], None]) -> None:
        """It never changes its mind."""

    def allowed(self, principal: Principal, host: str, operation: Operation, resource: Resource, name: str) -> bool:
        return True


def authorized_operations(
    authorizer: Authorizer, principal: Principal, host: str, resource: Resource, name: str
) -> int:
    """The bit field in which Metadata and its kin say what a client may do."""
    bits = 0
    for operation in OPERATIONS[resource]:
        if authorizer.allows_all or authorizer.allowed(principal, host, operation, resource, name):
            bits |= 1 << operation
    return bits
