"""The one call that users make: which method it takes when none is named, and what it says of the number of rows."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from pointillist import Categorical, Relation, Release, Schema, Table, synthesize
from pointillist.data.domain import Domain
from pointillist.synthesis import default_method

SMALL = Domain(("a", "b", "c"), (3, 4, 5))
LARGE = Domain(tuple(f"x{i}" for i in range(12)), (10,) * 12)


@pytest.mark.parametrize(
    ("domain", "group", "settings", "name"),
    [
        (SMALL, None, {}, "auto"),
        (LARGE, None, {}, "auto"),
        (LARGE, "marginal", {"rows": 100}, "auto"),
        (SMALL, None, {"rounds": 5}, "mwem"),
        (SMALL, "query", {}, "mwem"),
        (SMALL, None, {"round": 5}, "mwem"),
        (SMALL, None, {"spreed": 5}, "auto"),
        (LARGE, None, {"rounds": 5}, "gem"),
        (LARGE, "query", {}, "gem"),
    ],
)
def test_the_default_method(domain: Domain, group: str | None, settings: dict[str, int], name: str) -> None:
    assert default_method(domain, group, settings).name == name


@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize("method", ["mwem", "one-shot"])  # one of each kind of accounting
def test_a_release_tells_the_noise_of_the_number_of_rows(method: str, relation: Relation, tmp_path: Path) -> None:
    schema = Schema((Categorical("a", (0, 1)), Categorical("b", (0, 1, 2))))
    table = Table(schema, (np.arange(300) % 2, np.arange(300) % 3))
    settings = {"rounds": 2} if method == "mwem" else {"rows": 20, "t_max": 3}
    release = synthesize(
        table, epsilon=1.0, delta=1e-6, relation=relation, method=method, workload="marginals:1", settings=settings
    )
    ledger = {entry["label"]: entry["scale"] for entry in release.spec["privacy"]["ledger"]}
    sigma = release.spec["total_sigma"]
    assert sigma == ledger.get("number of rows", 0.0) == release.log.total_sigma
    assert (sigma > 1) == (relation is Relation.ADD_REMOVE)
    folder = release.save(tmp_path / "release")
    assert json.loads((folder / "release.json").read_text())["total_sigma"] == sigma
    assert Release.load(folder).log.total_sigma == sigma
