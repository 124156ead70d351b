"""Tails of lines that noise explains."""

from __future__ import annotations

import numpy as np

from pointillist.refining.trees import without_tails


def test_a_tail_that_noise_explains_is_taken_away_at_either_end() -> None:
    counts = np.array([0.5, 0.4, 50.0, 80.0, 30.0, 0.3, 0.2, 0.1])
    found = without_tails(counts, 1.0)
    assert found.tolist() == [0.0, 0.0, 50.0, 80.0, 30.0, 0.0, 0.0, 0.0]
    assert without_tails(counts, 0.0).tolist() == counts.tolist()
    little = np.array([1.0, 1.0, 1.0])
    assert without_tails(little, 5.0).tolist() == little.tolist()  # nothing would be left
