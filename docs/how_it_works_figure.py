"""Draws how-it-works.svg, the default in four steps: python docs/how_it_works_figure.py (needs matplotlib)."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

STEPS = (
    ("plan", "what to measure:\npublic facts and\nearlier noisy values", "#cfe3f5"),
    ("measure", "one-way marginals,\nties, marginals, with\nGaussian noise", "#fde3c0"),
    ("fit", "relaxed rows:\nchi-square, shrunken\nby the known noise", "#d5efd2"),
    ("draw", "stratified rows:\nthe synthetic\ntable", "#e3daf3"),
)
WIDTH, GAP, RED = 2.0, 0.6, "#b03a2e"


def box(axes: Axes, x: float, y: float, title: str, text: str, colour: str) -> None:
    axes.add_patch(FancyBboxPatch((x, y), WIDTH, 1.3, boxstyle="round,pad=0.06", fc=colour, ec="#555555"))
    axes.text(x + WIDTH / 2, y + 1.08, title, ha="center", va="center", fontsize=11, weight="bold")
    axes.text(x + WIDTH / 2, y + 0.45, text, ha="center", va="center", fontsize=9)


def arrow(axes: Axes, start: tuple[float, float], end: tuple[float, float]) -> None:
    axes.add_patch(FancyArrowPatch(start, end, arrowstyle="-|>", mutation_scale=15, color="#555555"))


def main() -> None:
    mpl.rcParams["svg.hashsalt"] = "pointillist"
    figure, axes = plt.subplots(figsize=(9.5, 3.4))
    pitch = WIDTH + GAP
    for n, (title, text, colour) in enumerate(STEPS):
        box(axes, n * pitch, 0, title, text, colour)
        if n:
            arrow(axes, (n * pitch - GAP + 0.08, 0.65), (n * pitch - 0.08, 0.65))
    box(axes, pitch, -2.3, "private table", "exact counts\nand distances", "#e9e9e9")
    arrow(axes, (pitch + WIDTH / 2, -0.92), (pitch + WIDTH / 2, -0.08))
    axes.plot([-0.1, 4 * pitch - GAP + 0.1], [-0.5, -0.5], color=RED, linestyle="--", linewidth=1)
    axes.text(pitch + WIDTH + 0.3, -0.75, "only noisy values, paid for by the ledger, cross this line", fontsize=9,
              color=RED, va="center")  # fmt: skip
    axes.set_xlim(-0.2, 4 * pitch - GAP + 0.2)
    axes.set_ylim(-2.45, 1.45)
    axes.axis("off")
    figure.savefig(Path(__file__).with_name("how-it-works.svg"), bbox_inches="tight", metadata={"Date": None})


if __name__ == "__main__":
    main()
