"""The end of a transaction that its producer has left open: by anybody who has its identity, and as often as need be.

What the coordinator answers to a repeated question under the recorded epoch:

    NONE                      it is committed (or aborted), as was asked, now or earlier
    CONCURRENT_TRANSACTIONS   its markers are being written: it is asked again
    INVALID_TXN_STATE         it has ended the other way
    PRODUCER_FENCED           it has ended one way or the other, and the id was used again: nobody can say more
"""

from __future__ import annotations

from typing import Final

from ottla.client.arguments import a_kind_of
from ottla.client.errors import BadArgument, KafkaError, ProducerFenced
from ottla.client.producing.transactions.calls import CoordinatorCalls
from ottla.client.producing.transactions.core import EPOCH_A_TRANSACTION, TransactionIdentity
from ottla.client.producing.transactions.verdicts import FENCED
from ottla.client.wire.cluster import Cluster
from ottla.client.wire.coordinator import Coordinator
from ottla.client.wire.coordinators import TRANSACTION
from ottla.protocol.generated.end_txn import EndTxnRequest, EndTxnResponse

#: The end of a transaction is answered with the next epoch since.
END_WITH_EPOCH: Final = 5


async def end(
    calls: CoordinatorCalls, coordinator: Coordinator, identity: TransactionIdentity, timeout_ms: int, *, commit: bool
) -> EndTxnResponse:
    """Asks the coordinator to end it, until that is answered."""
    request = EndTxnRequest(
        transactional_id=identity.transactional_id,
        producer_id=identity.producer_id,
        producer_epoch=identity.epoch,
        committed=commit,
    )
    newer = identity.version >= EPOCH_A_TRANSACTION
    return await calls.ask(
        coordinator,
        request,
        EndTxnResponse,
        lambda answer: answer.error_code,
        about=f"the {'commit' if commit else 'abort'} of {identity.transactional_id}",
        timeout_ms=timeout_ms,
        at_least=END_WITH_EPOCH if newer else 0,
        at_most=None if newer else END_WITH_EPOCH - 1,
    )


async def finish(cluster: Cluster, identity: TransactionIdentity, timeout_ms: int, *, commit: bool) -> None:
    """Returns where it has ended as was asked; raises InvalidTxnState or ProducerFenced where it has not, or where
    nobody can say."""
    given = checked_identity(identity)
    coordinator = Coordinator(cluster, given.transactional_id, TRANSACTION)
    try:
        await end(CoordinatorCalls(cluster), coordinator, given, timeout_ms, commit=commit)
    except KafkaError as error:
        if error.code in FENCED:
            raise ProducerFenced(
                f"{given.transactional_id}: its producer was fenced, or it was aborted since its time was over: "
                "whether it was committed before that, nobody can say",
                code=error.code,
            ) from error
        raise
    finally:
        await coordinator.close()


def checked_identity(given: object) -> TransactionIdentity:
    """As `detach` gave it, or as it comes out of JSON."""
    if not isinstance(given, tuple | list) or len(given) != len(TransactionIdentity._fields):
        raise BadArgument(f"identity must be what detach() gave, not {a_kind_of(given)}")
    identity = TransactionIdentity(*given)
    if not isinstance(identity.transactional_id, str) or not all(
        number.__class__ is int for number in (identity.producer_id, identity.epoch, identity.version)
    ):
        raise BadArgument(f"identity must be what detach() gave, not {given!r:.200}")
    return identity
