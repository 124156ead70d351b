"""Pictures of error by epsilon: lines of text for a terminal, and an SVG file that needs nothing else."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

from pointillist.planning.law import METRICS
from pointillist.planning.plan import Plan, Point

__all__ = ["as_svg", "as_text"]

WIDTH, HEIGHT = 720, 420
LEFT, RIGHT, TOP, BOTTOM = 70, 110, 40, 60
BAR = 40
"""Characters of the longest bar."""
COLOURS = {"max": "#b3401f", "rmse": "#1f5fb3", "tvd": "#2f7d4f"}
DASHES = {"max": "", "rmse": "7 4", "tvd": "2 4"}
"""Lines are told apart by their dashes as well as by their colour."""


def as_text(plan: Plan, metric: str = "tvd") -> list[str]:
    """The curve as bars, one line for each epsilon. The bars are logarithmic.

    Args:
        plan: the plan.
        metric: the error that the bars show.
    """
    if not plan.curve:
        return []
    low, high = _limits([point.errors[metric].value for point in plan.curve])
    lines = [f"{'epsilon':>9}  {'max':>8}  {'rmse':>8}  {'tvd':>8}"]
    for point in plan.curve:
        errors = "  ".join(f"{point.errors[name].value:>8.2g}" for name in METRICS)
        share = (math.log(point.errors[metric].value) - low) / (high - low)
        here = " <" if point.epsilon == plan.epsilon else ""
        lines.append(f"{point.epsilon:>9g}  {errors}  {'█' * max(1, round(BAR * share))}{here}")
    return [*lines, f"bars: {metric}, logarithmic"]


def as_svg(plan: Plan) -> str:
    """The curve with its band for every error, in one file.

    Args:
        plan: the plan, with a curve.
    """
    points = plan.curve
    values = [limit for point in points for one in point.errors.values() for limit in (one.low, one.high)]
    x = _Axis(*_limits([point.epsilon for point in points]), LEFT, WIDTH - RIGHT)
    y = _Axis(*_limits(values), HEIGHT - BOTTOM, TOP)
    title = f"Forecast error by epsilon: {plan.method}, {plan.rows:,} rows"
    told = "; ".join(f"epsilon {point.epsilon:g}: {_told(point)}" for point in points)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        'aria-labelledby="title desc" font-family="sans-serif" font-size="13" color="#222">',
        f'<title id="title">{escape(title)}</title><desc id="desc">{escape(told)}</desc>',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>',
        f'<text x="{LEFT}" y="24" font-size="15">{escape(title)}</text>',
        *_grid(x, y),
        *(part for metric in METRICS for part in _curve(points, metric, x, y)),
        *_names(points, x, y),
        *_marks(plan, x, y),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _told(point: Point) -> str:
    return ", ".join(f"{metric} {point.errors[metric].value:.2g}" for metric in METRICS)


class _Axis:
    """A logarithmic axis.

    Args:
        low, high: the logarithms at its ends.
        start, end: the places of its ends.
    """

    def __init__(self, low: float, high: float, start: float, end: float) -> None:
        self.low, self.high, self.start, self.end = low, high, start, end

    def __call__(self, value: float) -> float:
        share = (math.log(value) - self.low) / (self.high - self.low)
        return round(self.start + share * (self.end - self.start), 1)

    @property
    def ticks(self) -> list[float]:
        """Powers of ten, and twice and five times those if there are few."""
        powers = range(math.floor(self.low / math.log(10)), math.ceil(self.high / math.log(10)) + 1)
        every = [float(f"{step}e{power}") for power in powers for step in (1, 2, 5)]
        inside = [tick for tick in every if self.low - 1e-9 <= math.log(tick) <= self.high + 1e-9]
        tens = [tick for tick in inside if f"{tick:e}".startswith("1.000")]
        return tens if len(tens) >= 3 else inside


def _limits(values: Sequence[float]) -> tuple[float, float]:
    low, high = math.log(min(values)), math.log(max(values))
    return (low, high) if high > low else (low - 1, high + 1)


def _grid(x: _Axis, y: _Axis) -> list[str]:
    lines = []
    for tick in x.ticks:
        lines.append(f'<line x1="{x(tick)}" x2="{x(tick)}" y1="{TOP}" y2="{HEIGHT - BOTTOM}" stroke="#ddd"/>')
        lines.append(f'<text x="{x(tick)}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{tick:g}</text>')
    for tick in y.ticks:
        lines.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(tick)}" y2="{y(tick)}" stroke="#ddd"/>')
        lines.append(f'<text x="{LEFT - 8}" y="{y(tick) + 4}" text-anchor="end">{tick:g}</text>')
    middle = (LEFT + WIDTH - RIGHT) / 2
    return [*lines, f'<text x="{middle}" y="{HEIGHT - 14}" text-anchor="middle">epsilon</text>']


def _curve(points: Sequence[Point], metric: str, x: _Axis, y: _Axis) -> list[str]:
    found = [(point.epsilon, point.errors[metric]) for point in points]
    upper = [f"{x(epsilon)},{y(one.high)}" for epsilon, one in found]
    lower = [f"{x(epsilon)},{y(one.low)}" for epsilon, one in reversed(found)]
    middle = " ".join(f"{x(epsilon)},{y(one.value)}" for epsilon, one in found)
    colour, dash = COLOURS[metric], DASHES[metric]
    dashed = f' stroke-dasharray="{dash}"' if dash else ""
    return [
        f'<polygon points="{" ".join(upper + lower)}" fill="{colour}" fill-opacity="0.12"/>',
        f'<polyline points="{middle}" fill="none" stroke="{colour}" stroke-width="2"{dashed}/>',
    ]


def _names(points: Sequence[Point], x: _Axis, y: _Axis) -> list[str]:
    """The name of each curve at its end."""
    last = points[-1]
    places = {metric: y(last.errors[metric].value) + 4 for metric in METRICS}
    at = x(last.epsilon) + 8
    return [f'<text x="{at}" y="{place}" fill="{COLOURS[name]}">{name}</text>' for name, place in places.items()]


def _marks(plan: Plan, x: _Axis, y: _Axis) -> list[str]:
    """The epsilon that is asked for, and the target."""
    at = x(plan.epsilon)
    found = [
        f'<line x1="{at}" x2="{at}" y1="{TOP}" y2="{HEIGHT - BOTTOM}" stroke="#222" stroke-dasharray="3 3"/>',
        f'<text x="{at}" y="{TOP - 4}" text-anchor="middle" font-size="11">epsilon {plan.epsilon:g}</text>',
    ]
    if plan.target is not None and y.low <= math.log(plan.target.error) <= y.high:
        at = y(plan.target.error)
        found.append(
            f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{at}" y2="{at}" stroke="#222" stroke-dasharray="3 3"/>'
        )
        found.append(f'<text x="{WIDTH - RIGHT + 4}" y="{at - 6}" font-size="11">target ({plan.target.metric})</text>')
    return found
