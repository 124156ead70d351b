"""The command line of the benchmarks, and what they share with the experiments."""

from __future__ import annotations

from importlib import import_module
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from benchmarks import __main__ as benchmarks
from benchmarks import coverage, edges, forecast, many_values, scale, scale_fits, scale_wide
from measuring import data
from measuring.data import pack, public_of, table_of, workload_of
from measuring.machine import commit, machine, seconds, versions
from measuring.markdown import fill, markers, section, table, write
from measuring.runs import run_method, run_once

from pointillist import InputError, Table
from pointillist.data.domain import Domain
from pointillist.data.kernel import joints_of
from pointillist.planning import Features


def test_a_table_has_its_heads_and_cells() -> None:
    assert table(("a", "b"), [(1, "x|y")]) == "| a | b |\n| --- | --- |\n| 1 | x\\|y |"
    assert section("Title", ("a",), [], "A note.", level=2) == "## Title\n\n| a |\n| --- |\n\nA note.\n"
    assert section("Title", ("a",), [(1,)]) == "# Title\n\n| a |\n| --- |\n| 1 |\n"


def test_blocks_are_written_between_their_markers() -> None:
    begin, end = markers("x")
    assert fill(f"a\n{begin}\nold\n{end}\nb\n", "page", {"x": "new"}) == f"a\n{begin}\nnew\n{end}\nb\n"
    for text in ("no markers", begin, f"{begin}{end}{begin}{end}", "{}{}".format(*markers("y"))):
        with pytest.raises(SystemExit, match="page: "):
            fill(text, "page", {"x": "new"})


def test_only_files_that_changed_are_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "page.md"
    assert write({path: "text"}, "make it", check=True) == 1
    assert capsys.readouterr().err == f"{path}: a table is out of date; run make it\n"
    assert not path.exists()
    assert write({path: "text"}, "make it", check=False) == 0
    assert write({path: "text"}, "make it", check=True) == 0
    assert path.read_text() == "text"


def test_facts_of_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    assert seconds(lambda: None, 3) < 1
    assert len(commit().removesuffix("-changed")) in (7, 10)
    assert versions("numpy", "no-such-package").keys() == {"python", "numpy"}
    monkeypatch.setenv("POINTILLIST_MACHINE", "a large one")
    assert machine() == "a large one"


def test_a_shuffled_public_table_keeps_its_columns_but_not_their_correlations() -> None:
    private = table_of("demo")
    plain, shuffled = public_of(private, "demo"), public_of(private, "demo shuffled")
    assert plain.rows == shuffled.rows == len(private)
    single = [(attribute,) for attribute in range(len(private.domain))]
    assert all(map(np.array_equal, plain.count(single), shuffled.count(single)))
    assert not np.array_equal(plain.count([(0, 1)])[0], shuffled.count([(0, 1)])[0])


def test_packed_tables_are_read_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    original = table_of("demo")
    assert pack(tmp_path, ["demo", "demo shuffled"]) == ["demo"]
    assert [path.name for path in tmp_path.iterdir()] == ["demo.npz"]
    monkeypatch.setenv("POINTILLIST_PACKED", str(tmp_path))
    data._dataset.cache_clear()
    try:
        packed = table_of("demo")
    finally:
        data._dataset.cache_clear()
    assert packed.domain == original.domain
    assert all(map(np.array_equal, packed.codes, original.codes))


def test_a_run_has_the_grouping_that_is_asked_for() -> None:
    demo = table_of("demo").project(["district", "age", "occupation"])
    workload = workload_of(demo, "2")
    made = run_once(demo, workload, "mwem", {"rounds": 1}, 1.0, 0, grouping="query")
    assert made.answers().shape == (workload.size,)
    assert len(made.rows()) == len(demo)
    first, _ = run_method(demo, workload, "mwem", {"rounds": 1}, 1.0, 0, "query")
    second, _ = run_method(demo, workload, "mwem", {"rounds": 1}, 1.0, 0, "marginal")
    assert first != second


def test_benchmarks_can_be_imported_and_are_described() -> None:
    for name in benchmarks.NAMES:
        module = import_module(f"benchmarks.{name}")
        assert module.__doc__
        assert callable(module.run)
        assert (benchmarks.RESULTS / f"{name}.md").is_file()


