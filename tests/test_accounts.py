"""The account that lasts: composition, the cap under every order of runs, the file, and processes that are killed."""

from __future__ import annotations

import contextlib
import itertools
import json
import math
import os
import random
import sqlite3
import subprocess
import sys
import threading
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld

from pointillist import BudgetError, InputError, PointillistError, Relation
from pointillist.accounts import Account, AccountExceeded, Booking
from pointillist.cli_account import account_app
from pointillist.privacy.budget import Budget, epsilon_of, log_delta_of, rho_of
from pointillist.privacy.composition import (
    Booked,
    Filter,
    gaussian_epsilon_of,
    mixed_epsilon_of,
    mixed_log_delta_of,
    round_up,
)
from pointillist.privacy.gaussian import gaussian_log_delta_of, gaussian_rho_of
from pointillist.privacy.ledger import Ledger

HAMMER = Path(__file__).with_name("hammer_account.py")
DELTA = 1e-9


def zcdp(epsilon: float, delta: float = DELTA, relation: Relation = Relation.REPLACE) -> Ledger:
    return Ledger(Budget(epsilon, delta, relation))


def gaussian(epsilon: float, scale: float = 10.0, delta: float = DELTA) -> Ledger:
    return Ledger(Budget(epsilon, delta), scale)


def with_rho(rho: float, scale: float | None = None) -> Ledger:
    """A ledger with this limit."""
    ledger = Ledger(Budget(1.0, DELTA), scale)
    ledger.limit = rho
    return ledger


@pytest.fixture
def account(tmp_path: Path) -> Account:
    return Account.create(tmp_path / "town.account", 1.0, DELTA)


# --- composition ---

SIGMA = 10.0
UNIT = 1 / (2 * SIGMA**2)
"""Losses are whole multiples of it: one row in counts with noise of scale 10 loses (2 y - 1) / (2 sigma^2)."""
STRONG = 0.1
"""epsilon of a randomized response, which costs 0.1^2 / 2 in zCDP: as much as the Gaussian noise."""
STEP_RHO = Fraction(1, 200)
REACH = 4000


def noise_step() -> tuple[np.ndarray, np.ndarray]:
    """Losses, in units, and their probabilities under the second table: discrete Gaussian noise."""
    y = np.arange(-90, 91)
    p = np.exp(-(y**2) / (2 * SIGMA**2))
    return 2 * y - 1, p / p.sum()


def response_step() -> tuple[np.ndarray, np.ndarray]:
    """The same of a randomized response: the worst that is 0.1-DP."""
    loss = round(STRONG / UNIT)
    return np.array([loss, -loss]), np.array([1, math.exp(STRONG)]) / (1 + math.exp(STRONG))


def after(values: np.ndarray, step: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    """The expectation of a function of the loss, one step earlier."""
    out = np.zeros_like(values)
    for loss, probability in zip(*step, strict=True):
        moved = np.full_like(values, values[-1] if loss > 0 else 0.0)
        low, high = max(0, -loss), min(len(values), len(values) - loss)
        moved[low:high] = values[low + loss : high + loss]
        out += probability * moved
    return out


def payoff(epsilon: float) -> np.ndarray:
    return np.maximum(np.exp(np.arange(-REACH, REACH + 1) * UNIT) - math.exp(epsilon), 0)


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 2.0])
def test_the_mixed_bound_holds_for_exact_sums_of_both_kinds(epsilon: float) -> None:
    """Some Gaussian noise and some randomized responses, summed exactly; the bound is not below the truth."""
    for noises, responses in itertools.product((1, 4, 9), (1, 5)):
        values = payoff(epsilon)
        for step in [noise_step()] * noises + [response_step()] * responses:
            values = after(values, step)
        bound = math.exp(mixed_log_delta_of(responses / 200, noises / 200, epsilon, SIGMA))
        assert values[REACH] <= bound


@pytest.mark.parametrize("delta", [1e-9, 1e-4])
@pytest.mark.parametrize(
    ("z", "g"), [(0.01, 0.01), (1e-4, 0.02), (0.02, 1e-4), (1e-9, 0.02), (0.02, 1e-9), (0.5, 0.5), (3.0, 1e-3)]
)
def test_the_mixed_bound_is_between_the_truth_and_the_other_bounds(z: float, g: float, delta: float) -> None:
    mixed = mixed_epsilon_of(z, g, delta, 100.0)
    shares = np.concatenate([np.logspace(-6, -1, 20), np.linspace(0.1, 0.9, 17), 1 - np.logspace(-6, -1, 20)])
    split = min(gaussian_epsilon_of(g, delta * w, 100.0) + epsilon_of(z, delta * (1 - w)) for w in shares)
    assert mixed <= split * (1 + 1e-3)
    assert mixed <= epsilon_of(z + g, delta) * (1 + 1e-3)
    assert mixed >= gaussian_epsilon_of(z + g, delta, 1e9) * (1 - 1e-9)  # all of it could be Gaussian
    loss = pld.from_gaussian_mechanism(
        1 / math.sqrt(2 * (z + g)), value_discretization_interval=1e-3 * math.sqrt(z + g), pessimistic_estimate=False
    )
    assert loss.get_epsilon_for_delta(delta) <= mixed * (1 + 1e-9)


