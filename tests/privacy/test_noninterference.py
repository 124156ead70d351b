"""A whole release depends on the table through the noise alone.

The noise is replaced by one that ignores the data. Then two tables that the relation counts as comparable must give
the same release to the last bit: rows, model, transcript, ledger, specification and files.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pointillist import synthesis
from pointillist.data.schema import Categorical, Schema
from pointillist.data.table import Table
from pointillist.release import Release

pytestmark = pytest.mark.usefixtures("blind_noise")

SCHEMA = Schema(tuple(Categorical(name, tuple(str(v) for v in range(k))) for name, k in (("a", 2), ("b", 3), ("c", 4))))


def table(rows: int, seed: int) -> Table:
    rng = np.random.default_rng(seed)
    return Table(SCHEMA, tuple(rng.integers(size, size=rows) for size in SCHEMA.domain.sizes))


def release(data: Table, relation: str, **options: Any) -> Release:
    delta = 1e-6 if relation == "add-remove" else None
    options = {"epsilon": 2.0} | options
    return synthesis.synthesize(data, delta=delta, relation=relation, insecure_noise_seed=3, seed=5, **options)


def folder_bytes(made: Release, folder: Path) -> dict[str, Any]:
    made.save(folder)
    found: dict[str, Any] = {}
    for path in sorted(folder.iterdir()):
        if path.suffix == ".npz":  # a zip archive holds times, so compare what is in it
            with np.load(path) as arrays:
                found[path.name] = {name: arrays[name].tobytes() for name in arrays.files}
        else:
            found[path.name] = path.read_bytes()
    return found


@pytest.mark.parametrize("group", ["query", "marginal"])
@pytest.mark.parametrize("workload", ["marginals:2", "marginals:2:2"])
@pytest.mark.parametrize(
    ("relation", "sizes"), [("replace", (60, 60)), ("add-remove", (60, 61)), ("add-remove", (20, 5_000))]
)
def test_releases_of_different_tables_are_identical(
    tmp_path: Path, relation: str, sizes: tuple[int, int], workload: str, group: str
) -> None:
    folders = []
    for seed, rows in enumerate(sizes):
        made = release(table(rows, seed), relation, workload=workload, group=group, settings={"rounds": 2})
        folders.append(folder_bytes(made, tmp_path / str(seed)))
    assert folders[0] == folders[1]
    assert {"synthetic.csv", "synthetic.parquet", "release.json", "model.npz", "transcript.npz"} == set(folders[0])


@pytest.mark.parametrize("method", ["auto", "one-shot"])
@pytest.mark.parametrize("epsilon", [0.3, 30.0])
@pytest.mark.parametrize(("relation", "sizes"), [("replace", (60, 60)), ("add-remove", (1, 5_000))])
def test_releases_of_the_default_are_identical_in_either_account(
    tmp_path: Path, relation: str, sizes: tuple[int, int], epsilon: float, method: str
) -> None:
    settings = {"rows": 4, "t_max": 2}
    folders = []
    for seed, rows in enumerate(sizes):
        data = table(rows, seed)
        made = release(data, relation, epsilon=epsilon, workload="marginals:2", method=method, settings=settings)
        assert made.spec["privacy"]["accounting"] == ("Gaussian" if epsilon == 0.3 else "zCDP")
        folders.append(folder_bytes(made, tmp_path / str(seed)))
    assert folders[0] == folders[1]


def test_the_smallest_tables_are_treated_alike_where_n_is_private() -> None:
    """One row more must not decide whether there is a release at all."""
    options: dict[str, Any] = {"workload": "marginals:2", "settings": {"rounds": 2}}
    specs = [release(table(rows, 0), "add-remove", **options).spec for rows in (1, 2)]
    assert specs[0] == specs[1]


def test_n_is_the_only_thing_that_replace_tells() -> None:
    """The comparison is able to fail: n is public under replace, so tables of different sizes are told apart."""
    options: dict[str, Any] = {"workload": "marginals:2", "settings": {"rounds": 2}}
    first, second = (release(table(rows, 0), "replace", **options).spec for rows in (60, 61))
    assert first["total"] == 60
    assert second["total"] == 61
    assert first != second


def test_delta_must_be_given_where_n_is_private() -> None:
    with pytest.raises(ValueError, match="delta must be given under add-remove"):
        synthesis.synthesize(table(60, 0), epsilon=1.0, relation="add-remove")
