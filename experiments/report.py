"""Writes what the pages show of the results: verdicts, tables, settings and where the runs come from.

Everything with a number in it is between two markers of a page, or in ``table.md`` of an experiment. It is written
from the committed results and the configs; the rest of a page is prose.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from statistics import median

from measuring.markdown import fill, table
from measuring.markdown import write as write_files

from experiments.claims import Selected, judge
from experiments.curves import DEFAULTS, Curve, Spot, curves_of
from experiments.grid import (
    EPSILONS,
    FIGURES,
    SEEDS,
    SOME_EPSILONS,
    TABLES,
    Experiment,
    Key,
    Panel,
    Point,
    Row,
    Sweep,
    load,
    points,
)
from experiments.opinions import OPINIONS, written
from experiments.results import FOLDER, lines_of, store

PAGES = tuple(FOLDER.parent / "docs" / name for name in ("reproduction.md", "public-data.md"))


def write(check: bool = False) -> int:
    """Write the pages and tables, or with ``check`` only report those that are out of date; the exit code."""
    known = blocks()
    files = {page: fill(page.read_text(encoding="utf-8"), page.name, known) for page in PAGES}
    results = store().read()
    for name in TABLES:
        experiment = load(name)
        assert experiment.table is not None
        files[FOLDER / name / "table.md"] = experiment.table(lines_of(experiment, results))
    return write_files(files, "python -m experiments report", check)


def blocks() -> dict[str, str]:
    """Every block of the pages by the name in its markers."""
    results = store().read()
    shown = {name: (experiment := load(name), lines_of(experiment, results)) for name in FIGURES}
    found = {
        "overview": overview(shown),
        "coverage": coverage(shown),
        "noise": noise(shown),
        "opinions": written(OPINIONS, shown),
        "defaults": defaults(shown),
        "public data": public_data(shown),
    }
    for name, (experiment, lines) in shown.items():
        found |= {
            f"claims {name}": claims_table(experiment, lines),
            f"results {name}": results_tables(experiment, lines),
            f"settings {name}": settings_table(experiment, lines),
            f"runs {name}": runs_table(experiment, lines),
        }
    return found


def overview(shown: Selected) -> str:
    """Every experiment with its runs and the verdicts on its claims."""
    rows = []
    for name, (experiment, results) in shown.items():
        wanted = experiment.runs()
        made = [results[key] for key in wanted if key in results]
        failed = sum(bool(row["error"]) for row in made)
        words = [judge(experiment, claim, results)[0] for claim in experiment.claims]
        verdicts = ", ".join(f"{word}: {words.count(word)}" for word in dict.fromkeys(words))
        count = f"{len(made):,} of {len(wanted):,}" + (f", {failed} failed" if failed else "")
        rows.append((f"`{name}`", experiment.title, count, verdicts))
    return table(("experiment", "what it is", "runs made", "claims"), rows)


def coverage(shown: Selected) -> str:
    """For every method the runs of the paper's whole grids, over all experiments and tables, and how many were made."""
    wanted: dict[str, dict[Key, bool]] = {}
    for experiment, results in shown.values():
        for sweep in experiment.sweeps:
            for run in sweep.tuned(whole=True) if sweep.grid else ():
                row = results.get(run.key)
                wanted.setdefault(run.method, {})[run.key] = row is not None and not row["error"]
    rows = [(f"`{method}`", *_share(runs)) for method, runs in wanted.items()]
    every = {key: made for runs in wanted.values() for key, made in runs.items()}
    return table(("method", "runs of the paper's grids", "made", "share"), [*rows, ("all", *_share(every))])


def noise(shown: Selected) -> str:
    """How many lines have noise of their own, and how many share it with other runs."""
    lines = {key: row["noise"] for _, results in shown.values() for key, row in results.items()}
    own = sum(kind == "own" for kind in lines.values())
    return f"Of the {len(lines):,} runs of the figures, {own:,} have noise of their own."


