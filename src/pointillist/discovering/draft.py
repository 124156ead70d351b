"""A private draft: a schema from public facts and charged measurements alone.

What is public without looking: the names of the columns and, if the file has types, the types. In a CSV file every cell
is a text. For columns of text a first share of the budget pays for noisy counts of the *kinds* of their cells. Then
every column gets an equal part of the rest: columns of numbers and dates for noisy counts on a public grid, from which
bounds follow, and columns of text for the discovery of their values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from pointillist.checks import between, check, real, whole
from pointillist.data.columns import Categorical, Identifier, Temporal
from pointillist.data.domain import Domain
from pointillist.data.drafts.parts import Drafted, named_like_an_id, own_type
from pointillist.data.drafts.types import Hint, hints_of
from pointillist.data.messages import column_called, fragment
from pointillist.data.neighbours import Relation
from pointillist.data.paid import Paid
from pointillist.data.probes import (
    CLOCKS,
    CODES,
    DATES,
    EITHER,
    INTEGER,
    KIND_OF_CODE,
    KINDS,
    MISSING,
    NUMBER,
    OWN_SPELLINGS,
    STAMPS,
    TEXT,
    ProbedSource,
    codes_of_kind,
)
from pointillist.data.schema import PAID_NOTICE, Schema, check_different, comment_of, head_of, toml_of
from pointillist.data.table import as_arrow
from pointillist.data.texts import plain
from pointillist.data.units import bounded_rows
from pointillist.discovering.columns import DEVIATIONS, column_of_numbers, column_of_values, column_of_years
from pointillist.errors import InputError, Shown, nearest
from pointillist.job import delta_or_default, relation_of, unit_of
from pointillist.privacy.budget import Budget
from pointillist.privacy.curator import MOST_ROWS, Ask, Curator, Found, OpenDoor, Seek, planned
from pointillist.privacy.facts import Facts
from pointillist.privacy.gaussian import LEAST_SCALES
from pointillist.privacy.insecure import InsecureSeededNoise
from pointillist.privacy.ledger import Ledger, minus, split
from pointillist.privacy.mechanisms import gaussian_scale
from pointillist.privacy.sensitivity import square_of_values
from pointillist.queries.groups import Groups
from pointillist.queries.marginal import Marginal
from pointillist.queries.measurement import Measurement

__all__ = ["DraftJob", "NothingTold", "PrivateDraft", "prepare_draft"]

KIND_SHARE = 0.2
"""The share of rho for the kinds of cells, if all columns are texts."""

SHOWN_SHARE = 0.5
"""The share of delta for showing values that only one unit has."""

SLASHES = ("%d/%m/%Y", "%m/%d/%Y")


class NothingTold(InputError):
    """A draft that has spent its budget and knows too little of every column."""


@dataclass(frozen=True)
class PrivateDraft:
    """A schema that was paid for.

    Attributes:
        schema: the schema, which counts as reviewed.
        left_out: why a column is left out, by its name.
    """

    schema: Schema
    left_out: Mapping[str, str]

    def to_toml(self) -> str:
        """The text of the schema file, with comments."""
        reasons = "\n".join(f"left out {fragment(name)}: {why}" for name, why in self.left_out.items())
        notice = PAID_NOTICE + (f"\n#\n{comment_of(reasons)}".rstrip("\n") if reasons else "")
        head = head_of(self.schema.reviewed, self.schema.ignore, notice, self.schema.paid)
        return toml_of(self.schema.to_dict()["column"], self.schema.notes, head)


@dataclass(frozen=True)
class DraftJob:
    """A checked plan of a private draft. Running it spends the budget.

    Attributes:
        hints: all columns of the table that are not left out by request, with what their types say.
        left_out: columns that are left out without looking, and why.
        untyped: whether all columns are texts, so that types say nothing about them.
        curator: the private rows behind their ledger.
        domain: the columns that something is measured of, with the codes of their cells.
    """

    hints: tuple[Hint, ...]
    left_out: Mapping[str, str]
    untyped: bool
    curator: Curator
    domain: Domain

    @cached_property
    def free(self) -> dict[str, Drafted]:
        """The columns that follow from names and types alone."""
        found = {hint.name: _for_free(hint) for hint in self.hints}
        return {name: one for name, one in found.items() if one is not None}

    @property
    def probed(self) -> tuple[Hint, ...]:
        """The columns that something is measured of."""
        return tuple(hint for hint in self.hints if hint.name not in self.free)

    def to_dict(self) -> dict[str, Any]:
        """All that is needed to see that a draft which goes on is the same."""
        budget = self.curator.ledger.budget
        unit = {} if budget.unit is None else {"unit": budget.unit.name, "max_rows": budget.unit.max_rows}
        return {
            "columns": [[hint.name, hint.kind, hint.dtype] for hint in self.hints],
            "left_out": dict(self.left_out),
            "codes": CODES,
            "epsilon": budget.epsilon,
            "delta": budget.delta,
            "relation": budget.relation.value,
            **unit,
            "rho": self.curator.ledger.limit,
            "delta_shown": self.curator.ledger.delta_shown,
            "n": self.curator.public_rows,
        }

    def describe(self) -> str:
        """How the budget is split, in one line."""
        ledger, count = self.curator.ledger, len(self.probed)
        each = f"{count} {'column' if count == 1 else 'columns'} with equal parts"
        kinds = f"; {KIND_SHARE:.0%} of a text's part tells what its cells are" if self.texts else ""
        shown = f"{ledger.delta_shown:.2g} of delta = {ledger.budget.delta:.2g} is for values that are discovered"
        return f"rho = {ledger.limit:.4g} over {each}{kinds}; {shown}"

    def run(self, door: OpenDoor) -> PrivateDraft:
        """Measure what is needed and make the schema.

        Args:
            door: a door to this job's curator.
        """
        facts = door.open()
        hints, notes = self._kinds(door, facts)
        sized = {hint.name: hint for hint in hints if hint.kind not in ("", "text", "time")}
        texts = [hint for hint in hints if hint.kind == "text"]
        # Not what the ledger has left: a draft that goes on must ask for the same again.
        left = minus(facts.rho, self._kinds_rho(facts) * len(self.texts))
        part = split(left, max(1, len(sized) + len(texts)))
        places = {hint.name: place for place, hint in enumerate(self.probed)}
        asked = [Ask(Marginal((places[name],), (CODES,)), part) for name in sized]
        measured = dict(zip(sized, door.measure(asked) if asked else (), strict=True))
        share = split(self.curator.ledger.delta_shown, max(1, len(texts)))
        sought = [Seek(hint.name, part, share) for hint in texts]
        found = {one.column: one for one in (door.discover(sought) if sought else ())}
        made = dict(self.free)
        for hint in hints:
            made[hint.name] = self._column(hint, measured.get(hint.name), found.get(hint.name), facts, notes)
        return self._assembled(made)

    @property
    def texts(self) -> tuple[Hint, ...]:
        """The columns of text, of which the kinds of cells are measured."""
        return tuple(hint for hint in self.probed if hint.kind == "text")

    def _kinds_rho(self, facts: Facts) -> Fraction:
        """What the kinds of cells of one column cost."""
        return Fraction(split(facts.rho * KIND_SHARE, len(self.probed)))

    def _kinds(self, door: OpenDoor, facts: Facts) -> tuple[list[Hint], dict[str, str]]:
        """The columns with their kinds, which are measured where types do not say them; and why some have none."""
        if not self.texts:
            return list(self.probed), {}
        part, hints, notes = float(self._kinds_rho(facts)), [], {}
        places = [place for place, hint in enumerate(self.probed) if hint.kind == "text"]
        measured = iter(door.measure([Ask(Groups((place,), KIND_OF_CODE), part) for place in places]))
        for hint in self.probed:
            told, note = hint, ""
            if hint.kind == "text":
                one = next(measured)
                told, note = _kind_of(hint, dict(zip(KINDS, one.counts.tolist(), strict=True)), one.sigma)
            if not self.untyped and told.kind in (INTEGER, NUMBER) and hint.kind == "text":
                told = hint  # numbers that the file has as texts stay texts
            hints.append(told)
            notes[hint.name] = note
        return hints, notes

    def _column(
        self, hint: Hint, cells: Measurement | None, found: Found | None, facts: Facts, notes: Mapping[str, str]
    ) -> Drafted:
        note = notes.get(hint.name, "")
        if hint.kind == "":
            return Drafted(None, note)
        if hint.kind == "time":
            return _times(hint)
        if found is not None:
            made = column_of_values(hint, found, facts.total)
        elif cells is not None and hint.kind in ("date", "timestamp"):
            kinds: tuple[str, ...] = (
                (*SLASHES, EITHER) if hint.format in SLASHES else (hint.format or _year_kind(hint),)
            )
            made = column_of_years(hint, _cells(cells, kinds), cells.sigma * len(kinds) ** 0.5)
        elif cells is not None:
            kinds = (INTEGER, NUMBER) if self.untyped and hint.kind == NUMBER else (_number_kind(hint),)
            made = column_of_numbers(hint, _cells(cells, kinds), cells.sigma * len(kinds) ** 0.5, self.untyped)
        else:
            raise ValueError("a column must have been measured")
        return replace(made, note=f"{made.note}\n{note}".strip())

    def _assembled(self, made: Mapping[str, Drafted]) -> PrivateDraft:
        left_out, columns, notes = dict(self.left_out), [], {}
        for hint in self.hints:
            one = made[hint.name]
            if one.column is None:
                left_out[hint.name] = one.note
            else:
                columns.append(one.column)
                notes[hint.name] = one.note
        if not any(hasattr(column, "encode") for column in columns):
            shown = Shown("; ".join(f"{column_called(name)}: {why}" for name, why in left_out.items())[:300])
            rule = "must have a column of which this budget tells enough (what was spent is spent)"
            raise NothingTold("table", shown, rule, "use a larger epsilon, or write the schema by hand")
        schema = Schema.of(columns, self.curator.noise.private, list(left_out), notes=notes, paid=self.paid())
        return PrivateDraft(schema, left_out)

    def paid(self) -> Paid:
        """What was spent so far."""
        ledger, noise = self.curator.ledger, self.curator.noise
        return Paid(
            epsilon=ledger.budget.epsilon,
            delta=ledger.budget.delta,
            relation=ledger.budget.relation,
            accounting=ledger.accounting,
            rho=ledger.limit,
            rho_spent=ledger.spent,
            delta_shown=ledger.delta_shown,
            delta_spent=ledger.delta_spent,
            noise=noise.description,
            private=noise.private,
            least_scale=ledger.least_scale,
            unit=ledger.budget.unit,
            ledger=tuple(tuple(entry.to_dict().items()) for entry in ledger.entries),
        )


def prepare_draft(
    table: Any,
    *,
    epsilon: float,
    delta: float | None = None,
    relation: str | Relation | None = None,
    unit: str | None = None,
    max_rows: int | None = None,
    ignore: Sequence[str] = (),
    insecure_noise_seed: int | None = None,
) -> DraftJob:
    """Check everything and plan a private draft, without spending anything.

    Args:
        table: the private table: a pandas, polars or Arrow table.
        epsilon: the privacy loss, above 0.
        delta: the probability that the loss is larger; by default 1/n^2 under ``replace``. It must be given under
            ``add-remove``.
        relation: ``"replace"`` or ``"add-remove"``: which tables are neighbours. By default ``"replace"``, and
            ``"add-remove"`` with a unit.
        unit: the column that says to whom a row belongs. It is read to bound contributions, and left out of the schema.
        max_rows: the rows of each unit that are used, at most; they are chosen at random.
        ignore: columns to leave out; nothing is spent on them.
        insecure_noise_seed: replaces the noise by seeded noise: for experiments only, the schema is NOT PRIVATE.
    """
    import pyarrow as pa

    bound = unit_of(unit, max_rows)
    relation = relation_of(relation, bound)
    if insecure_noise_seed is not None:
        name = "insecure_noise_seed"
        insecure_noise_seed = between(name, whole(name, insecure_noise_seed), 0, 2**63 - 1, "use 0")
    arrow = as_arrow(table)
    framed = type(table).__module__.partition(".")[0] in ("pandas", "polars")
    hints = _typed(hints_of(table), hints_of(arrow)) if framed else hints_of(arrow)
    check_different(arrow.column_names)
    for name in ignore:
        if name not in arrow.column_names:
            rule, hint = "must be a column of the table", nearest(str(name)[:60], arrow.column_names[:100])
            raise InputError("ignore", fragment(name), rule, hint)
    rule, hint = "must be a column of the table", "give the column that says to whom a row belongs"
    check(bound is None or bound.name in arrow.column_names, "unit", fragment(unit), rule, hint)
    rows = arrow.num_rows if relation is Relation.REPLACE else None
    check(arrow.num_rows > 0, "table", Shown("0 rows"), "must have rows", "check the file")
    check(rows is None or rows >= 2, "table", Shown(f"{rows}"), "must have at least 2 rows", "give the whole table")
    budget = Budget(real("epsilon", epsilon, 1.0), delta_or_default(delta, rows), relation, bound)
    left_out = dict.fromkeys(ignore, "as asked")
    if bound is not None:
        left_out[bound.name] = "the column of the unit, which is never published"
    empty = {field.name for field in arrow.schema if pa.types.is_null(field.type)}
    kept = tuple(
        replace(hint, kind="text") if hint.name in empty else hint for hint in hints if hint.name not in left_out
    )
    untyped = all(hint.kind == "text" for hint in kept)
    source = arrow if bound is None else bounded_rows(arrow, bound, insecure_noise_seed)
    noise = None if insecure_noise_seed is None else InsecureSeededNoise(insecure_noise_seed)
    probed = tuple(hint.name for hint in kept if _for_free(hint) is None)
    rule, hint = "must have a column that something can be measured of", "check the file, or ignore fewer columns"
    check(bool(probed), "table", Shown("none"), rule, hint)
    ledger = _ledger(budget, rows, len(probed))
    _require_use(ledger, rows, len(probed))
    readable = {name: plain(name, source.column(name)) for name in probed}  # refuses what no table may hold
    probes = ProbedSource(pa.table(readable), probed, bound)
    return DraftJob(kept, left_out, untyped, Curator(probes, ledger, noise), probes.schema.domain)


def _ledger(budget: Budget, rows: int | None, columns: int) -> Ledger:
    """A ledger with the larger budget of Gaussian accounting if no noise is below one of its least scales."""
    shown, square = budget.delta * SHOWN_SHARE, square_of_values(budget)
    plain = Ledger(budget, None, shown)
    planned(plain, rows or 2, private=rows is None)  # refuses a budget that is too small to count the rows
    for least_scale in LEAST_SCALES:
        ledger = Ledger(budget, least_scale, shown)
        smallest = gaussian_scale(split(ledger.limit, columns), square)  # the largest part is all of an equal one
        if ledger.limit > plain.limit and smallest >= least_scale:
            return ledger
    return plain


def _require_use(ledger: Ledger, rows: int | None, columns: int) -> None:
    """Refuse a budget with which not even a value of all rows would be above the noise."""
    needed = DEVIATIONS * gaussian_scale(split(ledger.limit, columns), square_of_values(ledger.budget))
    most = MOST_ROWS if rows is None else rows
    rule = f"must leave a column a noise that {most:,} rows stand out from ({needed:,.0f} would be needed)"
    hint = "use a larger epsilon, or ignore some columns"
    check(needed <= most, "epsilon", ledger.budget.epsilon, rule, hint)


def _typed(own: Sequence[Hint], converted: Sequence[Hint]) -> list[Hint]:
    """The types of a data frame; columns of plain Python objects have those of the Arrow table."""
    pairs = zip(own, converted, strict=True)
    return [hint if hint.kind else replace(other, dtype="") for hint, other in pairs]


def _for_free(hint: Hint) -> Drafted | None:
    """A column that follows from its name and its type alone; None if it has to be measured."""
    if hint.kind == "boolean":
        column = Categorical(hint.name, (False, True), missing=True, dtype=own_type(hint.dtype, "bool"))
        return Drafted(column, "True or false, by its type.")
    if hint.kind in ("text", "integer") and named_like_an_id(hint.name):
        note = "An identifier, by its name: never read, and made again as a sequence."
        return Drafted(Identifier(hint.name, kind="sequence"), note)
    if hint.kind == "time":
        return _times(hint)
    if hint.kind == "":
        return Drafted(None, "a type that no schema can hold")
    return None


def _times(hint: Hint) -> Drafted:
    step = "second" if not hint.format or hint.format.endswith("%S") else ""
    words: dict[str, Any] = {"kind": "time", "step": step, "missing": True}
    if hint.format:
        words |= {"format": hint.format, "dtype": "string", "missing_values": OWN_SPELLINGS}
    else:
        words |= {"dtype": hint.dtype}
    attempts: list[Callable[[], Temporal]] = [
        lambda: Temporal(hint.name, **words),
        lambda: Temporal(hint.name, **{**words, "dtype": ""}),
    ]
    for attempt in attempts:
        try:
            return Drafted(attempt(), "Times of the day.")
        except InputError:
            continue
    return Drafted(None, "its times fit no column of a schema")


def _kind_of(hint: Hint, noisy: Mapping[str, int], sigma: float) -> tuple[Hint, str]:
    """What the texts of a column are, from noisy counts of their kinds; and a remark, or why it is left out."""
    groups: dict[str, float] = {TEXT: noisy[TEXT], NUMBER: noisy[INTEGER] + noisy[NUMBER]}
    groups |= {one: noisy[one] for one in (*DATES[:4], *STAMPS, *CLOCKS)}
    groups[EITHER] = sum(noisy[one] for one in (*SLASHES, EITHER))
    deviations = dict.fromkeys(groups, sigma) | {NUMBER: sigma * 2**0.5, EITHER: sigma * 3**0.5}
    strong = [one for one in groups if groups[one] > DEVIATIONS * deviations[one]]
    if not strong:
        gone = " (most cells are missing)" if noisy[MISSING] > DEVIATIONS * sigma else ""
        return replace(hint, kind=""), f"too few rows for this budget to tell what its cells are{gone}"
    best = max(strong, key=lambda one: groups[one])
    if best == TEXT or len(strong) > 1:
        return hint, "" if len(strong) == 1 else "Its cells are of several kinds, so that they are kept as texts."
    if best == NUMBER:
        whole_only = noisy[NUMBER] <= DEVIATIONS * sigma
        return replace(hint, kind=INTEGER if whole_only else NUMBER, dtype=""), ""
    if best in CLOCKS:
        return replace(hint, kind="time", format=best), ""
    if best in STAMPS:
        return replace(hint, kind="timestamp", format=best, dtype=""), ""
    if best != EITHER:
        return replace(hint, kind="date", format=best, dtype=""), ""
    first, second = SLASHES if noisy[SLASHES[0]] >= noisy[SLASHES[1]] else SLASHES[::-1]
    return replace(hint, kind="date", format=first, dtype=""), f"It could also be written as {second}: check it."


def _year_kind(hint: Hint) -> str:
    return DATES[0] if hint.kind == "date" else STAMPS[0]


def _number_kind(hint: Hint) -> str:
    return INTEGER if hint.kind == INTEGER else NUMBER


def _cells(measured: Measurement, kinds: Sequence[str]) -> np.ndarray:
    """The noisy counts of the cells of some kinds, added up."""
    total: np.ndarray = np.sum([measured.counts[codes_of_kind(kind)] for kind in kinds], axis=0)
    return total
