"""Every method of the registry passes the same tests, by query and by marginal."""

from __future__ import annotations

import ast
import dataclasses
import inspect
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pointillist import Grouping, InputError, Release, RunStopped, Table, Workload, all_kway, synthesize
from pointillist.algorithms import METHODS, Method, get_method
from pointillist.data.neighbours import Relation
from pointillist.data.public import PublicTable
from pointillist.data.schema import Categorical, Schema
from pointillist.data.sources import TableSource
from pointillist.framework import Algorithm, Log, Replay, run
from pointillist.privacy.budget import Budget
from pointillist.privacy.curator import Curator
from pointillist.privacy.insecure import InsecureSeededNoise
from pointillist.privacy.mechanisms import OpenDPNoise

SMALL: dict[str, dict[str, Any]] = {
    "mwem": {"rounds": 4},
    "pep": {"rounds": 4},
    "dualquery": {"samples": 5, "eta": 5.0, "rounds": 8},
    "fem": {"rounds": 4, "samples": 6},
    "rap": {"rounds": 2, "picks": 2, "rows": 20, "t_max": 20},
    "rap_softmax": {"rounds": 2, "picks": 2, "rows": 20, "t_max": 20},
    "gem": {"rounds": 3, "batch": 20, "inputs": 8, "hidden": "16-16", "t_max": 5},
    "one-shot": {"rows": 20, "t_max": 30},
    "auto": {"rows": 20, "t_max": 30},
    "pmw_pub": {"rounds": 4},
    "pep_pub": {"rounds": 4, "gate": 0.9},
    "gem_pub": {
        "rounds": 3,
        "batch": 20,
        "inputs": 8,
        "hidden": "16-16",
        "t_max": 5,
        "pretrain_steps": 5,
    },
}
"""Settings that make a method run in a moment on the small table."""

LEARNS: dict[str, dict[str, Any]] = {
    "mwem": {},
    "pep": {},
    "dualquery": {"eta": 10.0, "samples": 50, "rounds": 60},
    "fem": {"rounds": 12, "samples": 20, "sigma": 3.0},
    "rap": {"rounds": 3, "picks": 2, "rows": 50, "t_max": 500, "learning_rate": 0.01, "patience": 0},
    "rap_softmax": {"rounds": 3, "picks": 2, "rows": 50, "t_max": 300},
    "gem": {"rounds": 6, "batch": 50, "inputs": 16, "hidden": "64-64", "t_max": 100, "learning_rate": 0.01},
    "one-shot": {"rows": 50, "t_max": 300},
    "auto": {"rows": 50, "t_max": 100},
    "pmw_pub": {},
    "pep_pub": {},
    "gem_pub": {
        "rounds": 6,
        "batch": 50,
        "inputs": 16,
        "hidden": "64-64",
        "t_max": 100,
        "learning_rate": 0.01,
        "pretrain_steps": 20,
    },
}
"""Settings under which a method should learn the small table well, given a large budget."""

CASES = [
    pytest.param(method, grouping, id=f"{method.name}-{grouping.value}")
    for method in METHODS.values()
    for grouping in Grouping
    if grouping in method.groupings
]
METHOD_CASES = [pytest.param(method, id=method.name) for method in METHODS.values()]


def small_table(n: int = 500, seed: int = 0) -> Table:
    rng = np.random.default_rng(seed)
    a = rng.integers(0, 3, n)
    b = (a + (rng.random(n) < 0.2)) % 2
    c = rng.integers(0, 4, n)
    d = (c + a) % 3
    sizes = (3, 2, 4, 3)
    columns = tuple(
        Categorical(name, tuple(f"{name}{i}" for i in range(size))) for name, size in zip("abcd", sizes, strict=True)
    )
    return Table(Schema(columns), (a, b, c, d))


def public_table(method: Method) -> Table | None:
    """Other people of the same town, unevenly drawn; only for the methods that use them."""
    town = small_table(400, seed=9)
    return town.take(np.flatnonzero((town.codes[0] > 0) | (np.arange(len(town)) % 3 == 0))) if method.public else None


def build(method: Method, workload: Workload, settings: dict[str, Any]) -> Algorithm[Any]:
    public = public_table(method)
    beside = None if public is None else PublicTable.encode(public, small_table().schema)
    return method.algorithm(workload, method.configure(settings), beside)


