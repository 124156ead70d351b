"""The page for the public: complete, escaped, from the release alone, and small."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import numpy as np
import pytest
from tests.answers.small import small_release
from tests.reports.made import HOSTILE, IMAGE, LONG, SCRIPT, hostile_release, hostile_table
from tests.reports.parsed import Page

from pointillist import InputError, Release, Table, Workload, load, synthesize
from pointillist.data.neighbours import Unit
from pointillist.framework import Log, Round
from pointillist.queries.measurement import Measurement
from pointillist.queries.residuals import Residual, Residuals
from pointillist.release import WithSchema
from pointillist.reports import Evidence, Statements, public_report
from pointillist.reports.figures import column_figures, corrected_v, crossed, strongest_ties, summaries_of, trust_in
from pointillist.reports.labels import MOST_BARS, bars_of, span_name
from pointillist.reports.promise import Loss, guess, loss_of
from pointillist.reports.spending import spending

STATED = Statements.from_dict(
    {
        "title": f"Town {SCRIPT}",
        "holder": IMAGE,
        "collection": "By post.\n\nIn 2026 & later.",
        "citation": "Cite <me>.",
        "published": "2026-01-31",
    }
)
SECTIONS = ["what", "promise", "exactly", "evaluation", "ledger", "columns", "ties", "trust", "cite", "verify"]
BLOCKS = (
    "Privacy parameters", "Unit of privacy", "Mechanisms", "Accounting", "Utility", "Bias", "Trust and threat model",
    "Implementation", "Before the run", "Access", "Security", "Data collection",
)  # fmt: skip


@pytest.fixture(scope="module")
def residual() -> Release:
    """A release whose method has measured residuals."""
    return small_release(insecure_noise_seed=None)


@pytest.fixture(scope="module")
def page(release: Release) -> Page:
    return Page(public_report(release, STATED, Evidence({"synthetic.csv": "ab" * 32}, [("files", "five")])))


def test_it_is_one_page_with_all_sections(page: Page) -> None:
    assert page.open == []
    assert [one["id"] for one in page.all("section")] == SECTIONS
    links = [one["href"] for one in page.all("a")]
    assert links == ["#main", *(f"#{name}" for name in SECTIONS)]
    assert all(block in page.text for block in BLOCKS)
    names = [one["id"] for _, one in page.elements if "id" in one]
    assert len(names) == len(set(names))


def test_what_others_wrote_is_text_and_never_an_element(page: Page) -> None:
    assert {name for name, _ in page.elements}.isdisjoint({"script", "img", "iframe", "object", "link", "form", "b"})
    assert all(not name.startswith("on") for _, attributes in page.elements for name in attributes)
    for text in (
        SCRIPT,
        IMAGE,
        "</style>",
        "<b>years</b> since birth",
        "country</title>",
        "Cite <me>.",
        "e-mail & name",
    ):
        assert text in page.text
    assert len(page.all("style")) == 1


def test_nothing_is_loaded_from_elsewhere(page: Page) -> None:
    policy = next(one["content"] for one in page.all("meta") if one.get("http-equiv"))
    assert policy is not None
    assert policy.startswith("default-src 'none'; style-src 'unsafe-inline'")
    kinds = {"src", "srcset", "data", "action", "poster", "background"}
    assert not [attributes for _, attributes in page.elements if kinds & attributes.keys()]
    style = page.style
    assert "@import" not in style
    assert set(re.findall(r"url\(([^)]*)\)", style)) == {"#hatched"}


def test_charts_have_titles_descriptions_and_tables(page: Page, release: Release) -> None:
    charts = [one for one in page.all("svg") if one.get("aria-hidden") is None]
    assert len(charts) == len(release.schema.columns) + 3  # the budget, the ties, the trust
    names = {one["id"] for _, one in page.elements if "id" in one}
    for one in charts:
        assert one["role"] == "img"
        assert set((one["aria-labelledby"] or "").split()) <= names
    captions = [one for one in page.all("div") if one.get("role") == "region"]
    assert len(captions) >= len(charts)
    assert all(one["tabindex"] == "0" and one["aria-label"] for one in captions)


def test_it_shows_the_statement_and_every_charge(page: Page, release: Release) -> None:
    assert " ".join(release.statement.split()) in page.text
    assert f"All {len(release.description.privacy.ledger)} charges" in page.text
    assert "ab" * 32 in page.text
    assert "Data collection How, when and from whom, as the holder states: By post. In 2026 & later." in page.text
    assert "Who sees the release and the real data: not stated by the holder." in page.text


def test_it_is_made_from_the_release_alone(
    release: Release, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A release that was saved and loaded again, elsewhere, gives the same page; counting a table is an error."""
    folder = release.save(tmp_path_factory.mktemp("alone") / "release")

    def refuse(*_: object) -> None:
        raise AssertionError("nothing may be counted")

    counting = ("pointillist.data.sources.count", "pointillist.queries.counting.exact_counts")
    for name in (*counting, "pointillist.data.table.read_csv"):
        monkeypatch.setattr(name, refuse)
    assert public_report(Release.load(folder)) == public_report(release)


