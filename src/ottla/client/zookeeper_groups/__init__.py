"""Groups of consumers as Kafka 0.8 had them: the members agree by ZooKeeper, and no broker knows of them.

    /consumers/<group>/ids/<consumer>                 ephemeral: what it subscribes to
    /consumers/<group>/owners/<topic>/<partition>     ephemeral: which thread of which consumer reads it
    /consumers/<group>/offsets/<topic>/<partition>    the next offset to read, as text

Each member watches `ids`, and the topics that it reads; where something has changed each computes by itself who is to
have what, from the same tables and with the same result, gives up what it had and claims its own. A member that is too
early finds another's claim, lets go of everything and tries again after a while.

- `znodes.py`      paths and data
- `group_tree.py`  a whole group as it stands in the tree
- `assigning.py`   who is to have what
- `member.py`      session, registration, and when shares are taken: `claims.py`, `offsets.py`, `share.py`
- `consumer.py`    records, for an application; `settings.py` under 0.8's names
"""
