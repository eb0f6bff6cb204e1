"""The small files beside the segments, byte for byte as Kafka writes them.

Each module is one format: `encode` and `decode` are pure, `read` and `write` go through the Disk port. Decoders raise
`FormatError` and nothing else on any bytes, and check every count against what is there before they believe it.
"""