def test_the_mixed_bound_becomes_the_others_where_one_part_vanishes() -> None:
    for epsilon in (0.2, 1.0, 3.0):
        as_gaussian = mixed_log_delta_of(1e-13, 0.02, epsilon, 10.0)
        assert as_gaussian == pytest.approx(gaussian_log_delta_of(0.02, epsilon, 10.0), abs=0.12)
        assert as_gaussian >= gaussian_log_delta_of(0.02, epsilon, 10.0)
        as_zcdp = mixed_log_delta_of(0.02, 1e-13, epsilon, 10.0)
        assert as_zcdp == pytest.approx(log_delta_of(0.02, epsilon), abs=1e-3)
        assert as_zcdp >= log_delta_of(0.02, epsilon)
    assert mixed_log_delta_of(1.0, 1.0, 1e9, 10.0) > -700  # what underflows is not counted as nothing
    assert mixed_log_delta_of(1e3, 1e3, 1.0, 10.0) == 0


@pytest.mark.parametrize("delta", [1e-12, 1e-9, 1e-3])
@pytest.mark.parametrize("rho", [1e-6, 0.01, 1.0, 20.0])
def test_the_gaussian_epsilon_is_the_inverse(rho: float, delta: float) -> None:
    epsilon = gaussian_epsilon_of(rho, delta, 10.0)
    assert gaussian_log_delta_of(rho, epsilon, 10.0) <= math.log(delta)
    assert epsilon == 0 or gaussian_log_delta_of(rho, epsilon * (1 - 1e-6), 10.0) > math.log(delta)


def test_totals_take_the_best_bound() -> None:
    nothing = Booked()
    assert nothing.epsilon(DELTA) == (0.0, "zCDP")
    rho = Fraction(0.01)
    only = nothing.plus(rho, 10.0)
    assert only.epsilon(DELTA) == (gaussian_epsilon_of(0.01, DELTA, 10.0), "Gaussian")
    assert only.plus(rho, 3.0).least_scale == 3.0
    both = only.plus(Fraction(0.0001), None)
    assert both.epsilon(DELTA)[1] == "mixed"
    assert both.epsilon(DELTA)[0] < epsilon_of(round_up(both.rho), DELTA)
    assert nothing.plus(rho, None).epsilon(DELTA) == (epsilon_of(0.01, DELTA), "zCDP")
    assert nothing.plus(Fraction(0), None).plus(Fraction(0), 3.0) == nothing


# --- the cap, whatever the order and the choices ---


def steps(g: int, z: int) -> Booked:
    """What some steps of noise and some randomized responses cost."""
    return Booked(z * STEP_RHO, g * STEP_RHO, SIGMA if g else math.inf)


class Game:
    """All games against a filter: by the loss so far, an adversary chooses the next step, or to stop.

    What they gain is the delta at epsilon.
    """

    def __init__(self, chosen: Filter, epsilon: float) -> None:
        self.chosen = chosen
        self.epsilon = epsilon
        self.states: dict[tuple[int, int], np.ndarray] = {}

    def best(self, g: int, z: int) -> np.ndarray:
        """The largest expected payoff, for each loss so far, after g and z steps."""
        if (g, z) not in self.states:
            values = payoff(self.epsilon)
            for step, more in ((noise_step(), (g + 1, z)), (response_step(), (g, z + 1))):
                if self.chosen.allows(steps(*more)):
                    values = np.maximum(values, after(self.best(*more), step))
            self.states[g, z] = values
        return self.states[g, z]


@pytest.mark.parametrize(("g", "z"), [(1, 0), (0, 1)])
def test_the_best_adaptive_choice_of_steps_stays_below_delta(g: int, z: int) -> None:
    """Exact values of the best strategy, with either kind of step as the first one."""
    first = noise_step() if g else response_step()
    game = Game(Filter.opening(1.0, 1e-3, steps(g, z)), epsilon=1.0)
    assert after(game.best(g, z), first)[REACH] <= 1e-3
    assert len(game.states) > 20  # many steps fit
    generous = Game(Filter.opening(1.4, 1e-3, steps(g, z)), epsilon=1.0)
    assert after(generous.best(g, z), first)[REACH] > 1e-3  # a filter that lets in too much is found out


RUNS = [(0.45, None), (0.3, None), (0.5, 100.0), (0.55, 10.0), (0.6, 10.0), (0.35, 3.0)]
"""Runs of which about half fit under an epsilon of 1."""


