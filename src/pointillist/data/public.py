"""A public table next to the private one: its distinct records, in the codes of the private schema.

It may lack columns of the private schema. Nothing here looks at private data, so nothing here costs budget.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from pointillist.checks import check
from pointillist.data.domain import Attributes, Domain
from pointillist.data.messages import fragment
from pointillist.data.schema import Schema
from pointillist.data.sources import distinct_rows, sum_weights
from pointillist.data.table import Table, as_arrow
from pointillist.errors import InputError, Shown

__all__ = ["PublicTable"]


@dataclass(frozen=True, eq=False)
class PublicTable:
    """The distinct records of a public table.

    Args:
        domain: The domain of the private table.
        present: The attributes of the domain that the public table has.
        codes: The distinct records: one array of codes per attribute in ``present``.
        counts: How often each record occurs.
    """

    domain: Domain
    present: Attributes
    codes: tuple[np.ndarray, ...]
    counts: np.ndarray

    @classmethod
    def encode(cls, data: Any, schema: Schema) -> PublicTable:
        """Encode a public table in the codes of the private schema. Columns that the schema does not have are dropped.

        Args:
            data: A pandas, polars or Arrow table, or a :class:`~pointillist.Table`, whose labels are then matched.
            schema: The schema of the private table. The public table needs at least one of its columns.
        """
        try:
            shared, codes = _shared_codes(data, schema)
        except InputError as error:
            if error.parameter == "public":
                raise
            where = "public" if error.parameter == "table" else f"public, {error.parameter}"
            raise InputError(where, error.value, error.rule, error.hint) from None
        check(len(codes[0]) > 0, "public", Shown("0 rows"), "must have rows", "check the file")
        present = tuple(schema.domain.index(name) for name in shared)
        distinct, _, counts = distinct_rows(codes)
        return cls(schema.domain, present, distinct, counts)

    @property
    def rows(self) -> int:
        """The number of rows, repeated records included."""
        return int(self.counts.sum())

    @property
    def weights(self) -> np.ndarray:
        """The fraction of the rows that each distinct record accounts for."""
        shares: np.ndarray = self.counts / self.rows
        return shares

    @property
    def missing(self) -> Attributes:
        """The attributes of the private domain that the public table lacks."""
        return tuple(i for i in range(len(self.domain)) if i not in self.present)

    def covered(self, marginals: Sequence[Attributes]) -> tuple[Attributes, ...]:
        """Return the marginals whose attributes are all present."""
        return tuple(marginal for marginal in marginals if set(marginal) <= set(self.present))

    def require_covered(self, marginals: Sequence[Attributes]) -> tuple[Attributes, ...]:
        """Return the covered marginals; refuse a table that covers none."""
        covered = self.covered(marginals)
        names = Shown(", ".join(self.domain.names[i] for i in self.present))
        rule = "must have all columns of at least one marginal of the workload"
        check(len(covered) > 0, "public", names, rule, "use a smaller K or a table with more columns")
        return covered

    def count(self, marginals: Sequence[Attributes]) -> list[np.ndarray]:
        """Return the exact counts of covered marginals, one flat array each."""
        place = {attribute: n for n, attribute in enumerate(self.present)}
        local = Domain(tuple(self.domain.names[i] for i in self.present), self.domain.shape(self.present))
        inside = [tuple(place[i] for i in marginal) for marginal in marginals]
        sums = sum_weights(self.codes, self.counts.astype(np.float64), local, inside)
        return [np.rint(values).astype(np.int64) for values in sums]

    @cached_property
    def digest(self) -> str:
        """A hash of the content."""
        content = hashlib.sha256(repr((self.domain, self.present)).encode())
        for array in (*self.codes, self.counts):
            content.update(str(array.dtype).encode())
            content.update(np.ascontiguousarray(array).tobytes())
        return content.hexdigest()

    def to_dict(self) -> dict[str, Any]:
        """Return what a release records about the public table."""
        missing = [self.domain.names[i] for i in self.missing]
        return {"rows": self.rows, "records": len(self.counts), "missing": missing, "sha256": self.digest}

    def describe(self) -> str:
        """Return a one-line description."""
        gaps = f", without {len(self.missing)} of the attributes" if self.missing else ""
        return f"public table: {self.rows:,} rows, {len(self.counts):,} distinct records{gaps}"


def _shared_codes(data: Any, schema: Schema) -> tuple[list[str], Sequence[np.ndarray]]:
    """Return the columns of ``schema`` that a table has, and their codes."""
    table = data if isinstance(data, Table) else as_arrow(data)
    names = table.domain.names if isinstance(table, Table) else tuple(table.column_names)
    shared = [name for name in schema.domain.names if name in names]
    hint = "give a table with columns of the same names"
    check(len(shared) > 0, "public", fragment(list(names)[:5]), "must share at least one column with the schema", hint)
    own = schema.project(shared)
    if isinstance(table, Table):
        table = table.project(shared)
        columns = zip(own.columns, table.schema.columns, table.codes, strict=True)
        return shared, [column.translate(codes, source) for column, source, codes in columns]
    kept = [n for n, name in enumerate(names) if name in shared]  # keeps repeated columns, which are then refused
    return shared, Table.encode(table.select(kept), own).codes
