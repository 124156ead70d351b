"""What the tables of accuracy share: the runs of one cell, and where the runs were made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from experiments.curves import Spot, best
from experiments.grid import Key, Row, Sweep


def spot_of(sweep: Sweep, dataset: str, epsilon: float, results: Mapping[Key, Row]) -> Spot | None:
    """The runs of a sweep with a single setting on one table at one epsilon; None if there are none."""
    runs = (run for run in (*sweep.tuned(), *sweep.untuned()) if run.dataset == dataset and run.epsilon == epsilon)
    return best(runs, results).get(epsilon)


def three_errors(spot: Spot | None) -> str:
    """Max error, root-mean-square error and total variation distance, with the number of runs."""
    if spot is None:
        return ""
    return f"{spot.mean('max'):.4f} / {spot.mean('rmse'):.5f} / {spot.mean('tvd'):.3f} ({len(spot.runs)})"


def against(spot: Spot | None, reference: tuple[float, float]) -> tuple[str, str, str]:
    """Max error and root-mean-square error of ours with the number of runs and of a reference, and their ratios."""
    theirs = f"{reference[0]:.4f} / {reference[1]:.5f}"
    if spot is None:
        return "", theirs, ""
    ours = spot.mean("max"), spot.mean("rmse")
    return (
        f"{ours[0]:.4f} / {ours[1]:.5f} ({len(spot.runs)})",
        theirs,
        f"{ours[0] / reference[0]:.2f} / {ours[1] / reference[1]:.2f}",
    )


BEFORE_TIES = ("unknown", "6007502282")
"""The commits of runs of the default that were made before it measured ties first."""


def older_auto(sweeps: Sequence[Sweep], results: Mapping[Key, Row]) -> str:
    """Which tables have runs of the default that its later changes have made obsolete; nothing if there are none."""
    found = {
        row["dataset"]
        for row in _rows(sweeps, results)
        if row["method"] == "auto" and row["commit"] in BEFORE_TIES
    }  # fmt: skip
    if not found:
        return ""
    return (
        f"The runs of auto on {', '.join(sorted(found))} were made before it measured ties first (by `ties=false` it "
        "still measures everything at once); the suite has runs of the present default. "
    )


def _rows(sweeps: Sequence[Sweep], results: Mapping[Key, Row]) -> list[Row]:
    """The finished runs of the sweeps."""
    runs = [run for sweep in sweeps for run in (*sweep.tuned(), *sweep.untuned())]
    return [results[run.key] for run in runs if run.key in results]


def made_on(sweeps: Sequence[Sweep], results: Mapping[Key, Row]) -> str:
    """The machines on which the runs of the sweeps were made."""
    machines = {row["machine"] for row in _rows(sweeps, results)}
    return f"The runs were made on: {'; '.join(sorted(machines))}."
