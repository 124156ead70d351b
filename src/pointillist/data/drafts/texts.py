"""Draft columns of text: numbers, dates, identifiers, free text that is never listed, codes, and lists of values."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from pointillist.data.columns import Categorical, Constant, Identifier
from pointillist.data.columns.base import MISSING_NUMBERS
from pointillist.data.drafts.numbers import draft_numbers
from pointillist.data.drafts.parts import MOST_FEW, Drafted, first_that_fits, named_like_an_id, own_type
from pointillist.data.drafts.times import draft_written_times

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["MISSING_TEXTS", "MOST_CODES", "MOST_VALUES", "draft_texts", "gaps_among"]

MOST_VALUES = 1000
"""A column with more different texts is left out, unless they are codes."""
MOST_CODES = 20_000
"""The most codes, such as postcodes, that a draft lists."""
MOST_LOOSE = 200
"""With more codes than this, prefixes group them."""
MOST_PREFIXES = 3
MOST_SPEECH = 50
"""Texts of several words with more different values than this are free text."""
LEAST_SPEECH = 3
"""This number of long texts, most of them in one row only, is free text already."""
MOST_LENGTH = 200
"""Longer texts are free text, however few there are."""
MISSING_TEXTS = ("NA", "N/A", "n/a", "na", "NaN", "nan", "null", "NULL", "None", "#N/A", ".", "?", "-", "--", "<NA>")
"""Texts that mean "missing" in most files."""
NUMBER = r"^\s*(-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?|[-+]?(0|[1-9][0-9]*)?\.[0-9]+)\s*$"
"""Numbers without leading zeros, which codes have. A sign of plus or a point at the beginning go with decimals."""
MARKED = r"^\s*[-+(]?\s*([$€£¥]|[A-Z]{3} )?\s*-?[0-9]{1,3}([,' ]?[0-9]{3})*([.,][0-9]+)?\s*(%|[$€£¥]|[A-Z]{3})?\)?\s*$"
"""Numbers with marks: separators of thousands, a currency, a percent sign."""
UUID = r"^\{?[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}\}?$"
EMAIL = r"^[^@\s]+@[^@\s]+\.[A-Za-z]{2,}$"
LINK = r"^(https?://|www\.)\S+$"
PHONE = r"^\+?[0-9][0-9 ()/.-]{6,}[0-9]$"
CODE = r"^[A-Za-z0-9][A-Za-z0-9 ./-]{0,11}$"
PERSON_NAME = re.compile(r"(^|[\W_])(first|last|full|sur|fore|given|family|middle|maiden)[\W_]?names?$|^names?$")
SPEECH_NAME = re.compile("comment|remark|note|description|text|message|feedback|answer|reason|title")
NUMBERED = re.compile(r"([^0-9\s]{0,12}[ ]?)([0-9]+)")
"""A number after a short prefix."""


def draft_texts(name: str, cells: pa.ChunkedArray, dtype: str) -> Drafted:
    """Draft a column of text.

    Args:
        name: The name of the column.
        cells: Its cells.
        dtype: The name of its type.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        found = pc.unique(cells)
    except pa.ArrowException:
        return Drafted(None, "too many different values: more than 2 GiB of them")
    every = [text for text in found.to_pylist() if text]
    missing = found.null_count > 0 or "" in found.to_pylist()
    if not every or (len(every) == 1 and not missing):
        return _draft_constant(name, every)
    gaps = gaps_among(every)
    texts = [text for text in every if text not in gaps] if gaps else every
    rest = pa.array(texts, pa.string())
    if _all_match(rest, NUMBER):
        usual = sorted({text.strip() for text in gaps} - {*MISSING_NUMBERS})
        return draft_numbers(name, cells, _as_numbers(cells, gaps), "", usual, _decimals(texts))
    if (drafted := draft_written_times(name, cells, texts, gaps, missing or bool(gaps))) is not None:
        return drafted
    unique = len(every) > len(cells) - cells.null_count - 1 - len(cells) // 20
    if len(every) > MOST_FEW and (drafted := _draft_personal(name, rest, every, unique)) is not None:
        return drafted
    filled = int(pc.sum(pc.is_in(cells, value_set=rest)).as_py() or 0)
    if (why := _why_not_listed(name, rest, filled)) is not None:
        return Drafted(None, why)
    spelled: dict[str, Any] = {"missing": missing or bool(gaps), "missing_values": gaps}
    if len(gaps) == 1 and not missing:
        spelled["missing_as"] = gaps[0]
    return _draft_list(name, cells, sorted(texts), spelled, own_type(dtype, "string"))


def _draft_constant(name: str, every: list[str]) -> Drafted:
    if not every:
        return Drafted(Constant(name, None), "Every cell is missing: kept as a constant.")
    value = int(every[0]) if re.fullmatch(r"-?(0|[1-9][0-9]{0,17})", every[0]) and every[0] != "-0" else every[0]
    return Drafted(Constant(name, value), "The same value in every row: kept as a constant. Check that it is public.")


def gaps_among(every: list[str]) -> tuple[str, ...]:
    """Return the texts that mean "missing". NA among other short codes (states, countries) is a value.

    Args:
        every: All different texts of a column.
    """
    gaps = [text for text in every if len(text) < 20 and text.strip() in ("", *MISSING_TEXTS)]
    others = set(every) - set(gaps)
    if not others:
        return ()
    codes = sum(re.fullmatch("[A-Z]{2}", text) is not None for text in others)
    return tuple(text for text in gaps if text != "NA" or codes <= len(others) / 2)


