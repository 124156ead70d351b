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
from tests.privacy.brute_force import true_sensitivity

import pointillist.framework
from pointillist import (
    Grouping,
    InputError,
    Intervals,
    Job,
    Product,
    Release,
    RunStopped,
    Table,
    Workload,
    all_kway,
    prepare,
    synthesize,
)
from pointillist.algorithms import METHODS, Method, Public, get_method
from pointillist.data.neighbours import Relation
from pointillist.data.schema import Categorical, Schema
from pointillist.data.sources import TableSource
from pointillist.framework import Log, Replay, Updated, run
from pointillist.privacy.ledger import GAUSSIAN, Entry
from pointillist.privacy.mechanisms import gaussian_scale
from pointillist.queries.base import Queries
from pointillist.queries.counting import exact_counts

SMALL: dict[str, dict[str, Any]] = {
    "mwem": {"rounds": 4},
    "pep": {"rounds": 4},
    "dualquery": {"samples": 5, "eta": 5.0, "rounds": 8},
    "fem": {"rounds": 4, "samples": 6},
    "rap": {"rounds": 2, "picks": 2, "rows": 20, "t_max": 20},
    "rap_softmax": {"rounds": 2, "picks": 2, "rows": 20, "t_max": 20},
    "gem": {"rounds": 3, "batch": 20, "inputs": 8, "hidden": "16-16", "t_max": 5},
    "gsd": {"rounds": 3, "picks": 1, "records": 40, "generations": 20},
    "one-shot": {"rows": 20, "t_max": 30},
    "auto": {"rows": 20, "t_max": 30},
    "aim": {"rounds": 8, "t_max": 40},
    "mst": {"t_max": 40},
    "hdmm": {"rows": 20, "t_max": 30},
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
    "gsd": {"rounds": 6, "picks": 1, "records": 300, "generations": 400},
    "one-shot": {"rows": 50, "t_max": 300},
    "auto": {"rows": 50, "t_max": 100},
    "aim": {},
    "mst": {},
    "hdmm": {"rows": 50, "t_max": 300},
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
    if method.public is Public.UNUSED:
        return None
    return town.take(np.flatnonzero((town.codes[0] > 0) | (np.arange(len(town)) % 3 == 0)))


def make(
    method: Method,
    grouping: Grouping,
    relation: Relation = Relation.REPLACE,
    noise_seed: int | None = 3,
    **options: Any,
) -> Job:
    """A job on the small table that runs in a moment; without a seed the noise is real."""
    table = small_table()
    wanted: dict[str, Any] = {
        "epsilon": 1.0,
        "delta": 1e-6,
        "workload": all_kway(table.domain, 2),
        "settings": SMALL[method.name],
        "public": public_table(method),
    }
    return prepare(
        table, method=method, group=grouping, relation=relation, insecure_noise_seed=noise_seed, **(wanted | options)
    )


def same(family: Any, first: Any, second: Any) -> bool:
    one, two = family.to_arrays(first), family.to_arrays(second)
    return one.keys() == two.keys() and all(np.array_equal(one[k], two[k]) for k in one)


def require_replay(job: Job, fresh: Job) -> None:
    """All that a run knows of the data is its log: without the data the log gives the same result, bit for bit."""
    release = job.run()
    again, log_again = run(fresh.algorithm, Replay(release.log), fresh.seed)
    assert len(release.log.rounds) == len(log_again.rounds) >= 1
    assert release.log.info == log_again.info
    assert same(release.family, release.params, again)
    assert fresh.curator.ledger.entries == ()


@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize(("method", "grouping"), CASES)
def test_replay_gives_the_identical_result(method: Method, grouping: Grouping, relation: Relation) -> None:
    require_replay(*(make(method, grouping, relation, None, seed=5) for _ in range(2)))


@pytest.mark.parametrize(("method", "grouping"), CASES)
def test_a_run_repeats_under_seeded_noise_and_differs_under_real_noise(method: Method, grouping: Grouping) -> None:
    def result(noise_seed: int | None) -> Release:
        return make(method, grouping, noise_seed=noise_seed, seed=1).run()

    one = result(7)
    assert same(one.family, one.params, result(7).params)
    assert not all(same(one.family, one.params, result(None).params) for _ in range(5))


def require_ledger(job: Job, relation: Relation) -> Release:
    """What a run spends is within its budget, exactly."""
    release = job.run()
    ledger = job.curator.ledger
    spent = sum(Fraction(entry.rho) for entry in ledger.entries)
    assert Fraction(0) < spent <= Fraction(ledger.limit)
    assert ("number of rows" in {e.label for e in ledger.entries}) == (relation is Relation.ADD_REMOVE)
    assert release.description.privacy.ledger == ledger.entries
    return release


@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize(("method", "grouping"), CASES)
def test_the_ledger_holds(method: Method, grouping: Grouping, relation: Relation) -> None:
    require_ledger(make(method, grouping, relation), relation)


def asked_by(release: Release) -> Workload:
    """The queries that were wanted, and those that were measured for them."""
    measured = [m.queries for m in release.log.measurements if m.queries.partition]
    return Workload(release.schema.domain, tuple(dict.fromkeys((*release.workload.queries, *measured))))


@pytest.mark.parametrize(("method", "grouping"), CASES)
def test_answers_are_those_of_a_distribution(method: Method, grouping: Grouping) -> None:
    release = make(method, grouping).run()
    workload = asked_by(release)
    answers = release.answers(workload)
    assert answers.shape == (workload.size,)
    assert np.all(np.isfinite(answers))
    if not method.consistent:
        return
    assert np.all(answers >= -1e-6)
    assert np.allclose(np.add.reduceat(answers, workload.offsets[:-1]), 1, atol=1e-4)


def require_rows_to_follow(release: Release) -> None:
    """Rows that are drawn from the model answer the queries as it does."""
    rows = 40_000
    workload = asked_by(release)
    counted = exact_counts(TableSource(release.sample(rows)), workload.queries) / rows
    model = release.answers(workload)
    # Six standard deviations of independent draws, and a little for rounding.
    assert np.all(np.abs(counted - model) <= 6 * np.sqrt(np.clip(model * (1 - model), 0, 1) / rows) + 2e-4)


@pytest.mark.parametrize(("method", "grouping"), CASES)
def test_rows_follow_the_model(method: Method, grouping: Grouping) -> None:
    if not method.consistent:
        pytest.skip("its answers are not those of a distribution, so no rows can follow them")
    require_rows_to_follow(make(method, grouping).run())


@pytest.mark.parametrize(("method", "grouping"), CASES)
def test_parameters_survive_saving(method: Method, grouping: Grouping) -> None:
    release = make(method, grouping).run()
    family, queries = release.family, asked_by(release).queries
    back = family.from_arrays(family.to_arrays(release.params))
    assert np.array_equal(family.answers(release.params, queries), family.answers(back, queries))


def require_round_trip(release: Release, folder: Path) -> Release:
    """A release that is saved and loaded again is the same: answers, rows and transcript."""
    loaded = Release.load(release.save(folder))
    assert np.array_equal(loaded.answers(), release.answers())
    for one, two in zip(loaded.sample(50, seed=3).codes, release.sample(50, seed=3).codes, strict=True):
        assert np.array_equal(one, two)
    assert loaded.workload == release.workload
    assert loaded.description == release.description
    assert loaded.log.facts == release.log.facts
    for first, second in zip(loaded.log.rounds, release.log.rounds, strict=True):
        assert (first.picks, first.selected) == (second.picks, second.selected)
        for one, two in zip(first.measurements, second.measurements, strict=True):
            assert (one.queries, one.sigma, one.counts.tolist()) == (two.queries, two.sigma, two.counts.tolist())
    return loaded


@pytest.mark.parametrize(("method", "grouping"), CASES)
def test_a_release_is_saved_and_loaded(method: Method, grouping: Grouping, tmp_path: Path) -> None:
    table = small_table()
    release = synthesize(
        table, epsilon=2.0, method=method.name, workload="marginals:2", group=grouping,
        settings=SMALL[method.name], rows=300, public=public_table(method),
    )  # fmt: skip
    loaded = require_round_trip(release, tmp_path / "out")
    assert len(loaded.table) == 300


def errors_before_and_after(table: Table, job: Job) -> tuple[np.ndarray, np.ndarray]:
    """The errors of the answers that the method starts with, and of those that it ends with."""
    algorithm, queries = job.algorithm, job.task.workload.queries
    truth = exact_counts(TableSource(table), queries) / len(table)
    start, _ = algorithm.begin(np.random.default_rng([job.seed, 0]))
    before = np.abs(algorithm.family.answers(start, queries) - truth)
    return before, np.abs(job.run().answers() - truth)


@pytest.mark.parametrize(("method", "grouping"), CASES)
def test_a_large_budget_beats_the_start(method: Method, grouping: Grouping) -> None:
    """With little noise the method learns: its largest error is well below the start's."""
    table = small_table(4000)
    learning = dict(LEARNS[method.name])
    if grouping is Grouping.QUERY and "picks" in learning:
        learning["rounds"] = 12  # a single query teaches less than a whole marginal
    job = prepare(
        table, epsilon=50.0, delta=1e-6, method=method, workload="marginals:2", group=grouping, settings=learning,
        public=public_table(method), insecure_noise_seed=1, zcdp=True,
    )  # fmt: skip
    before, after = errors_before_and_after(table, job)
    assert after.max() < 0.8 * before.max()


PRODUCT_CASES = [
    pytest.param(METHODS[name], grouping, id=f"{name}-{grouping.value}")
    for name in ("mwem", "rap_softmax", "gem", "auto", "aim", "mst")
    for grouping in Grouping
    if grouping in METHODS[name].groupings
]


def prefixes() -> Workload:
    """Prefixes, ranges and values, crossed: queries that overlap, and codes that are in none of them."""
    domain = small_table(1).domain
    ranges = Intervals(4, ((0, 2), (1, 3), (1, 2)))
    products: list[Queries] = [
        Product.of(domain, {"c": "prefixes"}),
        Product.of(domain, {"a": "prefixes", "d": "prefixes"}),
        Product.of(domain, {"a": "prefixes", "b": "values"}),
        Product.of(domain, {"b": "prefixes", "c": ranges}),
    ]
    return Workload.of(domain, products)


@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize(("method", "grouping"), PRODUCT_CASES)
def test_replay_gives_the_identical_result_for_products(method: Method, grouping: Grouping, relation: Relation) -> None:
    require_replay(*(make(method, grouping, relation, None, seed=5, workload=prefixes()) for _ in range(2)))


REFUSED = [
    ("pep", Grouping.MARGINAL), ("pep_pub", Grouping.MARGINAL), ("dualquery", Grouping.QUERY), ("fem", Grouping.QUERY),
    ("hdmm", Grouping.MARGINAL),
]  # fmt: skip
"""The methods that are not for products, in these groupings."""


@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize(("method", "grouping"), [c for c in CASES if (c.values[0].name, c.values[1]) not in REFUSED])
def test_the_ledger_holds_for_products(method: Method, grouping: Grouping, relation: Relation) -> None:
    """No charge is for less than what one person can change, by brute force over all records."""
    workload = prefixes()
    job = make(method, grouping, relation, workload=workload)
    release = require_ledger(job, relation)
    ledger = job.curator.ledger
    charged = [entry for entry in ledger.entries if entry.label == "measurement"]
    for entry, measured in zip(charged, release.log.measurements, strict=True):
        true = true_sensitivity(measured.queries, workload.domain, relation)
        assert round(entry.sensitivity**2) >= true.l2_squared
        assert entry.scale == measured.sigma
        assert true.l2_squared <= 2 * Fraction(entry.rho) * Fraction(entry.scale) ** 2
    single = max(true_sensitivity(queries, workload.domain, relation).single for queries in workload.queries)
    for entry in ledger.entries:
        if entry.label == "selection":
            assert entry.sensitivity >= single
            assert Fraction(entry.sensitivity) ** 2 <= 2 * Fraction(entry.rho) * Fraction(entry.scale) ** 2


@pytest.mark.parametrize(("name", "grouping"), [case for case in REFUSED if case[0] in ("pep", "pep_pub")])
def test_a_method_that_cannot_measure_overlapping_queries_together_says_so(name: str, grouping: Grouping) -> None:
    with pytest.raises(InputError, match=r"must be 'query' for .* on queries that overlap"):
        make(METHODS[name], grouping, workload=prefixes())


@pytest.mark.parametrize("name", ["dualquery", "fem"])
def test_a_method_that_cannot_answer_ranges_says_so_before_anything_is_spent(name: str) -> None:
    with pytest.raises(InputError, match="must be cells of marginals for an integer program"):
        make(METHODS[name], Grouping.QUERY, workload=prefixes())


def test_a_method_that_splits_marginals_refuses_other_queries_before_anything_is_spent() -> None:
    with pytest.raises(InputError, match="workload must be of whole marginals for this method"):
        make(METHODS["hdmm"], Grouping.MARGINAL, workload=prefixes())


@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize(("method", "grouping"), PRODUCT_CASES)
def test_a_release_for_products_is_saved_and_loaded(
    method: Method, grouping: Grouping, relation: Relation, tmp_path: Path
) -> None:
    release = make(method, grouping, relation, None, workload=prefixes()).run()
    loaded = require_round_trip(release, tmp_path / "out")
    assert loaded.workload == prefixes()


@pytest.mark.parametrize(("method", "grouping"), PRODUCT_CASES)
def test_rows_follow_the_model_for_products(method: Method, grouping: Grouping) -> None:
    """And its answers are those of a distribution: in [0, 1], and growing with the prefix."""
    release = make(method, grouping, workload=prefixes()).run()
    require_rows_to_follow(release)
    answers = release.answers()
    assert np.all(answers >= -1e-6)
    assert np.all(answers <= 1 + 1e-6)
    assert np.all(np.diff(answers[:4]) >= -1e-6)  # P(c < 1) <= P(c < 2) <= ...
    assert answers[3] == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize(
    ("name", "grouping", "more"),
    [
        ("mwem", Grouping.QUERY, {}),
        ("mwem", Grouping.MARGINAL, {"repeat": True, "rounds": 20}),
        ("auto", Grouping.MARGINAL, {}),
        ("rap_softmax", Grouping.QUERY, {"rounds": 8}),
        ("rap_softmax", Grouping.MARGINAL, {"rounds": 2}),
    ],
)
def test_a_large_budget_beats_the_start_for_products(
    name: str, grouping: Grouping, more: dict[str, Any], relation: Relation
) -> None:
    table = small_table(4000)
    job = prepare(
        table, epsilon=50.0, delta=1e-6, relation=relation, method=name, workload=prefixes(), group=grouping,
        settings=LEARNS[name] | more, insecure_noise_seed=1,
    )  # fmt: skip
    before, after = errors_before_and_after(table, job)
    assert after.max() < 0.8 * before.max()
    assert after.mean() < 0.5 * before.mean()


@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize("workload", [prefixes(), all_kway(small_table(1).domain, 2)], ids=["products", "marginals"])
def test_later_rounds_of_auto_are_charged_for_what_they_can_reveal(workload: Workload, relation: Relation) -> None:
    """Their score adds up the errors of all cells, so that one person changes it by more than a single count."""
    settings = SMALL["auto"] | {"adaptive_rounds": 2, "strength": 1}
    job = make(METHODS["auto"], Grouping.MARGINAL, relation, workload=workload, settings=settings)
    strategy = job.algorithm.strategy.second
    require_ledger(job, relation)
    selections = [entry for entry in job.curator.ledger.entries if entry.label == "selection"]
    assert len(selections) == 2
    worst = max(
        weight * true_sensitivity(queries, workload.domain, relation).l1
        for weight, queries in zip(strategy.rule.weights, strategy.candidates.queries, strict=True)
    )
    for entry in selections:
        assert entry.sensitivity >= worst > 1
        assert Fraction(entry.sensitivity) ** 2 <= 2 * Fraction(entry.rho) * Fraction(entry.scale) ** 2


@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize("workload", [prefixes(), all_kway(small_table(1).domain, 2)], ids=["products", "marginals"])
@pytest.mark.parametrize(
    ("name", "grouping"), [("mwem", Grouping.QUERY), ("mwem", Grouping.MARGINAL), ("auto", Grouping.MARGINAL)]
)
def test_a_run_that_would_overdraw_its_budget_stops(
    name: str, grouping: Grouping, workload: Workload, relation: Relation
) -> None:
    """Where somebody else spends from the same ledger meanwhile: what was learned and spent is told."""
    job = make(METHODS[name], grouping, relation, workload=workload, zcdp=True)
    ledger = job.curator.ledger
    job.curator.open()
    ledger.charge(Entry("another run", GAUSSIAN, ledger.left / 2, 1.0, gaussian_scale(ledger.left / 2, 1)))
    before = len(ledger.entries)
    with pytest.raises(RunStopped, match="must cost at most the rho that is left") as stopped:
        job.run()
    assert stopped.value.ledger is ledger
    assert sum(Fraction(entry.rho) for entry in ledger.entries) <= Fraction(ledger.limit)
    told = sum(len(entry.picks) + len(entry.measurements) for entry in stopped.value.log.rounds)
    assert len(ledger.entries) - before - told in (0, 1)  # a selection may be paid for, and its measurement refused
    if name == "auto":  # its one-way marginals and ties are cheap; a single round has nothing that it can pay for
        assert told == (0 if workload == prefixes() else 4 + 6)
    else:
        assert told == 4


@pytest.mark.parametrize("method", METHOD_CASES)
def test_hyperparameters_are_documented_and_reachable(method: Method) -> None:
    for field in dataclasses.fields(method.settings):
        assert field.metadata["help"]
    with pytest.raises(InputError, match="must be one of its settings"):
        method.configure({"no_such_setting": 1})


@pytest.mark.parametrize("method", METHOD_CASES)
def test_a_method_file_keeps_the_house_rules(method: Method) -> None:
    """At most about 150 lines of code, the paper's table in the docstring, no epsilon and no truth inside."""
    source = inspect.getsource(inspect.getmodule(method.build))
    tree = ast.parse(source)
    assert "| family |" in (ast.get_docstring(tree) or "")
    assert len([line for line in source.splitlines() if line.strip()]) <= 200
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    assert not names & {"epsilon", "isinstance", "hasattr", "exact_counts", "count", "Curator", "Table"}


def test_the_loop_asks_no_types() -> None:
    files = sorted(Path(pointillist.framework.__file__).parent.glob("*.py"))
    assert len(files) > 4
    for file in files:
        names = {n.id for n in ast.walk(ast.parse(file.read_text())) if isinstance(n, ast.Name)}
        assert not names & {"isinstance", "hasattr", "getattr"}


def test_an_unknown_method_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(InputError, match="did you mean 'mwem'"):
        get_method("mwen")


def test_a_model_that_is_not_finite_is_not_given_out() -> None:
    """Also where it was the last update that spoilt it; what was spent is told."""

    class Spoilt:
        def init(self, params: np.ndarray) -> None:
            return None

        def __call__(self, rng: object, params: np.ndarray, memory: None, log: Log) -> Updated:
            return Updated(params * np.nan if len(log.rounds) == 2 else params, None, {})

    job = make(METHODS["mwem"], Grouping.MARGINAL, settings={"rounds": 2})
    spoilt = dataclasses.replace(job, algorithm=dataclasses.replace(job.algorithm, update=Spoilt()))
    with pytest.raises(RunStopped, match="not finite") as stopped:
        spoilt.run()
    assert len(stopped.value.log.rounds) == 2
    assert stopped.value.ledger is job.curator.ledger
    assert len(stopped.value.ledger.entries) == 4
