"""The page for the data holder: the real table against the synthetic one, marked as not private everywhere."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from tests.reports.made import SCRIPT, fine_frame, hostile_table
from tests.reports.parsed import Page
from threadpoolctl import threadpool_limits

from pointillist import InputError, Release, load
from pointillist.evaluation.report import true_answers
from pointillist.queries.groups import Groups
from pointillist.reports import Statements, holder_report


@pytest.fixture(scope="module")
def page(release: Release) -> Page:
    with threadpool_limits(1):  # threads of the models that wait for each other are slow where other programs run
        return Page(holder_report(release, hostile_table(), Statements(title=f"T {SCRIPT}"), target="smoker"))


def test_it_is_marked_in_every_place(page: Page) -> None:
    assert page.open == []
    assert [one["class"] for one in page.all("aside")] == ["banner"]
    assert page.all("body") == [{"class": "private"}]
    assert page.text.startswith("NOT PRIVATE: Real against synthetic")
    assert page.text.count("NOT private") >= 2
    assert ".banner { position: sticky" in page.style
    assert 'body.private::after { content: "NOT PRIVATE"; position: fixed' in page.style  # on every printed page


def test_it_compares_columns_pairs_marginals_and_models(page: Page, release: Release) -> None:
    assert "script" not in {name for name, _ in page.elements}
    assert len(page.all("article")) == len(release.schema.columns)
    for title in ("Errors of the answers", "Did the intervals hold?", "Worst marginals of the workload",
                  "Pairs of columns that are furthest off", "Missing values", "Predicting smoker"):  # fmt: skip
        assert title in page.text


def test_true_answers_are_those_of_the_real_table(release: Release) -> None:
    real = hostile_table()
    found = true_answers(real, release, [Groups((2,), (0, 1))])
    assert found.tolist() == [np.mean(real.codes[2] == 0), np.mean(real.codes[2] == 1)]


def test_plain_tables_and_rules_of_the_schema(fine: Release) -> None:
    page = Page(holder_report(fine, fine_frame()))
    assert "Quantiles of the numbers" in page.text
    assert "Predicting" not in page.text


def test_another_table_and_another_target_are_refused(release: Release) -> None:
    with pytest.raises(InputError):
        holder_report(release, load("demo"))
    with pytest.raises(InputError, match="must have every column of the schema"):
        holder_report(release, pd.DataFrame({"x": [1]}))
    with pytest.raises(InputError, match="target must be a column of the table"):
        holder_report(release, hostile_table(), target="nobody")
