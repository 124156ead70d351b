"""An account of privacy budget that outlives a run: all that was ever spent on one table, and the cap on it.

An account is a SQLite file. A run reserves its whole budget before it looks at anything, and settles what it really
spent at the end. A reservation that was never settled, because the process died, counts in full. Every change is one
transaction that is on disk when the call returns; two processes wait for each other. Nothing in the file comes from the
table.

Which totals are let in, and why the cap holds however the runs are chosen: :mod:`pointillist.privacy.composition`.
"""

from __future__ import annotations

import contextlib
import decimal
import math
import numbers
import os
import re
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

from pointillist.checks import check, one_of
from pointillist.data.messages import fragment
from pointillist.data.neighbours import Relation, Unit, meaning_of
from pointillist.errors import BudgetError, InputError, PointillistError, Shown, brief, in_short
from pointillist.privacy.budget import Budget, epsilon_of
from pointillist.privacy.composition import Booked, Filter, gaussian_epsilon_of, round_up
from pointillist.privacy.gaussian import LEAST_SCALES
from pointillist.privacy.ledger import Ledger, minus, rounded_up

__all__ = ["Account", "AccountExceeded", "Booking", "Total"]

APPLICATION, BY_ROW, BY_UNIT = 0x506F696E, 1, 2
"""What marks a SQLite file as an account ("Poin"), and the versions of its tables: an account for a unit has one more
table, which says which."""

LARGE_SCALE = LEAST_SCALES[0]
"""What is left for a Gaussian run is said for one with noise of at least this scale."""

PATIENCE = 60.0
"""Seconds to wait for another process that writes to the account."""

PAUSE = 0.05
"""Seconds until another try where SQLite itself did not wait."""

LONGEST = 200
"""Characters of a run's id, and of its label (which is cut)."""

FRACTION = re.compile(r"[0-9]+(/0*[1-9][0-9]*)?")
LONGEST_FRACTION, MOST_RHO = 2_000, 10**6
"""How a rho is written in the file, its most characters, and the largest one: no budget has more."""

SMALLEST_SCALE = 0.5
"""Above it noise has a bound for Gaussian runs."""

TABLES = (
    """CREATE TABLE account (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    epsilon REAL NOT NULL,
    delta REAL NOT NULL,
    relation TEXT NOT NULL,
    created TEXT NOT NULL,
    zcdp_delta REAL,
    gaussian_delta REAL,
    least_scale REAL
)""",
    """CREATE TABLE runs (
    number INTEGER PRIMARY KEY,
    run TEXT NOT NULL UNIQUE,
    label TEXT NOT NULL,
    epsilon REAL NOT NULL,
    delta REAL NOT NULL,
    least_scale REAL,
    rho TEXT NOT NULL,
    spent TEXT,
    done INTEGER NOT NULL CHECK (done IN (0, 1)),
    reserved TEXT NOT NULL,
    settled TEXT
)""",
)
"""The three columns after ``created`` are the filter, empty until the first run is let in. rho and spent are exact
fractions. least_scale of a run is empty for zCDP."""

UNIT_TABLE = "CREATE TABLE unit (one INTEGER PRIMARY KEY CHECK (one = 1), name TEXT NOT NULL)"
"""The column of the unit that an account is for; an account by row has no such table."""

SHOWN_TABLE = "CREATE TABLE IF NOT EXISTS shown (run TEXT PRIMARY KEY, delta REAL NOT NULL)"
"""The part of delta of each run that shows values which only one unit has; made when the first such run is let in. It
is what the filter leaves of the cap's delta, so that versions which do not know this table keep the cap, too."""

SHOWN_SHARE = 0.5
"""The share of the cap's delta that is kept for such runs, if the first run is one."""

COLUMNS = "number, run, label, epsilon, delta, least_scale, rho, spent, done, reserved, settled"
"""Of a run, in the order of :func:`_booking`."""


class AccountExceeded(BudgetError):
    """A run that an account has no room for; the account is unchanged.

    Args:
        asked: the rho that the run would book.
        left: the rho that the account has left for a run of this kind.
        reason: the message.
    """

    def __init__(self, asked: float, left: float, reason: str) -> None:
        self.asked = asked
        self.left = left
        PointillistError.__init__(self, reason)


