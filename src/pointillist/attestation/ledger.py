"""The account of a release, recomputed: sums, the conversion, charges, the statement and the noise."""

from __future__ import annotations

import math
import re
from fractions import Fraction

from pointillist.attestation.findings import Failed, one_line, require
from pointillist.data.neighbours import Relation, meaning_of
from pointillist.data.paid import Paid
from pointillist.errors import BudgetError
from pointillist.privacy.budget import Budget, rho_of
from pointillist.privacy.composition import together_with
from pointillist.privacy.gaussian import LEAST_SCALES, gaussian_rho_of
from pointillist.privacy.ledger import GAUSSIAN, Entry, Ledger, minus
from pointillist.privacy.mechanisms import OpenDPNoise
from pointillist.release import Description, Privacy

__all__ = [
    "BEFORE",
    "COUNTED",
    "DISCOVERED",
    "MEASURED",
    "SELECTED",
    "check_charges",
    "check_conversion",
    "check_noise",
    "check_schema_cost",
    "check_statement",
    "check_sum",
    "square_of",
]

COUNTED, MEASURED, SELECTED, DISCOVERED = "number of rows", "measurement", "selection", "discovery"
EXPONENTIAL = "exponential mechanism"
MECHANISMS = {COUNTED: GAUSSIAN, MEASURED: GAUSSIAN, SELECTED: EXPONENTIAL, DISCOVERED: GAUSSIAN}
"""What a charge can be for, and the mechanism that it pays."""

BEFORE = (COUNTED, DISCOVERED)
"""Charges for what no transcript of rounds has."""

NEAR = 1e-6
"""Conversions are solved numerically, so that another version may differ by this, relatively."""

SMALLEST = 1e-12
"""Smaller epsilons are not converted."""


def check_sum(privacy: Privacy) -> str:
    """The exact sum of the ledger is what was stated to be spent, and within the limit."""
    for entry in privacy.ledger:
        require(math.isfinite(entry.rho) and entry.rho > 0, "a charge is not a finite number above 0")
    require(all(map(math.isfinite, (privacy.rho, privacy.rho_spent))), "rho or rho_spent is not a finite number")
    total = sum((Fraction(entry.rho) for entry in privacy.ledger), Fraction(0))
    spent = Fraction(privacy.rho_spent)
    exact = spent >= total and (spent == total or Fraction(math.nextafter(privacy.rho_spent, 0.0)) < total)
    require(exact, f"the charges sum to {float(total)!r}, but rho_spent is {privacy.rho_spent!r}")
    require(total <= Fraction(privacy.rho), f"the charges sum to {float(total)!r}, above rho = {privacy.rho!r}")
    shown, most = sum((Fraction(entry.delta) for entry in privacy.ledger), Fraction(0)), privacy.delta_shown or 0.0
    require(shown <= Fraction(most), f"the charges need {float(shown)!r} of delta, above delta_shown = {most!r}")
    return f"{len(privacy.ledger):,} charges sum to rho_spent = {privacy.rho_spent:.6g}, within rho = {privacy.rho:.6g}"


def check_conversion(privacy: Privacy) -> str:
    """rho follows from epsilon and delta by the stated accounting."""
    epsilon, delta = privacy.epsilon, privacy.delta
    Budget(epsilon, delta, Relation(privacy.relation), privacy.unit)  # refuses what is no budget
    require(epsilon >= SMALLEST, f"epsilon = {epsilon!r} is too small to be converted")
    delta = _delta_of_noise(privacy)
    if privacy.accounting == "zCDP":
        wanted = rho_of(epsilon, delta)
        require(_near(privacy.rho, wanted), _other(privacy, wanted))
        return f"({epsilon:g}, {delta:g}) gives rho = {wanted:.6g} by zCDP"
    require(privacy.accounting == "Gaussian", "the accounting is neither zCDP nor Gaussian")
    others = {entry.mechanism for entry in privacy.ledger} - {GAUSSIAN}
    require(not others, "Gaussian accounting holds for Gaussian noise only, and the ledger has other charges")
    least = min((entry.scale for entry in privacy.ledger), default=0.0)
    allowed = {scale: gaussian_rho_of(epsilon, delta, scale) for scale in LEAST_SCALES if least >= scale}
    require(bool(allowed), f"a charge has a scale of {least:g}, too small for Gaussian accounting")
    found = [scale for scale, wanted in allowed.items() if _near(privacy.rho, wanted)]
    require(bool(found), _other(privacy, max(allowed.values())))
    return f"({epsilon:g}, {delta:g}) gives rho = {privacy.rho:.6g} for Gaussian noise of scale {found[0]:g} or more"


