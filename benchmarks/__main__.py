"""Run benchmarks and print their tables; ``--write`` also writes each to benchmarks/results/NAME.md."""

from __future__ import annotations

import argparse
import os
import platform
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from measuring.machine import versions

from pointillist.errors import InputError

NAMES = (
    "histogram_speed",
    "histogram_scaling",
    "solvers",
    "relaxed_answers",
    "gem_speed",
    "best_mixture",
    "real_tables",
    "many_values",
    "edges",
    "overhead",
    "rules",
    "queries",
    "learning",
    "gradients",
    "matching",
    "suite",
    "forecast",
    "scale",
    "coverage",
    "scale_wide",
    "scale_fits",
)
PACKAGES = ("numpy", "scipy", "opendp", "jax", "torch")
RESULTS = Path(__file__).parent / "results"


def footer() -> str:
    """What the figures were measured with."""
    found = versions(*PACKAGES)
    python = found.pop("python")
    packages = ", ".join(f"{name} {version}" for name, version in found.items())
    return f"Python {python}, {packages}; {os.cpu_count()} cores ({platform.machine()}).\n"


def wanted(names: Sequence[str]) -> list[str]:
    """The benchmarks with these names, and those that continue them: scale is also scale_wide."""
    return [one for one in NAMES if not names or any(one == name or one.startswith(f"{name}_") for name in names)]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmarks; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"any of {', '.join(NAMES)}; default: all")
    parser.add_argument("--write", action="store_true", help="write the tables to benchmarks/results/")
    chosen = parser.parse_args(arguments)
    unknown = [name for name in chosen.names if name not in NAMES]
    if unknown:
        parser.error(f"unknown benchmark {unknown[0]!r}; choose from {', '.join(NAMES)}")
    for name in wanted(chosen.names):
        try:
            module = import_module(f"benchmarks.{name}")
            text = module.run()
        except (ImportError, InputError) as reason:  # PyTorch is not installed, or the datasets are missing
            print(f"\n{name} is skipped: {reason}")
            continue
        text = f"{text}\n{footer()}"
        print(f"\n{text}")
        if chosen.write:
            RESULTS.mkdir(exist_ok=True)
            (RESULTS / f"{name}.md").write_text(text, encoding="utf-8")
            if hasattr(module, "write"):  # what else follows from its runs
                module.write()
    return 0


if __name__ == "__main__":
    sys.exit(main())
