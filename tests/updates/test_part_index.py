"""An index of measurements: the same parts as from all of them, and nothing looked at that tells nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.updates.test_parts import DOMAIN, TOTAL, measured, residuals_of

from pointillist.data.domain import Attributes
from pointillist.queries.marginal import Marginal
from pointillist.queries.measurement import Measurement
from pointillist.updates.part_index import PartIndex
from pointillist.updates.parts import PartEstimates

MANY = 1000


@pytest.mark.parametrize("scope", [(0,), (0, 1), (1, 2), (0, 1, 3), (0, 1, 2, 3)])
def test_parts_are_those_of_all_measurements(scope: Attributes) -> None:
    every = PartEstimates.of(DOMAIN, measured(1.0), TOTAL)
    index = PartIndex(DOMAIN, measured(1.0), TOTAL, MANY)
    for _ in range(2):  # the second time from what was kept
        some = index.inside(scope)
        assert some is not None
        assert set(some.scopes) == {part for part in every.scopes if set(part) <= set(scope)}
        for part in some.scopes:
            assert np.allclose(some.values[part], every.values[part])
            assert some.precision[part] == pytest.approx(every.precision[part])


def test_attributes_of_one_value_have_no_parts() -> None:
    found = PartIndex(DOMAIN, [], TOTAL, MANY).inside((2,))
    assert found is not None
    assert found.scopes == ()
    assert found.marginal((2,)) == pytest.approx([1.0])
    assert found.variance((2,)) == 0


def test_nothing_is_known_if_a_part_is_not_told() -> None:
    index = PartIndex(DOMAIN, [Measurement(residuals_of((0,), (0, 1)), np.zeros(8), 1.0)], TOTAL, MANY)
    assert index.inside((0,)) is not None
    assert index.inside((0, 1)) is None  # (1,) is not told
    assert index.inside((0, 3)) is None


def test_marginals_of_other_attributes_are_not_looked_at() -> None:
    nothing: Any = None  # anything done with these counts would fail
    others = [Measurement(Marginal.of(DOMAIN, scope), nothing, 1.0) for scope in ((1,), (2, 3), (1, 2, 3))]
    wanted = Measurement(Marginal.of(DOMAIN, (0,)), np.array([400.0, 600.0]), 1.0)
    found = PartIndex(DOMAIN, [*others, wanted], TOTAL, MANY).inside((0,))
    assert found is not None
    assert found.marginal((0,)) == pytest.approx([0.4, 0.6])


def test_large_marginals_are_passed_over() -> None:
    index = PartIndex(DOMAIN, measured(), TOTAL, 12)
    assert index.inside((0, 3)) is None  # only the triple tells it, which has 24 cells
    assert index.inside((1, 3)) is not None
    assert index.inside((0, 1, 3)) is None
