"""A release: what may leave the house. Synthetic rows, the model, the transcript and the ledger, saved as a folder.

No field holds anything but public facts and differentially private results: no true answer, no true error and,
under add-remove, no true number of rows.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from pointillist.algorithms import get_method
from pointillist.data.schema import Schema
from pointillist.data.table import Table
from pointillist.errors import InputError, PointillistError, RunStopped, Shown, check
from pointillist.framework import Family, Log, Round
from pointillist.privacy.scores import Pick
from pointillist.queries.workload import Grouping, Workload

__all__ = ["Release", "check_target"]

FORMAT = 1
ROWS_CSV, ROWS_PARQUET, SPEC, MODEL, TRANSCRIPT = (
    "synthetic.csv", "synthetic.parquet", "release.json", "model.npz", "transcript.npz",
)  # fmt: skip


@dataclass(frozen=True)
class Release:
    """A synthetic table with the model behind it and the account of its privacy."""

    table: Table
    family: Family[Any]
    params: Any
    log: Log
    spec: dict[str, Any]

    @property
    def schema(self) -> Schema:
        return self.table.schema

    @cached_property
    def workload(self) -> Workload:
        """The workload that the release was made for. The log's may hold more: what could be measured for it."""
        return _workload_of(self.spec["workload"], self.schema)

    @property
    def statement(self) -> str:
        """The privacy statement."""
        return str(self.spec["privacy"]["statement"])

    def sample(self, rows: int, seed: int = 0) -> Table:
        """More rows from the model: free, since the model is already private."""
        return draw_rows(self.family, self.params, self.schema, rows, seed, stream=1)

    def answers(self, workload: Workload | None = None) -> np.ndarray:
        """The model's answers to a workload (its own by default), as fractions."""
        workload = self.workload if workload is None else workload
        check(workload.domain == self.schema.domain, "workload", Shown("another domain"),
              "must be over the release's columns", "build it from release.schema.domain")  # fmt: skip
        return self.family.answers(self.params, workload)

    def save(self, folder: str | Path, force: bool = False) -> Path:
        """Write the release as a folder, all or nothing."""
        folder = check_target(folder, force)
        folder.parent.mkdir(parents=True, exist_ok=True)
        staging = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
        try:
            self._write(staging)
            staging.chmod(0o755)
            _swap(staging, folder)
        finally:
            shutil.rmtree(staging, ignore_errors=True)
        return folder

    def _write(self, folder: Path) -> None:
        seed = int(self.spec["seed"])
        self.table.write(folder / ROWS_CSV, seed)
        self.table.write(folder / ROWS_PARQUET, seed)
        _save_arrays(folder / MODEL, self.family.to_arrays(self.params))
        _save_arrays(folder / TRANSCRIPT, _log_arrays(self.log))
        (folder / SPEC).write_text(json.dumps(self.spec, indent=1) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, folder: str | Path) -> Release:
        """Read a release folder back."""
        folder = Path(folder)
        for name in (SPEC, MODEL, TRANSCRIPT, ROWS_PARQUET):
            check((folder / name).is_file(), "release", str(folder), f"must be a release folder with {name} in it",
                  "give the folder that synth wrote")  # fmt: skip
        try:
            spec = json.loads((folder / SPEC).read_text(encoding="utf-8"))
            if spec["format"] != FORMAT:
                raise InputError("release: format", spec["format"], f"must be {FORMAT}", "update pointillist")
            schema = Schema.from_dict(spec["schema"])
            with (folder / TRANSCRIPT).open("rb") as file, np.load(file) as arrays:
                asked = _workload_of(spec["workload"], schema)
                measurable = spec["measurable"] and _workload_of(spec["measurable"], schema)
                log = _log_of(arrays, measurable or asked, int(spec["total"]))
            log.total_sigma = float(spec["total_sigma"])
            method = get_method(spec["method"]["name"])
            with (folder / MODEL).open("rb") as file, np.load(file) as arrays:
                family = method.saved_family(asked, method.configure(spec["method"]["parameters"]), arrays)
                params = family.from_arrays(arrays)
            table = Table.read(folder / ROWS_PARQUET, schema)
        except PointillistError:
            raise
        except Exception as error:  # a damaged file can fail in any way
            reason = " ".join(f"{type(error).__name__}: {error}".split())[:120]
            rule = f"must be undamaged ({reason})"
            raise InputError("release", str(folder), rule, "make the release again") from None
        return cls(table, family, params, log, spec)


def check_target(folder: str | Path, force: bool) -> Path:
    """Refuse a target that would overwrite something; called before any budget is spent, too."""
    folder = Path(folder).resolve()
    if not folder.exists():
        parent = next(path for path in folder.parents if path.exists())
        check(parent.is_dir() and os.access(parent, os.W_OK), "out", str(folder),
              f"must be in a folder that can be written to (not {parent})", "choose another folder")  # fmt: skip
        return folder
    rule = "must not exist already"
    check(force, "out", str(folder), rule, "choose another folder, or overwrite the release with --force")
    replaceable = folder.is_dir() and ((folder / SPEC).is_file() or not any(folder.iterdir()))
    check(replaceable, "out", str(folder), f"must be a release folder (with {SPEC}) or empty to be overwritten",
          "choose another folder")  # fmt: skip
    return folder


