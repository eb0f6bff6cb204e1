"""Groups of the newer protocol (KIP-848): the coordinator shares out the partitions, and moves them one by one.

- `groups.py`          the groups of one coordinator: requests in, decisions out to journal, memory and timers
- `heartbeat.py`       a member joins or stays;  `leaving.py`: it goes, or is taken out
- `reconciliation.py`  one member's next step to its target;  `states.py`: the tables
- `target.py`          who should have what, by `assignors/`;  `assigning.py`: of large groups, in steps
- `patterns.py`        subscriptions by regular expression
- `classic_members.py` members that speak the classic protocol;  `migration.py`: groups that change protocol
- `group.py`           what is known of a group;  `replay.py`, `records.py`: how it is stored
"""