def test_a_benchmark_is_printed_and_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(benchmarks, "RESULTS", tmp_path)
    monkeypatch.setattr(import_module("benchmarks.solvers"), "run", lambda: "# Solvers\n")
    assert benchmarks.main(["solvers"]) == 0
    assert not list(tmp_path.iterdir())
    assert benchmarks.main(["solvers", "--write"]) == 0
    text = (tmp_path / "solvers.md").read_text()
    assert text.startswith("# Solvers\n\nPython 3.")
    assert text in capsys.readouterr().out
    with pytest.raises(SystemExit):
        benchmarks.main(["solver"])


@pytest.mark.slow
def test_a_column_with_many_values_is_not_worse_than_independent_columns() -> None:
    found = many_values.measured(20_000, 0)
    private = found["independent, private"]
    for name in ("a list", "with prefixes", "with public shares", "with both"):
        assert all(error < base for error, base in zip(found[name], private, strict=True)), name
    assert found["with prefixes"][1] < found["a list"][1]
    assert found["with public shares"][1] < 0.8 * found["a list"][1]


def test_oracle_bins_have_common_numbers_alone() -> None:
    values = np.concatenate([np.zeros(900), np.arange(1, 101)])
    found = edges.oracle(values, 5, True)
    assert found[:2] == [0, 1]
    assert len(found) == 6
    assert np.histogram(values, found)[0][1:].max() <= 30


def test_ways_to_count_agree_and_the_plan_adds_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POINTILLIST_SCALE_ROWS", "3e3,1000")
    assert scale.sizes_wanted() == [1000, 3000]
    made = list(scale.batches(3000))
    assert sum(len(batch[0]) for batch in made) == 3000
    expected = scale.by_kernel(made)
    for count in (scale.by_prefixes, scale.by_bincount):
        assert all(np.array_equal(a, b) for a, b in zip(count(made), expected, strict=True))
    text, cost = scale.growing([1000])
    assert "| 1,000 |" in text
    assert cost > 0
    assert "| vectors that are shuffled | 2,853 on 3 levels |" in scale.planned(cost)  # 2,500, then 313, then 40


def made_up_case(table: str, noise: float, columns: float, tvd: float) -> forecast.Measured:
    features = Features(noise, 3.0, 0.3, 0.5, columns, 2.0, 4.0, 7.0, 9.0, noise, noise, noise)
    return forecast.Measured(
        forecast.Case(table, "marginals:2", "replace", 1.0, "auto"), {"tvd": tvd}, features, features
    )


def test_a_law_is_found_again_and_keeps_its_signs() -> None:
    rng = np.random.default_rng(0)
    points = [(float(noise), float(columns)) for noise, columns in rng.normal(size=(200, 2))]
    features = [made_up_case("adult", *point, 0.1).plain for point in points]
    terms = ("constant", "noise", "columns")
    found = forecast.fit(features, [1 + 0.5 * noise - 2 * columns for noise, columns in points], terms, {"noise": 1})
    assert list(found.values()) == pytest.approx([1, 0.5, -2], abs=0.01)
    bound = forecast.fit(features, [1 - 0.5 * noise - 2 * columns for noise, columns in points], terms, {"noise": 1})
    assert bound["noise"] == pytest.approx(0, abs=1e-6)


def test_a_law_is_judged_on_tables_of_other_origins() -> None:
    """Tables of one origin that are all twice as bad show a residual of log 2: none of them was fitted."""
    cases = [made_up_case(f"adult {n}", float(n), 1.0, 0.2) for n in range(5)]
    cases += [made_up_case(f"uk2011 {n}", float(n), 1.0, 0.1) for n in range(5)]
    found = forecast.residuals(cases, "tvd", ("constant", "noise"), lambda one: one.plain, {})
    assert len(found) == 10
    assert all(abs(value) == pytest.approx(np.log(2), abs=1e-6) for value in found.values())


def test_only_the_kinds_of_answers_that_are_missing_are_judged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "c.csv"
    coverage.append(path, [coverage.Line("demo", 1.0, 0, "means", "any", 5, 4, 0.3, float("nan"), 1.0)])
    asked: list[list[str]] = []

    def judged(name: str, epsilon: float, seed: int, kinds: list[str]) -> list[coverage.Line]:
        asked.append(kinds)
        return [coverage.Line(name, epsilon, seed, kind, "any", 1, 1, 0.1, 0.1, 1.0) for kind in kinds]

    monkeypatch.setattr(coverage, "judged", judged)
    for name, text in (("TABLES", "demo"), ("EPSILONS", "1"), ("SEEDS", "0"), ("KINDS", "means;ranges")):
        monkeypatch.setenv(f"POINTILLIST_COVERAGE_{name}", text)
    for _ in range(2):
        coverage.make_missing(path)
    assert asked == [["ranges"]]
    monkeypatch.setenv("POINTILLIST_COVERAGE_KINDS", "slopes")
    with pytest.raises(InputError, match="regression slopes"):
        coverage.make_missing(path)


