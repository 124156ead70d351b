"""Work for all cores of the machine: NumPy and Arrow leave Python free while they compute."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

__all__ = ["cores", "in_threads"]

T = TypeVar("T")
U = TypeVar("U")


def cores() -> int:
    """Return the number of processor cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def in_threads(function: Callable[[T], U], given: Iterable[T]) -> Iterator[U]:
    """Return the results of a function, in order, computed by as many threads as there are cores.

    Only a few results are computed ahead, so that what is given may be larger than the memory.

    Args:
        function: The function.
        given: Its arguments, one after the other.
    """
    threads = cores()
    waiting: deque[Future[U]] = deque()
    with ThreadPoolExecutor(threads) as pool:
        for one in given:
            waiting.append(pool.submit(function, one))
            if len(waiting) > threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