@dataclass(frozen=True)
class Booking:
    """One run in an account.

    Attributes:
        number: its place in the order of first reservations, from 1.
        run: its id.
        label: what it is, in words.
        epsilon, delta: the guarantee of the run by itself.
        accounting: ``"zCDP"`` or ``"Gaussian"``.
        least_scale: the least scale of its noise if it is Gaussian; None for zCDP.
        rho: what was reserved.
        spent: what is known to be spent; None before anything was settled.
        done: whether it has ended: then ``spent`` counts, otherwise ``rho``.
        reserved: when it was reserved, in UTC.
        settled: when it was settled last; None if it never was.
        delta_shown: the part of its delta for showing values that only one unit has.
    """

    number: int
    run: str
    label: str
    epsilon: float
    delta: float
    accounting: str
    least_scale: float | None
    rho: Fraction
    spent: Fraction | None
    done: bool
    reserved: str
    settled: str | None
    delta_shown: float = 0.0

    @property
    def counts(self) -> Fraction:
        """The rho that counts in the account."""
        return self.spent if self.done and self.spent is not None else self.rho

    def to_dict(self) -> dict[str, Any]:
        """The booking as plain values for JSON; every rho is a double already, or rounded up to one."""
        rhos = {
            "rho": round_up(self.rho),
            "spent": None if self.spent is None else round_up(self.spent),
            "counts": round_up(self.counts),
        }
        return asdict(self) | rhos


@dataclass(frozen=True)
class Total:
    """All runs of an account together.

    Attributes:
        epsilon: what the runs so far cost at the account's delta, if their sizes were chosen in advance.
        delta: the account's delta.
        composition: the bound that gives this epsilon: ``"zCDP"``, ``"Gaussian"`` or ``"mixed"``.
        cap: the account's epsilon: what all runs that it lets in cost, however they are chosen.
        relation: which tables are neighbours.
        unit: the column of what is protected as a whole; None for rows.
        rho_zcdp: the rho of the runs that are accounted in zCDP, rounded up.
        rho_gaussian: the rho of the Gaussian runs, rounded up.
        least_scale: the smallest least scale of the latter; None if there are none.
        left_zcdp: the largest rho of one more zCDP run, rounded down.
        left_gaussian: the largest rho of one more Gaussian run, with noise of scale 100 or more, rounded down.
        runs: the number of runs.
        open: the number of those that have not ended, and are counted in full.
        exceeded: whether more was spent than the cap allows. This can only happen if a run was settled by hand with
            less than it had spent.
    """

    epsilon: float
    delta: float
    composition: str
    cap: float
    relation: Relation
    unit: str | None
    rho_zcdp: float
    rho_gaussian: float
    least_scale: float | None
    left_zcdp: float
    left_gaussian: float
    runs: int
    open: int
    exceeded: bool

    @property
    def left(self) -> dict[str, float]:
        """The largest epsilon of one more run at the account's delta, by its accounting: three digits, rounded down."""
        rhos = {"zCDP": self.left_zcdp, "Gaussian": self.left_gaussian}
        return {kind: _epsilon_for(rho, self.delta, kind) for kind, rho in rhos.items()}

    @property
    def statement(self) -> str:
        """The guarantee in words, and what it is based on. Epsilon and delta are rounded up."""
        cap, delta, relation = rounded_up(self.cap), rounded_up(self.delta), self.relation
        lines = [
            f"All runs that this account lets in are together ({cap}, {delta})-differentially private, "
            f"relation {relation.value}: {meaning_of(relation, self.unit)}."
        ]
        if self.exceeded:
            lines = [
                f"EXCEEDED: the runs in this account spent more than its cap of ({cap}, {delta}), relation "
                f"{relation.value}, because a run was settled with less than it then spent."
            ]
        if not self.runs:
            return f"{lines[0]}\nNothing is booked yet."
        still = f", {self.open:,} of them open and counted in full" if self.open else ""
        scale = "" if self.least_scale is None else f" of scale {self.least_scale:g} or more"
        lines.append(
            f"Booked by {self.runs:,} {'run' if self.runs == 1 else 'runs'}{still}: rho = {self.rho_zcdp:.6g} in zCDP "
            f"and {self.rho_gaussian:.6g} of Gaussian noise{scale}."
        )
        lines.append(
            "If no result of a run decided on the size of a later one, these are together "
            f"({rounded_up(self.epsilon)}, {delta})-differentially private ({self.composition} composition)."
        )
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """The total as plain values for JSON, with what is left and the statement."""
        words = {"relation": self.relation.value, "left_epsilon": self.left, "statement": self.statement}
        return asdict(self) | words


