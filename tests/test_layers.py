"""Imports go one way: data -> queries -> privacy -> framework -> ... -> cli, and heavy packages are lazy."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import pointillist

ROOT = Path(pointillist.__file__).parent
LAYERS = [
    "errors", "checks", "data", "queries", "privacy", "framework", "families", "updates", "algorithms", "release",
    "synthesis", "evaluation", "__init__", "cli",
]  # fmt: skip
HEAVY = ("opendp", "pyarrow", "pandas", "polars", "jax", "optax", "pysat", "matplotlib")


def layer_of(path: Path) -> str:
    relative = path.relative_to(ROOT)
    return relative.parts[0] if len(relative.parts) > 1 else relative.stem


def imports_of(path: Path) -> list[str]:
    found: list[str] = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            found.append(node.module)
        elif isinstance(node, ast.ImportFrom):
            found.append("relative import")
        elif isinstance(node, ast.Import):
            found.extend(alias.name for alias in node.names)
    return found


MODULES = sorted(ROOT.rglob("*.py"))


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_go_to_earlier_layers_only(path: Path) -> None:
    here = LAYERS.index(layer_of(path))
    for name in imports_of(path):
        assert name != "relative import", "write imports in full"
        if name.partition(".")[0] != "pointillist":
            continue
        target = name.split(".")[1] if "." in name else "__init__"
        assert LAYERS.index(target) <= here, f"{path.name} imports {name} from a later layer"


def test_every_module_belongs_to_a_layer() -> None:
    assert len(MODULES) > 20
    assert {layer_of(path) for path in MODULES} <= set(LAYERS)


def test_the_private_side_never_imports_jax() -> None:
    names = [name for path in (ROOT / "privacy").rglob("*.py") for name in imports_of(path)]
    assert "numpy" in names
    assert not [name for name in names if name.partition(".")[0] in ("jax", "optax")]


def test_only_the_curator_counts_private_rows() -> None:
    """Inside a run nothing but the curator asks a source: the counting functions are imported there alone."""
    users = {
        str(path.relative_to(ROOT))
        for path in MODULES
        if {"pointillist.queries.counting"} & set(imports_of(path)) and layer_of(path) != "evaluation"
    }
    assert users == {"privacy/curator.py"}


def test_importing_the_package_loads_nothing_heavy() -> None:
    code = f"import sys, pointillist; print([m for m in {HEAVY!r} if m in sys.modules])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"
