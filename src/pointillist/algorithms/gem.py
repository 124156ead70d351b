"""GEM: generative networks with the exponential mechanism.

| family | strategy | update | output H |
|---|---|---|---|
| generator network | select 1 and measure it, even budget | descent, L1 on large past errors | EMA, 2nd half |

A network G maps Gaussian noise z_1 .. z_B to B product distributions; a query is answered by (1/B) sum_j f_q(G(z_j)).
By query, each round takes up to T_max steps of Adam on

    L(theta) = 1/|J| sum_{j in J} |a_j - q_j(G)|,      J = the past queries with an error of at least gamma,

at most the 100 largest, with a cosine schedule that restarts each round, and ends when no error reaches gamma.
gamma is half of a running mean (factor 0.5) of the largest past error at the start of each round. By marginal, the
loss is the mean squared error over all measured cells in units of the noise variance, and a round ends at 1: where
the residual looks like noise. The output is an exponential moving average of the weights of the second half of the
rounds. No group is selected twice.

The noise z is drawn once; ``resample`` draws it again at every step.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pointillist.algorithms.method import Method, Task
from pointillist.algorithms.settings import MOST_ROUNDS, setting
from pointillist.checks import check, share
from pointillist.data.messages import fragment
from pointillist.families.generator import Generator
from pointillist.families.relaxed import Params, Relaxed
from pointillist.framework import Algorithm, MovingAverage, Start
from pointillist.privacy.scores import MaxError
from pointillist.queries.candidates import Grouping
from pointillist.strategies import Rounds, SelectEvenly
from pointillist.updates.descent import Descent, Recipe
from pointillist.updates.losses import Adam, Loss, SquaredError, ThresholdError

__all__ = ["METHOD", "Settings", "build"]


@dataclass(frozen=True)
class Settings:
    """Settings of GEM. "auto" gives the paper's values by query, and our own by marginal."""

    rounds: int | None = setting(
        None, "T; by default 100 by query, 60 by marginal, or the number of groups", most=MOST_ROUNDS
    )
    alpha: float | None = setting(None, "weight of selecting against measuring; by default 0.67 (marginal: 0.3)")
    batch: int = setting(1000, "B, the number of product distributions")
    inputs: int = setting(512, "dimension of the noise z")
    hidden: str = setting("1024-1024", "widths of the hidden layers, joined by '-'")
    learning_rate: float | None = setting(None, "step of Adam; by default 0.0001 by query, 0.0003 by marginal")
    t_max: int = setting(100, "T_max, the most steps in a round")
    gamma: float = setting(0.5, "by query: threshold, as a share of the running mean of the largest past error")
    tolerance: float = setting(1.0, "by marginal: end a round at this mean squared residual, in noise variances")
    resample: bool = setting(False, "draw the noise z again at every step")
    beta: float = setting(0.9, "factor of the moving average of the weights, in [0, 1)")
    prior: bool = setting(False, "by query: prefer queries with a large estimate")

    def __post_init__(self) -> None:
        good, rule = all(width.isdecimal() for width in self.hidden.split("-")), "must be whole numbers joined by '-'"
        check(good, "hidden", fragment(self.hidden), rule, "write for example hidden=1024-1024")
        small = all(len(width) <= 5 for width in self.hidden.split("-"))
        rule = "must be whole numbers below 100,000 joined by '-'"
        check(small, "hidden", fragment(self.hidden), rule, "write for example hidden=1024-1024")
        share("gamma", self.gamma, "0.5, as the paper does")
        share("beta", self.beta, 0.9, zero=True)

    @property
    def widths(self) -> tuple[int, ...]:
        """The widths of the hidden layers."""
        return tuple(int(width) for width in self.hidden.split("-"))


def build(task: Task, settings: Settings, start: Callable[[Relaxed], Start[Params]] | None = None) -> Algorithm[Params]:
    """GEM as a choice of parts; with another ``start`` than random weights, for the variant on public data."""
    by_query, candidates = task.by_query, task.candidates
    rounds, alpha, rate = settings.rounds, settings.alpha, settings.learning_rate
    rounds = min(100 if by_query else 60, len(candidates)) if rounds is None else rounds
    alpha = (0.67 if by_query else 0.3) if alpha is None else alpha
    rate = (1e-4 if by_query else 3e-4) if rate is None else rate
    family = Relaxed(Generator(task.domain, settings.batch, settings.inputs, settings.widths))
    loss: Loss = ThresholdError(settings.gamma) if by_query else SquaredError(settings.tolerance)
    recipe = Recipe(Adam(settings.t_max, rate, cosine=True), loss, resample=settings.resample)
    rule = MaxError(base_measure=settings.prior and by_query)
    return Algorithm(
        family=family,
        strategy=SelectEvenly(candidates, rule, Rounds(rounds), alpha=alpha),
        update=Descent(family, candidates, recipe),
        output=MovingAverage(settings.beta, first_round=rounds // 2),
        start=None if start is None else start(family),
    )


METHOD = Method(
    name="gem",
    family="generator network: noise to product distributions",
    strategy="select 1 per round and measure it, even budget",
    update="gradient descent, L1 on past errors above a threshold (by marginal: squared error)",
    output="EMA of weights, 2nd half",
    settings=Settings,
    build=build,
    groupings=(Grouping.MARGINAL, Grouping.QUERY),
    fits=Relaxed.fits,
    memory=Relaxed.memory,
)
