"""Plans: forecasts from schema, rows and budget, without data."""

from __future__ import annotations

import itertools
import json
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from pointillist import Categorical, Grid, InputError, Job, Schema, Table, load, prepare
from pointillist.data.domain import Domain
from pointillist.data.sources import LaterSource
from pointillist.planning import METRICS, Estimate, Expected, Law, Wanted, features_of, laws, made_up
from pointillist.planning.features import RISING, TERMS
from pointillist.planning.made_up import MadeUp
from pointillist.planning.picture import as_svg, as_text
from pointillist.planning.plan import LONG, reached, show_seconds
from pointillist.queries.workload import Workload

SCHEMA = Schema(tuple(Categorical(f"c{n}", tuple(range(2 + n % 4)), ordered=True) for n in range(6)))


def job_of(rows: int = 20_000, **options: Any) -> Job:
    """A job over a schema that has no table: whatever asks for data fails."""
    given: dict[str, Any] = {"epsilon": 0.5, "workload": "marginals:2"}
    return prepare(LaterSource(SCHEMA, rows), **given | options)


def test_errors_fall_with_epsilon_and_with_rows() -> None:
    by_epsilon = [job_of(epsilon=epsilon).expected().errors for epsilon in (0.02, 0.1, 0.11, 1.0, 9.0)]
    by_rows = [job_of(rows).expected().errors for rows in (500, 5_000, 5_500, 50_000, 5_000_000)]
    for found in (by_epsilon, by_rows):
        for name in METRICS:
            values = [errors[name].value for errors in found]
            assert all(later < earlier for earlier, later in itertools.pairwise(values))
            assert all(errors[name].low < errors[name].value <= errors[name].high <= 1 for errors in found)


def test_less_noise_than_was_measured_takes_no_longer() -> None:
    known = laws()
    situation = prepare(LaterSource(load("demo").schema, 10_000), epsilon=1.0, workload="marginals:3").situation(10_000)
    assert situation.features is not None
    least = known.ranges["noise"][0]
    times = [
        known.time_of("auto", replace(situation.features, size=20.0, noise=least + more), 1.0)
        for more in (-9.0, -1.0, 0.0, 3.0)
    ]
    values = [one.value for one in times if one is not None]
    assert values[0] == values[1] == values[2] > values[3]
    assert known.time_of("mwem", situation.features, 1.0) is None


def test_the_mean_error_is_not_above_the_largest() -> None:
    """Nor are the ends of its band, where few cells make both nearly the same."""
    source = LaterSource(Schema((Categorical("one", (0, 1)),)), 300)
    for epsilon in (0.1, 1.0, 10.0):
        found = prepare(source, epsilon=epsilon, workload="marginals:1").expected().errors
        for end in ("low", "value", "high"):
            assert getattr(found["rmse"], end) <= getattr(found["max"], end)


def test_no_law_can_rise_with_the_budget() -> None:
    """Epsilon and rows only enter by the noise, whose terms have factors that are not negative."""
    known = laws()
    for found in (*known.errors.values(), *known.shaped.values()):
        for law in found.values():
            assert law.coefficients.keys() <= TERMS.keys() - {"rows"}
            assert all(law.coefficients.get(name, 0) >= 0 for name in RISING)
            assert law.band > 1


def test_a_plan_reads_no_data() -> None:
    source = LaterSource(SCHEMA, 20_000)
    job = prepare(source, epsilon=0.5, workload="marginals:2")
    plan = job.plan(target_error=0.01)
    assert job.curator.ledger.spent == 0
    assert not job.curator.ledger.entries
    assert plan.wanted == {2: 15}
    with pytest.raises(InputError, match="table"):
        source.batches()


def test_the_plan_is_that_of_the_table_itself() -> None:
    town = load("demo")
    with_data = prepare(town, epsilon=0.5, workload="marginals:2").plan().to_dict()
    without = prepare(LaterSource(town.schema, len(town)), epsilon=0.5, workload="marginals:2").plan().to_dict()
    assert with_data == without


def test_the_smallest_epsilon_is_consistent() -> None:
    situation = job_of().situation()
    for metric, error in (("max", 0.01), ("tvd", 0.05), ("rmse", 0.002)):
        found = reached(situation, metric, error)
        assert found.epsilon is not None
        assert found.surely is not None
        assert job_of(epsilon=found.epsilon).expected().errors[metric].value <= error
        assert job_of(epsilon=found.epsilon / 1.05).expected().errors[metric].value > error
        assert job_of(epsilon=found.surely).expected().errors[metric].high <= error
        assert found.surely > found.epsilon
    nothing = reached(replace(situation, rows=50), "max", 1e-9)
    assert (nothing.epsilon, nothing.surely) == (None, None)
    assert "no epsilon up to 100 reaches" in nothing.describe()


