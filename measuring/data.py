"""Tables, public tables and workloads by name."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path

import numpy as np

from measuring.acs_paper import nearest_to_the_paper
from pointillist import Schema, Table, Workload, load
from pointillist.data.datasets import is_dataset
from pointillist.data.public import PublicTable
from pointillist.queries.texts import parse_workload

# The two-valued columns of acs-pa, employment and tenure, and the smallest of the others: 15 columns, as many as in the
# paper's reduced table. The columns nearest to the paper's are those of acs-pa-paper.
ACS_REDUCED = (
    "SEX", "NATIVITY", "LANX", "ESR", "HICOV", "PRIVCOV", "PUBCOV", "DIS", "DEAR", "DEYE", "DREM", "DPHY", "TEN",
    "MULTG", "TYPEHUGQ",
)  # fmt: skip
PROJECTIONS = {"acs-pa-reduced": ("acs-pa", ACS_REDUCED)}
"""Tables that only exist in the experiments: a named dataset over some of its columns."""
ADULT_SIZES = (2, 2, 5, 6, 7, 9, 15, 16, 42, 16, 6, 10, 10)
"""The numbers of values of ADULT's columns, for benchmarks that need no rows."""
UNITED_STATES = 39
"""The code of the largest country of birth in ADULT."""


def _few(table: Table) -> np.ndarray:
    """The places of 200 rows, drawn once."""
    return np.sort(np.random.default_rng(0).permutation(len(table))[:200])


def _where(column: str, wanted: Callable[[np.ndarray], np.ndarray]) -> Callable[[Table], np.ndarray]:
    """The places of the rows whose code in ``column`` is wanted."""
    return lambda table: np.flatnonzero(wanted(table.codes[table.domain.names.index(column)]))


PARTS: dict[str, tuple[str, Callable[[Table], np.ndarray]]] = {
    "adult-few": ("adult-public", _few),
    "adult-low-income": ("adult-public", _where("income>50K", lambda codes: codes == 0)),
    "adult-foreign-born": ("adult-public", _where("native-country", lambda codes: codes != UNITED_STATES)),
}
"""Tables that only exist in the experiments: some rows of a named dataset."""
DERIVED: dict[str, tuple[str, Callable[[Table], Table]]] = {"acs-pa-paper": ("acs-pa", nearest_to_the_paper)}
"""Tables that only exist in the experiments: other columns, made from those of a named dataset."""
SHUFFLED = " shuffled"
"""The end of the name of a public table whose columns are shuffled: it has the same values, and no correlations."""


def table_of(name: str) -> Table:
    """A dataset by name, or some of its columns or rows, or a table derived from it."""
    if name in PROJECTIONS:
        dataset, columns = PROJECTIONS[name]
        return _dataset(dataset).project(columns)
    if name in PARTS:
        dataset, rows = PARTS[name]
        return _dataset(dataset).take(rows(_dataset(dataset)))
    if name in DERIVED:
        dataset, derive = DERIVED[name]
        return derive(_dataset(dataset))
    return _dataset(name)


@cache
def _dataset(name: str) -> Table:
    """A dataset from its files, or packed in the folder that ``POINTILLIST_PACKED`` names."""
    packed = os.environ.get("POINTILLIST_PACKED")
    if packed:
        with np.load(Path(packed) / f"{name}.npz") as arrays:
            return Table(Schema.from_dict(json.loads(str(arrays["schema"]))), tuple(arrays["codes"]))
    return load(name)


def pack(folder: Path, names: Iterable[str]) -> list[str]:
    """Write the datasets behind ``names`` as compressed arrays, for a machine without their files or pyarrow."""
    folder.mkdir(parents=True, exist_ok=True)
    datasets = {dataset_of(name) for name in names}
    for name in sorted(datasets):
        table = table_of(name)
        schema = json.dumps(table.schema.to_dict())  # not the domain alone: the default knows ordered columns
        np.savez_compressed(folder / f"{name}.npz", schema=schema, codes=np.stack(table.codes))
    return sorted(datasets)


def dataset_of(name: str) -> str:
    """The dataset behind the name of a table or of a public table."""
    name = name.removesuffix(SHUFFLED)
    made = PROJECTIONS.get(name) or PARTS.get(name) or DERIVED.get(name)
    return made[0] if made else name


def is_known(name: str) -> bool:
    """Whether there is a table of this name, even if its files are not there."""
    return is_dataset(dataset_of(name))


def public_of(table: Table, name: str) -> PublicTable:
    """A public table, read with the schema of the private one."""
    public = table_of(name.removesuffix(SHUFFLED))
    if name.endswith(SHUFFLED):
        rng = np.random.default_rng(0)
        public = Table(public.schema, tuple(rng.permutation(codes) for codes in public.codes))
    return PublicTable.encode(public, table.schema)


def workload_of(table: Table, marginals: str) -> Workload:
    """All marginals over K columns, or some of them: ``K`` or ``K:COUNT``."""
    return parse_workload(f"marginals:{marginals}", table.schema, len(table))
