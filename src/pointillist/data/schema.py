"""The schema: what may stand in each column. It is public knowledge, written down before the data is read.

A schema is a TOML file that people edit by hand::

    format = 1
    reviewed = true               # false in a draft made from data

    [[column]]
    name = "sex"
    type = "categorical"
    values = ["female", "male"]
    missing = true                # missing is a value of its own

    [[column]]
    name = "age"
    type = "numeric"
    edges = [0, 18, 30, 45, 65, 120]
    integer = true                # bins [0, 18), [18, 30), ..., [65, 120]
    decode = "uniform"            # or "midpoint"

Every column has the codes ``0 .. size - 1``: its values or bins in order, then ``other``, then missing.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from pointillist.data.domain import Domain
from pointillist.errors import InputError, Shown, check, nearest

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Categorical", "Column", "Numeric", "Schema"]

Label = str | int | bool
DTYPES = (
    "string", "category", "bool", "int8", "int16", "int32", "int64",
    "uint8", "uint16", "uint32", "uint64", "float32", "float64",
)  # fmt: skip
NUMBERS = DTYPES[3:]
MISSING_NUMBERS = ("", "NA", "N/A", "NaN", "nan", "null", "NULL")
"""Texts that mean "no number" in a column of numbers of a CSV file; in other columns only the empty text does."""
WIDEST = 1e300  # so that differences of bin edges stay finite


def code_dtype(size: int) -> np.dtype[Any]:
    """The smallest unsigned integer that holds the codes ``0 .. size - 1``."""
    return np.min_scalar_type(size - 1)


@dataclass(frozen=True)
class Categorical:
    """A column with listed values; ``ordered`` says that neighbours in the list are close."""

    name: str
    values: tuple[Label, ...]
    ordered: bool = False
    missing: bool = False
    other: Label | None = None
    dtype: str = ""

    def __post_init__(self) -> None:
        where = f"column {self.name!r}"
        check(len(set(map(str, self.values))) == len(self.values), where, list(self.values),
              "must list different values", "remove the repeated ones")  # fmt: skip
        check(len(self.values) > 0, where, [], "must list its values", "write values = [...]")
        kinds = {type(value) for value in self.labels}
        if len(kinds) > 1 or not kinds <= {str, int, bool}:
            rule = "must list values of one kind (texts, whole numbers or true/false, 'other' included)"
            raise InputError(where, Shown(sorted(k.__name__ for k in kinds)), rule, "write them as texts")
        if self.other in self.values:
            raise InputError(where, self.other, "must not list 'other' among its values", "remove one of the two")
        if any(isinstance(value, int) and not -(2**63) <= value < 2**63 for value in self.labels):
            raise InputError(where, list(self.labels), "must list whole numbers of 64 bits", "write them as texts")
        _check_column(self)
        if self.dtype and not self._survives():
            rule = "must be a type that holds every value of the column"
            raise InputError(f"{where}: dtype", self.dtype, rule, "choose another, or leave dtype out")

    @property
    def labels(self) -> tuple[Label, ...]:
        return self.values if self.other is None else (*self.values, self.other)

    @property
    def size(self) -> int:
        return len(self.labels) + self.missing

    @property
    def output_dtype(self) -> str:
        return self.dtype or {str: "string", int: "int64", bool: "bool"}[type(self.labels[0])]

    def encode(self, array: pa.Array) -> np.ndarray:
        import pyarrow as pa
        import pyarrow.compute as pc

        known: list[Any] = list(self.values)
        kind = type(self.labels[0])
        if pa.types.is_string(array.type):
            if kind is bool:
                array = pc.utf8_lower(array)
            if kind is int:  # pandas writes whole numbers with gaps as 1.0
                array = pc.replace_substring_regex(array, r"^\s*(-?[0-9]+)(\.0*)?\s*$", r"\1")
                array = pc.replace_substring_regex(array, "^-0$", "0")
            known = [str(value).lower() if kind is bool else str(value) for value in known]
        elif kind is str:
            array = pc.cast(array, pa.string())
        elif kind is int and pa.types.is_boolean(array.type):
            array = pc.cast(array, pa.int8())
        elif kind is int and pa.types.is_floating(array.type):
            array = pc.add(array, pa.scalar(0.0, array.type))  # -0.0 is looked up as another value than 0.0
        texts = MISSING_NUMBERS if kind is int else ("",)
        nulls = _is_missing(array, [text for text in texts if text not in self.labels])
        try:
            codes = pc.index_in(array, value_set=pa.array(known).cast(array.type))
        except pa.ArrowInvalid:  # for example the value 300 in a column of 8-bit numbers
            exact = pa.types.is_integer(array.type) and array.type != pa.uint64()
            wide = pa.int64() if exact else pa.float64()
            codes = pc.index_in(array.cast(wide, safe=False), value_set=pa.array(known).cast(wide, safe=False))
        found = codes.is_valid().to_numpy(zero_copy_only=False)
        codes = codes.fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
        return _place(self, array, codes, nulls, stray=~found & ~nulls)

    def decode(self, codes: np.ndarray, rng: np.random.Generator) -> pa.Array:
        import pyarrow as pa
        import pyarrow.compute as pc

        labels = pa.array(list(self.labels))
        places = pa.array(codes.astype(np.int32), mask=codes >= len(labels))
        if self.output_dtype == "category":
            return pa.DictionaryArray.from_arrays(places, labels, ordered=self.ordered)
        return pc.cast(labels.take(places), _arrow_type(self.output_dtype), safe=False)

    def _survives(self) -> bool:
        """Whether every value is the same after a way out and in."""
        import pyarrow as pa

        plain = replace(self, dtype="", other=None, values=self.labels)
        codes = np.arange(len(self.labels))
        try:
            out = self.decode(codes, np.random.default_rng(0))
            back = plain.encode(out.dictionary_decode() if pa.types.is_dictionary(out.type) else out)
        except (pa.ArrowException, InputError):
            return False
        return np.array_equal(back, codes)

    def to_dict(self) -> dict[str, Any]:
        out: dict[str, Any] = {"name": self.name, "type": "categorical", "values": list(self.values)}
        if self.ordered:
            out["ordered"] = True
        return out | _common(self)


@dataclass(frozen=True)
class Numeric:
    """A column of numbers in public bins ``[e_0, e_1), ..., [e_{m-1}, e_m]``.

    ``clip`` puts numbers outside ``[e_0, e_m]`` into the outer bins; without it they are refused.
    """

    name: str
    edges: tuple[float, ...]
    integer: bool = False
    decode_as: str = "uniform"
    clip: bool = False
    missing: bool = False
    other: Label | None = field(default=None, init=False)
    dtype: str = ""

    def __post_init__(self) -> None:
        where = f"column {self.name!r}"
        good = len(self.edges) >= 2 and all(-WIDEST <= e <= WIDEST for e in self.edges)
        good = good and all(a < b for a, b in zip(self.edges, self.edges[1:], strict=False))
        check(good, where, list(self.edges), "must have finite, increasing bin edges, two or more",
              "sort them, and use clip = true for open ends")  # fmt: skip
        whole = not self.integer or all(float(e).is_integer() for e in self.edges)
        check(whole, where, list(self.edges), "must have whole bin edges, being integer", "round the edges")
        known = ("midpoint", "uniform")
        check(self.decode_as in known, f"{where}: decode", self.decode_as, f"must be one of {known}",
              nearest(str(self.decode_as), known))  # fmt: skip
        _check_column(self)
        check(holds_bins(self.output_dtype, self.edges, self.integer), f"{where}: dtype", self.output_dtype,
              "must be a type of numbers that can fall into every bin of the column",
              "choose float64, or int64 for an integer column")  # fmt: skip

    @property
    def size(self) -> int:
        return len(self.edges) - 1 + self.missing

    @property
    def output_dtype(self) -> str:
        return self.dtype or ("int64" if self.integer else "float64")

    def encode(self, array: pa.Array) -> np.ndarray:
        import pyarrow as pa
        import pyarrow.compute as pc

        if pa.types.is_string(array.type):
            array = pc.utf8_trim_whitespace(array)
        nulls = _is_missing(array, MISSING_NUMBERS)
        array = pc.if_else(pa.array(nulls), pa.scalar(None, array.type), array)
        try:
            numbers = pc.cast(array, pa.float64(), safe=False)
        except pa.ArrowInvalid:
            value = next(v.as_py() for v in array if not _is_number(v))
            rule, hint = "must hold numbers", "correct the file or make the column categorical"
            raise InputError(f"column {self.name!r}", value, rule, hint) from None
        nulls = _is_missing(numbers, ())  # NaN is written in many ways
        x = np.where(nulls, self.edges[0], numbers.to_numpy(zero_copy_only=False))
        edges = np.asarray(self.edges)
        bins = np.clip(np.searchsorted(edges, x, side="right") - 1, 0, len(edges) - 2)
        stray = np.zeros(len(x), bool) if self.clip else (x < edges[0]) | (x > edges[-1])
        if self.integer and (fraction := np.flatnonzero(x != np.floor(x))).size:
            rule, hint = "must hold whole numbers, being integer", "set integer = false in the schema"
            raise InputError(f"column {self.name!r}", float(x[fraction[0]]), rule, hint)
        return _place(self, array, bins, nulls, stray)

    def decode(self, codes: np.ndarray, rng: np.random.Generator) -> pa.Array:
        import pyarrow as pa
        import pyarrow.compute as pc

        edges = np.asarray(self.edges, dtype=np.float64)
        bins = len(edges) - 1
        nulls = codes >= bins
        inside = np.minimum(codes, bins - 1)
        low, high = edges[inside], edges[inside + 1]
        if self.integer:  # [low, high) holds low .. high - 1; the last bin holds its upper edge too
            high = high - (inside < bins - 1)
            u = rng.random(len(codes)) if self.decode_as == "uniform" else 0.5
            x = np.minimum(low + np.floor(u * (high - low + 1)), high)
        else:
            u = rng.random(len(codes)) if self.decode_as == "uniform" else 0.5
            x = low + u * (high - low)
            if self.output_dtype == "float32":  # rounding must not lead out of [low, high)
                x, low, high = x.astype(np.float32), _float32_above(low), _float32_above(high)
            x = np.clip(x, low, np.nextafter(high, low))
        return pc.cast(pa.array(x, mask=nulls), self.output_dtype, safe=False)

    def to_dict(self) -> dict[str, Any]:
        edges = [int(e) if self.integer else float(e) for e in self.edges]
        out = {"name": self.name, "type": "numeric", "edges": edges, "integer": self.integer}
        out["decode"] = self.decode_as
        if self.clip:
            out["clip"] = True
        return out | _common(self)


Column: TypeAlias = Categorical | Numeric


@dataclass(frozen=True)
class Schema:
    """The columns of a table, in order, and whether a person has reviewed them.

    ``ignore`` names columns of a file that are left out (identifiers, free text).
    """

    columns: tuple[Column, ...]
    reviewed: bool = True
    ignore: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check(
            len(self.columns) > 0,
            "schema",
            Shown("no column"),
            "must have at least one column",
            "add columns",
        )
        _ = self.domain  # refuses repeated names
        both = sorted(set(self.ignore) & {column.name for column in self.columns})
        check(not both, "schema: ignore", both, "must not name columns of the schema", "remove one of the two")

    @cached_property
    def domain(self) -> Domain:
        return Domain(tuple(c.name for c in self.columns), tuple(c.size for c in self.columns))

    def project(self, names: Sequence[str]) -> Schema:
        """The schema over ``names``, in that order."""
        columns = tuple(self.columns[self.domain.index(name)] for name in names)
        return Schema(columns, self.reviewed, self.ignore)

    def to_dict(self) -> dict[str, Any]:
        out: dict[str, Any] = {"format": 1, "reviewed": self.reviewed}
        if self.ignore:
            out["ignore"] = list(self.ignore)
        return out | {"column": [column.to_dict() for column in self.columns]}

    @classmethod
    def from_dict(cls, spec: dict[str, Any]) -> Schema:
        check(spec.get("format") == 1, "schema: format", spec.get("format"), "must be 1", "write format = 1")
        _known_keys("schema", spec, ("format", "reviewed", "ignore", "column"))
        check(isinstance(spec.get("column"), list), "schema", Shown("no [[column]]"),
              "must have at least one column", "add [[column]] tables")  # fmt: skip
        reviewed = spec.get("reviewed", False)
        check(
            isinstance(reviewed, bool),
            "schema: reviewed",
            reviewed,
            "must be true or false",
            "write true or false",
        )
        ignore = spec.get("ignore", [])
        names = isinstance(ignore, list) and all(isinstance(name, str) for name in ignore)
        check(names, "schema: ignore", ignore, "must be a list of names", 'write ["name"]')
        return cls(tuple(_column(c) for c in spec["column"]), reviewed, tuple(ignore))

    def to_toml(self) -> str:
        """The schema as a TOML text that :meth:`load` reads back."""
        lines = [f"format = 1\nreviewed = {_toml(self.reviewed)}"]
        if not self.reviewed:
            lines.insert(0, DRAFT_NOTICE)
        if self.ignore:
            lines.append(f"ignore = {_toml(list(self.ignore))}  # columns of the file that are left out")
        for column in self.columns:
            pairs = "\n".join(f"{key} = {_toml(value)}" for key, value in column.to_dict().items())
            lines.append(f"\n[[column]]\n{pairs}")
        return "\n".join(lines) + "\n"

    def save(self, path: str | Path) -> None:
        Path(path).write_text(self.to_toml(), encoding="utf-8")

    @classmethod
    def load(cls, path: str | Path) -> Schema:
        path = Path(path)
        check(path.is_file(), "schema", str(path), "must be an existing file",
              "draft one with `pointillist schema DATA`")  # fmt: skip
        try:
            spec = tomllib.loads(path.read_text(encoding="utf-8"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as error:
            raise InputError("schema", str(path), f"must be valid TOML ({error})", "correct the file") from None
        return cls.from_dict(spec)

    def require_reviewed(self, name: str) -> None:
        """Refuse a draft: values read off the private data are not public knowledge."""
        check(self.reviewed, f"schema {name}", Shown("reviewed = false"), "must be reviewed by a person before use",
              "check that every value and bin edge in it is public knowledge, then set reviewed = true")  # fmt: skip


DRAFT_NOTICE = """\
# DRAFT, made from data: NOT public knowledge until a person has reviewed it.
# Each value and bin edge below was read off the file. Replace what is not public by what is known without
# looking at the data (code books, legal limits), then set reviewed = true."""


