"""Units of privacy: contributions are bounded by chance alone, and sensitivities are those of all rows of a unit."""

from __future__ import annotations

import ast
import itertools
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.privacy.brute_force import indicators, records_of

import pointillist
from pointillist import Account, Categorical, Grid, InputError, Numeric, Release, Schema, Table, prepare, synthesize
from pointillist.attestation import verify
from pointillist.auditing import audit
from pointillist.data.domain import Domain
from pointillist.data.neighbours import Relation, Unit
from pointillist.data.sources import MergedSource, TableSource
from pointillist.data.units import bounded_table, chosen_rows, units_of
from pointillist.job import Job
from pointillist.privacy.budget import Budget
from pointillist.privacy.curator import Curator
from pointillist.privacy.facts import Facts
from pointillist.privacy.ledger import Ledger
from pointillist.privacy.scores import MaxError, ScoreRule, SignedError, UsefulError
from pointillist.privacy.sensitivity import of_counts, of_score, of_total, square_of_counts
from pointillist.queries.base import Queries, Sensitivity
from pointillist.queries.candidates import Candidates, Single, Whole
from pointillist.queries.groups import Groups
from pointillist.queries.intervals import Intervals
from pointillist.queries.marginal import Marginal
from pointillist.queries.product import Product
from pointillist.refining import Refining
from pointillist.runs import resume
from pointillist.strategies import MeasureAll

ROOT = Path(pointillist.__file__).parent
DOMAIN = Domain(("a", "b"), (3, 2))
SCHEMA = Schema((Categorical("sex", ("f", "m")), Numeric("age", (0, 18, 65, 120), integer=True)), ignore=("person",))


def visits(people: int = 60, most: int = 6) -> pa.Table:
    """Visits of people: person p has 1 to ``most`` rows."""
    rng = np.random.default_rng(4)
    person = np.repeat(np.arange(people), rng.integers(1, most + 1, people))
    rng.shuffle(person)
    sex = np.array(["f", "m"])[person % 2]
    return pa.table({"person": person, "sex": sex, "age": rng.integers(0, 121, len(person))})


def per_unit(rows: int) -> Facts:
    return Facts(100, 1.0, Relation.ADD_REMOVE, 1.0, rows)


def kinds() -> dict[str, Queries]:
    prefixes = Product.of(DOMAIN, {"a": "prefixes", "b": "values"})
    return {
        "marginal": Marginal.of(DOMAIN, ("a", "b")),
        "prefixes": prefixes,
        "ranges": Product.of(DOMAIN, {"a": Intervals(3, ((0, 2), (1, 3), (1, 2)))}),
        "one cell": Marginal.of(DOMAIN, ("a",)).take([1]),
        "some cells": prefixes.take([0, 2, 3]),
        "groups": Groups((0,), (0, 1, 1)),
    }


def changes(queries: Queries, rows: int) -> np.ndarray:
    """What every unit of 1 to ``rows`` rows changes in the counts, when it is added or removed."""
    if isinstance(queries, Groups):  # by definition: a record is in the group of its value
        groups = [queries.groups[record[queries.scope[0]]] for record in records_of(DOMAIN)]
        held = np.array([np.arange(queries.size) == group for group in groups])
    else:
        held = indicators(queries, DOMAIN)
    units = (u for k in range(1, rows + 1) for u in itertools.combinations_with_replacement(range(len(held)), k))
    return np.array([held[list(unit)].sum(axis=0, dtype=np.int64) for unit in units])


@pytest.mark.parametrize("rows", [1, 2, 3])
@pytest.mark.parametrize("kind", kinds())
def test_counts_change_by_what_is_stated_over_all_units(kind: str, rows: int) -> None:
    queries = kinds()[kind]
    found = changes(queries, rows)
    true = Sensitivity(int(found.max()), int(found.sum(axis=1).max()), int((found**2).sum(axis=1).max()))
    assert of_counts(queries, per_unit(rows)) == true
    assert square_of_counts(queries, per_unit(rows)) == true.l2_squared
    assert of_total(per_unit(rows)) == rows**2