def _all_match(texts: pa.Array, pattern: str) -> bool:
    import pyarrow.compute as pc

    return bool(pc.all(pc.match_substring_regex(texts, pattern)).as_py())


def _as_numbers(cells: pa.ChunkedArray, gaps: tuple[str, ...]) -> pa.ChunkedArray:
    import pyarrow as pa
    import pyarrow.compute as pc

    trimmed = pc.utf8_trim_whitespace(cells)
    absent = pc.is_in(trimmed, value_set=pa.array([*(text.strip() for text in gaps), *MISSING_NUMBERS]))
    return pc.cast(pc.if_else(absent, pa.scalar(None, pa.string()), trimmed), pa.float64())


def _decimals(texts: list[str]) -> int | None:
    """Return the number of decimals if all numbers are written with the same, as amounts of money are."""
    found = {len(text.strip().partition(".")[2]) for text in texts}
    return None if len(found) > 1 or found == {0} or any("e" in text.lower() for text in texts) else found.pop()


def _draft_personal(name: str, texts: pa.Array, every: list[str], unique: bool) -> Drafted | None:
    """Return the draft of identifiers, addresses and the like; None for other texts."""
    for pattern, what in ((EMAIL, "e-mail addresses"), (LINK, "addresses of pages")):
        if _all_match(texts, pattern):
            return Drafted(None, f"{what}, which identify people or things")
    if not unique:
        return None
    if _all_match(texts, UUID):
        return Drafted(Identifier(name, kind="uuid"), "Universally unique identifiers: never read, and made again.")
    parts = [NUMBERED.fullmatch(text) for text in every]
    prefixes = {part[1] for part in parts if part is not None}
    if None not in parts and len(prefixes) == 1:
        widths = {len(part[2]) for part in parts if part is not None}
        digits = widths.pop() if len(widths) == 1 else 0
        column = Identifier(name, prefix=prefixes.pop(), digits=min(digits, 18))
        return Drafted(column, "Numbered identifiers: never read, and made again in a new sequence from 1.")
    if _all_match(texts, PHONE):
        return Drafted(None, "telephone numbers or the like, which identify people")
    if named_like_an_id(name):
        return Drafted(None, "identifiers: a different value in nearly every row")
    return None


def _why_not_listed(name: str, texts: pa.Array, filled: int) -> str | None:
    """Return why different texts must not be listed, given the number of filled cells; None if they can be."""
    import pyarrow.compute as pc

    words = float(pc.mean(pc.add(pc.count_substring_regex(texts, r"\S\s+\S"), 1)).as_py() or 0)
    length = float(pc.mean(pc.utf8_length(texts)).as_py() or 0)
    count = len(texts)
    if words >= 3 and SPEECH_NAME.search(name.lower()):
        return "free text, by its name and its words"
    if count > MOST_FEW and PERSON_NAME.search(name.strip().lower()):
        return "names, by the name of the column"
    if count > MOST_FEW and _all_match(texts, MARKED) and not _all_match(texts, CODE):
        return "numbers with a currency, a percent sign or separators of thousands: write them as plain numbers"
    if count > MOST_SPEECH and (words >= 4 or length > 60):
        return "free text: long cells with many different values"
    if count >= LEAST_SPEECH and count > filled / 2 and (words >= 4 or length > 40):
        return "free text: most cells that are filled are different"
    if length > MOST_LENGTH:
        return "free text: long cells"
    if count > max(MOST_FEW, filled / 2):
        return "a different value in most rows, as in names, identifiers and free text"
    codes = count > MOST_VALUES and _all_match(texts, CODE) and words < 3
    if count > (MOST_CODES if codes else MOST_VALUES):
        return f"too many different values ({count:,})"
    return None


def _draft_list(name: str, cells: pa.ChunkedArray, texts: list[str], spelled: dict[str, Any], dtype: str) -> Drafted:
    notes = ['The values that occur. Check that the list is complete and public, or set other = "..." for the rest.']
    if spelled["missing_values"]:
        notes.append(
            f"Assumed to mean missing: {', '.join(spelled['missing_values'])}. Check that none of them is a value."
        )
    if any(re.fullmatch("0[0-9]+", text) for text in texts[:1000]):
        notes.append("Codes with leading zeros: kept as texts.")
    prefixes = _prefixes(texts)
    if prefixes:
        lengths = ", ".join(map(str, prefixes))
        notes.append(f"Many codes: rare ones are merged by their first {lengths} letters. Check that this makes sense.")
    if len(texts) == 2 and any(text.casefold() in ("yes", "no", "true", "false") for text in texts):
        notes.append("Two values that mean yes and no: kept as they are written.")
    column = first_that_fits(
        cells,
        lambda: Categorical(name, tuple(texts), dtype=dtype, prefixes=prefixes, **spelled),
        lambda: Categorical(name, tuple(texts), **spelled),
    )
    return Drafted(column, "\n".join(notes) if column is not None else "its values cannot be listed")


def _prefixes(texts: list[str]) -> tuple[int, ...]:
    """Return the lengths of prefixes that group many codes; none for other texts."""
    if len(texts) <= MOST_LOOSE or not all(re.match(CODE, text) for text in texts):
        return ()
    found, last = [], 1
    for length in range(1, min(map(len, texts))):
        groups = len({text[:length] for text in texts})
        if 2 * last <= groups <= len(texts) / 2:
            found.append(length)
            last = groups
    return tuple(found[:MOST_PREFIXES])
