"""Private schemas on disk: what is spent is written down before it is drawn, and never lost or spent twice.

Next to the schema file there are, while it is made, a folder ``NAME.spending`` with a journal and a lock, and from then
on a record ``NAME.ledger.json`` of all that was ever spent for this file. Charges are in the journal before their noise
is drawn, and results before they are used (:mod:`pointillist.release.journal`). A draft that was interrupted is
finished from its journal.
"""

from __future__ import annotations

import contextlib
import json
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import IO, Any

from pointillist.accounts import Account
from pointillist.checks import check, flag
from pointillist.data.files import path_of, write_text
from pointillist.data.neighbours import Relation
from pointillist.data.schema import Schema
from pointillist.discovering.draft import DraftJob, NothingTold, PrivateDraft, prepare_draft
from pointillist.errors import InputError, PointillistError, Shown, in_short
from pointillist.privacy.composition import round_up
from pointillist.release.journal import NAME as JOURNAL
from pointillist.release.journal import Journal, Record, is_blank, read_journal, sync_folder, undamaged
from pointillist.release.place import LOCK, lock_file
from pointillist.release.recorded import RecordedDoor, charged_in
from pointillist.runs import BookedRun

__all__ = ["private_schema", "resumed_options", "write_draft"]

SPENDING, LEDGER = ".spending", ".ledger.json"
OPTIONS = ("epsilon", "delta", "relation", "unit", "max_rows", "ignore", "insecure_noise_seed")
"""Arguments of :func:`prepare_draft` that a journal keeps as they were given."""


def private_schema(
    table: Any,
    *,
    epsilon: float,
    delta: float | None = None,
    relation: str | Relation | None = None,
    unit: str | None = None,
    max_rows: int | None = None,
    ignore: Sequence[str] = (),
    out: str | Path | None = None,
    force: bool = False,
    account: str | Path | Account | None = None,
    insecure_noise_seed: int | None = None,
) -> Schema:
    """Make a schema from a private table under (epsilon, delta)-differential privacy.

    Args:
        table: the private table: a pandas, polars or Arrow table.
        epsilon: the privacy loss, above 0.
        delta: the probability that the loss is larger; by default 1/n^2 under ``replace``. It must be given under
            ``add-remove``. Half of it is for values that only one unit has, which may be shown with that probability.
        relation: ``"replace"`` or ``"add-remove"``: which tables are neighbours. By default ``"replace"``, and
            ``"add-remove"`` with a unit.
        unit: the column that says to whom a row belongs. It is read to bound contributions, and left out of the schema.
        max_rows: the rows of each unit that are used, at most; they are chosen at random.
        ignore: columns to leave out; nothing is spent on them.
        out: the schema file. With it every charge is on disk before its noise is drawn. Without it the schema is only
            in memory, and what a draft spends that stops is lost.
        force: whether a schema in that file may be replaced. What it cost stays spent.
        account: an :class:`~pointillist.Account`, or its file, in which the draft books its budget before it looks at
            anything; needs ``out``.
        insecure_noise_seed: replaces the noise by seeded noise: for experiments only, the schema is NOT PRIVATE.
    """
    options = {
        "epsilon": epsilon,
        "delta": delta,
        "relation": None if relation is None else str(relation),
        "unit": unit,
        "max_rows": max_rows,
        "ignore": list(ignore),
        "insecure_noise_seed": insecure_noise_seed,
    }
    job = prepare_draft(table, **options)  # type: ignore[arg-type]
    if out is None:
        rule = "must be given together with out, so that the draft keeps a journal"
        check(account is None, "account", Shown("one without out"), rule, "give out, too")
        return job.run(job.curator).schema
    return write_draft(job, out, options, force=flag("force", force), account=account).schema


def write_draft(
    job: DraftJob,
    out: str | Path,
    options: Mapping[str, Any],
    *,
    force: bool = False,
    resume: bool = False,
    account: str | Path | Account | None = None,
    announce: Callable[[str], None] = lambda text: None,
) -> PrivateDraft:
    """Run a private draft with a journal, and write its schema file.

    Args:
        job: a prepared draft.
        out: the schema file.
        options: the arguments that it was prepared with.
        force: whether a schema in that file may be replaced. What it cost stays spent.
        resume: whether to finish a draft that was interrupted, without spending anything twice.
        account: as in :func:`private_schema`; a draft that goes on has the one that it began with.
        announce: gets a line about how the budget is split, before anything is spent.
    """
    if account is not None:
        rule, hint = "must not be given with seeded noise, which is not private", "leave one of them out"
        check(job.curator.noise.private, "account", Shown("one"), rule, hint)
        account = account if isinstance(account, Account) else Account.open(account)
    target = path_of("out", out).absolute()
    with _resumed(job, target) if resume else _claimed(job, target, options, force, account) as spending:
        return spending.finish(announce)


