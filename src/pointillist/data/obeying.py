"""How rules are obeyed: which combinations of codes are allowed, and values within codes that obey every rule.

A *combination* is one code for each column of a group of rules (rules that share a column are in one group). It is
forbidden if no value in it can obey a rule, by the ranges of values of its codes. Where only some of its values obey
all rules, values are searched for: among values drawn once from every code, and by moving one column so that a
comparison becomes an equality. The search depends on nothing but the schema and the combination. A combination for
which it finds values is *workable*: whatever is drawn later, there is always a row of values to fall back on.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from pointillist.data.columns import Categorical, Column, Grid, Merged, Numeric, Temporal
from pointillist.data.conditions import ANY, NUMBER, TEXT, TRUTH, Cells, Spans
from pointillist.data.rules import Rule, column_cells
from pointillist.errors import InputError

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Group", "Held", "groups_of", "spans_of"]

DRAWN = 32
"""Values that are drawn from every code, for the search."""

MOST_DRAWN = 4_000_000
"""Fewer are drawn from a column if there would be more than this in all."""

MIXED = 64
"""Combinations of drawn values that are tried besides those of equal rank."""

MOVED, DEEPER = 24, 6
"""How many of the tried values are tried again with one column moved, and with two."""

MOST_MOVES = 600
"""The largest number of such tries of either kind."""

CORNERS = 6
"""Up to this number of columns, every combination of their smallest and largest values is tried."""

REDRAWN = 20
"""How often values are drawn again within their codes before they are searched for."""

MOST_LOOKED_AT = 20_000
"""Combinations that are looked at in short when one is searched that is allowed."""

MOST_STEPS = 200
"""How often the values of the last column are tried when such a combination is built column by column."""


@dataclass
class _Rest:
    """The combinations for which no values were found yet."""

    combinations: np.ndarray
    left: np.ndarray

    @property
    def codes(self) -> np.ndarray:
        found: np.ndarray = self.combinations[self.left]
        return found


@dataclass(frozen=True)
class Group:
    """Some rules that share columns, and these columns.

    Attributes:
        names: the columns.
        positions: their positions in the schema.
        columns: the columns themselves.
        rules: the rules.
    """

    names: tuple[str, ...]
    positions: tuple[int, ...]
    columns: tuple[Column, ...]
    rules: tuple[Rule, ...]
    _known: dict[tuple[int, ...], bool] = field(default_factory=dict, repr=False, compare=False)

    @cached_property
    def _draws(self) -> tuple[pa.Array, ...]:
        """Values of every code of each column, code by code; the same whenever they are drawn."""
        found = []
        for column in self.columns:
            codes = np.repeat(np.arange(column.size), self._many)
            found.append(column.decode(codes, np.random.default_rng(0)))
        return tuple(found)

    @cached_property
    def _many(self) -> int:
        """How many values are drawn from each code."""
        return max(1, min(DRAWN, MOST_DRAWN // max(column.size for column in self.columns)))

    @cached_property
    def _cells(self) -> tuple[Cells, ...]:
        return tuple(column_cells(column, one) for column, one in zip(self.columns, self._draws, strict=True))

    @cached_property
    def _spans(self) -> tuple[Spans, ...]:
        return tuple(spans_of(column) for column in self.columns)

    @cached_property
    def _ends(self) -> tuple[tuple[np.ndarray, np.ndarray], ...]:
        """For each column where among its drawn values the smallest and the largest one of each code are."""
        found = []
        for column, cells in zip(self.columns, self._cells, strict=True):
            values = np.unique(cells.values, return_inverse=True)[1].reshape(column.size, self._many)
            starts = np.arange(column.size) * self._many
            found.append((starts + values.argmin(axis=1), starts + values.argmax(axis=1)))
        return tuple(found)

    def check(self) -> None:
        """Refuse rules that compare what cannot be compared: evaluates them once."""
        self.broken(self._taken([np.zeros(1, np.int64)] * len(self.names)))

    def broken(self, cells: Mapping[str, Cells]) -> np.ndarray:
        """The rows that break any of the rules.

        Args:
            cells: the values of the columns.
        """
        found: np.ndarray = np.logical_or.reduce([rule.broken(cells) for rule in self.rules])
        return found

    def judged(self, codes: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """Which combinations are forbidden, and which obey all rules whatever their values are.

        Args:
            codes: one array of codes per column of the group.
        """
        pairs = zip(self.names, self._spans, codes, strict=True)
        spans = {name: _narrowed(one, where) for name, one, where in pairs}
        found = [rule.possible(spans) for rule in self.rules]
        forbidden = np.logical_or.reduce([~one.obey for one in found])
        return forbidden, ~np.logical_or.reduce([one.broken for one in found])

    def workable(self, codes: Sequence[np.ndarray]) -> np.ndarray:
        """Which rows have a combination of codes for which there are values that obey all rules.

        Args:
            codes: one array of codes per column of the group.
        """
        if len(codes[0]) == 0:
            return np.zeros(0, bool)
        distinct, places, _ = self.distinct(codes)
        forbidden, sure = self.judged(list(distinct.T))
        good, undecided = sure & ~forbidden, np.flatnonzero(~sure & ~forbidden)
        keys = [tuple(row) for row in distinct[undecided].tolist()]
        new = [n for n, key in enumerate(keys) if key not in self._known]
        if new:
            found, _ = self.solved(distinct[undecided[new]])
            self._known.update(zip((keys[n] for n in new), found.tolist(), strict=True))
        good[undecided] = [self._known[key] for key in keys]
        workable: np.ndarray = good[places]
        return workable

    @cached_property
    def mask(self) -> np.ndarray:
        """Which of all combinations are workable: one axis per column."""
        sizes = tuple(column.size for column in self.columns)
        every = np.indices(sizes).reshape(len(sizes), -1)
        return self.workable(list(every)).reshape(sizes)

    def distinct(self, codes: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The different combinations, which of them each row has, and how often each occurs.

        Args:
            codes: one array of codes per column of the group.
        """
        sizes = tuple(column.size for column in self.columns)
        if math.prod(sizes) < 2**62:  # one number says it all, and numbers are sorted fast
            keys = np.ravel_multi_index(tuple(np.asarray(one, np.int64) for one in codes), sizes)
            found, places, times = np.unique(keys, return_inverse=True, return_counts=True)
            return np.stack(np.unravel_index(found, sizes), axis=1), places.ravel(), times
        matrix = np.stack([np.asarray(one, np.int64) for one in codes], axis=1)
        rows, places, times = np.unique(matrix, axis=0, return_inverse=True, return_counts=True)
        return rows, places.ravel(), times

    def solved(self, combinations: np.ndarray, tries: int | None = None) -> tuple[np.ndarray, list[pa.Array]]:
        """Values that obey all rules: for which combinations some were found, and these (any ones for the others).

        What is found for a combination does not depend on the others.

        Args:
            combinations: one row of codes per combination.
            tries: how many values are tried for each, at most; by default as many as there are.
        """
        pairs = zip(self._draws, combinations.T, strict=True)
        values = [one.take(_indices(codes * self._many)) for one, codes in pairs]
        rest = _Rest(combinations, np.arange(len(combinations)))
        for tried in itertools.islice(self._tries(rest), tries):
            codes = rest.codes
            good = ~self.broken(self._read(tried))
            for n in {move[2] for move in self._moves}:
                good &= _has_codes(self.columns[n], tried[n], codes[:, n])
            good = np.flatnonzero(good)
            _patch(values, rest.left[good], [one.take(_indices(good)) for one in tried])
            rest.left = np.delete(rest.left, good)
            if not len(rest.left):
                break
        if tries is None and len(rest.left) and self._fine is not None:
            known, exact = self._fine
            same = np.flatnonzero((rest.codes == known).all(axis=1))
            _patch(values, rest.left[same], [one.take(_indices(np.zeros(len(same)))) for one in exact])
            rest.left = np.delete(rest.left, same)
        found = np.ones(len(combinations), bool)
        found[rest.left] = False
        return found, values

    @cached_property
    def _fine(self) -> tuple[np.ndarray, list[pa.Array]] | None:
        """For merged columns: a combination that is allowed by its finer codes, and values of it that obey the rules.

        Rules that allow a row of the finer codes so allow one of the groups, whatever the groups are.
        """
        if not any(isinstance(column, Merged) for column in self.columns) or self._held:
            return None
        columns = tuple(column.base if isinstance(column, Merged) else column for column in self.columns)
        finer = Group(self.names, self.positions, columns, self.rules)
        if (codes := finer.allowed()) is None:
            return None
        found, values = finer.solved(np.array([codes]))
        pairs = zip(self.columns, codes, strict=True)
        groups = [column.groups[code] if isinstance(column, Merged) else code for column, code in pairs]
        return (np.array(groups), values) if found[0] else None

    @cached_property
    def _held(self) -> frozenset[int]:
        """The columns of which some values are wanted: they are never moved to others."""
        return frozenset(n for n, column in enumerate(self.columns) if isinstance(column, Held))

    def _read(self, arrays: Sequence[pa.Array]) -> dict[str, Cells]:
        """The values of decoded columns."""
        pairs = zip(self.columns, arrays, strict=True)
        return {column.name: column_cells(column, one) for column, one in pairs}

    def _tries(self, rest: _Rest) -> Iterator[list[pa.Array]]:
        """Values to try for the combinations that are left: drawn ones, and drawn ones of which one column was moved,
        or two, one after the other."""
        for place in self._places():
            yield self._drawn_at(place, rest.codes)
        once = itertools.product(itertools.islice(self._places(), MOVED), self._moves)
        for place, move in itertools.islice(once, MOST_MOVES):
            yield self._moved(move, self._drawn_at(place, rest.codes), rest.codes)
        level = [move for move in self._moves if move[3] == 0]
        twice = itertools.product(itertools.islice(self._places(), DEEPER), level, level)
        for place, first, then in itertools.islice(twice, MOST_MOVES):
            tables = self._moved(first, self._drawn_at(place, rest.codes), rest.codes)
            yield self._moved(then, tables, rest.codes)

    def _places(self) -> Iterator[Callable[[int, np.ndarray], np.ndarray]]:
        """Which of the drawn values of each column are tried together: a few of equal rank, the corners, mixed ones and
        the others of equal rank."""
        many, width = self._many, len(self.names)

        def ranked(rank: int) -> Callable[[int, np.ndarray], np.ndarray]:
            return lambda n, codes: codes * many + rank

        def corner(sides: Sequence[int]) -> Callable[[int, np.ndarray], np.ndarray]:
            return lambda n, codes: self._ends[n][sides[n]][codes]

        def mixed(ranks: np.ndarray) -> Callable[[int, np.ndarray], np.ndarray]:
            return lambda n, codes: codes * many + ranks[n]

        first = min(4, many)
        yield from (ranked(rank) for rank in range(first))
        if width <= CORNERS:
            yield from (corner(sides) for sides in itertools.product((0, 1), repeat=width))
        yield from (mixed(ranks) for ranks in np.random.default_rng(1).integers(0, many, (MIXED, width)))
        yield from (ranked(rank) for rank in range(first, many))

    def _drawn_at(self, place: Callable[[int, np.ndarray], np.ndarray], codes: np.ndarray) -> list[pa.Array]:
        return [one.take(_indices(place(n, codes[:, n]))) for n, one in enumerate(self._draws)]

    @cached_property
    def _moves(self) -> tuple[tuple[dict[str, int], float, int, int], ...]:
        """A comparison, the column that is moved to make its two sides equal, and by how much they then differ."""
        found = []
        comparisons = [c for rule in self.rules for one in rule.conditions for c in one.comparisons()]
        for weights, constant in comparisons:
            kinds = {self._cells[self.names.index(name)].kind for name in weights}
            if len(kinds) == 1 and not kinds & {TEXT, TRUTH, ANY}:
                columns = [self.names.index(name) for name, weight in weights.items() if abs(weight) == 1]
                columns = [n for n in columns if n not in self._held and self._movable(n)]
                found += [(weights, constant, n, shift) for shift in (0, -1, 1) for n in columns]
        return tuple(found)

    def _movable(self, n: int) -> bool:
        """Whether the decoded values of a column are numbers, dates or times, not texts or numbers that stand for
        them."""
        import pyarrow as pa

        kind, cells = self._draws[n].type, self._cells[n].kind
        plain = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_temporal(kind)
        return plain and not (isinstance(_base(self.columns[n]), Temporal) and cells == NUMBER)

    def _moved(
        self, move: tuple[dict[str, int], float, int, int], tables: Sequence[pa.Array], codes: np.ndarray
    ) -> list[pa.Array]:
        """The tables with one column changed so that the two sides of a comparison are equal, or nearly so, as far as
        it can be without leaving its code."""
        import pyarrow as pa
        import pyarrow.compute as pc

        weights, constant, n, shift = move
        read = self._read(tables)
        values = {name: read[name].values for name in weights}
        total = constant + sum(weight * values[name] for name, weight in weights.items())
        wanted = values[self.names[n]] - weights[self.names[n]] * total + shift
        old, spans, code = tables[n], self._spans[n], codes[:, n]
        if spans.kind not in (TEXT, TRUTH, ANY):
            low, high = spans.low[code], spans.high[code]
        else:
            low, high = (self._cells[n].values[ends[code]] for ends in self._ends[n])
        kept = np.clip(wanted, low, high)
        base = _base(self.columns[n])
        if isinstance(base, Grid):
            kept = base.nearest(kept)
        if pa.types.is_float32(old.type):  # rounding must not leave the code
            near = kept.astype(np.float32)
            near = np.where(near > high, np.nextafter(near, np.float32(-np.inf)), near)
            plain = pa.array(np.where(near < low, np.nextafter(near, np.float32(np.inf)), near))
        elif pa.types.is_floating(old.type):
            plain = pa.array(kept.astype(np.float64))
        else:
            plain = pa.array(np.rint(kept).astype(np.int32 if old.type.bit_width == 32 else np.int64))
        new = pc.cast(plain, old.type, safe=False)
        if isinstance(base, Temporal):
            new = base.snapped(new)
        new = pc.if_else(pa.array(~read[self.names[n]].missing), new, old)
        return [new if m == n else one for m, one in enumerate(tables)]

    def _taken(self, places: Sequence[np.ndarray]) -> dict[str, Cells]:
        parts = zip(self.names, self._cells, places, strict=True)
        return {name: _at(cells, where) for name, cells, where in parts}

    def allowed(self) -> tuple[int, ...] | None:
        """An allowed combination, the same whenever it is asked for; None if none is found.

        First many combinations are looked at in short. If none of them is known to be allowed by that, combinations are
        built column by column, leaving out what the rules forbid.
        """
        sizes = tuple(column.size for column in self.columns)
        if math.prod(sizes) <= MOST_LOOKED_AT:
            some = np.stack(np.unravel_index(np.arange(math.prod(sizes)), sizes), axis=1)
        else:
            some = np.random.default_rng(2).integers(0, sizes, (MOST_LOOKED_AT, len(sizes)))
        forbidden, sure = self.judged(list(some.T))
        undecided = some[~forbidden & ~sure]
        known = some[sure & ~forbidden][:1]
        if not len(known) and len(undecided):
            found, _ = self.solved(undecided, len(list(self._places())))
            known = undecided[found][:1]
        if len(known):
            return tuple(known[0].tolist())
        if self._fine is not None:
            return tuple(self._fine[0].tolist())
        all_forbidden = len(undecided) == 0 and math.prod(sizes) <= MOST_LOOKED_AT
        return None if all_forbidden else self._search(())

    def _search(self, fixed: tuple[int, ...], steps: list[int] | None = None) -> tuple[int, ...] | None:
        """An allowed combination that begins with some codes."""
        steps = [0] if steps is None else steps
        size = self.columns[len(fixed)].size
        known = [np.full(size, code) for code in fixed] + [np.arange(size)]
        spans = {
            name: _narrowed(one, known[n]) if n < len(known) else _free(one.kind, size)
            for n, (name, one) in enumerate(zip(self.names, self._spans, strict=True))
        }
        open_codes = np.flatnonzero(np.logical_and.reduce([rule.possible(spans).obey for rule in self.rules]))
        if len(known) == len(self.names):
            steps[0] += 1
            good = open_codes[self.workable([one[open_codes] for one in known])]
            return (*fixed, int(good[0])) if len(good) else None
        for code in open_codes.tolist():
            if steps[0] >= MOST_STEPS:
                return None
            if (found := self._search((*fixed, code), steps)) is not None:
                return found
        return None

    def settle(self, arrays: dict[str, pa.Array], codes: Sequence[np.ndarray], rng: np.random.Generator) -> None:
        """Change values within their codes so that rows obey the rules, as far as they can; in place.

        Args:
            arrays: the decoded columns, by name.
            codes: one array of codes per column of the group.
            rng: draws values again.
        """
        bad = np.flatnonzero(self.broken(self._read([arrays[name] for name in self.names])))
        for _ in range(REDRAWN):
            if not len(bad):
                return
            drawn = [column.decode(one[bad], rng) for column, one in zip(self.columns, codes, strict=True)]
            broken = self.broken(self._read(drawn))
            good = np.flatnonzero(~broken)
            self._put(arrays, bad[good], [one.take(_indices(good)) for one in drawn])
            bad = bad[broken]
        if len(bad):
            distinct, places, _ = self.distinct([one[bad] for one in codes])
            there, values = self.solved(distinct)
            rows = np.flatnonzero(there[places])
            taken = _indices(places[rows])
            self._put(arrays, bad[rows], [one.take(taken) for one in values])

    def _put(self, arrays: dict[str, pa.Array], rows: np.ndarray, new: Sequence[pa.Array]) -> None:
        """Put new values into some rows of the columns."""
        columns = [arrays[name] for name in self.names]
        _patch(columns, rows, new)
        arrays.update(zip(self.names, columns, strict=True))


