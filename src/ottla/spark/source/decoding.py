"""Keys and values decoded in the task (`key_as`, `value_as`): what nobody asked for does not cross to Java."""

from __future__ import annotations

from typing import Any

from ottla.arrow.library import pa
from ottla.arrow.schema import OFFSET
from ottla.formats.errors import RegistryUnreachable
from ottla.model import TopicPartition
from ottla.spark.source.columns import as_spark_has_it, as_spark_wants
from ottla.spark.source.errors import ReadFailed
from ottla.spark.source.settings import DECODE_MODE, REGISTRY, SourceSettings


class Decoding:
    """Of one split's Arrow batches."""

    def __init__(self, settings: SourceSettings, tp: TopicPartition) -> None:
        self._tp = tp
        self._columns = settings.columns
        self._fails = settings.fail_fast
        self._decoders = {name: one for name, one in settings.decoders.items() if name in settings.columns}
        self._types = {name: as_spark_wants(one.arrow_type) for name, one in self._decoders.items()}
        #: The columns to be read: an error names the offset.
        self.read = settings.columns
        if self._decoders and self._fails and OFFSET not in self.read:
            self.read = (*self.read, OFFSET)

    def decoded(self, batch: Any) -> Any:
        if not self._decoders:
            return batch
        found = {}
        for name in self._columns:
            column = batch.column(name)
            decoder = self._decoders.get(name)
            if decoder is not None:
                try:
                    column, faults = decoder.decode(column)
                except RegistryUnreachable as error:
                    raise ReadFailed(
                        f"{self._tp}: the {name} cannot be decoded for now: {error} ({REGISTRY} says where it is)"
                    ) from error
                if self._fails and faults.null_count < len(faults):
                    self._fail(name, batch, faults)
                column = as_spark_has_it(column, self._types[name])
            found[name] = column
        return pa.RecordBatch.from_arrays(list(found.values()), names=list(found))

    def _fail(self, name: str, batch: Any, faults: Any) -> None:
        row = faults.is_valid().index(True).as_py()
        raise ReadFailed(
            f"{self._tp}: the {name} at offset {batch.column(OFFSET)[row]} cannot be decoded: {faults[row]}; with "
            f"{DECODE_MODE}=PERMISSIVE it is null"
        )