def _column(spec: Any) -> Column:
    check(isinstance(spec, dict) and isinstance(spec.get("name"), str), "schema: column", spec,
          "must have a name", "write name = \"...\"")  # fmt: skip
    where = f"column {spec['name']!r}"
    kinds: dict[str, tuple[type[Column], str, tuple[str, ...]]] = {
        "categorical": (Categorical, "values", ("values", "ordered", "missing", "other", "dtype")),
        "numeric": (Numeric, "edges", ("edges", "integer", "decode", "clip", "missing", "dtype")),
    }
    kind = spec.get("type")
    if kind not in kinds:
        raise InputError(f"{where}: type", kind, f"must be one of {tuple(kinds)}", nearest(str(kind), kinds))
    build, listed, known = kinds[kind]
    _known_keys(where, spec, ("name", "type", *known))
    check(isinstance(spec.get(listed), list), where, spec.get(listed), f"must have a list of {listed}",
          f"write {listed} = [...]")  # fmt: skip
    for flag in ("ordered", "missing", "integer", "clip"):
        check(isinstance(spec.get(flag, False), bool), f"{where}: {flag}", spec.get(flag),
              "must be true or false", "write true or false")  # fmt: skip
    if kind == "numeric":
        numbers = all(isinstance(e, int | float) and not isinstance(e, bool) for e in spec["edges"])
        check(numbers, f"{where}: edges", spec["edges"], "must be numbers", "write numbers without quotes")
    fields = {"decode_as" if key == "decode" else key: value for key, value in spec.items() if key != "type"}
    return build(**{**fields, listed: tuple(spec[listed])})