class Held:
    """A column of which only some values are wanted. Its codes are those of the column.

    Args:
        column: the column; if it is merged, fine codes without a share are not wanted.
        value: the only value that is wanted, apart from missing ones, as decoded; None if there are several.
    """

    def __init__(self, column: Column, value: pa.Scalar | None = None) -> None:
        self.column, self.value = column, value

    def __getattr__(self, name: str) -> Any:
        if name == "column":  # while it is copied
            raise AttributeError(name)
        return getattr(self.column, name)

    def decode(self, codes: np.ndarray, rng: np.random.Generator) -> pa.Array:
        """A value for each code, as the column draws it, or the one that is wanted."""
        import pyarrow as pa
        import pyarrow.compute as pc

        cells = self.column.decode(codes, rng)
        if self.value is None:
            return cells
        missing = column_cells(self.column, cells).missing
        return pc.if_else(pa.array(missing), cells, pa.repeat(self.value, len(cells)))

    @property
    def spans(self) -> Spans:
        """What is known of the values of each code."""
        if self.value is not None:
            no = np.zeros(self.column.size, bool)
            cells = column_cells(self.column, self.decode(np.arange(self.column.size), np.random.default_rng(0)))
            values = cells.values.astype(np.float64) if cells.kind == NUMBER else cells.values
            return Spans(cells.kind, values, values, cells.missing, no)
        if isinstance(self.column, Merged):
            return _merged_spans(self.column, np.flatnonzero(np.asarray(self.column.shares) > 0))
        return spans_of(self.column)