class Account:
    """A cap on the privacy loss of all runs on one table, and the runs that are booked under it.

    Make one with :meth:`create` or :meth:`open`. No connection is kept between calls, so an account may be shared by
    threads and by processes.

    Attributes:
        path: the file.
        budget: the cap: epsilon, delta and the relation.
        unit: the column of what is protected as a whole; None for rows.
    """

    def __init__(self, path: Path, budget: Budget, unit: str | None = None) -> None:
        self.path = path
        self.budget = budget
        self.unit = unit

    @classmethod
    def create(
        cls,
        path: str | Path,
        epsilon: float,
        delta: float,
        relation: str | Relation | None = None,
        unit: str | None = None,
    ) -> Account:
        """Make the file of a new account, readable by its owner alone.

        Args:
            path: where to; nothing may be there, and it must be on a disk of this machine.
            epsilon: the privacy loss of all runs together.
            delta: the probability that the loss is larger.
            relation: ``"replace"`` or ``"add-remove"``; a run under another relation is refused. By default
                ``"replace"``, and ``"add-remove"`` with a unit.
            unit: the column of what is protected as a whole, for runs with that unit and any ``max_rows``; others are
                refused. By default runs are by row.
        """
        if relation is None:
            relation = Relation.REPLACE if unit is None else Relation.ADD_REMOVE
        chosen = Relation(one_of("relation", relation, [one.value for one in Relation]))
        bound = None if unit is None else Unit(unit, 1)  # the figure does not matter: it is the run's
        budget = replace(Budget(_number("epsilon", epsilon), _number("delta", delta), chosen, bound), unit=None)
        path = _resolved(path)
        _claim(path)
        try:
            _fill(path, budget, unit)
        except BaseException:
            for made in (path, *_beside(path)):
                made.unlink(missing_ok=True)
            raise
        return cls(path, budget, unit)

    @classmethod
    def open(cls, path: str | Path) -> Account:
        """Open the file of an account and check that it is one, and undamaged.

        Args:
            path: the file that :meth:`create` made.
        """
        path = _resolved(path)
        with _transaction(path) as db:
            found = [row[0] for row in db.execute("PRAGMA integrity_check")]
            if found != ["ok"]:
                raise _damaged(path, str(found[0]))
            try:
                epsilon, delta, relation = db.execute("SELECT epsilon, delta, relation FROM account").fetchone()
                budget = Budget(float(epsilon), float(delta), Relation(relation))
                unit = _unit(db)
            except (TypeError, ValueError) as error:
                raise _damaged(path, str(error)) from None
            _bookings(db, path)
            _filter(db, path, budget)
        return cls(path, budget, unit)

    def reserve(self, run: str, label: str, ledger: Ledger) -> None:
        """Book the whole budget of a run, before it looks at anything; or refuse, and change nothing.

        The same run again, with the same figures, changes nothing while it is open: it is a run that goes on. If it was
        settled as done, its whole budget is booked again.

        Args:
            run: the run's id, which no other run has.
            label: what it is, in words; it is cut after 200 characters.
            ledger: the run's budget: its limit counts, of its kind.
        """
        run, label = _run_id(run), _text(label)[:LONGEST]
        asked, relation = ledger.budget, self.budget.relation
        rule, hint = f"must be that of the account ({relation.value})", "use another account for this relation"
        check(asked.relation is relation, "relation", asked.relation.value, rule, hint)
        self._require_unit(asked.unit)
        rho = Fraction(ledger.limit)
        with _transaction(self.path, write=True) as db:
            before = _find(db, self.path, run)
            if before is not None:
                _require_same(before, ledger)
                if not before.done:
                    return
            self._let_in(db, run, ledger)
            if ledger.delta_shown:
                db.execute(SHOWN_TABLE)
                db.execute("INSERT OR REPLACE INTO shown (run, delta) VALUES (?, ?)", (run, ledger.delta_shown))
            if before is not None:
                db.execute("UPDATE runs SET done = 0 WHERE run = ?", (run,))
                return
            columns = "run, label, epsilon, delta, least_scale, rho, done, reserved"
            values = (run, label, asked.epsilon, asked.delta, ledger.least_scale, str(rho), 0, _now())
            db.execute(f"INSERT INTO runs ({columns}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)", values)

    def _require_unit(self, unit: Unit | None) -> None:
        """What a run protects must be what the account protects: rows, or all rows of one value of the same column.

        How many rows of a unit are used does not matter. All rows of the unit are protected in any case.
        """
        name = None if unit is None else unit.name
        wanted = "rows" if self.unit is None else f"the unit {fragment(self.unit)}"
        shown = Shown("rows" if name is None else f"the unit {fragment(name)}")
        hint = "use another account for what this run protects"
        check(name == self.unit, "unit", shown, f"must be that of the account ({wanted})", hint)

    def settle(self, run: str, spent: float, done: bool) -> None:
        """Say what a run has spent.

        Args:
            run: the run's id.
            spent: all that it has spent so far, at most what it reserved and never less than was said before.
            done: whether it has ended. Then ``spent`` is what counts from now on. If not, because it stopped and may go
                on, its reservation still counts in full.
        """
        run, amount = _run_id(run), Fraction(_finite("spent", spent))
        with _transaction(self.path, write=True) as db:
            found = _find(db, self.path, run)
            if found is None:
                raise InputError("run", run, "must be booked in the account", "see `pointillist account history`")
            reserved, known = round_up(found.rho), found.spent or Fraction(0)
            rule = f"must be at most the rho that was reserved ({reserved!r})"
            check(amount <= found.rho, "spent", spent, rule, "give the rho that the run's ledger shows as spent")
            rule = f"must be at least what was settled before ({round_up(known)!r})"
            check(amount >= known, "spent", spent, rule, "what was spent stays spent")
            # A run that was settled as done and then says more has really spent it, even above the cap.
            ended = int(bool(done) or found.done)
            values = (str(amount), ended, _now(), run)
            db.execute("UPDATE runs SET spent = ?, done = ?, settled = ? WHERE run = ?", values)
            if found.delta_shown and ended and amount == 0:  # it has looked at nothing
                db.execute("DELETE FROM shown WHERE run = ?", (run,))

    def spent(self, run: str) -> Fraction:
        """What a run is known to have spent; 0 if nothing was settled yet, or it is not booked.

        Args:
            run: the run's id.
        """
        with _transaction(self.path) as db:
            found = _find(db, self.path, _run_id(run))
        return Fraction(0) if found is None or found.spent is None else found.spent

    def total(self) -> Total:
        """All runs together: what they cost, what is left, and the guarantee in words."""
        with _transaction(self.path) as db:
            bookings, chosen = _bookings(db, self.path), _filter(db, self.path, self.budget)
        booked, cap = _booked(bookings), self.budget
        shown = sum((Fraction(one.delta_shown) for one in bookings), Fraction(0))
        epsilon, composition = booked.epsilon(minus(cap.delta, shown))
        within = chosen is None or chosen.allows(booked)
        return Total(
            epsilon=min(epsilon, cap.epsilon) if within else epsilon,  # the two may differ by rounding
            delta=cap.delta,
            composition=composition,
            cap=cap.epsilon,
            relation=cap.relation,
            unit=self.unit,
            rho_zcdp=round_up(booked.zcdp),
            rho_gaussian=round_up(booked.gaussian),
            least_scale=booked.least_scale if booked.gaussian else None,
            left_zcdp=_down(self._left(chosen, booked, None)),
            left_gaussian=_down(self._left(chosen, booked, LARGE_SCALE)),
            runs=len(bookings),
            open=sum(not one.done for one in bookings),
            exceeded=not within,
        )

    def history(self) -> list[Booking]:
        """Every run, in the order of their first reservations."""
        with _transaction(self.path) as db:
            return _bookings(db, self.path)

    def _let_in(self, db: sqlite3.Connection, run: str, ledger: Ledger) -> None:
        """Refuse a run for which there is no room. The first run that costs anything decides on the filter."""
        cap, rho, scale = self.budget, Fraction(ledger.limit), ledger.least_scale
        others = [one for one in _bookings(db, self.path) if one.run != run]
        booked, shown = _booked(others), sum((Fraction(one.delta_shown) for one in others), Fraction(0))
        chosen = _filter(db, self.path, cap) if booked.rho else None
        asked = Fraction(ledger.delta_shown)
        if chosen is None:
            kept = max(Fraction(cap.delta * SHOWN_SHARE), shown + asked) if shown + asked else Fraction(0)
            if kept >= Fraction(cap.delta):
                raise _no_delta(run, ledger, minus(cap.delta, shown))
            chosen = Filter.opening(cap.epsilon, minus(cap.delta, kept), booked.plus(rho, scale))
            values = (chosen.zcdp_delta, chosen.gaussian_delta, chosen.least_scale)
            db.execute("UPDATE account SET zcdp_delta = ?, gaussian_delta = ?, least_scale = ?", values)
        if not chosen.allows(booked.plus(rho, scale)):
            left = _down(chosen.left(booked, scale))
            raise AccountExceeded(ledger.limit, left, _refusal(run, ledger, left))
        room = minus(cap.delta, Fraction(chosen.zcdp_delta) + Fraction(chosen.gaussian_delta) + shown)
        if asked > Fraction(room):
            raise _no_delta(run, ledger, max(room, 0.0))

    def _left(self, chosen: Filter | None, booked: Booked, least_scale: float | None) -> Fraction:
        """What one more run may cost; of an empty account, what its first run may cost."""
        if booked.rho and chosen is not None:
            return chosen.left(booked, least_scale)
        return Fraction(Ledger(self.budget, least_scale).limit)