def _known_keys(where: str, spec: dict[str, Any], known: Sequence[str]) -> None:
    for key in spec:
        check(key in known, where, key, f"must only have the keys {', '.join(known)}", nearest(key, known))


def _check_column(column: Column) -> None:
    where = f"column {column.name!r}"
    check(column.size >= 2, where, column.size, "must have at least two values",
          "drop the column, or list every value that it could take")  # fmt: skip
    check(column.dtype in ("", *DTYPES), f"{where}: dtype", column.dtype, f"must be one of {DTYPES}",
          nearest(str(column.dtype), DTYPES))  # fmt: skip


def _common(column: Column) -> dict[str, Any]:
    out: dict[str, Any] = {}
    if column.missing:
        out["missing"] = True
    if column.other is not None:
        out["other"] = column.other
    if column.dtype:
        out["dtype"] = column.dtype
    return out


def _is_missing(array: pa.Array, texts: Sequence[str]) -> np.ndarray:
    """Nulls, NaN, and the given texts of a text column."""
    import pyarrow as pa
    import pyarrow.compute as pc

    nulls = pc.is_null(array, nan_is_null=True).to_numpy(zero_copy_only=False)
    if texts and pa.types.is_string(array.type):
        nulls = nulls | pc.is_in(array, value_set=pa.array(texts)).to_numpy(zero_copy_only=False)
    return np.asarray(nulls)


