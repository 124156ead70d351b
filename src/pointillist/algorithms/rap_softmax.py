"""RAP-softmax: relaxed adaptive projection onto rows of product distributions.

| family | selection | measured | update | output H |
|---|---|---|---|---|
| relaxed rows, softmax per attribute | K per round, even budget | yes | gradient descent, squared error | last |

RAP with P = sigma(M): a softmax over the columns of each attribute makes every row a product distribution, so that
what is learned about one value of an attribute is learned about the others, too.
"""

from __future__ import annotations

from dataclasses import dataclass

from pointillist.algorithms import rap
from pointillist.algorithms.parameters import parameter
from pointillist.families.relaxed import Params
from pointillist.families.rows import SoftmaxRows
from pointillist.framework import Algorithm
from pointillist.queries.workload import Workload

__all__ = ["Parameters", "build"]


@dataclass(frozen=True)
class Parameters(rap.Parameters):
    """Hyper-parameters of RAP-softmax."""

    learning_rate: float = parameter(0.1, "step of Adam")


def build(workload: Workload, parameters: Parameters) -> Algorithm[Params]:
    """RAP-softmax as a choice of parts."""
    return rap.projection(workload, SoftmaxRows(workload.domain, parameters.rows), parameters)
