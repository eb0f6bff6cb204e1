"""The producer: records become batches, and batches are sent until they are acknowledged."""