def settings_of(method: Method) -> dict[str, Any]:
    return SMALL[method.name]


def make(method: Method, grouping: Grouping, relation: Relation = Relation.REPLACE, noise: Any = None, table=None):
    table = small_table() if table is None else table
    workload = all_kway(table.domain, 2, grouping)
    algorithm = build(method, workload, settings_of(method))
    measurable, budget = algorithm.measurable or workload, Budget(1.0, 1e-6, relation)
    noise = noise or InsecureSeededNoise(3)
    return algorithm, Curator.for_schedule(TableSource(table), measurable, budget, algorithm.schedule, noise)


def same(family: Any, first: Any, second: Any) -> bool:
    one, two = family.to_arrays(first), family.to_arrays(second)
    return one.keys() == two.keys() and all(np.array_equal(one[k], two[k]) for k in one)


@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize(("method", "grouping"), CASES)
def test_replay_gives_the_identical_result(method: Method, grouping: Grouping, relation: Relation) -> None:
    """All that a run knows of the data is its log: without the data the log gives the same result."""
    algorithm, curator = make(method, grouping, relation, OpenDPNoise())
    params, log = run(algorithm, curator, seed=5)
    again, log_again = run(make(method, grouping, relation)[0], Replay(log, curator.open()[1]), seed=5)
    assert len(log.rounds) == len(log_again.rounds) >= 1
    assert same(algorithm.family, params, again)


@pytest.mark.parametrize(("method", "grouping"), CASES)
def test_a_run_repeats_under_seeded_noise_and_differs_under_real_noise(method: Method, grouping: Grouping) -> None:
    def result(noise: Any) -> Any:
        algorithm, curator = make(method, grouping, noise=noise)
        return algorithm.family, run(algorithm, curator, seed=1)[0]

    family, one = result(InsecureSeededNoise(7))
    assert same(family, one, result(InsecureSeededNoise(7))[1])
    assert not all(same(family, one, result(OpenDPNoise())[1]) for _ in range(5))


@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize(("method", "grouping"), CASES)
def test_the_ledger_holds(method: Method, grouping: Grouping, relation: Relation) -> None:
    algorithm, curator = make(method, grouping, relation)
    run(algorithm, curator, seed=0)
    ledger = curator.ledger
    spent = sum(Fraction(entry.rho) for entry in ledger.entries)
    assert Fraction(0) < spent <= Fraction(ledger.limit)
    assert ("number of rows" in {e.label for e in ledger.entries}) == (relation is Relation.ADD_REMOVE)


@pytest.mark.parametrize(("method", "grouping"), CASES)
def test_answers_are_those_of_a_distribution(method: Method, grouping: Grouping) -> None:
    algorithm, curator = make(method, grouping)
    params, _ = run(algorithm, curator, seed=0)
    workload = curator.workload
    answers = algorithm.family.answers(params, workload)
    assert answers.shape == (workload.queries,)
    assert np.all(np.isfinite(answers))
    if not method.consistent:
        return
    assert np.all(answers >= -1e-6)
    assert np.allclose(np.add.reduceat(answers, workload.offsets[:-1]), 1, atol=1e-4)


@pytest.mark.parametrize(("method", "grouping"), CASES)
def test_rows_follow_the_model(method: Method, grouping: Grouping) -> None:
    if not method.consistent:
        pytest.skip("its answers are not those of a distribution, so no rows can follow them")
    algorithm, curator = make(method, grouping)
    params, _ = run(algorithm, curator, seed=0)
    rows = 40_000
    codes = algorithm.family.sample(np.random.default_rng(0), params, rows)
    table = Table(small_table().schema, codes)
    workload = curator.workload
    counted = np.concatenate(TableSource(table).count(workload.marginals)) / rows
    model = algorithm.family.answers(params, workload)
    # Six standard deviations of independent draws, and a little for rounding.
    assert np.all(np.abs(counted - model) <= 6 * np.sqrt(np.clip(model * (1 - model), 0, 1) / rows) + 2e-4)


