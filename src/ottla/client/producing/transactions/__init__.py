"""A producer's transactions: what is known of one (`core`), who asks the coordinator (`transactor`), and how one that a
producer has left open is ended by anybody (`finishing`)."""