RULES: list[tuple[Candidates, ScoreRule]] = [
    (Whole((Marginal.of(DOMAIN, ("a",)), Marginal.of(DOMAIN, ("a", "b")))), MaxError()),
    (Single((Marginal.of(DOMAIN, ("a",)), Marginal.of(DOMAIN, ("a", "b")))), MaxError(base_measure=True)),
    (Single((Product.of(DOMAIN, {"a": "prefixes"}),)), SignedError()),
    (Whole((Product.of(DOMAIN, {"a": "prefixes", "b": "values"}), Marginal.of(DOMAIN, ("b",)))), MaxError()),
    (Whole((Product.of(DOMAIN, {"a": "prefixes"}), Marginal.of(DOMAIN, ("b",)))), UsefulError((2, 3), 0.5)),
    (Whole((Marginal.of(DOMAIN, ("a",)), Marginal.of(DOMAIN, ("b",)))), UsefulError((5, 1), 0.0)),
]


@pytest.mark.parametrize("rows", [1, 2, 3])
@pytest.mark.parametrize("number", range(len(RULES)))
def test_scores_change_by_what_is_stated_over_all_units(number: int, rows: int) -> None:
    candidates, rule = RULES[number]
    held = np.concatenate([indicators(one, DOMAIN) for one in candidates.queries], axis=1)
    ends = np.cumsum([0, *(one.size for one in candidates.queries)])
    worst = 0
    rng = np.random.default_rng(number)
    zero, above = np.zeros(held.shape[1], np.int64), np.full(held.shape[1], 40)
    for counts, estimate in ((zero, zero), (above, zero), (held.sum(axis=0), rng.integers(0, 3, held.shape[1]))):
        before = rule.scores(candidates, counts, estimate, 2.0)
        units = (u for k in range(1, rows + 1) for u in itertools.combinations_with_replacement(range(len(held)), k))
        for unit in units:
            after = rule.scores(candidates, counts + held[list(unit)].sum(axis=0), estimate, 2.0)
            worst = max(worst, int(np.abs(after - before).max()))
    stated = of_score(rule, candidates, per_unit(rows))
    assert stated == rows * rule.sensitivity(candidates, Relation.ADD_REMOVE)
    if isinstance(rule, UsefulError):  # the largest weight and the largest overlap may belong to different candidates
        overlaps = [int(held[:, a:b].sum(axis=1).max()) for a, b in itertools.pairwise(ends)]
        assert worst == rows * max(w * o for w, o in zip(rule.weights, overlaps, strict=True)) <= stated
    else:
        assert worst == stated
    assert len(records_of(DOMAIN)) == len(held)


