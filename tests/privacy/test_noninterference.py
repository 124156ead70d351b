"""A whole release depends on the table through the noise alone.

The noise is replaced by one that ignores the data. Then two tables that the relation counts as comparable must give
the same release to the last bit: rows, model, transcript, ledger, description and files.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pointillist import Intervals, Product, Workload, synthesize
from pointillist.data.schema import Categorical, Schema
from pointillist.data.table import Table
from pointillist.release import Release

pytestmark = pytest.mark.usefixtures("blind_noise")

SCHEMA = Schema(tuple(Categorical(name, tuple(str(v) for v in range(k))) for name, k in (("a", 2), ("b", 3), ("c", 4))))
SIZES = [("replace", (60, 60)), ("add-remove", (60, 61)), ("add-remove", (20, 5_000))]
PREFIXES = Workload.of(
    SCHEMA.domain,
    [
        Product.of(SCHEMA.domain, {"c": "prefixes"}),
        Product.of(SCHEMA.domain, {"a": "values", "c": "prefixes"}),
        Product.of(SCHEMA.domain, {"b": Intervals(3, ((0, 2), (1, 2))), "c": "prefixes"}),
        ("a", "b"),
    ],
)


def table(rows: int, seed: int) -> Table:
    rng = np.random.default_rng(seed)
    return Table(SCHEMA, tuple(rng.integers(size, size=rows) for size in SCHEMA.domain.sizes))


def release(data: Table, relation: str, **options: Any) -> Release:
    delta = 1e-6 if relation == "add-remove" else None
    options = {"epsilon": 2.0} | options
    return synthesize(data, delta=delta, relation=relation, insecure_noise_seed=3, seed=5, **options)


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


def require_identical(tmp_path: Path, relation: str, sizes: tuple[int, int], **options: Any) -> list[Release]:
    """The releases of two different tables of these sizes, which must be the same to the last bit."""
    made = [release(table(rows, seed), relation, **options) for seed, rows in enumerate(sizes)]
    folders = [folder_bytes(one, tmp_path / str(n)) for n, one in enumerate(made)]
    assert folders[0] == folders[1]
    assert {"synthetic.csv", "synthetic.parquet", "release.json", "model.npz", "transcript.npz"} == set(folders[0])
    return made


@pytest.mark.parametrize("group", ["query", "marginal"])
@pytest.mark.parametrize("workload", ["marginals:2", "marginals:2:2"])
@pytest.mark.parametrize(("relation", "sizes"), SIZES)
def test_releases_of_different_tables_are_identical(
    tmp_path: Path, relation: str, sizes: tuple[int, int], workload: str, group: str
) -> None:
    require_identical(tmp_path, relation, sizes, workload=workload, group=group, settings={"rounds": 2})


@pytest.mark.parametrize(
    ("method", "group", "settings"),
    [
        ("mwem", "query", {"rounds": 3}),
        ("mwem", "marginal", {"rounds": 3}),
        ("rap_softmax", "query", {"rounds": 2, "picks": 2, "rows": 10, "t_max": 3}),
        ("rap_softmax", "marginal", {"rounds": 2, "picks": 2, "rows": 10, "t_max": 3}),
        ("gem", "query", {"rounds": 2, "batch": 10, "inputs": 4, "hidden": "8", "t_max": 2}),
        ("gem", "marginal", {"rounds": 2, "batch": 10, "inputs": 4, "hidden": "8", "t_max": 2}),
        ("auto", "marginal", {"rows": 4, "t_max": 2}),
        ("aim", "marginal", {"rounds": 6, "t_max": 5}),
        ("mst", "marginal", {"t_max": 5}),
    ],
)
@pytest.mark.parametrize(("relation", "sizes"), SIZES)
def test_releases_for_products_are_identical(
    tmp_path: Path, relation: str, sizes: tuple[int, int], method: str, group: str, settings: dict[str, Any]
) -> None:
    options = {"workload": PREFIXES, "method": method, "group": group, "settings": settings, "epsilon": 5.0}
    made = require_identical(tmp_path, relation, sizes, **options)
    assert made[0].log.rounds


@pytest.mark.parametrize("method", ["auto", "one-shot"])
@pytest.mark.parametrize("epsilon", [0.3, 30.0])
@pytest.mark.parametrize(("relation", "sizes"), [("replace", (60, 60)), ("add-remove", (1, 5_000))])
def test_releases_of_the_default_are_identical_in_either_account(
    tmp_path: Path, relation: str, sizes: tuple[int, int], epsilon: float, method: str
) -> None:
    settings = {"rows": 4, "t_max": 2}
    options = {"epsilon": epsilon, "workload": "marginals:2", "method": method, "settings": settings}
    for made in require_identical(tmp_path, relation, sizes, **options):
        assert made.description.privacy.accounting == ("Gaussian" if epsilon == 0.3 else "zCDP")


def test_the_smallest_tables_are_treated_alike_where_n_is_private() -> None:
    """One row more must not decide whether there is a release at all."""
    options: dict[str, Any] = {"workload": "marginals:2", "settings": {"rounds": 2}}
    first, second = (release(table(rows, 0), "add-remove", **options).description for rows in (1, 2))
    assert first == second


def test_n_is_the_only_thing_that_replace_tells() -> None:
    """The comparison is able to fail: n is public under replace, so tables of different sizes are told apart."""
    options: dict[str, Any] = {"workload": "marginals:2", "settings": {"rounds": 2}}
    first, second = (release(table(rows, 0), "replace", **options).description for rows in (60, 61))
    assert first.total == 60
    assert second.total == 61
    assert first != second


def test_delta_must_be_given_where_n_is_private() -> None:
    with pytest.raises(ValueError, match="delta must be given under add-remove"):
        synthesize(table(60, 0), epsilon=1.0, relation="add-remove")
