"""Replicates on disk: a file next to the model, which is added to a release at any time and checked when it is read."""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from pointillist.answers.pooling import Typical
from pointillist.answers.replicates import PILOT, Replicate, Replicates, model_arrays, to_arrays
from pointillist.checks import check
from pointillist.data.columns import Column, Merged
from pointillist.data.schema import Schema
from pointillist.errors import InputError, Shown
from pointillist.families.saved import load_family
from pointillist.release.safe import MOST_ARRAYS, SPARE, check_model, load_arrays, model_bytes

__all__ = ["load_replicates", "read_replicates", "save_replicates"]

MOST = 100
"""The largest number of replicates in a file."""

MOST_INFLATED = 10.0
"""The largest factor by which intervals are widened."""

AGAIN = "remove replicates.npz, and make the replicates again"


def save_replicates(path: Path, replicates: Replicates) -> None:
    """Write replicates, all or nothing.

    Args:
        path: the file.
        replicates: the replicates.
    """
    part = path.with_name(f".{path.name}.{secrets.token_hex(8)}.npz")
    try:
        np.savez_compressed(part, **to_arrays(replicates))  # type: ignore[arg-type]
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


def load_replicates(path: Path, family: Mapping[str, Any], schema: Schema, total: float) -> Replicates | None:
    """The replicates of a release; None if there are none.

    Args:
        path: the file.
        family: the family of the model, as it describes itself.
        schema: the columns.
        total: the number of rows, as the release has estimated it.
    """
    if not os.path.isfile(path):
        return None
    fine = 8 * sum(column.base.size for column in schema.columns if isinstance(column, Merged))
    most = SPARE + MOST * (model_bytes(family, schema.domain, path) + fine + SPARE)
    try:
        return read_replicates(load_arrays(path, most, MOST * MOST_ARRAYS), family, schema, total)
    except InputError as error:  # the release itself is not to be made again, which would cost budget
        name = error.parameter.replace("release", "replicates", 1)
        raise InputError(name, error.value, error.rule, AGAIN) from None


def read_replicates(
    arrays: Mapping[str, np.ndarray], family: Mapping[str, Any], schema: Schema, total: float
) -> Replicates:
    """Replicates from their arrays; refuses those that do not fit the release.

    Args:
        arrays: what :func:`save_replicates` wrote.
        family: the family of the model, as it describes itself.
        schema: the columns.
        total: the number of rows, as the release has estimated it.
    """
    for name in ("seed", "totals", "sizes", "errors", "inflated"):
        check(name in arrays, "replicates", Shown(f"none called {name}"), f"must have the array {name}", AGAIN)
    totals, seed = arrays["totals"], arrays["seed"]
    good = totals.dtype.kind == "f" and totals.ndim == 1 and 1 <= len(totals) <= MOST and bool((totals >= 1).all())
    rule = f"must be 1 to {MOST} numbers of rows, each at least 1"
    check(good and bool(np.isfinite(totals).all()), "replicates: totals", Shown("others"), rule, AGAIN)
    good = seed.dtype.kind in "iu" and seed.ndim == 0 and int(seed) >= 0
    check(good, "replicates: seed", Shown("another one"), "must be a whole number, 0 or more", AGAIN)
    inflated = arrays["inflated"]
    good = inflated.dtype.kind == "f" and inflated.ndim == 0 and 1 <= float(inflated) <= MOST_INFLATED
    check(good, "replicates: inflated", Shown("another one"), f"must be in 1 .. {MOST_INFLATED:g}", AGAIN)
    models = tuple(
        _replicate(arrays, f"model{i}_", float(total), family, _with_shares(schema, arrays.get(f"shares{i}")))
        for i, total in enumerate(totals)
    )
    pilot = _replicate(arrays, PILOT, total, family, schema)
    return Replicates(models, pilot, int(seed), _typical(arrays["sizes"], arrays["errors"]), float(inflated))


def _replicate(
    arrays: Mapping[str, np.ndarray], prefix: str, total: float, family: Mapping[str, Any], schema: Schema
) -> Replicate:
    found = model_arrays(arrays, prefix)
    check_model(family, schema.domain, found)
    model = load_family(family, schema.domain, found)
    return Replicate(model, model.from_arrays(found), total, schema)


def _with_shares(schema: Schema, shares: np.ndarray | None) -> Schema:
    """The schema with the shares of a replicate inside of merged groups."""
    sizes = [column.base.size if isinstance(column, Merged) else 0 for column in schema.columns]
    given = np.zeros(0) if shares is None else shares
    rule = f"must have {sum(sizes):,} shares of merged codes"
    good = given.dtype.kind == "f" and given.shape == (sum(sizes),)
    check(good, "replicates: shares", Shown(f"{given.size:,}"), rule, AGAIN)
    if shares is None:
        return schema
    parts = np.split(given, np.cumsum(sizes)[:-1])
    columns: list[Column] = []
    for column, own in zip(schema.columns, parts, strict=True):
        columns.append(replace(column, shares=tuple(own.tolist())) if isinstance(column, Merged) else column)
    return replace(schema, columns=tuple(columns))


def _typical(sizes: np.ndarray, errors: np.ndarray) -> Typical:
    good = sizes.ndim == 1 and sizes.shape == errors.shape and len(sizes) > 0
    good = good and sizes.dtype.kind == "f" and errors.dtype.kind == "f"
    good = good and bool(np.isfinite(sizes).all() and np.isfinite(errors).all() and (errors >= 0).all())
    good = good and bool((np.diff(sizes) >= 0).all())
    rule = "must be errors of at least 0 at increasing sizes"
    check(good, "replicates: errors", Shown("others"), rule, AGAIN)
    return Typical(sizes, errors)
