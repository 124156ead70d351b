"""A source of rows that are read from a Parquet file, batch by batch. A skeleton to copy.

The curator asks a source for its batches whenever it has to count something, and only ever looks at counts. So the rows
may live anywhere, and need not fit the memory at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from pointillist import Schema, Table

__all__ = ["ParquetSource"]


@dataclass(frozen=True)
class ParquetSource:
    """The rows of a Parquet file, encoded by a schema."""

    path: Path
    schema: Schema
    batch_rows: int = 65_536

    # The number of rows, once. It is private under add-remove: only the curator may look at it.
    @cached_property
    def rows(self) -> int:
        return pq.ParquetFile(self.path).metadata.num_rows

    # One array of integer codes per column of the schema, in its order. Every call starts from the first row.
    def batches(self) -> Iterator[Sequence[np.ndarray]]:
        names = list(self.schema.domain.names)
        for batch in pq.ParquetFile(self.path).iter_batches(self.batch_rows, columns=names):
            yield Table.encode(pa.Table.from_batches([batch]), self.schema).codes