def _refusal(run: str, ledger: Ledger, left: float) -> str:
    most = _epsilon_for(left, ledger.budget.delta, ledger.accounting)
    hint = f"use an epsilon of at most {most:g} for this run" if most else "its budget is used up"
    return (
        f"run {run!r} must cost at most the rho that the account has left for a {ledger.accounting} run ({left:.6g}), "
        f"got {ledger.limit:.6g}; the account is unchanged: {hint}."
    )


def _no_delta(run: str, ledger: Ledger, left: float) -> AccountExceeded:
    """The refusal of a run that would show values for which the account has no part of delta."""
    first = "book a private schema, or a run that discovers values, before any other run, which keeps a part for it"
    hint = "use a smaller delta" if left else first
    text = (
        f"run {run!r} must use at most the delta that the account has left for values that only one unit has "
        f"({left:.6g}), got {ledger.delta_shown:.6g}; the account is unchanged: {hint}."
    )
    return AccountExceeded(ledger.delta_shown, left, text)


def _epsilon_for(rho: float, delta: float, accounting: str) -> float:
    """The epsilon of a run that may cost rho: three digits, rounded down, so that such a run is let in."""
    exact = epsilon_of(rho, delta) if accounting == "zCDP" else gaussian_epsilon_of(rho, delta, LARGE_SCALE)
    context = decimal.Context(prec=3, rounding=decimal.ROUND_FLOOR)
    return float(context.create_decimal(decimal.Decimal(exact * (1 - 1e-9))))