def test_no_order_of_runs_exceeds_the_cap() -> None:
    """All orders: what was let in keeps the promise by the rule that the first run fixed, and by the reported bound."""
    costs = [(Fraction(Ledger(Budget(epsilon, DELTA), scale).limit), scale) for epsilon, scale in RUNS]
    ends = set()
    for order in itertools.permutations(costs):
        chosen = Filter.opening(1.0, DELTA, Booked().plus(*order[0]))
        assert Fraction(chosen.zcdp_delta) + Fraction(chosen.gaussian_delta) <= Fraction(DELTA)
        booked = Booked()
        for rho, scale in order:
            after_it = booked.plus(rho, scale)
            assert chosen.allows(after_it) == (rho <= chosen.left(booked, scale))
            booked = after_it if chosen.allows(after_it) else booked
        as_zcdp = bool(chosen.zcdp_delta) and booked.rho <= Fraction(rho_of(1.0, chosen.zcdp_delta))
        alone = not booked.zcdp and booked.least_scale >= chosen.least_scale
        limit = Fraction(gaussian_rho_of(1.0, chosen.gaussian_delta or 1e-300, chosen.least_scale))
        assert as_zcdp or (alone and booked.gaussian <= limit)
        ends.add(booked)
    assert len(ends) > 3
    assert all(booked.epsilon(DELTA)[0] <= 1 + 1e-9 for booked in ends)


def test_the_first_run_decides_what_delta_is_for() -> None:
    opening = Filter.opening
    assert opening(1.0, DELTA, Booked().plus(Fraction(0.001), None)) == Filter(1.0, DELTA, 0.0, math.inf)
    assert opening(1.0, DELTA, Booked()) == Filter(1.0, DELTA, 0.0, math.inf)
    for scale, least in ((100.0, 10.0), (10.0, 10.0), (3.0, 3.0)):
        small = opening(1.0, DELTA, Booked().plus(Fraction(0.001), scale))
        assert small == Filter(1.0, DELTA / 2, DELTA / 2, least)
    nearly = Booked().plus(Fraction(gaussian_rho_of(1.0, DELTA / 2, 100.0)), 100.0)
    assert opening(1.0, DELTA, nearly) == Filter(1.0, DELTA / 2, DELTA / 2, 100.0)
    whole = Booked().plus(Fraction(gaussian_rho_of(1.0, DELTA, 100.0)), 100.0)
    assert opening(1.0, DELTA, whole) == Filter(1.0, 0.0, DELTA, 100.0)


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 3.0])
def test_half_of_delta_costs_what_the_page_says(epsilon: float) -> None:
    for rho in (rho_of, lambda epsilon, delta: gaussian_rho_of(epsilon, delta, 10.0)):
        assert rho(epsilon, DELTA / 2) / rho(epsilon, DELTA) == pytest.approx(0.96, abs=0.006)


@pytest.mark.parametrize("ledger", [zcdp(1.0), gaussian(1.0, 100.0), gaussian(1.0), gaussian(1.0, 3.0)])
def test_a_run_with_the_budget_of_the_account_fits_and_nothing_else_then(account: Account, ledger: Ledger) -> None:
    account.reserve("all", "", ledger)
    total = account.total()
    assert total.epsilon == pytest.approx(1, abs=1e-6)
    assert not total.exceeded
    for other in (zcdp(1e-3), gaussian(1e-3, 100.0)):
        with pytest.raises(AccountExceeded, match="the account is unchanged"):
            account.reserve("more", "", other)
    with pytest.raises(BudgetError):
        account.reserve("more", "", zcdp(0.5))
    assert len(account.history()) == 1


def test_a_little_more_than_the_budget_of_the_account_does_not_fit(account: Account) -> None:
    for limit, scale in ((rho_of(1.0, DELTA), None), (gaussian_rho_of(1.0, DELTA, 10.0), 10.0)):
        with pytest.raises(AccountExceeded) as refused:
            account.reserve("run", "", with_rho(math.nextafter(limit, 1), scale))
        assert refused.value.left == limit
        assert account.history() == []
        assert account.total().runs == 0
    for k in range(3):  # exact sums: a third three times is more than the whole, however floats add up
        third = math.nextafter(rho_of(1.0, DELTA) / 3, 1)
        if k < 2:
            account.reserve(f"{k}", "", with_rho(third))
        else:
            with pytest.raises(AccountExceeded):
                account.reserve(f"{k}", "", with_rho(third))


