"""What the steps of a strategy cost, in exact numbers."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from pointillist.framework import Draw, Log, Measure, Select, Step, Strategy, most_rounds
from pointillist.privacy.facts import Facts


def cost_of(step: Step) -> Fraction:
    """The rho that a step may spend."""
    if isinstance(step, Measure):
        return sum((Fraction(ask.rho) for ask in step.asked), Fraction(0))
    if isinstance(step, Select):
        return step.picks * (Fraction(step.select_rho) + Fraction(step.measure_rho))
    assert isinstance(step, Draw)
    return Fraction(0)


def steps_of(strategy: Strategy, facts: Facts) -> Iterator[Step]:
    """The steps of a strategy that looks at nothing but public facts, until it ends."""
    t, log = 0, Log(facts)
    while (step := strategy.step(t, facts, log, None, None)) is not None:  # type: ignore[arg-type]
        yield step
        t += 1


def spent(strategy: Strategy, rho: float, total: int, start: int = 0, stop: int | None = None) -> Fraction:
    """The exact sum of all that the rounds from ``start`` to ``stop`` may spend; as many as the outline says."""
    facts = Facts(total, rho)
    steps = list(steps_of(strategy, facts))
    assert len(steps) == most_rounds(strategy, facts)
    return sum((cost_of(step) for step in steps[start:stop]), Fraction(0))
