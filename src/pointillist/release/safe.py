"""Files of a release, checked before they take memory, and models that must fit their schema.

A few bytes of a compressed file can stand for any number of zeros. So what a file claims about itself is read first
and compared with what the release can need: nothing is decompressed that is too large, and no file can run code.
"""

from __future__ import annotations

import math
import re
import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from pointillist.checks import check, one_of
from pointillist.data.columns import listed_labels
from pointillist.data.domain import Attributes, Domain
from pointillist.data.messages import fragment, reason
from pointillist.data.parquet import promised_bytes
from pointillist.data.schema import Schema
from pointillist.errors import InputError, PointillistError, Shown
from pointillist.families import components, markov
from pointillist.families.components import Components
from pointillist.families.generator import Generator
from pointillist.families.histogram import Histogram
from pointillist.families.junction import tree_cells
from pointillist.families.markov import Markov
from pointillist.families.records import RecordList
from pointillist.families.relaxed import NOISE, Relaxed
from pointillist.families.rows import ClippedRows, SoftmaxRows
from pointillist.families.saved import FAMILIES, MODELS
from pointillist.families.support import Support

__all__ = [
    "check_model",
    "check_parquet",
    "claimed_limit",
    "load_arrays",
    "model_bytes",
    "old_model_bytes",
    "rows_bytes",
]

AGAIN = "make the release again"
MOST_ARRAYS = 1000
MOST_SIDE = 1 << 40
SPARE = 1 << 16
"""Bytes for the headers of files."""
SMALL = 1 << 26
"""Bytes that any file may take."""
RATIO = 100
"""How often larger than its file content of a free size may be. Noisy counts and records take a tenth of their size."""


# --- arrays


class Claim(NamedTuple):
    """What an array in a file says about itself: its type, its shape, and where its numbers begin."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    start: int

    @property
    def size(self) -> int:
        """Bytes of the array."""
        return math.prod(self.shape) * self.dtype.itemsize


def load_arrays(path: Path, most_bytes: int, most_arrays: int = MOST_ARRAYS) -> dict[str, np.ndarray]:
    """Read the arrays of an ``.npz`` file, once all of them are known to be small enough.

    Args:
        path: The file.
        most_bytes: The most bytes of memory that all arrays together may take.
        most_arrays: The largest number of arrays.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            entries = archive.infolist()
            check(len(entries) <= most_arrays, "release", str(path), f"must have at most {most_arrays:,} arrays", AGAIN)
            claims = {entry.filename: _claim(archive, entry, path) for entry in entries}
            check(len(claims) == len(entries), "release", str(path), "must not have two arrays of one name", AGAIN)
            size = sum(claim.size for claim in claims.values())
            rule = f"must take at most {most_bytes:,} bytes of memory ({path.name})"
            check(size <= most_bytes, "release", Shown(f"a file that takes {size:,} bytes"), rule, AGAIN)
            return {name.removesuffix(".npy"): _array(archive, name, claims[name]) for name in claims}
    except PointillistError:
        raise
    except Exception as error:  # a damaged file can fail in any way
        raise InputError("release", str(path), f"must be undamaged ({reason(error)})", AGAIN) from None


def _claim(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, path: Path) -> Claim:
    """What one array claims; refuses types that are not numbers or text, and sizes that do not add up."""
    known = entry.compress_type in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) and entry.filename.endswith(".npy")
    check(known, "release", fragment(entry.filename), f"must hold nothing but arrays ({path.name})", AGAIN)
    with archive.open(entry) as file:
        version = np.lib.format.read_magic(file)
        check(version == (1, 0), "release", version, f"must hold arrays of version (1, 0) ({path.name})", AGAIN)
        shape, _, dtype = np.lib.format.read_array_header_1_0(file)
        claim = Claim(dtype, shape, file.tell())
    plain = dtype.kind in "biufU" and dtype.fields is None and dtype.subdtype is None
    check(plain, "release", fragment(Shown(dtype)), f"must hold arrays of numbers and text ({path.name})", AGAIN)
    sides = all(type(side) is int and 0 <= side < MOST_SIDE for side in shape)
    whole = sides and claim.start + claim.size == entry.file_size
    check(whole, "release", fragment(shape), f"must hold arrays of the size that they claim ({path.name})", AGAIN)
    return claim


