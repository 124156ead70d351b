"""Run benchmarks and print their tables; ``--write`` keeps each in benchmarks/results/NAME.md."""

from __future__ import annotations

import argparse
import os
import platform
import sys
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from pointillist.errors import InputError

NAMES = (
    "histogram_speed", "histogram_scaling", "histogram_accuracy", "solvers", "relaxed_answers", "gem_speed",
    "relaxed_accuracy", "best_mixture", "default_accuracy", "ablation",
)  # fmt: skip
RESULTS = Path(__file__).parent / "results"


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(NAMES)}; all by default")
    parser.add_argument("--write", action="store_true", help="write the tables into benchmarks/results/")
    arguments = parser.parse_args()
    unknown = [name for name in arguments.names if name not in NAMES]
    if unknown:
        parser.error(f"unknown benchmark {unknown[0]!r}; known are {', '.join(NAMES)}")
    for name in arguments.names or NAMES:
        try:
            text = import_module(f"benchmarks.{name}").run()
        except (ImportError, InputError) as reason:  # PyTorch or the datasets are not here
            sys.stdout.write(f"\n{name} is left out: {reason}\n")
            continue
        packages = ", ".join(f"{p} {_version(p)}" for p in ("numpy", "scipy", "opendp", "jax", "torch") if _version(p))
        text += f"\nPython {platform.python_version()}, {packages}; {os.cpu_count()} cores ({platform.machine()}).\n"
        sys.stdout.write(f"\n{text}\n")
        if arguments.write:
            RESULTS.mkdir(exist_ok=True)
            (RESULTS / f"{name}.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