def test_only_one_place_turns_the_sensitivity_of_a_row_into_that_of_a_unit() -> None:
    """Whoever asks queries for their sensitivity elsewhere would forget the unit."""
    allowed = {
        "privacy/sensitivity.py",  # the place
        "privacy/scores.py",  # score rules state that of one row
        "algorithms/once.py", "algorithms/measured.py",  # compare noise, which no guarantee depends on
        "algorithms/mwem.py",  # overlaps of queries, likewise
        "auditing/parts.py", "auditing/witness.py",  # compares queries; hands a rule on
    }  # fmt: skip
    found = set()
    for path in ROOT.rglob("*.py"):
        name = str(path.relative_to(ROOT))
        calls = [node.func for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
        if any(isinstance(one, ast.Attribute) and one.attr == "sensitivity" for one in calls):
            found.add(name)
    assert {name for name in found if not name.startswith("queries/")} == allowed


def test_each_unit_keeps_the_rows_with_the_smallest_numbers() -> None:
    units = np.array([2, 0, 2, 2, 1, 0])
    priorities = np.array([5, 1, 9, 2, 4, 3], np.uint64)
    assert chosen_rows(units, priorities, 1).tolist() == [1, 3, 4]
    assert chosen_rows(units, priorities, 2).tolist() == [0, 1, 3, 4, 5]
    assert chosen_rows(units, priorities, 9).tolist() == list(range(6))
    assert chosen_rows(np.zeros(0, np.int64), np.zeros(0, np.uint64), 3).tolist() == []


def test_the_choice_for_a_unit_does_not_depend_on_others() -> None:
    """For the same random numbers of the rows, whether a unit is there changes at most its own rows."""
    rng = np.random.default_rng(0)
    for _ in range(50):
        units = rng.integers(0, 5, 30)
        priorities = rng.integers(0, 2**63, 30).astype(np.uint64)
        kept = chosen_rows(units, priorities, 3)
        for gone in range(5):
            stays = np.flatnonzero(units != gone)
            without = stays[chosen_rows(units[stays], priorities[stays], 3)]
            assert set(kept) - set(without) == {row for row in kept if units[row] == gone}
            assert set(without) <= set(kept)
            assert len(set(kept) - set(without)) <= 3


def test_the_choice_is_uniform_and_fresh() -> None:
    table = pa.table({"person": ["x"] * 4 + ["y"], "sex": ["f", "f", "m", "m", "f"], "age": [1, 20, 1, 20, 70]})
    runs = [bounded_table(table, SCHEMA, Unit("person", 2)) for _ in range(600)]
    pairs = Counter(tuple(sorted(zip(*(codes.tolist() for codes in one.codes), strict=True))) for one in runs)
    assert len(pairs) == 6
    assert all((0, 2) in pair for pair in pairs)  # the only row of y
    assert min(pairs.values()) > 50  # 100 expected, with a standard deviation of 9


def test_bounded_tables_have_no_more_rows_of_a_unit() -> None:
    data = visits()
    sizes = Counter(data.column("person").to_pylist())
    table = bounded_table(data, SCHEMA, Unit("person", 2))
    assert len(table) == sum(min(2, size) for size in sizes.values()) < data.num_rows
    assert table.domain.names == ("sex", "age")
    assert len(bounded_table(data, SCHEMA, Unit("person", 6))) == data.num_rows


@pytest.mark.parametrize(
    "cells",
    [
        ["a", "b", "a"],
        [1, 2, 1],
        [1.5, 2.5, 1.5],
        [0.0, 2.5, -0.0],
        [True, False, True],
        pa.array(["a", "b", "a"]).dictionary_encode(),
    ],
    ids=["text", "whole", "real", "zeros", "truth", "category"],
)
def test_units_can_have_any_plain_type(cells: Any) -> None:
    numbers = units_of("person", pa.chunked_array([cells if isinstance(cells, pa.Array) else pa.array(cells)]))
    assert numbers[0] == numbers[2] != numbers[1]


@pytest.mark.parametrize("cells", [["a", None, "b"], ["a", "", "b"], [1.0, float("nan"), 2.0]])
def test_rows_without_a_unit_are_refused(cells: list[Any]) -> None:
    table = pa.table({"person": cells, "sex": ["f", "m", "f"], "age": [1, 2, 3]})
    with pytest.raises(InputError, match="column 'person' must name the unit of every row, got an empty cell"):
        bounded_table(table, SCHEMA, Unit("person", 2))


OPTIONS: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6, "workload": "marginals:1", "method": "one-shot"}
SMALL = {"rows": 20, "t_max": 5}


def unit_job(max_rows: int, **options: Any) -> Job:
    return prepare(visits(), schema=SCHEMA, unit="person", max_rows=max_rows, **OPTIONS | options)


def test_noise_is_larger_by_the_rows_of_a_unit_at_the_same_budget() -> None:
    zcdp = {"zcdp": True, "settings": SMALL}
    alone = prepare(visits(), schema=SCHEMA, relation="add-remove", **OPTIONS | zcdp).run()
    for rows in (1, 3):
        release = unit_job(rows, **zcdp).run()
        assert release.description.total_sigma == pytest.approx(rows * alone.description.total_sigma)
        pairs = zip(release.log.measurements, alone.log.measurements, strict=True)
        for mine, other in pairs:
            assert mine.queries == other.queries
            assert mine.sigma == pytest.approx(rows * other.sigma)
        for mine, other in zip(release.description.privacy.ledger, alone.description.privacy.ledger, strict=True):
            assert (mine.label, mine.rho) == (other.label, other.rho)
            assert mine.sensitivity == pytest.approx(rows * other.sensitivity)
            assert mine.scale == pytest.approx(rows * other.scale)


FINE = Schema((Categorical("sex", ("f", "m")), Grid("age", bounds=(0, 120), step=0.25)), ignore=("person",))