def draw_rows(family: Family[Any], params: Any, schema: Schema, rows: int, seed: int, stream: int = 0) -> Table:
    """A table of rows drawn from a model; another ``stream`` gives other rows for the same seed."""
    check(rows >= 1, "rows", rows, "must be at least 1", "give for example 1000")
    return Table(schema, family.sample(np.random.default_rng([seed, (1 << 32) + stream]), params, rows))


def save_stopped(stop: RunStopped, folder: Path) -> Path:
    """Keep what a stopped run learned and spent, beside where its release would have been."""
    number, target = 1, folder.with_name(f"{folder.name}.stopped")
    while target.exists():  # an earlier account of spent budget stays
        number += 1
        target = folder.with_name(f"{folder.name}.stopped{number}")
    target.mkdir(parents=True)
    _save_arrays(target / TRANSCRIPT, _log_arrays(stop.log))
    ledger = {
        "reason": stop.reason,
        "noise": stop.noise,
        "epsilon": stop.ledger.budget.epsilon,
        "delta": stop.ledger.budget.delta,
        "relation": stop.ledger.budget.relation.value,
        "accounting": stop.ledger.accounting,
        "rho": stop.ledger.limit,
        "ledger": stop.ledger.to_list(),
        "total": stop.log.total,
        "total_sigma": stop.log.total_sigma,
        "workload": workload_spec(stop.log.workload),
    }
    (target / "ledger.json").write_text(json.dumps(ledger, indent=1) + "\n", encoding="utf-8")
    return target


def workload_spec(workload: Workload) -> dict[str, Any]:
    """A workload as plain data, by attribute names."""
    names = workload.domain.names
    marginals = [[names[i] for i in marginal] for marginal in workload.marginals]
    return {"grouping": workload.grouping.value, "queries": workload.queries, "marginals": marginals}


def versions() -> dict[str, str]:
    """Versions of the packages that a release depends on."""
    found = {}
    for name in ("pointillist", "numpy", "scipy", "opendp", "pyarrow", "jax", "optax"):
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def _workload_of(spec: Mapping[str, Any], schema: Schema) -> Workload:
    index = schema.domain.index
    marginals = tuple(tuple(index(name) for name in names) for names in spec["marginals"])
    return Workload(schema.domain, marginals, Grouping(spec["grouping"]))


def _log_arrays(log: Log) -> dict[str, np.ndarray]:
    """The transcript as flat arrays: one entry per pick, noisy counts one after the other."""
    picks = [(t, pick.group, pick.sign) for t, entry in enumerate(log.rounds) for pick in entry.picks]
    values = [counts for entry in log.rounds for counts in entry.noisy]
    names = sorted({name for note in log.notes for name in note})
    notes = {f"note_{name}": np.array([note.get(name, np.nan) for note in log.notes]) for name in names}
    return notes | {
        "picks": np.array(picks, dtype=np.int64).reshape(-1, 3),
        "sigmas": np.array([entry.sigma for entry in log.rounds]),
        "measured": np.array([bool(entry.noisy) for entry in log.rounds], dtype=bool),
        "selected": np.array([entry.selected for entry in log.rounds], dtype=bool),
        "noisy": np.concatenate(values) if values else np.zeros(0, np.int64),
    }


def _log_of(arrays: Mapping[str, np.ndarray], workload: Workload, total: int) -> Log:
    picks, noisy = arrays["picks"], arrays["noisy"]
    log, at = Log(workload, total), 0
    columns = zip(arrays["sigmas"], arrays["measured"], arrays["selected"], strict=True)
    for t, (sigma, measured, selected) in enumerate(columns):
        chosen = tuple(Pick(int(group), int(sign)) for _, group, sign in picks[picks[:, 0] == t])
        counts = []
        for pick in chosen if measured else ():
            flat = workload.group(pick.group).flat
            counts.append(noisy[at : at + flat.stop - flat.start])
            at += flat.stop - flat.start
        log.rounds.append(Round(chosen, tuple(counts), float(sigma), bool(selected)))
        log.notes.append({})
    if at != len(noisy):
        raise ValueError(f"{TRANSCRIPT} holds {len(noisy):,} noisy counts, {at:,} expected")
    for name in arrays:
        if name.startswith("note_"):
            for note, value in zip(log.notes, arrays[name], strict=True):
                if not np.isnan(value):
                    note[name.removeprefix("note_")] = float(value)
    return log


def _save_arrays(path: Path, arrays: dict[str, Any]) -> None:
    np.savez_compressed(path, **arrays)


def _swap(staging: Path, folder: Path) -> None:
    """Put ``staging`` in the place of ``folder``; a kill leaves the old one, the new one, or both, never half."""
    for path in staging.iterdir():
        with path.open("rb") as file:
            os.fsync(file.fileno())
    if not folder.exists():
        staging.rename(folder)
        return
    old = Path(tempfile.mkdtemp(prefix=f".{folder.name}.old.", dir=folder.parent))
    folder.rename(old / folder.name)
    try:
        staging.rename(folder)
    except OSError:
        (old / folder.name).rename(folder)
        old.rmdir()
        raise
    shutil.rmtree(old)
