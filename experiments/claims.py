"""What the results say about a claim of the paper: a count, a ratio and a verdict."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from statistics import median

from experiments.curves import Spot, curves_of
from experiments.grid import Claim, Experiment, Key, Row

CLEAR = 2.0
"""A difference is clear if it is larger than this many standard errors."""
MOSTLY, HARDLY = 0.75, 0.25
"""A claim mostly holds from this share of the comparisons on, and does not hold up to that share."""

Pair = tuple[Spot, Spot | None]


def judge(experiment: Experiment, claim: Claim, results: Mapping[Key, Row]) -> tuple[str, str]:
    """The verdict on a claim, and the figures behind it."""
    pairs = list(_pairs(experiment, claim, results))
    if not pairs:
        return "not measured", "no runs to compare"
    if claim.kind == "above":
        values = [first.mean(claim.metric) for first, _ in pairs]
        count = sum(value > claim.value for value in values)
        return _word(count, len(pairs)), f"above at {count} of {len(pairs)}; the smallest is {min(values):.4f}"
    ratios = [first.mean(claim.metric) / second.mean(claim.metric) for first, second in pairs if second is not None]
    if claim.kind == "similar":
        count = sum(1 / claim.value <= ratio <= claim.value for ratio in ratios)
        told = f"within a factor of {claim.value:g} at {count} of {len(pairs)}"
    else:
        count = sum(ratio < 1 for ratio in ratios)
        clear = sum(_clear(first, second, claim.metric) for first, second in pairs if second is not None)
        told = f"smaller at {count} of {len(pairs)}, clearly so at {clear}"
    return _word(count, len(pairs)), f"{told}; median ratio {median(ratios):.2f}"


def _pairs(experiment: Experiment, claim: Claim, results: Mapping[Key, Row]) -> Iterator[Pair]:
    """The two curves at every epsilon that both have, on every table of the claim."""
    for panel in experiment.panels:
        if claim.datasets and panel.dataset not in claim.datasets:
            continue
        curves = curves_of(experiment, panel, results)
        first = curves.get(claim.first, {})
        if claim.kind == "above":
            yield from ((spot, None) for spot in first.values())
            continue
        second = curves.get(claim.second, {})
        yield from ((first[epsilon], second[epsilon]) for epsilon in first if epsilon in second)


def _clear(first: Spot, second: Spot, metric: str) -> bool:
    """Whether the first is smaller by more than the noise of the two means; never with a single run."""
    spread = math.hypot(first.error(metric), second.error(metric))
    return second.mean(metric) - first.mean(metric) > CLEAR * spread


def _word(count: int, total: int) -> str:
    share = count / total
    if share == 1:
        return "holds"
    if share >= MOSTLY:
        return "mostly holds"
    return "does not hold" if share <= HARDLY else "mixed"
