"""Partitions as this broker holds them: leader or follower, high watermark, and those who wait for either.

Every produce and every fetch goes through here, also where the in-sync set is this broker alone.
"""
