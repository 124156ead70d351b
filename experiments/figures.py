"""Draws every figure from the committed results; nothing is run.

A column is a table, a row an error. A full line is the best of the grid at each epsilon, as in the paper; a dashed line
with open markers is the same method with its defaults. A method has the same colour and marker in every figure.
Colour-blind readers can distinguish the colours, and everyone the markers.
"""

from __future__ import annotations

import io
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from experiments.curves import DEFAULTS, SHOWN, Curve, curves_of
from experiments.grid import EPSILONS, FIGURES, Experiment, Key, Row, load
from experiments.results import FOLDER, lines_of

STYLES = {
    "GEM": ("#332288", "o"),
    "PEP": ("#CC6677", "s"),
    "MWEM": ("#117733", "^"),
    "RAP-softmax": ("#DDAA33", "D"),
    "RAP": ("#882255", "v"),
    "DualQuery": ("#777777", "X"),
    "GEM-Pub": ("#88CCEE", "P"),
    "GEM-Pub (lacks columns)": ("#AA4499", "p"),
    "GEM, small network": ("#8A7DD0", "s"),
    "GEM-Pub, small network": ("#0077BB", "p"),
    "Best mixture": ("#000000", "x"),
    "PMW-Pub": ("#44AA99", "<"),
    "PEP-Pub": ("#999933", ">"),
    # Variants of one method: shades of its colour, and markers of their own.
    "GEM, B = 100": ("#C6BFEA", "v"),
    "GEM, B = 300": ("#8A7DD0", "s"),
    "GEM, B = 1,000": ("#332288", "o"),
    "GEM, B = 3,000": ("#120A40", "^"),
    "GEM, resampled": ("#8A7DD0", "s"),
    "GEM, by marginal": ("#8A7DD0", "s"),
    "MWEM, may repeat": ("#0B3D1E", "<"),
    "MWEM, no past queries": ("#77BB88", "v"),
    "HDMM": ("#EE7733", "d"),
    "HDMM, projected": ("#CC3311", "H"),
    "HDMM+PGM": ("#EE3377", "8"),
    "Auto": ("#000000", "*"),
    "Auto, public": ("#666666", "h"),
}
"""Colour and marker of every curve."""
WHOLE, OURS = "figure.svg", "defaults.svg"
"""The files of an experiment; the second one only where it is drawn apart."""
PANEL = (2.7, 2.1)
"""Width and height of a panel in inches."""
DIGITS = re.compile(r"\d+\.\d{3,}")
"""Coordinates finer than the eye can see: an SVG file is half as large without them."""
TAG = re.compile(r"<[^>]*>")
"""Where coordinates are. The text between tags, such as the numbers of an axis, stays as it is."""
WIDE = 50.0
"""An axis over more than this factor has fewer numbers."""
SPREAD = 0.012
"""Curves are moved apart by this share of epsilon each, so that their error bars do not overlap."""


def draw_all() -> None:
    """Every figure, in the folder of its experiment."""
    for name in FIGURES:
        for file in files_of(load(name)):
            path = FOLDER / name / file
            draw(name, path)
            print(path.relative_to(FOLDER.parent))


def files_of(experiment: Experiment) -> tuple[str, ...]:
    """The figures of an experiment."""
    return (WHOLE, OURS) if experiment.apart else (WHOLE,)


def draw(name: str, path: Path) -> None:
    """The figure of one experiment, as SVG or PNG; panels without runs say so.

    Where an experiment is drawn apart, ``defaults.svg`` has the curves of our defaults, and every other file the rest.
    """
    settings: Any = {"svg.hashsalt": "pointillist", "svg.fonttype": "none", "font.size": 8, "axes.titlesize": 9,
                     "font.family": "sans-serif"}  # fmt: skip
    with mpl.rc_context(settings):
        experiment = load(name)
        figure = _figure(experiment, lines_of(experiment), ours=path.name == OURS)
        if path.suffix == ".png":
            figure.savefig(path, dpi=110)
            return
        text = io.StringIO()
        figure.savefig(text, format="svg", metadata={"Date": None})
    path.write_text(TAG.sub(lambda tag: _coarser(tag[0]), text.getvalue()), encoding="utf-8")


