"""The accuracy tests share their reference figures with the benchmarks, which are a package at the root."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
