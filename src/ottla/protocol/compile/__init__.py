"""Turns the schema files into Python modules; a tool for this package's developers, never imported by a broker."""