def _array(archive: zipfile.ZipFile, name: str, claim: Claim) -> np.ndarray:
    with archive.open(name) as file:
        array: np.ndarray = np.lib.format.read_array(file, allow_pickle=False)
        if file.read(1):
            raise ValueError("more bytes than claimed")
    if claim.dtype.kind == "U" and array.size:
        _ = str(array.flat[0]).encode()  # refuses what is no text
    return array


def claimed_limit(path: Path) -> int:
    """The most bytes of a file whose arrays may have any number of rows: a multiple of its size.

    Args:
        path: The file.
    """
    return max(SMALL, RATIO * path.stat().st_size)


# --- Parquet


def check_parquet(path: Path, most_bytes: int) -> None:
    """Refuse a Parquet file whose footer promises more memory than it may take. No cell is read.

    Texts count once for each different one: give ``most_bytes`` to :meth:`pointillist.Table.read`, too, which also
    refuses a file whose texts, written out, take more.

    Args:
        path: The file.
        most_bytes: The most bytes of memory that the table may take.
    """
    try:
        size = promised_bytes(path)
    except Exception as error:  # a damaged file can fail in any way
        raise InputError("release", str(path), f"must be undamaged ({reason(error)})", AGAIN) from None
    rule = f"must take at most {most_bytes:,} bytes of memory ({path.name})"
    check(size <= most_bytes, "release", Shown(f"a file that takes {size:,} bytes"), rule, AGAIN)


def rows_bytes(schema: Schema, rows: int) -> int:
    """The most bytes that the rows of a release take in a file and while it is read.

    Args:
        schema: The columns.
        rows: The number of rows.
    """
    widths = [max(8, width) + 16 for width in schema.widths]
    labels = sum(len(str(label).encode()) for column in schema.columns for label in listed_labels(column))
    return SMALL + 2 * rows * sum(widths) + 4 * labels


# --- models


Shape = tuple[int | None, ...]
"""The sizes of an array; None stands for the number of records, which is the same in all arrays."""


class Wanted(NamedTuple):
    """What the arrays of a model must be.

    Attributes:
        shapes: the shape of each array.
        check: refuses values that are not those of a distribution.
    """

    shapes: Mapping[str, Shape]
    check: Callable[[Mapping[str, np.ndarray], Domain], None]


def check_model(family_spec: Mapping[str, Any], domain: Domain, arrays: Mapping[str, np.ndarray]) -> None:
    """Refuse arrays that are no model of the family over the domain: other names, types, shapes or values.

    Args:
        family_spec: The family, as it describes itself (``Family.to_dict``).
        domain: The domain of the schema.
        arrays: The saved arrays.
    """
    wanted = _wanted(family_spec, domain)
    if family_spec.get("kind") == Markov.kind:
        _check_potentials(arrays, domain, _side(family_spec, "most_cells"))
    if family_spec.get("kind") == Components.kind:
        _check_scoped(arrays, domain, components.PREFIX)
    if wanted is None:
        return _check_finite(arrays, domain)
    names = Shown(", ".join(sorted(arrays))[:60] or "none")
    rule = f"must have the arrays {', '.join(sorted(wanted.shapes))}"
    check(set(arrays) == set(wanted.shapes), "release: model", names, rule, AGAIN)
    records = {arrays[name].shape[axis] for name, axis in _free(wanted.shapes) if arrays[name].ndim > axis}
    for name, shape in wanted.shapes.items():
        kinds = "iu" if name == "codes" else "f"
        kind = Shown(arrays[name].dtype)
        rule = f"must hold {'whole numbers' if kinds == 'iu' else 'floating-point numbers'}"
        check(arrays[name].dtype.kind in kinds, f"release: model, {name}", fragment(kind), rule, AGAIN)
        found = arrays[name].shape
        fits = len(found) == len(shape) and all(b in (a, None) for a, b in zip(found, shape, strict=True))
        rule = f"must have the shape {_shown(shape)}, as the schema and the family say"
        check(fits and len(records) <= 1, f"release: model, {name}", Shown(_shown(found)), rule, AGAIN)
    _check_finite(arrays, domain)
    return wanted.check(arrays, domain)


