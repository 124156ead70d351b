"""The schema: the values that each column can have. It is public and written before anyone looks at the data.

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
    decode = "shape"              # or "uniform", "midpoint"

    [[column]]
    name = "income"
    type = "numeric"
    bounds = [0, 1000000]         # a fine grid, whose cells a run merges
    step = 0.01
    points = [0]                  # a value of its own
    missing = true
    missing_values = ["?", -9]

docs/schema.md describes all kinds and keys; :mod:`pointillist.data.columns` has the kinds of columns, and
:mod:`pointillist.data.rules` rules for the rows.
"""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from pointillist.checks import check
from pointillist.data.columns import (
    EXTRA_KINDS,
    Categorical,
    Column,
    Constant,
    Discovered,
    Extra,
    Grid,
    Identifier,
    Merged,
    Numeric,
    Temporal,
    code_dtype,
    column_of,
    listed_labels,
)
from pointillist.data.columns.base import check_flag, check_keys, check_text
from pointillist.data.domain import Domain
from pointillist.data.files import EVERYONE, path_of, private_mode, write_text
from pointillist.data.mappings import with_hierarchies
from pointillist.data.messages import fragment, reason
from pointillist.data.obeying import Group, groups_of
from pointillist.data.paid import Paid
from pointillist.data.rules import Rule, Rules, with_mappings
from pointillist.errors import InputError, Shown, nearest

__all__ = [
    "About",
    "Categorical",
    "Column",
    "Constant",
    "Discovered",
    "Grid",
    "Identifier",
    "Numeric",
    "Schema",
    "Temporal",
    "code_dtype",
]

MOST_BYTES = 100_000_000
"""The largest schema file."""

DRAFT_NOTICE = """\
# DRAFT, made from data: NOT public knowledge until a person has reviewed it.
# Each value and bin edge below was read from the file. Replace everything that is not public by what is known
# without looking at the data (code books, legal limits), then set reviewed = true."""

PAID_NOTICE = """\
# Made from private data under differential privacy: column names and types are those of the file, and everything else
# follows from noisy counts that were paid for. It shows nothing beyond that, so that no review is needed for privacy.
# [privacy] says what it cost. A release that is made with it counts that cost, too: leave the table as it is."""

MADE_TEXT = 1000
"""The most bytes of a text cell that is made from a pattern: a column that lists no values, or a mark for missing."""
OWN_UNIT = ("date", "time", "timestamp", "duration")
"""Kinds of columns that have a key ``unit`` of their own."""


@dataclass(frozen=True)
class About:
    """What people wrote about a column. It changes nothing.

    Args:
        description: What the column means.
        unit: The unit of its numbers, such as "EUR". Dates and times have a key ``unit`` of their own instead.
    """

    description: str = ""
    unit: str = ""

    def __post_init__(self) -> None:
        for key, value in self.to_dict().items():
            check(isinstance(value, str), f"column: {key}", fragment(value), "must be a text", f'write {key} = "..."')
            check_text(f"column: {key}", value)

    def to_dict(self) -> dict[str, str]:
        """Return the keys of a ``[[column]]`` table that are set."""
        return {key: value for key in ("description", "unit") if (value := getattr(self, key)) != ""}


