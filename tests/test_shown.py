"""How tables and releases show themselves: releases with rows, tables, which may be private, without."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from pointillist import Categorical, InputError, Numeric, Release, Schema, Table, synthesize

SCHEMA = Schema((Categorical("<sex>", ("f", "m")), Numeric("age", (0, 18, 65, 120), integer=True)))
TABLE = Table.encode(pd.DataFrame({"<sex>": ["f", "m", "m"] * 40, "age": [5, 55, 99] * 40}), SCHEMA)


@pytest.fixture(scope="module")
def release() -> Release:
    options = {"method": "mwem", "settings": {"rounds": 1}, "workload": "marginals:1", "seed": 4}
    return synthesize(TABLE, epsilon=2.0, rows=1500, **options)


def test_a_release_is_one_line(release: Release) -> None:
    assert repr(release) == ("Release(method=mwem, epsilon=2, delta=6.94e-05, relation=replace, rows=1,500, columns=2)")
    seeded = synthesize(TABLE, epsilon=1.0, method="mwem", settings={"rounds": 1}, workload="marginals:1",
                        insecure_noise_seed=1)  # fmt: skip
    assert repr(seeded).endswith("rows=120, columns=2, NOT PRIVATE)")


def test_rows_are_those_of_the_files(release: Release, tmp_path: Path) -> None:
    release.save(tmp_path / "release")
    file = pq.read_table(tmp_path / "release" / "synthetic.parquet")
    assert release.to_arrow().equals(file)
    assert Release.load(tmp_path / "release").to_arrow().equals(file)
    pd.testing.assert_frame_equal(release.head(7), file.slice(0, 7).to_pandas())
    assert len(release.head()) == 5
    assert len(release.head(10_000)) == 1500
    with pytest.raises(InputError, match="n must be at least 0, got -1"):
        release.head(-1)


def test_a_release_in_a_notebook(release: Release) -> None:
    shown = release._repr_html_()
    assert shown.count("<tr>") == 6
    assert "(2, 6.94" in shown
    assert "differential privacy" in shown
    assert "&lt;sex&gt;" in shown
    assert "<sex>" not in shown
    assert "NOT PRIVATE" not in shown


def test_seeded_noise_is_announced_in_a_notebook() -> None:
    options = {"method": "mwem", "settings": {"rounds": 1}, "workload": "marginals:1"}
    assert (
        "NOT PRIVATE: made with seeded noise"
        in synthesize(TABLE, epsilon=1.0, insecure_noise_seed=1, **options)._repr_html_()
    )


def test_a_table_shows_no_rows() -> None:
    assert repr(TABLE) == "Table(<sex>, age)"
    shown = TABLE._repr_html_()
    assert "<td>&lt;sex&gt;</td><td>2 unordered values</td>" in shown
    assert "<td>age</td><td>3 bins from 0 to 120</td>" in shown
    assert "120 rows" not in shown
    assert shown.count("<tr>") == 3


def test_a_wide_table_is_cut() -> None:
    schema = Schema(tuple(Categorical(f"c{n}", ("a", "b")) for n in range(60)))
    shown = Table(schema, (np.zeros(3, int),) * 60)._repr_html_()
    assert shown.count("<tr>") == 51
    assert "and 10 more columns" in shown


def test_the_first_rows_of_a_table_on_request() -> None:
    pd.testing.assert_frame_equal(TABLE.head(4, seed=2), TABLE.to_pandas(seed=2).head(4))
    with pytest.raises(InputError, match="n must be a whole number"):
        TABLE.head(1.5)  # type: ignore[arg-type]