def test_the_plan_in_words_and_as_data() -> None:
    plan = job_of().plan(target_error=0.02, target_metric="tvd")
    text = repr(plan)
    for part in (
        "auto, 20,000 rows, epsilon 0.5",
        "15 of 2 columns",
        "round 1 measures 6 one-way marginals",
        "smallest epsilon for a tvd error of 0.02",
        "recommended: auto",
        "nothing was read and nothing was spent",
    ):
        assert part in text
    data = json.loads(json.dumps(plan.to_dict()))
    assert list(data) == [
        "method", "workload", "wanted", "rows", "epsilon", "delta", "relation", "rho", "phases", "expected", "curve",
        "target", "advice", "basis", "stages",
    ]  # fmt: skip
    assert data["expected"]["errors"].keys() == set(METRICS)
    assert data == json.loads(json.dumps(job_of().plan(target_error=0.02, target_metric="tvd").to_dict()))
    assert [point["epsilon"] for point in data["curve"]] == sorted(point["epsilon"] for point in data["curve"])


def test_the_advice_prefers_what_is_forecast_to_be_better() -> None:
    plan = job_of(method="gem").plan()
    assert plan.advice is not None
    assert plan.advice.method == "auto"
    few = job_of(rows=300, epsilon=0.1, workload="marginals:3").plan().advice
    many = job_of(rows=10**7, epsilon=1.0, workload="marginals:1").plan().advice
    assert few is not None
    assert many is not None
    assert (few.workload, many.workload) == ("marginals:1", "marginals:3")


@pytest.mark.parametrize("options", [{"workload": "prefixes:1"}, {"method": "mwem", "settings": {"rounds": 2}}])
def test_without_a_law_there_is_a_plan_without_a_forecast(options: dict[str, Any]) -> None:
    plan = job_of(**options).plan(target_error=0.01)
    assert (plan.expected.errors, plan.curve, plan.target, plan.advice) == ({}, (), None, None)
    assert "no forecast of errors" in repr(plan)
    assert "no forecast of errors" in plan.expected.describe()
    assert as_text(plan) == []


def test_fine_columns_are_planned_for_their_largest_number_of_groups() -> None:
    schema = Schema((*SCHEMA.columns, Grid("income", (0.0, 1e5))))
    plan = prepare(LaterSource(schema, 20_000), epsilon=1.0, workload="marginals:2").plan()
    assert plan.expected.errors
    assert plan.wanted == {2: 21}


