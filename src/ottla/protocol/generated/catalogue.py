"""Every API: its key, name, versions, first flexible version, and whether only brokers send it.

Made from the schema files by `python -m ottla.protocol.compile`.
"""

from __future__ import annotations

from enum import IntEnum


class ApiKey(IntEnum):
    PRODUCE = 0
    FETCH = 1
    LIST_OFFSETS = 2
    METADATA = 3
    LEADER_AND_ISR = 4
    STOP_REPLICA = 5
    UPDATE_METADATA = 6
    CONTROLLED_SHUTDOWN = 7
    OFFSET_COMMIT = 8
    OFFSET_FETCH = 9
    FIND_COORDINATOR = 10
    JOIN_GROUP = 11
    HEARTBEAT = 12
    LEAVE_GROUP = 13
    SYNC_GROUP = 14
    DESCRIBE_GROUPS = 15
    LIST_GROUPS = 16
    SASL_HANDSHAKE = 17
    API_VERSIONS = 18
    CREATE_TOPICS = 19
    DELETE_TOPICS = 20
    DELETE_RECORDS = 21
    INIT_PRODUCER_ID = 22
    OFFSET_FOR_LEADER_EPOCH = 23
    ADD_PARTITIONS_TO_TXN = 24
    ADD_OFFSETS_TO_TXN = 25
    END_TXN = 26
    WRITE_TXN_MARKERS = 27
    TXN_OFFSET_COMMIT = 28
    DESCRIBE_ACLS = 29
    CREATE_ACLS = 30
    DELETE_ACLS = 31
    DESCRIBE_CONFIGS = 32
    ALTER_CONFIGS = 33
    ALTER_REPLICA_LOG_DIRS = 34
    DESCRIBE_LOG_DIRS = 35
    SASL_AUTHENTICATE = 36
    CREATE_PARTITIONS = 37
    CREATE_DELEGATION_TOKEN = 38
    RENEW_DELEGATION_TOKEN = 39
    EXPIRE_DELEGATION_TOKEN = 40
    DESCRIBE_DELEGATION_TOKEN = 41
    DELETE_GROUPS = 42
    ELECT_LEADERS = 43
    INCREMENTAL_ALTER_CONFIGS = 44
    ALTER_PARTITION_REASSIGNMENTS = 45
    LIST_PARTITION_REASSIGNMENTS = 46
    OFFSET_DELETE = 47
    DESCRIBE_CLIENT_QUOTAS = 48
    ALTER_CLIENT_QUOTAS = 49
    DESCRIBE_USER_SCRAM_CREDENTIALS = 50
    ALTER_USER_SCRAM_CREDENTIALS = 51
    ALTER_PARTITION = 56
    UPDATE_FEATURES = 57
    ENVELOPE = 58
    DESCRIBE_CLUSTER = 60
    DESCRIBE_PRODUCERS = 61
    UNREGISTER_BROKER = 64
    DESCRIBE_TRANSACTIONS = 65
    LIST_TRANSACTIONS = 66
    ALLOCATE_PRODUCER_IDS = 67
    CONSUMER_GROUP_HEARTBEAT = 68
    CONSUMER_GROUP_DESCRIBE = 69
    GET_TELEMETRY_SUBSCRIPTIONS = 71
    PUSH_TELEMETRY = 72
    LIST_CONFIG_RESOURCES = 74
    DESCRIBE_TOPIC_PARTITIONS = 75
    SHARE_GROUP_HEARTBEAT = 76
    SHARE_GROUP_DESCRIBE = 77
    SHARE_FETCH = 78
    SHARE_ACKNOWLEDGE = 79
    INITIALIZE_SHARE_GROUP_STATE = 83
    READ_SHARE_GROUP_STATE = 84
    WRITE_SHARE_GROUP_STATE = 85
    DELETE_SHARE_GROUP_STATE = 86
    READ_SHARE_GROUP_STATE_SUMMARY = 87
    STREAMS_GROUP_HEARTBEAT = 88
    STREAMS_GROUP_DESCRIBE = 89
    DESCRIBE_SHARE_GROUP_OFFSETS = 90
    ALTER_SHARE_GROUP_OFFSETS = 91
    DELETE_SHARE_GROUP_OFFSETS = 92


