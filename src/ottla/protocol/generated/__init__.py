"""Messages made from the schema files; each module is imported when its API is first used."""
