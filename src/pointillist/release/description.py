"""What a release says about itself: a dataclass that is written to and read from ``release.json``."""

from __future__ import annotations

import types
from collections.abc import Mapping
from dataclasses import MISSING, asdict, dataclass, field, fields, is_dataclass, replace
from fractions import Fraction
from importlib import metadata
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from pointillist.checks import check
from pointillist.data.neighbours import Relation, Unit
from pointillist.errors import InputError, Shown
from pointillist.privacy.curator import Found
from pointillist.privacy.facts import Facts
from pointillist.privacy.ledger import Entry, minus
from pointillist.release.drawing import Drawn
from pointillist.release.matching import Matched

__all__ = ["FORMAT", "Description", "MethodUsed", "Privacy", "PublicUsed", "WithSchema", "read", "versions"]

FORMAT = 2
"""The format of release folders."""

OPTIONAL = {"optional": True}
"""Marks an entry that is only written where it is set: without it the files are those of earlier versions."""

AGAIN = "make the release again"

T = TypeVar("T")


@dataclass(frozen=True)
class MethodUsed:
    """The method that made a release, for the record: nothing is needed from it to load one.

    Attributes:
        name: the name of the method.
        settings: its hyper-parameters.
        grouping: whether queries were selected one by one or as marginals.
        strategy: its strategy, in short.
        start: diagnostics of how the first distribution was made.
    """

    name: str
    settings: dict[str, Any]
    grouping: str
    strategy: str
    start: dict[str, float]


@dataclass(frozen=True)
class WithSchema:
    """A release together with its schema, where that was paid for; ``[privacy]`` of the schema has the charges.

    Attributes:
        schema_epsilon, schema_delta: what the schema cost.
        epsilon, delta: what both cost together.
    """

    schema_epsilon: float
    schema_delta: float
    epsilon: float
    delta: float


@dataclass(frozen=True)
class Privacy:
    """The guarantee and what was spent for it.

    Attributes:
        private: false for releases made with seeded noise.
        relation: which tables are neighbours.
        epsilon, delta: the budget.
        accounting: the account in which rho is counted.
        rho, rho_spent: the limit and what was spent of it.
        noise: where the noise came from.
        statement: the guarantee in words.
        ledger: every charge.
        unit: what is protected as a whole, if it is not a row.
        with_schema: the cost of the schema, and of both together, if the schema was paid for.
        delta_shown: the part of delta for showing values that only one unit has, if values were discovered. rho follows
            from the rest of delta.
    """

    private: bool
    relation: str
    epsilon: float
    delta: float
    accounting: str
    rho: float
    rho_spent: float
    noise: str
    statement: str
    ledger: tuple[Entry, ...]
    unit: Unit | None = field(default=None, metadata=OPTIONAL)
    with_schema: WithSchema | None = field(default=None, metadata=OPTIONAL)
    delta_shown: float | None = field(default=None, metadata=OPTIONAL)


@dataclass(frozen=True)
class PublicUsed:
    """The public table that a release was made with."""

    rows: int
    records: int
    missing: tuple[str, ...]
    sha256: str


@dataclass(frozen=True)
class Description:
    """All of ``release.json``.

    Attributes:
        method: the method and its settings.
        workload: the queries that were wanted, as plain data (``Workload.to_dict``).
        family: the family of the model, as plain data (``Family.to_dict``).
        privacy: the guarantee.
        public: the public table, if one was used.
        total: the number of rows, public or noisy.
        total_sigma: the standard deviation of its noise.
        rho: what the rounds could spend.
        rows: the number of synthetic rows.
        seed: the seed of the post-processing.
        schema: the columns, as plain data (``Schema.to_dict``).
        versions: the packages that made it.
        given: the columns as they were given, if some of them were fine or to be discovered; ``schema`` has them merged
            and with the values that were discovered.
        format: the format of the folder.
        rules: what the rules of the schema did to the rows, if it has any.
        matched: how near the rows are to the model; None if they are as they were drawn.
        discovered: the values that were discovered, by column, if there were such columns.
    """

    method: MethodUsed
    workload: dict[str, Any]
    family: dict[str, Any]
    privacy: Privacy
    public: PublicUsed | None
    total: int
    total_sigma: float
    rho: float
    rows: int
    seed: int
    schema: dict[str, Any]
    versions: dict[str, str]
    given: dict[str, Any] | None = None
    format: int = FORMAT
    rules: Drawn | None = field(default=None, metadata=OPTIONAL)
    matched: Matched | None = field(default=None, metadata=OPTIONAL)
    discovered: tuple[Found, ...] | None = field(default=None, metadata=OPTIONAL)

    @property
    def facts(self) -> Facts:
        """What the run knew before its first round."""
        unit = self.privacy.unit
        rows_per_unit = 1 if unit is None else unit.max_rows
        return Facts(self.total, self.rho, Relation(self.privacy.relation), self.total_sigma, rows_per_unit)

    @property
    def facts_before(self) -> Facts:
        """What was known before fine columns were measured, and after values were discovered."""
        before = (1 if self.total_sigma else 0) + len(self.discovered or ())
        spent = sum((Fraction(entry.rho) for entry in self.privacy.ledger[:before]), Fraction(0))
        return replace(self.facts, rho=minus(self.privacy.rho, spent))

    def to_dict(self) -> dict[str, Any]:
        """The description as plain data."""
        return {"format": self.format} | _written(self)

    @classmethod
    def from_dict(cls, spec: Mapping[str, Any]) -> Description:
        """The description behind :meth:`to_dict`; refuses missing, unknown and mistyped entries."""
        return read(cls, spec, "release")


def _written(one: Any) -> dict[str, Any]:
    """A dataclass as plain data, without optional entries that are not set."""
    out = asdict(one)
    for entry in fields(one):
        value = getattr(one, entry.name)
        if value is None and entry.metadata.get("optional"):
            del out[entry.name]
        elif is_dataclass(value):
            out[entry.name] = _written(value)
        elif isinstance(value, tuple) and value and isinstance(value[0], Entry):
            out[entry.name] = tuple(one.to_dict() for one in value)
    return out


def read(kind: type[T], spec: Any, where: str) -> T:
    """A dataclass from plain data, by the types of its fields."""
    check(isinstance(spec, Mapping), where, type(spec).__name__, "must be a table of entries", AGAIN)
    hints = get_type_hints(kind)
    names = [entry.name for entry in fields(kind)]  # type: ignore[arg-type]
    needed = {entry.name for entry in fields(kind) if entry.default is MISSING}  # type: ignore[arg-type]
    for word, found in (("missing", needed - set(spec)), ("unknown", set(spec) - set(names))):
        shown = Shown(f"{word} {', '.join(sorted(map(str, found))[:3])}")
        check(not found, where, shown, "must have exactly the entries of its format", AGAIN)
    return kind(**{name: _value(hints[name], spec[name], f"{where}: {name}") for name in names if name in spec})


def _value(hint: Any, value: Any, where: str) -> Any:
    if is_dataclass(hint):
        return read(hint, value, where)  # type: ignore[arg-type]
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return None if value is None else _value(inner[0], value, where)
    if origin is tuple and isinstance(value, list):
        return tuple(_value(inner[0], one, where) for one in value)
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if not isinstance(value, origin or hint) or (hint is int and isinstance(value, bool)):
        raise InputError(where, type(value).__name__, f"must be of type {getattr(hint, '__name__', hint)}", AGAIN)
    return value


def versions() -> dict[str, str]:
    """Versions of the packages that a release depends on."""
    found = {}
    for name in ("pointillist", "numpy", "scipy", "opendp", "pyarrow", "jax", "optax"):
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found
