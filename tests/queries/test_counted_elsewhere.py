"""Rows that are counted where they are: the same answers, and sentences for what cannot be counted there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest

from pointillist import InputError, Marginal, Table, load, prepare, synthesize
from pointillist import job as job_module
from pointillist.data.domain import Attributes, Domain
from pointillist.data.kernel import partial_counts, split_counts
from pointillist.data.sources import in_groups
from pointillist.queries.counting import Counts, count_rows

OPTIONS: dict[str, Any] = {"epsilon": 1.0, "workload": "marginals:2", "method": "mwem", "insecure_noise_seed": 0}


class Parts:
    """A table in two parts; ``lost`` rows of the first are forgotten."""

    def __init__(self, table: Table, lost: int = 0) -> None:
        self.schema, self.rows = table.schema, len(table)
        self._parts = [[c[lost:900] for c in table.codes], [c[900:] for c in table.codes]]

    def batches(self) -> Iterator[Any]:
        raise AssertionError("nobody asks for rows")

    def counts(self, domain: Domain, scopes: Sequence[Attributes], groups: Any) -> list[np.ndarray]:
        vectors = [partial_counts(in_groups([part], groups), domain, scopes, threads=1) for part in self._parts]
        return split_counts(vectors[0] + vectors[1], domain, scopes)


@pytest.fixture(scope="module")
def town() -> Table:
    return load("demo").project(["district", "age", "commute"])


def test_parts_make_the_same_release(town: Table) -> None:
    assert np.array_equal(synthesize(Parts(town), **OPTIONS).answers(), synthesize(town, **OPTIONS).answers())


def test_the_number_of_rows_follows_from_the_counts(town: Table) -> None:
    asked = [Marginal((0, 1), town.domain.shape((0, 1))), Marginal((2,), town.domain.shape((2,)))]
    assert count_rows(Parts(town), asked, Counts()) == {len(town)}
    assert count_rows(Parts(town, lost=3), asked, Counts()) == {len(town) - 3}


def test_queries_that_need_rows_are_refused_before_anything_is_spent(
    town: Table, charges: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_module, "is_direct", lambda queries: True)
    with pytest.raises(InputError, match="workload must be over few columns each"):
        prepare(Parts(town), **OPTIONS)
    assert charges == []
