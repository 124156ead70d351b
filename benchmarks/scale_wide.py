"""Wide tables: the default run from start to end, in a first and in a second process, and its costs by column.

The rows are made up: columns of 2 to 12 values, each of which follows a hidden group or the column before it in some
of the rows. ``POINTILLIST_WIDE_COLUMNS`` has the numbers of columns, such as ``50,100,200``. What is compared is the
time of the processor (all cores together), which other programs on the machine change little.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from itertools import combinations
from tempfile import TemporaryDirectory

import numpy as np
from measuring.markdown import section

from pointillist import Categorical, Schema, Table
from pointillist.data.domain import Attributes, Domain
from pointillist.data.kernel import Joint, joints_of

SIZES = (2, 2, 3, 5, 8, 12)
ROWS, GROUPS = 20_000, 6
BATCH = 1 << 16

RUN = """
import json, sys, time
from benchmarks.scale_wide import table
from pointillist import prepare
from pointillist.memory import peak_memory

made = table(int(sys.argv[1]))
began = time.process_time()
job = prepare(made, epsilon=1.0, insecure_noise_seed=int(sys.argv[2]))
release = job.run()
spent = time.process_time() - began
measured = len(release.log.rounds[-1].measurements)
print(json.dumps([spent, peak_memory(), measured, job.reason]))
"""


def columns_wanted() -> list[int]:
    """The numbers of columns, in order."""
    return sorted(map(int, os.environ.get("POINTILLIST_WIDE_COLUMNS", "50,100,200").split(",")))


def table(columns: int, rows: int = ROWS) -> Table:
    """A made-up table.

    Args:
        columns: the number of columns.
        rows: the number of rows.
    """
    rng = np.random.default_rng(0)
    groups = rng.integers(0, GROUPS, rows)
    codes: list[np.ndarray] = []
    described = []
    for i in range(columns):
        size = SIZES[i % len(SIZES)]
        alone = (size * rng.random(rows) ** 2).astype(np.int64)
        before = codes[-1] % size if codes else alone
        way = rng.random(rows)
        codes.append(np.where(way < 0.3, groups * (i % 5 + 1) % size, np.where(way < 0.6, before, alone)))
        described.append(Categorical(f"c{i}", tuple(f"v{k}" for k in range(size)), ordered=size == 8))
    return Table(Schema(tuple(described)), tuple(codes))


def whole_runs(columns: list[int]) -> str:
    """The default from start to end, in fresh processes that share a cache of compiled programs."""
    lines = []
    for many in columns:
        with TemporaryDirectory() as folder:
            env = {name: value for name, value in os.environ.items() if not name.startswith("JAX_")}
            env["POINTILLIST_CACHE"] = folder
            found = [_run(many, seed, env) for seed in (0, 1, 0)]
        (first, peak, measured, reason), (other, *_), (again, *_) = found
        chosen = reason.partition(":")[0]
        cost = f"{1e3 * first / measured:.1f}"
        ratios = (f"{other / first:.2f}", f"{again / first:.2f}")
        lines.append((many, chosen, f"{measured:,}", f"{first:.0f}", cost, *ratios, f"{peak / 1e6:,.0f} MB"))
    heads = (
        "columns", "workload that was chosen", "marginals measured", "first process, CPU s", "CPU ms per marginal",
        "second process / first", "the same run again / first", "peak of the process",
    )  # fmt: skip
    note = (
        f"{ROWS:,} made-up rows, epsilon 1, no settings; the time of the processor from the plan to the rows, without "
        "imports. The second process has other noise, and so may measure other marginals; the last repeats the first."
    )
    return section("Wide tables", heads, lines, note)


def _run(columns: int, seed: int, env: dict[str, str]) -> tuple[float, int, int, str]:
    process = [sys.executable, "-c", RUN, str(columns), str(seed)]
    done = subprocess.run(process, capture_output=True, text=True, check=True, env=env)
    spent, peak, measured, reason = json.loads(done.stdout)
    return spent, peak, measured, reason


def by_matrix(domain: Domain, marginals: Sequence[Attributes], room: int) -> list[Joint]:
    """Joints as they were planned before: by a matrix of all marginals and columns, which is read for every joint."""
    sizes = np.array(domain.sizes, float)
    has = np.zeros((len(marginals), len(sizes)), bool)
    for place, marginal in enumerate(marginals):
        has[place, list(marginal)] = True
    positions, cells = np.arange(len(sizes)), np.array([domain.cells_of(marginal) for marginal in marginals], float)
    left, joints = np.ones(len(marginals), bool), []
    for seed in np.argsort(-cells, kind="stable"):
        if not left[seed]:
            continue
        inside, size = has[seed].copy(), cells[seed]
        lacking, lacked = (has & ~inside).sum(axis=1), (has & ~inside) @ positions
        while True:
            gains = np.bincount(lacked[left & (lacking == 1)], minlength=len(sizes)) * (size * sizes <= room)
            best = int(np.argmax(gains / np.sqrt(np.log(sizes + 1))))
            if gains[best] == 0:
                break
            inside[best], size = True, size * sizes[best]
            lacking, lacked = lacking - has[:, best], lacked - best * has[:, best]
        members = np.flatnonzero(left & (lacking == 0))
        left[members] = False
        joints.append(Joint(tuple(np.flatnonzero(inside).tolist()), tuple(members.tolist())))
    return joints


def softmax_seconds(domain: Domain, apart: bool) -> float:
    """CPU seconds to compile the gradient of all softmaxes: one per attribute, or one per size."""
    import jax
    import jax.numpy as jnp

    from pointillist.families import rows

    logits = np.zeros((200, sum(domain.sizes)), np.float32)
    kept, rows.MOST_BLOCKS = rows.MOST_BLOCKS, len(domain) if apart else 0
    try:
        call = jax.jit(jax.grad(lambda given: jnp.sum(rows.softmax_per_attribute(given, domain) ** 2)))
        began = time.process_time()
        call.lower(logits).compile()
        return time.process_time() - began
    finally:
        rows.MOST_BLOCKS = kept


def plans(columns: list[int]) -> str:
    """What used to grow faster than the marginals: planning the count of all pairs, and compiling."""
    lines = []
    for many in columns:
        domain = Domain(tuple(f"c{i}" for i in range(many)), tuple(SIZES[i % len(SIZES)] for i in range(many)))
        pairs = list(combinations(range(many), 2))
        began = time.process_time()
        by_matrix(domain, pairs, BATCH)
        matrix = time.process_time() - began
        began = time.process_time()
        joints_of(domain, pairs, BATCH)
        listed = time.process_time() - began
        apart, by_size = (softmax_seconds(domain, apart) for apart in (True, False))
        lines.append(
            (
                many,
                f"{len(pairs):,}",
                f"{listed:.2f}",
                f"{matrix / listed:.1f}",
                f"{by_size:.2f}",
                f"{apart / by_size:.1f}",
            )
        )
    heads = (
        "columns", "pairs", "planning the count, CPU s", "by a matrix / this", "compiling the softmax, CPU s",
        "one per column / this",
    )  # fmt: skip
    return section("What grew faster than the number of marginals", heads, lines, level=2)


def run() -> str:
    """All of it, for the numbers of columns that are wanted."""
    columns = columns_wanted()
    return "\n".join([whole_runs(columns), plans(columns)])
