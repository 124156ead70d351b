"""A small schema, all of its records, and queries of every kind over it."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from pointillist.data.conditions import parse
from pointillist.data.schema import Categorical, Numeric, Schema

SCHEMA = Schema(
    (
        Numeric("age", (0, 10, 20, 30), integer=True, missing=True),
        Categorical("sex", ("f", "m")),
        Categorical("size", (1, 2, 3), ordered=True),
        Categorical("smoker", (False, True)),
    )
)
DOMAIN = SCHEMA.domain


def records() -> list[np.ndarray]:
    """Every record, as one array of codes per attribute."""
    return list(np.indices(DOMAIN.sizes).reshape(len(DOMAIN), -1))


def holds(text: str) -> np.ndarray:
    """Where a condition holds among all records: by the values, not by the codes."""
    rng = np.random.default_rng(0)
    pairs = zip(SCHEMA.columns, records(), strict=True)
    return parse(text).holds({column.name: column.decode(codes, rng) for column, codes in pairs})


COMPARISONS = (
    "age < 10", "age >= 20", "age < 20", "age is missing", "age is not missing", 'sex == "f"', 'sex != "f"',
    'sex in ["f", "m"]', 'sex == "x"', "size > 1", "size in [1, 3]", "size not in [2]", "smoker == true",
)  # fmt: skip


def conditions() -> st.SearchStrategy[str]:
    """Conditions of any shape; some of them hold always or never."""
    inner = st.sampled_from(COMPARISONS)
    return st.recursive(
        inner,
        lambda part: st.one_of(
            part.map(lambda one: f"not ({one})"),
            st.tuples(part, st.sampled_from(["and", "or"]), part).map(lambda t: f"({t[0]}) {t[1]} ({t[2]})"),
        ),
        max_leaves=6,
    )


@st.composite
def halfspaces(draw: st.DrawFn) -> tuple[dict[int, list[int]], list[int], list[int]]:
    """Weights of some attributes, thresholds, and crossed attributes."""
    crossed = draw(st.lists(st.integers(0, 3), max_size=2, unique=True))
    others = [i for i in range(4) if i not in crossed]
    chosen = draw(st.lists(st.sampled_from(others), min_size=1, unique=True))
    weights = {
        i: draw(st.lists(st.integers(-3, 3), min_size=DOMAIN.sizes[i], max_size=DOMAIN.sizes[i])) for i in chosen
    }
    low, high = (sum(end(many) for many in weights.values()) for end in (min, max))
    if low == high:
        weights[chosen[0]][0] += 1
        high += 1
    low = sum(min(many) for many in weights.values())
    high = sum(max(many) for many in weights.values())
    return weights, draw(st.lists(st.integers(low, high - 1), min_size=1, max_size=5)), crossed