def test_a_public_table_tells_the_shape_of_columns() -> None:
    rng = np.random.default_rng(0)
    sizes = SCHEMA.domain.sizes
    even = Table(SCHEMA, tuple(rng.integers(0, size, 1000) for size in sizes))
    skewed = Table(SCHEMA, tuple((rng.random(1000) < 0.02).astype(np.int64) for size in sizes))
    job = job_of()
    found = [job.plan(public=public) for public in (even, skewed)]
    assert found[1].expected.errors["tvd"].value < found[0].expected.errors["tvd"].value
    assert "a public table" in found[0].basis
    with pytest.raises(InputError, match="public must have all columns of the workload"):
        job.plan(public=even.project(["c0", "c1"]))


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"rows": 1}, "rows must be in 2 .. "),
        ({"rows": "many"}, "rows must be a whole number"),
        ({"target_error": 0}, "target_error must be"),
        ({"target_error": "small"}, "target_error must be a"),
        ({"target_error": 0.1, "target_metric": "mean"}, "target_metric must be one of max, rmse, tvd"),
        ({"public": 7}, "public"),
    ],
)
def test_nonsense_is_refused(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        job_of().plan(**options)


def test_under_add_remove_the_number_of_rows_must_be_stated() -> None:
    town = load("demo").project(["district", "age", "commute"])
    few = Table(town.schema, tuple(codes[:100] for codes in town.codes))
    options: dict[str, Any] = {"epsilon": 0.5, "delta": 1e-9, "relation": "add-remove", "workload": "marginals:2"}
    jobs = [prepare(table, **options) for table in (town, few)]
    for job in jobs:
        with pytest.raises(InputError, match="rows must be stated where the number of rows is private"):
            job.plan()
    assert jobs[0].plan(5_000).to_dict() == jobs[1].plan(5_000).to_dict()
    unstated = [job.expected() for job in jobs]
    assert unstated[0] == unstated[1]
    assert (unstated[0].errors, unstated[0].seconds, unstated[0].absurd) == ({}, None, "")


def test_what_is_absurd() -> None:
    assert Expected({}, Estimate(10, 5, 20), 10**9).absurd == ""
    assert "of memory, and this machine has" in Expected({}, None, 10**15).absurd
    assert Expected({}, Estimate(LONG + 60, 1, 1), 10**9).absurd == "about 2.0 h on this machine"
    assert [show_seconds(one) for one in (5, 120, 7200)] == ["5 s", "2 min", "2.0 h"]


def test_a_law_is_a_sum_of_terms() -> None:
    features = job_of().situation().features
    assert features is not None
    law = Law({"constant": 1.0, "noise": 2.0}, 1.5)
    assert law.value(features) == pytest.approx(math.e * math.exp(2 * features.noise))
    found = law.estimate(features, scale=3.0)
    assert found.high / found.value == pytest.approx(1.5)
    assert found.value == pytest.approx(3 * law.value(features))
    assert features_of(Wanted(job_of(workload="prefixes:1").task.workload), job_of().facts) is None


def test_a_plan_says_when_it_is_outside_of_what_was_measured() -> None:
    assert job_of(200_000_000).plan().expected.outside
    assert "trust it less" in repr(job_of(200_000_000).plan())
    found = job_of(200_000_000).expected()
    assert "outside of what was measured in" in found.describe()
    assert "outside" not in replace(found, outside=()).describe()


def test_the_pictures() -> None:
    import xml.etree.ElementTree as ElementTree

    plan = job_of().plan(target_error=0.01)
    lines = as_text(plan)
    assert len(lines) == len(plan.curve) + 2
    assert [line for line in lines if line.endswith(" <")] == [
        line for line in lines if line.lstrip().startswith("0.5 ")
    ]
    bars = [line.count("█") for line in lines[1:-1]]
    assert bars == sorted(bars, reverse=True)
    root = ElementTree.fromstring(as_svg(plan))
    name = "{http://www.w3.org/2000/svg}"
    assert root.find(f"{name}title") is not None
    assert len(root.findall(f"{name}polyline")) == len(METRICS)
    texts = [one.text for one in root.findall(f"{name}text")]
    assert {"epsilon", "max", "rmse", "tvd", "epsilon 0.5", "target (max)"} <= set(texts)
    assert "http" not in as_svg(plan).replace("http://www.w3.org/2000/svg", "")


def made_up_of(shares: tuple[np.ndarray, ...] | None = None, workload: str = "marginals:2") -> MadeUp:
    return MadeUp(job_of(workload=workload).task.workload, shares)


def test_less_noise_and_more_rows_make_errors_of_a_made_up_table_smaller() -> None:
    made = made_up_of()
    for worse, better in ((0.1, 0.01), (1e-3, 1e-4)):
        first, second, third = made.errors(worse, 1000), made.errors(better, 1000), made.errors(better, 10_000)
        assert all(third[name] <= second[name] < first[name] for name in METRICS)
        assert third["tvd"] < second["tvd"]
        assert first["rmse"] < first["max"]


def test_a_small_noise_on_one_column_is_the_error_of_its_cells() -> None:
    """With one marginal of one column, the residual of m cells has a noise whose square is (1 - 1 / m) times that of
    a cell, so that the expected distance is half of m times the mean size of a Gaussian, and the largest one about that
    of m Gaussians."""
    made = MadeUp(Workload.of(SCHEMA.domain, ["c3"]), None)
    size, noise = SCHEMA.domain.sizes[3], 1e-6
    sigma = noise * math.sqrt(1 - 1 / size)
    found = made.errors(noise, 10**9)
    expected = (math.sqrt(2 * math.log(size)) * sigma, sigma, size / 2 * math.sqrt(2 / math.pi) * sigma)
    assert [math.exp(found[name]) for name in METRICS] == pytest.approx(expected, rel=1e-3)


def test_noise_hides_less_where_columns_are_skewed() -> None:
    even = tuple(np.full(size, 1 / size) for size in SCHEMA.domain.sizes)
    skewed = tuple(np.array([0.97, *[0.03 / (size - 1)] * (size - 1)]) for size in SCHEMA.domain.sizes)
    first, second = (made_up_of(shares).errors(0.01, 10_000) for shares in (even, skewed))
    assert second["tvd"] < first["tvd"] - math.log(2)


def test_some_marginals_stand_for_many(monkeypatch: pytest.MonkeyPatch) -> None:
    every = made_up_of(workload="marginals:3").errors(0.01, 10_000)
    monkeypatch.setattr(made_up, "MOST", 10)
    some = made_up_of(workload="marginals:3").errors(0.01, 10_000)
    assert list(some.values()) == pytest.approx(list(every.values()), abs=0.15)


def test_columns_with_a_single_value_have_no_error() -> None:
    made = MadeUp(Workload.of(Domain(("one", "two"), (1, 1)), [("one", "two")]), None)
    assert set(made.errors(0.01, 1000).values()) == {math.log(made_up.LEAST)}