def _base(column: Column) -> Column:
    """The column that decodes: the finer one of a merged column."""
    return column.base if isinstance(column, Merged) else column


def _has_codes(column: Column, array: pa.Array, codes: np.ndarray) -> np.ndarray:
    """Which values have the given codes; none if some of them are no values of the column."""
    try:
        same: np.ndarray = column.encode(array) == codes
    except InputError:
        return np.zeros(len(codes), bool)
    return same


def groups_of(columns: Sequence[Column], rules: Sequence[Rule]) -> tuple[Group, ...]:
    """The rules in groups that share no column.

    Args:
        columns: the columns of the schema.
        rules: the rules, over these columns.
    """
    position = {column.name: n for n, column in enumerate(columns)}
    groups: list[tuple[set[str], list[Rule]]] = []
    for rule in rules:
        touched = [one for one in groups if one[0] & set(rule.columns)]
        names = set(rule.columns).union(*(one[0] for one in touched))
        members = [member for one in touched for member in one[1]] + [rule]
        groups = [one for one in groups if one not in touched] + [(names, members)]
    found = []
    for names, members in groups:
        places = tuple(sorted(position[name] for name in names))
        some = tuple(columns[n] for n in places)
        found.append(Group(tuple(one.name for one in some), places, some, tuple(members)))
    return tuple(found)