def test_the_stage_before_a_run_is_scaled_to_the_rows_of_a_unit(tmp_path: Path) -> None:
    options = OPTIONS | {"zcdp": True, "settings": SMALL}
    alone = prepare(visits(), schema=FINE, relation="add-remove", **options).run()
    release = synthesize(visits(), schema=FINE, unit="person", max_rows=3, out=tmp_path / "r", **options)
    assert alone.refined is not None
    assert release.refined is not None
    assert len(release.refined.log.measurements) > 1
    assert any(isinstance(one.queries, Groups) for one in release.refined.log.measurements)
    for mine, other in zip(release.refined.log.measurements, alone.refined.log.measurements, strict=True):
        assert mine.queries == other.queries
        assert mine.sigma == pytest.approx(3 * other.sigma)
    ledgers = release.description.privacy.ledger, alone.description.privacy.ledger
    stage = 1 + len(release.refined.log.measurements)  # after the number of rows
    for mine, other in zip(*(ledger[:stage] for ledger in ledgers), strict=True):
        assert (mine.label, mine.rho) == (other.label, other.rho)
        assert mine.sensitivity == pytest.approx(3 * other.sensitivity)
    assert release.refined.log.facts.rows_per_unit == release.log.facts.rows_per_unit == 3
    report = verify(tmp_path / "r", replay=True)
    assert report.ok, [one for one in report.checks if one.status == "failed"]
    again = Release.load(tmp_path / "r")
    assert again.refined is not None
    assert again.refined.log.facts == release.refined.log.facts
    file = tmp_path / "r" / "release.json"
    file.write_text(file.read_text().replace('"max_rows": 3', '"max_rows": 5'))
    assert not verify(tmp_path / "r").ok


def test_a_gaussian_account_leaves_room_for_the_stage() -> None:
    job = prepare(visits(), schema=FINE, unit="person", max_rows=3, **OPTIONS | {"settings": SMALL})
    assert job.curator.ledger.accounting == "Gaussian"
    release = job.run()
    assert min(one.scale for one in release.description.privacy.ledger) >= (job.curator.ledger.least_scale or 0)


def test_a_run_with_fine_columns_and_a_unit_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options = OPTIONS | {"settings": SMALL, "insecure_noise_seed": 3, "unit": "person", "max_rows": 2, "schema": FINE}
    whole = synthesize(visits(), **options)
    calls = []
    measure = Curator.measure

    def stops(self: Curator, asked: Any) -> Any:
        calls.append(1)
        if len(calls) == 2:  # the stage is over
            raise KeyboardInterrupt
        return measure(self, asked)

    with monkeypatch.context() as patched:
        patched.setattr(Curator, "measure", stops)
        with pytest.raises(pointillist.RunStopped):
            synthesize(visits(), out=tmp_path / "r", **options)
    release = resume(tmp_path / "r", visits())
    assert release.description.privacy.ledger == whole.description.privacy.ledger
    assert release.schema == whole.schema


def test_merged_rows_are_bounded_as_those_that_they_come_from() -> None:
    table = bounded_table(visits(), FINE, Unit("person", 3))
    source = TableSource(table, Unit("person", 3))
    ledger = Ledger(Budget(1.0, 1e-6, Relation.ADD_REMOVE, source.unit))
    curator = Curator(source, ledger)
    assert curator.in_groups(Refining(FINE).planned)._source.unit == source.unit  # type: ignore[attr-defined]
    with pytest.raises(ValueError, match="must be bounded by the unit"):
        Curator(MergedSource(TableSource(table), Refining(FINE).planned), curator.ledger)


def test_selections_are_scaled_to_the_rows_of_a_unit() -> None:
    settings = {"method": "mwem", "settings": {"rounds": 2}}
    release = unit_job(4, **settings).run()
    alone = prepare(visits(), schema=SCHEMA, relation="add-remove", **OPTIONS | settings).run()
    for mine, other in zip(release.description.privacy.ledger, alone.description.privacy.ledger, strict=True):
        assert (mine.label, mine.rho) == (other.label, other.rho)
        assert mine.scale == pytest.approx(4 * other.scale)
        assert mine.sensitivity == pytest.approx(4 * other.sensitivity)


def test_plans_state_the_noise_that_is_used() -> None:
    for method, settings in (("one-shot", SMALL), ("mwem", {"rounds": 2}), ("auto", SMALL)):
        job = unit_job(3, method=method, settings=settings)
        least, most = next(phase.noise for phase in job.phases if phase.noise)
        release = job.run()
        # the plan is made for the largest table, with what the number of rows leaves: the same for every table
        assert all(least * (1 - 1e-9) <= m.sigma <= most * (1 + 1e-9) for m in release.log.measurements), method


