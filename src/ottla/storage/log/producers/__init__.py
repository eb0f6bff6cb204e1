"""What idempotent producers have written: kept in memory, in snapshots, and found again."""
