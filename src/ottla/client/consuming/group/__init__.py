"""The group consumer's parts: who is in the group, who reads what, and how far everybody has come.

Read in this order: `wire.py` (what members exchange), `assignors/` (who gets what), `membership.py` (a member's
own state, a table), `coordinator.py`, `joining.py`, `heartbeats.py`, `commits.py` and `placing.py` (the conversations
with the coordinator), `subscribed.py` and `leading.py` (what is watched), and `member.py`, which leads through a
rebalance.
"""
