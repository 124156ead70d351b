"""``pointillist workload``: it explains a workload from a schema alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.command import Run
from tests.queries.small import SCHEMA

from pointillist import Categorical, Grid, Schema


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    SCHEMA.save("people.schema.toml")
    Path("queries.toml").write_text(
        'format = 1\n[[queries]]\nwhere = "age >= 20 or smoker == true"\n[[queries]]\nworkload = "prefixes:2@age"\n'
    )
    return tmp_path


@pytest.mark.parametrize("data", ["people.schema.toml", "people.csv"])
@pytest.mark.usefixtures("home")
def test_a_workload_is_explained_without_data(run: Run, data: str) -> None:
    found = run("workload", "queries.toml", "--data", data)
    assert found.code == 0
    assert "4 groups of queries, 29 queries" in found.out
    assert "predicates" in found.out
    assert "change (replace)" in found.out
    assert "counted by" in found.out


@pytest.mark.usefixtures("home")
def test_an_explanation_for_programs(run: Run) -> None:
    text = "marginals:1 + prefixes:2 + halfspaces:7"
    found = json.loads(run("workload", text, "--data", "people.schema.toml", "--json").out)
    assert [one["kind"] for one in found["kinds"]] == ["marginal", "product", "halfspaces"]
    assert found["kinds"][2]["queries"] == 7
    assert found["kinds"][1]["sensitivities"]["replace"]["exact"] is True
    assert found["queries"] == sum(one["queries"] for one in found["kinds"])


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("marginals:9", "--data", "people.csv"), "workload: K must be in 1 .. 4"),
        (("marginals:1", "--data", "other.csv"), "data must be a schema, a file with one next to it, or a dataset"),
        (("none.toml", "--data", "people.csv"), "workload must be an existing file"),
    ],
)
def test_what_is_refused(run: Run, arguments: tuple[str, ...], sentence: str) -> None:
    found = run("workload", *arguments)
    assert found.code == 2
    assert sentence in found.err


@pytest.mark.usefixtures("home")
def test_columns_without_fixed_bins_are_those_of_a_run(run: Run) -> None:
    """A run merges them into few groups, and only asks for marginals of them."""
    Schema((Categorical("sex", ("f", "m")), Grid("pay", (0, 100_000), step=0.01))).save("fine.schema.toml")
    found = json.loads(run("workload", "marginals:2", "--data", "fine.schema.toml", "--json").out)
    assert found["queries"] <= 2 * 20
    refused = run("workload", "prefixes:1", "--data", "fine.schema.toml")
    assert refused.code == 2
    assert "workload must be of marginals where columns have no fixed bins or values" in refused.err
    assert "got other queries of ['pay']" in refused.err
