"""GSD: private genetic synthetic data. Records that mutate and cross; no gradients, so any query will do.

| family | strategy | update | output H |
|---|---|---|---|
| list of records | select K per round and measure them, even budget | genetic search, squared error | last |

The model is a list of N records. Its loss on the measurements a_j so far, of the standard deviation sigma_j, is

    L = mean_j (q_j(D) - a_j)^2 / sigma_j^2.

A generation proposes P changes of one record each: half of them are mutations, which give one attribute of a record a
new value, and half are crossovers, which give one attribute the value of another record, so that frequent values
spread. The record that changes and the attribute are drawn at random. What a proposal does to the loss follows from
the queries that the old and the new record satisfy. The best proposals are made one after the other, as long as each
still lowers the loss. A round ends after ``generations`` generations, after ``patience`` of them in which no proposal
helped, or where the loss is below 1: the residual looks like noise.

Liu, Tang, Vietri and Wu, Generating Private Synthetic Data with Genetic Algorithms, 2023. There the population is one
of whole datasets, of which the best are kept; each of their offspring differs in one record, as here.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pointillist.algorithms.method import Method, Task
from pointillist.algorithms.settings import MOST_ROUNDS, setting
from pointillist.checks import at_least
from pointillist.data.domain import Domain
from pointillist.families.records import RecordList, Records
from pointillist.framework import Algorithm, Last, Log, Updated
from pointillist.privacy.scores import MaxError
from pointillist.queries.base import Queries
from pointillist.queries.candidates import Grouping
from pointillist.reporting import Tally
from pointillist.strategies import Rounds, SelectEvenly

__all__ = ["METHOD", "GeneticSearch", "RandomStart", "Settings", "build"]

LEAST_ROUNDS, ROUNDS_PER_ATTRIBUTE, UNIT = 10, 2, 50.0
"""As rap_softmax: T = n sqrt(rho) / 50, between these bounds."""

MOST_BEST = 20
"""No more than this number of the best proposals of a generation are tried one after the other."""


@dataclass(frozen=True)
class Settings:
    """Settings of GSD."""

    rounds: int | None = setting(
        None,
        "T, the number of rounds; by default 10 by query, n sqrt(rho) / 50 by marginal, at least 10 and at most 2 d",
        most=MOST_ROUNDS,
    )
    picks: int | None = setting(
        None, "K, the groups selected per round; by default 10 by query, 2 by marginal", most=MOST_ROUNDS
    )
    alpha: float = setting(0.5, "weight of selecting against measuring, in (0, 1)")
    records: int = setting(1000, "N, the records of the model")
    proposals: int = setting(100, "P, the changes proposed in a generation")
    generations: int = setting(2000, "the largest number of generations in a round")
    patience: int = setting(100, "end a round after this number of generations without a smaller loss")

    def __post_init__(self) -> None:
        at_least("records", self.records, 2, 1000)
        at_least("proposals", self.proposals, 2, 100)
        at_least("generations", self.generations, 1, 2000)
        at_least("patience", self.patience, 1, 100)


@dataclass(frozen=True)
class RandomStart:
    """Records with independent, equally likely values."""

    domain: Domain
    records: int

    def __call__(self, rng: np.random.Generator) -> tuple[Records, dict[str, float]]:
        codes = [rng.integers(size, size=self.records) for size in self.domain.sizes]
        return Records.even(np.stack(codes, axis=1)), {}


@dataclass(frozen=True)
class GeneticSearch:
    """The update; keeps no memory besides the log."""

    family: RecordList
    proposals: int
    generations: int
    patience: int

    def init(self, params: Records) -> None:
        return None

    def __call__(self, rng: np.random.Generator, params: Records, memory: None, log: Log) -> Updated:
        search = _Search(params.codes.copy(), log, self.family.domain)
        stale, made = 0, 0
        tally = Tally(self.generations)
        while made < self.generations and stale < self.patience and search.loss > 1:
            stale = 0 if search.generation(rng, self.proposals) else stale + 1
            made += 1
            tally.made(made, loss=search.loss)
        tally.end(made, loss=search.loss)
        return Updated(Records.even(search.codes), None, {"loss": search.loss, "generations": float(made)})


class _Search:
    """Records, the residuals of what was measured, and the changes that make them smaller."""

    def __init__(self, codes: np.ndarray, log: Log, domain: Domain) -> None:
        self.codes, self.domain = codes, domain
        self.queries: list[Queries] = [m.queries for m in log.measurements]
        targets = np.concatenate([m.fractions(log.total) for m in log.measurements])
        sigmas = np.concatenate([np.full(m.queries.size, m.sigma / log.total) for m in log.measurements])
        self.scale = 1 / (sigmas * len(codes))
        held = sum(self._held(part).sum(axis=0) for part in np.array_split(codes, max(1, len(codes) // 1000)))
        self.residual = held * self.scale - targets / sigmas
        """(q(D) - a) / sigma of every query."""

    @property
    def loss(self) -> float:
        return float(np.mean(self.residual**2))

    def _held(self, codes: np.ndarray) -> np.ndarray:
        """Which queries hold for some records."""
        columns = tuple(codes.T)
        return np.concatenate([one.holds(columns) for one in self.queries], axis=1)

    def generation(self, rng: np.random.Generator, proposals: int) -> bool:
        """Propose changes and make those that help; returns whether any did."""
        places, new = self._proposed(rng, proposals)
        change = (self._held(new).astype(np.float64) - self._held(self.codes[places])) * self.scale
        gains = -(2 * change @ self.residual + (change**2).sum(axis=1))
        best = [n for n in np.argsort(-gains)[:MOST_BEST].tolist() if gains[n] > 0]
        touched: set[int] = set()
        for n in best:
            worse = 2 * change[n] @ self.residual + change[n] @ change[n] >= 0
            if worse or places[n] in touched:
                continue
            touched.add(int(places[n]))
            self.codes[places[n]] = new[n]
            self.residual = self.residual + change[n]
        return bool(touched)

    def _proposed(self, rng: np.random.Generator, proposals: int) -> tuple[np.ndarray, np.ndarray]:
        """The records that are to change, and what they are to become: mutations, then crossovers."""
        places = rng.integers(len(self.codes), size=proposals)
        attributes = rng.integers(len(self.domain), size=proposals)
        others = self.codes[rng.integers(len(self.codes), size=proposals), attributes]
        random = rng.integers(np.array(self.domain.sizes)[attributes])
        new = self.codes[places]
        new[np.arange(proposals), attributes] = np.where(np.arange(proposals) < proposals // 2, random, others)
        return places, new


def build(task: Task, settings: Settings) -> Algorithm[Records]:
    """GSD as a choice of parts."""
    family, candidates = RecordList(task.domain), task.candidates
    picks = min(10 if task.by_query else 2, len(candidates)) if settings.picks is None else settings.picks
    most = LEAST_ROUNDS if task.by_query else ROUNDS_PER_ATTRIBUTE * len(task.domain)
    rounds = Rounds.of(settings.rounds, LEAST_ROUNDS, most, len(candidates), UNIT, picks)
    return Algorithm(
        family=family,
        strategy=SelectEvenly(candidates, MaxError(), rounds, picks, settings.alpha),
        update=GeneticSearch(family, settings.proposals, settings.generations, settings.patience),
        output=Last(),
        start=RandomStart(task.domain, settings.records),
    )


METHOD = Method(
    name="gsd",
    family="list of records",
    strategy="select K per round and measure them, even budget",
    update="genetic search: records mutate and cross, squared error",
    output="last",
    settings=Settings,
    build=build,
    groupings=(Grouping.MARGINAL, Grouping.QUERY),
    fits=RecordList.fits,
    memory=RecordList.memory,
)
