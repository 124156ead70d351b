"""From a table to a release on disk: runs that keep a journal, and runs that are taken up again after a crash.

With a folder to write to, the place of the release is claimed before the first charge, every charge is on disk before
its noise is drawn, and every noisy value before it is used (:mod:`pointillist.release.journal`). Whatever happens after
that, :func:`resume` finishes the run without spending anything twice.
"""

from __future__ import annotations

import contextlib
import inspect
import json
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from pointillist.accounts import Account
from pointillist.algorithms import Method
from pointillist.checks import check
from pointillist.data.neighbours import Unit
from pointillist.data.schema import Schema
from pointillist.data.sources import LaterSource
from pointillist.errors import RunStopped, Shown, in_short
from pointillist.job import Job, SpendingProgress, prepare
from pointillist.privacy.composition import round_up
from pointillist.privacy.ledger import Ledger
from pointillist.queries.workload import Workload
from pointillist.release import Place, Release
from pointillist.release.journal import NAME as JOURNAL
from pointillist.release.journal import Journal, Record, read_journal, undamaged
from pointillist.release.recorded import RecordedDoor, charged_in
from pointillist.reporting import phase
from pointillist.showing import watched

__all__ = ["BookedRun", "journal_of", "resume", "run_into", "synthesize"]

OPTIONS = ("rows", "seed", "insecure_noise_seed", "zcdp")
"""Arguments of :func:`prepare` that a journal keeps as they are."""


def _no_text(text: str) -> None:
    """Say nothing."""


def synthesize(
    table: Any,
    *,
    out: str | Path | None = None,
    force: bool = False,
    account: str | Path | Account | None = None,
    progress: bool | SpendingProgress | None = None,
    announce: Callable[[str], None] = _no_text,
    **options: Any,
) -> Release:
    """Make a synthetic table under (epsilon, delta)-differential privacy: :func:`prepare` a job and run it.

    Args:
        table: the private table.
        out: a folder for the release. With it the run keeps a journal there, and :func:`resume` finishes it if it is
            interrupted. Without it the release is only in memory, and a run that stops is lost.
        force: whether a release in that folder may be replaced.
        account: an :class:`~pointillist.Account`, or its file, in which the run books its budget before it looks at
            anything; needs ``out``.
        progress: True shows what the run is doing: as bars in a terminal, as a table in a notebook, as log lines
            elsewhere. None does so in notebooks, and only logs elsewhere; False does neither. Or a function, which is
            called before the first and after each round with the rounds done, the rounds in all and the share of the
            budget that is spent.
        announce: gets a few lines about the size of the job and about what was found.
        **options: the other arguments of :func:`prepare`; ``epsilon`` must be given.
    """
    job = prepare(table, **options)
    if out is None:
        rule = "must be given together with out, so that the run keeps a journal"
        check(account is None, "account", Shown("one without out"), rule, "give out, too")
        return job.run(progress, announce)
    return run_into(job, out, force=force, account=account, progress=progress, announce=announce)


def _with_options(call: Callable[..., Any]) -> inspect.Signature:
    """The signature of a function that hands its options on to :func:`prepare`: with all of them in it."""
    own = [p for p in inspect.signature(call).parameters.values() if p.kind is not inspect.Parameter.VAR_KEYWORD]
    options = list(inspect.signature(prepare).parameters.values())[1:]
    return inspect.Signature([own[0], *options, *own[1:]], return_annotation=Release)


synthesize.__signature__ = _with_options(synthesize)  # type: ignore[attr-defined]