@dataclass(frozen=True)
class Schema:
    """The columns of a table.

    Args:
        columns: The columns of the domain, in order.
        reviewed: Whether a person has checked that the schema is public knowledge. A draft is not reviewed.
        ignore: Columns of the data that are left out, such as identifiers and free text.
        extras: Columns that are no part of the domain, each with its position in the decoded table: pairs such as
            ``(0, Identifier("id"))``. :meth:`of` takes all columns in one list instead.
        about: Descriptions and units, by the name of the column.
        notes: Remarks for the reader of the file, by the name of the column. They are written as comments above the
            column and lost when the file is read.
        rules: What every synthetic row must obey (:mod:`pointillist.data.rules`).
        paid: What it cost, if it was made from private data by charged measurements.
    """

    columns: tuple[Column, ...]
    reviewed: bool = True
    ignore: tuple[str, ...] = ()
    extras: tuple[tuple[int, Extra], ...] = ()
    about: Mapping[str, About] = field(default_factory=dict, hash=False)
    notes: Mapping[str, str] = field(default_factory=dict, compare=False)
    rules: tuple[Rule, ...] = ()
    paid: Paid | None = None

    @classmethod
    def of(
        cls,
        columns: Sequence[Column | Extra],
        reviewed: bool = True,
        ignore: Sequence[str] = (),
        about: Mapping[str, About] | None = None,
        notes: Mapping[str, str] | None = None,
        rules: Sequence[Rule] = (),
        paid: Paid | None = None,
    ) -> Schema:
        """Create a schema from all columns of a table in order, constants and identifiers among them.

        Args:
            columns: The columns, of any kind.
            reviewed: Whether a person has checked that the schema is public knowledge.
            ignore: Columns of the data that are left out.
            about: Descriptions and units, by the name of the column.
            notes: Remarks that are written as comments above the columns, by the name of the column.
            rules: What every synthetic row must obey.
            paid: What it cost, if it was made from private data by charged measurements.
        """
        kinds = tuple(EXTRA_KINDS.values())
        extras = tuple((n, column) for n, column in enumerate(columns) if isinstance(column, kinds))
        kept: Any = tuple(column for column in columns if not isinstance(column, kinds))
        return cls(kept, reviewed, ignore, extras, about or {}, notes or {}, rules, paid)  # type: ignore[arg-type]

    def __post_init__(self) -> None:
        rule, hint = "must be a list of columns", "give Categorical and Numeric columns"
        check(isinstance(self.columns, list | tuple), "schema: columns", fragment(self.columns), rule, hint)
        others = [column for column in self.columns if not hasattr(column, "encode") or not hasattr(column, "size")]
        check(not others, "schema: columns", fragment(others), rule, hint)
        object.__setattr__(self, "columns", tuple(self.columns))
        check_flag("schema: reviewed", self.reviewed)
        check(len(self.columns) > 0, "schema", Shown("no column"), "must have at least one column", "add columns")
        self._check_extras()
        _ = self.domain  # refuses repeated names
        self._check_ignore()
        good = all(isinstance(words, About) for words in self.about.values())
        check(good, "schema: about", fragment(self.about), "must hold an About for each name", "write About(...)")
        unknown = sorted({*self.about, *self.notes} - set(self.names))
        rule, hint = "must be about columns of the schema", "remove the others"
        check(not unknown, "schema: about and notes", fragment(unknown), rule, hint)
        self._check_rules()

    def _check_rules(self) -> None:
        """Refuse rules about other columns, rules that compare what cannot be compared, and rules that contradict each
        other."""
        good = isinstance(self.rules, list | tuple) and all(isinstance(rule, Rule) for rule in self.rules)
        check(good, "schema: rules", fragment(self.rules), "must be a list of rules", "give Rule objects")
        _check_known(self.rules, self.columns)
        object.__setattr__(self, "rules", Rules(self.rules, self.columns))
        for rule in self.rules:
            _check_columns(rule, self.domain.names)
        for group in self.rule_groups:
            group.check()
            texts = Shown("; ".join(rule.text for rule in group.rules)[:200])
            rule_text, hint = "must allow at least one row together (none was found)", "remove one of them"
            check(group.allowed() is not None, "rules", texts, rule_text, hint)

    @cached_property
    def rule_groups(self) -> tuple[Group, ...]:
        """The rules in groups that share no column, with what is needed to obey them."""
        return groups_of(self.columns, self.rules)

    def _check_ignore(self) -> None:
        names = isinstance(self.ignore, list | tuple) and all(isinstance(name, str) for name in self.ignore)
        check(names, "schema: ignore", fragment(self.ignore), "must be a list of names", 'write ["name"]')
        object.__setattr__(self, "ignore", tuple(self.ignore))
        for name in self.ignore:
            check_text("schema: ignore", name)
        both = sorted(set(self.ignore) & set(self.names))
        rule, hint = "must not name columns of the schema", "remove one of the two"
        check(not both, "schema: ignore", fragment(both), rule, hint)

    def _check_extras(self) -> None:
        rule, hint = "must be pairs of a position and a Constant or an Identifier", "write (0, Identifier(...))"
        pairs = isinstance(self.extras, list | tuple) and all(
            isinstance(pair, list | tuple) and len(pair) == 2 and isinstance(pair[0], int) and hasattr(pair[1], "make")
            for pair in self.extras
        )
        check(pairs, "schema: extras", fragment(self.extras), rule, hint)
        object.__setattr__(
            self, "extras", tuple(sorted((tuple(pair) for pair in self.extras), key=lambda pair: pair[0]))
        )
        places, most = [place for place, _ in self.extras], len(self.columns) + len(self.extras)
        good = len(set(places)) == len(places) and all(0 <= place < most for place in places)
        rule = f"must have different positions in 0 .. {most - 1}, among all columns"
        check(good, "schema: extras", fragment(places), rule, "use Schema.of")
        check_different(self.names)

    @cached_property
    def everything(self) -> tuple[Column | Extra, ...]:
        """All columns of the decoded table in order, those that are no part of the domain included."""
        out: list[Column | Extra] = list(self.columns)
        for place, extra in self.extras:
            out.insert(place, extra)
        return tuple(out)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all columns of the decoded table, in order."""
        return tuple(column.name for column in self.everything)

    @cached_property
    def widths(self) -> tuple[int, ...]:
        """The most bytes of text in a cell of each column of the decoded table."""
        return tuple(_width(column) for column in self.everything)

    @cached_property
    def domain(self) -> Domain:
        """The names of the columns and their numbers of codes."""
        return Domain(tuple(c.name for c in self.columns), tuple(c.size for c in self.columns))

    @property
    def places(self) -> tuple[tuple[float, ...], ...]:
        """For every column that a run has merged the places of its groups, the first ones, that lie on a line; none for
        other columns. Such values are numbers, whose means the places are, or dates or ordered lists, whose groups are
        1 apart; bins of a schema stand for themselves.
        """
        return tuple(column.places if isinstance(column, Merged) else () for column in self.columns)

    @property
    def lines(self) -> tuple[int, ...]:
        """The number of :attr:`places` of every column."""
        return tuple(map(len, self.places))

    def project(self, names: Sequence[str]) -> Schema:
        """Return the schema of the columns ``names``, in that order. Constants and identifiers are kept if named."""
        extras = {extra.name: extra for _, extra in self.extras}
        columns = [extras[name] if name in extras else self.columns[self.domain.index(name)] for name in names]
        about = {name: words for name, words in self.about.items() if name in names}
        notes = {name: note for name, note in self.notes.items() if name in names}
        rules = tuple(rule for rule in self.rules if set(rule.columns) <= set(names))
        return Schema.of(columns, self.reviewed, self.ignore, about, notes, rules, self.paid)

    def to_dict(self) -> dict[str, Any]:
        """Return the content of a schema file, which :meth:`from_dict` reads."""
        out: dict[str, Any] = {"format": 1, "reviewed": self.reviewed}
        if self.ignore:
            out["ignore"] = list(self.ignore)
        if self.paid is not None:
            out["privacy"] = self.paid.to_dict()
        out["column"] = [column.to_dict() | self._words(column.name) for column in self.everything]
        return out | ({"rule": [rule.to_dict() for rule in self.rules]} if self.rules else {})

    def _words(self, name: str) -> dict[str, str]:
        return self.about[name].to_dict() if name in self.about else {}

    @classmethod
    def from_dict(cls, spec: dict[str, Any]) -> Schema:
        """Create a schema from the content of a schema file. A schema that does not say so is not reviewed."""
        check(isinstance(spec, dict), "schema", Shown(type(spec).__name__), "must be a table of entries", "write TOML")
        written = spec.get("format")
        check(
            type(written) is int and written == 1, "schema: format", fragment(written), "must be 1", "write format = 1"
        )
        check_keys("schema", spec, ("format", "reviewed", "ignore", "privacy", "column", "rule"))
        listed, rule = isinstance(spec.get("column"), list), "must have at least one column"
        check(listed, "schema", Shown("no [[column]]"), rule, "add [[column]] tables")
        columns = [_column(column) for column in spec["column"]]
        about = {column.name: words for column, words in columns if words != About()}
        rules = spec.get("rule", [])
        check(isinstance(rules, list), "schema: rule", fragment(rules), "must be a list of tables", "write [[rule]]")
        made = tuple(Rule.from_dict(rule) for rule in rules)
        kinds = [column for column, _ in columns]
        paid = Paid.from_dict(spec["privacy"]) if "privacy" in spec else None
        return cls.of(kinds, spec.get("reviewed", False), spec.get("ignore", []), about, rules=made, paid=paid)

    def to_toml(self) -> str:
        """Return the schema as TOML, which :meth:`load` reads."""
        notice = "" if self.reviewed else DRAFT_NOTICE
        head = head_of(self.reviewed, self.ignore, notice if self.paid is None else PAID_NOTICE, self.paid)
        spec = self.to_dict()
        return toml_of(spec["column"], self.notes, head, spec.get("rule", ()))

    def save(self, path: str | Path, data: str | Path | None = None) -> None:
        """Write the schema to a TOML file, all of it or nothing.

        A draft holds values of the data, so whoever may not read the data may not read it: it gets the mode of the
        data file, or is readable by its owner alone if no data file is named. The umask holds for all schemas.

        Args:
            path: Where to. A file that is there already is replaced.
            data: The file that a draft was made from.
        """
        like = None if data is None else path_of("data", data)
        there = like is None or like.is_file()
        check(there, "data", str(like), "must be an existing file", "give the file that the draft was made from")
        write_text(path_of("path", path), self.to_toml(), EVERYONE if self.reviewed else private_mode(like))

    @classmethod
    def load(cls, path: str | Path) -> Schema:
        """Read a schema from a TOML file."""
        return cls.from_dict(read_spec(path))

    def require_reviewed(self, name: str) -> None:
        """Refuse a draft: values read from private data are not public knowledge. ``name`` says which schema it is."""
        rule = "must be reviewed by a person before use"
        hint = "check that every value and bin edge in it is public knowledge, then set reviewed = true"
        check(self.reviewed, f"schema {name}", Shown("reviewed = false"), rule, hint)


def read_spec(path: str | Path) -> Any:
    """Return the content of a schema file, which :meth:`Schema.from_dict` reads.

    Args:
        path: The file.
    """
    path = path_of("schema", path)
    spec = read_toml("schema", path, "draft one with `pointillist schema DATA`")
    if "column" in spec:
        spec["column"] = with_hierarchies(spec["column"], path.parent)
    if "rule" in spec:
        spec["rule"] = with_mappings(spec["rule"], path.parent)
    return spec


def read_toml(parameter: str, path: str | Path, hint: str) -> dict[str, Any]:
    """Return the content of a TOML file.

    Args:
        parameter: What the file is, for messages.
        path: The file.
        hint: What to do if there is no such file.
    """
    path = path_of(parameter, path)
    check(os.path.isfile(path), parameter, str(path), "must be an existing file", hint)
    size, rule = path.stat().st_size, f"must be a file of at most {MOST_BYTES:,} bytes"
    check(size <= MOST_BYTES, parameter, str(path), rule, f"give the {parameter}, not the table")
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (ValueError, OSError, RecursionError, MemoryError) as error:
        rule = f"must be valid TOML ({_problem(error)})"
        raise InputError(parameter, str(path), rule, "correct the file") from None


def problems_of(spec: Any) -> list[str]:
    """Return everything that is wrong with the content of a schema file, one sentence each.

    Args:
        spec: The content.
    """
    found: list[str] = []
    columns = spec.get("column") if isinstance(spec, dict) else None
    columns = columns if isinstance(columns, list) else []
    fine = {"name": "(any)", "type": "categorical", "values": ["a", "b"]}
    attempts: list[Callable[[], Any]] = [lambda one=one: _column(one) for one in columns]  # type: ignore[misc]
    rules = spec.get("rule", []) if isinstance(spec, dict) else []
    if columns:
        attempts.append(
            lambda: Schema.from_dict({**spec, "column": [fine], "rule": [] if isinstance(rules, list) else rules})
        )
    names = [one["name"] for one in columns if isinstance(one, dict) and isinstance(one.get("name"), str)]
    attempts.append(lambda: check_different(names))
    for attempt in attempts:
        try:
            attempt()
        except InputError as error:
            found.append(str(error))
    found += _rule_problems(rules, names, sound_part(spec)) if isinstance(rules, list) else []
    if not found:
        try:
            Schema.from_dict(spec)
        except InputError as error:
            found.append(str(error))
    return found


def _rule_problems(rules: Sequence[Any], names: Sequence[str], part: Schema | None) -> list[str]:
    """Return what is wrong with each rule by itself, as far as its columns are sound."""
    found = []
    extras = set() if part is None else {extra.name for _, extra in part.extras}
    for number, spec in enumerate(rules, start=1):
        try:
            rule = Rule.from_dict(spec)
            _check_columns(rule, [name for name in names if name not in extras])
            if part is not None and set(rule.columns) <= set(part.domain.names):
                Schema(part.columns, rules=(rule,))
        except InputError as error:
            found.append(f"rule {number}: {error}")
    return found


def _check_columns(rule: Rule, names: Sequence[str]) -> None:
    """Refuse a rule about columns that are not among the names."""
    unknown = [name for name in rule.columns if name not in names]
    hint = nearest(unknown[0], names) if unknown else ""
    check(not unknown, "rule", fragment(unknown), "must be about columns of the schema", hint)


def _check_known(rules: Sequence[Rule], columns: Sequence[Column]) -> None:
    """Refuse rules about columns whose values are not known yet."""
    unknown = {column.name for column in columns if isinstance(column, Discovered)}
    named = [name for rule in rules for name in rule.columns if name in unknown]
    rule, hint = "must not be about columns whose values are discovered", "list their values, or remove the rule"
    check(not named, "rule", fragment(named[:3]), rule, hint)


def sound_part(spec: Any) -> Schema | None:
    """Return the schema of those columns of a file that have no problem; the others are left out. None without any.

    Args:
        spec: The content of the file.
    """
    sound: dict[str, Any] = {}
    for one in spec["column"] if isinstance(spec, dict) and isinstance(spec.get("column"), list) else []:
        try:
            column, _ = _column(one)
            sound.setdefault(column.name, column)
        except InputError:
            pass  # problems_of tells what is wrong with it
    ignore = spec.get("ignore", []) if isinstance(spec, dict) else []
    named = [one for one in ignore if isinstance(one, str)] if isinstance(ignore, list) else []
    broken = [one.get("name") for one in spec["column"] if isinstance(one, dict)] if sound else []
    left = {name for name in [*named, *broken] if isinstance(name, str) and name not in sound}
    if not any(hasattr(column, "encode") for column in sound.values()):
        return None
    return Schema.of(list(sound.values()), ignore=sorted(left))


def check_different(names: Sequence[str]) -> None:
    """Refuse names of columns that come twice.

    Args:
        names: The names.
    """
    twice = sorted(name for name, count in Counter(names).items() if count > 1)
    check(not twice, "column names", fragment(twice), "must be different", "rename the repeated columns")


def head_of(reviewed: bool, ignore: Sequence[str], notice: str = "", paid: Paid | None = None) -> str:
    """Return what a schema file has before its columns.

    Args:
        reviewed: Whether a person has checked that the schema is public knowledge.
        ignore: Columns of the data that are left out.
        notice: Lines of comment at the top.
        paid: What it cost, if it was made from private data by charged measurements.
    """
    lines = [*([notice] if notice else []), f"format = 1\nreviewed = {_toml(reviewed)}"]
    if ignore:
        lines.append(f"ignore = {_toml(list(ignore))}  # columns of the file that are left out")
    if paid is not None:
        pairs = (f"{key} = {_toml(value)}" for key, value in paid.to_dict().items() if key != "ledger")
        charges = "".join(f"  {_toml(dict(entry))},\n" for entry in paid.ledger)
        lines.append("\n[privacy]\n" + "\n".join(pairs) + f"\nledger = [\n{charges}]")
    return "\n".join(lines)


def toml_of(
    tables: Sequence[Mapping[str, Any]], notes: Mapping[str, str], head: str, rules: Sequence[Mapping[str, Any]] = ()
) -> str:
    """Return the text of a schema file.

    Args:
        tables: The ``[[column]]`` tables.
        notes: Remarks that are written as comments above the columns, by the name of the column.
        head: What comes before the columns.
        rules: The ``[[rule]]`` tables.
    """
    lines = [head]
    for spec in tables:
        pairs = "\n".join(f"{key} = {_toml(value)}" for key, value in spec.items())
        lines.append(f"\n{comment_of(notes.get(spec['name'], ''))}[[column]]\n{pairs}")
    for spec in rules:
        pairs = "\n".join(f"{key} = {_toml(value)}" for key, value in spec.items())
        lines.append(f"\n[[rule]]\n{pairs}")
    return "\n".join(lines) + "\n"


def _problem(error: BaseException) -> str:
    """Return what is wrong with a TOML file, without its content: the file may be the table by mistake."""
    if isinstance(error, RecursionError):
        return "its lists are nested too deeply"
    if isinstance(error, tomllib.TOMLDecodeError):
        words = re.sub(r"['\"].*['\"]", "...", str(error), flags=re.DOTALL)
        return str(fragment(Shown(words)))
    return "a number is too long" if "integer string" in str(error) else reason(error)


def _width(column: Any) -> int:
    """Return the most bytes of text in a cell of a column."""
    if isinstance(column, Constant | Identifier):
        return column.width
    labels = listed_labels(column)
    made = MADE_TEXT if column.output_dtype == "string" and not labels else 0
    return max([made, *(len(str(label).encode()) for label in labels)])


def _column(spec: Any) -> tuple[Column | Extra, About]:
    kind = spec.get("type") if isinstance(spec, dict) else None
    words = {
        key: spec[key]
        for key in ("description", "unit")
        if kind and key in spec and not (key == "unit" and kind in OWN_UNIT)
    }
    plain = {key: value for key, value in spec.items() if key not in words} if kind else spec
    return column_of(plain, EXTRA_KINDS), About(**words)


def comment_of(note: str) -> str:
    """Return a remark as lines of a comment, in printable characters.

    Args:
        note: The remark, of any number of lines.
    """
    lines = ["".join(letter if letter.isprintable() else " " for letter in line) for line in note.splitlines()]
    return "".join(f"# {line}".rstrip() + "\n" for line in lines)


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):  # a TOML basic string is a JSON string, except for the DEL character
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{_toml(str(key))} = {_toml(entry)}" for key, entry in value.items()) + " }"
    return repr(value)
