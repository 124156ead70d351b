"""Whole runs of the default on large tables: a first process, the next one, and once more in the same process.

Each table is synthesized in processes of their own that share an empty cache of compiled programs. The first one
compiles, the second one finds its programs in the cache and makes two runs with the same noise. A third one forbids
short descents (:mod:`pointillist.updates.shrinkage`), so that their gain and their cost in error can be seen.
``POINTILLIST_FITS`` narrows the tables down, such as ``adult,loans``; ``POINTILLIST_FITS_EPSILON`` is 1 unless set.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from tempfile import TemporaryDirectory
from typing import Any

from measuring.markdown import section

from pointillist.checks import one_of

MARGINALS = {"adult": "3", "adult-star": "3:64", "loans": "3:64", "acs-pa": "3:4096", "flights": "2"}
"""The tables, and the marginals that are asked for: their columns, and their number if not all are taken. Flights is a
table of the registry with a drafted schema (:mod:`benchmarks.real_tables`), the others are named datasets."""

RUN = """
import json, sys, time
began = time.perf_counter()
from benchmarks.scale_fits import source_of
from benchmarks.suite import errors
from pointillist import synthesize
from pointillist.updates import shrinkage

name, marginals, epsilon, short, runs = sys.argv[1:]
if short == "never":
    shrinkage.SHORT_FROM = sys.maxsize
data, options = source_of(name)
loaded = time.perf_counter()
import jax
jax.block_until_ready(jax.numpy.zeros(1))
started = time.perf_counter()
found = []
for _ in range(int(runs)):
    wall, processor = time.perf_counter(), time.process_time()
    release = synthesize(
        data, epsilon=float(epsilon), workload=f"marginals:{marginals}", seed=0, insecure_noise_seed=0,
        progress=False, **options,
    )
    found.append((time.perf_counter() - wall, time.process_time() - processor))
tvd = None if options else errors(data, release.table, release.workload)[2]
kind = jax.devices()[0].device_kind
print(json.dumps([loaded - began, started - loaded, found, tvd, kind, release.log.info[-1].get("short", 0.0)]))
"""


def source_of(name: str) -> tuple[Any, dict[str, Any]]:
    """The data of a table, and options of ``synthesize``.

    Args:
        name: one of ``MARGINALS``.
    """
    if name == "flights":
        from benchmarks.real_tables import drafted, table_of

        plain, schema = drafted(name, table_of(name))
        return plain, {"schema": schema}
    from measuring.data import table_of as named

    return named(name), {}


def names_wanted() -> list[str]:
    """The tables that are measured."""
    wanted = os.environ.get("POINTILLIST_FITS", "")
    return [one_of("POINTILLIST_FITS", name, MARGINALS) for name in wanted.split(",")] if wanted else list(MARGINALS)


def run() -> str:
    """All tables, in fresh processes."""
    names = names_wanted()
    epsilon = os.environ.get("POINTILLIST_FITS_EPSILON", "1")
    lines, kind = [], ""
    for name in names:
        with TemporaryDirectory() as folder:
            first, again, long = (
                _run((name, MARGINALS[name], epsilon, short, runs), folder)
                for short, runs in (("maybe", "1"), ("maybe", "2"), ("never", "1"))
            )
        kind = str(first[4])
        lines.append((name, MARGINALS[name], *_line(first, again, long)))
        print(*lines[-1], file=sys.stderr, flush=True)
    return section(
        "Whole runs of the default",
        ("table", "marginals", "import and load, s", "JAX starts, s", "first run, s", "CPU s", "next process / first",
         "same process / first", "first process as a whole, s", "long descents / these: CPU s", "tvd"),
        lines,
        f"epsilon {epsilon}, replace, seeded noise, on {kind}: from the data to the rows, in wall-clock time and that "
        "of the processor. The first process has an empty cache of compiled programs, the next one finds it filled. "
        "The last two columns compare with a run that may not use short descents.",
    )  # fmt: skip


def _line(first: Sequence[Any], again: Sequence[Any], long: Sequence[Any]) -> tuple[str, ...]:
    """The figures of a table."""
    loading, starting, [(wall, processor)], tvd, _, short = first
    _, _, [(next_wall, _), (warm_wall, _)], _, _, _ = again
    _, _, [(_, long_processor)], long_tvd, _, _ = long
    ratio = f"{long_processor / processor:.2f}" if short else "1: long"
    return (
        f"{loading:.1f}", f"{starting:.1f}", f"{wall:.1f}", f"{processor:.0f}", f"{next_wall / wall:.2f}",
        f"{warm_wall / wall:.2f}", f"{loading + starting + wall:.1f}", ratio,
        "" if tvd is None or not short else f"{long_tvd / tvd:.3f}",
    )  # fmt: skip


def _run(arguments: Sequence[str], cache: str) -> list[Any]:
    """What a process prints."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("JAX_COMPILATION")}
    env["POINTILLIST_CACHE"] = cache
    done = subprocess.run([sys.executable, "-c", RUN, *arguments], env=env, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    found: list[Any] = json.loads(done.stdout.splitlines()[-1])
    return found
