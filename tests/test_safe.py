"""Files of releases: what they claim is checked before they take memory, and models must fit the schema."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from pointillist.data.domain import Domain
from pointillist.data.schema import Categorical, Numeric, Schema
from pointillist.data.table import Table
from pointillist.errors import InputError
from pointillist.families.components import Components
from pointillist.families.generator import Generator
from pointillist.families.histogram import Histogram
from pointillist.families.markov import Field, Markov
from pointillist.families.records import RecordList, Records
from pointillist.families.relaxed import Relaxed
from pointillist.families.rows import ClippedRows, SoftmaxRows
from pointillist.families.saved import FAMILIES, MODELS, load_family
from pointillist.families.support import Support
from pointillist.release import format1
from pointillist.release.safe import check_model, check_parquet, claimed_limit, load_arrays, model_bytes, rows_bytes

DOMAIN = Domain(("a", "b", "c"), (3, 300, 2))
CODES = np.random.default_rng(2).integers(0, DOMAIN.sizes, (40, 3))
FORMAT1 = sorted(p.parent for p in (Path(__file__).parent / "release_format1").glob("*/release.json"))
MADE: dict[str, tuple[Any, Any]] = {
    "histogram": (Histogram(DOMAIN), None),
    "public records": (Support(DOMAIN, tuple(CODES.T.astype(np.uint16)), np.full(40, 1 / 40)), None),
    "records": (RecordList(DOMAIN), Records(CODES[:9], np.full(9, 1 / 9))),
    "no records": (RecordList(DOMAIN), None),
    "softmax": (Relaxed(SoftmaxRows(DOMAIN, 11, spread=0.3)), None),
    "clipped": (Relaxed(ClippedRows(DOMAIN, 5)), None),
    "generator": (Relaxed(Generator(DOMAIN, 7, 4, (8, 6))), None),
    "components": (Components(DOMAIN, 902), {(0, 1): np.ones((3, 300)), (2,): np.zeros(2)}),
    "markov": (Markov(DOMAIN, 5000), Field(DOMAIN, {(0, 1): np.ones((3, 300)), (2,): np.zeros(2)})),
}


def model(name: str) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The description of a family and the arrays of its first model."""
    family, params = MADE[name]
    params = family.init(np.random.default_rng(0)) if params is None else params
    return json.loads(json.dumps(family.to_dict())), family.to_arrays(params)


def saved(path: Path, arrays: Mapping[str, Any]) -> Path:
    np.savez_compressed(path, **arrays)
    return path


# --- models of every family


def test_all_families_are_here() -> None:
    described = [model(name)[0] for name in MADE]
    known = {kind for kind, load in FAMILIES.items() if "skeleton" not in load.__module__}  # that of the docs
    assert {spec["kind"] for spec in described} == known
    assert {spec["model"]["kind"] for spec in described if "model" in spec} == set(MODELS)


@pytest.mark.parametrize("name", list(MADE))
def test_models_pass_and_come_back(name: str, tmp_path: Path) -> None:
    spec, arrays = model(name)
    path = saved(tmp_path / "model.npz", arrays)
    back = load_arrays(path, model_bytes(spec, DOMAIN, path))
    check_model(spec, DOMAIN, back)
    assert set(back) == set(arrays)
    assert all(np.array_equal(back[key], arrays[key]) and back[key].dtype == arrays[key].dtype for key in arrays)
    load_family(spec, DOMAIN, back).from_arrays(back)


@pytest.mark.parametrize("folder", FORMAT1, ids=lambda folder: folder.name)
def test_models_of_older_releases_pass(folder: Path) -> None:
    written = json.loads((folder / "release.json").read_text())
    arrays = load_arrays(folder / "model.npz", claimed_limit(folder / "model.npz"))
    load_arrays(folder / "transcript.npz", claimed_limit(folder / "transcript.npz"))
    schema = Schema.from_dict(written["schema"])
    spec = format1.family_of(written, arrays)
    check_model(spec, schema.domain, arrays)
    assert sum(array.nbytes for array in arrays.values()) <= model_bytes(spec, schema.domain, folder / "model.npz")
    check_parquet(folder / "synthetic.parquet", rows_bytes(schema, written["rows"]))
    Table.read(folder / "synthetic.parquet", schema, rows_bytes(schema, written["rows"]))


def changed(key: str, change: Callable[[np.ndarray], Any]) -> Callable[[dict[str, np.ndarray]], dict[str, np.ndarray]]:
    return lambda arrays: arrays | {key: np.asarray(change(np.array(arrays[key])))}


def put(array: np.ndarray, value: float) -> np.ndarray:
    array.flat[-1] = value
    return array


