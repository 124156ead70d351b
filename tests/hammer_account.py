"""Processes that use one account at once and are killed: run by test_accounts.py as a program of its own, because it
forks. It prints what its workers were told, as JSON."""

from __future__ import annotations

import json
import os
import random
import signal
import sqlite3
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pointillist.accounts import Account, AccountExceeded
from pointillist.privacy.budget import Budget
from pointillist.privacy.ledger import Ledger

DELTA = 1e-9
WORKERS = 4


def ledgers() -> list[Ledger]:
    """Budgets of both kinds, made once: the conversion takes longer than the booking."""
    return [Ledger(Budget(0.02 + 0.01 * k, DELTA), (None, 10.0, 100.0)[k % 3]) for k in range(9)]


def spawn(work: Callable[[], None]) -> int:
    """A process that does the work, and ends without any clean-up."""
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        work()
        code = 0
    except BaseException:
        traceback.print_exc()  # os._exit would lose it
        sys.stderr.flush()
    finally:
        os._exit(code)


def hammer(path: Path, log: Path, name: str, budgets: list[Ledger]) -> None:
    """Reserve and settle for ever; every intention and every answer is noted at once."""
    rng = random.Random(name)
    account = Account.open(path)
    with log.open("a", buffering=1) as notes:
        for k in range(10**6):
            number = rng.randrange(len(budgets))
            # Some ids are shared: several processes take themselves for the same run.
            run = f"{name}.{k}" if rng.random() < 0.8 else f"shared.{number}.{rng.randrange(3)}"
            ledger = budgets[number]
            notes.write(f"try {run} {ledger.limit!r}\n")
            try:
                account.reserve(run, "hammered", ledger)
            except AccountExceeded:
                notes.write(f"refused {run} 0\n")
                continue
            notes.write(f"reserved {run} {ledger.limit!r}\n")
            if run.startswith("shared") or rng.random() < 0.3:
                continue
            spent = ledger.limit * rng.random() / 4
            notes.write(f"settle {run} {spent!r}\n")
            account.settle(run, spent, done=True)
            notes.write(f"settled {run} {spent!r}\n")


def random_kills(path: Path, kills: int) -> dict[str, Any]:
    """Workers at once, one of them killed every few milliseconds; a reader looks at the total in between."""
    budgets, log, rng = ledgers(), path.with_name("notes"), random.Random(kills)
    account = Account.create(path, 0.6, DELTA)
    names = iter(range(10**6))

    def start() -> int:
        name = f"w{next(names)}"
        return spawn(lambda: hammer(path, log, name, budgets))

    workers = [start() for _ in range(WORKERS)]
    looks = exceeded = 0
    for turn in range(kills):
        time.sleep(rng.random() * 0.03)
        if turn % 5 == 0:
            looks, exceeded = looks + 1, exceeded + account.total().exceeded
        victim = rng.randrange(WORKERS)
        os.kill(workers[victim], signal.SIGKILL)
        _, status = os.waitpid(workers[victim], 0)
        assert os.WIFSIGNALED(status), f"worker {victim} failed by itself in turn {turn}: see its traceback above"
        workers[victim] = start()
    for worker in workers:
        os.kill(worker, signal.SIGKILL)
        os.waitpid(worker, 0)
    return {"looks": looks, "exceeded": exceeded, "notes": log.read_text().splitlines()}


class Mortal(sqlite3.Connection):
    """A connection whose process is killed before its n-th statement; closing it is one more."""

    left = 10**9

    def execute(self, *arguments: Any) -> sqlite3.Cursor:
        self._count()
        return super().execute(*arguments)

    def close(self) -> None:
        self._count()
        super().close()

    @staticmethod
    def _count() -> None:
        if Mortal.left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        Mortal.left -= 1


def killed_at(statement: int, work: Callable[[], None]) -> bool:
    """Whether a process that does the work dies before this statement of its SQL."""

    def mortal() -> None:
        Mortal.left = statement
        connect = sqlite3.connect
        sqlite3.connect = lambda *given, **named: connect(*given, factory=Mortal, **named)  # type: ignore[assignment]
        work()

    _, status = os.waitpid(spawn(mortal), 0)
    assert os.WIFSIGNALED(status) or status == 0, "it failed instead of dying"
    return os.WIFSIGNALED(status)


def every_point(folder: Path) -> dict[str, Any]:
    """Kill a process at every statement of create, reserve and settle, and say what is left each time."""
    ledger = Ledger(Budget(0.1, DELTA))

    def left(path: Path) -> str:
        try:
            bookings = Account.open(path).history()
        except Exception as error:
            return f"{type(error).__name__}: {error}"
        return ";".join(f"{one.run} {one.done} {float(one.counts)!r}" for one in bookings)

    found: dict[str, list[tuple[bool, str]]] = {"create": [], "reserve": [], "settle": []}
    for name, outcomes in found.items():
        statement, dead = 0, True
        while dead:
            path = folder / f"{name}{statement}"
            if name != "create":
                Account.create(path, 1.0, DELTA)
            if name == "settle":
                Account.open(path).reserve("run", "", ledger)
            work = {
                "create": lambda path=path: Account.create(path, 1.0, DELTA),
                "reserve": lambda path=path: Account(path, Budget(1.0, DELTA)).reserve("run", "", ledger),
                "settle": lambda path=path: Account(path, Budget(1.0, DELTA)).settle("run", ledger.limit / 2, True),
            }[name]
            dead = killed_at(statement, work)  # type: ignore[arg-type]
            outcomes.append((dead, left(path)))
            statement += 1
    return {"limit": ledger.limit, **found}


if __name__ == "__main__":
    what, place, kills = sys.argv[1:]
    print(json.dumps(random_kills(Path(place), int(kills)) if what == "random" else every_point(Path(place))))
