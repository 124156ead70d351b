"""The counting kernel: rows in the cells of many marginals, exactly, in one pass.

Every marginal by itself would need one update per row. Marginals that share attributes are therefore counted together,
as one *joint*: a marginal over more attributes, from which each of them follows by adding cells up, once, at the end. A
joint over six columns stands for twenty marginals over three. Joints are small enough to stay in the processor's cache.

Counts of several parts of a table are plain vectors of integers, which add up (:func:`partial_counts`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from itertools import chain, pairwise
from typing import NamedTuple, TypeAlias

import numpy as np

from pointillist.data.domain import Attributes, Domain
from pointillist.data.threads import cores

__all__ = ["Columns", "Joint", "count_cells", "in_passes", "joints_of", "partial_counts", "split_counts", "visit_keys"]

Columns: TypeAlias = Sequence[np.ndarray]
"""One array of integer codes per column, all of the same length."""
JOINT_CELLS = 1 << 16
"""The most cells of a joint of several marginals: 512 KiB of counts."""
ALL_JOINT_CELLS = 1 << 24
"""The most cells of all joints, unless the marginals themselves have more: 128 MiB of counts."""
FEW_ROWS = 1 << 12
"""Where a batch has fewer rows, joints are not worth their planning."""
THREADED_ROWS = 1 << 14
"""A batch with fewer rows is counted by one thread."""


class Joint(NamedTuple):
    """Marginals that are counted together.

    Attributes:
        attributes: the attributes of the joint.
        members: the positions of the marginals in the list that was asked for.
    """

    attributes: Attributes
    members: tuple[int, ...]


def joints_of(domain: Domain, marginals: Sequence[Attributes], rows: int) -> list[Joint]:
    """Return joints that cover all marginals, in an order in which neighbours share attributes.

    A joint begins with the largest marginal that is left. It is extended by the attribute that completes most others,
    as long as it has no more cells than a batch has rows.

    Args:
        domain: The sizes of the columns.
        marginals: The attributes of each marginal.
        rows: The number of rows of a batch.
    """
    alone = [Joint(marginal, (place,)) for place, marginal in enumerate(marginals)]
    rooms = (JOINT_CELLS, JOINT_CELLS >> 2, JOINT_CELLS >> 4) if rows >= FEW_ROWS else ()
    found = (_covered(domain, marginals, min(room, rows)) for room in rooms)
    return _sorted(next((joints for joints in found if joints is not None), alone))


def _covered(domain: Domain, marginals: Sequence[Attributes], room: int) -> list[Joint] | None:
    """Return joints of at most ``room`` cells, unless a marginal has more by itself; None if all have too many."""
    sizes = np.array(domain.sizes, float)
    places: list[list[int]] = [[] for _ in sizes]
    for place, marginal in enumerate(marginals):
        for attribute in marginal:
            places[attribute].append(place)
    having = [np.array(one, np.intp) for one in places]  # the marginals with each attribute
    widths = np.array([len(marginal) for marginal in marginals])
    sums = np.array([sum(marginal) for marginal in marginals])
    cells = np.array([domain.cells_of(marginal) for marginal in marginals], float)
    most, total = max(ALL_JOINT_CELLS, cells.sum()), 0.0
    left, joints = np.ones(len(marginals), bool), []
    for seed in np.argsort(-cells, kind="stable"):
        if not left[seed]:
            continue
        inside, size = np.zeros(len(sizes), bool), cells[seed]
        lacking = widths.copy()  # how many attributes of a marginal the joint lacks, and
        lacked = sums.copy()  # the sum of them: where it is one, its position
        added = list(marginals[seed])
        while added:
            for attribute in added:
                inside[attribute] = True
                lacking[having[attribute]] -= 1
                lacked[having[attribute]] -= attribute
            gains = np.bincount(lacked[left & (lacking == 1)], minlength=len(sizes)) * (size * sizes <= room)
            best = int(np.argmax(gains / np.sqrt(np.log(sizes + 1))))
            added = [best] if gains[best] else []
            size *= sizes[best] if added else 1
        members = np.flatnonzero(left & (lacking == 0))
        left[members] = False
        total += size
        if total > most:
            return None
        joints.append(Joint(tuple(np.flatnonzero(inside).tolist()), tuple(members.tolist())))
    return joints


def _sorted(joints: Sequence[Joint]) -> list[Joint]:
    """Return joints in the order of their attributes, the most common ones first, so that keys can be shared."""
    uses: dict[int, int] = {}
    for attribute in chain.from_iterable(joint.attributes for joint in joints):
        uses[attribute] = uses.get(attribute, 0) + 1
    rank = {attribute: place for place, attribute in enumerate(sorted(uses, key=lambda one: (-uses[one], one)))}
    ordered = [Joint(tuple(sorted(joint.attributes, key=rank.__getitem__)), joint.members) for joint in joints]
    return sorted(ordered, key=lambda joint: [rank[attribute] for attribute in joint.attributes])


def visit_keys(
    columns: Columns, domain: Domain, scopes: Iterable[Attributes]
) -> Iterator[tuple[Attributes, np.ndarray]]:
    """Return each scope with the cell into which each row falls.

    The key of a row in the scope (i, j, k) is ``(x_i |X_j| + x_j) |X_k| + x_k``. Scopes with a common prefix (i, j)
    share its key if they come one after the other.

    Args:
        columns: The codes, in a type that holds the keys.
        domain: The sizes of the columns.
        scopes: The attributes of each scope.
    """
    prefixes: list[tuple[Attributes, np.ndarray]] = []
    for scope in scopes:
        while prefixes and prefixes[-1][0] != scope[: len(prefixes[-1][0])]:
            prefixes.pop()
        for width in range(len(prefixes) + 1, len(scope) + 1):
            key = columns[scope[width - 1]]
            if prefixes:
                key = prefixes[-1][1] * key.dtype.type(domain.sizes[scope[width - 1]])
                key += columns[scope[width - 1]]
            prefixes.append((scope[:width], key))
        yield scope, prefixes[-1][1]


def count_cells(
    batches: Iterable[Columns], domain: Domain, marginals: Sequence[Attributes], threads: int | None = None
) -> list[np.ndarray]:
    """Count the rows of batches of codes in every cell of every marginal.

    Args:
        batches: The rows: one array of codes per column in each batch.
        domain: The sizes of the columns.
        marginals: The attributes of each marginal.
        threads: The number of threads; None for as many as there are cores.

    Returns one flat int64 array per marginal, with its cells in C order.
    """
    rest = iter(batches)
    first = next(rest, None)
    joints = joints_of(domain, marginals, 0 if first is None else len(first[0]))
    counts = [np.zeros(domain.cells_of(joint.attributes), np.int64) for joint in joints]
    if first is not None:
        threads = cores() if threads is None else threads
        with ThreadPoolExecutor(threads) as pool:
            for batch in chain([first], rest):
                _add(batch, domain, joints, counts, pool, threads if len(batch[0]) >= THREADED_ROWS else 1)
    return _marginals(domain, marginals, joints, counts)


def _add(
    batch: Columns, domain: Domain, joints: Sequence[Joint], counts: Sequence[np.ndarray], pool: Executor, parts: int
) -> None:
    """Count the rows of a batch; every thread has joints of its own."""
    most = max(len(one) for one in counts) if counts else 0
    columns = [np.asarray(codes, dtype=np.int32 if most < 2**31 else np.intp) for codes in batch]
    for codes, size in zip(columns, domain.sizes, strict=True):
        if len(codes) and not 0 <= codes.min() <= codes.max() < size:
            raise ValueError("a source must deliver codes in 0 .. size - 1")

    def count(part: slice) -> None:
        keys = visit_keys(columns, domain, (joint.attributes for joint in joints[part]))
        for (_, key), cells in zip(keys, counts[part], strict=True):
            np.add.at(cells, key.astype(np.intp, copy=False), 1)

    ends = [len(joints) * part // parts for part in range(parts + 1)]
    work = [slice(start, end) for start, end in pairwise(ends)]
    for _ in map(count, work) if parts == 1 else pool.map(count, work):
        pass


def _marginals(
    domain: Domain, marginals: Sequence[Attributes], joints: Sequence[Joint], counts: Sequence[np.ndarray]
) -> list[np.ndarray]:
    """Return the counts of marginals from those of their joints."""
    found: list[np.ndarray] = [np.zeros(0, np.int64)] * len(marginals)
    for (attributes, members), cells in zip(joints, counts, strict=True):
        known = {attributes: cells.reshape(domain.shape(attributes))}
        for member in members:
            found[member] = _of_joint(domain, marginals[member], attributes, known)
    return found


def _of_joint(
    domain: Domain, marginal: Attributes, attributes: Attributes, known: dict[Attributes, np.ndarray]
) -> np.ndarray:
    """Add up a joint over one attribute after the other, the largest first; what is on the way is kept in ``known``."""
    kept = attributes
    for other in sorted(set(attributes) - set(marginal), key=lambda one: -domain.sizes[one]):
        fewer = tuple(attribute for attribute in kept if attribute != other)
        if fewer not in known:
            known[fewer] = known[kept].sum(axis=kept.index(other))
        kept = fewer
    turned = known[kept].transpose([kept.index(attribute) for attribute in marginal])
    return np.ascontiguousarray(turned).ravel()


def partial_counts(
    batches: Iterable[Columns], domain: Domain, marginals: Sequence[Attributes], threads: int | None = None
) -> np.ndarray:
    """Return the counts of all marginals in one vector. Vectors of the parts of a table add up to that of the table.

    Args:
        batches: The rows of a part: one array of codes per column in each batch.
        domain: The sizes of the columns.
        marginals: The attributes of each marginal.
        threads: The number of threads; None for as many as there are cores.
    """
    return np.concatenate([np.zeros(0, np.int64), *count_cells(batches, domain, marginals, threads)])


def split_counts(vector: np.ndarray, domain: Domain, marginals: Sequence[Attributes]) -> list[np.ndarray]:
    """Return the counts of each marginal from a vector as :func:`partial_counts` returns it.

    Args:
        vector: The vector.
        domain: The sizes of the columns.
        marginals: The attributes of each marginal.
    """
    ends = np.cumsum([domain.cells_of(marginal) for marginal in marginals])
    return np.split(vector, ends[:-1])


def in_passes(domain: Domain, marginals: Sequence[Attributes], most_cells: int) -> list[list[Attributes]]:
    """Return marginals in groups of at most ``most_cells`` cells each, or of one marginal.

    Args:
        domain: The sizes of the columns.
        marginals: The attributes of each marginal.
        most_cells: The most cells of a group.
    """
    groups: list[list[Attributes]] = []
    room = 0
    for marginal in marginals:
        cells = math.prod(domain.shape(marginal))
        if not groups or cells > room:
            groups.append([])
            room = most_cells
        groups[-1].append(marginal)
        room -= cells
    return groups
