"""Writes what the pages show of the results: verdicts, tables, settings and where the runs come from.

Everything with a number in it stands between two markers of a page and is written from the committed results files and
the configs; the rest of the page is prose.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from statistics import median

from tools.write_tables import filled

from experiments.claims import judge
from experiments.curves import DEFAULTS, Curve, Spot, curves_of
from experiments.grid import EPSILONS, NAMES, SEEDS, SOME_EPSILONS, Experiment, Key, Panel, Point, Row, Sweep, load
from experiments.results import FOLDER, results_of

PAGES = tuple(FOLDER.parent / "docs" / name for name in ("reproduction.md", "public-data.md"))


def write(check: bool = False) -> int:
    """Write the pages, or with ``check`` only say whether they are up to date; the number of the exit."""
    known = blocks()
    stale = False
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        new = filled(text, page.name, known)
        if new == text:
            continue
        if check:
            print(f"{page.name}: a table is out of date; run python -m experiments report", file=sys.stderr)
            stale = True
            continue
        page.write_text(new, encoding="utf-8")
        print(f"{page.name}: wrote the tables")
    return int(stale)


def blocks() -> dict[str, str]:
    """Every block of the pages by the name in its markers."""
    found = {"overview": overview(), "defaults": defaults(), "public data": public_data()}
    for name in NAMES:
        experiment, results = load(name), results_of(name).read()
        found |= {
            f"claims {name}": claims_table(experiment, results),
            f"results {name}": results_tables(experiment, results),
            f"settings {name}": settings_table(experiment, results),
            f"runs {name}": runs_table(experiment, results),
        }
    return found


def overview() -> str:
    """Every experiment with its runs and the verdicts on its claims."""
    rows = []
    for name in NAMES:
        experiment, results = load(name), results_of(name).read()
        wanted = experiment.runs()
        made = [results[key] for key in wanted if key in results]
        failed = sum(bool(row["error"]) for row in made)
        words = [judge(experiment, claim, results)[0] for claim in experiment.claims]
        verdicts = ", ".join(f"{word}: {words.count(word)}" for word in dict.fromkeys(words))
        count = f"{len(made):,} of {len(wanted):,}" + (f", {failed} failed" if failed else "")
        rows.append((f"`{name}`", experiment.title, count, verdicts))
    return markdown(("experiment", "what it is", "runs made", "claims"), rows)


def defaults() -> str:
    """For every method with both, the max error of its defaults over that of the best of its grid."""
    rows = []
    for name in NAMES:
        experiment, results = load(name), results_of(name).read()
        for panel in experiment.panels:
            curves = curves_of(experiment, panel, results)
            for label in curves:
                best, plain = curves[label], curves.get(label + DEFAULTS, {})
                both = [epsilon for epsilon in best if epsilon in plain]
                row = (label, panel.dataset, *(_ratio(best, plain, epsilon) for epsilon in EPSILONS))
                if both and row not in rows:
                    rows.append(row)
    return markdown(("method", "table", *(f"{epsilon:g}" for epsilon in EPSILONS)), rows)


def _ratio(best: Curve, plain: Curve, epsilon: float) -> str:
    return (
        f"{plain[epsilon].mean('max') / best[epsilon].mean('max'):.2f}" if epsilon in best and epsilon in plain else ""
    )


def public_data() -> str:
    """The experiments on public data, every method with its defaults: three errors at some epsilons."""
    rows = {}
    for name in NAMES:
        experiment, results = load(name), results_of(name).read()
        if not any(panel.public for panel in experiment.panels):
            continue
        for sweep in experiment.sweeps:
            for dataset in sweep.datasets:
                mine = replace(sweep, datasets=(dataset,), subset=(), epsilons=SOME_EPSILONS)
                panel = Panel("", dataset, (sweep.public,))
                curve = curves_of(replace(experiment, sweeps=(mine,)), panel, results).get(sweep.curve + DEFAULTS, {})
                cells = (_errors(curve.get(epsilon)) for epsilon in SOME_EPSILONS)
                rows[dataset, sweep.public or "none", f"`{sweep.method}`"] = tuple(cells)
    heads = ("private", "public", "method", *(f"epsilon {epsilon:g}" for epsilon in SOME_EPSILONS))
    return markdown(heads, [(*key, *cells) for key, cells in sorted(rows.items())])


def _errors(spot: Spot | None) -> str:
    """Max error, root-mean-square error and total variation distance, and the number of runs if it is not the usual."""
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
    return markdown(("the claim", "measured here", "verdict"), rows)


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
        parts.append(f"{title}:\n\n" + markdown(("method", *(f"{epsilon:g}" for epsilon in EPSILONS)), rows))
    return "\n\n".join(parts)


def _cell(spot: Spot | None) -> str:
    """A mean and its standard error, with the number of runs where it is not the usual one."""
    if spot is None:
        return ""
    runs = len(spot.runs)
    spread = f" ± {spot.error('max'):.4f}" if runs > 1 else ""
    return f"{spot.mean('max'):.4f}{spread}" + ("" if runs == len(SEEDS) else f" ({runs})")


def settings_table(experiment: Experiment, results: Mapping[Key, Row]) -> str:
    """The paper's grid of every curve, and what of it was run: tables of which the same was run share a line."""
    rows = []
    for sweep in experiment.sweeps:
        same: dict[str, list[str]] = {}
        for dataset in sweep.datasets:
            same.setdefault(_what_was_run(replace(sweep, datasets=(dataset,)), results), []).append(dataset)
        beside = f" with {sweep.public}" if sweep.public else ""
        rows += [(sweep.curve, ", ".join(tables) + beside, _grid(sweep), what) for what, tables in same.items()]
    return markdown(("curve", "tables", "the paper's grid", "run here"), rows)


