"""Use your own pandas table: draft a schema, review it, synthesize. Run: python examples/your_own_table.py"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

from pointillist import Categorical, InputError, Numeric, Schema, draft_schema, synthesize


def survey(people: int = 3000) -> pd.DataFrame:
    """A made-up survey. Replace it with your own table."""
    rng = np.random.default_rng(7)
    age = rng.integers(18, 90, people)
    works = rng.random(people) < np.where(age < 65, 0.8, 0.1)
    hours = np.where(works, np.clip(np.rint(rng.normal(36, 8, people)), 1, 80), 0).astype(int)
    region = rng.choice(["north", "south", "islands"], people, p=[0.5, 0.4, 0.1])
    name = [f"person {i}" for i in range(people)]
    return pd.DataFrame({"name": name, "age": age, "works": works, "hours": hours, "region": region})


def main() -> None:
    frame = survey()

    # 1. Draft. The draft is derived from the data, so it is not public knowledge yet, and a run refuses it.
    draft = draft_schema(frame)
    print(f"drafted: {', '.join(draft.domain.names)}; left out: {', '.join(draft.ignore)}")
    try:
        synthesize(frame, schema=draft, epsilon=1.0)
    except InputError as error:
        print(f"refused: {error}")

    # 2. Review. Keep what is known without the table (code books, legal limits) and replace the rest.
    # You can also edit the file that `pointillist schema` writes. Here the reviewed schema is written in code.
    reviewed = Schema(
        (
            Numeric("age", (18, 30, 45, 65, 120), integer=True),
            Categorical("works", (False, True)),
            Numeric("hours", (0, 1, 20, 35, 45, 80), integer=True, clip=True),
            Categorical("region", ("north", "south", "islands")),
        ),
        ignore=("name",),
    )
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "survey.schema.toml"
        reviewed.save(file)
        reviewed = Schema.load(file)

    # 3. Synthesize: all two-way marginals. The default method has no rounds, so asking for them selects MWEM here.
    release = synthesize(frame, schema=reviewed, epsilon=2.0, workload="marginals:2", settings={"rounds": 5}, rows=1000)
    print(release.statement)
    print(release.table.to_pandas().head())


if __name__ == "__main__":
    main()
