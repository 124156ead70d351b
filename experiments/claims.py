"""What the results say about a claim of the paper: a count, a ratio and a verdict.

Where a curve is the best of a grid, the setting is chosen on all seeds but one and judged on that one, for each seed in
turn. The two curves of a comparison are then compared seed by seed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from statistics import fmean, median, stdev

from scipy.stats import t as student

from experiments.curves import held_out, runs_of
from experiments.grid import Claim, Experiment, Key, Row

LEVEL = 0.05
"""A difference is clear if a paired t-test over the seeds, with two sides, rejects at this level that there is none."""
ROUNDING = 1e-4
"""A ratio that is smaller than 1 by less than this is 1: the results have six digits."""
MOSTLY, HARDLY = 0.75, 0.25
"""A claim mostly holds from this share of the comparisons on, and does not hold up to that share."""

Seeds = Mapping[int, float]
"""The error of each seed."""
Selected = Mapping[str, tuple[Experiment, dict[Key, Row]]]
"""Experiments with their lines, by name."""


def judge(experiment: Experiment, claim: Claim, results: Mapping[Key, Row]) -> tuple[str, str]:
    """The verdict on a claim, and the figures behind it."""
    pairs = list(_pairs(experiment, claim, results))
    if not pairs:
        return "not measured", "no runs to compare"
    if claim.kind == "above":
        values = [fmean(first.values()) for first, _ in pairs]
        count = sum(value > claim.value for value in values)
        return _word(count, len(pairs)), f"above at {count} of {len(pairs)}; the smallest is {min(values):.4f}"
    ratios = [fmean(first.values()) / fmean(second.values()) for first, second in pairs]
    if claim.kind == "not below":
        count = sum(ratio >= 1 - ROUNDING for ratio in ratios)
        return _word(count, len(pairs)), f"not below at {count} of {len(pairs)}; smallest ratio {min(ratios):.2f}"
    if claim.kind == "times":
        count = sum(1 / ratio >= claim.value for ratio in ratios)
        told = f"by a factor of {claim.value:g} or more at {count} of {len(pairs)}"
        spread = " to ".join(dict.fromkeys(f"{1 / ratio:.2f}" for ratio in (max(ratios), min(ratios))))
        return _word(count, len(pairs)), f"{told}; factors {spread}"
    if claim.kind == "similar":
        count = sum(1 / claim.value <= ratio <= claim.value for ratio in ratios)
        told = f"within a factor of {claim.value:g} at {count} of {len(pairs)}"
    else:
        count = sum(ratio < 1 for ratio in ratios)
        clear, against = (sum(is_clear(*pair) for pair in side) for side in (pairs, [(b, a) for a, b in pairs]))
        told = f"smaller at {count} of {len(pairs)}, clearly so at {clear}"
        told += f", clearly larger at {against}" if against else ""
    return _word(count, len(pairs)), f"{told}; median ratio {median(ratios):.2f}"


def _pairs(experiment: Experiment, claim: Claim, results: Mapping[Key, Row]) -> Iterator[tuple[Seeds, Seeds]]:
    """The two curves at every epsilon that both have, on every table of the claim; only seeds that both have."""
    for panel in experiment.panels:
        if claim.datasets and panel.dataset not in claim.datasets:
            continue
        runs = runs_of(experiment, panel)
        first = held_out(runs.get(claim.first, ()), results, claim.metric)
        second = first if claim.kind == "above" else held_out(runs.get(claim.second, ()), results, claim.metric)
        for epsilon in first:
            shared = first[epsilon].keys() & second.get(epsilon, {}).keys()
            if shared and (not claim.epsilons or epsilon in claim.epsilons):
                yield tuple({seed: one[epsilon][seed] for seed in sorted(shared)} for one in (first, second))  # type: ignore[misc]


def is_clear(first: Seeds, second: Seeds) -> bool:
    """Whether the first is smaller by a paired t-test on the logarithms; never with a single seed."""
    if len(first) < 2 or min(*first.values(), *second.values()) <= 0:
        return False
    differences = [math.log(second[seed] / first[seed]) for seed in first]
    spread = stdev(differences) / math.sqrt(len(differences))
    return fmean(differences) > float(student.ppf(1 - LEVEL / 2, len(differences) - 1)) * spread


def _word(count: int, total: int) -> str:
    share = count / total
    if share == 1:
        return "holds"
    if share >= MOSTLY:
        return "mostly holds"
    return "does not hold" if share <= HARDLY else "mixed"
