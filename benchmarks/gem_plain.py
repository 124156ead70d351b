"""GEM's inner loop written plainly in PyTorch, as a yardstick for speed: eager, one Python step at a time."""

from __future__ import annotations

import time
from typing import Any

import numpy as np


def plain_steps(
    sizes: tuple[int, ...],
    batch: int,
    inputs: int,
    hidden: tuple[int, ...],
    data: dict[str, Any],
    steps: int,
    device: str,
) -> float:
    """Seconds per step. ``data``: columns and targets of queries, or attribute triples and targets of marginals."""
    import torch
    from torch import nn

    class Residual(nn.Module):
        def __init__(self, width: int, out: int) -> None:
            super().__init__()
            self.linear, self.norm = nn.Linear(width, out), nn.BatchNorm1d(out, track_running_stats=False)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.cat([torch.relu(self.norm(self.linear(x))), x], dim=1)

    layers: list[nn.Module] = []
    width = inputs
    for out in hidden:
        layers.append(Residual(width, out))
        width += out
    network = nn.Sequential(*layers, nn.Linear(width, sum(sizes))).to(device)
    z = torch.randn(batch, inputs, device=device)
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-4)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    by_query = "columns" in data
    if by_query:
        columns = torch.tensor(np.asarray(data["columns"]), dtype=torch.long, device=device)
        targets = torch.tensor(np.asarray(data["targets"]), device=device)
    else:
        marginals = data["marginals"]
        cells = [torch.tensor(np.asarray(t), dtype=torch.float32, device=device) for t in data["targets"]]

    def step() -> None:
        optimizer.zero_grad()
        parts = [torch.softmax(block, dim=1) for block in torch.split(network(z), list(sizes), dim=1)]
        if by_query:
            answers = torch.cat(parts, dim=1)[:, columns].prod(dim=2).mean(dim=0)
            loss = (answers - targets).abs().mean()
        else:
            terms = [
                ((torch.einsum("ba,bc,bd->acd", *(parts[i] for i in marginal)) / batch - target) ** 2).sum()
                for marginal, target in zip(marginals, cells, strict=True)
            ]
            loss = torch.stack(terms).sum()
        loss.backward()
        optimizer.step()
        schedule.step()

    def wait() -> None:
        if device != "cpu":
            torch.cuda.synchronize()

    for _ in range(min(3, steps)):
        step()
    wait()
    start = time.perf_counter()
    for _ in range(steps):
        step()
    wait()
    return (time.perf_counter() - start) / steps


def matrix_rate(device: str, size: int = 4096) -> float:
    """Measured floating-point operations per second of a 32-bit matrix product."""
    import torch

    a = torch.randn(size, size, device=device)
    repeats = 20 if device != "cpu" else 2
    for _ in range(2):
        b = a @ a
    if device != "cpu":
        torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(repeats):
        b = a @ a
    if device != "cpu":
        torch.cuda.synchronize()
    assert b.shape == a.shape
    return 2 * size**3 * repeats / (time.perf_counter() - start)
