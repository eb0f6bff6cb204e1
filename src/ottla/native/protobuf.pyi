from ottla.native.avro import Buffer, Column

# As `read` of `avro.pyi`, by another kind of program.
def read(
    nodes: Buffer,
    tables: Buffer,
    columns: int,
    offsets: Buffer,
    data: Buffer,
    validity: Buffer | None,
    first: int,
    count: int,
    header: Buffer,
    /,
) -> tuple[list[Column], bytes]: ...
