from ottla.native.avro import Buffer, Column

# As `read` of `avro.pyi`, by another kind of program, of as many columns as nodes, and with names in place of tables.
def read(
    nodes: Buffer,
    names: Buffer,
    columns: int,
    offsets: Buffer,
    data: Buffer,
    validity: Buffer | None,
    first: int,
    count: int,
    header: Buffer,
    /,
) -> tuple[list[Column], bytes]: ...