def _delta_of_noise(privacy: Privacy) -> float:
    """The delta that rho follows from: all but what is for showing values that only one unit has."""
    shown = privacy.delta_shown or 0.0
    require(0 <= shown < privacy.delta, f"delta_shown = {shown!r} is no part of delta = {privacy.delta!r}")
    return minus(privacy.delta, shown)


def _near(stated: float, wanted: float) -> bool:
    return math.isclose(stated, wanted, rel_tol=NEAR)


def _other(privacy: Privacy, wanted: float) -> str:
    budget = f"({privacy.epsilon:g}, {privacy.delta:g})"
    return f"{budget} gives rho = {wanted!r} by {privacy.accounting} accounting, but rho is {privacy.rho!r}"


def square_of(entry: Entry) -> Fraction:
    """The squared sensitivity of a charge: sensitivities are roots of whole numbers."""
    square = entry.sensitivity**2
    nearest = round(square)
    return Fraction(nearest) if math.isclose(square, nearest, rel_tol=1e-12) else Fraction(entry.sensitivity) ** 2


def check_charges(privacy: Privacy) -> str:
    """Every charge covers its sensitivity and its scale: Delta^2 <= 2 rho scale^2 for either mechanism."""
    for n, entry in enumerate(privacy.ledger, 1):
        _check_charge(entry, f"charge {n:,}")
    return f"each of {len(privacy.ledger):,} charges pays for its sensitivity and scale"


def _check_charge(entry: Entry, where: str) -> None:
    require(entry.label in MECHANISMS, f"{where} is for something unknown")
    require(entry.mechanism == MECHANISMS[entry.label], f"{where}, a {entry.label}, has another mechanism")
    require((entry.delta > 0) == (entry.label == DISCOVERED), f"{where}: only a discovery costs delta, and each does")
    figures = (entry.rho, entry.sensitivity, entry.scale)
    require(all(math.isfinite(x) and x > 0 for x in figures), f"{where} has a figure that is not finite and above 0")
    cost = square_of(entry) / (2 * Fraction(entry.scale) ** 2)
    reason = f"{where} costs rho = {float(cost):.6g} by its sensitivity and scale, but only {entry.rho:.6g} is paid"
    require(cost <= Fraction(entry.rho), reason)


GUARANTEE = re.compile(
    r"\((?P<epsilon>[^(),]+), (?P<delta>[^(),]+)\)-differential privacy, relation (?P<relation>[\w-]+):"
)
ROWS = re.compile(r"\(n = (?P<n>[\d,]+)\)")
BUDGET = re.compile(r"^Budget (?P<rho>\S+) .*\(rho\), spent (?P<spent>\S+):$", re.MULTILINE)
SHOWN = re.compile(r"^Part of delta for .*: (?P<shown>\S+), spent (?P<spent>\S+)\.$", re.MULTILINE)
KIND = re.compile(r"^ {2}(?P<count>[\d,]+) x (?P<kind>[^:\n]+): (?P<rho>\S+)$", re.MULTILINE)


def check_statement(about: Description) -> str:
    """The figures of the statement are those of the description."""
    privacy, text = about.privacy, about.privacy.statement
    promise, budget = GUARANTEE.search(text), BUDGET.search(text)
    if promise is None or budget is None:
        raise Failed("the statement does not state a guarantee and a budget")
    require(promise["relation"] == privacy.relation, "the statement names another relation")
    meant = meaning_of(Relation(privacy.relation), privacy.unit)
    require(f": {meant}" in text, "the statement says something else of which tables are neighbours")
    for name, value in (("epsilon", privacy.epsilon), ("delta", privacy.delta)):
        shown = _number(promise[name])
        require(value * (1 - 1e-12) <= shown <= value * (1 + 1e-3), f"the statement has another {name}")
    for name, value in (("rho", privacy.rho), ("spent", privacy.rho_spent)):
        require(math.isclose(_number(budget[name]), value, rel_tol=1e-5), f"the statement has another figure of {name}")
    rows, public = ROWS.search(text), privacy.relation == Relation.REPLACE.value
    require(
        (rows is not None) == public, "the statement must give the number of rows where it is public, and only there"
    )
    require(rows is None or int(rows["n"].replace(",", "")) == about.total, "the statement has another number of rows")
    _check_kinds(privacy)
    _check_shown(privacy)
    return "its figures are those of release.json"


def _check_kinds(privacy: Privacy) -> None:
    """The lines of the statement for each mechanism: the number of charges and what they cost."""
    stated = {
        one["kind"]: (int(one["count"].replace(",", "")), _number(one["rho"]))
        for one in KIND.finditer(privacy.statement)
    }
    kinds = {entry.mechanism for entry in privacy.ledger}
    require(set(stated) == kinds, "the statement lists other mechanisms than the ledger")
    for kind, (count, rho) in stated.items():
        charges = [entry.rho for entry in privacy.ledger if entry.mechanism == kind]
        require(
            count == len(charges), f"the statement counts {count:,} charges of the {kind}, the ledger {len(charges):,}"
        )
        require(math.isclose(rho, math.fsum(charges), rel_tol=1e-5), f"the statement has another cost of the {kind}")


