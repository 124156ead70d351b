"""The replay: model and rows of a release follow from its transcript, without any private data."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any, TypeVar

import numpy as np

from pointillist.algorithms.repeating import repeated_method
from pointillist.answers import Original, replicated
from pointillist.attestation.evidence import Evidence
from pointillist.attestation.findings import Failed, Skipped, one_line, require
from pointillist.attestation.tables import read_parquet
from pointillist.data.columns import Column, Merged
from pointillist.data.table import Table
from pointillist.errors import RunStopped
from pointillist.framework import Algorithm, Log, Replay, run
from pointillist.privacy.curator import Ask
from pointillist.privacy.ledger import Entry
from pointillist.privacy.scores import Pick, ScoreRule
from pointillist.privacy.sensitivity import of_score
from pointillist.queries.base import Queries
from pointillist.queries.candidates import Candidates
from pointillist.queries.measurement import Measurement
from pointillist.refining import Refining
from pointillist.release import draw_rows
from pointillist.release.place import REPLICATES

__all__ = ["check_columns", "check_model", "check_replay", "check_replicates", "check_rows", "check_simulated"]

T = TypeVar("T")

NEAR = 1e-6
"""Parameters that are not the same bit for bit, but differ by no more than this, were made by other hardware or
versions."""

MOST_ASKED = 10_000_000
"""The largest query, in cells, by which a model is tried."""


class Checked(Replay):
    """Plays a transcript back and compares what the method asks for with what the ledger says was paid.

    Args:
        log: the transcript.
        charges: the charges of its rounds.
    """

    def __init__(self, log: Log, charges: Sequence[Entry]) -> None:
        super().__init__(log)
        self._charges: Iterator[Entry] = iter(charges)

    def select(
        self,
        candidates: Candidates,
        estimate: np.ndarray,
        rule: ScoreRule,
        rho: float,
        picks: int,
        taken: Collection[Queries] | None,
    ) -> tuple[Pick, ...]:
        """The picks of the next selection, which must be candidates that were paid for at the rule's sensitivity."""
        found = _next(lambda: super(Checked, self).select(candidates, estimate, rule, rho, picks, taken))
        require(len(found) == picks, f"the method selects {picks:,} candidates, the transcript has {len(found):,}")
        wanted = of_score(rule, candidates, self._facts)
        for pick in found:
            require(candidates.find(pick.queries) is not None, "the transcript picks what was no candidate")
            entry = _next(lambda: next(self._charges))
            require(entry.rho <= rho, f"a selection for rho = {rho!r} was charged {entry.rho!r}")
            reason = f"a score can change by {wanted:,}, but the selection was charged for {entry.sensitivity:g}"
            require(entry.sensitivity >= wanted, reason)
        return found

    def measure(self, asked: Sequence[Ask]) -> tuple[Measurement, ...]:
        """The next measurements, which must be of the queries that the method asks for."""
        found = _next(lambda: super(Checked, self).measure(asked))
        same = [one.queries for one in found] == [one.queries for one in asked]
        require(same, "the transcript measures other queries than the method asks for")
        for ask in asked:
            entry = _next(lambda: next(self._charges))
            require(entry.rho <= ask.rho, f"a measurement for rho = {ask.rho!r} was charged {entry.rho!r}")
        return found


def _next(get: Callable[[], T]) -> T:
    try:
        return get()
    except StopIteration:
        raise Failed("the transcript ends before the method does") from None


def check_columns(evidence: Evidence) -> str:
    """Merged columns follow from what was measured of the fine ones."""
    refined = evidence.refined
    merged = any(isinstance(column, Merged) for column in evidence.schema.columns)
    if refined is None:
        require(not merged, "columns are merged, but the transcript has no counts of their fine codes")
        if evidence.listed is None:
            return "as they were given"
        require(not any(column.fine for column in evidence.listed.columns), "fine columns were not measured")
        require(evidence.schema == evidence.listed, "the columns do not follow from the values that were discovered")
        return "they follow from the values that were discovered"
    refining = Refining(refined.schema)
    require(evidence.schema.rules == refined.schema.rules, "the merged columns have other rules than those given")
    asked = [one.queries for one in refining.asked(refined.log.facts)]
    measured = refined.log.measurements
    require([one.queries for one in measured] == asked, "other counts of fine columns were measured than are asked for")
    again = refining.merged(measured, refined.log.facts)
    for column, made in zip(evidence.schema.columns, again.columns, strict=True):
        same = column.to_dict() == made.to_dict() or (isinstance(made, Merged) and _near(column, made))
        require(same, f"column {one_line(column.name)[:60]!r} does not follow from its noisy counts")
    return f"{len(refining.fine):,} merged columns follow from their noisy counts"


def _near(column: Column, made: Merged) -> bool:
    """Whether a column has the same groups, and shares that differ by rounding at most."""
    if not isinstance(column, Merged) or column.groups != made.groups or column.base.to_dict() != made.base.to_dict():
        return False
    return bool(np.allclose(column.shares, made.shares, rtol=0, atol=NEAR))


