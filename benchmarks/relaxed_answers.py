"""Answering all three-way marginals of relaxed rows: matrix products against a plain gather."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from measuring.data import ADULT_SIZES as SIZES
from measuring.machine import seconds
from measuring.markdown import section

from pointillist import all_kway
from pointillist.data.domain import Domain
from pointillist.queries.answering import Layout, query_answers
from pointillist.queries.candidates import Single

ROWS, CHUNK = 1000, 4096


def torch_gather(rows: np.ndarray, cells: np.ndarray) -> float | None:
    """Seconds of gather and multiply in eager PyTorch, where it is installed."""
    try:
        import torch
    except ImportError:
        return None
    table, columns = torch.tensor(rows), torch.tensor(cells, dtype=torch.long)
    parts = range(0, len(cells), CHUNK)
    return seconds(lambda: [table[:, columns[i : i + CHUNK]].prod(dim=2).mean(dim=0) for i in parts])


def run() -> str:
    """Every way to answer, on the same rows."""
    domain = Domain(tuple(f"x{i}" for i in range(len(SIZES))), SIZES)
    workload = all_kway(domain, 3)
    layout = Layout(domain, workload.queries)
    rng = np.random.default_rng(0)
    rows = jnp.asarray(np.concatenate([rng.dirichlet(np.ones(s), ROWS) for s in SIZES], axis=1), jnp.float32)
    products = jax.jit(lambda r: jnp.concatenate([m.ravel() for m in layout.answers(r)]))
    single = Single(workload.queries)
    columns = layout.lift.columns([single[n] for n in range(len(single))])
    padded = np.pad(columns, ((0, -len(columns) % CHUNK), (0, 0)), constant_values=sum(SIZES)).reshape(-1, CHUNK, 3)
    gather = jax.jit(lambda r, c: jax.lax.map(lambda part: query_answers(r, part), c))
    gradient = jax.jit(jax.grad(lambda r: sum(jnp.sum(a * a) for a in layout.answers(r))))
    first, second = layout.to_flat(products(rows)), np.asarray(gather(rows, padded)).ravel()[: workload.size]
    assert np.allclose(first, second, atol=1e-4)
    host, cells = np.asarray(rows), columns.reshape(-1, 3)

    def plain() -> np.ndarray:
        """Gather and multiply in NumPy, in chunks that fit the memory."""
        parts = [host[:, cells[i : i + CHUNK]].prod(axis=2).mean(axis=0) for i in range(0, len(cells), CHUNK)]
        return np.concatenate(parts)

    assert np.allclose(plain(), first, atol=1e-4)
    slowest = seconds(plain)
    fast = seconds(lambda: jax.block_until_ready(products(rows)), 10)
    slow = seconds(lambda: jax.block_until_ready(gather(rows, padded)), 2)
    jax.block_until_ready(gradient(rows))
    back = seconds(lambda: jax.block_until_ready(gradient(rows)), 5)
    eager = torch_gather(host, cells)
    table = [
        *([("plain gather (PyTorch)", f"{eager:.3f}", f"{eager / fast:.0f}")] if eager else []),
        ("plain gather (NumPy)", f"{slowest:.3f}", f"{slowest / fast:.0f}"),
        ("gather, compiled and fused (JAX)", f"{slow:.3f}", f"{slow / fast:.0f}"),
        ("matrix products", f"{fast:.4f}", "1"),
        ("gradient over all queries, by matrix products", f"{back:.4f}", f"{back / fast:.1f}"),
    ]
    return section(
        f"All {workload.size:,} three-way queries of ADULT's sizes from {ROWS} rows, {jax.default_backend()}",
        ("way", "seconds", "times the matrix products"),
        table,
        f"Memory of the matrix products: {layout.memory(ROWS) / 1e6:.0f} MB.",
    )
