"""GEM: generative networks with the exponential mechanism.

| family | selection | measured | update | output H |
|---|---|---|---|---|
| generator network | 1 per round, even budget | yes | descent, L1 on past errors above a threshold | EMA, 2nd half |

A network G maps Gaussian noise z_1 .. z_B to B product distributions; a query is answered by (1/B) sum_j f_q(G(z_j)).
By query, each round takes up to T_max steps of Adam on

    L(theta) = 1/|J| sum_{j in J} |a_j - q_j(G)|,      J = the past queries with an error of at least gamma,

at most the 100 largest, with a cosine schedule that starts anew each round, and ends when no error reaches gamma.
gamma is half of a running mean (factor 0.5) of the largest past error at the start of each round. By marginal, the
loss is the mean squared error over all measured cells in units of the noise variance, and a round ends at 1: where
the residual looks like noise. The output is an exponential moving average of the weights of the second half of the
rounds. No group is selected twice.

The noise z is drawn once; ``resample`` draws it anew at every step.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pointillist.algorithms.parameters import parameter
from pointillist.errors import check
from pointillist.families.generator import Generator
from pointillist.families.relaxed import Params, Relaxed
from pointillist.framework import Algorithm, MovingAverage, Start
from pointillist.privacy.schedule import EvenSchedule
from pointillist.privacy.scores import MaxError
from pointillist.queries.workload import Grouping, Workload
from pointillist.updates.descent import Descent, Settings

__all__ = ["Parameters", "build", "family_of"]


@dataclass(frozen=True)
class Parameters:
    """Hyper-parameters of GEM. "auto" gives the paper's values by query, and our own by marginal."""

    rounds: int | None = parameter(None, "T; by default 100 by query, 60 by marginal, or the number of groups")
    alpha: float | None = parameter(None, "weight of selecting against measuring; by default 0.67 (marginal: 0.3)")
    batch: int = parameter(1000, "B, the number of product distributions")
    inputs: int = parameter(512, "dimension of the noise z")
    hidden: str = parameter("1024-1024", "widths of the hidden layers, joined by '-'")
    learning_rate: float | None = parameter(None, "step of Adam; by default 0.0001 by query, 0.0003 by marginal")
    t_max: int = parameter(100, "T_max, the most steps in a round")
    gamma: float = parameter(0.5, "by query: threshold, as a share of the running mean of the largest past error")
    tolerance: float = parameter(1.0, "by marginal: end a round at this mean squared residual, in noise variances")
    resample: bool = parameter(False, "draw the noise z anew at every step")
    beta: float = parameter(0.9, "factor of the moving average of the weights, in [0, 1)")
    prior: bool = parameter(False, "by query: prefer queries with a large estimate")

    def __post_init__(self) -> None:
        widths = self.hidden.split("-")
        check(all(width.isdecimal() for width in widths), "hidden", self.hidden,
              "must be whole numbers joined by '-'", "write for example hidden=1024-1024")  # fmt: skip
        check(0 < self.gamma < 1, "gamma", self.gamma, "must be above 0 and below 1", "give 0.5, as the paper does")
        check(0 <= self.beta < 1, "beta", self.beta, "must be at least 0 and below 1", "give 0.9")


def family_of(workload: Workload, parameters: Parameters) -> Relaxed:
    """The mixtures that the network can make."""
    hidden = tuple(int(width) for width in parameters.hidden.split("-"))
    return Relaxed(Generator(workload.domain, parameters.batch, parameters.inputs, hidden))


def build(
    workload: Workload, parameters: Parameters, start: Callable[[Relaxed], Start[Params]] | None = None
) -> Algorithm[Params]:
    """GEM as a choice of parts; with another ``start`` than random weights, for the variant on public data."""
    by_query = workload.grouping is Grouping.QUERY
    rounds, alpha, rate = parameters.rounds, parameters.alpha, parameters.learning_rate
    rounds = min(100 if by_query else 60, workload.groups) if rounds is None else rounds
    family = family_of(workload, parameters)
    settings = Settings(
        steps=parameters.t_max,
        learning_rate=(1e-4 if by_query else 3e-4) if rate is None else rate,
        cosine=True,
        threshold=parameters.gamma if by_query else 0.0,
        tolerance=0.0 if by_query else parameters.tolerance,
        resample=parameters.resample,
    )
    return Algorithm(
        family=family,
        schedule=EvenSchedule(rounds, alpha=(0.67 if by_query else 0.3) if alpha is None else alpha),
        rule=MaxError(parameters.prior),
        repeat=False,
        update=Descent(family, workload, settings),
        output=MovingAverage(parameters.beta, start=rounds // 2),
        start=None if start is None else start(family),
    )
