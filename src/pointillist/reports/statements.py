"""What the holder of the data says about a release, in a TOML file. Nothing of it is checked, and pages say so."""

from __future__ import annotations

import datetime as dt
import tomllib
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from pointillist.checks import check, path_of
from pointillist.data.messages import fragment, reason
from pointillist.errors import InputError, nearest

__all__ = ["Statements"]

MOST_BYTES = 1 << 20
MOST_LETTERS = 20_000
HINT = "see the page on reports"
HOLDER_TYPES = ("Government", "Industry", "Nonprofit")


@dataclass(frozen=True)
class Statements:
    """The holder's words. An empty text means that the holder says nothing.

    Attributes:
        title: the name of the data product.
        description: what the data are about.
        holder: who publishes them.
        holder_type: Government, Industry or Nonprofit.
        contact: whom to ask.
        url: where the release is published.
        published: the date, as YYYY-MM-DD.
        license: the conditions of use.
        citation: how to cite it.
        purpose: what it is meant to be used for.
        region: the region that the data describe.
        sector: the sector, such as Healthcare or Government.
        collection: how, when and from whom the data were collected, and who saw them on the way.
        bias: known biases of the data and of their collection.
        access: who may use the release, and who may see the real data.
        security: how the real data are kept.
        threats: against whom the release is meant to protect, and who is trusted.
        tuning: what was done with the real data before the run: cleaning, exploring, choosing settings.
        justification: why this budget and this unit were chosen.
        further_releases: other releases of the same data, made or planned.
        authors: who wrote these statements.
    """

    title: str = ""
    description: str = ""
    holder: str = ""
    holder_type: str = ""
    contact: str = ""
    url: str = ""
    published: str = ""
    license: str = ""
    citation: str = ""
    purpose: str = ""
    region: str = ""
    sector: str = ""
    collection: str = ""
    bias: str = ""
    access: str = ""
    security: str = ""
    threats: str = ""
    tuning: str = ""
    justification: str = ""
    further_releases: str = ""
    authors: tuple[str, ...] = ()

    @classmethod
    def load(cls, path: str | Path) -> Statements:
        """Read a TOML file.

        Args:
            path: the file, with any of the attributes as keys.
        """
        path = path_of("about", path)
        check(path.is_file(), "about", str(path), "must be an existing TOML file", "check the path")
        try:
            check(path.stat().st_size <= MOST_BYTES, "about", str(path), "must be a file of 1 MiB at most", HINT)
            spec = tomllib.loads(path.read_text(encoding="utf-8"))
        except (OSError, UnicodeError, tomllib.TOMLDecodeError, RecursionError) as error:
            raise InputError("about", str(path), f"must be a TOML file ({reason(error)})", "correct the file") from None
        return cls.from_dict(spec)

    @classmethod
    def from_dict(cls, spec: dict[str, Any]) -> Statements:
        """The statements behind plain data; refuses unknown keys and anything but texts.

        Args:
            spec: the keys of the file.
        """
        known = [one.name for one in fields(cls)]
        for key in spec:
            if key not in known:
                raise InputError(
                    "about", fragment(key), f"must only have the keys {', '.join(known)}", nearest(key, known)
                )
        found: dict[str, Any] = {key: _text(key, value) for key, value in spec.items() if key != "authors"}
        if "authors" in spec:
            found["authors"] = _authors(spec["authors"])
        kind = found.get("holder_type", "")
        rule = f"must be one of {', '.join(HOLDER_TYPES)}"
        check(kind in ("", *HOLDER_TYPES), "about: holder_type", fragment(kind), rule, nearest(kind, HOLDER_TYPES))
        _check_date(found.get("published", ""))
        return cls(**found)


def _text(key: str, value: Any) -> str:
    if isinstance(value, dt.date) and not isinstance(value, dt.datetime):
        return value.isoformat()
    hint = f'write {key} = "..."'
    check(isinstance(value, str), f"about: {key}", fragment(value), "must be a text", hint)
    rule = f"must have at most {MOST_LETTERS:,} letters"
    check(len(value) <= MOST_LETTERS, f"about: {key}", fragment(value), rule, "shorten it")
    return str(value).strip()


def _authors(value: Any) -> tuple[str, ...]:
    hint = 'write authors = ["..."]'
    check(isinstance(value, list), "about: authors", fragment(value), "must be a list of names", hint)
    return tuple(_text("authors", one) for one in value)


def _check_date(text: str) -> None:
    try:
        good = text == "" or dt.date.fromisoformat(text).isoformat() == text
    except ValueError:
        good = False
    check(good, "about: published", fragment(text), "must be a date such as 2026-01-31", "write YYYY-MM-DD")