def test_gaussian_runs_alone_get_more_than_as_zcdp_and_mixes_are_counted_as_zcdp(account: Account) -> None:
    part = with_rho(gaussian_rho_of(1.0, DELTA / 2, 10.0) / 8, 10.0)
    for k in range(8):
        account.reserve(f"g{k}", "", part)
    total = account.total()
    assert total.composition == "Gaussian"
    assert total.rho_gaussian > rho_of(1.0, DELTA)
    assert total.least_scale == 10.0
    with pytest.raises(AccountExceeded):
        account.reserve("z", "", zcdp(1e-3))
    for k in range(2):
        account.settle(f"g{k}", 0.0, done=True)
    account.reserve("z", "", with_rho(1e-4))
    assert account.total().composition == "mixed"
    left = account.total().left_zcdp
    assert account.total().left_gaussian == left
    with pytest.raises(AccountExceeded):
        account.reserve("g9", "", with_rho(math.nextafter(left, 1), 100.0))
    account.reserve("g9", "", with_rho(left, 100.0))
    assert account.total().epsilon < 1


def test_noise_below_the_least_scale_of_the_rule_counts_as_zcdp(account: Account) -> None:
    account.reserve("g", "", gaussian(0.5, 10.0))
    small = account.total().left_zcdp
    with pytest.raises(AccountExceeded) as refused:
        account.reserve("g3", "", with_rho(math.nextafter(small, 1), 3.0))
    assert refused.value.left == small < account.total().left_gaussian


def test_the_epsilon_that_a_refusal_names_is_let_in(account: Account) -> None:
    account.reserve("first", "", gaussian(0.4))
    for make in (zcdp, lambda epsilon: gaussian(epsilon, 100.0)):
        with pytest.raises(AccountExceeded) as refused:
            account.reserve("next", "", make(0.95))
        words = str(refused.value)
        assert words.count(".\n") == 0
        assert words.endswith(" for this run.")
        account.reserve("next", "", make(float(words.split("at most ")[2].split()[0])))
        account.settle("next", 0.0, done=True)
        account.reserve("next2", "", make(account.total().left[make(0.1).accounting]))
        account.settle("next2", 0.0, done=True)
        account.path.unlink()
        account = Account.create(account.path, 1.0, DELTA)
        account.reserve("first", "", gaussian(0.4))


@pytest.mark.parametrize("seed", range(4))
def test_any_sequence_of_calls_keeps_the_cap_and_the_sums(tmp_path: Path, seed: int) -> None:
    """Against a simple model of what must be in the account."""
    rng = random.Random(seed)
    account = Account.create(tmp_path / "a", 0.5, DELTA)
    ledgers = [Ledger(Budget(epsilon, DELTA), scale) for epsilon in (0.1, 0.2, 0.3) for scale in (None, 3.0, 10.0)]
    model: dict[str, tuple[Ledger, float, bool]] = {}
    refused = 0
    for _ in range(60):
        run, known = f"r{rng.randrange(8)}", account.history()
        ledger = model[run][0] if run in model else rng.choice(ledgers)
        if rng.random() < 0.6:
            try:
                account.reserve(run, "", ledger)
                model[run] = (ledger, model.get(run, (ledger, 0.0, False))[1], False)
            except AccountExceeded:
                refused += 1
                assert account.history() == known
        elif run in model:
            spent = min(ledger.limit, model[run][1] + ledger.limit * rng.random() / 5)
            done = rng.random() < 0.8
            account.settle(run, spent, done)
            model[run] = (ledger, spent, done or model[run][2])
        counted = {name: Fraction(spent if done else one.limit) for name, (one, spent, done) in model.items()}
        assert {one.run: one.counts for one in account.history()} == counted
    total = account.total()
    assert refused > 0
    assert total.rho_zcdp == round_up(sum((counted[n] for n in model if model[n][0].least_scale is None), Fraction(0)))
    assert total.epsilon <= 0.5 or total.exceeded


# --- reserve and settle ---


def test_an_open_run_counts_in_full_until_it_is_settled(account: Account) -> None:
    ledger = zcdp(0.5)
    account.reserve("run", "first\n try", ledger)
    assert account.total().rho_zcdp == ledger.limit
    assert account.total().open == 1
    account.settle("run", ledger.limit / 4, done=False)  # stopped: it may go on
    assert account.total().rho_zcdp == ledger.limit
    account.reserve("run", "again", ledger)
    assert account.total().runs == 1
    account.settle("run", ledger.limit / 2, done=True)
    (found,) = account.history()
    assert (found.spent, found.done, found.label) == (Fraction(ledger.limit / 2), True, "first try")
    assert account.total().rho_zcdp == ledger.limit / 2
    assert account.total().open == 0


def test_a_run_that_goes_on_after_it_was_settled_books_its_budget_again(account: Account) -> None:
    ledger = zcdp(0.9)
    account.reserve("run", "", ledger)
    account.settle("run", ledger.limit / 2, done=True)
    account.reserve("run", "", ledger)
    assert account.total().rho_zcdp == ledger.limit
    account.settle("run", ledger.limit / 2, done=True)
    account.reserve("other", "", zcdp(0.6))
    with pytest.raises(AccountExceeded):
        account.reserve("run", "", ledger)
    assert account.total().open == 1
    account.settle("run", ledger.limit / 2, done=True)  # the same again changes nothing
    assert not account.total().exceeded


