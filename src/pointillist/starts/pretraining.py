"""A start that is fitted to the answers of a public table: free of budget, and kept in a cache.

The cache is a folder of files named by a hash of all that a fit depends on
(:func:`pointillist.families.programs.cache_folder`).
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pointillist.data.public import PublicTable
from pointillist.errors import InputError
from pointillist.families.programs import cache_folder
from pointillist.families.relaxed import Params, Relaxed
from pointillist.framework import Info
from pointillist.queries.base import Queries
from pointillist.queries.counting import public_counts
from pointillist.queries.measurement import Measurement
from pointillist.updates.descent import Recipe, cells_data, combined, descend

__all__ = ["Pretraining"]

FORMAT = 2
"""Part of the hash: raised whenever the same inputs would give another result."""


@dataclass(frozen=True, eq=False)
class Pretraining:
    """Fits ``family`` to ``queries`` whose attributes the public table has.

    The initial weights are the same for every seed of a run, so that all runs share one fit.
    """

    family: Relaxed
    queries: tuple[Queries, ...]
    public: PublicTable
    recipe: Recipe

    def __call__(self, rng: np.random.Generator) -> tuple[Params, Info]:
        folder = cache_folder()
        path = None if folder is None else folder / f"{self.key()}.npz"
        found = None if path is None else _read(path)
        if found is None:
            params, info = self.fit()
            if path is not None:
                _write(path, self.family.to_arrays(params) | {f"info_{k}": np.array(v) for k, v in info.items()})
            return params, info | {"cached": 0.0}
        info = {name.removeprefix("info_"): float(found.pop(name)) for name in list(found) if name.startswith("info_")}
        return self.family.from_arrays(found), info | {"cached": 1.0}

    def key(self) -> str:
        """The hash of all that the fit depends on."""
        parts = (FORMAT, self.public.digest, self.queries, self.family.model, self.recipe)
        return hashlib.sha256(repr(parts).encode()).hexdigest()

    def fit(self) -> tuple[Params, Info]:
        """One descent on exact public counts, as if sampling were their noise."""
        total = self.public.rows
        counts = public_counts(self.public, self.queries)
        shares = np.concatenate(counts) / total
        # A table with one distinct record has no sampling noise: any fit is compared with that of one row then.
        sigma = max(float(np.sqrt(total * np.mean(shares * (1 - shares)))), 1.0)
        exact = [Measurement(one, values, sigma) for one, values in zip(self.queries, counts, strict=True)]
        data = cells_data(self.family.layout(self.queries), *combined(self.queries, exact, total))
        params = self.family.init(np.random.default_rng(0))
        try:
            params, info = descend(self.family, self.queries, self.recipe, np.random.default_rng(0), params, data)
        except InputError as error:
            raise InputError("pretraining: loss", error.value, error.rule, "use a smaller pretrain_rate") from None
        early = info["steps"] < self.recipe.optimizer.steps
        return params, {"marginals": float(len(self.queries)), **info, "early_stop": float(early)}


def _read(path: Path) -> dict[str, np.ndarray] | None:
    """The arrays of a kept fit; None if there is none, or a damaged one."""
    try:
        with path.open("rb") as file, np.load(file) as arrays:  # np.load leaves a damaged file open
            return {name: arrays[name] for name in arrays}
    except Exception:  # a damaged file can fail in any way; it is made again
        return None


def _write(path: Path, arrays: dict[str, np.ndarray]) -> None:
    """Keep a fit; a folder that cannot be written to only costs the next run its time."""
    name = ""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
        with os.fdopen(handle, "wb") as file:
            np.savez(file, **arrays)  # type: ignore[arg-type]
        Path(name).replace(path)
    except OSError:
        if name:
            Path(name).unlink(missing_ok=True)