def model_bytes(family_spec: Mapping[str, Any], domain: Domain, path: Path) -> int:
    """The most bytes that a model can need, for :func:`load_arrays`.

    Args:
        family_spec: The family, as it describes itself.
        domain: The domain of the schema.
        path: The file of the model: where the family has any number of records, its size is the measure.
    """
    wanted = _wanted(family_spec, domain)
    if wanted is None or any(_free(wanted.shapes)):
        return claimed_limit(path)
    return SPARE + 8 * sum(math.prod(side or 0 for side in shape) for shape in wanted.shapes.values())


def old_model_bytes(domain: Domain, path: Path) -> int:
    """The most bytes that a model of format 1 can need, which does not say of what family it is.

    Args:
        domain: The domain of the schema.
        path: The file of the model.
    """
    histogram = SPARE + 8 * domain.cells if Histogram.fits(domain) else 0
    return max(claimed_limit(path), histogram)


def _free(shapes: Mapping[str, Shape]) -> list[tuple[str, int]]:
    """The arrays and axes of the number of records."""
    return [(name, axis) for name, shape in shapes.items() for axis, side in enumerate(shape) if side is None]


def _shown(shape: Sequence[int | None]) -> str:
    return " x ".join("records" if side is None else f"{side:,}" for side in shape)[:60] or "of one number"


def _wanted(spec: Mapping[str, Any], domain: Domain) -> Wanted | None:
    """What the arrays of a described family must be; None for kinds that were added to the package's own."""
    check(isinstance(spec, Mapping), "release: family", fragment(spec), "must be a table of entries", AGAIN)
    kind = one_of("release: family", _word(spec.get("kind")), FAMILIES)
    if kind == Histogram.kind:
        rule, shown = "must be small enough for a histogram", Shown(f"{len(domain)} columns")
        check(Histogram.fits(domain), "release: schema", shown, rule, AGAIN)
        return Wanted({"weights": domain.sizes}, _check_weights)
    if kind == RecordList.kind:
        return Wanted({"codes": (None, len(domain)), "weights": (None,)}, _check_list)
    if kind == Support.kind:
        return Wanted({"codes": (len(domain), None), "weights": (None,)}, _check_support)
    return _relaxed(spec.get("model"), domain) if kind == Relaxed.kind else None


def _relaxed(spec: Any, domain: Domain) -> Wanted | None:
    check(isinstance(spec, Mapping), "release: family", fragment(spec), "must describe its model", AGAIN)
    kind = one_of("release: family", _word(spec.get("kind")), MODELS)
    width = sum(domain.sizes)
    if kind == SoftmaxRows.kind:
        return Wanted({"logits": (_side(spec, "rows"), width)}, _anything)
    if kind == ClippedRows.kind:
        return Wanted({"values": (_side(spec, "rows"), width)}, _anything)
    return Wanted(_layers(spec, width), _anything) if kind == Generator.kind else None


def _layers(spec: Mapping[str, Any], width: int) -> dict[str, Shape]:
    """The arrays of a generator network: noise, and for each layer weights, biases and what its batches learn."""
    hidden = spec.get("hidden")
    check(isinstance(hidden, list), "release: family", fragment(hidden), "must list its hidden layers", AGAIN)
    sides = [_side({"hidden": one}, "hidden") for one in hidden or []]
    shapes: dict[str, Shape] = {NOISE: (_side(spec, "rows"), inputs := _side(spec, "inputs"))}
    for n, out in enumerate((*sides, width)):
        shapes |= {f"weight{n}": (inputs, out), f"bias{n}": (out,)}
        if n < len(sides):
            shapes |= {f"scale{n}": (out,), f"shift{n}": (out,)}
        inputs += out
    return shapes


