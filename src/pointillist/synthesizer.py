"""The familiar form of a run: an object with ``fit`` and ``sample``, as scikit-learn and others have them.

It keeps arguments, calls :func:`pointillist.synthesize` and hands on what the release can do. Nothing else happens
here.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from pointillist.checks import check, one_of
from pointillist.data.declared import declared_schema
from pointillist.data.table import Table, as_pandas, as_polars
from pointillist.errors import Shown
from pointillist.queries.workload import Workload
from pointillist.release import Release
from pointillist.runs import synthesize

__all__ = ["Synthesizer"]

OUTPUTS = ("pandas", "polars", "arrow", "table")


class Synthesizer:
    """A synthesizer with the form of a scikit-learn estimator: ``fit`` spends the budget, ``sample`` is free.

    Args:
        epsilon: the privacy loss, above 0. Every call of ``fit`` spends it.
        delta: the probability that the loss is larger; by default 1/n^2 under ``replace``.
        method: the name of a method, or a :class:`~pointillist.Method`; by default as in :func:`~pointillist.prepare`.
        workload: the queries to keep: a :class:`~pointillist.Workload` or a text such as ``"marginals:3"``. By
            default as many marginals as the budget, the rows and the memory carry.
        target: a column that matters most, for the default workload of wide tables.
        relation: ``"replace"`` or ``"add-remove"``: which tables are neighbours. By default ``"replace"``, and
            ``"add-remove"`` with a unit.
        unit: the column that says to whom a row belongs: all rows of one such unit are protected together. The schema
            must be given, with this column under ``ignore``.
        max_rows: the rows of each unit that are used, at most.
        schema: the columns. Not needed for a :class:`~pointillist.Table`, nor if every column is a pandas category, a
            polars enum or a boolean, whose types list all values.
        public: a public table, for the methods that use one.
        group: ``"query"`` or ``"marginal"``: what is selected and measured together.
        rows: the number of rows of the release; by default n, or its noisy count.
        seed: drives post-processing, never privacy noise.
        settings: hyper-parameters of the method, by name.
        insecure_noise_seed: replaces the noise by seeded noise: for experiments only, the release is NOT PRIVATE.
        zcdp: account in zCDP even where the tighter account for Gaussian noise would hold.
        on_bad_value: ``"missing"`` takes values that the schema does not allow as missing, in columns that have it.
        memory: the bytes that the rows and counts of a table in pieces may take, such as ``"4GB"``.
        output: what ``sample`` returns: ``"pandas"``, ``"polars"``, ``"arrow"`` or ``"table"``. By default the kind of
            table that ``fit`` was given, and pandas after ``load``.

    Attributes:
        release_: the :class:`~pointillist.Release`, after ``fit`` or ``load``.
    """

    release_: Release

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float | None = None,
        *,
        method: Any = None,
        workload: Any = None,
        target: str | None = None,
        relation: Any = None,
        unit: str | None = None,
        max_rows: int | None = None,
        schema: Any = None,
        public: Any = None,
        group: Any = None,
        rows: int | None = None,
        seed: int = 0,
        settings: Mapping[str, Any] | None = None,
        insecure_noise_seed: int | None = None,
        zcdp: bool = False,
        on_bad_value: str = "error",
        memory: int | str | None = None,
        output: str | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.method = method
        self.workload = workload
        self.target = target
        self.relation = relation
        self.unit = unit
        self.max_rows = max_rows
        self.schema = schema
        self.public = public
        self.group = group
        self.rows = rows
        self.seed = seed
        self.settings = settings
        self.insecure_noise_seed = insecure_noise_seed
        self.zcdp = zcdp
        self.on_bad_value = on_bad_value
        self.memory = memory
        self.output = output

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The arguments by name.

        Args:
            deep: has no effect: no argument is an estimator.
        """
        return {name: getattr(self, name) for name in _defaults()}

    def set_params(self, **params: Any) -> Self:
        """Change arguments, for the next ``fit``.

        Args:
            **params: arguments by name.
        """
        for name in params:
            one_of("params", name, _defaults(), "must name arguments of Synthesizer")
        for name, value in params.items():
            setattr(self, name, value)
        return self

    def fit(
        self,
        table: Any,
        y: Any = None,
        *,
        out: str | Path | None = None,
        force: bool = False,
        account: Any = None,
    ) -> Self:
        """Spend the budget on a private table: :func:`pointillist.synthesize` with these arguments.

        Args:
            table: the private table: a :class:`~pointillist.Table`, or a pandas, polars or Arrow table.
            y: ignored; scikit-learn passes it.
            out: a folder for the release. With it the run keeps a journal there, from which it can be resumed.
            force: whether a release in that folder may be replaced.
            account: an account, or its file, in which the run books its budget; needs ``out``.
        """
        if self.output is not None:
            one_of("output", self.output, OUTPUTS)
        options = {name: value for name, value in self.get_params().items() if name not in ("schema", "output")}
        known = self.schema is not None or isinstance(table, Table) or hasattr(table, "batches")
        schema = self.schema if known else declared_schema(table)
        self.release_ = synthesize(table, schema=schema, out=out, force=force, account=account, **options)
        self._kind = _kind_of(table)
        return self

    def sample(self, n: int | None = None, given: Mapping[str, Any] | None = None, seed: int = 0) -> Any:
        """Draw rows from the model. This spends nothing, however often it is called.

        Args:
            n: the number of rows; by default that of the release.
            given: a condition on the rows: for some columns the value, or a list of values of which any will do. The
                other columns follow the model on this condition.
            seed: the seed of the draw: the same seed gives the same rows.
        """
        release = self._fitted()
        kind = self._kind if self.output is None else one_of("output", self.output, OUTPUTS)
        rows = release.description.rows if n is None else n
        if kind == "table":
            return release.sample(rows, seed, given)
        drawn = release.sample_values(rows, seed, given)
        if kind == "arrow":
            return drawn
        return as_pandas(drawn, release.schema) if kind == "pandas" else as_polars(drawn, release.schema)

    def save(self, path: str | Path, force: bool = False) -> Path:
        """Write the release as a folder: :meth:`pointillist.Release.save`.

        Args:
            path: the folder.
            force: replace a release that is there already.
        """
        return self._fitted().save(path, force)

    @classmethod
    def load(cls, path: str | Path) -> Synthesizer:
        """Read a release folder, with the arguments that made it.

        Args:
            path: the folder that :meth:`save` or ``pointillist synth`` wrote.
        """
        release = Release.load(path)
        about, unit = release.description, release.description.privacy.unit
        schema = release.given
        made = cls(
            about.privacy.epsilon,
            about.privacy.delta,
            method=about.method.name,
            workload=Workload.from_dict(about.workload, schema.domain),
            relation=about.privacy.relation,
            unit=None if unit is None else unit.name,
            max_rows=None if unit is None else unit.max_rows,
            schema=schema,
            group=about.method.grouping,
            rows=about.rows,
            seed=about.seed,
            settings=about.method.settings,
        )
        made.release_, made._kind = release, "pandas"
        return made

    def _fitted(self) -> Release:
        hint = "call fit(table), or use Synthesizer.load(path)"
        check(hasattr(self, "release_"), "synthesizer", Shown("no release"), "must be fitted before it is used", hint)
        return self.release_

    def __repr__(self) -> str:
        plain = (str, int, float, bool)
        changed = {name: value for name, value in self.get_params().items() if value is not _defaults()[name]}
        shown = (f"{k}={v!r}" if isinstance(v, plain) else f"{k}={type(v).__name__}(...)" for k, v in changed.items())
        return f"Synthesizer({', '.join(shown)})"


def _defaults() -> dict[str, Any]:
    """The arguments of a synthesizer and their defaults."""
    return {name: one.default for name, one in inspect.signature(Synthesizer).parameters.items()}


def _kind_of(table: Any) -> str:
    """What kind of table this is, by the package that made it."""
    package = type(table).__module__.partition(".")[0]
    return {"pandas": "pandas", "polars": "polars", "pyarrow": "arrow"}.get(package, "table")
