"""GEM's inner loop written plainly in PyTorch, as a yardstick for speed: eager, one Python step at a time."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Data:
    """Measured queries (``columns`` and ``targets``) or measured marginals (``marginals`` and ``cells``)."""

    columns: np.ndarray | None = None
    targets: np.ndarray | None = None
    marginals: list[tuple[int, ...]] = field(default_factory=list)
    cells: list[np.ndarray] = field(default_factory=list)


def plain_steps(
    sizes: tuple[int, ...], batch: int, inputs: int, hidden: tuple[int, ...], data: Data, steps: int, device: str
) -> float:
    """Seconds per step."""
    import torch

    network = network_of(inputs, hidden, sum(sizes)).to(device)
    loss_of = loss_on(data, device)
    z = torch.randn(batch, inputs, device=device)
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-4)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)

    def step() -> None:
        optimizer.zero_grad()
        parts = [torch.softmax(block, dim=1) for block in torch.split(network(z), list(sizes), dim=1)]
        loss_of(parts).backward()
        optimizer.step()
        schedule.step()

    for _ in range(min(3, steps)):
        step()
    wait(device)
    start = time.perf_counter()
    for _ in range(steps):
        step()
    wait(device)
    return (time.perf_counter() - start) / steps


def network_of(inputs: int, hidden: tuple[int, ...], outputs: int) -> Any:
    """Residual layers with batch normalisation, and a linear layer at the end."""
    import torch
    from torch import nn

    class Residual(nn.Module):  # type: ignore[misc, unused-ignore]
        def __init__(self, width: int, out: int) -> None:
            super().__init__()
            self.linear, self.norm = nn.Linear(width, out), nn.BatchNorm1d(out, track_running_stats=False)

        def forward(self, x: Any) -> Any:
            return torch.cat([torch.relu(self.norm(self.linear(x))), x], dim=1)

    layers: list[Any] = []
    width = inputs
    for out in hidden:
        layers.append(Residual(width, out))
        width += out
    return nn.Sequential(*layers, nn.Linear(width, outputs))


def loss_on(data: Data, device: str) -> Callable[[list[Any]], Any]:
    """The loss of the attributes' probabilities: absolute errors of queries, or squared errors of marginals."""
    import torch

    if data.columns is not None:
        columns = torch.tensor(np.asarray(data.columns), dtype=torch.long, device=device)
        targets = torch.tensor(np.asarray(data.targets), device=device)

        def by_query(parts: list[Any]) -> Any:
            answers = torch.cat(parts, dim=1)[:, columns].prod(dim=2).mean(dim=0)
            return (answers - targets).abs().mean()

        return by_query
    cells = [torch.tensor(np.asarray(t), dtype=torch.float32, device=device) for t in data.cells]

    def by_marginal(parts: list[Any]) -> Any:
        batch = parts[0].shape[0]
        terms = [
            ((torch.einsum("ba,bc,bd->acd", *(parts[i] for i in marginal)) / batch - target) ** 2).sum()
            for marginal, target in zip(data.marginals, cells, strict=True)
        ]
        return torch.stack(terms).sum()

    return by_marginal


def wait(device: str) -> None:
    """Wait until the device has done what it was given."""
    import torch

    if device != "cpu":
        torch.cuda.synchronize()


def matrix_rate(device: str, size: int = 4096) -> float:
    """Measured floating-point operations per second of a 32-bit matrix product."""
    import torch

    a = torch.randn(size, size, device=device)
    repeats = 20 if device != "cpu" else 2
    for _ in range(2):
        b = a @ a
    wait(device)
    start = time.perf_counter()
    for _ in range(repeats):
        b = a @ a
    wait(device)
    assert b.shape == a.shape
    return float(2 * size**3 * repeats / (time.perf_counter() - start))
