"""Runs with a journal: whatever stops them, what was spent is on disk, and a resumed run gives the same release."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pointillist import (
    Account,
    InputError,
    PointillistError,
    Release,
    RunStopped,
    Table,
    load,
    prepare,
    resume,
    synthesize,
)
from pointillist.privacy.ledger import Entry
from pointillist.release import place as place_module
from pointillist.release.journal import Journal, read_journal
from pointillist.release.place import FILES, Place
from pointillist.runs import journal_of, run_into

METHODS: dict[str, dict[str, Any]] = {
    "mwem": {"settings": {"rounds": 3}, "group": "query"},
    "auto": {"settings": {"rows": 20, "t_max": 10}},
    "rap_softmax": {"settings": {"rounds": 2, "picks": 1, "rows": 20, "t_max": 5}, "group": "marginal"},
    "dualquery": {"settings": {"rounds": 3, "samples": 3}},
    "aim": {"settings": {"rounds": 6, "t_max": 5}},
    "mst": {"settings": {"t_max": 5}},
}
COMPLETE = sorted(name for name in FILES if name not in ("replaced.json", "replicates.npz"))


class Crash(BaseException):
    """Nothing handles it."""


@pytest.fixture(scope="module")
def town() -> Table:
    return load("demo").project(["district", "age", "commute"])


def options(method: str, relation: str = "replace") -> dict[str, Any]:
    plain = {"epsilon": 1.0, "delta": 1e-6, "workload": "marginals:2", "insecure_noise_seed": 3, "rows": 200}
    return plain | {"method": method, "relation": relation} | METHODS[method]


def crash_at(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    """End the run instead of writing the record with this number (from 0) into the journal."""
    append, count = Journal.append, iter(range(10**6))

    def dying(journal: Journal, *arguments: Any, **more: Any) -> None:
        if next(count) == number:
            raise Crash
        append(journal, *arguments, **more)

    monkeypatch.setattr(Journal, "append", dying)


def same(first: Release, second: Release) -> bool:
    rows = all(map(np.array_equal, first.table.codes, second.table.codes))
    ledgers = first.description.privacy.ledger == second.description.privacy.ledger
    return rows and ledgers and np.array_equal(first.answers(), second.answers())


@pytest.mark.parametrize("relation", ["replace", "add-remove"])
@pytest.mark.parametrize("method", METHODS)
def test_a_run_resumes_from_every_record(
    method: str, relation: str, town: Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen = options(method, relation)
    reference = synthesize(town, out=tmp_path / "whole", **chosen)
    assert sorted(os.listdir(tmp_path / "whole")) == COMPLETE
    number, resumed = 0, 0
    while True:
        out = tmp_path / f"r{number}"
        with monkeypatch.context() as patch:
            crash_at(patch, number)
            try:
                synthesize(town, out=out, **chosen)
                break
            except (Crash, RunStopped):
                number += 1
        if not out.exists():
            continue  # nothing was spent
        spent = [entry for record in journal_of(out) if record.kind == "charge" for entry in record.data["entries"]]
        release = resume(out, town)
        resumed += 1
        assert same(release, reference)
        assert [Entry(**entry) for entry in spent] == list(release.description.privacy.ledger)[: len(spent)]
        assert sorted(os.listdir(out)) == COMPLETE
        assert same(Release.load(out), reference)
    assert resumed >= 1
    assert number - resumed <= 3
    assert not [name for name in os.listdir(tmp_path) if name.startswith(".")]


def test_the_table_is_not_needed_once_all_is_measured(
    town: Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen = options("auto")
    reference = synthesize(town, **chosen)
    monkeypatch.setattr(Release, "write", lambda release, folder: 1 / 0)
    with pytest.raises(RunStopped, match=r"finish it with `pointillist resume .*r`"):
        synthesize(town, out=tmp_path / "r", **chosen)
    monkeypatch.undo()
    with pytest.raises(InputError, match="must be complete"):
        Release.load(tmp_path / "r")
    with pytest.raises(InputError, match="it holds a run that was interrupted: finish it with `pointillist resume"):
        synthesize(town, out=tmp_path / "r", **chosen)
    assert same(resume(tmp_path / "r"), reference)
    with pytest.raises(InputError, match="must be the folder of an interrupted run"):
        resume(tmp_path / "r")


def test_the_table_is_asked_for_if_measurements_are_left(
    town: Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        crash_at(patch, 5)
        with pytest.raises(RunStopped):
            synthesize(town, out=tmp_path / "r", **options("mwem"))
    with pytest.raises(RunStopped, match="since measurements are left to make"):
        resume(tmp_path / "r")
    with pytest.raises(InputError, match="run must be the same as the one that was interrupted, got"):
        resume(tmp_path / "r", town.take(np.arange(100)))
    assert same(resume(tmp_path / "r", town), synthesize(town, **options("mwem")))


def test_charges_are_on_disk_before_noise_is_drawn(
    town: Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = prepare(town, **options("mwem"))
    noise, seen = job.curator.noise, []
    for name in ("add_gaussian", "select"):
        draw = getattr(noise, name)

        def checked(*arguments: Any, draw: Any = draw) -> Any:
            records, _ = read_journal(tmp_path / "r" / "journal")
            charged = sum(len(record.data["entries"]) for record in records if record.kind == "charge")
            seen.append((charged, len(job.curator.ledger.entries)))
            return draw(*arguments)

        monkeypatch.setattr(noise, name, checked)
    run_into(job, tmp_path / "r")
    assert len(seen) == 6
    assert all(on_disk == booked for on_disk, booked in seen)


def test_a_record_that_was_cut_off_is_left_out(town: Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Release, "write", lambda release, folder: 1 / 0)
    with pytest.raises(RunStopped):
        synthesize(town, out=tmp_path / "r", **options("mwem"))
    monkeypatch.undo()
    path = tmp_path / "r" / "journal"
    whole = path.read_bytes()
    records, end = read_journal(path)
    assert end == len(whole)
    rng = np.random.default_rng(0)
    for cut in rng.integers(len(whole), size=30).tolist():
        path.write_bytes(whole[:cut])
        try:
            left, _ = read_journal(path)
        except InputError:
            assert cut < 5000
            continue
        assert [record.data for record in left] == [record.data for record in records[: len(left)]]
    path.write_bytes(whole[:-7])
    assert same(resume(tmp_path / "r", town), synthesize(town, **options("mwem")))


def test_one_of_two_runs_gets_a_place(tmp_path: Path) -> None:
    place = Place.claim(tmp_path / "r")
    with pytest.raises(InputError, match="must not"):
        Place.claim(tmp_path / "r")
    with pytest.raises(InputError, match="must not"):
        Place.claim(tmp_path / "r", force=True)
    place.abandon()
    Place.claim(tmp_path / "r").abandon()
    assert list(tmp_path.iterdir()) == []


def test_nothing_but_a_release_is_replaced(town: Table, tmp_path: Path) -> None:
    """A folder with other files, a folder with inputs, and one that changes while the run lasts are left alone."""
    chosen = options("mwem")
    release = synthesize(town, **chosen)
    for name, content in (("release.json", "{}"), ("people.csv", "precious")):
        (tmp_path / "proj").mkdir(exist_ok=True)
        (tmp_path / "proj" / name).write_text(content)
        with pytest.raises(InputError, match="must be a release with no other files in it"):
            release.save(tmp_path / "proj", force=True)
    with pytest.raises(InputError, match=r"must not hold people\.csv, which the run reads"):
        Place.claim(tmp_path / "proj", force=True, inputs=[tmp_path / "proj" / "people.csv"])
    assert sorted(os.listdir(tmp_path / "proj")) == ["people.csv", "release.json"]
    folder = release.save(tmp_path / "r")
    place = Place.claim(folder, force=True)
    (folder / "only_copy.txt").write_text("precious")
    with pytest.raises(PointillistError, match=r"the new release is complete in .*\.r\.new"):
        place.publish(release.write)
    place.close()
    assert (folder / "only_copy.txt").read_text() == "precious"
    assert same(Release.load(folder), release)
    assert same(Release.load(tmp_path / ".r.new"), release)


def test_a_place_that_cannot_be_written_is_refused_before_anything_is_spent(
    town: Table, tmp_path: Path, charges: list[Entry], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for out in (tmp_path / ("x" * 300), tmp_path / ("x" * 252), "/", ".", "", tmp_path, tmp_path / "\udcff" / "out"):
        with pytest.raises(InputError, match=r"^out must"):
            synthesize(town, out=out, **options("mwem"))
    assert charges == []
    assert list(tmp_path.iterdir()) == []


def test_a_run_books_its_budget_before_it_looks(
    town: Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, charges: list[Entry]
) -> None:
    chosen = {name: value for name, value in options("mwem").items() if name != "insecure_noise_seed"}
    account = Account.create(tmp_path / "account", epsilon=1.5, delta=2e-6)
    release = synthesize(town, out=tmp_path / "first", account=account, **chosen)
    (first,) = account.history()
    assert first.spent == release.description.privacy.rho_spent
    with monkeypatch.context() as patch:
        crash_at(patch, 6)
        with pytest.raises(RunStopped):
            synthesize(town, out=tmp_path / "second", account=tmp_path / "account", **chosen | {"epsilon": 0.5})
    before = account.total()
    assert len(account.history()) == 2
    del charges[:]
    with pytest.raises(PointillistError, match="account"):
        synthesize(town, out=tmp_path / "third", account=account, **chosen)
    assert (charges, (tmp_path / "third").exists(), account.total()) == ([], False, before)
    resume(tmp_path / "second", town)
    assert len(account.history()) == 2
    assert account.total().epsilon <= before.epsilon


def test_a_copy_of_a_journal_spends_nothing_that_the_account_knows_of(
    town: Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, charges: list[Entry]
) -> None:
    """A run is killed, its folder copied, and both are resumed: the copy would draw the second half again."""
    chosen = {name: value for name, value in options("mwem").items() if name != "insecure_noise_seed"}
    account = Account.create(tmp_path / "account", epsilon=1.5, delta=2e-6)
    with monkeypatch.context() as patch:
        crash_at(patch, 6)
        patch.setattr(Account, "settle", lambda *arguments, **more: None)  # as if it had been killed
        with pytest.raises(RunStopped):
            synthesize(town, out=tmp_path / "out", account=account, **chosen)
    shutil.copytree(tmp_path / "out", tmp_path / "copy")
    journal = (tmp_path / "copy" / "journal").read_bytes()
    resume(tmp_path / "out", town)
    before = account.history()
    del charges[:]
    with pytest.raises(InputError, match="journal must have every charge that the account knows of"):
        resume(tmp_path / "copy", town)
    assert (charges, account.history(), (tmp_path / "copy" / "journal").read_bytes()) == ([], before, journal)


def test_a_run_whose_account_is_gone_or_another_one(
    town: Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, charges: list[Entry]
) -> None:
    """It is not resumed without the account; in a new account of the same name, it books its whole budget."""
    chosen = {name: value for name, value in options("mwem").items() if name != "insecure_noise_seed"}
    account = Account.create(tmp_path / "account", epsilon=1.5, delta=2e-6)
    with monkeypatch.context() as patch:
        crash_at(patch, 6)
        with pytest.raises(RunStopped):
            synthesize(town, out=tmp_path / "out", account=account, **chosen)
    (tmp_path / "account").unlink()
    del charges[:]
    with pytest.raises(InputError, match="account must be an existing account file"):
        resume(tmp_path / "out", town)
    assert charges == []
    other = Account.create(tmp_path / "account", epsilon=1.5, delta=2e-6)
    release = resume(tmp_path / "out", town)
    (booked,) = other.history()
    assert booked.spent == release.description.privacy.rho_spent


def test_an_account_needs_a_journal_and_real_noise(town: Table, tmp_path: Path) -> None:
    account = Account.create(tmp_path / "account", epsilon=1.5, delta=1e-6)
    with pytest.raises(InputError, match="must be given together with out"):
        synthesize(town, account=account, **options("mwem"))
    with pytest.raises(InputError, match="must not be given with seeded noise"):
        synthesize(town, out=tmp_path / "r", account=account, **options("mwem"))
    assert not (tmp_path / "r").exists()


def interrupted(out: Path, town: Table, monkeypatch: pytest.MonkeyPatch, number: int = 5, **more: Any) -> Path:
    """A run that died before it wrote the record with this number."""
    with monkeypatch.context() as patch:
        crash_at(patch, number)
        with pytest.raises(RunStopped):
            synthesize(town, out=out, **options("mwem"), **more)
    return out


def test_open_charges_survive_a_resume_that_is_stopped_early(
    town: Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first charge is in the journal, its result is not; the resumed run stops before it charges anything."""
    out = interrupted(tmp_path / "r", town, monkeypatch, number=3)
    before = (out / "journal").read_bytes()
    assert [record.kind for record in journal_of(out)] == ["job", "result", "charge"]
    monkeypatch.setattr("pointillist.runs.RecordedDoor.open", lambda door: 1 / 0)
    with pytest.raises(PointillistError):
        resume(out, town)
    monkeypatch.undo()
    assert (out / "journal").read_bytes() == before
    assert same(resume(out, town), synthesize(town, **options("mwem")))