def test_a_run_that_spent_more_than_it_was_settled_with_is_not_forgotten(account: Account) -> None:
    ledger = zcdp(1.0)
    account.reserve("run", "", ledger)
    account.settle("run", 0.0, done=True)
    account.reserve("other", "", zcdp(0.9))
    account.settle("run", ledger.limit, done=True)
    total = account.total()
    assert total.exceeded
    assert total.statement.startswith("EXCEEDED")
    assert total.epsilon > 1
    assert total.left_zcdp == 0


def test_what_reserve_and_settle_refuse(account: Account) -> None:
    ledger, other = zcdp(0.5), zcdp(0.1, DELTA, Relation.ADD_REMOVE)
    account.reserve("run", "", ledger)
    account.settle("run", ledger.limit / 2, done=False)
    before = account.history()
    calls: list[tuple[str, Any]] = [
        ("run 'run' must keep the figures", lambda: account.reserve("run", "", zcdp(0.4))),
        ("run 'run' must keep the figures", lambda: account.reserve("run", "", with_rho(ledger.limit, 10.0))),
        ("relation must be that of the account", lambda: account.reserve("x", "", other)),
        ("run must be booked", lambda: account.settle("nobody", 0.0, True)),
        ("spent must be at most the rho", lambda: account.settle("run", math.nextafter(ledger.limit, 1), True)),
        ("spent must be at least what was settled", lambda: account.settle("run", ledger.limit / 3, True)),
        ("spent must be a finite number", lambda: account.settle("run", math.nan, True)),
        ("spent must be a finite number", lambda: account.settle("run", -1e-9, True)),
        ("spent must be a finite number", lambda: account.settle("run", 10**400, True)),
        ("spent must be a number", lambda: account.settle("run", "0.1", True)),
        ("spent must be a number", lambda: account.settle("run", True, True)),
    ]  # fmt: skip
    for bad in ("", "x" * 201, "a\nb", "\ud800", " a", None, 3):
        calls.append(("run must be a text of 1 to 200", lambda bad=bad: account.reserve(bad, "", ledger)))
    for words, call in calls:
        with pytest.raises(InputError, match=words) as refused:
            call()
        assert len(str(refused.value)) < 300
    assert account.history() == before


def test_labels_are_kept_on_one_line_and_cut(account: Account) -> None:
    account.reserve("run", "\ud800 " + "é\t" * 300, zcdp(0.1))
    (found,) = account.history()
    assert found.label.startswith("? é é")
    assert len(found.label) == 200


def test_values_come_back_exactly(account: Account) -> None:
    rho = 0.1 / 3**20
    account.reserve("run", "", with_rho(rho, 7.25))
    account.settle("run", rho / 7, done=True)
    (found,) = Account.open(account.path).history()
    assert isinstance(found, Booking)
    assert (found.rho, found.spent, found.least_scale) == (Fraction(rho), Fraction(rho / 7), 7.25)
    assert json.loads(json.dumps(found.to_dict()))["spent"] == rho / 7
    assert found.accounting == "Gaussian"


# --- the file ---