WRONG: list[tuple[str, Callable[[dict[str, np.ndarray]], dict[str, np.ndarray]], str]] = [
    ("histogram", lambda arrays: {}, "model must have the arrays weights, got none"),
    ("histogram", lambda arrays: arrays | {"x": np.zeros(1)}, "model must have the arrays weights, got weights, x"),
    ("histogram", changed("weights", lambda w: w[:2]), "weights must have the shape 3 x 300 x 2, .* got 2 x 300 x 2"),
    ("histogram", changed("weights", np.ravel), "weights must have the shape 3 x 300 x 2, .* got 1,800"),
    ("histogram", changed("weights", lambda w: w.astype(int)), "weights must hold floating-point numbers, got int64"),
    ("histogram", changed("weights", lambda w: w.astype(str)), "weights must hold floating-point numbers, got <U"),
    ("histogram", changed("weights", lambda w: put(w, np.nan)), "weights must hold finite numbers"),
    ("histogram", changed("weights", lambda w: put(w, -1)), "weights must hold weights of 0 or more"),
    ("histogram", changed("weights", lambda w: 0 * w), "weights must hold weights of 0 or more, not all of them 0"),
    (
        "markov",
        lambda arrays: arrays | {"potential_1_0": np.ones((300, 3))},
        "must be called potential_ and the positions",
    ),
    ("markov", lambda arrays: arrays | {"potential_3": np.ones(2)}, "must be called potential_ and the positions"),
    ("markov", lambda arrays: arrays | {"weights": np.ones(2)}, "must be called potential_ and the positions"),
    ("markov", changed("potential_0_1", np.ravel), "potential_0_1 must have the shape 3 x 300"),
    ("markov", changed("potential_0_1", lambda t: t.astype(int)), "potential_0_1 must hold numbers, got int64"),
    ("markov", changed("potential_2", lambda t: put(t, np.inf)), "potential_2 must hold finite numbers"),
    ("records", changed("codes", lambda c: put(c, 2)), r"codes must be in 0 \.\. 1 for the column 'c'"),
    ("records", changed("codes", lambda c: put(c, -1)), r"codes must be in 0 \.\. 1 for the column 'c'"),
    ("records", changed("codes", lambda c: c.T), "codes must have the shape records x 3, .* got 3 x 9"),
    ("records", changed("codes", lambda c: c + 0.5), "codes must hold whole numbers, got float64"),
    ("records", changed("codes", lambda c: c[:4]), "must have the shape records x 3, .* got 4 x 3"),
    ("records", changed("weights", lambda w: put(w, np.inf)), "weights must hold finite numbers"),
    ("records", changed("weights", lambda w: w[None]), "must have the shape records"),
    ("public records", changed("codes", lambda c: c.T), "codes must have the shape 3 x records, .* got 40 x 3"),
    ("public records", changed("codes", lambda c: put(c, 2)), r"codes must be in 0 \.\. 1 for the column 'c'"),
    ("public records", lambda a: {"codes": a["codes"][:, :0], "weights": a["weights"][:0]}, "must have records"),
    ("softmax", changed("logits", lambda x: x[:, 1:]), "logits must have the shape 11 x 305, .* got 11 x 304"),
    ("softmax", changed("logits", lambda x: x[1:]), "logits must have the shape 11 x 305, .* got 10 x 305"),
    ("softmax", changed("logits", lambda x: put(x, np.inf)), "logits must hold finite numbers"),
    ("softmax", lambda arrays: {"values": arrays["logits"]}, "model must have the arrays logits, got values"),
    ("clipped", changed("values", lambda x: x.astype(bool)), "values must hold floating-point numbers, got bool"),
    ("generator", changed("weight1", lambda x: x[1:]), "weight1 must have the shape 12 x 6, .* got 11 x 6"),
    ("generator", changed("z", lambda x: x[:, 1:]), "z must have the shape 7 x 4, .* got 7 x 3"),
    ("generator", changed("bias2", lambda x: put(x, np.nan)), "bias2 must hold finite numbers"),
    ("generator", lambda a: {k: v for k, v in a.items() if k != "shift1"}, "model must have the arrays bias0, "),
]


@pytest.mark.parametrize(("name", "change", "words"), WRONG)
def test_arrays_that_do_not_fit_are_refused(name: str, change: Any, words: str) -> None:
    spec, arrays = model(name)
    with pytest.raises(InputError, match=words) as caught:
        check_model(spec, DOMAIN, change(arrays))
    assert str(caught.value).endswith("; make the release again.")


