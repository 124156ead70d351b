"""Arguments of any type, in Python: each is taken, or refused by one sentence that is short and printable."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.faults.damage import NONSENSE

from pointillist import (
    Categorical,
    InputError,
    Numeric,
    PointillistError,
    Release,
    Schema,
    Table,
    all_kway,
    draft_schema,
    prepare,
    random_kway,
    synthesize,
)
from pointillist.accounts import Account
from pointillist.auditing import audit

SCHEMA = Schema(tuple(Categorical(name, ("no", "yes")) for name in "abc"))
TABLE = Table(SCHEMA, tuple(np.arange(60) // 2**n % 2 for n in range(3)))
PLAIN: dict[str, Any] = {
    "epsilon": 5.0,
    "delta": 1e-4,
    "schema": None,
    "public": None,
    "relation": "replace",
    "method": "mwem",
    "workload": "marginals:1",
    "group": "marginal",
    "rows": 30,
    "seed": 1,
    "settings": {"rounds": 2},
    "insecure_noise_seed": 1,
    "zcdp": False,
}


@functools.cache
def release() -> Release:
    return synthesize(TABLE, **PLAIN)


CALLS: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "prepare": (lambda **given: prepare(given.pop("table"), **given), {"table": TABLE} | PLAIN),
    "Job.plan": (
        lambda **given: prepare(TABLE, **PLAIN | {"method": "auto", "settings": None}).plan(**given),
        {"rows": 500, "target_error": 0.1, "target_metric": "tvd", "public": None},
    ),
    "Numeric": (
        Numeric,
        {"name": "a", "edges": (0, 1, 2), "integer": True, "decode_as": "uniform", "clip": False, "missing": True}
        | {"dtype": "int8"},
    ),
    "Categorical": (
        Categorical,
        {"name": "a", "values": ("x", "y"), "ordered": False, "missing": True, "other": "z", "dtype": "string"},
    ),
    "Schema": (Schema, {"columns": SCHEMA.columns, "reviewed": True, "ignore": ("x",)}),
    "Schema.load": (Schema.load, {"path": "nowhere"}),
    "Schema.from_dict": (Schema.from_dict, {"spec": SCHEMA.to_dict()}),
    "Table.encode": (Table.encode, {"data": TABLE.to_arrow(), "schema": SCHEMA}),
    "Table.read": (Table.read, {"path": "nowhere.csv", "schema": SCHEMA}),
    "draft_schema": (draft_schema, {"data": TABLE.to_arrow()}),
    "all_kway": (all_kway, {"domain": SCHEMA.domain, "k": 2}),
    "random_kway": (random_kway, {"domain": SCHEMA.domain, "k": 2, "count": 2, "seed": 0}),
    "Release.sample": (lambda **given: release().sample(**given), {"rows": 5, "seed": 1}),
    "Release.answers": (lambda **given: release().answers(**given), {"workload": None}),
    "Release.load": (Release.load, {"folder": "nowhere"}),
    "Release.save": (lambda **given: release().save(**given), {"folder": "out", "force": False}),
    "Account.create": (Account.create, {"path": "account", "epsilon": 1.0, "delta": 1e-9, "relation": "replace"}),
    "Account.open": (Account.open, {"path": "nowhere"}),
    "audit": (
        lambda **given: audit(given.pop("schema"), progress=stop, **given),
        {"schema": SCHEMA, "epsilon": 1.0, "method": "mwem", "delta": 1e-4, "relation": "replace", "group": "query"}
        | {"workload": "marginals:1", "settings": {"rounds": 2}, "rows": 20, "runs": 50, "seconds": 1.0}
        | {"confidence": 0.9, "processes": 1},
    ),
}
"""Functions with arguments that are good."""


def stop(part: str, done: int, runs: int) -> None:
    """The arguments were taken: the audit need not be made."""
    raise PointillistError("taken")


@pytest.mark.parametrize("name", CALLS)
def test_any_argument_is_taken_or_refused_in_one_sentence(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    call, good = CALLS[name]
    refused, wrong = 0, list[str]()
    for parameter in good:
        for number, value in enumerate(NONSENSE):
            try:
                call(**good | {parameter: value})
            except PointillistError as error:
                refused += isinstance(error, InputError)
                if not str(error).isprintable() or len(str(error)) > 1000:
                    wrong.append(f"{parameter}, value {number}: {str(error)[:300]!r}")
            except Exception as error:
                wrong.append(f"{parameter}, value {number} ({type(value).__name__}): {error!r:.200}")
    assert wrong == []
    assert refused > 30


@pytest.mark.parametrize("digits", [4_000, 5_000])
@pytest.mark.parametrize("parameter", ["epsilon", "delta", "rows", "seed", "insecure_noise_seed"])
def test_integers_of_thousands_of_digits(parameter: str, digits: int) -> None:
    for value in (10**digits, -(10**digits)):
        with pytest.raises(InputError) as refusal:
            prepare(TABLE, **PLAIN | {parameter: value})
        assert len(str(refusal.value)) < 600


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        ("epsilon", np.float32(5)),
        ("epsilon", np.int64(5)),
        ("delta", np.float64(1e-4)),
        ("rows", np.int64(30)),
        ("seed", np.uint8(1)),
        ("insecure_noise_seed", np.int32(1)),
        ("zcdp", np.bool_(False)),
        ("workload", np.str_("marginals:1")),
        ("settings", {"rounds": np.int64(2)}),
    ],
)
def test_scalars_of_numpy_are_accepted(parameter: str, value: Any) -> None:
    assert prepare(TABLE, **PLAIN | {parameter: value}).to_dict() == prepare(TABLE, **PLAIN).to_dict()


def test_numpy_edges_are_accepted() -> None:
    assert Numeric("a", np.array([0, 1, 2]), integer=True) == Numeric("a", (0, 1, 2), integer=True)  # type: ignore[arg-type]