def spans_of(column: Column) -> Spans:
    """What is known of the values of each code. Of other kinds of columns nothing is: their values are drawn.

    Args:
        column: the column.
    """
    no = np.zeros(column.size, bool)
    missing = no.copy()
    if isinstance(column, Numeric):
        missing[len(column.edges) - 1 :] = True
        edges = np.asarray(column.edges, np.float64)
        low, high = edges[:-1].copy(), edges[1:].copy()
        high[:-1] = high[:-1] - 1 if column.integer else np.nextafter(high[:-1], -np.inf)
        pad = np.zeros(column.size - len(low))
        return Spans(NUMBER, np.r_[low, pad], np.r_[high, pad], missing, no)
    if isinstance(column, Categorical):  # every code stands for one value, which is what it is decoded to
        cells = column_cells(column, column.decode(np.arange(column.size), np.random.default_rng(0)))
        if cells.kind in (TEXT, TRUTH, NUMBER):
            values = cells.values.astype(np.float64) if cells.kind == NUMBER else cells.values
            return Spans(cells.kind, values, values, cells.missing, no)
    if isinstance(column, Held):
        return column.spans
    if isinstance(column, Merged):
        return _merged_spans(column, np.arange(column.base.size))
    if isinstance(column, Grid | Temporal):
        return _drawn_spans(column)
    return Spans(ANY, no, no, missing, ~no)