def test_seeded_noise_is_announced_loudly(seeded: Release, page: Page) -> None:
    found = Page(public_report(seeded))
    assert found.text.count("NOT PRIVATE") >= 3
    assert [one for one in found.all("aside") if one["class"] == "banner"]
    assert "Differentially private: the protection" not in found.text
    assert "the promise would be" in found.text
    assert "NOT PRIVATE" not in page.text


def test_private_numbers_of_rows_are_said_to_be_noisy() -> None:
    found = hostile_release(relation="add-remove", delta=1e-6)
    page = Page(public_report(found))
    assert "Real rows about" in page.text
    assert "measured with noise" in page.text
    assert "whether one row is in it" in page.text
    assert spending(found)[0].name == "the number of rows"


def test_a_unit_and_a_paid_schema_are_part_of_the_promise(release: Release) -> None:
    privacy = release.description.privacy
    both = WithSchema(0.5, 1e-7, 1.4, 7e-6)
    changed = replace(privacy, relation="add-remove", unit=Unit("person<b>", 3), with_schema=both)
    about = replace(release.description, privacy=changed)
    page = Page(public_report(replace(release, description=about)))
    assert loss_of(about) == Loss(1.4, 7e-6)
    assert "Epsilon 1.4" in page.text
    assert "all rows of one person<b>" in page.text
    assert "its charges are in the schema of release.json" in page.text
    assert "which cost (0.5, 1 \u00d7 10\u207b\u2077)" in page.text


@pytest.mark.parametrize(("epsilon", "delta", "right"), [(0.0, 0.0, 0.5), (math.log(3), 0.0, 0.75), (1e-9, 0.5, 0.75)])
def test_the_best_guess(epsilon: float, delta: float, right: float) -> None:
    assert guess(Loss(epsilon, delta)) == pytest.approx(right, abs=1e-6)


def test_the_ledger_is_named_by_what_was_asked(release: Release, fine: Release) -> None:
    groups = spending(release)
    assert [one.name for one in groups] == ["choices of what to measure", "counts of 2 columns"]
    assert sum(len(one.entries) for one in groups) == len(release.description.privacy.ledger)
    assert sum(one.rho for one in groups) == pytest.approx(release.description.privacy.rho_spent)
    assert spending(fine)[0].name == "counts of fine columns, for their groups"


def test_the_noise_of_residuals_is_told_in_rows_on_a_cell(release: Release, residual: Release) -> None:
    """They are counts times large numbers, and so are the scales that were charged."""
    measured, found = residual.log.measurements[-1], spending(residual)[-1]
    assert isinstance(measured.queries, Residuals)
    assert found.name == "residuals of many columns together"
    rows = [measured.sigma / (part.weight * part.size) for part in measured.queries.parts]
    assert found.noise == pytest.approx((min(rows), max(rows)))
    assert found.noise[1] < residual.log.total < measured.sigma
    page = Page(public_report(residual))
    assert f"{min(rows):,.4g} to {max(rows):,.4g}" in page.text
    assert "its standard deviation, as a number of rows on a cell" in page.text
    assert "Residuals are counts of rows times large whole numbers" in page.text
    assert "Residuals are counts" not in Page(public_report(release)).text


def test_shares_are_those_of_the_rows_and_intervals_hold_them(release: Release) -> None:
    first, age, smoker = column_figures(release, 0.95)
    codes = release.table.codes
    assert smoker.shares.tolist() == [np.mean(codes[2] == int(name == "yes")) for name in smoker.bars.names]
    assert age.bars.names == ("0 to 17", "18 to 64", "65 to 120", "(missing)")
    assert set(first.bars.names) == {"a", IMAGE, LONG, "</style>"}
    for one in (first, age, smoker):
        assert one.shares.sum() == pytest.approx(1)
        known = ~np.isnan(one.low)
        assert (one.low[known] <= one.high[known]).all()
        assert [row[4] for row in one.rows()] == one.unsure.tolist()


def test_replicates_give_intervals_to_every_answer_and_to_means(release: Release) -> None:
    found = release.replicate(2)
    trust = trust_in(found, 0.95)
    assert all(one.unknown == 0 for one in trust.classes)
    page = Page(public_report(found))
    assert "They come from 2 simulated runs on the model" in page.text
    mean, median = summaries_of(found, 0.95)["age"]
    assert mean.low <= mean.estimate <= mean.high
    assert median.low <= median.estimate <= median.high
    assert re.search(r"Mean [0-9.]+ \([0-9.]+ to [0-9.]+\); median [0-9.]+ \([0-9.]+ to [0-9.]+\)", page.text)
    assert summaries_of(release, 0.95) == {}


def test_fine_columns_have_readable_bars(fine: Release) -> None:
    born, income, place = column_figures(fine, 0.95)
    for one in (born, income, place):
        assert len(one.bars.names) <= MOST_BARS
        assert len(set(one.bars.names)) == len(one.bars.names)
        assert one.shares.sum() == pytest.approx(1)
    assert born.bars.names[0].startswith("1950-01-01")
    assert born.bars.names[-1].endswith("2009-12-31")
    assert income.bars.names[0] == "0"
    assert income.bars.names[-1].endswith("100,000")
    assert place.bars.names[-1].endswith("other values") or len(place.bars.names) <= MOST_BARS
    Page(public_report(fine))