def _what_was_run(sweep: Sweep, results: Mapping[Key, Row]) -> str:
    """The settings with all their runs, those with some, and the defaults."""
    runs = len(sweep.epsilons) * len(sweep.seeds)
    shares: dict[int, list[Point]] = {}
    for point in sweep.subset:
        made = sum(run.key in results for run in replace(sweep, subset=(point,)).tuned())
        if made:
            shares.setdefault(made, []).append(point)
    parts = [_points(points) + _partly(made, runs) for made, points in sorted(shares.items(), reverse=True)]
    made = sum(run.key in results for run in sweep.untuned())
    if made:
        parts.append("defaults" + _partly(made, runs))
    epsilons = "" if sweep.epsilons == EPSILONS else f" (epsilon {_values(sweep.epsilons)})"
    return "; ".join(parts) + epsilons if parts else "nothing yet"


def _partly(made: int, runs: int) -> str:
    return "" if made == runs else f" ({made} of {runs} runs)"


def _points(points: Sequence[Point]) -> str:
    """Settings by their values if they are all combinations of these, else one by one."""
    values = {name: list(dict.fromkeys(point[name] for point in points)) for name in points[0]}
    if len(points) == math.prod(len(found) for found in values.values()):
        return ", ".join(f"{name} {_values(found)}" for name, found in values.items())
    return "; ".join(" ".join(f"{name} {value}" for name, value in point.items()) for point in points)


def _grid(sweep: Sweep) -> str:
    parts = [f"{name} {_values(values)}" for name, values in sweep.grid.items()]
    return "; ".join(parts) or "not in the paper"


def _values(values: Iterable[float]) -> str:
    return ", ".join(f"{value:g}" for value in values)


def runs_table(experiment: Experiment, results: Mapping[Key, Row]) -> str:
    """Where the runs were made, how long they took, and with which commits."""
    wanted = experiment.runs()
    groups: dict[tuple[str, str, str], list[Row]] = {}
    for key, row in results.items():
        if key in wanted:
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
    return markdown(heads, rows)


def markdown(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [heads, ["---"] * len(heads), *([cell.replace("|", "\\|") for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