def run_into(
    job: Job,
    out: str | Path,
    *,
    force: bool = False,
    inputs: Sequence[Path] = (),
    origin: Mapping[str, str] | None = None,
    account: str | Path | Account | None = None,
    progress: bool | SpendingProgress | None = None,
    announce: Callable[[str], None] = _no_text,
) -> Release:
    """Run a job with a journal, and save its release.

    Args:
        job: a prepared job.
        out: the folder of the release.
        force: whether a release in that folder may be replaced.
        inputs: files that the run reads, which must not lie in the folder.
        origin: where the tables came from, by name, for a later :func:`resume` from the command line.
        account: as in :func:`synthesize`.
        progress: as in :func:`synthesize`.
        announce: as in :func:`synthesize`.
    """
    if account is not None:
        rule, hint = "must not be given with seeded noise, which is not private", "leave one of them out"
        check(job.curator.noise.private, "account", Shown("one"), rule, hint)
        account = account if isinstance(account, Account) else Account.open(account)
    booking = BookedRun(uuid.uuid4().hex, account)
    place = Place.claim(out, force, inputs, job.disk)
    try:
        journal = Journal.create(place.work)
        try:
            more = {"run": booking.run, "origin": dict(origin or {}), "account": booking.file}
            journal.append("job", job.to_dict() | more)
            booking.reserve(_label(job), job.curator.ledger)
        except BaseException:
            journal.close()
            raise
    except BaseException:
        place.abandon()
        raise
    door = RecordedDoor(job.curator, journal, job.schema.domain)
    return _finish(job, door, place, journal, booking, progress, announce)


def resume(
    out: str | Path,
    table: Any = None,
    *,
    public: Any = None,
    method: Method | None = None,
    progress: bool | SpendingProgress | None = None,
    announce: Callable[[str], None] = _no_text,
) -> Release:
    """Finish a run that was interrupted, without spending anything twice.

    What the journal has is played back; the fit is repeated, since it is post-processing. The private table is only
    needed if measurements are left to make.

    Args:
        out: the folder that the run was to write.
        table: the private table, as it was given to the run. It must be the same: only its schema and, if it is public,
            its number of rows can be checked.
        public: the public table of the run, if it had one.
        method: the method, if it is not one of the registry.
        progress: as in :func:`synthesize`.
        announce: as in :func:`synthesize`.
    """
    place = Place.reopen(out)
    path = place.work / JOURNAL
    with contextlib.ExitStack() as opened:
        opened.callback(place.close)
        if place.complete:
            place.finish()
            return Release.load(place.target)
        with undamaged(path):
            begun, _ = read_journal(path)
            spec = begun[0].data
            job = _job_of(spec, table, public, method)
            booking = BookedRun(spec["run"], None if spec["account"] is None else Account.open(spec["account"]))
            booking.require_newest(path, charged_in(begun))
        booking.reserve(_label(job), job.curator.ledger)
        journal, records = Journal.reopen(place.work)
        opened.callback(journal.close)
        with undamaged(path):
            door = RecordedDoor(job.curator, journal, job.schema.domain, records)
        opened.pop_all()  # from here on they are closed by the run
    return _finish(job, door, place, journal, booking, progress, announce)


@dataclass(frozen=True)
class BookedRun:
    """A run in an account, or in none."""

    run: str
    account: Account | None

    @property
    def file(self) -> str | None:
        """The file of the account."""
        return None if self.account is None else str(Path(self.account.path).resolve())

    def reserve(self, label: str, ledger: Ledger) -> None:
        """Book the whole budget before anything is looked at, or refuse."""
        if self.account is not None:
            self.account.reserve(self.run, label, ledger)

    def require_newest(self, journal: Path, charged: Fraction) -> None:
        """Refuse a journal that has less than the account knows to be spent: it is a copy from before, and what is
        missing in it would be drawn, and spent, a second time."""
        known = Fraction(0) if self.account is None else self.account.spent(self.run)
        rule = "must have every charge that the account knows of (this is an older copy of it)"
        hint = "resume the run in its own folder, not in a copy"
        check(Fraction(round_up(charged)) >= known, "journal", str(journal), rule, hint)

    def settle(self, ledger: Ledger, done: bool) -> None:
        """Note what was spent; if that fails, the whole budget stays booked, which is safe."""
        if self.account is not None:
            with contextlib.suppress(Exception):
                self.account.settle(self.run, ledger.spent, done=done)