def test_bars_of_many_values() -> None:
    table = load("demo")
    age = table.schema.columns[table.domain.names.index("age")]
    shares = np.bincount(table.codes[table.domain.names.index("age")], minlength=age.size) / len(table)
    few = bars_of(age, shares, most=3)
    assert len(few.names) == 3
    assert few.names[0].startswith("18 to")
    assert few.names[-1].endswith("95")
    assert list(few.groups) == sorted(few.groups)
    district = table.schema.columns[0]
    some = bars_of(district, np.array([0.1, 0.4, 0.2, 0.2, 0.1]), most=3)
    assert some.names == ("Mill Lane", "Harbour", "3 other values") or some.names[-1] == "3 other values"
    assert span_name(age, 0, 0) == "18 to 24"


def test_ties_are_corrected_for_chance() -> None:
    rng = np.random.default_rng(0)
    first, second = rng.integers(0, 20, 500), rng.integers(0, 20, 500)
    assert corrected_v(first, second) < 0.1
    assert corrected_v(first, first) == pytest.approx(1, abs=1e-6)
    assert corrected_v(first, np.zeros(500, int)) == 0.0


def test_ties_say_whether_they_were_measured(release: Release) -> None:
    ties = strongest_ties(release)
    assert len(ties) == 3
    assert ties == sorted(ties, key=lambda one: -one.strength)
    measured = {one.queries.scope for entry in release.log.rounds for one in entry.measurements}
    assert {one.measured for one in ties if one.names == (SCRIPT, "age")} == {(0, 1) in measured}


def test_crossed_columns_are_shares_of_lines(release: Release, fine: Release) -> None:
    found = crossed(release, ("age", "smoker"))
    age, smoker = release.table.codes[1], release.table.codes[2]
    assert found.rows == ("0 to 17", "18 to 64", "65 to 120", "(missing)")
    at = found.columns.index("yes")
    assert found.shares[:, at].tolist() == [pytest.approx(np.mean(smoker[age == n] == 1)) for n in range(4)]
    small = crossed(fine, ("income", "place"))
    assert small.shares.shape == (len(small.rows), len(small.columns))
    assert len(small.rows) <= 8
    assert len(small.columns) <= 5


def test_trust_is_about_intervals_that_are_wider_than_answers(release: Release, wide: Release) -> None:
    trust = trust_in(release, 0.95)
    assert trust.answers == trust.of == release.workload.size
    assert sum(one.answers for one in trust.classes) == trust.answers
    assert trust.classes[-1].unsure >= trust.classes[-1].unknown
    assert trust.doubtful
    assert all(one.high - one.low > one.estimate for one in trust.doubtful)
    assert [one.estimate for one in trust.doubtful] == sorted((one.estimate for one in trust.doubtful), reverse=True)
    assert " = " in trust.doubtful[0].text
    nothing = trust_in(wide, 0.95)
    assert nothing.doubtful == ()
    assert nothing.safe is None
    assert all(one.unsure == one.answers == one.unknown for one in nothing.classes)


def test_a_wide_release_gives_a_small_page(wide: Release) -> None:
    text = public_report(wide)
    page = Page(text)
    assert len(page.all("article")) == 42
    assert len(text) < 600_000
    assert "No answer of the workload is large enough" in page.text
    assert "unknown unknown no interval is known" in page.text
    assert "Nothing was charged." in page.text


def test_a_residual_is_about_all_of_its_columns_and_no_fewer(residual: Release) -> None:
    domain, names = residual.schema.domain, residual.schema.names
    scopes = ((0, 1), (0, 1, 2))
    queries = Residuals(tuple(Residual(scope, domain.shape(scope), 1) for scope in scopes))
    log = Log(residual.log.facts, [Round(measurements=(Measurement(queries, np.zeros(queries.size, int), 1.0),))])
    ties = strongest_ties(replace(residual, log=log))
    assert [one.names for one in ties if one.measured] == [(names[0], names[1])]


def test_a_column_alone_has_no_ties() -> None:
    table = Table(HOSTILE.project(["smoker"]), hostile_table().codes[2:3])
    workload = Workload.of(table.domain, ["smoker"])
    found = synthesize(table, epsilon=1.0, method="mwem", settings={"rounds": 1}, workload=workload)
    assert "There is one column only." in Page(public_report(found)).text


def test_the_page_does_not_depend_on_when_it_is_made(release: Release) -> None:
    assert public_report(release, STATED) == public_report(release, STATED)


@pytest.mark.parametrize("level", [0.0, 1.0, 2.0, math.nan])
def test_levels_are_between_0_and_1(release: Release, level: float) -> None:
    with pytest.raises(InputError, match="level must be above 0 and below 1"):
        public_report(release, level=level)