@pytest.mark.parametrize(
    "spec",
    [
        None,
        {},
        {"kind": []},
        {"kind": "histogrm"},
        {"kind": "relaxed"},
        {"kind": "relaxed", "model": {"kind": "softmax"}},
        {"kind": "relaxed", "model": {"kind": "softmax", "rows": True}},
        {"kind": "relaxed", "model": {"kind": "softmax", "rows": 0}},
        {"kind": "relaxed", "model": {"kind": "softmax", "rows": 10**30}},
        {"kind": "relaxed", "model": {"kind": "generator", "rows": 2, "inputs": 3, "hidden": 4}},
        {"kind": "relaxed", "model": {"kind": "generator", "rows": 2, "inputs": 3, "hidden": ["4"]}},
    ],
)
def test_families_that_are_none_are_refused(spec: Any) -> None:
    with pytest.raises(InputError, match="release: family"):
        check_model(spec, DOMAIN, {})


def test_families_of_other_packages_need_finite_numbers_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(FAMILIES, "theirs", lambda spec, domain, arrays: Histogram(domain))
    check_model({"kind": "theirs"}, DOMAIN, {"any": np.zeros(3)})
    with pytest.raises(InputError, match="release: model, any must hold finite numbers"):
        check_model({"kind": "theirs"}, DOMAIN, {"any": np.array([np.nan])})
    path = saved(tmp_path / "model.npz", {"any": np.zeros(3)})
    assert model_bytes({"kind": "theirs"}, DOMAIN, path) == claimed_limit(path)


def test_a_domain_without_room_for_a_histogram_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="release: schema must be small enough for a histogram"):
        model_bytes({"kind": "histogram"}, Domain(("a", "b"), (10**6, 10**6)), tmp_path)


# --- files that claim too much


def test_a_small_file_of_a_large_model_is_refused_before_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = saved(tmp_path / "model.npz", {"weights": np.zeros(8_000_000)})
    assert path.stat().st_size < 100_000
    limit = model_bytes({"kind": "histogram"}, DOMAIN, path)
    assert limit < 100_000
    monkeypatch.setattr(np.lib.format, "read_array", lambda *a, **k: pytest.fail("the array was read"))
    with pytest.raises(
        InputError, match=r"release must take at most .* bytes of memory \(model\.npz\), got a file that"
    ):
        load_arrays(path, limit)


def npy(header: str, content: bytes = b"", version: bytes = b"\x01\x00") -> bytes:
    text = header.encode() + b" " * (-(len(header) + 11) % 64) + b"\n"
    return b"\x93NUMPY" + version + len(text).to_bytes(2 if version == b"\x01\x00" else 4, "little") + text + content


def zipped(path: Path, entries: list[tuple[str, bytes]], method: int = zipfile.ZIP_DEFLATED) -> Path:
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, content in entries:
            archive.writestr(name, content)
    return path


def header(kind: str, shape: str) -> str:
    return f"{{'descr': {kind}, 'fortran_order': False, 'shape': {shape}, }}"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (npy(header("'<f8'", "(1000000000000,)")), "must hold arrays of the size that they claim"),
        (npy(header("'<f8'", "(1,)"), b"\0" * 800), "must hold arrays of the size that they claim"),
        (npy(header("'<f8'", "(-1,)"), b"\0" * 8), "must hold arrays of the size that they claim"),
        (npy(header("'<f8'", "(True,)"), b"\0" * 8), "must hold arrays of the size that they claim"),
        (npy(header("'|O'", "(1,)"), b"cos\nsystem\n"), "must hold arrays of numbers and text"),
        (npy(header("'<c16'", "(1,)"), b"\0" * 16), "must hold arrays of numbers and text"),
        (npy(header("'<M8[s]'", "(1,)"), b"\0" * 8), "must hold arrays of numbers and text"),
        (npy(header("[('a', '<f8')]", "(1,)"), b"\0" * 8), "must hold arrays of numbers and text"),
        (npy(header("('<f8', (2,))", "(1,)"), b"\0" * 16), "must hold arrays of numbers and text"),
        (npy(header("'<U1'", "()"), b"\xff\xff\xff\xff"), "must be undamaged"),
        (npy(header("'<f8'", "(1,)"), b"\0" * 8, b"\x02\x00"), "must hold arrays of version"),
        (npy("{'descr': " + "(" * 5000), "must be undamaged"),
        (npy("__import__('os').system('true')"), "must be undamaged"),
        (b"no array", "must be undamaged"),
        (b"", "must be undamaged"),
    ],
)
def test_arrays_that_claim_too_much(content: bytes, words: str, tmp_path: Path) -> None:
    path = zipped(tmp_path / "model.npz", [("weights.npy", content)])
    with pytest.raises(InputError, match=words) as caught:
        load_arrays(path, 1 << 20)
    assert str(caught.value).isprintable()