def test_the_growing_selections_of_dual_query_keep_their_scale() -> None:
    settings = {"eta": 0.5, "samples": 2, "rounds": 3}
    options: dict[str, Any] = {"epsilon": 30.0, "method": "dualquery", "group": "query", "settings": settings}
    ones = {rows: unit_job(rows, **options).run() for rows in (1, 2)}  # with little noise on the number of rows
    for rows, release in ones.items():
        paid = [one for one in release.description.privacy.ledger if one.label == "selection"]
        assert paid[0].scale == pytest.approx(release.log.total / settings["eta"])
        assert paid[0].rho == pytest.approx((rows * settings["eta"] / release.log.total) ** 2 / 2)
        assert paid[0].sensitivity == rows


def test_the_statement_and_the_description_name_the_unit(tmp_path: Path) -> None:
    release = unit_job(3, settings=SMALL).run()
    said = "adding or removing all rows of one 'person' (at most 3 rows of each are used)"
    assert said in release.statement
    folder = release.save(tmp_path / "r")
    again = Release.load(folder)
    assert again.description.privacy.unit == Unit("person", 3)
    assert again.log.facts == release.log.facts
    assert again.log.facts.rows_per_unit == 3
    for file in ("synthetic.csv", "release.json", "synthetic.parquet"):
        assert b"person_" not in (folder / file).read_bytes()
    assert again.table.domain.names == ("sex", "age")


def test_a_release_by_unit_can_be_verified_and_replayed(tmp_path: Path) -> None:
    for method, settings in (("one-shot", SMALL), ("mwem", {"rounds": 2})):
        folder = unit_job(3, method=method, settings=settings).run().save(tmp_path / method)
        report = verify(folder, replay=True)
        assert report.ok, [one for one in report.checks if one.status == "failed"]


def test_a_release_that_hides_its_unit_is_found_out(tmp_path: Path) -> None:
    folder = unit_job(3, settings=SMALL).run().save(tmp_path / "r")
    file = folder / "release.json"
    text = file.read_text()
    file.write_text(text.replace('"max_rows": 3', '"max_rows": 5'))
    failed = {one.name for one in verify(folder).checks if one.status == "failed"}
    assert failed >= {"statement", "number of rows", "sensitivities"}


def test_an_interrupted_run_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options = OPTIONS | {"method": "mwem", "settings": {"rounds": 2}, "insecure_noise_seed": 3}
    whole = synthesize(visits(), schema=SCHEMA, unit="person", max_rows=2, **options)
    calls = []
    measure = Curator.measure

    def stops(self: Curator, asked: Any) -> Any:
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return measure(self, asked)

    with monkeypatch.context() as patched:
        patched.setattr(Curator, "measure", stops)
        with pytest.raises(pointillist.RunStopped):
            synthesize(visits(), schema=SCHEMA, unit="person", max_rows=2, out=tmp_path / "r", **options)
    release = resume(tmp_path / "r", visits())
    assert release.description.privacy.ledger == whole.description.privacy.ledger
    assert release.description.privacy.unit == Unit("person", 2)
    np.testing.assert_array_equal(release.table.codes[1], whole.table.codes[1])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"unit": "person"}, "unit must be given together with max_rows"),
        ({"max_rows": 3}, "unit must be given together with max_rows"),
        ({"unit": "person", "max_rows": 0}, "max_rows must be in 1 .. 1,000,000"),
        ({"unit": "person", "max_rows": 2.5}, "max_rows must be a whole number"),
        ({"unit": "nobody", "max_rows": 3}, "unit must be a column of the table"),
        ({"unit": "sex", "max_rows": 3}, "unit must not be a column that is synthesized"),
        ({"unit": "person", "max_rows": 3, "relation": "replace"}, "relation must be add-remove with a unit"),
        ({"unit": "person", "max_rows": 3, "delta": None}, "delta must be given under add-remove"),
    ],
)
def test_what_makes_no_sense_is_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        prepare(visits(), schema=SCHEMA, **OPTIONS | options)


def test_an_encoded_table_has_no_units() -> None:
    with pytest.raises(InputError, match="unit must be given with a table that has its column"):
        prepare(Table.encode(visits(), SCHEMA), unit="person", max_rows=3, **OPTIONS)


