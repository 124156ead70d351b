"""A public table beside the private one: its distinct records, in the codes of the private schema.

It may lack attributes of the private schema. Nothing here looks at private data, so nothing here costs budget.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from pointillist.data.domain import Attributes, Domain
from pointillist.data.schema import Categorical, Column, Schema, code_dtype
from pointillist.data.sources import sum_weights
from pointillist.data.table import Table, as_arrow
from pointillist.errors import InputError, Shown, check

__all__ = ["PublicTable"]


@dataclass(frozen=True, eq=False)
class PublicTable:
    """Distinct records over the attributes ``present`` of the private ``domain``, and how often each occurs."""

    domain: Domain
    present: Attributes
    codes: tuple[np.ndarray, ...]
    """One array per attribute in ``present``."""
    counts: np.ndarray

    @classmethod
    def encode(cls, data: Any, schema: Schema) -> PublicTable:
        """A table of any kind in the codes of the private ``schema``; columns that are not in it are left out.

        A plain table is encoded by the private schema; a :class:`~pointillist.Table` is matched to it by its labels.
        """
        try:
            if isinstance(data, Table):
                table = data
                shared = [name for name in schema.domain.names if name in data.domain.names]
                _require_shared(shared, table.domain.names)
                codes = [_translate(data, schema.columns[schema.domain.index(name)]) for name in shared]
            else:
                arrow = as_arrow(data)
                shared = [name for name in schema.domain.names if name in arrow.column_names]
                _require_shared(shared, arrow.column_names)
                own = [n for n, name in enumerate(arrow.column_names) if name in shared]  # a repeated one twice
                codes = list(Table.encode(arrow.select(own), schema.project(shared)).codes)
        except InputError as error:
            if error.parameter == "public":
                raise
            where = "public" if error.parameter == "table" else f"public, {error.parameter}"
            raise InputError(where, error.value, error.rule, error.hint) from None
        check(len(codes[0]) > 0, "public", Shown("0 rows"), "must have rows", "check the file")
        present = tuple(schema.domain.index(name) for name in shared)
        distinct, counts = _distinct(codes)
        return cls(schema.domain, present, distinct, counts)

    @property
    def rows(self) -> int:
        return int(self.counts.sum())

    @property
    def weights(self) -> np.ndarray:
        """The share of the rows that each distinct record has."""
        shares: np.ndarray = self.counts / self.rows
        return shares

    @property
    def missing(self) -> Attributes:
        """The attributes of the private domain that the table lacks."""
        return tuple(i for i in range(len(self.domain)) if i not in self.present)

    def covered(self, marginals: Sequence[Attributes]) -> tuple[Attributes, ...]:
        """The marginals whose attributes the table has."""
        return tuple(marginal for marginal in marginals if set(marginal) <= set(self.present))

    def require_covered(self, marginals: Sequence[Attributes]) -> tuple[Attributes, ...]:
        """The covered marginals; refuses a table that covers none."""
        covered = self.covered(marginals)
        names = Shown(", ".join(self.domain.names[i] for i in self.present))
        rule = "must have all columns of at least one marginal of the workload"
        check(len(covered) > 0, "public", names, rule, "use a smaller K or a table with more columns")
        return covered

    def count(self, marginals: Sequence[Attributes]) -> list[np.ndarray]:
        """Counts of covered marginals, which are public."""
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
        """What a release says of the public table."""
        missing = [self.domain.names[i] for i in self.missing]
        return {"rows": self.rows, "records": len(self.counts), "missing": missing, "sha256": self.digest}

    def describe(self) -> str:
        gaps = f", without {len(self.missing)} of the attributes" if self.missing else ""
        return f"public table: {self.rows:,} rows, {len(self.counts):,} distinct records{gaps}"


def _require_shared(shared: Sequence[str], names: Sequence[str]) -> None:
    check(len(shared) > 0, "public", list(names)[:5], "must share at least one column with the schema",
          "give a table with columns of the same names")  # fmt: skip


def _translate(table: Table, column: Column) -> np.ndarray:
    """A column of ``table`` in the codes of ``column``, matched by labels where the two lists differ."""
    at = table.domain.index(column.name)
    own, codes = table.schema.columns[at], table.codes[at]
    if own.to_dict() | {"dtype": ""} == column.to_dict() | {"dtype": ""}:  # the type of the output is no matter
        return codes
    where = f"column {column.name!r}"
    if not (isinstance(own, Categorical) and isinstance(column, Categorical)):
        rule = "must be binned as in the schema of the private table"
        raise InputError(where, Shown("other bins"), rule, "give the public table as a file or a plain table")
    place = {str(label): code for code, label in enumerate(column.labels)}
    stray = -1 if column.other is None else place[str(column.other)]
    gap = len(column.labels) if column.missing else -1
    lookup = np.array([*(place.get(str(label), stray) for label in own.labels), *([gap] if own.missing else [])])
    translated: np.ndarray = lookup[codes]
    if (translated < 0).any():
        strange = int(codes[translated < 0][0])
        label = own.labels[strange] if strange < len(own.labels) else None
        raise InputError(where, label, "must hold values of the private schema only",
                         "map the value to one of them, or drop its rows")  # fmt: skip
    return translated.astype(code_dtype(column.size))


def _distinct(codes: Sequence[np.ndarray]) -> tuple[tuple[np.ndarray, ...], np.ndarray]:
    """The distinct rows, and how often each occurs."""
    matrix = np.ascontiguousarray(np.stack(codes, axis=1))
    rows = matrix.view(np.dtype((np.void, matrix.dtype.itemsize * matrix.shape[1]))).ravel()
    _, first, counts = np.unique(rows, return_index=True, return_counts=True)
    return tuple(column[first] for column in codes), counts.astype(np.int64)