def resumed_options(out: str | Path) -> dict[str, Any]:
    """The arguments of an interrupted draft.

    Args:
        out: the schema file that it was to write.
    """
    target = path_of("out", out).absolute()
    path = _folder(target) / JOURNAL
    rule, hint = "must have an interrupted draft next to it", "start one without --resume"
    check(path.is_file(), "out", str(target), rule, hint)
    with undamaged(path):
        options = read_journal(path)[0][0].data["options"]
        return {name: options[name] for name in OPTIONS}


@dataclass(frozen=True)
class Spending:
    """A draft that is being paid for."""

    job: DraftJob
    target: Path
    journal: Journal
    records: Sequence[Record]
    booking: BookedRun
    lock: IO[bytes]

    def finish(self, announce: Callable[[str], None]) -> PrivateDraft:
        """Run what is left, and write the schema; whatever stops it, the journal stays if anything was spent."""
        ledger, failed = self.job.curator.ledger, None
        with undamaged(_folder(self.target) / JOURNAL):  # from here on the ledger has what the journal has
            door = RecordedDoor(self.job.curator, self.journal, self.job.domain, self.records)
        try:
            announce(self.job.describe())
            try:
                draft = self.job.run(door)
            except NothingTold as error:
                failed = error  # all was measured, and there is nothing to write
            else:
                write_text(self.target, draft.to_toml())
                sync_folder(self.target.parent)
            self._record("done")
            self.booking.settle(ledger, done=True)
        except BaseException as error:
            if ledger.unused:
                self._forget()
                raise
            with contextlib.suppress(Exception):
                self._record("interrupted")
            self.booking.settle(ledger, done=False)
            reason = str(error) if isinstance(error, PointillistError) else f"stopped by {in_short(error)}"
            text = f"{reason} (rho = {ledger.spent:.6g} of {ledger.limit:.6g} is spent); what was measured is kept"
            raise PointillistError(
                f"{text}: finish the draft with `pointillist schema DATA --private --resume`"
            ) from error
        self.clear()
        if failed is not None:
            raise failed
        return draft

    def clear(self) -> None:
        """Remove the folder of the journal."""
        self.journal.close()
        folder = _folder(self.target)
        for name in (JOURNAL, LOCK):
            (folder / name).unlink(missing_ok=True)
        folder.rmdir()
        sync_folder(self.target.parent)

    def _forget(self) -> None:
        """Take everything back: nothing was spent."""
        self.booking.settle(self.job.curator.ledger, done=True)
        kept = [one for one in _runs(self.target) if one["run"] != self.booking.run]
        if kept:
            _write_runs(self.target, kept)
        else:
            _ledger_file(self.target).unlink(missing_ok=True)
        self.clear()

    def _record(self, state: str) -> None:
        """Write down what was spent, in a readable form."""
        entry = _entry(self.job, self.booking.run, state)
        _write_runs(self.target, [*(one for one in _runs(self.target) if one["run"] != self.booking.run), entry])


@contextlib.contextmanager
def _claimed(
    job: DraftJob, target: Path, options: Mapping[str, Any], force: bool, account: Account | None
) -> Iterator[Spending]:
    """Claim the place of a new draft, and write down what it may spend."""
    _require_free(target, force)
    booking = BookedRun(uuid.uuid4().hex, account)
    folder = _folder(target)
    try:
        folder.mkdir(mode=0o700)
    except FileExistsError:
        raise _interrupted(target) from None
    except OSError as error:
        rule = f"must be in a folder that can be written to ({error.strerror})"
        raise InputError("out", str(target), rule, "choose another place") from None
    with contextlib.ExitStack() as opened:
        lock = _locked(folder, target)
        opened.callback(lock.close)
        journal = Journal.create(folder)
        opened.callback(journal.close)
        spending = Spending(job, target, journal, (), booking, lock)
        try:
            more = {"run": booking.run, "account": booking.file, "options": dict(options)}
            journal.append("job", json.loads(json.dumps(job.to_dict())) | more)
            spending._record("open")
            booking.reserve(f"private schema of {len(job.probed)} columns", job.curator.ledger)
        except BaseException:
            spending._forget()
            raise
        yield spending