#: key, name, module, first and last version, first flexible version, between brokers
ROWS: tuple[tuple[int, str, str, int, int, int | None, bool], ...] = (
    (0, "Produce", "produce", 0, 13, 9, False),
    (1, "Fetch", "fetch", 4, 18, 12, False),
    (2, "ListOffsets", "list_offsets", 1, 11, 6, False),
    (3, "Metadata", "metadata", 0, 13, 9, False),
    (4, "LeaderAndIsr", "leader_and_isr", 0, 7, 4, True),
    (5, "StopReplica", "stop_replica", 0, 4, 2, True),
    (6, "UpdateMetadata", "update_metadata", 0, 8, 6, True),
    (7, "ControlledShutdown", "controlled_shutdown", 0, 3, 3, True),
    (8, "OffsetCommit", "offset_commit", 2, 10, 8, False),
    (9, "OffsetFetch", "offset_fetch", 1, 10, 6, False),
    (10, "FindCoordinator", "find_coordinator", 0, 6, 3, False),
    (11, "JoinGroup", "join_group", 0, 9, 6, False),
    (12, "Heartbeat", "heartbeat", 0, 4, 4, False),
    (13, "LeaveGroup", "leave_group", 0, 5, 4, False),
    (14, "SyncGroup", "sync_group", 0, 5, 4, False),
    (15, "DescribeGroups", "describe_groups", 0, 6, 5, False),
    (16, "ListGroups", "list_groups", 0, 5, 3, False),
    (17, "SaslHandshake", "sasl_handshake", 0, 1, None, False),
    (18, "ApiVersions", "api_versions", 0, 4, 3, False),
    (19, "CreateTopics", "create_topics", 2, 7, 5, False),
    (20, "DeleteTopics", "delete_topics", 1, 6, 4, False),
    (21, "DeleteRecords", "delete_records", 0, 2, 2, False),
    (22, "InitProducerId", "init_producer_id", 0, 6, 2, False),
    (23, "OffsetForLeaderEpoch", "offset_for_leader_epoch", 2, 4, 4, False),
    (24, "AddPartitionsToTxn", "add_partitions_to_txn", 0, 5, 3, False),
    (25, "AddOffsetsToTxn", "add_offsets_to_txn", 0, 4, 3, False),
    (26, "EndTxn", "end_txn", 0, 5, 3, False),
    (27, "WriteTxnMarkers", "write_txn_markers", 1, 2, 1, True),
    (28, "TxnOffsetCommit", "txn_offset_commit", 0, 5, 3, False),
    (29, "DescribeAcls", "describe_acls", 1, 3, 2, False),
    (30, "CreateAcls", "create_acls", 1, 3, 2, False),
    (31, "DeleteAcls", "delete_acls", 1, 3, 2, False),
    (32, "DescribeConfigs", "describe_configs", 1, 4, 4, False),
    (33, "AlterConfigs", "alter_configs", 0, 2, 2, False),
    (34, "AlterReplicaLogDirs", "alter_replica_log_dirs", 1, 2, 2, False),
    (35, "DescribeLogDirs", "describe_log_dirs", 1, 5, 2, False),
    (36, "SaslAuthenticate", "sasl_authenticate", 0, 2, 2, False),
    (37, "CreatePartitions", "create_partitions", 0, 3, 2, False),
    (38, "CreateDelegationToken", "create_delegation_token", 1, 3, 2, False),
    (39, "RenewDelegationToken", "renew_delegation_token", 1, 2, 2, False),
    (40, "ExpireDelegationToken", "expire_delegation_token", 1, 2, 2, False),
    (41, "DescribeDelegationToken", "describe_delegation_token", 1, 3, 2, False),
    (42, "DeleteGroups", "delete_groups", 0, 2, 2, False),
    (43, "ElectLeaders", "elect_leaders", 0, 2, 2, False),
    (44, "IncrementalAlterConfigs", "incremental_alter_configs", 0, 1, 1, False),
    (45, "AlterPartitionReassignments", "alter_partition_reassignments", 0, 1, 0, False),
    (46, "ListPartitionReassignments", "list_partition_reassignments", 0, 0, 0, False),
    (47, "OffsetDelete", "offset_delete", 0, 0, None, False),
    (48, "DescribeClientQuotas", "describe_client_quotas", 0, 1, 1, False),
    (49, "AlterClientQuotas", "alter_client_quotas", 0, 1, 1, False),
    (50, "DescribeUserScramCredentials", "describe_user_scram_credentials", 0, 0, 0, False),
    (51, "AlterUserScramCredentials", "alter_user_scram_credentials", 0, 0, 0, False),
    (56, "AlterPartition", "alter_partition", 0, 3, 0, True),
    (57, "UpdateFeatures", "update_features", 0, 2, 0, False),
    (58, "Envelope", "envelope", 0, 0, 0, True),
    (60, "DescribeCluster", "describe_cluster", 0, 2, 0, False),
    (61, "DescribeProducers", "describe_producers", 0, 0, 0, False),
    (64, "UnregisterBroker", "unregister_broker", 0, 0, 0, False),
    (65, "DescribeTransactions", "describe_transactions", 0, 0, 0, False),
    (66, "ListTransactions", "list_transactions", 0, 2, 0, False),
    (67, "AllocateProducerIds", "allocate_producer_ids", 0, 0, 0, True),
    (68, "ConsumerGroupHeartbeat", "consumer_group_heartbeat", 0, 1, 0, False),
    (69, "ConsumerGroupDescribe", "consumer_group_describe", 0, 1, 0, False),
    (71, "GetTelemetrySubscriptions", "get_telemetry_subscriptions", 0, 0, 0, False),
    (72, "PushTelemetry", "push_telemetry", 0, 0, 0, False),
    (74, "ListConfigResources", "list_config_resources", 0, 1, 0, False),
    (75, "DescribeTopicPartitions", "describe_topic_partitions", 0, 0, 0, False),
    (76, "ShareGroupHeartbeat", "share_group_heartbeat", 1, 1, 0, False),
    (77, "ShareGroupDescribe", "share_group_describe", 1, 1, 0, False),
    (78, "ShareFetch", "share_fetch", 1, 2, 0, False),
    (79, "ShareAcknowledge", "share_acknowledge", 1, 2, 0, False),
    (83, "InitializeShareGroupState", "initialize_share_group_state", 0, 0, 0, True),
    (84, "ReadShareGroupState", "read_share_group_state", 0, 0, 0, True),
    (85, "WriteShareGroupState", "write_share_group_state", 0, 1, 0, True),
    (86, "DeleteShareGroupState", "delete_share_group_state", 0, 0, 0, True),
    (87, "ReadShareGroupStateSummary", "read_share_group_state_summary", 0, 1, 0, True),
    (88, "StreamsGroupHeartbeat", "streams_group_heartbeat", 0, 0, 0, False),
    (89, "StreamsGroupDescribe", "streams_group_describe", 0, 0, 0, False),
    (90, "DescribeShareGroupOffsets", "describe_share_group_offsets", 0, 1, 0, False),
    (91, "AlterShareGroupOffsets", "alter_share_group_offsets", 0, 0, 0, False),
    (92, "DeleteShareGroupOffsets", "delete_share_group_offsets", 0, 0, 0, False),
)