def _require_same(before: Booking, ledger: Ledger) -> None:
    """A run that goes on has the figures that it was booked with."""
    same = before.rho == Fraction(ledger.limit) and before.least_scale == ledger.least_scale
    same = same and (before.done or before.delta_shown == ledger.delta_shown)
    rule = f"must keep the figures of its reservation (rho = {round_up(before.rho)!r}, {before.accounting})"
    given = Shown(f"rho = {ledger.limit!r}, {ledger.accounting}")
    check(same, f"run {before.run!r}", given, rule, "give a new run another id")


def _down(x: Fraction) -> float:
    """The largest double that is not above x."""
    return minus(0.0, -x)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _number(parameter: str, value: Any) -> float:
    """A real number, of Python or NumPy; True is none."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise InputError(parameter, value, "must be a number", "give for example 1e-9")
    try:
        return float(value)
    except OverflowError:
        return math.inf


def _finite(parameter: str, value: Any) -> float:
    number = _number(parameter, value)
    check(math.isfinite(number) and number >= 0, parameter, number, "must be a finite number, 0 or more", "give a rho")
    return number


def _text(value: Any) -> str:
    """A text that a file can hold, on one line."""
    return " ".join(str(value).encode("utf-8", "replace").decode("utf-8").split())


def _run_id(run: Any) -> str:
    good = isinstance(run, str) and 0 < len(run) <= LONGEST and run.isprintable() and run == _text(run)
    shown = run if not isinstance(run, str) else run[:60]
    rule = f"must be a text of 1 to {LONGEST} printable characters without spaces around"
    check(good, "run", shown, rule, "give the id of the run")
    return str(run)


# --- the file ---


def _resolved(path: str | Path) -> Path:
    """The real place of the file: SQLite's files next to it follow its name, so that links must be followed first."""
    try:
        return Path(path).resolve()
    except (OSError, ValueError, TypeError, RuntimeError) as error:
        shown = str(path)[:60] if isinstance(path, (str, Path)) else brief(path)
        raise InputError("account", shown, f"must be the path of a file ({in_short(error)})", "check it") from None


