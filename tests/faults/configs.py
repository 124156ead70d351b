"""The small runs that are hit: a made-up table of three columns, and what is asked of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

__all__ = ["CONFIGS", "ROWS", "Config"]

COLUMNS = {"town": 3, "work": 4, "age": 5}
ROWS = 400


@dataclass(frozen=True)
class Config:
    """One run.

    Attributes:
        method: a method that does not need JAX.
        rounds: the number of rounds.
        group: what is selected and measured together.
        relation: which tables are neighbours.
        noise: the seed of the noise; None for the noise of OpenDP, which cannot be repeated.
        force: whether it replaces an older release.
    """

    method: str = "mwem"
    rounds: int = 12
    group: str = "query"
    relation: str = "replace"
    noise: int | None = 3
    force: bool = False

    @staticmethod
    def write_data(folder: Path) -> None:
        """The table and its schema."""
        sizes = list(enumerate(COLUMNS.values(), 3))
        rows = ([str((i * n + i * i // 7) % size) for n, size in sizes] for i in range(ROWS))
        text = "\n".join([",".join(COLUMNS), *(",".join(row) for row in rows)])
        (folder / "people.csv").write_text(text + "\n", encoding="utf-8")
        parts = ["format = 1", "reviewed = true"]
        for name, size in COLUMNS.items():
            values = ", ".join(f'"{value}"' for value in range(size))
            parts += ["", "[[column]]", f'name = "{name}"', 'type = "categorical"', f"values = [{values}]"]
        (folder / "people.schema.toml").write_text("\n".join(parts) + "\n", encoding="utf-8")

    def command(self, data: Path, out: Path, noise: int | None = None) -> list[str]:
        """The arguments of ``pointillist`` for this run; ``noise`` is another seed."""
        seed = self.noise if noise is None else noise
        budget = ["--epsilon", "10", "--delta", "1e-6", "--relation", self.relation]
        asked = ["--workload", "marginals:2", "--rounds", str(self.rounds), "--rows", "300"]
        method = ["--method", self.method, *(["--group", self.group] if self.method == "mwem" else [])]
        more = [*([] if seed is None else ["--insecure-noise-seed", str(seed)]), *(["--force"] if self.force else [])]
        return ["synth", str(data / "people.csv"), *budget, *asked, *method, *more, "--out", str(out)]


CONFIGS: Sequence[Config] = (
    Config(),
    Config(rounds=20, relation="add-remove"),
    Config(rounds=3, group="marginal", force=True),
    Config(force=True, relation="add-remove"),
    Config(rounds=6, noise=None),
    Config(rounds=5, noise=None, relation="add-remove", force=True),
    Config(rounds=40),
)
