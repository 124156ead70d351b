"""Makes a list of runs in parallel: in processes of this machine, or on a Dask cluster of several machines.

An engine takes runs from a queue and returns one line for each. Only the driver writes. Dask is the engine for more
than one machine because it is pure Python, needs no service other than its own scheduler, lets workers join and leave,
and runs on one machine in the tests as it does on many.
"""

from __future__ import annotations

import multiprocessing
import os
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from typing import Any

from experiments.grid import Key, Row, Run
from pointillist.errors import InputError, PointillistError, Shown

Engine = Callable[["Queue"], Iterator[Row]]


class Queue:
    """The runs that no worker has taken yet, by their program."""

    def __init__(self, runs: Iterable[Run], seconds: float = float("inf")) -> None:
        """After ``seconds`` no more runs are handed out."""
        self._left: dict[Key, deque[Run]] = {}
        for run in runs:
            self._left.setdefault(run.program, deque()).append(run)
        self._fresh = deque(self._left)
        self._end = time.monotonic() + seconds

    def take(self, last: Run | None = None) -> Run | None:
        """A run of the same program as the worker's last one, else of a program not yet started, else of the longest.

        So a worker compiles a program and loads a table once, and no worker is idle at the end.
        """
        if time.monotonic() > self._end:
            return None
        program = last.program if last else None
        while program not in self._left and self._fresh:
            program = self._fresh.popleft()
        if program not in self._left:
            program = max(self._left, key=lambda p: len(self._left[p]), default=None)
        if program is None:
            return None
        run = self._left[program].popleft()
        if not self._left[program]:
            del self._left[program]
        return run


def in_processes(workers: int) -> Engine:
    """Worker processes on this machine; if one dies, only its own run is lost."""
    context = multiprocessing.get_context("spawn")  # JAX does not survive a fork
    threads = max(1, (os.cpu_count() or 1) // workers)

    def start() -> tuple[Connection, Any]:
        here, there = context.Pipe()
        process = context.Process(target=_serve, args=(there, threads))
        process.start()
        there.close()
        return here, process

    def engine(queue: Queue) -> Iterator[Row]:
        from experiments.run import failed  # a missing package is found before any worker starts

        busy: dict[Connection, tuple[Any, Run]] = {}

        def give(connection: Connection, process: Any, run: Run | None) -> None:
            if run is None:
                connection.close()  # the worker sees the end and exits
                process.join()
                return
            with suppress(OSError):  # if it died while idle, that is noticed when its answer is awaited
                connection.send(run)
            busy[connection] = process, run

        try:
            for _ in range(workers):
                run = queue.take()
                if run is not None:
                    give(*start(), run)
            while busy:
                for connection in wait(list(busy)):
                    assert isinstance(connection, Connection)
                    process, run = busy.pop(connection)
                    following = queue.take(run)
                    try:
                        answer = connection.recv()
                        give(connection, process, following)
                    except (EOFError, OSError):
                        process.join()
                        connection.close()
                        answer = failed(run, f"the worker process ended with exit code {process.exitcode}")
                        if following is not None:
                            give(*start(), following)
                    if isinstance(answer, PointillistError):
                        raise answer
                    yield answer
        finally:
            for connection, (process, _) in busy.items():
                process.terminate()
                process.join()
                connection.close()

    return engine


def _serve(connection: Connection, threads: int) -> None:
    """A worker: makes the runs that it is sent until the driver is gone."""
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, str(threads))
    from experiments.run import commit, execute

    commit()  # before anyone commits something else
    try:
        while True:
            run = connection.recv()
            try:
                connection.send(execute(run))
            except PointillistError as error:
                connection.send(error)
    except (EOFError, OSError, KeyboardInterrupt):
        return


def on_dask(address: str | None, workers: int) -> Engine:
    """The workers of the cluster at ``address``, or of a local one that lasts as long as the runs.

    A run is one task. As many run at a time as the cluster has threads, which are counted again after each run: give a
    worker one thread (``dask worker --nthreads 1``). Workers may join and leave at any time.
    """
    try:
        from distributed import Client, LocalCluster, as_completed
    except ImportError:
        raise InputError("engine", "dask", "must be installed", "pip install '.[experiments]'") from None
    from experiments.run import execute, failed

    def engine(queue: Queue) -> Iterator[Row]:
        local = None
        if address is None:
            local = LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None)
        try:
            with Client(local or address) as client:
                waiting = as_completed()
                doing: dict[str, Run] = {}

                def submit(last: Run | None = None) -> None:
                    most = max(1, sum(client.nthreads().values()))
                    while len(doing) < most and (run := queue.take(last)) is not None:
                        future = client.submit(execute, run, key="/".join(run.key), pure=False)
                        doing[future.key] = run
                        waiting.add(future)

                submit()
                for future in waiting:
                    run = doing.pop(future.key)
                    error = future.exception()
                    if isinstance(error, PointillistError):
                        raise error
                    row = future.result() if error is None else failed(run, f"{type(error).__name__}: {error}")
                    future.release()
                    submit(run)
                    yield row
        except OSError as error:
            rule = f"must be the address of a cluster that answers ({error})"
            hint = "start one with dask scheduler and dask worker"
            raise InputError("--address", Shown(str(address)), rule, hint) from None
        finally:
            if local is not None:
                local.close()

    return engine
