"""Answers: what can be asked, what intervals hold, and what is refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.answers.small import people, small_release

from pointillist import Categorical, InputError, Predicates, Release, Schema, Table, parse_workload
from pointillist.answers import Count, Mean, Quantile, Ratio, Share, Statistic, combine, intervals
from pointillist.evaluation.report import fractions
from pointillist.families.conditioning import Mixture
from pointillist.queries.marginal import Marginal
from pointillist.release.imputing import Moved


@pytest.fixture(scope="module")
def table() -> Table:
    return people()


@pytest.fixture(scope="module")
def release(table: Table) -> Release:
    return small_release(table, insecure_noise_seed=1).replicate(4, progress=False)


SMOKERS = Share('smoker == "yes"', given='region == "S"')
OTHERS = Share('smoker == "yes"', given='region == "N"')


@pytest.mark.parametrize(
    "statistic",
    [Share("age >= 65"), Share('age >= 40 and region == "N"'), SMOKERS, Mean("age"), Quantile("age", 0.9),
     Mean("age", given='region == "N"'), SMOKERS - OTHERS, SMOKERS / OTHERS, Count("age < 20")],
    ids=lambda one: one.text,
)  # fmt: skip
def test_statistics_are_those_of_the_table(table: Table, release: Release, statistic: Statistic) -> None:
    frame = table.to_pandas(seed=99)
    south, north = (frame[frame.region == one] for one in ("S", "N"))
    smoke = [float((part.smoker == "yes").mean()) for part in (south, north)]
    true = {
        "share of age >= 65": (frame.age >= 65).mean(),
        'share of age >= 40 and region == "N"': ((frame.age >= 40) & (frame.region == "N")).mean(),
        SMOKERS.text: smoke[0],
        "mean of age": frame.age.mean(),
        "0.9 quantile of age": frame.age.quantile(0.9),
        'mean of age given region == "N"': north.age.mean(),
        (SMOKERS - OTHERS).text: smoke[0] - smoke[1],
        (SMOKERS / OTHERS).text: smoke[0] / smoke[1],
        "number of rows with age < 20": (frame.age < 20).sum(),
    }[statistic.text]
    found = release.answer(statistic)
    assert found.low < found.estimate < found.high
    assert found.low <= true <= found.high
    wide = release.answer(statistic, level=0.999)
    assert wide.high - wide.low > found.high - found.low
    people_at_large = release.answer(statistic, population=True)
    assert people_at_large.population
    assert people_at_large.high - people_at_large.low > found.high - found.low


def test_a_condition_that_cuts_through_a_bin_is_answered_by_its_values(release: Release) -> None:
    ages = [release.answer(f"age < {limit}").estimate for limit in (20, 25, 30, 40)]
    assert ages == sorted(ages)
    assert 0.1 < (ages[1] - ages[0]) / (ages[3] - ages[0]) < 0.4


def test_all_answers_come_with_labels(release: Release) -> None:
    found = release.answers(level=0.9)
    assert len(found) == release.workload.size
    assert found.cells[0] == "age = 0 to 19, region = N"
    assert found.to_arrow().column_names == ["asked", "cell", "estimate", "low", "high"]
    assert np.array_equal(found.estimate, release.answers())
    assert bool((found.low <= found.estimate).all() and (found.estimate <= found.high).all())
    three = parse_workload("marginals:3", release.schema)
    assert len(release.answers(three, level=0.9)) == three.size


def test_one_answer_is_that_of_the_table_of_all(release: Release) -> None:
    one = release.answer(Predicates.of(release.schema, 'region == "N" and smoker == "no"'))
    found = release.answers(level=0.95)
    place = found.cells.index("region = N, smoker = no")
    assert (one.low, one.high) == pytest.approx((found.low[place], found.high[place]), abs=1e-6)


def test_an_answer_says_where_its_interval_comes_from(release: Release) -> None:
    query, replicates = Predicates.of(release.schema, "age >= 65"), release.replicates
    assert replicates is not None
    sources = [
        replace(release, replicates=replace(replicates, inflated=inflated)).answer(query).source
        for inflated in (1e-6, 1e6)
    ]
    assert sources == ["replicates", "measurement"]


def test_without_replicates_only_what_was_measured_has_bounds(release: Release) -> None:
    bare = replace(release, replicates=None)
    pair, all_three = (Marginal.of(release.schema.domain, scope) for scope in ((0, 1), (0, 1, 2)))
    estimate, low, high = intervals(bare, [pair, all_three], 0.95)
    assert np.array_equal(np.isfinite(low), np.r_[np.ones(8, bool), np.zeros(16, bool)])
    assert np.array_equal(np.isnan(low), np.isnan(high))
    assert np.isfinite(estimate).all()


def test_a_column_of_one_value_is_known_exactly() -> None:
    """A run merges a column of many rare values to a single group, about which nothing is measured."""
    rng = np.random.default_rng(0)
    columns = (Categorical("rare", tuple(range(3000))), Categorical("a", (0, 1)), Categorical("b", (0, 1)))
    table = Table(Schema(columns), tuple(rng.integers(0, column.size, 3000) for column in columns))
    made = small_release(table, epsilon=2.0, delta=1e-6)
    assert made.schema.domain.sizes == (1, 2, 2)
    alone, pair, other = (Marginal.of(made.schema.domain, scope) for scope in ((0,), (0, 1), (1,)))
    assert np.allclose(intervals(made, [alone]), 1.0, atol=1e-6)
    assert np.allclose(intervals(made, [pair]), intervals(made, [other]))


@pytest.mark.slow
def test_intervals_hold_as_often_as_they_say() -> None:
    """Every release has its own simulated noise: with one seed, eight draws would decide about all intervals."""
    held = []
    for seed in range(40):
        table = people(seed=seed)
        made = small_release(table, seed=seed, insecure_noise_seed=seed, epsilon=0.3).replicate(8, seed, progress=False)
        three = parse_workload("marginals:3", made.schema)
        _, low, high = intervals(made, three.queries, 0.95)
        true = fractions(table, three)
        held.append((low <= true) & (true <= high))
    assert 0.93 < np.mean(held) <= 0.995


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("agge >= 65", "must be about columns of the release"),
        ('region == "X"', "must hold for some records and not for others"),
        ("age >", "ends where"),
        ('region < "N"', "order"),
        (Mean("region"), "must be a column of numbers"),
        (3, "must be a condition, queries or a statistic"),
        (Marginal((0,), (4,)), "must be a single one"),
        (Ratio(Share("age < 20"), Share('smoker == "yes" and smoker == "no"')), "must have rows to be about"),
    ],
    ids=str,
)
def test_what_cannot_be_answered_is_refused(release: Release, query: object, words: str) -> None:
    with pytest.raises(InputError, match=words):
        release.answer(query)  # type: ignore[arg-type]


def test_levels_and_quantiles_are_shares(release: Release) -> None:
    for wrong in (0.0, 1.0, 95.0):
        with pytest.raises(InputError, match="level"):
            release.answer("age >= 65", level=wrong)
        with pytest.raises(InputError, match="quantile"):
            Quantile("age", wrong)


def test_imputed_tables_differ_and_combine(table: Table, release: Release) -> None:
    tables = release.datasets(4)
    assert [len(one) for one in tables] == [len(table)] * 4
    assert [len(one) for one in release.datasets(2, rows=50)] == [50, 50]
    answers = np.stack([fractions(one, release.workload) for one in tables])
    spread = np.sqrt(np.mean(np.var(answers, axis=0, ddof=1)))
    assert 0.3 < spread / np.sqrt(np.mean((release.answers() - fractions(table, release.workload)) ** 2)) < 3
    frames = [one.to_pandas(seed=99) for one in tables]
    means, variances = [one.age.mean() for one in frames], [one.age.var() / len(one) for one in frames]
    found, fixed = combine(means, variances), combine(means, variances, population=False)
    assert found.estimate == pytest.approx(np.mean(means))
    assert fixed.error < found.error
    assert found.error > np.sqrt(np.mean(variances))
    assert found.low < found.estimate < found.high


def test_imputed_tables_are_moved_by_what_replicates_are_off(release: Release) -> None:
    """By the same number of times the error of each replicate, in turn up and down."""
    tables = release.datasets(4)
    queries = release.workload.queries
    assert release.replicates is not None
    for n, (table, error) in enumerate(zip(tables, release.replicates.moved(queries), strict=False)):
        moved = fractions(table, release.workload) - release.answers()
        assert (-1) ** n * np.corrcoef(moved, error)[0, 1] > 0.8


def test_what_imputed_rows_are_drawn_from_is_a_mixture_in_every_version_of_python() -> None:
    """Since Python 3.12 an object has the members that its class has, and not those that `__getattr__` returns."""
    members = {name for name in vars(Mixture) if not name.startswith("_")}
    assert {"sample_labelled", "sample_masked", "expected"} <= members
    assert members <= set(vars(Moved))


def test_rubins_rules_are_those_of_the_book() -> None:
    found = combine([1.0, 3.0], [0.5, 1.5])
    assert found.estimate == 2.0
    assert found.error == pytest.approx(np.sqrt(1.0 + 1.5 * 2.0))
    several = combine(np.ones((3, 2)), np.ones((3, 2)))
    assert several.low.shape == (2,)
    for wrong in ([1.0], 1.0):
        with pytest.raises(InputError, match="estimates"):
            combine(wrong, [1.0])  # type: ignore[arg-type]