def test_only_the_owner_can_read_the_file(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        account = Account.create(tmp_path / "a", 1.0, DELTA)
        account.reserve("run", "", zcdp(0.1))
    finally:
        os.umask(before)
    assert [(path.name, path.stat().st_mode & 0o777) for path in tmp_path.iterdir()] == [("a", 0o600)]


def test_settings_of_the_file(account: Account) -> None:
    db = sqlite3.connect(account.path)
    assert db.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert db.execute("PRAGMA user_version").fetchone() == (1,)
    db.close()


def test_an_account_that_cannot_be_made_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = tmp_path / "kept"
    kept.write_text("precious")
    (tmp_path / "b-wal").write_text("of an account that was deleted")
    cases: list[tuple[str, Any, tuple[Any, ...]]] = [
        ("must not exist already", kept, (1.0, DELTA)),
        ("must not have a file of an earlier account next to it", tmp_path / "b", (1.0, DELTA)),
        ("must be in a folder that can be written to", tmp_path / "no" / "a", (1.0, DELTA)),
        ("must be in a folder that can be written to", tmp_path / ("a" * 300), (1.0, DELTA)),
        ("must be the path of a file", "a\0b", (1.0, DELTA)),
        ("epsilon must be", tmp_path / "a", (0.0, DELTA)),
        ("epsilon must be a number", tmp_path / "a", ("1", DELTA)),
        ("epsilon must be", tmp_path / "a", (10**400, DELTA)),
        ("delta must be", tmp_path / "a", (1.0, 1.0)),
        ("delta must be a number", tmp_path / "a", (1.0, None)),
        ("relation must be one of", tmp_path / "a", (1.0, DELTA, "swap")),
    ]
    for words, path, values in cases:
        with pytest.raises(InputError, match=words):
            Account.create(path, *values)
    monkeypatch.setattr("pointillist.accounts.TABLES", ("CREATE TABLE broken",))
    with pytest.raises(InputError, match="account must be"):
        Account.create(tmp_path / "a", 1.0, DELTA)
    assert {path.name for path in tmp_path.iterdir()} == {"kept", "b-wal"}
    assert kept.read_text() == "precious"


def test_files_that_are_no_accounts_are_refused_and_kept(tmp_path: Path) -> None:
    for name, content in {"empty": b"", "text": b"hello" * 1000, "header": b"SQLite format 3\0" + b"x" * 200}.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(InputError, match="account must be"):
            Account.open(tmp_path / name)
        assert (tmp_path / name).read_bytes() == content
    other = sqlite3.connect(tmp_path / "other")
    other.execute("CREATE TABLE account (epsilon)")
    other.close()
    for path in (tmp_path / "other", tmp_path / "missing", tmp_path, tmp_path / ("a" * 300)):
        with pytest.raises(InputError, match=r"must be an (existing )?account file"):
            Account.open(path)
    assert not (tmp_path / "missing").exists()


def test_damage_and_later_versions_are_noticed(account: Account) -> None:
    for k in range(40):
        account.reserve(f"run{k}", "label " * 20, with_rho(1e-6))
    good = account.path.read_bytes()
    damaged = bytearray(good)
    damaged[4096 * 3 : 4096 * 3 + 2000] = b"\xff" * 2000
    account.path.write_bytes(damaged)
    with pytest.raises(InputError, match="account must be undamaged"):
        Account.open(account.path)
    account.path.write_bytes(good)
    for change, words in {
        "PRAGMA user_version = 3": "must be of version 1 or 2 .it is of version 3.",
        "UPDATE runs SET rho = 'much' WHERE number = 7": "must be undamaged",
        "UPDATE runs SET rho = '1e999999999' WHERE number = 7": "must be undamaged",
        "UPDATE runs SET rho = '-1/3' WHERE number = 7": "must be undamaged",
        "UPDATE runs SET least_scale = 'x' WHERE number = 7": "must be undamaged",
        "UPDATE runs SET least_scale = 0.5 WHERE number = 7": "must be undamaged",
        "UPDATE runs SET spent = '5' WHERE number = 7": "must be undamaged",
        "UPDATE runs SET label = x'ff' WHERE number = 7": "must be undamaged",
        "UPDATE account SET zcdp_delta = 0.4": "must be undamaged",
        "UPDATE account SET zcdp_delta = 'x'": "must be undamaged",
        "UPDATE account SET epsilon = -1": "must be undamaged",
        "DELETE FROM account": "must be undamaged",
        "DROP TABLE runs": "must be undamaged",
    }.items():
        db = sqlite3.connect(account.path)
        with db:
            db.execute(change)
        db.close()
        with pytest.raises(InputError, match=words):
            Account.open(account.path)
        account.path.write_bytes(good)
    assert len(Account.open(account.path).history()) == 40


def test_a_second_name_for_the_file_is_refused_and_a_link_is_followed(account: Account) -> None:
    """SQLite's lock and journal follow the name: under two hard links the budget could be spent twice."""
    link = account.path.with_name("link")
    link.symlink_to(account.path)
    Account.open(link).reserve("run", "", zcdp(0.1))
    assert account.total().runs == 1
    os.link(account.path, account.path.with_name("second"))
    with pytest.raises(InputError, match=r"must have one name only .it has 2 hard links."):
        account.reserve("other", "", zcdp(0.1))


def test_an_account_in_use_is_waited_for_and_then_refused(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    other = sqlite3.connect(account.path, isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    release = threading.Timer(0.3, lambda: other.execute("COMMIT"))
    release.start()
    account.reserve("waits", "", zcdp(0.1))
    release.join()
    other.execute("BEGIN IMMEDIATE")
    monkeypatch.setattr("pointillist.accounts.PATIENCE", 0.05)
    with pytest.raises(InputError, match=r"must be free within 0.05 seconds"):
        account.reserve("late", "", zcdp(0.1))
    assert account.total().runs == 1  # reading does not wait for a writer
    other.execute("ROLLBACK")
    other.close()


def reserve_many(account: Account, runs: int) -> None:
    for k in range(runs):
        account.reserve(f"more{k}", "label " * 30, with_rho(1e-9))


def test_a_full_disk_is_one_sentence_and_changes_nothing(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    account.reserve("first", "", zcdp(0.1))

    class Full(sqlite3.Connection):
        """SQLite's own limit on the size of the file stands for the disk."""

        def execute(self, sql: str, *values: Any) -> sqlite3.Cursor:
            if sql.startswith("BEGIN"):
                (pages,) = super().execute("PRAGMA page_count").fetchone()
                super().execute(f"PRAGMA max_page_count = {pages}")
            return super().execute(sql, *values)

    connect = sqlite3.connect
    with monkeypatch.context() as patch:
        patch.setattr(sqlite3, "connect", lambda *given, **named: connect(*given, factory=Full, **named))
        with pytest.raises(InputError, match=r"disk is full.*; check its permissions and the space on its disk"):
            reserve_many(account, 200)
    found = [one.run for one in Account.open(account.path).history()]
    assert found == ["first", *(f"more{k}" for k in range(len(found) - 1))]
    account.reserve("later", "", zcdp(0.1))


# --- processes ---


def hammered(*arguments: str) -> Any:
    done = subprocess.run([sys.executable, HAMMER, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-5000:]  # with the tracebacks of workers that failed
    return json.loads(done.stdout)


def check_hammered(tmp_path: Path, kills: int) -> None:
    """What the workers were told is in the account, once; nothing else is; and the cap holds."""
    path = tmp_path / "account"
    seen = hammered("random", str(path), str(kills))
    assert seen["exceeded"] == 0
    assert seen["looks"] >= kills // 5
    notes = [line.split() for line in seen["notes"]]
    kinds = ("try", "reserved", "settle", "settled")
    told = {what: {run: float(rho) for kind, run, rho in notes if kind == what} for what in kinds}
    account = Account.open(path)
    bookings = account.history()
    found = {one.run: one for one in bookings}
    assert len(found) == len(bookings)
    assert told["reserved"].keys() <= found.keys() <= told["try"].keys()
    assert all(one.rho == Fraction(told["try"][run]) for run, one in found.items())
    assert all(found[run].done and found[run].spent == Fraction(spent) for run, spent in told["settled"].items())
    assert {run for run, one in found.items() if one.done} <= told["settle"].keys()
    assert all(one.counts == one.rho for one in bookings if not one.done)
    total = account.total()
    assert not total.exceeded
    assert total.epsilon <= 0.6
    counts = Counter(what for what, *_ in notes)
    assert counts["refused"] > 0  # the cap was reached
    assert counts["reserved"] > 20
    account.path.with_name("notes").unlink()
    assert [one.name for one in tmp_path.iterdir()] == ["account"]  # what killed processes left was cleared away


def test_processes_at_once_and_killed(tmp_path: Path) -> None:
    check_hammered(tmp_path, 60)


@pytest.mark.slow
def test_a_thousand_kills(tmp_path: Path) -> None:
    check_hammered(tmp_path, 1000)


def test_killed_at_every_statement(tmp_path: Path) -> None:
    """Before the commit nothing has happened, after it everything has; the last process of each kind lives."""
    seen = hammered("points", str(tmp_path), "0")
    limit = seen["limit"]
    ends = {
        "reserve": ("", f"run False {limit!r}"),
        "settle": (f"run False {limit!r}", f"run True {limit / 2!r}"),
    }
    for name, (before, behind) in ends.items():
        left = [what for _, what in seen[name]]
        assert left == [before] * (len(left) - 2) + [behind] * 2  # killed before it closed the file, and not killed
    for name in ("create", *ends):
        assert [dead for dead, _ in seen[name]] == [True] * (len(seen[name]) - 1) + [False]
        assert len(seen[name]) > 8
    left = [what for _, what in seen["create"]]
    assert left[-2:] == ["", ""]
    assert all(what.startswith("InputError: account must be an account file") for what in left[:-2])


class Contested(sqlite3.Connection):
    """A connection of a process that loses races: its first statements fail as SQLite lets them."""

    failures: ClassVar[list[str]] = []

    def execute(self, *arguments: Any) -> sqlite3.Cursor:
        if Contested.failures:
            raise sqlite3.OperationalError(Contested.failures.pop())
        return super().execute(*arguments)


@pytest.fixture
def contested(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    connect = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda *given, **named: connect(*given, factory=Contested, **named))
    monkeypatch.setattr(Contested, "failures", [])
    return Contested.failures


@pytest.mark.parametrize("words", ["database is locked", "locking protocol"])
def test_a_lost_race_for_the_file_is_run_again(account: Account, contested: list[str], words: str) -> None:
    contested += [words] * 3
    account.reserve("run", "", zcdp(0.1))
    contested += [words] * 3
    account.settle("run", 0.0, done=True)
    contested += [words] * 3
    assert [(one.run, one.done) for one in Account.open(account.path).history()] == [("run", True)]
    assert contested == []


@pytest.mark.parametrize("words", ["database is locked", "locking protocol"])
def test_waiting_ends_and_is_said(
    account: Account, contested: list[str], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pointillist.accounts.PATIENCE", 0.2)
    contested += [words] * 10_000
    with pytest.raises(InputError, match=r"must be free within 0\.2 seconds, .* wait for the other process"):
        account.reserve("run", "", zcdp(0.1))
    contested.clear()
    assert account.history() == []
    contested += ["disk I/O error"]
    with pytest.raises(InputError, match="check its permissions and the space on its disk"):
        account.reserve("run", "", zcdp(0.1))
    assert contested == []  # tried once


def test_a_writer_that_keeps_the_file_is_waited_for(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pointillist.accounts.PATIENCE", 0.3)
    with contextlib.closing(sqlite3.connect(account.path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(InputError, match="must be free within"):
            account.reserve("run", "", zcdp(0.1))
        assert account.history() == []  # readers do not wait
        other.execute("ROLLBACK")
    account.reserve("run", "", zcdp(0.1))
    assert len(account.history()) == 1


def test_threads_share_an_account(account: Account) -> None:
    ledger = zcdp(0.1)
    errors: list[Exception] = []

    def work(name: int) -> None:
        for k in range(5):
            try:
                account.reserve(f"{name}.{k}", "", ledger)
            except AccountExceeded as error:
                errors.append(error)

    threads = [threading.Thread(target=work, args=(name,)) for name in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    total = account.total()
    most = Fraction(rho_of(1.0, DELTA)) // Fraction(ledger.limit)
    assert total.runs == most == 100 - len(errors)
    assert 0 < len(errors) < 100


# --- words and commands ---


def test_the_statement_says_what_holds(account: Account) -> None:
    assert account.total().statement.endswith("Nothing is booked yet.")
    account.reserve("z", "", zcdp(0.3))
    account.settle("z", 0.0001, done=True)
    account.reserve("g", "", gaussian(0.3))
    words = account.total().statement
    assert words.startswith("All runs that this account lets in are together (1, 1e-09)-differentially private")
    assert "relation replace: two tables are neighbours if" in words
    assert "Booked by 2 runs, 1 of them open and counted in full: rho = 0.0001 in zCDP and 0.0016" in words
    assert "of Gaussian noise of scale 10 or more" in words
    assert "If no result of a run decided on the size of a later one, these are together (0.3" in words


def go(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """A command, with the errors as the main command shows them."""
    code: Any = 0
    capsys.readouterr()
    try:
        account_app(list(arguments))
    except SystemExit as end:
        code = end.code or 0
    except PointillistError as error:
        code = 2
        print(f"error: {error}", file=sys.stderr)
    return code, *capsys.readouterr()


def test_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = str(tmp_path / "town.account")
    code, out, _ = go(capsys, "create", file, "--epsilon", "2", "--delta", "1e-9", "--relation", "add-remove")
    assert code == 0
    assert f"wrote {file}" in out
    assert "(2, 1e-09)-differentially private, relation add-remove" in out
    account = Account.open(file)
    ledger = zcdp(0.5, DELTA, Relation.ADD_REMOVE)
    account.reserve("run-1", "mwem [bold]on demo", ledger)
    code, out, _ = go(capsys, "show", file)
    assert code == 0
    assert "1 of them open" in out
    assert "left for one more run" in out
    shown = json.loads(go(capsys, "show", file, "--json")[1])
    assert shown["cap"] == 2.0
    assert shown["rho_zcdp"] == ledger.limit
    assert shown["left_epsilon"].keys() == {"zCDP", "Gaussian"}
    code, out, _ = go(capsys, "history", file)
    assert code == 0
    assert all(words in out for words in ("run-1", "mwem [bold]on demo", repr(ledger.limit), "open", "1 run"))
    code, out, _ = go(capsys, "settle", file, "run-1", "--spent", repr(ledger.limit / 2))
    assert code == 0
    assert "settled run-1" in out
    (entry,) = json.loads(go(capsys, "history", file, "--json")[1])
    assert (entry["run"], entry["done"]) == ("run-1", True)
    assert entry["spent"] == entry["counts"] == ledger.limit / 2


def test_commands_refuse_in_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = str(tmp_path / "a")
    assert go(capsys, "create", file, "--epsilon", "1", "--delta", "1e-9")[0] == 0
    before = Path(file).read_bytes()
    for arguments in (
        ("create", file, "--epsilon", "1", "--delta", "1e-9"),
        ("create", file + "2", "--epsilon", "-1", "--delta", "1e-9"),
        ("create", file + "2", "--epsilon", "1", "--delta", "nan"),
        ("create", file + "2", "--epsilon", "1", "--delta", "1e-9", "--relation", "swap"),
        ("show", file + "3"),
        ("history", str(tmp_path)),
        ("settle", file, "nobody", "--spent", "0"),
    ):
        code, out, err = go(capsys, *arguments)
        assert (code, out) == (2, "")
        assert err.startswith("error: ")
        assert err.count("\n") == 1
    assert go(capsys, "create", file + "2")[0] == 2
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
    assert Path(file).read_bytes() == before
