"""GEM's inner loop, ours against plain PyTorch: same network, data and number of steps, on CPU or GPU.

Needs PyTorch, which the package does not: ``pip install torch``. ADULT's sizes; the data are random, since the speed
does not depend on them.
"""

from __future__ import annotations

import time
from typing import Any

import jax
import numpy as np

from benchmarks.common import markdown
from benchmarks.gem_plain import matrix_rate, plain_steps
from pointillist import Grouping, all_kway
from pointillist.data.domain import Domain
from pointillist.families.generator import Generator
from pointillist.families.relaxed import Relaxed
from pointillist.framework import Log, Round
from pointillist.privacy.scores import Pick
from pointillist.updates.descent import Descent, Settings

SIZES = (2, 2, 5, 6, 7, 9, 15, 16, 42, 16, 6, 10, 10)  # ADULT
BATCH, INPUTS, HIDDEN, MEASURED = 1000, 512, (1024, 1024), 100


def random_log(grouping: Grouping) -> Log:
    """A transcript with 100 measured groups."""
    domain = Domain(tuple(f"x{i}" for i in range(len(SIZES))), SIZES)
    workload = all_kway(domain, 3, grouping)
    rng = np.random.default_rng(0)
    log = Log(workload, 44_000)
    for group in rng.choice(workload.groups, MEASURED, replace=False):
        cells = workload.group(int(group)).flat
        counts = rng.integers(0, 1000, cells.stop - cells.start)
        log.rounds.append(Round((Pick(int(group)),), (counts,), 100.0))
        log.notes.append({})
    return log


def ours(log: Log, steps: int) -> tuple[float, float]:
    """Seconds per step, and seconds to compile."""
    family = Relaxed(Generator(log.workload.domain, BATCH, INPUTS, HIDDEN))
    settings = Settings(steps=steps, learning_rate=1e-4, cosine=True)
    update = Descent(family, log.workload, settings)
    rng = np.random.default_rng(0)
    start = time.perf_counter()
    params, memory = update(rng, family.init(rng), 0.0, log)
    jax.block_until_ready(params)
    first = time.perf_counter() - start
    start = time.perf_counter()
    jax.block_until_ready(update(rng, params, memory, log)[0])
    second = time.perf_counter() - start
    return second / steps, first - second


def plain_data(log: Log) -> dict[str, Any]:
    from pointillist.queries.relaxed import columns_of

    workload = log.workload
    groups = [m.group for m in log.measurements]
    if workload.grouping is Grouping.QUERY:
        targets = np.concatenate([log.fractions(m) for m in log.measurements]).astype(np.float32)
        return {"columns": columns_of(workload, np.array(groups)), "targets": targets}
    marginals = [workload.marginals[g] for g in groups]
    targets = [
        log.fractions(m).reshape(workload.domain.shape(s)) for m, s in zip(log.measurements, marginals, strict=True)
    ]
    return {"marginals": marginals, "targets": targets}


def network_flops() -> float:
    """Floating-point operations of the network's products in one step: forward, and twice that backward."""
    width, total = INPUTS, 0
    for out in HIDDEN:
        total += width * out
        width += out
    return 3 * 2.0 * BATCH * (total + width * sum(SIZES))


def run() -> str:
    device = jax.default_backend()
    steps = 10 if device == "cpu" else 500
    torch_device = "cpu" if device == "cpu" else "cuda"
    rate = matrix_rate(torch_device)
    rows = []
    for grouping in (Grouping.QUERY, Grouping.MARGINAL):
        log = random_log(grouping)
        each, compiling = ours(log, steps)
        plain = plain_steps(SIZES, BATCH, INPUTS, HIDDEN, plain_data(log), steps, torch_device)
        share = network_flops() / each / rate
        rows.append(
            (
                grouping.value,
                f"{1 / each:.1f}",
                f"{1 / plain:.1f}",
                f"{plain / each:.2f}",
                f"{compiling:.1f}",
                f"{share:.0%}",
            )
        )
    where = jax.devices()[0].device_kind
    return markdown(
        f"GEM's inner loop on {where}, ADULT's sizes, {MEASURED} measured groups",
        ("group", "ours, steps/s", "plain PyTorch, steps/s", "ratio", "compilation, s", "network share of matrix rate"),
        rows,
        f"B = {BATCH}, {INPUTS} inputs, hidden {HIDDEN}; 32-bit matrix rate {rate / 1e12:.2f} TFLOP/s by PyTorch.",
    )