def _word(value: Any) -> str:
    check(isinstance(value, str), "release: family", fragment(value), "must name its kind", AGAIN)
    return str(value)


def _side(spec: Mapping[str, Any], name: str) -> int:
    side = spec.get(name)
    good = isinstance(side, int) and not isinstance(side, bool) and 1 <= side <= MOST_SIDE
    check(good, f"release: family, {name}", fragment(side), "must be a whole number above 0", AGAIN)
    return int(side or 0)


def _check_finite(arrays: Mapping[str, np.ndarray], domain: Domain) -> None:
    for name, array in arrays.items():
        good = array.dtype.kind not in "fc" or bool(np.isfinite(array).all())
        check(good, f"release: model, {name}", Shown("other ones"), "must hold finite numbers", AGAIN)


def _check_potentials(arrays: Mapping[str, np.ndarray], domain: Domain, most_cells: int) -> None:
    """Refuse what is no potential of a graphical model, and models whose junction tree is larger than they say."""
    scopes = _check_scoped(arrays, domain, markov.PREFIX)
    rule = f"must have a junction tree of at most {most_cells:,} cells and one for each value"
    cells = tree_cells(domain.sizes, scopes)
    check(cells <= most_cells + sum(domain.sizes), "release: model", Shown(f"{cells:,} cells"), rule, AGAIN)


def _check_scoped(arrays: Mapping[str, np.ndarray], domain: Domain, prefix: str) -> list[Attributes]:
    """The scopes of tables over some columns each, by their names; refuses others."""
    scopes = []
    for name, array in arrays.items():
        found = re.fullmatch(rf"{prefix}((?:_[0-9]{{1,6}})+)", name)
        scope = tuple(int(place) for place in found[1].split("_")[1:]) if found else ()
        good = bool(scope) and scope == tuple(sorted(set(scope))) and scope[-1] < len(domain)
        rule = f"must be called {prefix}_ and the positions of its columns"
        check(good, "release: model, array", fragment(name), rule, AGAIN)
        check(array.dtype.kind == "f", f"release: model, {name}", Shown(array.dtype), "must hold numbers", AGAIN)
        shape = domain.shape(scope)
        rule = f"must have the shape {_shown(shape)}, as the schema says"
        check(array.shape == shape, f"release: model, {name}", Shown(_shown(array.shape)), rule, AGAIN)
        scopes.append(scope)
    return scopes


def _anything(arrays: Mapping[str, np.ndarray], domain: Domain) -> None:
    """Any finite numbers are a distribution, or rows near one."""


def _check_weights(arrays: Mapping[str, np.ndarray], domain: Domain) -> None:
    weights = arrays["weights"]
    good = bool((weights >= 0).all()) and (weights.size == 0 or weights.sum(dtype=np.float64) > 0)
    rule = "must hold weights of 0 or more, not all of them 0"
    check(good, "release: model, weights", Shown("other ones"), rule, AGAIN)


def _check_list(arrays: Mapping[str, np.ndarray], domain: Domain) -> None:
    _check_codes(arrays["codes"].T, domain)
    _check_weights(arrays, domain)


def _check_support(arrays: Mapping[str, np.ndarray], domain: Domain) -> None:
    check(arrays["weights"].size > 0, "release: model, weights", Shown("none"), "must have records", AGAIN)
    _check_codes(arrays["codes"], domain)
    _check_weights(arrays, domain)


def _check_codes(codes: np.ndarray, domain: Domain) -> None:
    """Refuse codes that are no values of their attribute; one row of codes per attribute."""
    for name, size, one in zip(domain.names, domain.sizes, codes, strict=True):
        good = one.size == 0 or (int(one.min()) >= 0 and int(one.max()) < size)
        rule = f"must be in 0 .. {size - 1:,} for the column {fragment(name)}"
        check(good, "release: model, codes", Shown("other ones"), rule, AGAIN)