def _beside(path: Path) -> list[Path]:
    """The files that SQLite keeps next to a database while it is in use, or after a process was killed."""
    return [path.with_name(path.name + ending) for ending in ("-wal", "-shm", "-journal")]


def _claim(path: Path) -> None:
    """Make the empty file, which nobody else may read. Only one of several processes succeeds."""
    for old in _beside(path):
        rule = f"must not have a file of an earlier account next to it ({old.name})"
        check(not os.path.lexists(old), "account", str(path), rule, "choose another name, or move that file away")
    hint = "choose another file, or see what it holds with `pointillist account show`"
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | getattr(os, "O_CLOEXEC", 0), 0o600))
    except FileExistsError:
        raise InputError("account", str(path), "must not exist already", hint) from None
    except OSError as error:
        rule = f"must be in a folder that can be written to ({error.strerror})"
        raise InputError("account", str(path)[-LONGEST:], rule, "choose another place") from None


def _unit(db: sqlite3.Connection) -> str | None:
    """The column of the unit that an account is for; None for rows."""
    (version,) = db.execute("PRAGMA user_version").fetchone()
    if version == BY_ROW:
        return None
    (name,) = db.execute("SELECT name FROM unit").fetchone()
    return Unit(name, 1).name


def _fill(path: Path, budget: Budget, unit: str | None) -> None:
    """Write the tables in one transaction: without it the file is no account."""
    with _sentences(path), contextlib.closing(_connection(path, PATIENCE)) as db:
        _settle_in(db)
        (mode,) = db.execute("PRAGMA journal_mode = WAL").fetchone()
        rule = f"must be on a disk of this machine (its journal is {mode!r}, not 'wal')"
        check(mode == "wal", "account", str(path), rule, "choose another place")
        db.execute("BEGIN IMMEDIATE")
        for table in TABLES:
            db.execute(table)
        values = (budget.epsilon, budget.delta, budget.relation.value, _now())
        db.execute("INSERT INTO account (one, epsilon, delta, relation, created) VALUES (1, ?, ?, ?, ?)", values)
        if unit is not None:
            db.execute(UNIT_TABLE)
            db.execute("INSERT INTO unit (one, name) VALUES (1, ?)", (unit,))
        db.execute(f"PRAGMA user_version = {BY_ROW if unit is None else BY_UNIT}")
        db.execute(f"PRAGMA application_id = {APPLICATION}")
        db.execute("COMMIT")
    with contextlib.suppress(OSError):  # not every system can sync a folder
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


