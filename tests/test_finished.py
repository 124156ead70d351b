"""Comparisons that go on where they stopped, and the tables made of finished runs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from benchmarks import learning, queries
from measuring.finished import Finished, Key, Values, chosen


def test_finished_runs_are_kept_and_not_made_again(tmp_path: Path) -> None:
    made: list[Key] = []

    def run(key: Key) -> Iterator[tuple[Key, Values]]:
        made.append(key)
        yield key, (0.25,)
        yield ("b", "2"), (0.5,)

    path = tmp_path / "runs.csv"
    first = Finished(path, ("name", "seed"), ("error",))
    first.make([("a", "1"), ("b", "2")], run)
    assert made == [("a", "1")]
    again = Finished(path, ("name", "seed"), ("error",))
    again.make([("a", "1"), ("b", "2")], run)
    assert made == [("a", "1")]
    assert again.found == {("a", "1"): (0.25,), ("b", "2"): (0.5,)}
    assert path.read_text() == "name,seed,error\na,1,0.25\nb,2,0.5\n"


def test_the_environment_narrows_a_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    assert chosen("POINTILLIST_NO_SUCH", (0.5, 1)) == ["0.5", "1"]
    monkeypatch.setenv("POINTILLIST_NO_SUCH", "a; b ;")
    assert chosen("POINTILLIST_NO_SUCH", ()) == ["a", "b"]


def test_errors_are_compared_on_the_same_seeds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queries, "table_of", lambda state, task: range(1000))
    head, kind = ("42", "income", "1"), "halfspaces:200"
    found = {
        (*head, "0", kind, "auto", kind): (0.01, 0.1, 1.0),
        (*head, "0", kind, "auto", "marginals:2"): (0.03, 0.2, 1.0),
        (*head, "1", kind, "auto", "marginals:2"): (0.09, 0.9, 1.0),  # without its like
        ("42", "income", "", "", kind, queries.ALONE, ""): (0.05, 0.5, 0.0),
    }
    assert "| halfspaces:200 | Pennsylvania | 1 | 1 | 3.00 | 3.00 | 2.00 |" in queries.summary(found)
    shown = "| income | Pennsylvania | 1 | 1.000 (10.00) | 6.000 (55.00) |  |  |  | 5.000 (50.00) |"
    assert shown in queries.report(found, kind)
    assert "| income |" not in queries.report(found, "prefixes:2")


def test_a_missing_run_is_named_by_its_budget_and_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("STATES", "39"), ("TASKS", "income"), ("EPSILONS", ".07"), ("SEEDS", "2")):
        monkeypatch.setenv(f"POINTILLIST_QUERIES_{name}", value)
    monkeypatch.setenv("POINTILLIST_QUERIES_KINDS", "prefixes:2")
    monkeypatch.setenv("POINTILLIST_QUERIES_METHODS", "marginals:2;gsd")
    head = ("39", "income", "0.07", "2", "prefixes:2")
    alone, *runs = queries.wanted_runs()
    assert alone == ("39", "income", "", "", "prefixes:2", queries.ALONE, "")
    assert runs == [(*head, "auto", "marginals:2"), (*head, "gsd", "prefixes:2")]


def test_scores_of_models_stand_next_to_those_of_real_rows() -> None:
    key = ("42", "employment", "1", "0", "marginals:2")
    found = {(*key, model): (0.9, 0.8, 0.7, 0.6, 1.0) for model in learning.MODELS}
    shown = "| employment | Pennsylvania | 1 | linear | 0.9000 (0.7000) | 0.8000 (0.6000) |  |  |  |"
    assert shown in learning.report(found)
