"""ZooKeeper's protocol: its messages in both directions, and a client that keeps a session with an ensemble.

`jute` has the encoding, `codes` the numbers, `messages` the messages of clients and servers alike.
"""