@contextmanager
def _transaction(path: Path, write: bool = False) -> Iterator[sqlite3.Connection]:
    """All or nothing, and on disk at the end; a writer has the account for itself from the start."""
    if not os.path.isfile(path):  # unlike Path.is_file, it takes names of any length
        hint = "make one with `pointillist account create`"
        raise InputError("account", str(path)[-LONGEST:], "must be an existing account file", hint)
    links = path.stat().st_nlink
    rule = f"must have one name only (it has {links} hard links)"
    check(links == 1, "account", str(path), rule, "remove the other names, under which it would be spent twice")
    with _sentences(path), contextlib.closing(_begun(path, write)) as db:
        try:
            yield db
            db.execute("COMMIT")
        finally:
            if db.in_transaction:
                db.execute("ROLLBACK")


def _begun(path: Path, write: bool) -> sqlite3.Connection:
    """A connection in a transaction that has its lock, or its view of the file, already.

    SQLite waits for a lock that another process holds. But it gives up early, with the words "locking protocol", where
    many processes open and close the file at once and one of them loses every race, for example because others were
    killed and left the file to be recovered. Nothing has happened by then, so that it is tried again.
    """
    end = time.monotonic() + PATIENCE
    while True:
        db = _connection(path, max(end - time.monotonic(), 0.0))
        try:
            _settle_in(db)
            _require_account(db, path)
            db.execute("BEGIN IMMEDIATE" if write else "BEGIN")
            db.execute("PRAGMA user_version").fetchone()  # a transaction that reads begins with its first reading
            return db
        except BaseException as error:
            db.close()
            if not _is_taken(error) or time.monotonic() >= end:
                raise
        time.sleep(PAUSE)


def _connection(path: Path, patience: float) -> sqlite3.Connection:
    return sqlite3.connect(f"{path.as_uri()}?mode=rw", uri=True, timeout=patience, isolation_level=None)


def _settle_in(db: sqlite3.Connection) -> None:
    """Safe settings."""
    db.execute("PRAGMA synchronous = FULL")
    db.execute("PRAGMA fullfsync = ON")


def _is_taken(error: BaseException) -> bool:
    """Whether an error of SQLite says that another process has the file."""
    return isinstance(error, sqlite3.Error) and any(words in str(error) for words in ("locked", "locking protocol"))


@contextmanager
def _sentences(path: Path) -> Iterator[None]:
    """An error of SQLite is a sentence."""
    try:
        yield
    except sqlite3.Error as error:
        raise _sentence(path, error) from None
    except UnicodeError:  # a message of SQLite that quotes the damage
        raise _damaged(path, "text that is not UTF-8") from None


def _require_account(db: sqlite3.Connection, path: Path) -> None:
    (application,) = db.execute("PRAGMA application_id").fetchone()
    (version,) = db.execute("PRAGMA user_version").fetchone()
    hint = "make one with `pointillist account create`"
    check(application == APPLICATION, "account", str(path), "must be an account file", hint)
    rule = f"must be of version {BY_ROW} or {BY_UNIT} (it is of version {version})"
    check(version in (BY_ROW, BY_UNIT), "account", str(path), rule, "update pointillist")


def _sentence(path: Path, error: sqlite3.Error) -> InputError:
    text = str(error)
    if "not a database" in text:
        hint = "make one with `pointillist account create`"
        return InputError("account", str(path), "must be an account file", hint)
    if "malformed" in text or "no such" in text:
        return _damaged(path, text)
    if _is_taken(error):
        rule = f"must be free within {PATIENCE:g} seconds"
        return InputError("account", str(path), rule, "wait for the other process, then try again")
    hint = "check its permissions and the space on its disk"
    return InputError("account", str(path), f"must be a file that can be written to ({text})", hint)