def test_other_archives_are_refused(tmp_path: Path) -> None:
    good = npy(header("'<f8'", "(1,)"), b"\0" * 8)
    path = tmp_path / "model.npz"
    assert load_arrays(zipped(path, [("a.npy", good)]), 8)["a"].tolist() == [0.0]
    for entries, method, words in (
        ([("a.txt", good)], zipfile.ZIP_DEFLATED, "must hold nothing but arrays"),
        ([("a.npy", good)], zipfile.ZIP_LZMA, "must hold nothing but arrays"),
        ([(f"{n}.npy", good) for n in range(1001)], zipfile.ZIP_STORED, "must have at most 1,000 arrays"),
        ([("a.npy", good), ("b.npy", good)], zipfile.ZIP_STORED, "must take at most 8 bytes of memory"),
    ):
        with pytest.raises(InputError, match=words):
            load_arrays(zipped(path, entries, method), 8)
    with pytest.warns(UserWarning, match="Duplicate name"):
        zipped(path, [("a.npy", good), ("a.npy", good)])
    with pytest.raises(InputError, match="must not have two arrays of one name"):
        load_arrays(path, 100)
    for content in (b"PK", b"", np.random.default_rng(0).bytes(500)):
        path.write_bytes(content)
        with pytest.raises(InputError, match="must be undamaged"):
            load_arrays(path, 100)


def test_damaged_archives_are_refused_or_read(tmp_path: Path) -> None:
    """A few bytes changed anywhere: the arrays come back, or one sentence."""
    spec, arrays = model("softmax")
    whole = saved(tmp_path / "model.npz", arrays).read_bytes()
    rng = np.random.default_rng(5)
    messages: list[str] = []
    for _ in range(200):
        damaged = bytearray(whole)
        for at in rng.integers(len(whole), size=3):
            damaged[at] = int(rng.integers(256))
        (tmp_path / "model.npz").write_bytes(
            damaged[: int(rng.integers(1, len(whole)))] if rng.random() < 0.2 else damaged
        )
        try:
            check_model(spec, DOMAIN, load_arrays(tmp_path / "model.npz", 1 << 20))
        except InputError as error:
            messages.append(str(error))
    assert len(messages) > 100
    assert all(message.isprintable() for message in messages)


# --- rows


def test_a_table_of_a_release_may_not_take_more_than_its_rows(tmp_path: Path) -> None:
    schema = Schema((Categorical("a", ("x", "y")), Numeric("n", (0, 1, 2))))
    table = Table(schema, (np.array([0, 1]), np.array([0, 1])))
    table.write(tmp_path / "synthetic.parquet")
    check_parquet(tmp_path / "synthetic.parquet", rows_bytes(schema, 2))
    parquet.write_table(pa.table({"a": ["x"] * 6_000_000, "n": np.zeros(6_000_000)}), tmp_path / "bomb.parquet")
    assert (tmp_path / "bomb.parquet").stat().st_size < 100_000
    with pytest.raises(
        InputError, match=r"release must take at most 67,\d+,\d+ bytes of memory \(bomb\.parquet\), got "
    ):
        check_parquet(tmp_path / "bomb.parquet", rows_bytes(schema, 2))
    (tmp_path / "bomb.parquet").write_bytes(b"PAR1 nothing PAR1")
    with pytest.raises(InputError, match="release must be undamaged"):
        check_parquet(tmp_path / "bomb.parquet", 100)


def test_the_files_of_saved_arrays_are_as_numpy_writes_them(tmp_path: Path) -> None:
    arrays = {"f": np.zeros((2, 3), np.float32, order="F"), "t": np.array('[{"a": "ü"}]'), "b": np.array([True, False])}
    for save in (np.savez, np.savez_compressed):
        save(tmp_path / "a.npz", **arrays)
        back = load_arrays(tmp_path / "a.npz", 1000)
        assert all(np.array_equal(back[key], arrays[key]) for key in arrays)
    out = io.BytesIO()
    np.savez(out, **arrays)
    assert zipfile.ZipFile(out).namelist() == ["f.npy", "t.npy", "b.npy"]


def test_a_graphical_model_has_no_larger_tree_than_it_says() -> None:
    spec, arrays = model("markov")
    spec = spec | {"most_cells": 100}
    with pytest.raises(InputError, match="must have a junction tree of at most 100 cells and one for each value"):
        check_model(spec, DOMAIN, arrays)
    with pytest.raises(InputError, match="most_cells must be a whole number above 0"):
        check_model(spec | {"most_cells": "many"}, DOMAIN, arrays)