def _finish(
    job: Job,
    door: RecordedDoor,
    place: Place,
    journal: Journal,
    booking: BookedRun,
    progress: bool | SpendingProgress | None,
    announce: Callable[[str], None],
) -> Release:
    """Run what is left, draw the rows and publish the release; whatever stops it, the journal stays."""
    log = None
    try:
        with watched(progress) as call:
            for step in (Job.discovered, Job.refined):
                staged = step(job, door, announce)
                if staged is not job:
                    job, door = staged, door.onto(staged.curator, staged.schema.domain)
            params, log = job.execute(door, call, announce)
            booking.settle(job.curator.ledger, done=True)  # nothing more will be charged
            release = job.release(params, log)
            phase("writing")
            place.publish(release.write)
        journal.close()
    except BaseException as error:
        journal.close()
        if job.curator.ledger.unused:
            booking.settle(job.curator.ledger, done=True)
            place.abandon()
            raise
        if place.finished:
            place.close()
            raise
        if log is None:
            booking.settle(job.curator.ledger, done=False)
        _write_ledger(job, place, error)
        place.close()
        reason = error.reason if isinstance(error, RunStopped) else f"stopped by {in_short(error)}"
        kept = f"what was measured is kept: finish it with `pointillist resume {place.target}`"
        raise job.stopped(f"{reason}; {kept}", error.log if isinstance(error, RunStopped) else log) from error
    return release


def _label(job: Job) -> str:
    return f"{job.method.name}, {job.task.workload.describe()}"


def _write_ledger(job: Job, place: Place, error: BaseException) -> None:
    """The ledger in a readable form, next to the journal, which holds it in any case."""
    if place.complete or not place.interrupted:
        return  # the release has it
    ledger = job.curator.ledger
    content = {
        "reason": " ".join(str(error).split())[:300],
        "epsilon": ledger.budget.epsilon,
        "delta": ledger.budget.delta,
        "relation": ledger.budget.relation.value,
        **({} if ledger.budget.unit is None else {"unit": asdict(ledger.budget.unit)}),
        "accounting": ledger.accounting,
        "rho": ledger.limit,
        "spent": ledger.spent,
        **({} if not ledger.delta_shown else {"delta_shown": ledger.delta_shown, "delta_spent": ledger.delta_spent}),
        "noise": job.curator.noise.description,
        "ledger": [entry.to_dict() for entry in ledger.entries],
    }
    try:
        (place.work / "ledger.json").write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    except OSError:
        return  # a full disk: the journal has it


def _job_of(spec: Mapping[str, Any], table: Any, public: Any, method: Method | None) -> Job:
    """The job of a journal."""
    schema = Schema.from_dict(spec["schema"])
    unit = spec.get("unit")
    source = LaterSource(schema, spec["n"], unit=Unit(**unit) if unit else None) if table is None else table
    given, rule = Shown("none" if public is None else "a table"), "must be as in the interrupted run"
    check((public is None) == (spec["public"] is None), "public", given, rule, "give the same public table, or none")
    job = prepare(
        source,
        schema=schema,
        method=spec["method"] if method is None else method,
        workload=Workload.from_dict(spec["workload"], schema.domain),
        public=public,
        unit=unit["name"] if unit else None,
        max_rows=unit["max_rows"] if unit else None,
        **{name: spec[name] for name in ("epsilon", "delta", "relation", "group", "settings", *OPTIONS)},
        on_bad_value=spec.get("on_bad_value", "error"),
    )
    again = json.loads(json.dumps(job.to_dict()))
    changed = [name for name, value in again.items() if value != spec[name]]
    hint = "give the same tables, with the version of pointillist that began the run"
    check(not changed, "run", changed[:5], "must be the same as the one that was interrupted", hint)
    return job


def journal_of(out: str | Path) -> list[Record]:
    """The journal of an interrupted run."""
    place = Place.reopen(out)
    try:
        return read_journal(place.work / JOURNAL)[0]
    finally:
        place.close()