def _place(column: Column, array: pa.Array, codes: np.ndarray, nulls: np.ndarray, stray: np.ndarray) -> np.ndarray:
    """Codes with the strays sent to ``other`` and the nulls to missing, or a refusal."""
    where = f"column {column.name!r}"
    if stray.any():
        if column.other is None:
            value = array[int(np.flatnonzero(stray)[0])].as_py()
            way = "clip = true" if isinstance(column, Numeric) else 'other = "..."'
            rule, hint = (
                "must only hold values of the schema",
                f"correct the table, list the value, or set {way}",
            )
            raise InputError(where, value, rule, hint)
        codes = np.where(stray, column.size - 1 - column.missing, codes)
    if nulls.any():
        check(column.missing, where, Shown("a missing value"), "must not have missing values",
              "set missing = true in the schema, or fill them")  # fmt: skip
        codes = np.where(nulls, column.size - 1, codes)
    return codes.astype(code_dtype(column.size))


def _arrow_type(dtype: str) -> Any:
    import pyarrow as pa

    return {"bool": pa.bool_(), "string": pa.string()}.get(dtype) or dtype


def holds_bins(dtype: str, edges: Sequence[float], integer: bool) -> bool:
    """Whether numbers of a type can fall into every bin, and into no other for their rounding."""
    if dtype not in NUMBERS:
        return False
    kind = np.dtype(dtype)
    if kind.kind != "f":
        limits = np.iinfo(kind)
        return integer and int(limits.min) <= edges[0] and edges[-1] <= int(limits.max)
    digits = np.finfo(kind)
    if max(map(abs, edges)) > (2.0 ** (digits.nmant + 1) if integer else float(digits.max)):
        return False
    return kind.itemsize == 8 or bool(np.all(np.diff(_float32_above(np.asarray(edges, float))) > 0))


def _float32_above(x: np.ndarray) -> np.ndarray:
    """The smallest 32-bit numbers that are not below ``x``."""
    near = x.astype(np.float32)
    return np.where(near < x, np.nextafter(near, np.float32(np.inf)), near)


def _is_number(value: pa.Scalar) -> bool:
    import pyarrow as pa

    try:
        value.cast(pa.float64())
    except pa.ArrowInvalid:
        return False
    return True


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):  # a TOML basic string is a JSON string, save for the DEL character
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return repr(value)
