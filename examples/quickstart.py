"""The embedded demo, from a table to a release and back. Run: python examples/quickstart.py"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

from pointillist import Release, all_kway, synthesize
from pointillist.data.datasets import load


def main() -> None:
    town = load("demo")  # a fictional town, drawn by code
    print(f"{len(town):,} rows over {', '.join(town.domain.names)}")

    # The workload: all two-way marginals. The method is the default one.
    release = synthesize(town, epsilon=1.0, workload="marginals:2")
    print(f"method {release.spec['method']['name']}")
    print(release.statement)

    # Synthetic rows, with the labels and types of the original.
    print(release.table.to_pandas().head())

    # More rows cost no privacy: the model is private already. Another seed draws other rows.
    print(f"{len(release.sample(50, seed=1))} more rows")

    # The model answers queries too: fractions of the rows, one per cell, marginal by marginal.
    answers = release.answers()
    print(f"{len(answers):,} answers, the largest {answers.max():.2f}")

    # Any workload over the same columns will do. What the release was not made for may be answered less well.
    triples = release.answers(all_kway(release.schema.domain, 3))
    print(f"{len(triples):,} answers to three-way marginals")

    with tempfile.TemporaryDirectory() as folder:
        saved = release.save(Path(folder) / "town")
        print("saved:", ", ".join(sorted(path.name for path in saved.iterdir())))
        again = Release.load(saved)
        print("the same answers after loading:", bool(np.array_equal(again.answers(), answers)))


if __name__ == "__main__":
    main()