@contextlib.contextmanager
def _resumed(job: DraftJob, target: Path) -> Iterator[Spending]:
    """The place of an interrupted draft, if no other process has it."""
    folder = _folder(target)
    path = folder / JOURNAL
    with contextlib.ExitStack() as opened:
        lock = _locked(folder, target)
        opened.callback(lock.close)
        with undamaged(path):
            spec = read_journal(path)[0][0].data
            again = json.loads(json.dumps(job.to_dict()))
            changed = [name for name, value in again.items() if value != spec[name]]
            hint = "give the same table, with the version of pointillist that began the draft"
            check(not changed, "draft", changed[:5], "must be the same as the one that was interrupted", hint)
            booking = BookedRun(spec["run"], None if spec["account"] is None else Account.open(spec["account"]))
        journal, records = Journal.reopen(folder)
        opened.callback(journal.close)
        with undamaged(path):
            booking.require_newest(path, charged_in(records))
        booking.reserve(f"private schema of {len(job.probed)} columns", job.curator.ledger)
        yield Spending(job, target, journal, records, booking, lock)


def _locked(folder: Path, target: Path) -> IO[bytes]:
    lock = lock_file(folder / LOCK)
    if lock is None:
        rule = "must not be in use by another draft, and must have an interrupted one to resume"
        raise InputError("out", str(target), rule, "wait until it ends, or start one without --resume")
    return lock


def _require_free(target: Path, force: bool) -> None:
    """Refuse to spend again for a file that was paid for already, unless that is asked for."""
    check(not target.is_dir(), "out", str(target), "must be a file", "choose another place")
    _sweep(target)
    spent = _runs(target)
    if spent and not force:
        costs = ", ".join(f"({one.get('epsilon'):g}, {one.get('delta'):g})" for one in spent)
        rule = f"must not have been paid for already ({_ledger_file(target).name} has {costs})"
        raise InputError("out", str(target), rule, "use that schema, or spend again with --force")
    hint = "choose another file, or replace it with --force"
    check(force or not target.exists(), "out", str(target), "must not exist already", hint)


def _sweep(target: Path) -> None:
    """Remove the folder of a draft that died before it could spend anything; refuse any other one."""
    folder = _folder(target)
    if not folder.exists():
        return
    lock = lock_file(folder / LOCK) if folder.is_dir() else None
    if lock is None:
        raise _interrupted(target)
    with lock:
        journal = folder / JOURNAL
        if journal.is_file() and not is_blank(journal):
            raise _interrupted(target)
        for name in (JOURNAL, LOCK):
            (folder / name).unlink(missing_ok=True)
        folder.rmdir()


def _interrupted(target: Path) -> InputError:
    rule = f"must not have an interrupted draft next to it ({_folder(target).name})"
    hint = "finish it with --resume, which spends nothing twice"
    return InputError("out", str(target), rule, hint)


def _folder(target: Path) -> Path:
    return target.with_name(target.name + SPENDING)


def _ledger_file(target: Path) -> Path:
    return target.with_name(target.name + LEDGER)


def _runs(target: Path) -> list[dict[str, Any]]:
    """All drafts that were ever paid for at this place."""
    path = _ledger_file(target)
    if not path.exists():
        return []
    try:
        runs = json.loads(path.read_text(encoding="utf-8"))["runs"]
        figures = all(isinstance(one["run"], str) and one["epsilon"] > 0 and one["delta"] > 0 for one in runs)
        if not figures:
            raise ValueError("no list of runs")
    except (OSError, ValueError, KeyError, TypeError) as error:
        rule = f"must be a record of what was spent ({type(error).__name__})"
        raise InputError("ledger", str(path), rule, "bring the file back from a backup, or move it away") from None
    return list(runs)


def _write_runs(target: Path, runs: Sequence[Mapping[str, Any]]) -> None:
    write_text(_ledger_file(target), json.dumps({"runs": list(runs)}, indent=1) + "\n")
    sync_folder(target.parent)


def _entry(job: DraftJob, run: str, state: str) -> dict[str, Any]:
    """What a draft has spent so far. Before that is known, all that it may spend counts."""
    ledger, paid = job.curator.ledger, job.paid()
    charges = (*ledger.entries, *ledger.pending)
    rho, delta = (sum((Fraction(getattr(one, name)) for one in charges), Fraction(0)) for name in ("rho", "delta"))
    spent = {"rho_spent": round_up(rho), "delta_spent": round_up(delta)}
    if state == "open":
        spent = {"rho_spent": paid.rho, "delta_spent": paid.delta_shown}
    when = datetime.now(UTC).isoformat(timespec="seconds")
    listed = {"ledger": [one.to_dict() for one in charges]}
    return {"run": run, "state": state, "written": when} | paid.to_dict() | spent | listed
