"""A release: what is safe to publish. Synthetic rows, the model, the transcript and the ledger, saved as a folder.

No field holds anything but public facts and differentially private results: no true answer, no true error and,
under add-remove, no true number of rows.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from pointillist.algorithms.repeating import repeated_method
from pointillist.answers import (
    Answer,
    AnswerTable,
    Original,
    Replicate,
    Replicates,
    Statistic,
    answered,
    replicated,
    tabulated,
)
from pointillist.checks import at_least, between, check, path_of, whole
from pointillist.data.schema import Schema
from pointillist.data.table import Table, as_pandas
from pointillist.errors import InputError, PointillistError, Shown, brief, in_short
from pointillist.families.saved import load_family
from pointillist.framework import Family, Log
from pointillist.privacy.curator import MOST_ROWS, Found
from pointillist.queries.base import Queries
from pointillist.queries.workload import Workload
from pointillist.refining import Listing
from pointillist.release import format1
from pointillist.release.description import FORMAT, Description
from pointillist.release.drawing import draw_rows
from pointillist.release.given import condition_of, place_values
from pointillist.release.imputing import Imputed
from pointillist.release.journal import NAME as JOURNAL
from pointillist.release.place import PART, REPLICATES, SPEC, Place
from pointillist.release.replicating import load_replicates, save_replicates
from pointillist.release.safe import (
    check_model,
    check_parquet,
    claimed_limit,
    load_arrays,
    model_bytes,
    old_model_bytes,
    rows_bytes,
)
from pointillist.release.shown import release_as_html, release_in_short
from pointillist.release.transcript import log_arrays, log_of
from pointillist.showing import watched

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Listed", "Refined", "Release", "add_replicates", "listed_schema", "refined_of"]

ROWS_CSV, ROWS_PARQUET = "synthetic.csv", "synthetic.parquet"
MODEL, TRANSCRIPT = "model.npz", "transcript.npz"
REPLICATED, MOST_REPLICATES = 8, 100
"""How many replicates there are by default, and at most."""
REFINED = "refined_"
"""Before the names of the arrays of the transcript that come from the stage before the run."""


@dataclass(frozen=True)
class Listed:
    """What was discovered before a run.

    Attributes:
        schema: the columns as they were given.
        found: their frequent values.
    """

    schema: Schema
    found: tuple[Found, ...]


@dataclass(frozen=True)
class Refined:
    """What was measured of fine columns before a run, and merged from it.

    Attributes:
        schema: the columns as they were given, with the values that were discovered.
        log: the measurements of their fine codes.
    """

    schema: Schema
    log: Log


@dataclass(frozen=True, repr=False)
class Release:
    """A synthetic table with the model behind it and the account of its privacy.

    Attributes:
        table: the synthetic rows.
        family: the family of the model.
        params: the model.
        log: the transcript.
        description: what the release says about itself.
        refined: what was measured of fine columns before the run, if there were any.
        replicates: models of simulated runs, from which intervals come, if they were made.
    """

    table: Table
    family: Family[Any]
    params: Any
    log: Log
    description: Description
    refined: Refined | None = None
    replicates: Replicates | None = None

    @property
    def schema(self) -> Schema:
        """The columns of the table."""
        return self.table.schema

    @cached_property
    def given(self) -> Schema:
        """The columns as they were given to the run: before values were discovered, and fine columns merged."""
        given = self.description.given
        return self.schema if given is None else Schema.from_dict(given)

    @cached_property
    def workload(self) -> Workload:
        """The workload that the release was made for. The log may hold other queries, which were measured for it."""
        return Workload.from_dict(self.description.workload, self.schema.domain)

    @property
    def statement(self) -> str:
        """The privacy guarantee, and what was spent."""
        return self.description.privacy.statement

    def __repr__(self) -> str:
        return release_in_short(self.description, len(self.schema.columns))

    def _repr_html_(self) -> str:
        """The release in a notebook: one line, the statement and the first rows."""
        private = self.description.privacy.private
        return release_as_html(repr(self), self.statement, self.to_arrow().slice(0, 5), private)

    def to_arrow(self) -> pa.Table:
        """The synthetic rows with their labels and types, exactly as the files of the release have them."""
        return self.table.to_arrow(self.description.seed)

    def head(self, n: int = 5) -> Any:
        """The first synthetic rows as a pandas data frame.

        Args:
            n: the number of rows.
        """
        return as_pandas(self.to_arrow().slice(0, at_least("n", whole("n", n), 0, 5)), self.schema)

    def sample(self, rows: int, seed: int = 0, given: Mapping[str, Any] | None = None) -> Table:
        """Draw more rows from the model: free, since the model is already private. As in the release, values are then
        exchanged until the rows answer the workload as the model does (:mod:`pointillist.release.matching`).

        Args:
            rows: the number of rows.
            seed: the seed of the draw; the rows differ from those of the release even for the same seed.
            given: a condition on the rows: for some columns the value, or a list of values of which any will do. A
                number means its bin; None means missing. The other columns follow the model on this condition, and no
                values are exchanged.
        """
        return self._sample(rows, seed, {} if given is None else given)

    def _sample(self, rows: int, seed: int, given: Mapping[str, Any], exact: bool = False) -> Table:
        """Rows on a condition; ``exact`` as in :func:`~pointillist.release.given.condition_of`."""
        rows = between("rows", whole("rows", rows), 1, MOST_ROWS, "give for example 1000")
        seed = between("seed", whole("seed", seed), 0, 2**63 - 1, "use 0")
        allowed, schema = condition_of(self.schema, given, exact)
        wanted = self.workload.queries
        return draw_rows(self.family, self.params, schema, rows, seed, stream=1, allowed=allowed, wanted=wanted)

    def sample_values(self, rows: int, seed: int = 0, given: Mapping[str, Any] | None = None) -> pa.Table:
        """Draw more rows, decoded to an Arrow table: :meth:`sample`, with the given numbers themselves in the rows.

        Args:
            rows: the number of rows.
            seed: the seed of the draw and of the decoding.
            given: a condition on the rows, as in :meth:`sample`.
        """
        decoded = self._sample(rows, seed, {} if given is None else given, exact=True).to_arrow(seed)
        return place_values(decoded, self.schema, given or {})

    @overload
    def answers(self, workload: Workload | None = None, level: None = None) -> np.ndarray: ...

    @overload
    def answers(self, workload: Workload | None = None, *, level: float) -> AnswerTable: ...

    def answers(self, workload: Workload | None = None, level: float | None = None) -> np.ndarray | AnswerTable:
        """The model's answers to a workload, as fractions of the rows.

        Args:
            workload: the queries; by default those that the release was made for.
            level: with it, a table with a line for each answer: what it is about, the estimate and the ends of an
                interval that holds the answer of the private table this often. Replicates are made if there are none.
        """
        workload = self.workload if workload is None else workload
        hint = "build it from release.schema.domain"
        check(isinstance(workload, Workload), "workload", brief(workload), "must be a Workload", hint)
        same = workload.domain == self.schema.domain
        rule = "must be over the release's columns"
        check(same, "workload", Shown("another domain"), rule, hint)
        if level is None:
            return self.family.answers(self.params, workload.queries)
        return tabulated(self._replicated, workload.queries, level)

    def answer(self, query: str | Queries | Statistic, level: float = 0.95, population: bool = False) -> Answer:
        """The answer to one query with an interval, from differentially private values only.

        Replicates are made if there are none: :meth:`replicate` before, and save the result, to do it once.

        Args:
            query: a condition such as ``'age >= 65 and region == "N"'``, for the share of the rows for which it holds;
                queries of one number; or a statistic of :mod:`pointillist.answers`.
            level: how often such intervals hold the answer of the private table.
            population: count the sampling error of a population, too, from which the rows are a random sample.
        """
        return answered(self._replicated, query, level, population)

    @cached_property
    def _replicated(self) -> Release:
        """The release with replicates."""
        return self if self.replicates is not None else self.replicate()

    def replicate(
        self,
        replicates: int = REPLICATED,
        seed: int = 0,
        public: Any = None,
        progress: bool | None = None,
        workers: int | None = None,
    ) -> Release:
        """The release with replicates: models of simulated runs, from which intervals come.

        It needs neither the private data nor any budget.

        Args:
            replicates: the number of simulated runs.
            seed: the seed of the simulation.
            public: the public table that the release was made with, if there was one.
            progress: as in :func:`~pointillist.synthesize`.
            workers: how many are made at the same time, where the method allows it; by default as many as there are
                cores and as the memory carries. It changes no replicate.
        """
        if workers is not None:
            workers = at_least("workers", whole("workers", workers), 1, 2)
        count = between("replicates", whole("replicates", replicates), 2, MOST_REPLICATES, "give 8")
        seed = between("seed", whole("seed", seed), 0, 2**63 - 1, "use 0")
        original = self._original(public)
        with watched(progress):
            return replace(self, replicates=replicated(original, self.workload.queries, count, seed, workers))

    def _original(self, public: Any = None) -> Original:
        """The run that replicates repeat."""
        used, table = self.description.method, self.description.public
        digest = None if table is None else table.sha256
        method = repeated_method(used.name, used.settings, used.grouping, self.workload, self.schema, digest, public)
        fine = None if self.refined is None else (self.refined.schema, self.refined.log)
        return Original(method, self.family, self.params, self.log, self.schema, fine)

    def datasets(self, m: int = REPLICATED, rows: int | None = None) -> list[Table]:
        """Synthetic tables that differ as much as the release is uncertain, for standard errors by Rubin's rules
        (:func:`~pointillist.answers.combine`). Replicates are made if there are too few.

        Args:
            m: the number of tables.
            rows: the number of rows of each; by default as many as the release has.
        """
        m = between("m", whole("m", m), 2, MOST_REPLICATES, "give 8")
        count = self.description.rows if rows is None else whole("rows", rows)
        count = between("rows", count, 1, MOST_ROWS, "give for example 1000")
        found = self._replicated.replicates
        if found is None or len(found) < m:
            found = self.replicate(m).replicates
        assert found is not None
        model = Replicate(self.family, self.params, float(self.log.estimated_total), self.schema)
        every = [Imputed(model, found.pilot, one, 1 - 2 * (i % 2)) for i, one in enumerate(found.models[:m])]
        seed, wanted = self.description.seed, self.workload.queries
        return [
            draw_rows(one.family, one.params, one.schema, count, seed, stream=2 + i, wanted=wanted)
            for i, one in enumerate(every)
        ]

    def save(self, folder: str | Path, force: bool = False) -> Path:
        """Write the release as a folder, all or nothing.

        Args:
            folder: where to.
            force: replace a release that is there already.
        """
        place = Place.claim(folder, force)
        try:
            return place.publish(self.write)
        except BaseException:
            if place.complete:
                place.close()
            else:
                place.abandon()
            raise

    def write(self, folder: Path) -> None:
        """Write all files into a folder; the description last, under a name that does not yet make it a release."""
        seed = self.description.seed
        self.table.write(folder / ROWS_CSV, seed)
        self.table.write(folder / ROWS_PARQUET, seed)
        _save_arrays(folder / MODEL, self.family.to_arrays(self.params))
        transcript = log_arrays(self.log, self.schema.domain.names)
        if self.refined is not None:
            before = log_arrays(self.refined.log, self.refined.schema.domain.names)
            transcript |= {REFINED + name: array for name, array in before.items()}
        _save_arrays(folder / TRANSCRIPT, transcript)
        if self.replicates is not None:
            save_replicates(folder / REPLICATES, self.replicates)
        text = json.dumps(self.description.to_dict(), indent=1) + "\n"
        (folder / (SPEC + PART)).write_text(text, encoding="utf-8")

    @classmethod
    def load(cls, folder: str | Path) -> Release:
        """Read a release folder back. It needs neither the method that made it nor its settings.

        Args:
            folder: the folder that :meth:`save` wrote.
        """
        folder = path_of("release", folder)
        if os.path.isfile(folder / JOURNAL) and not os.path.isfile(folder / SPEC):  # takes names of any length
            hint = f"finish it with `pointillist resume {folder}`"
            raise InputError("release", str(folder), "must be complete (this run was interrupted)", hint)
        for name in (SPEC, MODEL, TRANSCRIPT, ROWS_PARQUET):
            rule = f"must be a release folder with {name} in it"
            check(os.path.isfile(folder / name), "release", str(folder), rule, "give the folder that synth wrote")
        try:
            return cls._read(folder)
        except PointillistError:
            raise
        except Exception as error:  # a damaged file can fail in any way
            rule = f"must be undamaged ({in_short(error)})"
            raise InputError("release", str(folder), rule, "make the release again") from None

    @classmethod
    def _read(cls, folder: Path) -> Release:
        spec = json.loads((folder / SPEC).read_text(encoding="utf-8"))
        written = spec["format"]
        if written not in (1, FORMAT):
            raise InputError("release: format", written, f"must be 1 or {FORMAT}", "update pointillist")
        if written == 1:
            most = old_model_bytes(Schema.from_dict(spec["schema"]).domain, folder / MODEL)
            spec_family = format1.family_of(spec, load_arrays(folder / MODEL, most))
            entries = format1.upgraded(spec, spec_family)
        else:
            entries = spec
        description = Description.from_dict(entries)
        schema = Schema.from_dict(description.schema)
        facts, domain = description.facts, schema.domain
        model = load_arrays(folder / MODEL, model_bytes(description.family, domain, folder / MODEL))
        check_model(description.family, domain, model)
        transcript = load_arrays(folder / TRANSCRIPT, claimed_limit(folder / TRANSCRIPT))
        check_parquet(folder / ROWS_PARQUET, rows_bytes(schema, description.rows))
        log = format1.log_of(transcript, spec, domain, facts) if written == 1 else log_of(transcript, domain, facts)
        log.start = dict(description.method.start)
        family = load_family(description.family, domain, model)
        table = Table.read(folder / ROWS_PARQUET, schema)
        refined = refined_of(description, transcript)
        replicates = load_replicates(folder / REPLICATES, description.family, schema, float(log.estimated_total))
        release = cls(table, family, family.from_arrays(model), log, description, refined, replicates)
        _ = release.workload  # a damaged one is refused now, not when it is used
        return release


def add_replicates(folder: str | Path, release: Release) -> Path:
    """Save the replicates of a release into its folder, next to the model. Nothing else is touched.

    Args:
        folder: where the release is.
        release: the release, with replicates.
    """
    folder = path_of("release", folder)
    if release.replicates is None:
        raise ValueError("the release has no replicates")
    check(os.path.isfile(folder / SPEC), "release", str(folder), "must be a release folder", "save the release first")
    save_replicates(folder / REPLICATES, release.replicates)
    return folder / REPLICATES


def refined_of(about: Description, transcript: Mapping[str, np.ndarray]) -> Refined | None:
    """What was measured of fine columns before the run, from the arrays of a transcript.

    Args:
        about: the description of the release.
        transcript: the arrays.
    """
    arrays = {name.removeprefix(REFINED): array for name, array in transcript.items() if name.startswith(REFINED)}
    schema = listed_schema(about)
    if schema is None or (about.discovered is not None and not arrays):
        return None
    return Refined(schema, log_of(arrays, schema.domain, about.facts_before))


def listed_schema(about: Description) -> Schema | None:
    """The columns as they were given, with the values that were discovered; None if nothing came before the run.

    Args:
        about: the description of the release.
    """
    if about.given is None:
        return None
    given = Schema.from_dict(about.given)
    if about.discovered is None:
        return given
    return Listing(given, about.privacy.delta_shown or 0.0).listed(about.discovered, about.total)


def _save_arrays(path: Path, arrays: Mapping[str, Any]) -> None:
    np.savez_compressed(path, **arrays)
