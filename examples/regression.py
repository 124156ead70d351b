"""A regression on synthetic rows with honest standard errors. Run: python examples/regression.py"""

from __future__ import annotations

import numpy as np

from pointillist import Table, load, synthesize
from pointillist.answers import Share, combine


def regression(table: Table) -> tuple[np.ndarray, np.ndarray]:
    """Income on age and university: the coefficients of least squares, and their squared standard errors."""
    frame = table.to_pandas().dropna(subset=["age", "income"])
    design = np.stack([np.ones(len(frame)), frame.age, frame.education == "university"], axis=1).astype(float)
    inverse = np.linalg.inv(design.T @ design)
    found = inverse @ design.T @ frame.income.to_numpy(float)
    rest = frame.income.to_numpy(float) - design @ found
    return found, np.diag(inverse) * float(rest @ rest) / (len(frame) - 3)


def main() -> None:
    town = load("demo").project(["age", "education", "income", "smoker"])
    release = synthesize(town, epsilon=1.0, workload="marginals:2", settings={"fits": 1, "strength": 0.2})
    print(release.statement)

    # Simulated runs on the model: no data and no budget. release.save keeps them, too.
    release = release.replicate(4)

    # Any question about the columns, with an interval that holds for the private table.
    for query in ("age >= 65", Share("income >= 3500", given='education == "university"')):
        found = release.answer(query)
        print(f"{found.text}: {found.estimate:.3f}, between {found.low:.3f} and {found.high:.3f}")

    # The same regression on every imputed table, combined by Rubin's rules.
    results = [regression(table) for table in release.datasets(4)]
    found = combine([estimate for estimate, _ in results], [variance for _, variance in results])
    alone = np.sqrt(regression(release.table)[1])
    lines = zip(("constant", "age", "university"), found.estimate, found.error, alone, strict=True)
    for name, value, error, plain in lines:
        print(f"{name}: {value:,.1f}, standard error {error:,.1f} ({plain:,.1f} if the rows were real)")


if __name__ == "__main__":
    main()