def _share(runs: Mapping[Key, bool]) -> tuple[str, str, str]:
    made = sum(runs.values())
    return f"{len(runs):,}", f"{made:,}", f"{made / len(runs):.0%}"


def defaults(shown: Selected) -> str:
    """For every method with both, the max error of its defaults divided by that of the best of its grid."""
    rows: list[tuple[str, ...]] = []
    for experiment, results in shown.values():
        for panel in experiment.panels:
            curves = curves_of(experiment, panel, results)
            for label in curves:
                best, plain = curves[label], curves.get(label + DEFAULTS, {})
                both = [epsilon for epsilon in best if epsilon in plain]
                row = (label, _table_of(panel, best), *(_ratio(best, plain, epsilon) for epsilon in EPSILONS))
                if both and row not in rows:
                    rows.append(row)
    return table(("method", "table", *(f"{epsilon:g}" for epsilon in EPSILONS)), rows)


def _table_of(panel: Panel, curve: Curve) -> str:
    """The table of a curve, and the public one if it has one."""
    public = {row["public"] for spot in curve.values() for row in spot.runs} - {""}
    return panel.dataset + "".join(f" with {name}" for name in sorted(public))


def _ratio(best: Curve, plain: Curve, epsilon: float) -> str:
    return (
        f"{plain[epsilon].mean('max') / best[epsilon].mean('max'):.2f}" if epsilon in best and epsilon in plain else ""
    )


def public_data(shown: Selected) -> str:
    """The experiments on public data, every method with its defaults: three errors at some epsilons."""
    rows = {}
    for experiment, results in shown.values():
        if not any(panel.public for panel in experiment.panels):
            continue
        for sweep in (one for one in experiment.sweeps if one.defaults):
            for dataset in sweep.datasets:
                mine = replace(sweep, datasets=(dataset,), subset=(), epsilons=SOME_EPSILONS)
                panel = Panel("", dataset, (sweep.public,))
                curve = curves_of(replace(experiment, sweeps=(mine,)), panel, results).get(sweep.curve + DEFAULTS, {})
                cells = (_errors(curve.get(epsilon)) for epsilon in SOME_EPSILONS)
                rows[dataset, sweep.public or "none", f"`{sweep.method}`"] = tuple(cells)
    heads = ("private", "public", "method", *(f"epsilon {epsilon:g}" for epsilon in SOME_EPSILONS))
    return table(heads, [(*key, *cells) for key, cells in sorted(rows.items()) if any(cells)])


def _errors(spot: Spot | None) -> str:
    """Max error, root-mean-square error and total variation distance, and the number of runs if it is not the usual
    one."""
    if spot is None:
        return ""
    text = f"{spot.mean('max'):.4f} / {spot.mean('rmse'):.5f} / {spot.mean('tvd'):.3f}"
    return text + ("" if len(spot.runs) == len(SEEDS) else f" ({len(spot.runs)})")


def claims_table(experiment: Experiment, results: Mapping[Key, Row]) -> str:
    """The paper's claims, what was measured, and the verdict."""
    rows = []
    for claim in experiment.claims:
        word, told = judge(experiment, claim, results)
        rows.append((claim.text, told, f"**{word}**"))
    return table(("the claim", "measured here", "verdict"), rows)


def results_tables(experiment: Experiment, results: Mapping[Key, Row]) -> str:
    """For every panel the max errors of its curves."""
    parts = []
    for panel in experiment.panels:
        title = f"**{panel.title.replace(chr(10), ' ')}**, max error"
        curves = curves_of(experiment, panel, results)
        if not curves:
            parts.append(f"{title}: no runs yet.")
            continue
        rows = [(name, *(_cell(curve.get(epsilon)) for epsilon in EPSILONS)) for name, curve in curves.items()]
        parts.append(f"{title}:\n\n" + table(("method", *(f"{epsilon:g}" for epsilon in EPSILONS)), rows))
    return "\n\n".join(parts)