def check_model(evidence: Evidence) -> str:
    """The model can be read, and answers a query with finite numbers."""
    family, params = evidence.model
    finite = all(np.isfinite(array).all() for array in evidence.model_arrays.values() if array.dtype.kind == "f")
    require(finite, "the model has numbers that are not finite")
    smallest = min(evidence.workload.queries, key=lambda queries: queries.size)
    cells = evidence.schema.domain.cells_of(smallest.scope)
    if max(cells, smallest.size) <= MOST_ASKED:
        answers = family.answers(params, [smallest])
        good = answers.shape == (smallest.size,) and bool(np.isfinite(answers).all())
        require(good, "the model does not answer the queries of the workload")
    return f"{evidence.about.family['kind']}, read and asked"


def _algorithm(evidence: Evidence, public: Any) -> Algorithm[Any]:
    """The method of a release, as it was."""
    used, table = evidence.about.method, evidence.about.public
    digest = None if table is None else table.sha256
    parts = (used.name, used.settings, used.grouping, evidence.workload, evidence.schema)
    algorithm = repeated_method(*parts, digest, public)
    family = json.loads(json.dumps(algorithm.family.to_dict()))
    require(family == evidence.about.family, "the method makes another kind of model than the release has")
    return algorithm


def check_replay(evidence: Evidence, public: Any = None) -> str:
    """Run the method on the transcript, and compare the parameters of the model."""
    about, log = evidence.about, evidence.log
    algorithm = _algorithm(evidence, public)
    try:
        params, again = run(algorithm, Checked(log, evidence.run_charges), about.seed)
    except RunStopped as stop:
        if isinstance(stop.__cause__, KeyboardInterrupt):
            raise stop.__cause__ from None
        raise Failed(f"the replay stopped: {stop.reason}") from None
    require(len(again.rounds) == len(log.rounds), "the transcript goes on after the method has ended")
    same_picks = all(one.picks == two.picks for one, two in zip(again.rounds, log.rounds, strict=True))
    require(same_picks, "the method draws other queries than the transcript has")
    return _compared(algorithm.family.to_arrays(params), evidence.model_arrays)


def _compared(
    made: dict[str, np.ndarray], saved: dict[str, np.ndarray], same: str = "the model follows from the transcript"
) -> str:
    shapes = ({name: array.shape for name, array in arrays.items()} for arrays in (made, saved))
    require(next(shapes) == next(shapes), "the replay gives a model of another shape")
    if all(np.array_equal(made[name], saved[name]) for name in made):
        return f"{same}, bit for bit"
    gap = max(float(np.max(np.abs(made[k].astype(float) - saved[k].astype(float)), initial=0.0)) for k in made)
    reason = f"the replay gives another model (parameters differ by up to {gap:.3g})"
    require(
        gap <= NEAR, f"{reason}; a machine or a version other than the release's can be the cause, or a changed file"
    )
    return f"{same}, to within {gap:.2g} (not bit for bit)"


def check_replicates(evidence: Evidence) -> str:
    """The replicates can be read, and fit the model."""
    if not evidence.folder.has(REPLICATES):
        raise Skipped("there are none")
    return f"{len(evidence.replicates):,} models of simulated runs, which protect nothing and cost nothing"


def check_simulated(evidence: Evidence, public: Any = None) -> str:
    """Simulate the first replicate again, and compare its parameters."""
    if not evidence.folder.has(REPLICATES):
        raise Skipped("there are none")
    family, params = evidence.model
    fine = None if evidence.refined is None else (evidence.refined.schema, evidence.refined.log)
    original = Original(_algorithm(evidence, public), family, params, evidence.log, evidence.schema, fine)
    first = replicated(original, evidence.workload.queries, 1, evidence.replicates.seed).models[0]
    saved = evidence.replicates.models[0]
    made, kept = (one.family.to_arrays(one.params) for one in (first, saved))
    return _compared(made, kept, "the first replicate follows from the model and the seed")


def check_rows(evidence: Evidence) -> str:
    """Draw the rows from the model again, and compare every cell."""
    family, params = evidence.model
    about, schema = evidence.about, evidence.schema
    wanted = () if about.matched is None else evidence.workload.queries
    drawn = draw_rows(family, params, schema, about.rows, about.seed, wanted=wanted)
    arrow = read_parquet(evidence)
    found = Table.encode(arrow, schema)
    for column, first, second in zip(schema.columns, drawn.codes, found.codes, strict=True):
        if not np.array_equal(first, second):
            row = int(np.flatnonzero(first != second)[0]) + 1
            raise Failed(f"row {row:,}, column {one_line(column.name)[:60]!r}, was not drawn from the model")
    decoded = drawn.to_arrow(about.seed)
    for name in decoded.column_names:
        one, two = (_decoded(table.column(name)) for table in (decoded, arrow))
        require(bool(one.equals(two.cast(one.type))), f"column {one_line(name)[:60]!r} has other numbers in its bins")
    return f"{about.rows:,} rows follow from the model and the seed"


def _decoded(column: Any) -> Any:
    """A column without a dictionary."""
    import pyarrow as pa
    import pyarrow.compute as pc

    plain = pc.cast(column, column.type.value_type) if pa.types.is_dictionary(column.type) else column
    return plain.combine_chunks()
