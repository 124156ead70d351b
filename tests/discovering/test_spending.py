"""Private schemas on disk: what is spent is written down before it is drawn, and never lost or spent twice."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pointillist import Account, InputError, PointillistError, Schema
from pointillist.accounts import AccountExceeded
from pointillist.data import probes
from pointillist.discovering import private_schema, spending
from pointillist.discovering.draft import prepare_draft
from pointillist.discovering.spending import resumed_options, write_draft
from pointillist.privacy.ledger import Ledger
from pointillist.release.journal import read_journal

ROWS = 3000
TABLE = pa.table({"n": [str(i % 40) for i in range(ROWS)], "v": ["a", "b", "c"] * (ROWS // 3)})
OPTIONS: dict[str, Any] = {
    "epsilon": 1.0,
    "delta": 1e-6,
    "relation": None,
    "unit": None,
    "max_rows": None,
    "ignore": [],
    "insecure_noise_seed": 5,
}


def draft(out: Path, table: pa.Table = TABLE, options: dict[str, Any] | None = None, **more: Any) -> Schema:
    given = OPTIONS if options is None else options
    return write_draft(prepare_draft(table, **given), out, given, **more).schema


def runs(out: Path) -> list[dict[str, Any]]:
    return list(json.loads(Path(f"{out}.ledger.json").read_text())["runs"])


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_a_schema_and_the_record_of_its_cost(tmp_path: Path) -> None:
    out = tmp_path / "x.schema.toml"
    schema = draft(out)
    assert Schema.load(out) == schema
    assert names(tmp_path) == {"x.schema.toml", "x.schema.toml.ledger.json"}
    (entry,) = runs(out)
    assert schema.paid is not None
    assert entry["state"] == "done"
    assert {name: entry[name] for name in schema.paid.to_dict()} == json.loads(json.dumps(schema.paid.to_dict()))


def test_charges_are_on_disk_before_the_source_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "x.toml"
    seen: list[tuple[str, list[str]]] = []

    def look(word: str, call: Any) -> Any:
        def looked(*arguments: Any) -> Any:
            records, _ = read_journal(tmp_path / "x.toml.spending" / "journal")
            seen.append((word, [record.kind for record in records]))
            assert runs(out)[0]["state"] == "open"
            assert runs(out)[0]["rho_spent"] == runs(out)[0]["rho"]  # counted in full until it is known
            return call(*arguments)

        return looked

    monkeypatch.setattr(probes, "codes_of", look("codes", probes.codes_of))
    monkeypatch.setattr(probes.ProbedSource, "values_of", look("values", probes.ProbedSource.values_of))
    draft(out)
    assert seen[0] == ("codes", ["job", "result", "charge"])
    assert seen[-1] == ("values", ["job", "result", "charge", "result", "charge", "result", "charge"])


@pytest.mark.parametrize("place", ["codes_of", "values_of", "discovered", "written", "recorded"])
def test_a_draft_that_stops_is_finished_without_spending_twice(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wherever it stops, the resumed draft gives the schema of an uninterrupted one, for the same charges."""
    whole = draft(tmp_path / "whole.toml")
    out = tmp_path / "x.toml"
    stops = {
        "codes_of": (probes, "codes_of"),
        "values_of": (probes.ProbedSource, "values_of"),
        "discovered": (spending.RecordedDoor, "_result"),
        "written": (spending, "write_text"),
        "recorded": (spending.Spending, "clear"),
    }
    with monkeypatch.context() as patch:
        original = getattr(*stops[place])

        def stop(*arguments: Any) -> Any:
            if place == "discovered" and arguments[1] != "discover":
                return original(*arguments)
            if place == "written" and arguments[0].suffix == ".json":
                return original(*arguments)
            raise KeyboardInterrupt

        patch.setattr(*stops[place], stop)
        with pytest.raises((PointillistError, KeyboardInterrupt)):
            draft(out)
    with pytest.raises(InputError, match="finish it with --resume, which spends nothing twice"):
        draft(out)
    with pytest.raises(InputError, match="finish it with --resume"):
        draft(out, force=True)
    assert resumed_options(out) == OPTIONS
    schema = draft(out, resume=True)
    assert schema == whole
    assert out.read_text() == (tmp_path / "whole.toml").read_text()
    assert len(runs(out)) == 1
    assert runs(out)[0]["ledger"] == runs(tmp_path / "whole.toml")[0]["ledger"]
    assert names(tmp_path) == {"x.toml", "x.toml.ledger.json", "whole.toml", "whole.toml.ledger.json"}


