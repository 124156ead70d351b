"""RAP-softmax: relaxed adaptive projection onto rows of product distributions.

| family | strategy | update | output H |
|---|---|---|---|
| relaxed rows, softmax per attribute | select K and measure them, even budget | descent, squared error | last |

RAP with P = sigma(M): a softmax over the columns of each attribute makes every row a product distribution, so that
what is learned about one value of an attribute is learned about the others, too.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from pointillist.algorithms import rap
from pointillist.algorithms.method import Task
from pointillist.algorithms.settings import setting
from pointillist.families.relaxed import Params
from pointillist.families.rows import SoftmaxRows
from pointillist.framework import Algorithm

__all__ = ["METHOD", "Settings", "build"]


@dataclass(frozen=True)
class Settings(rap.Settings):
    """Settings of RAP-softmax."""

    learning_rate: float = setting(0.1, "step of Adam")


def build(task: Task, settings: Settings) -> Algorithm[Params]:
    """RAP-softmax as a choice of parts."""
    return rap.projection(task, SoftmaxRows(task.domain, settings.rows), settings)


METHOD = replace(
    rap.METHOD,
    name="rap_softmax",
    family="relaxed rows, softmax per attribute",
    settings=Settings,
    build=build,
    consistent=True,
)
