"""A broker's life: its start, what it adopts and announces, housekeeping, cleaning, its metrics, its stop."""