class _Fixed(np.random.Generator):
    """A generator that always gives the same number, for the smallest and the largest value of a code."""

    def __init__(self, number: float) -> None:
        super().__init__(np.random.PCG64(0))
        self._number = number

    def random(self, size: Any = None, *others: Any, **more: Any) -> Any:
        return np.full(size, self._number)


def _drawn_spans(column: Grid | Temporal) -> Spans:
    """The values of each code between those that the smallest and the largest random number are decoded to: a larger
    number gives no smaller value."""
    codes, no = np.arange(column.size), np.zeros(column.size, bool)
    ends = (0.0, float(np.nextafter(1.0, 0.0)))
    first, last = (column_cells(column, column.decode(codes, _Fixed(one))) for one in ends)
    if first.kind in (TEXT, TRUTH) and not np.array_equal(first.values, last.values):
        return Spans(ANY, no, no, no, ~no)
    kind = np.float64 if first.kind == NUMBER else first.values.dtype
    return Spans(first.kind, first.values.astype(kind), last.values.astype(kind), first.missing, no)


def _merged_spans(column: Merged, used: np.ndarray) -> Spans:
    """The values that some codes of each group are decoded to.

    Args:
        column: the column.
        used: these codes, at least one of each group.
    """
    base, no = spans_of(column.base), np.zeros(column.size, bool)
    if base.kind == ANY:
        return Spans(ANY, no, no, no, ~no)
    order = used[np.argsort(column.lookup[used], kind="stable")]
    starts = np.searchsorted(column.lookup[order], np.arange(column.size))
    missing = np.logical_and.reduceat(base.missing[order], starts)
    mixed = np.logical_or.reduceat(base.missing[order], starts) & ~missing
    free = mixed | np.logical_or.reduceat(base.free[order], starts)
    if base.kind in (TEXT, TRUTH):
        firsts = base.low[order][starts]
        other = base.low[order] != np.repeat(firsts, np.diff(np.append(starts, len(order))))
        return Spans(base.kind, firsts, firsts, missing, free | np.logical_or.reduceat(other, starts))
    low, high = np.minimum.reduceat(base.low[order], starts), np.maximum.reduceat(base.high[order], starts)
    return Spans(base.kind, low, high, missing, free)