def _coarser(tag: str) -> str:
    """A tag with two decimals in its coordinates."""
    return DIGITS.sub(lambda found: f"{float(found[0]):.2f}", tag)


def _figure(experiment: Experiment, results: Mapping[Key, Row], ours: bool) -> Figure:
    """One column per panel and one row per error; the errors of a single panel are side by side."""
    single = len(experiment.panels) == 1
    rows, columns = (1, len(SHOWN)) if single else (len(SHOWN), len(experiment.panels))
    size = (PANEL[0] * columns + 0.4, PANEL[1] * rows + 0.9)
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False, sharex=True)
    seen: set[str] = set()
    for column, panel in enumerate(experiment.panels):
        curves = curves_of(experiment, panel, results)
        if experiment.apart:
            curves = {label: curve for label, curve in curves.items() if label.endswith(DEFAULTS) == ours}
        seen |= curves.keys()
        for row, metric in enumerate(SHOWN):
            axis = axes[0][row] if single else axes[row][column]
            for place, (label, curve) in enumerate(curves.items()):
                _line(axis, label, curve, metric, 1 + SPREAD * (place - (len(curves) - 1) / 2))
            _dress(axis, bool(curves))
            if single or row == 0:
                axis.set_title(f"{panel.title}: {SHOWN[metric]}" if single else panel.title)
            if not single and column == 0:
                axis.set_ylabel(SHOWN[metric])
            if single or row == rows - 1:
                axis.set_xlabel("epsilon")
    order = [label for style in STYLES for label in (style, style + DEFAULTS) if label in seen]
    if order:
        handles = [Line2D([], [], **_style(label)) for label in order]
        figure.legend(handles, order, loc="outside lower center", ncols=int(size[0] / 1.75), frameon=False)
    return figure


def _style(label: str) -> dict[str, Any]:
    """Colour and marker of the method; dashed and open for its defaults."""
    name = label.removesuffix(DEFAULTS)
    colour, marker = STYLES[name]
    defaults = name != label
    return {
        "color": colour, "marker": marker, "markersize": 6 if marker in "*Pp" else 4, "markeredgewidth": 0.9,
        "markerfacecolor": "white" if defaults else colour, "linestyle": "--" if defaults else "-",
        "linewidth": 1.0 if defaults else 1.4,
    }  # fmt: skip


def _line(axis: Axes, label: str, curve: Curve, metric: str, shift: float) -> None:
    """A curve with the standard errors of its means."""
    axis.errorbar([epsilon * shift for epsilon in curve], [spot.mean(metric) for spot in curve.values()],
                  yerr=[spot.error(metric) for spot in curve.values()], elinewidth=0.8, **_style(label))  # fmt: skip


def _dress(axis: Axes, filled: bool) -> None:
    """Logarithmic axes; every epsilon that was run has a tick, and a number if there is room for it."""
    axis.set_xscale("log")
    axis.set_xlim(EPSILONS[0] / 1.15, EPSILONS[-1] * 1.15)
    axis.set_xticks(EPSILONS, ["" if epsilon == 0.2 else f"{epsilon:g}" for epsilon in EPSILONS])
    axis.minorticks_off()
    for side in ("top", "right"):
        axis.spines[side].set_visible(False)
    if not filled:
        axis.set_yticks([])
        axis.text(0.5, 0.5, "no runs yet", transform=axis.transAxes, ha="center", color="#777777")
        return
    axis.set_yscale("log")
    low, high = axis.get_ylim()
    subs = (1.0, 3.0) if high > WIDE * low else (1.0, 2.0, 3.0, 5.0, 7.0)
    axis.yaxis.set_major_locator(LogLocator(subs=subs, numticks=12))
    axis.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.6f}".rstrip("0")))
    axis.yaxis.set_minor_locator(NullLocator())
    axis.grid(axis="y", color="#E5E5E5", linewidth=0.6)
    axis.set_axisbelow(True)