def _check_shown(privacy: Privacy) -> None:
    """The line of the statement for the part of delta with which values of one unit may be shown."""
    stated = SHOWN.search(privacy.statement)
    reason = "the statement must name the part of delta for showing values where there is one, and only there"
    require((stated is not None) == (privacy.delta_shown is not None), reason)
    if stated is None or privacy.delta_shown is None:
        return
    spent = float(sum((Fraction(entry.delta) for entry in privacy.ledger), Fraction(0)))
    for name, value in (("shown", privacy.delta_shown), ("spent", spent)):
        said = _number(stated[name])
        require(value * (1 - 1e-12) <= said <= value * (1 + 1e-3), "the statement has another part of delta")


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise Failed("the statement has a figure that is not a number") from None


def check_schema_cost(about: Description) -> str:
    """A schema that was paid for: its charges, its budget, and the cost of both together, recomputed."""
    privacy, stated = about.privacy, about.privacy.with_schema
    schema = about.schema if about.given is None else about.given
    require(("privacy" in about.schema) == ("privacy" in schema), "the schema and the given one differ in their cost")
    require(
        ("privacy" in schema) == (stated is not None),
        "the cost of the schema must be stated, and only where it has one",
    )
    if stated is None or "privacy" not in schema:
        return "it cost nothing"
    require(about.schema["privacy"] == schema["privacy"], "the schema and the given one differ in their cost")
    paid = Paid.from_dict(schema["privacy"])
    require(paid.private or not privacy.private, "private, but with a schema that is not")
    require(paid.relation.value == privacy.relation, "the schema was paid for under another relation")
    units = [None if one is None else one.name for one in (paid.unit, privacy.unit)]
    require(units[0] == units[1], "the schema was paid for by another unit")
    entries = tuple(Entry(**dict(charge)) for charge in paid.ledger)
    ledger = Ledger(Budget(paid.epsilon, paid.delta, paid.relation, paid.unit), paid.least_scale, paid.delta_shown)
    require(_near(paid.rho, ledger.limit), f"the schema could spend rho = {ledger.limit!r}, but rho is {paid.rho!r}")
    try:
        ledger.charge(*entries)
    except (BudgetError, ValueError) as error:
        raise Failed(f"a charge of the schema is not covered ({one_line(error)[:100]})") from None
    same = ledger.spent == paid.rho_spent and ledger.delta_spent == paid.delta_spent
    require(same, "the charges of the schema do not sum up to what it says was spent")
    for n, entry in enumerate(entries, 1):
        _check_charge(entry, f"charge {n:,} of the schema")
    require(
        (stated.schema_epsilon, stated.schema_delta) == (paid.epsilon, paid.delta),
        "another cost of the schema is stated",
    )
    budget = Budget(privacy.epsilon, privacy.delta, Relation(privacy.relation), privacy.unit)
    spent = Ledger(budget, _scale_of(privacy), privacy.delta_shown or 0.0)
    epsilon, delta = together_with(paid, spent)
    close = stated.epsilon >= epsilon * (1 - NEAR) and stated.delta >= delta * (1 - NEAR)
    require(close, f"schema and release are together ({epsilon:g}, {delta:g}), but less is stated")
    words = Ledger.with_schema(paid.epsilon, paid.delta, (stated.epsilon, stated.delta))
    require(words in privacy.statement, "the statement does not name the cost of the schema")
    return f"({paid.epsilon:g}, {paid.delta:g}); together ({stated.epsilon:g}, {stated.delta:g})"


def _scale_of(privacy: Privacy) -> float | None:
    """The least scale with which the limit of a release was computed; None for zCDP."""
    if privacy.accounting == "zCDP":
        return None
    delta = _delta_of_noise(privacy)
    found = [one for one in LEAST_SCALES if _near(privacy.rho, gaussian_rho_of(privacy.epsilon, delta, one))]
    require(bool(found), "the limit is that of no least scale")
    return found[0]


def check_noise(privacy: Privacy) -> str:
    """What is said of the noise agrees with itself. A release that is not private says so wherever it is asked."""
    stamped = privacy.statement.startswith("NOT PRIVATE")
    insecure = "INSECURE" in privacy.noise
    require(stamped == (not privacy.private), "the statement and the entry private contradict each other")
    require(insecure == (not privacy.private), "the noise and the entry private contradict each other")
    if not privacy.private:
        return f"NOT PRIVATE: {privacy.noise}"
    require(privacy.noise == OpenDPNoise.description, "private, but with noise that this version does not know")
    return privacy.noise
