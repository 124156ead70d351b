"""Every method can be simulated: replicates fit the release, and both relations are simulated."""

from __future__ import annotations

import numpy as np
import pytest
from tests.contract.test_contract import CASES, make, public_table

from pointillist import Grouping, Method, Relation
from pointillist.answers import intervals

SOME = ("auto", "mwem", "aim", "dualquery")
"""Methods that are simulated in every run of the tests; the others are slow together."""

EVERY = [pytest.param(*c.values, id=c.id, marks=[] if c.values[0].name in SOME else [pytest.mark.slow]) for c in CASES]


@pytest.mark.parametrize(("method", "grouping"), EVERY)
def test_every_method_can_be_simulated(method: Method, grouping: Grouping) -> None:
    relation = list(Relation)[len(method.name) % 2]
    release = make(method, grouping, relation, 3, seed=5).run(progress=False)
    made = release.replicate(2, public=public_table(method), progress=False)
    assert made.replicates is not None
    estimate, low, high = intervals(made, made.workload.queries, 0.9)
    assert bool((low <= estimate + 1e-9).all() and (estimate <= high + 1e-9).all())
    moved = made.replicates.moved(made.workload.queries)
    assert np.isfinite(moved).all()
    assert (moved != 0).any()
