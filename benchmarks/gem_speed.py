"""GEM's inner loop, ours against plain PyTorch: same network, data and number of steps, on CPU or GPU.

Needs PyTorch, which the package does not: ``pip install torch``. ADULT's sizes; the data are random, since the speed
does not depend on them.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import jax
import numpy as np
from measuring.data import ADULT_SIZES as SIZES
from measuring.markdown import section

from benchmarks.gem_plain import Data, matrix_rate, plain_steps
from pointillist import Grouping, Relation, all_kway
from pointillist.data.domain import Domain
from pointillist.families.generator import Generator
from pointillist.families.relaxed import Relaxed
from pointillist.framework import Log, Round
from pointillist.privacy.facts import Facts
from pointillist.queries.answering import Lift
from pointillist.queries.candidates import Candidates
from pointillist.queries.measurement import Measurement
from pointillist.updates.descent import Descent, Recipe
from pointillist.updates.losses import Adam, SquaredError

TOTAL = 44_000
BATCH, INPUTS, HIDDEN, MEASURED = 1000, 512, (1024, 1024), 100


@dataclass(frozen=True)
class Measured:
    """Random counts of random candidates."""

    domain: Domain
    candidates: Candidates
    measurements: tuple[Measurement, ...]


def random_counts(grouping: Grouping) -> Measured:
    """100 measured candidates."""
    domain = Domain(tuple(f"x{i}" for i in range(len(SIZES))), SIZES)
    candidates = grouping.candidates(all_kway(domain, 3).queries)
    rng = np.random.default_rng(0)
    chosen = [candidates[int(n)] for n in rng.choice(len(candidates), MEASURED, replace=False)]
    counts = [rng.integers(0, 1000, queries.size) for queries in chosen]
    return Measured(domain, candidates, tuple(Measurement(q, c, 100.0) for q, c in zip(chosen, counts, strict=True)))


def ours(measured: Measured, steps: int) -> tuple[float, float]:
    """Seconds per step, and seconds to compile."""
    rounds = [Round(measurements=(measurement,)) for measurement in measured.measurements]
    log = Log(Facts(TOTAL, 1.0, Relation.REPLACE), rounds)
    family = Relaxed(Generator(measured.domain, BATCH, INPUTS, HIDDEN))
    update = Descent(family, measured.candidates, Recipe(Adam(steps, 1e-4, cosine=True), SquaredError()))
    rng = np.random.default_rng(0)
    start = time.perf_counter()
    params, memory, _ = update(rng, family.init(rng), 0.0, log)
    jax.block_until_ready(params)
    first = time.perf_counter() - start
    start = time.perf_counter()
    jax.block_until_ready(update(rng, params, memory, log).params)
    second = time.perf_counter() - start
    return second / steps, first - second


def plain_data(measured: Measured, grouping: Grouping) -> Data:
    """The same data as one-hot columns and targets of queries, or as attributes and targets of marginals."""
    fractions = [m.fractions(TOTAL) for m in measured.measurements]
    queries = [m.queries for m in measured.measurements]
    if grouping is Grouping.QUERY:
        targets = np.concatenate(fractions).astype(np.float32)
        return Data(columns=Lift(measured.domain, queries).columns(queries), targets=targets)
    shaped = [part.reshape(one.shape) for part, one in zip(fractions, queries, strict=True)]
    return Data(marginals=[one.scope for one in queries], cells=shaped)


def network_flops() -> float:
    """Floating-point operations of the network's products in one step: forward, and twice that backward."""
    width, total = INPUTS, 0
    for out in HIDDEN:
        total += width * out
        width += out
    return 3 * 2.0 * BATCH * (total + width * sum(SIZES))


def run() -> str:
    """By query and by marginal."""
    device = jax.default_backend()
    steps = 10 if device == "cpu" else 500
    torch_device = "cpu" if device == "cpu" else "cuda"
    rate = matrix_rate(torch_device)
    rows = []
    for grouping in (Grouping.QUERY, Grouping.MARGINAL):
        measured = random_counts(grouping)
        each, compiling = ours(measured, steps)
        plain = plain_steps(SIZES, BATCH, INPUTS, HIDDEN, plain_data(measured, grouping), steps, torch_device)
        share = network_flops() / each / rate
        speeds = (f"{1 / each:.1f}", f"{1 / plain:.1f}", f"{plain / each:.2f}")
        rows.append((grouping.value, *speeds, f"{compiling:.1f}", f"{share:.0%}"))
    where = jax.devices()[0].device_kind
    return section(
        f"GEM's inner loop on {where}, ADULT's sizes, {MEASURED} measured groups",
        ("group", "ours, steps/s", "plain PyTorch, steps/s", "ratio", "compilation, s", "network share of matrix rate"),
        rows,
        f"B = {BATCH}, {INPUTS} inputs, hidden {HIDDEN}; 32-bit matrix rate {rate / 1e12:.2f} TFLOP/s by PyTorch.",
    )
