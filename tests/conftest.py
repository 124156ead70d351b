"""Shared set-up: strict numerics wherever JAX is used, and the folder of real datasets."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from tests.command import Result, Run

from pointillist import cli, job
from pointillist.privacy.ledger import Entry, Ledger

os.environ.setdefault("JAX_NUMPY_DTYPE_PROMOTION", "strict")
os.environ.setdefault("JAX_NUMPY_RANK_PROMOTION", "raise")
os.environ.setdefault("JAX_PLATFORMS", "cpu")
# Tests build the same small programs again and again: compile each once a session.
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", tempfile.mkdtemp(prefix="pointillist-tests-"))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES", "-1")
os.environ.setdefault("POINTILLIST_CACHE", tempfile.mkdtemp(prefix="pointillist-cache-"))

settings.register_profile("pointillist", deadline=None)  # no test depends on how fast the machine is
settings.load_profile("pointillist")

SHARED_DATA = Path(__file__).resolve().parents[2] / "shared" / "data"


@pytest.fixture
def real_data(monkeypatch: pytest.MonkeyPatch) -> None:
    """Real datasets: from POINTILLIST_DATA, or from ../shared/data; without either the test is skipped."""
    if "POINTILLIST_DATA" not in os.environ:
        if not SHARED_DATA.is_dir():
            pytest.skip("the real datasets are not here: set POINTILLIST_DATA")
        monkeypatch.setenv("POINTILLIST_DATA", str(SHARED_DATA))


@pytest.fixture
def charges(monkeypatch: pytest.MonkeyPatch) -> list[Entry]:
    """Everything charged to any ledger."""
    found: list[Entry] = []
    charge = Ledger.charge

    def spy(ledger: Ledger, *entries: Entry) -> None:
        found.extend(entries)
        charge(ledger, *entries)

    monkeypatch.setattr(Ledger, "charge", spy)
    return found


@pytest.fixture
def one_thread() -> Iterator[None]:
    """Models of scikit-learn in one thread: threads that wait for each other are slow where other programs run."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):
        yield


class Blind:
    """Noise that never looks at what it is given."""

    description = "blind"
    private = False

    def __init__(self, seed: int) -> None:
        self._rng = np.random.default_rng(seed)

    def add_gaussian(self, counts: np.ndarray, rho: float, sensitivity_squared: int) -> np.ndarray:
        return self._rng.integers(100, size=counts.shape)

    def select(self, scores: np.ndarray, rho: float, sensitivity: int) -> int:
        return int(self._rng.integers(len(scores)))


@pytest.fixture
def blind_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    """Seeded runs get noise that ignores the data: what comes out cannot depend on the table but through noise."""
    monkeypatch.setattr(job, "InsecureSeededNoise", Blind)


@pytest.fixture
def run(home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """The command in this process, as its entry point runs it, in the working folder that the test file makes."""

    def go(*arguments: str) -> Result:
        monkeypatch.setattr(sys, "argv", ["pointillist", *arguments])
        capsys.readouterr()
        code: Any = 0
        try:
            cli.main()
        except SystemExit as end:
            code = end.code or 0
        return Result(code, *capsys.readouterr())

    return go