def _cell(spot: Spot | None) -> str:
    """A mean and its standard error, the number of runs if it is not the usual one, and a dagger if the setting is at
    the edge of what was run."""
    if spot is None:
        return ""
    runs = len(spot.runs)
    spread = f" ± {spot.error('max'):.4f}" if runs > 1 else ""
    few = "" if runs == len(SEEDS) else f" ({runs})"
    return f"{spot.mean('max'):.4f}{spread}{few}" + (" †" if spot.edge else "")


def settings_table(experiment: Experiment, results: Mapping[Key, Row]) -> str:
    """The paper's grid of every curve, and the part that was run: tables with the same part share a line."""
    rows = []
    for sweep in experiment.sweeps:
        same: dict[str, list[str]] = {}
        for dataset in sweep.datasets:
            same.setdefault(_what_was_run(replace(sweep, datasets=(dataset,)), results), []).append(dataset)
        public = f" with {sweep.public}" if sweep.public else ""
        rows += [(sweep.curve, ", ".join(tables) + public, _grid(sweep), what) for what, tables in same.items()]
    return table(("curve", "tables", "the paper's grid", "run here"), rows)


def _what_was_run(sweep: Sweep, results: Mapping[Key, Row]) -> str:
    """The settings with all their runs, those with some, and the defaults."""
    runs = len(sweep.epsilons) * len(sweep.seeds)
    shares: dict[int, list[Point]] = {}
    for point in (*sweep.subset, *(one for one in points(**sweep.grid) if sweep.grid and one not in sweep.subset)):
        made = sum(run.key in results for run in replace(sweep, subset=(point,)).tuned())
        if made:
            shares.setdefault(made, []).append(point)
    parts = [_points(same) + _partly(made, runs) for made, same in sorted(shares.items(), reverse=True)]
    made = sum(run.key in results for run in sweep.untuned())
    if made:
        parts.append("defaults" + _partly(made, runs))
    epsilons = "" if sweep.epsilons == EPSILONS else f" (epsilon {_values(sweep.epsilons)})"
    return "; ".join(parts) + epsilons if parts else "nothing yet"


def _partly(made: int, runs: int) -> str:
    return "" if made == runs else f" ({made} of {runs} runs)"


def _points(points: Sequence[Point]) -> str:
    """Settings by their values if every combination of these is there, else one by one."""
    if not points[0]:
        return "its one setting"
    values = {name: list(dict.fromkeys(point[name] for point in points)) for name in points[0]}
    if len(points) == math.prod(len(found) for found in values.values()):
        return ", ".join(f"{name} {_values(found)}" for name, found in values.items())
    return "; ".join(" ".join(f"{name} {value}" for name, value in point.items()) for point in points)


def _grid(sweep: Sweep) -> str:
    parts = [f"{name} {_values(values)}" for name, values in sweep.grid.items()]
    return "; ".join(parts) or "not in the paper"


def _values(values: Iterable[float | str]) -> str:
    return ", ".join(value if isinstance(value, str) else f"{value:g}" for value in values)


def runs_table(experiment: Experiment, results: Mapping[Key, Row]) -> str:
    """Where the runs were made, how long they took, and with which commits: every run that the figure may show."""
    groups: dict[tuple[str, str, str], list[Row]] = {}
    for row in results.values():
        groups.setdefault((row["method"], row["dataset"], row["machine"]), []).append(row)
    if not groups:
        return "No runs yet."
    rows = []
    for (method, dataset, machine), lines in sorted(groups.items()):
        times = [float(row["seconds"]) for row in lines if not row["error"]]
        failed = len(lines) - len(times)
        seconds = f"{median(times):.1f}" if times else ""
        commits = ", ".join(sorted({row["commit"] for row in lines}))
        rows.append((f"`{method}`", dataset, machine, str(len(lines)), str(failed or ""), seconds, commits))
    heads = ("method", "table", "machine", "runs", "failed", "median seconds", "commits")
    return table(heads, rows)
