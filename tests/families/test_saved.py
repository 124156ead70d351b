"""Every family describes itself: its plain data, the domain and the saved arrays are enough to load a model again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pointillist import Product
from pointillist.data.domain import Domain
from pointillist.families.components import Components
from pointillist.families.generator import Generator
from pointillist.families.histogram import Histogram
from pointillist.families.markov import Field, Markov
from pointillist.families.records import RecordList, Records
from pointillist.families.relaxed import Relaxed
from pointillist.families.rows import ClippedRows, SoftmaxRows
from pointillist.families.saved import FAMILIES, MODELS, load_family
from pointillist.families.support import Support
from pointillist.queries.kway import all_kway

DOMAIN = Domain(("a", "b", "c"), (3, 300, 2))
QUERIES = (*all_kway(DOMAIN, 2).queries, Product.of(DOMAIN, {"b": "prefixes", "c": "values"}))


def records(rows: int) -> np.ndarray:
    return np.random.default_rng(2).integers(0, DOMAIN.sizes, (rows, 3))


SUPPORT = Support(DOMAIN, tuple(records(40).T.astype(np.uint16)), np.full(40, 1 / 40))
FACTORS = np.random.default_rng(4).standard_normal((3, 300))
MADE: dict[str, tuple[Any, Any]] = {
    "histogram": (Histogram(DOMAIN), None),
    "graphical": (Markov(DOMAIN, 5000), Field(DOMAIN, {(0, 1): FACTORS, (1, 2): FACTORS[:2].T.copy()})),
    "components": (Components(DOMAIN, 900), {(0,): FACTORS[:, 0].copy(), (0, 1): FACTORS}),
    "no ties": (Markov(DOMAIN), None),
    "public records": (SUPPORT, np.random.default_rng(1).dirichlet(np.ones(40))),
    "records": (RecordList(DOMAIN), Records(records(9), np.full(9, 1 / 9))),
    "no records": (RecordList(DOMAIN), None),
    "softmax": (Relaxed(SoftmaxRows(DOMAIN, 11, spread=0.3)), None),
    "clipped": (Relaxed(ClippedRows(DOMAIN, 5)), None),
    "generator": (Relaxed(Generator(DOMAIN, 7, 4, (8, 6))), None),
}
"""A family and its parameters; None for the first ones."""


def test_all_families_and_models_are_here() -> None:
    described = [family.to_dict() for family, _ in MADE.values()]
    assert {spec["kind"] for spec in described} == set(FAMILIES)
    assert {spec["model"]["kind"] for spec in described if "model" in spec} == set(MODELS)


@pytest.mark.parametrize("name", list(MADE))
def test_a_saved_model_comes_back(name: str, tmp_path: Path) -> None:
    family, params = MADE[name]
    params = family.init(np.random.default_rng(0)) if params is None else params
    np.savez_compressed(tmp_path / "model.npz", **family.to_arrays(params))
    (tmp_path / "family.json").write_text(json.dumps(family.to_dict()))

    with np.load(tmp_path / "model.npz") as file:
        arrays = {key: file[key] for key in file}
    spec = json.loads((tmp_path / "family.json").read_text())
    back = load_family(spec, DOMAIN, arrays)
    again = back.from_arrays(arrays)
    assert type(back) is type(family)
    assert back.domain == DOMAIN
    assert back.to_dict() == family.to_dict() == spec
    assert np.array_equal(back.answers(again, QUERIES), family.answers(params, QUERIES))
    one, two = (f.sample(np.random.default_rng(1), p, 300) for f, p in ((family, params), (back, again)))
    assert all(np.array_equal(a, b) for a, b in zip(one, two, strict=True))
    saved = back.to_arrays(again)
    assert saved.keys() == arrays.keys()
    assert all(np.array_equal(saved[key], arrays[key]) for key in arrays)
    assert all(saved[key].dtype == arrays[key].dtype for key in arrays)


def test_the_sizes_of_a_network_come_back() -> None:
    family = Relaxed(Generator(DOMAIN, 7, 4, (8, 6)))
    back = load_family(family.to_dict(), DOMAIN, {})
    assert back == family
