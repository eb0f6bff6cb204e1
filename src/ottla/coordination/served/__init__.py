"""The tree of one process, served on ZooKeeper's protocol: `server.TreeServer`.

`rounds` receives and sends, `requests` asks the store, `session_life` says when a session ends, `words` answers the
four-letter words.
"""
