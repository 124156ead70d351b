"""Rows from a model that obey the rules of the schema: drawn again where they do not, and repaired in the end.

Where the model is a mixture of product distributions and the columns of rules have few combinations, these columns are
drawn again together, from the product of the same row of the mixture restricted to what is allowed: the other columns
stay as they are. Otherwise whole rows are drawn again until they are allowed, which draws from the model *given* the
rules. A row that is still not allowed after some tries is changed in as few columns as possible. In the end rows are
brought nearer to the model's answers (:mod:`pointillist.release.matching`), and go on to obey. All of this is
post-processing, so that what it did to the rows can be published.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from pointillist.checks import at_least, check, whole
from pointillist.data.messages import fragment
from pointillist.data.obeying import Group
from pointillist.data.schema import Schema
from pointillist.data.table import Table
from pointillist.errors import Shown
from pointillist.families.conditioning import Allowed, Joint, Mixture, draw_given
from pointillist.framework import Family
from pointillist.queries.base import Queries
from pointillist.release.matching import Limits, Matched, match_rows

__all__ = ["Drawn", "Rows", "draw_rows", "drawn_rows"]

MOST_COMBINATIONS = 10_000
"""Rules whose columns have more combinations are obeyed by drawing whole rows again."""

TRIES = 20
"""How often rows are drawn again."""

SPARE = 64
"""Rows that are drawn at least whenever rows are drawn again."""

MORE = 1.2
"""This many times the rows that are expected to be needed are drawn again, but never more than a table's rows."""

CHUNK = 1_000
"""Combinations that are repaired at a time."""


@dataclass(frozen=True)
class Drawn:
    """What the rules did to the rows of a release.

    Attributes:
        rejected: the share of the rows that were drawn first and broke a rule.
        repaired: the share of the rows that were changed, because none of the tries gave an allowed one.
        masked: the share of the rows of which only the columns of rules were drawn again.
        moved: how far the values of the column ``column`` were moved by the rules: the total variation distance between
            its shares in the rows that were drawn first and in those that obey. It is the largest of all columns.
        column: that column.
    """

    rejected: float
    repaired: float
    masked: float = field(default=0.0, metadata={"optional": True})
    moved: float = field(default=0.0, metadata={"optional": True})
    column: str = field(default="", metadata={"optional": True})

    def describe(self) -> str:
        """All of it in one line."""
        again = max(0.0, self.rejected - self.masked - self.repaired)
        parts = f"{self.masked:.2%} got other values in the columns of rules, {again:.2%} were drawn again"
        text = f"{self.rejected:.2%} of the rows broke one at first: {parts}, {self.repaired:.2%} repaired"
        return f"{text}; {fragment(self.column)} moved most, by {self.moved:.4f} (tvd)" if self.column else text


class Rows(NamedTuple):
    """Rows of a model.

    Attributes:
        table: the rows.
        rules: what the rules of the schema did to them; None without rules.
        matched: how near they are to the model; None if they are as they were drawn.
    """

    table: Table
    rules: Drawn | None
    matched: Matched | None


def draw_rows(
    family: Family[Any],
    params: Any,
    schema: Schema,
    rows: int,
    seed: int,
    stream: int = 0,
    allowed: Allowed | None = None,
    wanted: Sequence[Queries] = (),
) -> Table:
    """A table of rows drawn from a model, which obey the rules of the schema.

    Args:
        family, params: the model.
        schema: the columns and rules.
        rows: the number of rows.
        seed: the seed of the draw.
        stream: another one gives other rows for the same seed.
        allowed: a condition: the probabilities with which codes are kept, by the position of the column.
        wanted: queries that the rows are to answer as the model does, as well as they can
            (:mod:`pointillist.release.matching`). Rows on a condition, and those of models that are no mixtures of
            products, stay as they were drawn.
    """
    return drawn_rows(family, params, schema, rows, seed, stream, allowed, wanted).table