KILLED = """
import os, sys
from pointillist.discovering import spending
from tests.discovering.test_spending import draft
from pathlib import Path
write = spending.write_text
def stop(path, text, *more):
    if path.suffix == ".toml":
        os._exit(9)
    write(path, text, *more)
spending.write_text = stop
draft(Path(sys.argv[1]))
"""


def test_a_killed_process_leaves_all_that_is_needed(tmp_path: Path) -> None:
    """Killed between the last charge and the schema file: the record says so, and nothing is drawn again."""
    out = tmp_path / "x.toml"
    killed = subprocess.run([sys.executable, "-c", KILLED, str(out)], cwd=Path(__file__).parents[2], check=False)
    assert killed.returncode == 9
    assert not out.exists()
    assert runs(out)[0]["state"] == "open"
    journal = tmp_path / "x.toml.spending" / "journal"
    records, _ = read_journal(journal)
    assert records[-1].kind == "result"
    before = journal.read_bytes()
    drawn: list[int] = []
    job = prepare_draft(TABLE, **OPTIONS)
    job.curator.noise.add_gaussian = lambda *a: drawn.append(1)  # type: ignore[method-assign]
    write_draft(job, out, OPTIONS, resume=True)
    assert drawn == []
    assert len(before) > 0
    assert out.exists()
    assert runs(out)[0]["state"] == "done"


