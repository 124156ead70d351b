"""The stage that discovers values: what it asks for and costs, what it may come to, and what follows from it."""

from __future__ import annotations

from fractions import Fraction

import pytest

from pointillist import Categorical, Discovered, InputError, Relation, Schema
from pointillist.data.columns.discovered import MOST_DISCOVERED
from pointillist.privacy.curator import Found
from pointillist.privacy.facts import Facts
from pointillist.privacy.mechanisms import gaussian_scale
from pointillist.privacy.thresholds import log_shown, threshold_of
from pointillist.refining import Listing
from pointillist.refining.listing import MOST_SHARE, SHARE

FACTS = Facts(10_000, 0.1)


def listing_of(count: int = 1, **more: bool) -> Listing:
    columns = [Discovered(f"c{n}", **more) for n in range(count)]  # type: ignore[arg-type]
    return Listing(Schema((Categorical("a", (0, 1)), *columns)), 1e-9)


@pytest.mark.parametrize("count", [1, 2, 3, 4, 10])
def test_the_shares_of_rho_and_delta(count: int) -> None:
    listing = listing_of(count)
    asked = listing.asked(FACTS)
    assert [one.column for one in asked] == [f"c{n}" for n in range(count)]
    assert listing.share == min(MOST_SHARE, count * SHARE)
    assert sum(one.rho for one in asked) == pytest.approx(listing.share * FACTS.rho)
    assert sum(Fraction(one.delta) for one in asked) <= Fraction(listing.shown)
    assert sum(one.delta for one in asked) == pytest.approx(listing.shown)
    left = listing.after(FACTS)
    assert Fraction(left.rho) + sum(Fraction(one.rho) for one in asked) <= Fraction(FACTS.rho)
    assert left.rho == pytest.approx(FACTS.rho * (1 - listing.share))


@pytest.mark.parametrize("facts", [FACTS, Facts(10_000, 0.1, Relation.ADD_REMOVE, 5.0, 3)], ids=str)
def test_the_threshold_is_that_of_the_curator(facts: Facts) -> None:
    listing = listing_of(2)
    one = listing.asked(facts)[0]
    square = 2 if facts.relation is Relation.REPLACE else 9
    sigma = gaussian_scale(one.rho, square)
    assert listing.phase(facts).noise == (sigma, sigma)
    assert listing.threshold(facts) == threshold_of(one.delta, sigma, facts.rows_per_unit)
    assert log_shown(listing.threshold(facts), sigma, facts.rows_per_unit) < -20


def test_no_more_values_are_listed_than_rows_could_have_so_often() -> None:
    listing = listing_of()
    assert listing.most(FACTS) == FACTS.total // listing.threshold(FACTS) > 10
    assert listing.most(Facts(10**9, 0.1)) == MOST_DISCOVERED
    assert listing.most(Facts(2, 0.1)) == 1


def test_a_budget_that_can_show_nothing_is_refused() -> None:
    listing_of().require_use(FACTS, 1.0)
    for rho in (1e-8, 1e-30):
        with pytest.raises(InputError, match="epsilon must leave the discovery of values a threshold that 10,000 rows"):
            listing_of().require_use(Facts(10_000, rho), 1e-3)


def found(values: tuple[str, ...], counts: tuple[int, ...], threshold: int = 100) -> Found:
    return Found("c0", values, counts, 15.0, threshold)


def test_the_schema_that_the_run_goes_on_with() -> None:
    listing = listing_of()
    schema = listing.listed([found(("x", "y"), (300, 200))], 1000)
    assert schema.columns[0] is listing.schema.columns[0]
    assert schema.columns[1].labels == ("x", "y", "other")
    assert "c0 2" in listing.found(schema)
    most = listing.listed([found(("x", "y", "z"), (150, 300, 200))], 250)
    assert most.columns[1].labels == ("y", "z", "other")  # two of them could have 100 rows
    none = listing.listed([found((), ())], 1000)
    assert none.domain.sizes == (2, 2)
    with pytest.raises(ValueError, match="must be those that were asked for"):
        listing_of(2).listed([found((), ())], 1000)


def test_what_the_run_may_come_to() -> None:
    assert [one.domain.sizes[1] for one in listing_of().possible(40)] == [42, 2]
    assert [one.domain.sizes[1] for one in listing_of().possible(1000)] == [130, 2, 1002]
    assert [one.domain.sizes[1] for one in listing_of(merge=True).possible(1000)] == [1002, 2]
    fine = [[column.fine for column in one.columns] for one in listing_of().possible(1000)]
    assert fine == [[False, False], [False, False], [False, True]]


def test_the_stage_in_words() -> None:
    text = listing_of(7).describe(FACTS)
    assert "15% of the budget and 1e-09 of delta discover the values of c0, c1, c2, c3, c4 and 2 more first" in text
    assert f"a noisy count of {listing_of(7).threshold(FACTS):,} or more" in text