def _free(kind: str, rows: int) -> Spans:
    yes, no = np.ones(rows, bool), np.zeros(rows, bool)
    if kind not in (TEXT, TRUTH, ANY):
        return Spans(kind, np.full(rows, -np.inf), np.full(rows, np.inf), no, yes)
    nothing = np.full(rows, "", object)
    return Spans(kind, nothing, nothing, no, yes)


def _narrowed(spans: Spans, codes: np.ndarray) -> Spans:
    kind, low, high, missing, free = spans
    return Spans(kind, low[codes], high[codes], missing[codes], free[codes])


def _at(cells: Cells, places: np.ndarray) -> Cells:
    return Cells(cells.kind, cells.values[places], cells.missing[places])


def _indices(places: np.ndarray) -> pa.Array:
    import pyarrow as pa

    return pa.array(np.asarray(places, np.int64))


def _patch(arrays: list[pa.Array], rows: np.ndarray, new: Sequence[pa.Array]) -> None:
    """Put new values into some rows of columns; in place."""
    import pyarrow as pa

    if len(rows):
        for n, (old, values) in enumerate(zip(arrays, new, strict=True)):
            where = np.arange(len(old))
            where[rows] = len(old) + np.arange(len(rows))
            arrays[n] = pa.concat_arrays([old, values]).take(_indices(where))
