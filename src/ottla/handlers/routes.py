"""Which API is served where, and in which versions. Only what stands here is advertised.

A module is imported when its API is first asked for, so that a broker starts without the sixty it may never need.
"""

from __future__ import annotations

from typing import Final, NamedTuple


class Route(NamedTuple):
    module: str
    version_min: int
    version_max: int


#: Produce is advertised from 0, since librdkafka falls back to the old record format otherwise; 0 to 2 are refused.
PRODUCE: Final = 0
FETCH: Final = 1
OFFSET_COMMIT: Final = 8
API_VERSIONS: Final = 18
ADD_PARTITIONS_TO_TXN: Final = 24
END_TXN: Final = 26

#: Joins and their kin: all members of a group send them at once, and each waits for all the others.
PATIENT: Final = frozenset({11, 13, 14, 68})

#: Asked by people's tools now and then, in few bytes, and answered with whatever the broker holds: the log directories,
#: lists and descriptions of groups, of transactions, of settings, of partitions and of producers.
UNHURRIED: Final = frozenset({15, 16, 32, 35, 61, 65, 66, 69, 75})

#: Served to connections whose session is not open, so that they can open it: versions, and how to authenticate.
BEFORE_AUTHENTICATION: Final = frozenset({API_VERSIONS, 17, 36})

#: What a controller announces: served before all other requests, and without waiting for room in memory.
CONTROL: Final = frozenset({4, 5, 6})

#: Requests between brokers: served, and advertised, on the listeners that brokers use among themselves.
BETWEEN_BROKERS: Final = CONTROL | {7, 56, 58, 67}

#: What brokers forward to the controller in an Envelope, of all that is served.
FORWARDED: Final = frozenset({19, 20, 30, 31, 33, 37, 43, 44, 45, 46, 49, 51, 57})

HOT: Final[dict[int, tuple[int, int]]] = {PRODUCE: (3, 13), FETCH: (4, 18)}

ROUTES: Final[dict[int, Route]] = {
    2: Route("list_offsets", 1, 11),
    3: Route("metadata", 0, 13),
    4: Route("leader_and_isr", 0, 7),
    5: Route("stop_replica", 0, 4),
    6: Route("update_metadata", 0, 8),
    7: Route("controlled_shutdown", 0, 3),
    OFFSET_COMMIT: Route("offset_commit", 2, 10),
    9: Route("offset_fetch", 1, 10),
    10: Route("find_coordinator", 0, 6),
    11: Route("join_group", 0, 9),
    12: Route("heartbeat", 0, 4),
    13: Route("leave_group", 0, 5),
    14: Route("sync_group", 0, 5),
    15: Route("describe_groups", 0, 6),
    16: Route("list_groups", 0, 5),
    18: Route("api_versions", 0, 4),
    19: Route("create_topics", 2, 7),
    20: Route("delete_topics", 1, 6),
    21: Route("delete_records", 0, 2),
    22: Route("init_producer_id", 0, 5),
    23: Route("offset_for_leader_epoch", 2, 4),
    ADD_PARTITIONS_TO_TXN: Route("add_partitions_to_txn", 0, 5),
    25: Route("add_offsets_to_txn", 0, 4),
    END_TXN: Route("end_txn", 0, 5),
    27: Route("write_txn_markers", 1, 2),
    28: Route("txn_offset_commit", 0, 5),
    29: Route("describe_acls", 1, 3),
    30: Route("create_acls", 1, 3),
    31: Route("delete_acls", 1, 3),
    32: Route("describe_configs", 1, 4),
    33: Route("alter_configs", 0, 2),
    34: Route("alter_replica_log_dirs", 1, 2),
    35: Route("describe_log_dirs", 1, 5),
    37: Route("create_partitions", 0, 3),
    42: Route("delete_groups", 0, 2),
    43: Route("elect_leaders", 0, 2),
    44: Route("incremental_alter_configs", 0, 1),
    45: Route("alter_partition_reassignments", 0, 1),
    46: Route("list_partition_reassignments", 0, 0),
    47: Route("offset_delete", 0, 0),
    48: Route("describe_client_quotas", 0, 1),
    50: Route("describe_user_scram_credentials", 0, 0),
    56: Route("alter_partition", 0, 3),
    57: Route("update_features", 0, 2),
    58: Route("envelope", 0, 0),
    60: Route("describe_cluster", 0, 2),
    61: Route("describe_producers", 0, 0),
    65: Route("describe_transactions", 0, 0),
    66: Route("list_transactions", 0, 2),
    67: Route("allocate_producer_ids", 0, 0),
    68: Route("consumer_group_heartbeat", 0, 1),
    69: Route("consumer_group_describe", 0, 1),
    75: Route("describe_topic_partitions", 0, 0),
}


def advertised(*, between_brokers: bool = True) -> list[tuple[int, int, int]]:
    """(api key, lowest version, highest version) of all that is served, in the order of the keys.

    `between_brokers`: on a listener that brokers use among themselves.
    """
    served = [
        (key, route.version_min, route.version_max)
        for key, route in ROUTES.items()
        if between_brokers or key not in BETWEEN_BROKERS
    ]
    served += [(PRODUCE, 0, HOT[PRODUCE][1]), (FETCH, *HOT[FETCH])]
    return sorted(served)
