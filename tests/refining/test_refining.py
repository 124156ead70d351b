"""Fine columns: levels, least squares, smoothing, groups, and runs with a stage before them."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from pointillist import (
    Categorical,
    Grid,
    InputError,
    Numeric,
    Product,
    Relation,
    Release,
    Schema,
    Table,
    Workload,
    prepare,
    resume,
)
from pointillist import job as job_module
from pointillist import synthesize as synth
from pointillist.attestation import verify
from pointillist.data.columns import Merged
from pointillist.data.domain import Domain
from pointillist.data.sources import MergedSource, TableSource
from pointillist.errors import RunStopped
from pointillist.privacy.facts import Facts
from pointillist.queries.groups import Groups
from pointillist.queries.measurement import Measurement
from pointillist.refining import Refining, most_groups
from pointillist.refining.merging import cuts, merged_line, merged_parts, stand_out
from pointillist.refining.stage import merge
from pointillist.refining.trees import Tree, even_levels, smoothed_line, smoothed_parts
from pointillist.release.journal import Journal
from pointillist.runs import journal_of

SMALL = {"settings": {"rows": 20, "t_max": 10}, "method": "auto", "workload": "marginals:2"}


# --- trees


def design(levels: tuple[np.ndarray, ...]) -> list[np.ndarray]:
    """The matrices A_l of the levels, the root first."""
    whole = (np.zeros_like(levels[-1]), *levels)
    return [(level == np.arange(level.max() + 1)[:, None]).astype(float) for level in whole]


@pytest.mark.parametrize("total_sigma", [0.0, 7.0])
def test_the_estimate_is_that_of_least_squares(total_sigma: float) -> None:
    rng = np.random.default_rng(0)
    levels = (np.repeat([0, 1], [5, 7]), np.repeat(range(4), [3, 2, 6, 1]), np.arange(12))
    tree = Tree(levels, (2.0, 3.0, 5.0), total_sigma)
    y = [rng.normal(10, 5, level.max() + 1) for level in levels]
    sigmas = (max(total_sigma, 1e-3), 2.0, 3.0, 5.0)
    rows = np.concatenate([a / s for a, s in zip(design(levels), sigmas, strict=True)])
    targets = np.concatenate([v / s for v, s in zip([np.array([100.0]), *y], sigmas, strict=True)])
    wanted = np.linalg.lstsq(rows, targets, rcond=None)[0]
    assert np.allclose(tree.estimate(y, 100.0), wanted, atol=1e-4)
    inverse = np.linalg.inv(rows.T @ rows)
    weights = rng.normal(size=12)
    assert tree.variance(weights) == pytest.approx(weights @ inverse @ weights, rel=1e-4)


def test_levels_of_ordered_codes_are_nested_runs() -> None:
    levels = even_levels(4096)
    assert [level.max() + 1 for level in levels] == [16, 256]
    for above, below in itertools.pairwise((*levels, np.arange(4096))):
        assert all(len(set(above[below == group])) == 1 for group in range(0, below.max() + 1, 37))
    assert even_levels(100) == ()


def test_smoothing_keeps_counts_and_removes_noise() -> None:
    rng = np.random.default_rng(1)
    size, sigma = 1024, 30.0
    true = 40_000 * np.exp(-np.arange(size) / 150) / 150
    true[300] += 4000
    levels = (*even_levels(size), np.arange(size))
    tree = Tree(levels, (sigma,) * len(levels), 0.0)
    y = [np.bincount(level, true) + rng.normal(0, sigma, level.max() + 1) for level in levels]
    raw = tree.estimate(y, true.sum())
    smooth = smoothed_line(tree, raw, np.arange(size))
    assert (smooth >= 0).all()
    assert smooth.sum() == pytest.approx(true.sum())
    assert np.abs(smooth - true).sum() < 0.5 * np.abs(np.maximum(raw, 0) - true).sum()
    assert smooth[300] == pytest.approx(true[300], rel=0.1)


def test_codes_without_an_order_are_shrunk_to_their_mean() -> None:
    rng = np.random.default_rng(2)
    true = np.full(500, 20.0)
    true[:3] = 5000.0
    tree = Tree((np.arange(500),), (60.0,), 0.0)
    raw = tree.estimate([true + rng.normal(0, 60, 500)], true.sum())
    smooth = smoothed_parts(tree, raw, np.arange(500))
    assert (smooth >= 0).all()
    assert smooth.sum() == pytest.approx(true.sum(), rel=1e-6)
    assert np.abs(smooth - true).sum() < 0.6 * np.abs(np.maximum(raw, 0) - true).sum()


# --- groups


def test_cuts_divide_where_it_helps_most() -> None:
    counts = np.zeros(100)
    counts[[10, 11, 50, 51, 90]] = 100.0
    found = cuts(counts, 3, 50.0)
    assert len(found) == 2
    assert 12 <= found[0] <= 50
    assert 52 <= found[1] <= 90
    assert cuts(counts, 50, 1000.0) == []
    assert len(cuts(np.ones(64), 8, 1.0)) == 7


def test_cuts_follow_the_coarsest_level_that_has_a_border() -> None:
    years = np.repeat(range(4), 12)
    assert set(cuts(np.ones(48), 4, 1.0, [years])) == {12, 24, 36}
    assert len(cuts(np.ones(48), 6, 1.0, [years])) == 5


def test_a_border_beyond_all_rows_does_not_keep_a_group_whole() -> None:
    """As of dates between bounds that are decades apart, and all of whose rows are in the last two years."""
    decades, years = np.repeat([0, 1], 120), np.repeat(range(20), 12)
    counts = np.where(np.arange(240) >= 216, 10.0, 0.0)
    counts[0] = 1.0
    assert cuts(counts, 2, 20.0, [decades, years]) == [228]
    assert len(cuts(counts, 8, 20.0, [decades, years])) == 7


def test_numbers_are_numbers_however_missing_values_are_spelled() -> None:
    """Next to a missing value that is a text, numbers are decoded to texts. Codes of this grid are not numbers."""
    plain = Grid("x", (0, 1_000_000), scale="log", missing=True)
    spelled = replace(plain, missing_as="?")
    counts = np.random.default_rng(0).exponential(100.0, plain.size)
    levels = (*even_levels(plain.size), np.arange(plain.size))
    tree = Tree(levels, (1.0,) * len(levels), 0.0)
    first, second = (merge(column, tree, counts) for column in (plain, spelled))
    assert (second.groups, second.places) == (first.groups, first.places)
    assert second.places[-1] > 1000


def test_point_masses_get_groups_of_their_own() -> None:
    counts = np.full(100, 10.0)
    counts[[0, 40]] = [2000.0, 900.0]
    assert stand_out(counts, 100.0, 5).tolist() == [0, 40]
    assert stand_out(counts, 100.0, 1).tolist() == [0]
    groups, points = merged_line(counts, 10, 50.0)
    assert points.tolist() == [0, 40]
    assert (groups == groups[40]).sum() == 1
    assert groups[39] == groups[41] or abs(groups[39] - groups[41]) == 1


def test_rare_values_share_a_group_by_the_hierarchy() -> None:
    counts = np.array([500.0, 3.0, 4.0, 60.0, 55.0, 2.0, 1.0])
    region = np.array([0, 0, 0, 1, 1, 1, 2])
    flat = merged_parts(counts, 4, 10.0)
    assert len(set(flat)) == 4
    assert len(set(flat[[1, 2, 5, 6]])) == 1
    tree = merged_parts(np.array([500.0, 30.0, 40.0, 10.0, 20.0, 30.0, 51.0]), 6, 50.0, [region])
    assert tree[1] == tree[2] != tree[0]
    assert tree[3] == tree[4] == tree[5] != tree[1]
    assert tree[6] not in tree[:6]


def test_groups_of_a_list_have_enough_rows_and_the_largest_parts_come_first() -> None:
    rng = np.random.default_rng(0)
    counts = 1000 / np.arange(1, 401)
    region = rng.integers(0, 10, 400)
    for levels in ([], [region], [region // 5, region]):
        groups = merged_parts(counts, 12, 30.0, levels)
        masses = np.bincount(groups, counts)
        assert len(masses) <= 12
        assert masses.min() >= 30.0
    assert all(len(set(region[groups == one])) < 10 for one in range(groups.max() + 1))
    assert len(set(merged_parts(counts, 12, 1e9))) == 1


def test_public_shares_say_what_the_noise_hides() -> None:
    rng = np.random.default_rng(4)
    shares = 1 / np.arange(1, 1001)
    true = 10_000 * shares / shares.sum()
    true[900] = 2000.0  # what the public shares do not know
    tree = Tree((np.arange(1000),), (30.0,), 0.0)
    raw = tree.estimate([true + rng.normal(0, 30, 1000)], true.sum())
    places = np.arange(1000)
    smooth, plain = smoothed_parts(tree, raw, places, shares), smoothed_parts(tree, raw, places)
    assert (smooth >= 0).all()
    assert smooth.sum() == pytest.approx(true.sum(), rel=1e-3)
    assert smooth[900] == pytest.approx(2000, rel=0.1)
    assert np.abs(smooth - true).sum() < 0.3 * np.abs(plain - true).sum()
    none = smoothed_parts(tree, np.full(1000, -1.0), places, shares)
    assert none.sum() == 0


@pytest.mark.parametrize(
    ("column", "fine"),
    [
        (Numeric("x", tuple(range(34))), True),
        (Numeric("x", tuple(range(33))), False),
        (Numeric("x", tuple(range(100)), merge=False), False),
        (Numeric("x", (0, 1, 2), merge=True), True),
        (Categorical("x", tuple(range(33)), ordered=True), True),
        (Categorical("x", tuple(range(32)), ordered=True), False),
        (Categorical("x", tuple(range(128))), False),
        (Categorical("x", tuple(range(129))), True),
        (Categorical("x", tuple(range(129)), merge=False), False),
    ],
)
def test_which_columns_are_fine(column: Any, fine: bool) -> None:
    assert column.fine is fine
    assert column.from_dict(column.to_dict()) == column


def test_many_bins_are_merged_and_decoded_within_their_edges() -> None:
    rng = np.random.default_rng(0)
    schema = Schema((Numeric("x", tuple(range(0, 505, 5)), integer=True, missing=True), Categorical("y", ("a", "b"))))
    x = rng.normal(200, 60, 3000).clip(0, 500).round()
    x[:100] = np.nan
    table = Table.encode(pd.DataFrame({"x": x, "y": rng.choice(["a", "b"], 3000)}), schema)
    release = synth(table, epsilon=2.0, **SMALL)  # type: ignore[arg-type]
    column = release.schema.columns[0]
    assert isinstance(column, Merged)
    assert column.size <= 17
    made = release.table.to_pandas(0)["x"]
    assert made.min() >= 0
    assert made.max() <= 500
    assert abs(made.mean() - np.nanmean(x)) < 20
    assert 0.01 < made.isna().mean() < 0.1


def test_lists_get_more_of_the_budget_and_their_values_most_of_it() -> None:
    names = tuple(f"{n:03}" for n in range(200))
    columns = (Categorical("a", names, prefixes=(1, 2)), Grid("g", (0, 4096)), Categorical("b", ("x", "y")))
    stage, facts = Refining(Schema(columns)), Facts(1000, 0.5)
    asked = stage.asked(facts)
    assert stage.share == pytest.approx(0.1)
    assert sum(one.rho for one in asked) == pytest.approx(0.05)
    by_column = [sum(one.rho for one in asked if one.queries.scope == (place,)) for place in (0, 1)]
    assert by_column == pytest.approx([0.04, 0.01])
    first = [one.rho for one in asked if one.queries.scope == (0,)]
    assert first == pytest.approx([0.004, 0.004, 0.032])


# --- the queries of the stage


@pytest.mark.parametrize("relation", Relation)
def test_the_sensitivity_of_groups_by_brute_force(relation: Relation) -> None:
    domain = Domain(("a", "b"), (5, 2))
    for groups in [(0, 0, 1, 1, 2), (0, 1, 0, 1, 0), (0, 0, 0, 0, 0), (4, 3, 2, 1, 0)]:
        queries = Groups((0,), groups)
        codes = [np.repeat(range(5), 2), np.tile(range(2), 5)]
        held = queries.holds(codes).astype(int)
        assert (held.sum(axis=1) == 1).all()
        if relation is Relation.ADD_REMOVE:
            changes = held
        else:
            changes = (held[:, None, :] - held[None, :, :]).reshape(-1, held.shape[1])
        stated = queries.sensitivity(relation)
        assert stated.l2_squared == (changes**2).sum(axis=1).max()
        assert stated.l1 == np.abs(changes).sum(axis=1).max()
        assert stated.single == np.abs(changes).max()
        table = np.random.default_rng(0).integers(0, 9, 5)
        assert np.array_equal(
            queries.of_marginal(table), [table[np.array(groups) == g].sum() for g in range(queries.size)]
        )
        values = np.arange(queries.size, dtype=float)
        assert queries.to_marginal(values) @ table == pytest.approx(values @ queries.of_marginal(table))
        assert Groups.from_dict(queries.to_dict(domain.names), domain) == queries


def test_groups_must_be_numbered_without_gaps() -> None:
    with pytest.raises(ValueError, match="each of them at least once"):
        Groups((0,), (0, 2))
    with pytest.raises(ValueError, match="codes of the attribute"):
        Groups.from_dict({"attributes": ["a"], "groups": [0, 1]}, Domain(("a",), (3,)))


# --- merged columns


def test_a_merged_column_draws_codes_by_their_shares() -> None:
    base = Categorical("place", tuple("abcdef"), missing=True)
    column = Merged(base, (0, 1, 0, 1, 2, 2, 3), (0.25, 0.5, 0.75, 0.5, 0.0, 1.0, 1.0))
    codes = np.repeat(np.arange(4), 20_000)
    fine = column.drawn(codes, np.random.default_rng(0))
    assert np.array_equal(column.lookup[fine], codes)
    seen = np.bincount(fine, minlength=7) / 20_000
    assert np.allclose(seen, column.shares, atol=0.02)
    assert seen[4] == 0
    decoded = column.decode(codes, np.random.default_rng(0))
    assert np.array_equal(column.encode(decoded), codes)
    assert decoded.null_count == 20_000
    assert Schema.from_dict(Schema((column,)).to_dict()).columns == (column,)
    assert column.translate(np.arange(7), base).tolist() == [0, 1, 0, 1, 2, 2, 3]
    assert column.translate(np.arange(4), column).tolist() == [0, 1, 2, 3]


def test_a_merged_schema_survives_a_file(tmp_path: Path) -> None:
    column = Merged(Categorical("place", tuple("abcd"), missing=True), (0, 1, 0, 1, 2), (0.5, 0.5, 0.5, 0.5, 1.0))
    Schema((column,)).save(tmp_path / "s.toml")
    assert Schema.load(tmp_path / "s.toml").columns == (column,)


@pytest.mark.parametrize(
    ("groups", "shares", "problem"),
    [
        ((0, 1, 0), (0.5, 1.0, 0.5), "missing alone"),
        ((0, 2, 3), (1.0, 1.0, 1.0), "without gaps"),
        ((0, 0), (0.5, 0.5), "each of 3 codes"),
        ((0, 0, 1), (0.5, 0.4, 1.0), "add up to 1"),
        ((0, 0, 1), (1.5, -0.5, 1.0), "add up to 1"),
    ],
)
def test_wrong_groups_are_refused(groups: tuple[int, ...], shares: tuple[float, ...], problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        Merged(Categorical("place", ("a", "b"), missing=True), groups, shares)


# --- the stage


def people(rows: int = 3000, seed: int = 0) -> Table:
    rng = np.random.default_rng(seed)
    ages = np.clip(rng.gamma(6, 6, rows), 0, 119).astype(int)
    ages[rng.random(rows) < 0.3] = 40
    codes = np.minimum(rng.zipf(1.7, rows) - 1, 199)
    schema = Schema(
        (
            Categorical("age", tuple(range(120)), ordered=True, merge=True, missing=True),
            Categorical("code", tuple(f"{i:03d}" for i in range(200)), prefixes=(1, 2)),
            Categorical("sex", ("f", "m")),
        )
    )
    return Table(schema, (ages, codes, rng.integers(0, 2, rows)))


def test_the_stage_costs_its_share_and_the_rest_is_for_the_run() -> None:
    refining = Refining(people().schema)
    facts = Facts(3000, 0.5)
    asked = refining.asked(facts)
    assert sum(one.rho for one in asked) == pytest.approx(0.5 * refining.share)
    assert sum(one.rho for one in asked) + refining.after(facts).rho <= 0.5
    assert {one.queries.scope for one in asked} == {(0,), (1,)}
    assert [one.queries.size for one in asked if one.queries.scope == (1,)] == [2, 20, 200]
    assert refining.planned.domain.sizes == (16, 32, 2)
    assert [most_groups(column) for column in refining.schema.columns[:2]] == [16, 32]


@pytest.mark.parametrize("more", [{}, {"relation": "add-remove", "delta": 1e-7}], ids=str)
def test_the_account_allows_for_the_noise_on_fine_columns(more: dict[str, Any]) -> None:
    """A plan in other units than rows, such as weighted residuals, has noise far above that of fine columns."""
    rng = np.random.default_rng(0)
    age = Grid("age", bounds=(0, 100), integer=True)
    schema = Schema((age, Categorical("sex", ("f", "m"))))
    frame = pd.DataFrame({"age": rng.gamma(6, 7, 3000).clip(0, 99).astype(int), "sex": ["f", "m"] * 1500})
    chosen = {"settings": {"rows": 20, "t_max": 10}, "method": "hdmm", "workload": "marginals:2"}
    job = prepare(frame, schema=schema, epsilon=3.0, insecure_noise_seed=0, **chosen, **more)
    after = job.refined(job.curator)
    stage, charged = job.stage, job.curator.ledger.entries[-1]
    assert stage is not None
    assert stage.refining is not None
    assert charged.rho == stage.refining.asked(job.facts_before)[-1].rho
    assert stage.refining.phase(job.facts_before).noise == (charged.scale, charged.scale)
    assert job.curator.ledger.least_scale is not None
    assert job.curator.ledger.least_scale <= charged.scale < 25
    assert after.schema.domain.sizes[0] == 16


def test_groups_keep_what_the_counts_show() -> None:
    table = people(50_000)
    refining = Refining(table.schema)
    facts = Facts(50_000, 1.0)
    exact = [
        Measurement(
            one.queries, one.queries.of_marginal(np.bincount(table.codes[i], minlength=table.domain.sizes[i])), 1.0
        )
        for one in refining.asked(facts)
        for i in one.queries.scope
    ]
    schema = refining.merged(exact, facts)
    age = schema.columns[0]
    assert isinstance(age, Merged)
    assert age.size <= 16
    assert age.groups.count(age.groups[40]) == 1  # the point mass
    assert age.groups.count(age.groups[120]) == 1  # missing
    source = MergedSource(TableSource(table), schema)
    merged = np.concatenate([batch[0] for batch in source.batches()])
    decoded = age.drawn(merged, np.random.default_rng(0))
    assert abs(decoded.mean() - table.codes[0].mean()) < 0.5
    with pytest.raises(ValueError, match="asked for"):
        refining.merged(exact[::-1], facts)


def options(**more: Any) -> dict[str, Any]:
    return {"epsilon": 5.0, "delta": 1e-6, "insecure_noise_seed": 3, "rows": 200} | SMALL | more


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"relation": "add-remove"},
        {"method": "mwem", "settings": {"rounds": 3}, "workload": "marginals:1"},
        {"method": "rap_softmax", "settings": {"rounds": 2, "picks": 1, "rows": 20, "t_max": 5}},
    ],
    ids=str,
)
def test_a_release_with_refined_columns(more: dict[str, Any], tmp_path: Path) -> None:
    table = people()
    release = synth(table, out=tmp_path / "r", **options(**more))
    loaded = Release.load(tmp_path / "r")
    assert loaded.refined is not None
    assert loaded.refined.schema == table.schema
    assert loaded.schema.columns == release.schema.columns
    assert release.description.privacy.rho_spent <= release.description.privacy.rho
    decoded = loaded.table.to_pandas()
    assert list(decoded.columns) == ["age", "code", "sex"]
    assert decoded["age"].dropna().between(0, 119).all()
    assert set(decoded["code"]) <= set(table.schema.columns[1].labels)
    report = verify(tmp_path / "r", replay=True)
    assert {one.name: one.status for one in report.checks if one.status == "failed"} == {}
    assert "2 merged columns" in report["columns"].reason


def test_groups_that_do_not_follow_from_the_counts_are_found(tmp_path: Path) -> None:
    synth(people(), out=tmp_path / "r", **options())
    path = tmp_path / "r" / "release.json"
    text = path.read_text()
    at = text.index('"shares"')
    first = text.index("0.", at)
    path.write_text(text[:first] + "0.9999" + text[first + 6 :])
    assert not verify(tmp_path / "r").ok


def test_a_run_with_fine_columns_resumes_from_every_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table, chosen = people(), options()
    reference = synth(table, out=tmp_path / "whole", **chosen)
    append = Journal.append
    resumed = 0
    for number in (2, 3, 4, 5, 6):
        out = tmp_path / f"r{number}"
        count = iter(range(1000))

        def dying(journal: Journal, *args: Any, stop: int = number, count: Any = count, **more: Any) -> None:
            if next(count) == stop:
                raise KeyboardInterrupt
            append(journal, *args, **more)

        with monkeypatch.context() as patch:
            patch.setattr(Journal, "append", dying)
            try:
                synth(table, out=out, **chosen)
                break
            except (RunStopped, KeyboardInterrupt):
                pass  # the run that is resumed below
        if not out.exists():
            continue
        spent = [entry for record in journal_of(out) if record.kind == "charge" for entry in record.data["entries"]]
        release = resume(out, table)
        resumed += 1
        assert all(map(np.array_equal, release.table.codes, reference.table.codes))
        assert len(spent) <= len(release.description.privacy.ledger)
        assert release.description.privacy.ledger == reference.description.privacy.ledger
    assert resumed >= 3


@pytest.mark.parametrize("relation", ["replace", "add-remove"])
def test_releases_of_different_tables_are_identical_where_the_noise_is_blind(relation: str, blind_noise: None) -> None:
    first = synth(people(seed=1), **options(relation=relation))
    second = synth(people(3000 if relation == "replace" else 700, seed=2), **options(relation=relation))
    assert first.schema == second.schema
    assert all(map(np.array_equal, first.table.codes, second.table.codes))


@pytest.mark.parametrize("relation", ["replace", "add-remove"])
@pytest.mark.parametrize("where", ["fit", "rows"])
def test_a_run_that_stops_when_all_is_spent_is_resumed(
    where: str, relation: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen = options(relation=relation, method="mwem", settings={"rounds": 3}, workload="marginals:1")
    reference = synth(people(), **chosen)

    def failing(*arguments: Any, **more: Any) -> None:
        raise OSError("no memory")

    with monkeypatch.context() as patch:
        patch.setattr(job_module, "run" if where == "fit" else "drawn_rows", after_all(failing, where))
        with pytest.raises(RunStopped) as stop:
            synth(people(), out=tmp_path / "r", **chosen)
    assert stop.value.before is not None
    assert len(stop.value.before.measurements) == 4
    release = resume(tmp_path / "r")  # without the table: all was measured
    assert all(map(np.array_equal, release.table.codes, reference.table.codes))
    assert release.description.privacy.ledger == reference.description.privacy.ledger


def after_all(failing: Any, where: str) -> Any:
    """The loop, which fails after its last round; or what fails at once."""
    whole = job_module.run

    def last(*arguments: Any, **more: Any) -> Any:
        whole(*arguments, **more)
        failing()

    return last if where == "fit" else failing


def test_rounds_that_the_groups_might_not_have_are_refused_before_anything_is_spent(charges: list[Any]) -> None:
    more = {"method": "mwem", "group": "query", "workload": "marginals:1", "settings": {"rounds": 15}}
    with pytest.raises(InputError, match="rounds must pick at most the workload's 5 groups"):
        prepare(people(), **options(**more))
    assert charges == []


def test_a_column_of_points_alone_is_carried_as_it_is() -> None:
    schema = Schema((Grid("x", bounds=(0, 3), integer=True, points=(0, 1, 2, 3)), Categorical("b", (0, 1))))
    codes = np.arange(400) % 4
    release = synth(Table(schema, (codes, codes % 2)), **options())
    assert release.schema.domain.sizes == (4, 2)


def test_queries_with_fixed_intervals_need_fixed_bins() -> None:
    table = people()
    product = Workload.of(table.domain, [Product.of(table.domain, {"age": "prefixes"})])
    with pytest.raises(InputError, match="give these columns edges"):
        prepare(table, **options(workload=product))
    marginal = Workload.of(table.domain, [("age", "sex")])
    job = prepare(table, **options(workload=marginal))
    assert job.task.workload.domain.sizes == (16, 32, 2)


def test_a_job_with_fine_columns_runs_once() -> None:
    job = prepare(people(), **options())
    job.run()
    with pytest.raises(Exception, match="run already"):
        job.run()


def test_one_value_of_five_thousand_is_no_obstacle() -> None:
    rng = np.random.default_rng(0)
    values = tuple(f"{i:05d}" for i in range(5000))
    schema = Schema(
        (Categorical("code", values, prefixes=(1, 2, 3)), Categorical("b", (0, 1)), Categorical("c", (0, 1)))
    )
    b = rng.integers(0, 2, 20_000)
    codes = np.minimum(rng.zipf(1.5, 20_000) - 1, 4999)
    release = synth(Table(schema, (codes, b, b)), **options(epsilon=1.0))
    made = release.table.to_pandas()
    assert (made["b"] == made["c"]).mean() > 0.9
    assert release.schema.domain.sizes[0] <= 32
    assert set(made["code"]) <= set(values)
