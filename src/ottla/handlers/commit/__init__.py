"""OffsetCommit, recognised: `recognised.py` takes a request that is like the last one of its connection, and leaves all
others to `handlers/offset_commit.py`."""