@pytest.mark.parametrize(("method", "grouping"), CASES)
def test_parameters_survive_saving(method: Method, grouping: Grouping) -> None:
    algorithm, curator = make(method, grouping)
    params, _ = run(algorithm, curator, seed=0)
    back = algorithm.family.from_arrays(algorithm.family.to_arrays(params))
    assert np.array_equal(
        algorithm.family.answers(params, curator.workload), algorithm.family.answers(back, curator.workload)
    )


@pytest.mark.parametrize(("method", "grouping"), CASES)
def test_a_release_is_saved_and_loaded(method: Method, grouping: Grouping, tmp_path: Path) -> None:
    table = small_table()
    release = synthesize(
        table, epsilon=2.0, method=method.name, workload="marginals:2", group=grouping,
        settings=settings_of(method), rows=300, public=public_table(method),
    )  # fmt: skip
    loaded = Release.load(release.save(tmp_path / "out"))
    assert len(loaded.table) == 300
    assert np.array_equal(loaded.answers(), release.answers())
    for one, two in zip(loaded.sample(50, seed=3).codes, release.sample(50, seed=3).codes, strict=True):
        assert np.array_equal(one, two)


@pytest.mark.parametrize(("method", "grouping"), CASES)
def test_a_large_budget_beats_the_start(method: Method, grouping: Grouping) -> None:
    """With little noise the method learns: its largest error is well below the start's."""
    table = small_table(4000)
    workload = all_kway(table.domain, 2, grouping)
    truth = np.concatenate(TableSource(table).count(workload.marginals)) / len(table)
    learning = dict(LEARNS[method.name])
    if grouping is Grouping.QUERY and "picks" in learning:
        learning["rounds"] = 12  # a single query teaches less than a whole marginal
    algorithm = build(method, workload, learning)
    measurable = algorithm.measurable or workload
    curator = Curator(TableSource(table), measurable, Budget(50.0, 1e-6), InsecureSeededNoise(1))
    before = np.abs(algorithm.family.answers(algorithm.begin(np.random.default_rng([0, 0]))[0], workload) - truth)
    params, _ = run(algorithm, curator, seed=0)
    after = np.abs(algorithm.family.answers(params, workload) - truth)
    assert after.max() < 0.8 * before.max()


@pytest.mark.parametrize("method", METHOD_CASES)
def test_hyperparameters_are_documented_and_reachable(method: Method) -> None:
    for field in dataclasses.fields(method.parameters):
        assert field.metadata["help"]
    with pytest.raises(InputError, match="must be one of its parameters"):
        method.configure({"no_such_parameter": 1})


@pytest.mark.parametrize("method", METHOD_CASES)
def test_a_method_file_keeps_the_house_rules(method: Method) -> None:
    """At most about 150 lines of code, the paper's table in the docstring, no epsilon and no truth inside."""
    source = inspect.getsource(inspect.getmodule(method.build))
    tree = ast.parse(source)
    assert "| family |" in (ast.get_docstring(tree) or "")
    assert len([line for line in source.splitlines() if line.strip()]) <= 200
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    assert not names & {"epsilon", "isinstance", "hasattr", "exact_counts", "Curator", "Table"}


def test_the_loop_asks_no_types() -> None:
    import pointillist.framework as framework

    names = {n.id for n in ast.walk(ast.parse(inspect.getsource(framework))) if isinstance(n, ast.Name)}
    assert not names & {"isinstance", "hasattr", "getattr"}


def test_an_unknown_method_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(InputError, match="did you mean 'mwem'"):
        get_method("mwen")


def test_a_model_that_is_not_finite_is_not_given_out() -> None:
    """Also where it was the last update that spoilt it; what was spent is told."""
    table = small_table(400)
    workload = all_kway(table.domain, 2)
    algorithm = build(METHODS["mwem"], workload, {"rounds": 2})

    class Spoilt:
        def init(self, params: np.ndarray) -> None:
            return None

        def __call__(self, rng: object, params: np.ndarray, memory: None, log: Log) -> tuple[np.ndarray, None]:
            return (params * np.nan if len(log.rounds) == 2 else params), None

    curator = Curator(TableSource(table), workload, Budget(1.0, 1e-6), InsecureSeededNoise(0))
    with pytest.raises(RunStopped, match="not finite") as stopped:
        run(dataclasses.replace(algorithm, update=Spoilt()), curator, seed=0)
    assert len(stopped.value.log.rounds) == 2