def test_coverage_goes_on_where_it_stopped(tmp_path: Path) -> None:
    lines = [
        coverage.Line("demo", 0.1, 0, "measured cells", "0", 10, 9, 0.1, 0.2, 1.0),
        coverage.Line("demo", 0.1, 1, "measured cells", "0", 10, 10, 0.3, float("nan"), 1.0),
        coverage.Line("demo", 1.0, 0, "means", "any", 5, 4, 0.3, float("nan"), 1.0),
    ]
    coverage.append(tmp_path / "c.csv", lines[:1])
    coverage.append(tmp_path / "c.csv", lines[1:])
    found = coverage.read(tmp_path / "c.csv")
    assert [one[:7] for one in found] == [one[:7] for one in lines]
    assert coverage.summary(found, [0.1, 1.0], "epsilon") == [
        ["measured cells", "0", "20", "0.950", "", "0.950"],
        ["means", "any", "5", "", "0.800", "0.800"],
    ]
    assert coverage.read(tmp_path / "none.csv") == []
    coverage.plot(found, tmp_path / "c.svg")
    assert "</svg>" in (tmp_path / "c.svg").read_text()


def test_slopes_are_those_of_least_squares() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.integers(0, 5, 500), rng.integers(0, 3, 500)
    made = Table(coverage.numbered(Domain(("z", "x", "y"), (20, 5, 3))), (2 * x + 3 * y, x, y))
    found, variances = coverage.slopes(made)
    assert found[:2] == pytest.approx([2.0, 3.0])
    assert variances[:2] == pytest.approx([0.0, 0.0], abs=1e-12)
    assert coverage.class_of(np.array([0.0, 1e-4, 5e-3, 0.5])).tolist() == [0, 1, 2, 3]


def test_wide_tables_are_made_up_and_joints_are_planned_as_before() -> None:
    made = scale_wide.table(30, rows=100)
    assert (len(made), len(made.domain)) == (100, 30)
    pairs = list(combinations(range(30), 2))
    new = joints_of(made.domain, pairs, scale_wide.BATCH)
    old = scale_wide.by_matrix(made.domain, pairs, scale_wide.BATCH)
    assert {joint.members for joint in new} == {joint.members for joint in old}
    assert sorted(place for joint in new for place in joint.members) == list(range(len(pairs)))


def test_a_name_also_means_the_benchmarks_that_continue_it() -> None:
    assert benchmarks.wanted(["scale"]) == ["scale", "scale_wide", "scale_fits"]
    assert benchmarks.wanted(["scale_wide"]) == ["scale_wide"]
    assert len(benchmarks.wanted([])) > 10


def test_terms_are_chosen_without_the_origin_that_they_are_judged_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """A term that only helps on one origin is not chosen for it."""
    monkeypatch.setattr(forecast, "MOST_TERMS", 1)
    rng = np.random.default_rng(0)
    cases = [
        made_up_case(f"{origin} {n}", float(noise), float(columns), float(np.exp(noise + (origin == "demo") * columns)))
        for origin in ("adult", "uk2011", "demo")
        for n, (noise, columns) in enumerate(rng.normal(size=(8, 2)))
    ]
    found = forecast.chosen_anew(cases, "tvd", ("columns", "order"), lambda one: one.plain, {})
    off = {case.origin: [value for other, value in found.items() if other.origin == case.origin] for case in found}
    assert len(found) == 24
    assert np.std(off["demo"]) > 0.3


def test_only_known_tables_are_fitted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("POINTILLIST_FITS", raising=False)
    assert scale_fits.names_wanted() == list(scale_fits.MARGINALS)
    monkeypatch.setenv("POINTILLIST_FITS", "loans,adult")
    assert scale_fits.names_wanted() == ["loans", "adult"]
    monkeypatch.setenv("POINTILLIST_FITS", "loan")
    with pytest.raises(InputError, match=r"POINTILLIST_FITS must be one of .*loans"):
        scale_fits.names_wanted()
