"""Draft a schema from types and declarations alone: no value of the data is read.

Sources are the types of a pandas, polars or Arrow table or of a Parquet file, the labels of a file of SPSS, Stata or
SAS, a code book in CSV, a Table Schema of Frictionless, and the metadata of SDV. What none of them says is a TODO.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pointillist.checks import check
from pointillist.data.columns import COLUMN_KINDS, EXTRA_KINDS
from pointillist.data.columns.base import MISSING_NUMBERS
from pointillist.data.columns.types import dense, dtypes_of
from pointillist.data.dialects import TEXT_FILES, Dialect
from pointillist.data.draft import Draft
from pointillist.data.files import path_of
from pointillist.data.messages import fragment, reason
from pointillist.data.schema import check_different
from pointillist.data.statistics_files import STATISTICS_FILES, read_codebook
from pointillist.data.table import read_file
from pointillist.errors import InputError

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Hint", "draft_from_types", "hints_of"]

MOST_BYTES = 20_000_000
"""The largest code book."""
WORDS = {
    "categorical": "text", "category": "text", "string": "text", "str": "text", "text": "text", "char": "text",
    "object": "text", "factor": "text", "enum": "text", "nominal": "text", "ordinal": "text",
    "integer": "integer", "int": "integer", "whole": "integer", "count": "integer", "year": "integer",
    "number": "number", "numeric": "number", "numerical": "number", "float": "number", "double": "number",
    "real": "number", "decimal": "number", "scale": "number",
    "boolean": "boolean", "bool": "boolean", "logical": "boolean",
    "date": "date", "time": "time", "datetime": "timestamp", "timestamp": "timestamp", "duration": "duration",
    "id": "id", "identifier": "id", "uuid": "id", "unknown": "", "any": "",
    "email": "personal", "phone": "personal", "telephone": "personal", "address": "personal", "name": "personal",
    "free text": "personal", "freetext": "personal", "comment": "personal", "uri": "personal", "url": "personal",
}  # fmt: skip
"""The words for types in code books, and the kind of column that each means."""
BOOK = ("name", "type", "values", "min", "max", "missing", "description", "unit")
"""The columns of a code book. A table with other ones is data, whose names would become those of columns."""
PERSONAL = "free text or what identifies people or things, as its type says"


@dataclass(frozen=True)
class Hint:
    """What is known about a column without its cells.

    Args:
        name: The name of the column.
        kind: "text", "integer", "number", "boolean", "date", "time", "timestamp", "duration", "id", "personal" for
            what is left out, or empty.
        values: The values that it can have, in order; empty if they are not known.
        ordered: Whether neighbouring values are similar.
        low: The smallest number or date; None if it is not known.
        high: The largest one.
        missing: Whether values may be missing. Unless something else is said, they may.
        description: What the column means.
        dtype: The type of the decoded column.
        zone: The time zone of timestamps.
        format: How dates and times are written.
        spellings: What stands for missing.
        unit: The unit of its numbers.
        word: The word for its type, where that is not known.
    """

    name: str
    kind: str
    values: tuple[Any, ...] = ()
    ordered: bool = False
    low: Any = None
    high: Any = None
    missing: bool = True
    description: str = ""
    dtype: str = ""
    zone: str = ""
    format: str = ""
    spellings: tuple[str, ...] = ()
    unit: str = ""
    word: str = ""


def draft_from_types(source: Any, ignore: Sequence[str] = (), dialect: Dialect | None = None) -> Draft:
    """Draft a schema from types and declarations alone. What they do not say is marked TODO in the file.

    Args:
        source: A pandas, polars or Arrow table, whose cells are not read, or a path: of a Parquet file or a file of a
            statistics package, whose cells are not read; of a code book in CSV with the columns name, type, and any of
            values, min, max, missing, unit and description; of a Table Schema or a data package of Frictionless
            (.json); or of the metadata of SDV (.json).
        ignore: Columns to leave out.
        dialect: How a code book in CSV is written; what it leaves out is recognised.
    """
    hints = _of_file(path_of("data", source), dialect) if isinstance(source, str | Path) else hints_of(source)
    check_different([hint.name for hint in hints])
    names = [hint.name for hint in hints]
    unknown = [name for name in ignore if name not in names]
    check(not unknown, "ignore", fragment(unknown), "must be columns of the table", "check the names")
    tables, notes, unfinished = [], {}, []
    left_out = {hint.name: PERSONAL for hint in hints if hint.kind == "personal"} | dict.fromkeys(ignore, "as asked")
    for hint in hints:
        if hint.name in left_out:
            continue
        table, note, complete = _table(hint)
        tables.append(table)
        notes[hint.name] = note
        if not complete:
            unfinished.append(hint.name)
    return Draft(tuple(tables), notes, left_out, True, tuple(unfinished))


def _of_file(path: Path, dialect: Dialect | None) -> list[Hint]:
    check(path.is_file(), "data", str(path), "must be an existing file", "check the path")
    if path.name.endswith(STATISTICS_FILES):
        return _of_codebook(path)
    if path.name.endswith(".parquet"):
        return _of_parquet(path)
    size, rule = path.stat().st_size, f"must be a file of at most {MOST_BYTES:,} bytes to be read for types"
    check(size <= MOST_BYTES, "data", str(path), rule, "give a code book, not the table")
    if path.name.endswith(".json"):
        return _of_json(path)
    rule = "must be a file with types: a code book (.csv, .json), .parquet, or a file of SPSS, Stata or SAS"
    check(path.name.endswith(TEXT_FILES), "data", str(path), rule, "leave --from-types out")
    return _of_codes(path, read_file(path, dialect=dialect))


# --- types of tables


def hints_of(data: Any) -> list[Hint]:
    """Return what the types of a table say about its columns. No cell is read.

    Args:
        data: A pandas, polars or Arrow table.
    """
    import pyarrow as pa

    module = type(data).__module__.partition(".")[0]
    dtypes = dtypes_of(data)
    if module == "pandas":
        arrow = pa.Schema.from_pandas(dense(data.iloc[:0]), preserve_index=False)
        kinds = {str(name): kind for name, kind in zip(data.columns, data.dtypes, strict=True)}
        lists = {n: (list(k.categories), bool(k.ordered)) for n, k in kinds.items() if hasattr(k, "categories")}
    elif module == "polars":
        arrow = data.clear().to_arrow().schema
        enums = {n: k for n, k in data.schema.items() if hasattr(k, "categories") and str(k).startswith("Enum")}
        lists = {name: (list(kind.categories), True) for name, kind in enums.items()}
    else:
        arrow, lists = data.schema, {}
    return [_of_field(field, dtypes.get(field.name, ""), lists.get(field.name)) for field in arrow]


def _of_parquet(path: Path) -> list[Hint]:
    import pyarrow as pa
    from pyarrow import parquet

    try:
        schema = parquet.read_schema(path)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise InputError("data", str(path), f"must be a readable table ({reason(error)})", "check the file") from None
    dtypes = dtypes_of(schema.empty_table())
    return [_of_field(field, dtypes.get(field.name, ""), None) for field in schema]


def _of_field(field: pa.Field, dtype: str, declared: tuple[list[Any], bool] | None) -> Hint:
    import pyarrow as pa

    tests = (
        ("boolean", pa.types.is_boolean), ("integer", pa.types.is_integer), ("number", pa.types.is_floating),
        ("number", pa.types.is_decimal), ("date", pa.types.is_date), ("time", pa.types.is_time),
        ("timestamp", pa.types.is_timestamp), ("duration", pa.types.is_duration), ("text", pa.types.is_dictionary),
        ("text", pa.types.is_string), ("text", pa.types.is_large_string), ("text", pa.types.is_string_view),
    )  # fmt: skip
    kind = next((name for name, test in tests if test(field.type)), "")
    values, ordered = declared or ([], False)
    about = {**(field.metadata or {})}.get(b"description", b"").decode(errors="replace")
    zone = (field.type.tz or "") if kind == "timestamp" else ""
    words = {"description": about, "zone": zone, "dtype": dtype, "missing": field.nullable}
    return Hint(field.name, kind, tuple(values), ordered, **words)


def _of_codebook(path: Path) -> list[Hint]:
    try:
        book = read_codebook(path)
    except (OSError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError("data", str(path), f"must be a readable table ({reason(error)})", "check the file") from None
    kinds = {"string": "text"}
    return [
        Hint(name, kinds.get(kind, kind), book.values_of(name), description=book.descriptions.get(name, ""))
        for name, kind in book.kinds.items()
    ]


# --- code books


def _of_codes(path: Path, table: pa.Table) -> list[Hint]:
    names = [name.strip().lower() for name in table.column_names]
    there = {"name", "type"} <= set(names) <= set(BOOK) and len(set(names)) == len(names)
    rule = f"must be a code book with the columns name and type, and no others than {', '.join(BOOK[2:])}"
    rule += " (the types of a table in CSV are not known)"
    check(there, "data", str(path), rule, "write one, or leave --from-types out")
    rows = [row for row in table.rename_columns(names).to_pylist() if row["name"]]
    known = sum(_word(row) in WORDS for row in rows)
    rule = "must be a code book, whose types are words such as categorical, integer or date (most of them are not)"
    check(2 * known >= len(rows) > 0, "data", str(path), rule, "correct them, or leave --from-types out")
    return [_of_code(row) for row in rows]


def _word(row: Mapping[str, str]) -> str:
    return (row["type"] or "").strip().lower()


def _of_code(row: Mapping[str, str]) -> Hint:
    word = _word(row)
    values = tuple(one.strip() for one in re.split(r"[;|]", row.get("values") or "") if one.strip())
    no = (row.get("missing") or "").strip().lower() in ("no", "false", "0", "never")
    return Hint(
        row["name"],
        WORDS.get(word, "") or ("text" if values else ""),
        values,
        word == "ordinal",
        (row.get("min") or "").strip() or None,
        (row.get("max") or "").strip() or None,
        not no,
        (row.get("description") or "").strip(),
        unit=(row.get("unit") or "").strip(),
        word="" if word in WORDS else word,
    )


def _of_json(path: Path) -> list[Hint]:
    try:
        spec = json.loads(path.read_text(encoding="utf-8-sig"))
    except (ValueError, OSError, RecursionError) as error:
        raise InputError("data", str(path), f"must be valid JSON ({reason(error)})", "check the file") from None
    try:
        if "fields" in spec:
            return _of_frictionless(spec)
        if "resources" in spec:
            return _of_frictionless(spec["resources"][0]["schema"])
        tables = spec.get("tables", {"": spec} if "columns" in spec else {})
        rule, hint = "must describe one table", "keep the metadata of one table"
        check(len(tables) <= 1, "data", str(path), rule, hint)
        if tables:
            return _of_sdv(next(iter(tables.values())))
    except (KeyError, TypeError, IndexError, AttributeError):
        pass  # none of the known forms: refused below
    rule = "must be a Table Schema of Frictionless (fields) or metadata of SDV (columns)"
    raise InputError("data", str(path), rule, "check the file")


def _of_frictionless(spec: Mapping[str, Any]) -> list[Hint]:
    spellings = tuple(one for one in spec.get("missingValues", [""]) if one)
    hints = []
    for field in spec["fields"]:
        rules = field.get("constraints", {})
        kind = WORDS.get(field.get("type", "any"), "")
        values = tuple(rules.get("enum", field.get("categories", ())))
        low, high = rules.get("minimum"), rules.get("maximum")
        pattern = field.get("format", "")
        kind = "personal" if pattern in ("email", "uri") else "id" if pattern == "uuid" else kind
        keys = spec.get("primaryKey", [])
        is_key = field["name"] in ([keys] if isinstance(keys, str) else keys) or rules.get("unique", False)
        words = {
            "missing": not rules.get("required", False),
            "description": field.get("description", "") or field.get("title", ""),
            "format": pattern if "%" in pattern else "",
            "spellings": spellings,
        }
        hints.append(Hint(field["name"], "id" if is_key else kind, values, False, low, high, **words))
    return hints


def _of_sdv(spec: Mapping[str, Any]) -> list[Hint]:
    hints = []
    for name, about in spec["columns"].items():
        word = about.get("sdtype", "unknown")
        kind = WORDS.get(word, "")
        if word == "numerical" and about.get("computer_representation", "").startswith("Int"):
            kind = "integer"
        if about.get("pii", word not in WORDS):  # the sdtypes that are no words for types are those of people
            kind = "personal"
        if name == spec.get("primary_key") or word == "id":
            kind = "id"
        pattern = about.get("datetime_format", "") if kind == "timestamp" else ""
        if pattern and not re.search("%[HIMSpTfXc]", pattern):
            kind = "date"
        hints.append(Hint(name, kind, format=pattern))
    return hints


# --- tables of a schema file


def _table(hint: Hint) -> tuple[dict[str, Any], str, bool]:
    """Return the ``[[column]]`` table of a hint, its comment, and whether it is complete."""
    table, notes = _keys(hint)
    if hint.missing and table["type"] != "id":
        table["missing"] = True
        notes.append("Assumed that values may be missing. Check it.")
        if hint.spellings:
            table["missing_values"] = [one for one in hint.spellings if one not in MISSING_NUMBERS]
            if not table["missing_values"]:
                del table["missing_values"]
    if hint.dtype:
        table["dtype"] = hint.dtype
    if (problem := _problem(table)) is not None and "dtype" in table:
        without = {key: value for key, value in table.items() if key != "dtype"}
        table = without if _problem(without) is None else table
        problem = _problem(table)
    if problem is not None and not any(note.startswith("TODO") for note in notes):
        notes.append(f"TODO: {problem}")
    if hint.description:
        table["description"] = hint.description
    if hint.unit and table["type"] in ("categorical", "numeric"):
        table["unit"] = hint.unit
    return table, "\n".join(notes), problem is None


def _problem(table: dict[str, Any]) -> str | None:
    kinds: dict[str, Any] = {**COLUMN_KINDS, **EXTRA_KINDS}
    try:
        kinds[table["type"]].from_dict(dict(table))
    except InputError as error:
        return str(error)
    return None


def _keys(hint: Hint) -> tuple[dict[str, Any], list[str]]:
    """Return the keys that the kind of a column has, and comments on them."""
    name = hint.name
    if hint.values:
        known = "The values that are declared. Check that the list is complete."
        table = {"name": name, "type": "categorical", "values": _labels(hint)}
        return table | ({"ordered": True} if hint.ordered else {}), [known]
    if hint.kind == "boolean":
        return {"name": name, "type": "categorical", "values": [False, True]}, ["True or false."]
    if hint.kind == "id":
        return {"name": name, "type": "id", "kind": "sequence"}, ["An identifier: never read, and made again."]
    if hint.kind in ("integer", "number"):
        bounds, notes = _bounds(
            hint, _number, "bounds = [LOW, HIGH], the smallest and the largest number that can occur"
        )
        table = {"name": name, "type": "numeric", "bounds": bounds}
        return table | ({"integer": True} if hint.kind == "integer" else {}), notes
    if hint.kind == "time":
        return {"name": name, "type": "time"} | ({"format": hint.format} if hint.format else {}), ["Times of the day."]
    if hint.kind in ("date", "timestamp", "duration"):
        bounds, notes = _bounds(hint, str, 'bounds = [FIRST, LAST], such as ["2020-01-01", "2029-12-31"]')
        more = {"zone": hint.zone, "format": hint.format}
        return {"name": name, "type": hint.kind, "bounds": bounds} | {k: v for k, v in more.items() if v}, notes
    text = "TODO: values = [...], every value that can occur; or name the column under ignore if it is free text."
    unknown = [f"The type {fragment(hint.word)} is not known."] if hint.word else []
    return {"name": name, "type": "categorical", "values": []}, [*unknown, text]


def _bounds(hint: Hint, read: Any, todo: str) -> tuple[list[Any], list[str]]:
    if hint.low is None or hint.high is None:
        return [], [f"TODO: {todo}."]
    try:
        return [read(hint.low), read(hint.high)], ["The bounds that are declared."]
    except ValueError:
        return [], [f"TODO: {todo}. What is declared is not two of these."]


def _number(value: Any) -> int | float:
    number = float(value)
    return int(number) if number.is_integer() else number


def _labels(hint: Hint) -> list[Any]:
    """Return values as texts, or as whole numbers or booleans if all of them are and the column holds these."""
    values = list(hint.values)
    if hint.kind == "boolean" and {str(value).lower() for value in values} == {"false", "true"}:
        return [False, True]
    if all(isinstance(value, bool | int | str) for value in values) and len({type(value) for value in values}) == 1:
        whole = hint.kind in ("integer", "number") and all(re.fullmatch(r"-?(0|[1-9]\d*)", str(v)) for v in values)
        return [int(value) for value in values] if whole else values
    whole = all(isinstance(value, int | float) and float(value).is_integer() for value in values)
    return [int(value) for value in values] if whole else [str(value) for value in values]