def _damaged(path: Path, reason: str) -> InputError:
    rule = f"must be undamaged ({' '.join(reason.split())[:60]})"
    return InputError("account", str(path), rule, "restore it from a copy that knows all runs")


def _bookings(db: sqlite3.Connection, path: Path) -> list[Booking]:
    shown = _shown_deltas(db, path)
    found = [_booking(path, *row) for row in db.execute(f"SELECT {COLUMNS} FROM runs ORDER BY number")]
    return [replace(one, delta_shown=shown.get(one.run, 0.0)) for one in found]


def _shown_deltas(db: sqlite3.Connection, path: Path) -> dict[str, float]:
    """The part of delta for showing values, of each run that has one."""
    if db.execute("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'shown'").fetchone() is None:
        return {}
    rows = db.execute("SELECT run, delta FROM shown").fetchall()
    if not all(isinstance(run, str) and _is_figure(delta) and delta < 1 for run, delta in rows):
        raise _damaged(path, "a part of delta is not a number")
    return dict(rows)


def _booking(
    path: Path,
    number: int,
    run: str,
    label: str,
    epsilon: float,
    delta: float,
    least_scale: float | None,
    rho: str,
    spent: str | None,
    done: int,
    reserved: str,
    settled: str | None,
) -> Booking:
    """One row. SQLite keeps values of any type in any column, so that each is checked."""
    texts = (run, label, reserved, "" if settled is None else settled)
    figures = (epsilon, delta, 1.0 if least_scale is None else least_scale)
    booked, known = _fraction(rho), Fraction(0) if spent is None else _fraction(spent)
    good = all(isinstance(one, str) for one in texts) and all(_is_figure(one) for one in figures)
    good = good and (least_scale is None or least_scale > SMALLEST_SCALE) and done in (0, 1)
    if not good or booked is None or known is None or known > booked:
        raise _damaged(path, f"the row of run {number} does not hold what a run has")
    return Booking(
        number=number,
        run=run,
        label=label,
        epsilon=epsilon,
        delta=delta,
        accounting="zCDP" if least_scale is None else "Gaussian",
        least_scale=least_scale,
        rho=booked,
        spent=None if spent is None else known,
        done=bool(done),
        reserved=reserved,
        settled=settled,
    )


def _is_figure(value: Any) -> bool:
    """Whether a value is a finite number above 0."""
    return isinstance(value, float) and 0 < value < math.inf


def _fraction(text: Any) -> Fraction | None:
    """A fraction as it was written, 0 or more; None for anything else."""
    if not isinstance(text, str) or len(text) > LONGEST_FRACTION or FRACTION.fullmatch(text) is None:
        return None
    found = Fraction(text)
    return found if found <= MOST_RHO else None


def _find(db: sqlite3.Connection, path: Path, run: str) -> Booking | None:
    row = db.execute(f"SELECT {COLUMNS} FROM runs WHERE run = ?", (run,)).fetchone()
    return None if row is None else replace(_booking(path, *row), delta_shown=_shown_deltas(db, path).get(run, 0.0))


def _booked(bookings: list[Booking]) -> Booked:
    """What they cost together."""
    total = Booked()
    for one in bookings:
        total = total.plus(one.counts, one.least_scale)
    return total


def _filter(db: sqlite3.Connection, path: Path, cap: Budget) -> Filter | None:
    """The filter that the first run decided on. Its two parts of delta are together at most that of the cap."""
    columns = "zcdp_delta, gaussian_delta, least_scale"
    row = db.execute(f"SELECT {columns} FROM account").fetchone()
    if row is not None and row == (None, None, None):
        return None
    if row is None or not all(isinstance(one, float) and one >= 0 for one in row):
        raise _damaged(path, "its rule is not made of numbers")
    shown = sum(_shown_deltas(db, path).values())
    if row[2] <= SMALLEST_SCALE or not row[0] + row[1] + shown <= cap.delta * (1 + 1e-12):
        raise _damaged(path, "its rule is not that of its cap")
    return Filter(cap.epsilon, *row)
