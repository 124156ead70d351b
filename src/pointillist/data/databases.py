"""Tables and queries of a DuckDB database file, read in pieces.

The file is opened for reading only, and a query has access to nothing else: not to other files, which could change
between two readings, not to the network and not to further extensions of DuckDB.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pointillist.checks import check
from pointillist.data.files import path_of
from pointillist.data.messages import fragment
from pointillist.data.streams import Batches, File, relation_batches
from pointillist.errors import InputError, Shown

__all__ = ["DATABASES", "is_database", "query_of"]

DATABASES = (".duckdb", ".ddb", ".db")
"""The endings of database files."""
CLOSED = {
    "enable_external_access": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
}
"""The settings under which a database is opened."""
PART = r"""(?:[^\W\d]\w*|"[^"]+")"""
NAME = re.compile(rf"{PART}(?:\.{PART})*")


def is_database(data: str) -> bool:
    """Return whether a name is that of a database file, which need not exist.

    Args:
        data: What was given.
    """
    return data.endswith(DATABASES) and not Path(data).is_dir()


def query_of(data: str | Path, sql: str | None, name: str = "data") -> Batches:
    """Return the rows of a table or of a query of a database file.

    Args:
        data: The file.
        sql: The name of a table, or one SELECT statement.
        name: The name of the parameter in error messages.
    """
    path = path_of(name, data)
    check(path.is_file(), name, str(path), "must be an existing file", "check the path")
    file = File.of(path, {})
    check(sql is not None, "sql", Shown("none"), "must be given for a database file", "name a table or write a SELECT")
    query = Query(file, str(sql), name)
    query.check()
    return Batches(query.read)


@dataclass(frozen=True)
class Query:
    """A query of a database file, which is run whenever its rows are read.

    Attributes:
        file: the file.
        sql: the name of a table, or a SELECT statement.
        name: the name of the parameter in error messages.
    """

    file: File
    sql: str
    name: str

    def check(self) -> None:
        """Refuse what is no query of this database. Nothing is run."""
        with self._opened() as (connection, duckdb):
            try:
                kinds = [one.type for one in connection.extract_statements(self._select)]
                good = kinds == [duckdb.StatementType.SELECT]
                rule, hint = (
                    "must be the name of a table or one SELECT statement",
                    "write for example SELECT * FROM people",
                )
                check(good, "sql", fragment(self.sql), rule, hint)
                connection.sql(self._select)
            except duckdb.Error as error:  # no row was read, so that the words are about the query
                rule = f"must be a query of this database ({fragment(Shown(' '.join(str(error).split())))})"
                raise InputError("sql", fragment(self.sql), rule, "correct it") from None

    def read(self) -> Iterator[Any]:
        """Run the query; return its rows in batches."""
        self.file.require_unchanged(self.name)
        with self._opened() as (connection, _):
            yield from relation_batches(connection.sql(self._select))

    @property
    def _select(self) -> str:
        return f"SELECT * FROM {self.sql}" if NAME.fullmatch(self.sql) else self.sql

    @contextmanager
    def _opened(self) -> Iterator[tuple[Any, Any]]:
        try:
            import duckdb
        except ImportError:
            rule, hint = (
                "must be read with the package duckdb, which is not installed",
                "pip install pointillist[duckdb]",
            )
            raise InputError(self.name, str(self.file.path), rule, hint) from None
        try:
            connection = duckdb.connect(str(self.file.path), read_only=True, config=dict(CLOSED))
        except duckdb.Error:
            rule = "must be a DuckDB database that can be opened for reading"
            raise InputError(self.name, str(self.file.path), rule, "check the file, or close it elsewhere") from None
        with connection:
            yield connection, duckdb