def drawn_rows(
    family: Family[Any],
    params: Any,
    schema: Schema,
    rows: int,
    seed: int,
    stream: int = 0,
    allowed: Allowed | None = None,
    wanted: Sequence[Queries] = (),
) -> Rows:
    """The rows of :func:`draw_rows`, and what was done to them.

    Args:
        family, params, schema, rows, seed, stream, allowed, wanted: as in :func:`draw_rows`.
    """
    at_least("rows", whole("rows", rows), 1, 1000)
    key = [seed, (1 << 32) + stream]
    found, rules = _obeying(family, params, schema, key, rows, allowed)
    codes, labels = found[: len(schema.columns)], found[len(schema.columns) :]
    if not wanted or not labels or not isinstance(family, Mixture):
        return Rows(Table(schema, tuple(codes)), rules, None)
    small, large = _by_size(schema)
    limits = Limits(tuple(_joint(group) for group in small), frozenset(n for group in large for n in group.positions))
    rng = np.random.default_rng([*key, TRIES + 1])
    codes, matched = match_rows(family, params, schema.domain, codes, labels[0], wanted, limits, rng)
    return Rows(Table(schema, tuple(codes)), rules, matched)


def _obeying(
    family: Family[Any], params: Any, schema: Schema, key: Sequence[int], rows: int, allowed: Allowed | None
) -> tuple[Sequence[np.ndarray], Drawn | None]:
    """Rows that obey the rules, and what the rules did to them. As in :func:`_sampled`, labels may follow the codes."""
    if not schema.rules:
        return _sampled(family, params, key, rows, allowed), None
    first, codes = _first(family, params, schema, key, rows, allowed)
    kept = [np.array(one) for one in codes]
    broken = ~_workable(schema, first)
    bad = np.flatnonzero(~_workable(schema, kept))
    rate, masked = 1 - len(bad) / rows, int(broken.sum()) - len(bad)
    positions = sorted({n for group in schema.rule_groups for n in group.positions})
    seen = {n: [kept[n].copy()] for n in positions}
    for n in range(TRIES):
        if not len(bad):
            break
        spare = min(SPARE, rows) if allowed else SPARE  # what is rare is not drawn more often than it was asked for
        again = int(np.clip(MORE * len(bad) / max(rate, 1e-9), spare, max(rows, spare)))
        more = _sampled(family, params, [*key, n], again, allowed)
        good = np.flatnonzero(_workable(schema, more))
        rate = (rate + len(good) / again) / 2
        used = good[: len(bad)]
        for one, new in zip(kept, more, strict=True):
            one[bad[: len(used)]] = new[used]
        for place, parts in seen.items():
            parts.append(more[place])
        bad = bad[len(used) :]
    if len(bad):
        drawn = {place: np.concatenate(parts).astype(np.int64) for place, parts in seen.items()}
        rng = np.random.default_rng([*key, TRIES])
        for group in schema.rule_groups:
            _repair(group, kept, drawn, bad, rng, allowed or {})
    moved, column = _most_moved(schema, first, kept)
    return kept, Drawn(float(broken.mean()), len(bad) / rows, masked / rows, moved, column)


def _by_size(schema: Schema) -> tuple[list[Group], list[Group]]:
    """The groups of rules whose columns have few combinations, and the others."""
    found: tuple[list[Group], list[Group]] = [], []
    for group in schema.rule_groups:
        found[math.prod(column.size for column in group.columns) > MOST_COMBINATIONS].append(group)
    return found


def _joint(group: Group) -> Joint:
    return Joint(group.positions, group.mask)


def _first(
    family: Family[Any], params: Any, schema: Schema, key: Sequence[int], rows: int, allowed: Allowed | None
) -> tuple[Sequence[np.ndarray], Sequence[np.ndarray]]:
    """Rows as the model has them, and with the columns of rules drawn again where the family can do that."""
    small, _ = _by_size(schema)
    if not small or not isinstance(family, Mixture):
        codes = _sampled(family, params, key, rows, allowed)
        return codes, codes
    rng, joints = np.random.default_rng(key), [_joint(group) for group in small]
    first, codes, labels = family.sample_masked(rng, params, rows, joints, allowed)
    return first, codes if allowed else (*codes, labels)


def _most_moved(schema: Schema, first: Sequence[np.ndarray], last: Sequence[np.ndarray]) -> tuple[float, str]:
    """The largest total variation distance between the shares of a column in two tables, and the column."""
    found = []
    for column, before, after in zip(schema.columns, first, last, strict=False):
        counts = [np.bincount(one, minlength=column.size) for one in (before, after)]
        found.append((float(np.abs(counts[0] - counts[1]).sum()) / 2 / len(before), column.name))
    return max(found, key=lambda one: one[0])