def test_two_processes_cannot_have_the_same_draft(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "x.toml"
    tried: list[str] = []
    values_of = probes.ProbedSource.values_of

    def second(self: Any, column: str) -> Any:
        for more in ({}, {"resume": True}):
            with pytest.raises(InputError) as refusal:
                draft(out, **more)
            tried.append(str(refusal.value))
        return values_of(self, column)

    with monkeypatch.context() as patch:
        patch.setattr(probes.ProbedSource, "values_of", second)
        draft(out)
    assert "must not have an interrupted draft next to it" in tried[0]
    assert "must not be in use by another draft" in tried[1]
    assert len(runs(out)) == 1


def test_spending_again_must_be_asked_for_and_is_recorded(tmp_path: Path) -> None:
    out = tmp_path / "x.toml"
    draft(out)
    out.unlink()
    with pytest.raises(InputError, match=r"must not have been paid for already .*\(1, 1e-06\).* --force"):
        draft(out)
    assert len(runs(out)) == 1
    draft(out, force=True)
    assert [one["state"] for one in runs(out)] == ["done", "done"]


def test_another_table_or_version_cannot_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "x.toml"
    with monkeypatch.context() as patch:
        patch.setattr(probes.ProbedSource, "values_of", lambda *a: 1 / 0)
        with pytest.raises(PointillistError, match=r"ZeroDivisionError.*rho = .* is spent.*--private --resume"):
            draft(out)
    assert runs(out)[0]["state"] == "interrupted"
    for other in (TABLE.slice(1), TABLE.rename_columns(["n", "w"])):
        with pytest.raises(InputError, match="draft must be the same as the one that was interrupted"):
            draft(out, other, resume=True)
    draft(out, resume=True)
    with pytest.raises(InputError, match="must have an interrupted draft next to it"):
        resumed_options(out)
    with pytest.raises(InputError, match="an interrupted one to resume"):
        draft(out, resume=True)


def test_what_was_spent_is_never_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A resumed draft that fails before its first step, and one whose journal was deleted."""
    out = tmp_path / "x.toml"
    with monkeypatch.context() as patch:
        patch.setattr(probes.ProbedSource, "values_of", lambda *a: 1 / 0)
        with pytest.raises(PointillistError):
            draft(out)
    spent = runs(out)[0]["rho_spent"]

    def closed(text: str) -> None:
        raise BrokenPipeError(text)

    with pytest.raises(PointillistError, match="BrokenPipeError"):
        draft(out, resume=True, announce=closed)
    assert runs(out)[0]["rho_spent"] == spent > 0
    assert (tmp_path / "x.toml.spending" / "journal").is_file()
    for path in (tmp_path / "x.toml.spending").iterdir():
        path.unlink()
    (tmp_path / "x.toml.spending").rmdir()
    with pytest.raises(InputError, match="must not have been paid for already"):
        draft(out)


@pytest.mark.parametrize("state", ["folder", "lock", "cut"])
def test_a_draft_that_died_before_it_could_spend_is_no_obstacle(state: str, tmp_path: Path) -> None:
    folder = tmp_path / "x.toml.spending"
    folder.mkdir()
    if state != "folder":
        (folder / "lock").touch()
    if state == "cut":
        (folder / "journal").write_bytes(b'0123abcd {"kind": "jo')
    draft(tmp_path / "x.toml")
    assert not folder.exists()


def test_targets_that_are_none(tmp_path: Path) -> None:
    (tmp_path / "there.toml").write_text("mine")
    with pytest.raises(InputError, match="out must not exist already"):
        draft(tmp_path / "there.toml")
    with pytest.raises(InputError, match="out must be a file"):
        draft(tmp_path)
    (tmp_path / "other.toml.spending").write_text("mine")
    with pytest.raises(InputError, match="interrupted draft"):
        draft(tmp_path / "other.toml")
    assert names(tmp_path) == {"there.toml", "other.toml.spending"}
    assert (tmp_path / "there.toml").read_text() == "mine"


def test_a_damaged_journal_or_record_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "x.toml"
    with monkeypatch.context() as patch:
        patch.setattr(probes.ProbedSource, "values_of", lambda *a: 1 / 0)
        with pytest.raises(PointillistError):
            draft(out)
    journal = tmp_path / "x.toml.spending" / "journal"
    content = journal.read_bytes()
    journal.write_bytes(content[:40] + b"#" + content[41:])
    with pytest.raises(InputError, match="journal must be"):
        draft(out, resume=True)
    journal.write_bytes(content)
    record = Path(f"{out}.ledger.json")
    kept = record.read_text()
    record.write_text("[]")
    with pytest.raises(PointillistError):
        draft(out, resume=True)
    record.write_text(kept)
    draft(out, resume=True)


def test_what_spends_nothing_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "x.toml"
    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "charge", lambda self, *entries: 1 / 0 if entries else None)
        with pytest.raises(ZeroDivisionError):
            draft(out)
    assert names(tmp_path) == set()
    with pytest.raises(InputError, match="out must be in a folder that can be written to"):
        draft(tmp_path / "no" / "x.toml")


def test_a_budget_that_tells_nothing_is_recorded_as_spent(tmp_path: Path) -> None:
    out = tmp_path / "x.toml"
    with pytest.raises(InputError, match="what was spent is spent"):
        draft(out, pa.table({"v": [f"unique {n}" for n in range(ROWS)]}))
    assert names(tmp_path) == {"x.toml.ledger.json"}
    assert runs(out)[0]["state"] == "done"
    assert runs(out)[0]["rho_spent"] > 0


def test_cells_that_cannot_be_read_are_refused_before_anything_is_spent(tmp_path: Path) -> None:
    broken = pa.Array.from_buffers(pa.string(), 1, [None, pa.py_buffer(b"\0\0\0\0\1\0\0\0"), pa.py_buffer(b"\xff")])
    table = pa.table({"n": TABLE["n"], "v": pa.chunked_array([broken, ["x"] * (ROWS - 1)])})
    with pytest.raises(InputError, match="must be readable"):
        draft(tmp_path / "x.toml", table)
    assert names(tmp_path) == set()


# --- accounts


REAL = OPTIONS | {"insecure_noise_seed": None}


def test_an_account_books_rho_and_delta_before_anything_is_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    account = Account.create(tmp_path / "a.account", 3.0, 1e-5)
    booked: list[Any] = []
    codes_of = probes.codes_of

    def look(*arguments: Any) -> Any:
        booked.append(account.history())
        return codes_of(*arguments)

    monkeypatch.setattr(probes, "codes_of", look)
    schema = draft(tmp_path / "x.toml", options=REAL, account=account)
    (before,) = booked[0]
    assert not before.done
    assert before.delta_shown == 5e-7
    (after,) = account.history()
    assert after.done
    assert schema.paid is not None
    assert float(after.counts) == schema.paid.rho_spent
    total = account.total()
    assert total.epsilon < 1.0
    assert Account.open(account.path).total() == total
    draft(tmp_path / "y.toml", options=REAL, account=account)
    assert len(account.history()) == 2


def test_an_account_without_room_refuses_and_nothing_is_written(tmp_path: Path) -> None:
    small = Account.create(tmp_path / "s.account", 0.5, 1e-5)
    with pytest.raises(AccountExceeded, match="must cost at most the rho"):
        draft(tmp_path / "x.toml", options=REAL, account=small)
    no_delta = Account.create(tmp_path / "d.account", 5.0, 4e-7)
    with pytest.raises(AccountExceeded, match=r"must use at most the delta that the account has left .* smaller delta"):
        draft(tmp_path / "x.toml", options=REAL, account=no_delta)
    late = Account.create(tmp_path / "l.account", 5.0, 1e-5)
    late.reserve("first", "another run", Ledger(prepare_draft(TABLE, **REAL).curator.ledger.budget))
    with pytest.raises(AccountExceeded, match="or a run that discovers values, before any other run"):
        draft(tmp_path / "x.toml", options=REAL, account=late)
    with pytest.raises(InputError, match="account must not be given with seeded noise"):
        draft(tmp_path / "x.toml", account=late)
    assert names(tmp_path) == {"s.account", "d.account", "l.account"} | {
        one for one in names(tmp_path) if one.endswith(("-wal", "-shm"))
    }
    assert [len(one.history()) for one in (small, no_delta, late)] == [0, 0, 1]


def test_the_deltas_of_an_account_stay_within_its_cap(tmp_path: Path) -> None:
    account = Account.create(tmp_path / "a.account", 20.0, 2.2e-6)
    for name in ("first.toml", "second.toml"):  # two times 5e-7 of the 1.1e-6 that is kept
        draft(tmp_path / name, options=REAL, account=account)
    with pytest.raises(AccountExceeded, match="the delta that the account has left"):
        draft(tmp_path / "third.toml", options=REAL, account=account)
    shown = sum(one.delta_shown for one in account.history())
    assert shown <= 1.1e-6


def test_an_account_resumes_a_draft(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    account = Account.create(tmp_path / "a.account", 3.0, 1e-5)
    out = tmp_path / "x.toml"
    with monkeypatch.context() as patch:
        patch.setattr(probes.ProbedSource, "values_of", lambda *a: 1 / 0)
        with pytest.raises(PointillistError):
            draft(out, options=REAL, account=account)
    (open_run,) = account.history()
    assert not open_run.done
    draft(out, options=REAL, resume=True)
    (closed,) = account.history()
    assert closed.done
    assert closed.run == open_run.run


def test_in_memory_without_a_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="account must be given together with out"):
        private_schema(TABLE, epsilon=1.0, delta=1e-6, account=tmp_path / "a")
    schema = private_schema(TABLE, epsilon=1.0, delta=1e-6, out=tmp_path / "x.toml")
    assert Schema.load(tmp_path / "x.toml") == schema
    assert os.stat(tmp_path / "x.toml").st_mode & 0o400
