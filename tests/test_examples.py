"""Every example runs as it stands, from any folder, without a warning, and leaves nothing behind."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).resolve().parents[1] / "examples").glob("*.py"))


def test_there_are_examples() -> None:
    assert {path.name for path in EXAMPLES} >= {"quickstart.py", "your_own_table.py", "your_own_queries.py"}


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_example_runs(path: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", path], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "-differential privacy, relation" in done.stdout
    assert "NOT PRIVATE" not in done.stdout
    assert not list(tmp_path.iterdir())
    assert f"python examples/{path.name}" in path.read_text(encoding="utf-8")
