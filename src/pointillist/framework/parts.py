"""The parts of a method, as protocols: a family of distributions, a strategy, an update and an output rule."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np

from pointillist.data.domain import Domain
from pointillist.framework.log import Info, Log, Round
from pointillist.privacy.curator import Door
from pointillist.privacy.facts import Facts, Phase
from pointillist.queries.base import Queries

__all__ = ["Family", "Mixing", "Output", "Start", "Step", "Strategy", "Update", "Updated"]

P = TypeVar("P")
"""The parameters of a distribution in the family."""
P_contra = TypeVar("P_contra", contravariant=True)

Start = Callable[[np.random.Generator], tuple[P, Info]]
"""How the first distribution is made, from public facts alone; with diagnostics."""


class Family(Protocol[P]):
    """A family of distributions over the domain."""

    @property
    def domain(self) -> Domain:
        """The domain X."""
        ...

    def footprint(self, queries: Sequence[Queries]) -> int:
        """Bytes that the parameters and the answers to some queries take; known before they are allocated.

        A family whose fit takes much more than that has a method ``working_set`` with the same argument, too.
        """
        ...

    def init(self, rng: np.random.Generator) -> P:
        """The first distribution D_0."""
        ...

    def answers(self, params: P, queries: Sequence[Queries]) -> np.ndarray:
        """The flat vector q(D) of some queries, one after the other, as fractions."""
        ...

    def sample(self, rng: np.random.Generator, params: P, rows: int) -> tuple[np.ndarray, ...]:
        """Rows drawn from D: one array of codes per attribute."""
        ...

    def to_arrays(self, params: P) -> dict[str, np.ndarray]:
        """The parameters as named arrays, as they are saved."""
        ...

    def from_arrays(self, arrays: Mapping[str, np.ndarray]) -> P:
        """The parameters behind :meth:`to_arrays`."""
        ...

    def to_dict(self) -> dict[str, Any]:
        """The family as plain data: with the domain and the saved arrays this is enough to load a model again."""
        ...


class Mixing(Family[P], Protocol[P]):
    """A family in which distributions can be averaged."""

    def mix(self, first: P, second: P, weight: float) -> P:
        """(1 - weight) first + weight second, without changing either."""
        ...


class Step(Protocol):
    """What one round does with the private data: measure, or select and measure, or neither."""

    def take(self, door: Door, family: Family[P], params: P, log: Log, rng: np.random.Generator) -> Round:
        """Ask the door. ``rng`` is for what needs no data."""
        ...


class Strategy(Protocol):
    """What is asked of the private data, round by round. It sees public facts, the log and the model only."""

    def outline(self, facts: Facts) -> tuple[Phase, ...]:
        """The phases of the run as far as public facts fix them: at most this many rounds and this little noise."""
        ...

    def step(self, t: int, facts: Facts, log: Log, family: Family[P], params: P) -> Step | None:
        """What to do in round t = 0, 1, ...; None ends the run."""
        ...


class Updated(NamedTuple):
    """What an update returns: new parameters, what it keeps for the next round, and diagnostics."""

    params: Any
    memory: Any
    info: Info


class Update(Protocol[P_contra]):
    """The update step: all that it learns of the private data is the log."""

    def init(self, params: P_contra) -> Any:
        """The memory before the first round."""
        ...

    def __call__(self, rng: np.random.Generator, params: P_contra, memory: Any, log: Log) -> Updated:
        """D_t from D_{t-1} and the log. It may consume ``params``."""
        ...


class Output(Protocol[P]):
    """The output rule H over the rounds' distributions, as a running value."""

    def add(self, family: Any, so_far: P | None, params: P, t: int) -> P:
        """The value after round t, given the one before it."""
        ...