def test_a_journal_that_is_damaged_in_the_middle_is_refused(
    town: Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What follows the damage was spent: going on from there would spend it again."""
    path = interrupted(tmp_path / "r", town, monkeypatch, number=7) / "journal"
    whole = path.read_bytes()
    rng = np.random.default_rng(1)
    last = whole.rindex(b"\n", 0, whole.rindex(b'{"kind"'))
    for at in rng.integers(last, size=40).tolist():
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0x11]) + whole[at + 1 :])
        with pytest.raises(InputError, match="journal must be undamaged"):
            resume(tmp_path / "r", town)
    path.write_bytes(whole)
    assert same(resume(tmp_path / "r", town), synthesize(town, **options("mwem")))


def test_a_run_that_died_while_it_began_its_journal_leaves_the_place_free(town: Table, tmp_path: Path) -> None:
    chosen = options("mwem")
    for content in (b"", b'0123abcd {"kind": "jo', b"\0" * 4096 + b"\n"):
        place = Place.claim(tmp_path / "r", need=100)
        (place.work / "journal").write_bytes(content)
        place.close()
        assert same(synthesize(town, out=tmp_path / "r", **chosen), synthesize(town, **chosen))
        for path in (tmp_path / "r").iterdir():
            path.unlink()
    assert os.listdir(tmp_path) == ["r"]


def test_a_killed_replacement_leaves_nothing_behind(town: Table, tmp_path: Path) -> None:
    """Killed while the files of the old release are deleted, or with a lock left in the new one."""
    release = synthesize(town, **options("mwem"))
    out, beside = release.save(tmp_path / "r"), tmp_path / ".r.new"
    names = sorted(os.listdir(out), key=lambda name: name == "release.json")
    for count in range(len(names) + 1):
        beside.mkdir()
        for name in names[count:]:
            (beside / name).write_bytes((out / name).read_bytes())
        (out / "lock").touch()
        release.save(out, force=True)
        assert os.listdir(tmp_path) == ["r"]
        assert sorted(os.listdir(out)) == [*COMPLETE[:2], "replaced.json", *COMPLETE[2:]]


def test_an_interrupted_replacement_is_named_and_never_deleted(
    town: Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen = options("mwem")
    out, beside = tmp_path / "r", tmp_path / ".r.new"
    old = synthesize(town, out=out, **chosen | {"seed": 9})
    interrupted(out, town, monkeypatch, force=True)
    hint = f"must not exist already.*finish it with `pointillist resume {out}`"
    for force in (True, False):
        with pytest.raises(InputError, match=hint):
            synthesize(town, out=out, force=force, **chosen)
    with pytest.raises(InputError, match="must not have a name that runs use for themselves"):
        synthesize(town, out=beside, **chosen)
    assert same(Release.load(out), old)
    resume(beside, town)  # means the release that is replaced
    assert not beside.exists()
    assert same(Release.load(out), synthesize(town, **chosen))
    assert (out / "replaced.json").is_file()


def test_a_release_that_was_to_be_replaced_may_be_taken_away(town: Table, tmp_path: Path) -> None:
    release = synthesize(town, **options("mwem"))
    out = release.save(tmp_path / "r")
    place = Place.claim(out, force=True)
    out.rename(tmp_path / "elsewhere")
    assert place.publish(release.write) == out
    assert same(Release.load(out), release)


def test_a_run_that_another_process_ends_at_that_moment_leaves_no_lock(
    town: Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other one has removed its lock, and removes the journal while this one begins to read it."""
    out = interrupted(tmp_path / "out", town, monkeypatch)
    journal = (out / "journal").read_bytes()
    resume(out, town)
    (out / "journal").write_bytes(journal)
    reopen = Place.reopen

    def late(folder: Path) -> Place:
        place = reopen(folder)
        (out / "journal").unlink()
        return place

    monkeypatch.setattr(Place, "reopen", late)
    with pytest.raises(InputError, match="journal must exist"):
        journal_of(out)
    assert sorted(os.listdir(out)) == COMPLETE


def test_a_lock_on_a_deleted_file_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between opening a lock and locking it, another process may have deleted its folder and claimed the place."""
    (tmp_path / "r").mkdir()
    (tmp_path / "r" / "lock").touch()
    flock, others = fcntl.flock, []

    def slow(handle: int, operation: int) -> None:
        if not others:
            others.append(handle)
            (tmp_path / "r" / "lock").unlink()
            (tmp_path / "r").rmdir()
            others.append(Place.claim(tmp_path / "r", need=100))
        flock(handle, operation)

    monkeypatch.setattr(fcntl, "flock", slow)
    with pytest.raises(InputError, match="must not be in use by another run"):
        Place.claim(tmp_path / "r")
    assert sorted(os.listdir(tmp_path / "r")) == ["lock", "reserve"]
    others[1].abandon()


def test_the_ledger_of_a_replaced_release_is_kept_although_files_lie_in_it(town: Table, tmp_path: Path) -> None:
    release = synthesize(town, **options("mwem"))
    out = release.save(tmp_path / "r")
    place = Place.claim(out, force=True)
    Journal.create(place.work).close()
    (out / "only_copy.txt").write_text("precious")
    with pytest.raises(PointillistError, match="the new release is complete in"):
        place.publish(release.write)
    place.close()
    (out / "only_copy.txt").unlink()
    Place.reopen(out).finish()
    assert len(json.loads((out / "replaced.json").read_text())) == 1


def test_a_run_that_came_first_in_the_meantime_is_not_replaced(
    town: Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two runs find the place free; the other one claims it first."""
    check, places = place_module.check_target, []

    def slow(folder: Any, force: bool, inputs: Any = ()) -> Path:
        found = check(folder, force, inputs)
        if not places:
            places.append(None)
            places[0] = Place.claim(folder)
        return found

    monkeypatch.setattr(place_module, "check_target", slow)
    for force in (False, True):
        with pytest.raises(InputError, match="must not be in use by another run"):
            Place.claim(tmp_path / "r", force)
        assert os.listdir(tmp_path) == ["r"]
    places[0].abandon()


def test_a_journal_with_wrong_content_is_refused_in_one_sentence(
    town: Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The checksums are right: somebody has edited it."""
    path = interrupted(tmp_path / "r", town, monkeypatch, number=7) / "journal"
    whole = path.read_bytes()
    edits = {'"noise"': '"voice"', '"rows"': '"crows"', '"scale": ': '"scale": "x", "x": ', '"n": ': '"m": '}
    for old, new in edits.items():
        lines = whole.split(b"\n")
        number = next(n for n, line in enumerate(lines) if old.encode() in line)
        before, head = lines[number][: lines[number].index(b'{"kind"') - 9], lines[number].partition(b'{"kind"')
        line = b"".join(head[1:]).replace(old.encode(), new.encode())
        lines[number] = before + b"%08x %s" % (zlib.crc32(line), line)
        path.write_bytes(b"\n".join(lines))
        with pytest.raises(InputError, match=r"^journal must be undamaged \(.*; bring the file back from a backup"):
            resume(tmp_path / "r", town)
    path.write_bytes(whole)
    assert same(resume(tmp_path / "r", town), synthesize(town, **options("mwem")))
    with pytest.raises(InputError, match="must be the folder of an interrupted run"):
        resume("/")
