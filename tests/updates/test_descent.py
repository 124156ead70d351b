"""The descent shared by RAP, RAP-softmax, GEM and one-shot."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pointillist import Grouping, InputError, Intervals, Product, RunStopped, Table, all_kway, prepare, synthesize
from pointillist.data.schema import Categorical, Schema
from pointillist.data.sources import TableSource
from pointillist.evaluation.accuracy import compare
from pointillist.evaluation.report import fractions
from pointillist.families.relaxed import Relaxed
from pointillist.families.rows import SoftmaxRows
from pointillist.framework import Log, MovingAverage, Round
from pointillist.privacy.facts import Facts
from pointillist.queries.candidates import Single, Whole
from pointillist.queries.counting import exact_counts
from pointillist.queries.measurement import Measurement
from pointillist.runs import journal_of, resume
from pointillist.updates import shrinkage
from pointillist.updates.descent import Descent, Recipe, cells_data, combined
from pointillist.updates.losses import Adam, BestOf, SquaredError

NETWORK = {"batch": 30, "inputs": 8, "hidden": "16-16"}


def small_table(n: int = 2000) -> Table:
    rng = np.random.default_rng(0)
    a = rng.integers(0, 4, n)
    b = (a + (rng.random(n) < 0.1)) % 4
    c = rng.integers(0, 3, n)
    columns = tuple(Categorical(name, tuple(range(size))) for name, size in (("a", 4), ("b", 4), ("c", 3)))
    return Table(Schema(columns), (a, b, c))


def run_small(method: str, grouping: Grouping, settings: dict[str, Any]) -> tuple[Any, Any, Log]:
    job = prepare(
        small_table(), epsilon=5.0, delta=1e-6, method=method, workload="marginals:2", group=grouping,
        settings=settings, insecure_noise_seed=0, zcdp=True,
    )  # fmt: skip
    release = job.run()
    return job.algorithm, release.params, release.log


def test_a_run_by_query_compiles_a_logarithmic_number_of_times() -> None:
    """38 rounds have 1 to 38 measurements: programs for up to 16, 32 and 64 of them."""
    algorithm, _, log = run_small("gem", Grouping.QUERY, {"rounds": 38, "t_max": 2, **NETWORK})
    assert len(log.rounds) == 38
    assert algorithm.update.traces == 3


def test_a_run_by_marginal_compiles_once() -> None:
    algorithm, _, log = run_small("gem", Grouping.MARGINAL, {"rounds": 3, "t_max": 2, **NETWORK})
    assert len(log.rounds) == 3
    assert algorithm.update.traces == 1


def test_equal_updates_share_one_program() -> None:
    """Runs that differ in seeds, noise or budget only compile once, and a program keeps nothing of a run."""
    settings = {"rounds": 2, "t_max": 7, **NETWORK}
    (first, one, _), (second, two, _) = (run_small("gem", Grouping.MARGINAL, settings) for _ in range(2))
    assert first.update is not second.update
    assert first.update.traces == second.update.traces == 1
    assert one.keys() == two.keys()
    assert all(np.array_equal(one[name], two[name]) for name in one)
    other, _, _ = run_small("gem", Grouping.MARGINAL, settings | {"learning_rate": 0.002})
    assert other.update.traces == first.update.traces == 1
    assert other.update._program is not first.update._program


def test_repeated_measurements_are_averaged_by_their_precision() -> None:
    table = small_table()
    queries = all_kway(table.domain, 1).queries
    measured = [
        Measurement(queries[0], np.array(counts), sigma)
        for counts, sigma in (([60, 0, 0, 40], 1.0), ([30, 30, 30, 10], 2.0))
    ]
    layout = Relaxed(SoftmaxRows(table.domain, 5)).layout(queries)
    data = cells_data(layout, *combined(queries, measured, 100))
    ((targets, weights),) = zip(map(layout.to_flat, data["targets"]), map(layout.to_flat, data["weights"]), strict=True)
    assert np.allclose(targets[:4], (4 * np.array([0.6, 0, 0, 0.4]) + np.array([0.3, 0.3, 0.3, 0.1])) / 5)
    assert np.allclose(weights[:4], (100**2 + 50**2) / 4)
    assert np.all(weights[4:] == 0)


def test_descent_fits_what_was_measured() -> None:
    """Without noise, the rows reach the measured marginals."""
    table = small_table()
    workload = all_kway(table.domain, 2)
    family = Relaxed(SoftmaxRows(table.domain, 40))
    recipe = Recipe(Adam(800, 0.1, cosine=True), SquaredError())
    update = Descent(family, Whole(workload.queries), recipe)
    counts = np.split(exact_counts(TableSource(table), workload.queries), workload.offsets[1:-1])
    exact = [Measurement(queries, part, 1.0) for queries, part in zip(workload.queries, counts, strict=True)]
    log = Log(Facts(len(table), 1.0), [Round(measurements=tuple(exact))])
    rng = np.random.default_rng(0)
    params, _, info = update(rng, family.init(rng), update.init({}), log)
    assert np.abs(family.answers(params, workload.queries) - fractions(table, workload)).max() < 0.005
    assert info["steps"] == 800


@pytest.mark.parametrize("by_query", [False, True])
def test_descent_fits_products_and_the_loss_is_that_of_numpy(by_query: bool) -> None:
    """Prefixes and ranges, all at once or one by one, measured without noise."""
    table = small_table()
    domain = table.domain
    queries = (
        Product.of(domain, {"a": "prefixes", "b": "prefixes"}),
        Product.of(domain, {"b": Intervals(4, ((0, 2), (1, 4))), "c": "values"}),
    )
    family = Relaxed(SoftmaxRows(domain, 40))
    candidates = Single(queries) if by_query else Whole(queries)
    update = Descent(family, candidates, Recipe(Adam(400, 0.1, cosine=True), SquaredError()))
    asked = [candidates[n] for n in range(len(candidates))]
    measured = tuple(Measurement(q, q.holds(table.codes).sum(axis=0), 1.0) for q in asked)
    log = Log(Facts(len(table), 1.0), [Round(measurements=measured)])
    rng = np.random.default_rng(0)
    params, _, info = update(rng, family.init(rng), update.init({}), log)
    errors = family.answers(params, queries) - np.concatenate([q.holds(table.codes).mean(axis=0) for q in queries])
    assert np.abs(errors).max() < 0.005
    # Over all cells, the mean square in units of the noise of one row; over single queries, the sum.
    by_hand = np.sum(errors**2) * (1 if by_query else len(table) ** 2 / len(errors))
    assert info["loss"] == pytest.approx(by_hand, rel=0.05)


def test_a_cell_that_several_queries_share_is_fitted_to_all_its_measurements() -> None:
    """The mean, weighted by the precisions, whatever the order; a query that was not measured takes nothing away."""
    domain = small_table().domain
    whole = Product.of(domain, {"a": "prefixes", "b": "values"})
    one, two = whole.take([0, 1, 2]), whole.take([2, 3])
    family = Relaxed(SoftmaxRows(domain, 20))
    first, second = Measurement(one, np.array([100, 100, 300]), 1.0), Measurement(two, np.array([200, 100]), 2.0)
    for queries in ((one, two), (two, one)):
        update = Descent(family, Whole(queries), Recipe(Adam(300, 0.1, cosine=True), SquaredError()))
        for measured, shared in (([first], 0.3), ([first, second], 0.28), ([second, first], 0.28)):
            rng = np.random.default_rng(0)
            log = Log(Facts(1000, 1.0), [Round(measurements=tuple(measured))])
            params, *_ = update(rng, family.init(rng), update.init({}), log)
            assert np.allclose(family.answers(params, [one]), [0.1, 0.1, shared], atol=1e-3)
            assert family.answers(params, [two])[0] == pytest.approx(shared, abs=1e-3)


def test_a_round_ends_when_the_residual_looks_like_noise() -> None:
    _, _, log = run_small("gem", Grouping.MARGINAL, {"rounds": 3, "t_max": 400, "learning_rate": 0.01, **NETWORK})
    assert log.info[-1]["steps"] < 400
    assert log.info[-1]["loss"] < 1.0


def test_patience_ends_a_round() -> None:
    settings = {"rounds": 1, "picks": 3, "rows": 20, "t_max": 5000, "patience": 5, "learning_rate": 0.5}
    _, _, log = run_small("rap_softmax", Grouping.QUERY, settings)
    assert log.info[-1]["steps"] < 5000


def test_resampled_noise_changes_and_fixed_noise_stays() -> None:
    for resample in (False, True):
        algorithm, params, _ = run_small(
            "gem",
            Grouping.MARGINAL,
            {"rounds": 1, "t_max": 3, "resample": resample, "tolerance": 0, "beta": 0, **NETWORK},
        )
        start = algorithm.family.init(np.random.default_rng([0, 0]))
        assert np.array_equal(params["z"], start["z"]) != resample


def test_the_moving_average_starts_in_the_second_half() -> None:
    class Numbers:
        def mix(self, first: float, second: float, weight: float) -> float:
            return (1 - weight) * first + weight * second

    rule = MovingAverage(beta=0.5, first_round=2)
    so_far = None
    for t, value in enumerate([100.0, 50.0, 8.0, 4.0, 2.0]):
        so_far = rule.add(Numbers(), so_far, value, t)
    assert so_far == 4.0  # ((8 + 4) / 2 + 2) / 2


@pytest.mark.parametrize("method", ["gem", "rap_softmax", "one-shot"])
def test_drawn_rows_lose_no_more_than_sampling_explains(method: str) -> None:
    """100,000 rows: the rmse of rows against the model is at most that of independent draws."""
    settings = {"gem": {"rounds": 3, **NETWORK}, "rap_softmax": {"rounds": 2, "picks": 1, "rows": 50}, "one-shot": {}}
    algorithm, params, _ = run_small(method, Grouping.MARGINAL, settings[method])
    workload = all_kway(small_table().domain, 2)
    rows = 100_000
    codes = algorithm.family.sample(np.random.default_rng(0), params, rows)
    model = algorithm.family.answers(params, workload.queries)
    drawn = fractions(Table(small_table().schema, codes), workload)
    independent = np.sqrt(np.mean(model * (1 - model)) / rows)
    assert compare(workload, model, drawn).rmse <= 1.3 * independent


def test_a_loss_that_is_not_finite_stops_the_run_and_keeps_the_account(tmp_path: Path) -> None:
    with pytest.raises(RunStopped, match="loss must stay finite") as stopped:
        synthesize(
            small_table(), epsilon=1.0, method="rap_softmax", workload="marginals:2", group="marginal",
            settings={"learning_rate": 1e38, "rounds": 2, "picks": 1, "rows": 10, "patience": 0}, out=tmp_path / "out",
        )  # fmt: skip
    stop = stopped.value
    assert "use a smaller learning_rate" in str(stop)
    assert len(stop.log.rounds) >= 1
    assert 0 < stop.ledger.spent <= stop.ledger.limit
    kept = json.loads((tmp_path / "out" / "ledger.json").read_text())
    assert len(kept["ledger"]) == len(stop.ledger.entries)
    records = journal_of(tmp_path / "out")
    charged = [entry for record in records if record.kind == "charge" for entry in record.data["entries"]]
    assert charged == kept["ledger"]
    assert any(len(record.arrays.get("counts", ())) > 0 for record in records)


@pytest.mark.parametrize(
    ("method", "settings", "sentence"),
    [
        ("gem", {"batch": 0}, "batch must be at least 2, for the batch statistics, got 0; give 1000."),
        ("gem", {"alpha": 1.0}, "alpha must be above 0 and below 1, got 1.0; give for example 0.5."),
        ("gem", {"learning_rate": "nan"}, "learning_rate must be a number, got 'nan'; "
         "write for example learning_rate=0.5."),
        ("gem", {"learning_rate": 0}, "learning_rate must be a finite number above 0, got 0.0; "
         "give for example 0.001."),
        ("gem", {"hidden": "wide"}, "hidden must be whole numbers joined by '-', got 'wide'; "
         "write for example hidden=1024-1024."),
        ("gem", {"t_max": 0}, "t_max must be at least 1, got 0; give for example 100."),
        ("gem", {"rounds": 4}, "rounds must pick at most the workload's 3 groups, each once, got 4; "
         "use fewer rounds or picks, or group by query."),
        ("rap", {"rows": 0}, "rows must be at least 1, got 0; give for example 1000."),
        ("one-shot", {"t_max": 0}, "t_max must be at least 1, got 0; give for example 100."),
    ],
)  # fmt: skip
def test_bad_settings_are_refused(method: str, settings: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError) as refused:
        synthesize(small_table(), epsilon=1.0, method=method, workload="marginals:2", settings=settings)
    assert str(refused.value) == sentence


def test_an_interrupt_keeps_the_account(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def interrupted(*arguments: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(shrinkage, "descend", interrupted)
    chosen: dict[str, Any] = {"epsilon": 1.0, "workload": "marginals:2", "insecure_noise_seed": 1, "rows": 100}
    with pytest.raises(RunStopped, match="the run was stopped by KeyboardInterrupt"):
        synthesize(small_table(), out=tmp_path / "out", **chosen)
    kept = json.loads((tmp_path / "out" / "ledger.json").read_text())
    assert "NOT PRIVATE" in kept["noise"]
    assert kept["epsilon"] == 1.0
    monkeypatch.undo()
    finished = resume(tmp_path / "out")
    assert np.array_equal(finished.answers(), synthesize(small_table(), **chosen).answers())


def test_one_shot_stops_where_the_residual_looks_like_noise() -> None:
    _, _, stopped = run_small("one-shot", Grouping.MARGINAL, {"slack": 0.0, "rows": 50})
    _, _, went_on = run_small("one-shot", Grouping.MARGINAL, {"slack": "inf", "rows": 50})
    assert stopped.info[-1]["loss"] < 1
    assert stopped.info[-1]["steps"] < went_on.info[-1]["steps"] == 1000


def test_patience_keeps_the_best_parameters() -> None:
    """A step that is far too large raises the loss; what is kept is not worse than the start."""
    table = small_table()
    workload = all_kway(table.domain, 2)
    family, candidates = Relaxed(SoftmaxRows(table.domain, 20)), Single(workload.queries)
    update = Descent(family, candidates, Recipe(Adam(50, 30.0), SquaredError(), BestOf(5)))
    truth, picks = fractions(table, workload), [0, 5, 9, 20]
    counts = np.rint(truth * len(table)).astype(np.int64)
    measured = tuple(Measurement(candidates[p], counts[p : p + 1], 1.0) for p in picks)
    log = Log(Facts(len(table), 1.0), [Round(measurements=measured)])
    rng = np.random.default_rng(0)
    start = family.init(rng)
    before = np.sum((family.answers(start, workload.queries)[picks] - truth[picks]) ** 2)
    params, _, info = update(rng, start, update.init(start), log)
    after = np.sum((family.answers(params, workload.queries)[picks] - truth[picks]) ** 2)
    assert after <= before + 1e-6
    assert info["loss"] == pytest.approx(after, abs=1e-5)