def test_the_curator_refuses_rows_that_are_not_bounded() -> None:
    table, unit = Table.encode(visits(), SCHEMA), Unit("person", 3)
    ledger = Ledger(Budget(1.0, 1e-6, Relation.ADD_REMOVE, unit))
    with pytest.raises(ValueError, match="must be bounded by the unit"):
        Curator(TableSource(table), ledger)
    with pytest.raises(ValueError, match="must be bounded by the unit"):
        Curator(TableSource(table, Unit("person", 4)), ledger)
    with pytest.raises(ValueError, match="must be bounded by the unit"):
        Curator(TableSource(table, unit), Ledger(Budget(1.0, 1e-6, Relation.ADD_REMOVE)))


def test_accounts_do_not_mix_units(tmp_path: Path) -> None:
    by_row = Account.create(tmp_path / "rows", 3.0, 1e-5, "add-remove")
    by_person = Account.create(tmp_path / "people", 3.0, 1e-5, unit="person")
    assert by_person.budget.relation is Relation.ADD_REMOVE
    opened = Account.open(tmp_path / "people")
    assert opened.unit == "person"
    assert "adding or removing all rows of one 'person';" in opened.total().statement
    ledgers = {rows: unit_job(rows, settings=SMALL).curator.ledger for rows in (2, 3)}
    plain = prepare(visits(), schema=SCHEMA, relation="add-remove", **OPTIONS | {"settings": SMALL}).curator.ledger
    with pytest.raises(InputError, match=r"unit must be that of the account .rows., got the unit 'person'"):
        by_row.reserve("one", "a run", ledgers[3])
    with pytest.raises(InputError, match=r"unit must be that of the account .the unit 'person'., got rows"):
        opened.reserve("one", "a run", plain)
    for rows, ledger in ledgers.items():  # all rows of a person are protected, however many are used
        opened.reserve(f"run {rows}", "a run", ledger)
    by_row.reserve("one", "a run", plain)
    assert (opened.total().runs, by_row.total().runs) == (2, 1)
    with pytest.raises(InputError, match="relation must be add-remove with a unit"):
        Account.create(tmp_path / "other", 3.0, 1e-5, "replace", unit="person")


def test_the_audit_finds_no_violation_with_units() -> None:
    found = audit(SCHEMA, epsilon=1.0, method="mwem", max_rows=3, workload="marginals:1", rows=50, runs=200,
                  processes=1)  # fmt: skip
    assert (found.relation, found.max_rows) == ("add-remove", 3)
    assert not found.violation
    assert all(one.claimed_epsilon > 0 for one in found.findings)


class ForgetsUnit:
    """Noise that is scaled as if a unit were one row."""

    description, private, state = "too small", True, None

    def __init__(self, inner: Any, rows: int) -> None:
        self.inner, self.rows = inner, rows

    def add_gaussian(self, counts: np.ndarray, rho: float, square: int) -> np.ndarray:
        noisy: np.ndarray = self.inner.add_gaussian(counts, rho, square // self.rows**2)
        return noisy

    def select(self, scores: np.ndarray, rho: float, sensitivity: int) -> int:
        return int(self.inner.select(scores, rho, sensitivity // self.rows))


def test_the_audit_finds_noise_that_forgets_the_unit() -> None:
    from pointillist.privacy.insecure import InsecureSeededNoise

    found = audit(SCHEMA, epsilon=1.0, method="one-shot", max_rows=8, workload="marginals:1", rows=60, runs=400,
                  processes=1, noise_of=lambda number: ForgetsUnit(InsecureSeededNoise(number), 8))  # fmt: skip
    assert any(one.exceeded for one in found.findings)


def test_a_plan_without_selections_can_use_the_gaussian_account() -> None:
    queries = tuple(Marginal.of(SCHEMA.domain, (name,)) for name in SCHEMA.domain.names)
    known = Facts(1000, 0.5, Relation.ADD_REMOVE, 1.0, 7)
    (phase,) = MeasureAll(queries).outline(known)
    (alone,) = MeasureAll(queries).outline(Facts(1000, 0.5, Relation.ADD_REMOVE, 1.0))
    assert phase.noise is not None
    assert alone.noise is not None
    assert phase.noise[0] == pytest.approx(7 * alone.noise[0])
    job = unit_job(3, settings=SMALL)
    assert job.curator.ledger.accounting == "Gaussian"
    release = job.run()
    assert min(one.scale for one in release.description.privacy.ledger) >= (job.curator.ledger.least_scale or 0)
