"""How a graphical model is fitted: by our own mirror descent, or by that of mbi."""

from __future__ import annotations

from pointillist.checks import one_of
from pointillist.families.markov import Field, Markov
from pointillist.framework import Update
from pointillist.updates.mirror import MirrorDescent
from pointillist.updates.private_pgm import MbiDescent

__all__ = ["SOLVERS", "fitting"]

SOLVERS = ("numpy", "mbi")
"""The solvers, by name."""


def fitting(family: Markov, solver: str, steps: int, tolerance: float) -> Update[Field]:
    """The update that fits a model.

    Args:
        family: the family of the models.
        solver: one of ``SOLVERS``.
        steps: the largest number of steps of a round.
        tolerance: for ``numpy``, a round ends where steps gain less than this per measured cell.
    """
    if one_of("solver", solver, SOLVERS) == "mbi":
        return MbiDescent(family, steps)
    return MirrorDescent(family, steps, tolerance)
