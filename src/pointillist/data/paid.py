"""What a schema cost that was made from private data by charged measurements: its table ``[privacy]``.

Such a schema shows nothing but what was paid for. Whoever uses it for a release has to count its cost, too.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pointillist.checks import check
from pointillist.data.columns.base import check_flag, check_keys
from pointillist.data.messages import fragment
from pointillist.data.neighbours import Relation, Unit
from pointillist.errors import Shown

__all__ = ["Paid"]

NUMBERS = ("epsilon", "delta", "rho", "rho_spent", "delta_shown", "delta_spent")
CHARGE = ("label", "mechanism", "rho", "sensitivity", "scale", "delta")
HINT = "leave the table [privacy] as `pointillist schema --private` wrote it"


@dataclass(frozen=True)
class Paid:
    """What was spent on the private table to make a schema.

    Args:
        epsilon: The privacy loss.
        delta: The probability that the loss is larger.
        relation: Which tables are neighbours.
        accounting: "zCDP" or "Gaussian".
        rho: What could be spent.
        rho_spent: What was spent of it.
        delta_shown: The part of delta for showing values that only one unit has.
        delta_spent: What was spent of it.
        noise: Where the noise came from.
        private: False if it was made with seeded noise.
        least_scale: The least scale of the Gaussian accounting; None for zCDP.
        unit: What is protected as a whole; None for rows.
        ledger: Every charge, as plain entries.
    """

    epsilon: float
    delta: float
    relation: Relation
    accounting: str
    rho: float
    rho_spent: float
    delta_shown: float
    delta_spent: float
    noise: str
    private: bool = True
    least_scale: float | None = None
    unit: Unit | None = None
    ledger: tuple[tuple[tuple[str, Any], ...], ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the table ``[privacy]`` of a schema file."""
        out: dict[str, Any] = {"epsilon": self.epsilon, "delta": self.delta, "relation": self.relation.value}
        if self.unit is not None:
            out |= {"unit": self.unit.name, "max_rows": self.unit.max_rows}
        out["accounting"] = self.accounting
        if self.least_scale is not None:
            out["least_scale"] = self.least_scale
        out |= {name: getattr(self, name) for name in NUMBERS[2:]}
        return out | {"noise": self.noise, "private": self.private, "ledger": [dict(entry) for entry in self.ledger]}

    @classmethod
    def from_dict(cls, spec: Any) -> Paid:
        """Create it from the table of a schema file; refuses what does not add up.

        Args:
            spec: The table.
        """
        where = "schema: privacy"
        check(isinstance(spec, Mapping), where, fragment(spec), "must be a table of entries", HINT)
        words = ("relation", "accounting", "noise")
        known = (*NUMBERS, *words, "private", "least_scale", "unit", "max_rows", "ledger")
        check_keys(where, spec, known)
        absent = [name for name in (*NUMBERS, *words, "private", "ledger") if name not in spec]
        check(not absent, where, Shown(f"no {', '.join(absent[:3])}"), "must have all of its entries", HINT)
        numbers = {name: _number(f"{where}: {name}", spec[name]) for name in NUMBERS}
        check_flag(f"{where}: private", spec["private"])
        for name in words:
            check(isinstance(spec[name], str), f"{where}: {name}", fragment(spec[name]), "must be a text", HINT)
        relations, accounts = [one.value for one in Relation], ("zCDP", "Gaussian")
        good = spec["relation"] in relations and spec["accounting"] in accounts
        shown = fragment([spec["relation"], spec["accounting"]])
        check(good, where, shown, "must have a known relation and accounting", HINT)
        scale = None if "least_scale" not in spec else _number(f"{where}: least_scale", spec["least_scale"])
        rule = "must have a least_scale above 0.5 if its accounting is Gaussian, and only then"
        good = (scale is not None and scale > 0.5) if spec["accounting"] == "Gaussian" else scale is None
        check(good, where, fragment(scale), rule, HINT)
        unit = Unit(spec["unit"], spec.get("max_rows")) if "unit" in spec else None
        return cls(
            relation=Relation(spec["relation"]),
            accounting=spec["accounting"],
            noise=spec["noise"],
            private=spec["private"],
            least_scale=scale,
            unit=unit,
            ledger=_charges(f"{where}: ledger", spec["ledger"]),
            **numbers,
        )


def _number(where: str, value: Any) -> float:
    good = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and value >= 0
    check(good, where, fragment(value), "must be a finite number, 0 or more", HINT)
    return float(value)


def _charges(where: str, entries: Any) -> tuple[tuple[tuple[str, Any], ...], ...]:
    listed = isinstance(entries, list | tuple) and all(isinstance(one, Mapping) for one in entries)
    check(listed, where, fragment(entries), "must be a list of charges", HINT)
    found = []
    for one in entries:
        check_keys(where, one, CHARGE)
        absent = [name for name in CHARGE[:-1] if name not in one]
        check(not absent, where, Shown(f"no {', '.join(absent)}"), "must have all entries of each charge", HINT)
        texts = all(isinstance(one[name], str) for name in CHARGE[:2])
        check(texts, where, fragment(dict(one)), "must name what each charge is for", HINT)
        figures = {name: _number(where, one[name]) for name in CHARGE[2:] if name in one}
        found.append(tuple(({name: one[name] for name in CHARGE[:2]} | figures).items()))
    return tuple(found)