def _sampled(
    family: Family[Any], params: Any, key: Sequence[int], rows: int, allowed: Allowed | None
) -> tuple[np.ndarray, ...]:
    """Rows of a model, on a condition or on none. If it is a mixture, and there is no condition, one more array says
    from which row of the mixture each of them comes."""
    rng = np.random.default_rng(key)
    if allowed:
        return draw_given(family, rng, params, rows, allowed)
    if not isinstance(family, Mixture):
        return family.sample(rng, params, rows)
    codes, labels = family.sample_labelled(rng, params, rows)
    return (*codes, labels)


def _workable(schema: Schema, codes: Sequence[np.ndarray]) -> np.ndarray:
    """Which rows obey the rules with some values of their codes."""
    good = np.ones(len(codes[0]), bool)
    for group in schema.rule_groups:
        good &= group.workable([codes[n] for n in group.positions])
    return good


def _repair(
    group: Group,
    kept: list[np.ndarray],
    drawn: Mapping[int, np.ndarray],
    bad: np.ndarray,
    rng: np.random.Generator,
    allowed: Allowed,
) -> None:
    """Give rows that are not allowed the nearest allowed combination of codes; in place.

    Where changing one column is enough, the new code is drawn by how often the model has it. Otherwise the combination
    that differs in the fewest columns is taken from those that the model was seen to have, by how often it has them,
    and in the end the one that is known to be allowed.

    Args:
        group: the rules and their columns.
        kept: the rows.
        drawn: the codes of all rows that were drawn from the model, by the position of the column.
        bad: which rows may have to be changed.
        rng: chooses among equally near ones.
        allowed: the condition that the rows meet, and must go on to meet.
    """
    columns = [kept[n] for n in group.positions]
    bad = bad[~group.workable([one[bad] for one in columns])]
    if not len(bad):
        return
    model = [drawn[n] for n in group.positions]
    good = group.workable(model)
    pool, _, times = group.distinct([one[good] for one in model])
    shares = [np.bincount(one, minlength=c.size) + 1e-3 for one, c in zip(model, group.columns, strict=True)]
    shares = [share * (allowed.get(n, 1.0) > np.zeros(1)) for n, share in zip(group.positions, shares, strict=True)]
    free = not set(group.positions) & set(allowed)
    distinct, places, often = group.distinct([one[bad] for one in columns])
    rows_of = np.split(bad[np.argsort(places, kind="stable")], np.cumsum(often)[:-1])
    for start in range(0, len(distinct), CHUNK):
        for n, (options, weights) in enumerate(_one_changed(group, distinct[start : start + CHUNK], shares), start):
            if not len(options):
                options, weights = _nearest(distinct[n], pool, times) if len(pool) else _known(group, free)
            chosen = options[rng.choice(len(options), len(rows_of[n]), p=weights / weights.sum())]
            for one, new in zip(columns, chosen.T, strict=True):
                one[rows_of[n]] = new


def _known(group: Group, free: bool) -> tuple[np.ndarray, np.ndarray]:
    """The combination that is known to be allowed, unless there is a condition on its columns."""
    rule = f"must be a condition under which the rules on {fragment(list(group.names))} allow a row (none was found)"
    check(free, "given", Shown("one that contradicts them"), rule, "give other values, or fewer of them")
    return np.array([group.allowed()], np.int64), np.ones(1)


def _one_changed(
    group: Group, rows: np.ndarray, shares: Sequence[np.ndarray]
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """For each row every allowed combination that differs in one column, and how often the model has that code."""
    options = []
    for n, share in enumerate(shares):
        some = np.repeat(rows[:, None, :], len(share), axis=1)
        some[:, :, n] = np.arange(len(share))
        options.append(some)
    every, weights = np.concatenate(options, axis=1), np.concatenate(shares)
    good = group.workable(list(every.reshape(-1, rows.shape[1]).T)).reshape(every.shape[:2]) & (weights > 0)
    for one, allowed in zip(every, good, strict=True):
        yield one[allowed], weights[allowed]


def _nearest(row: np.ndarray, pool: np.ndarray, times: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The combinations that differ from a row in the fewest columns, and how often each was seen."""
    far = (pool != row).sum(axis=1)
    near = far == far.min()
    return pool[near], times[near].astype(float)
