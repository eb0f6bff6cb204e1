"""Transactions as the leaders of partitions have to do with them: what is written in them, and their markers."""
