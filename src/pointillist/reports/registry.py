"""The record of a release for OpenDP's registry of deployments of differential privacy, as YAML.

The fields are those of the registry's schema (``schemas/deployments-schema.yaml`` of opendp/deployments-registry-data).
What only the holder knows is marked TODO.
"""

from __future__ import annotations

import math
import re
from typing import Any

from pointillist.checks import check
from pointillist.data.neighbours import Relation, meaning_of
from pointillist.errors import Shown
from pointillist.privacy.ledger import rounded_up
from pointillist.release import Description, Release
from pointillist.reports.promise import ACCESS, THREATS, loss_of
from pointillist.reports.spending import spending
from pointillist.reports.statements import Statements

__all__ = ["registry_record", "to_yaml", "unfilled"]

TODO = "TODO"


def registry_record(release: Release, about: Statements | None = None) -> dict[str, Any]:
    """The record as plain data; :func:`to_yaml` writes it.

    Args:
        release: the release, which must be private.
        about: what the holder states.
    """
    spec, holder = release.description, Statements() if about is None else about
    shown = Shown("one made with seeded noise")
    check(spec.privacy.private, "release", shown, "must be private to be registered", "make it again without a seed")
    deployment = {
        "basic": _basic(release, holder),
        "dp_variant": _variant(release),
        "privacy_loss": _loss(spec),
        "deployment_model": _model(holder),
        "implementation": _implementation(release, holder),
        "administrative": {
            "status": "Draft",
            "registry_authors": list(holder.authors) or [f"{TODO}: who wrote this record"],
            "tier": 3,
        },
    }
    return {"url_slug": _slug(holder.title or TODO), "deployment": deployment}


def _slug(title: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")[:80] or "todo"


def _or(text: str, what: str) -> str:
    return text or f"{TODO}: {what}"


def _basic(release: Release, holder: Statements) -> dict[str, Any]:
    made = (
        f"A synthetic table of {len(release.table):,} rows and {len(release.schema.names):,} columns, made with "
        "Pointillist under differential privacy."
    )
    sector = {"data_product_sector": holder.sector} if holder.sector else {}
    return {
        "name": _or(holder.title, "the name of the data product"),
        "data_curators": [
            {
                "data_curator_name": _or(holder.holder, "who publishes it"),
                "data_curator_type": _or(holder.holder_type, "Government, Industry or Nonprofit"),
            }
        ],
        "description": "\n\n".join(one for one in (holder.description, made) if one),
        "intended_use": _or(holder.purpose, "what it is meant to be used for"),
        "data_product_type": "Synthetic data",
        "data_product_region": _or(holder.region, "the region that the data describe"),
        **sector,
        "publication_date": _or(holder.published, "YYYY-MM-DD"),
    }


def _variant(release: Release) -> dict[str, Any]:
    about = release.description
    public = []
    if about.privacy.with_schema is None:
        apart = " (but for those that the run has discovered)" if about.discovered else ""
        public.append(f"The names, types and possible values of the columns{apart}")
    if about.privacy.relation == Relation.REPLACE.value:
        public.append("the number of rows")
    return {
        "variant_name": "Zero-concentrated DP" if _is_zcdp(about) else "Approximate DP",
        "data_domain": f"Tables with the {len(release.schema.columns):,} columns of the release's schema.",
        "unprotected_quantities": ", and ".join(public) + "." if public else "None.",
    }


def _is_zcdp(about: Description) -> bool:
    """Whether rho says all: values that are discovered, and a schema that was paid for, also cost delta."""
    privacy = about.privacy
    return privacy.accounting == "zCDP" and privacy.with_schema is None and privacy.delta_shown is None


def _loss(about: Description) -> dict[str, Any]:
    privacy, loss = about.privacy, loss_of(about)
    unit = privacy.unit
    parameters = {"epsilon": loss.epsilon, "delta": loss.delta}
    details = (
        f"The run has a budget of rho = {privacy.rho:.6g} in the account of "
        f"{'zCDP' if privacy.accounting == 'zCDP' else 'Gaussian noise'}, of which {privacy.rho_spent:.6g} was spent."
    )
    parameters |= {"rho": privacy.rho} if _is_zcdp(about) else {}
    if privacy.delta_shown is not None:
        details += f" Of delta, {rounded_up(privacy.delta_shown)} is for showing values that only one unit has."
    if privacy.with_schema is not None:
        both = privacy.with_schema
        details += (
            f" The schema cost ({rounded_up(both.schema_epsilon)}, {rounded_up(both.schema_delta)}), which is counted."
        )
    units = {} if unit is not None else {"number_of_privacy_units": about.total}
    text = meaning_of(Relation(privacy.relation), unit)
    return {
        "privacy_unit": "Row-level" if unit is None else f"{unit.name}-level",
        "privacy_unit_details": f"{text[0].upper()}{text[1:]}.",
        **units,
        "privacy_parameters": parameters,
        "privacy_parameters_details": details,
    }


def _model(holder: Statements) -> dict[str, Any]:
    further = {"release_type_details": holder.further_releases} if holder.further_releases else {}
    return {
        "model_name": "Central",
        "trust_assumptions": "\n\n".join(one for one in (THREATS, holder.threats) if one),
        "actors": _or(holder.access, "who may see the release and the real data"),
        "release_type": "One release",
        **further,
        "data_source_type": "Static",
        "access_type": "Non-interactive",
        "access_type_details": ACCESS,
    }


def _implementation(release: Release, holder: Statements) -> dict[str, Any]:
    about = release.description
    charges = "\n".join(
        f"- {one.name}: {one.mechanism}, {len(one.entries):,} times, rho = {one.rho:.4g}" for one in spending(release)
    )
    versions = ", ".join(f"{name} {version}" for name, version in about.versions.items())
    justified = {"justification": holder.justification} if holder.justification else {}
    return {
        "preprocessing_and_hyperparameter_tuning": _or(
            holder.tuning, "what was done with the real data before the run: cleaning, exploring, choosing settings"
        ),
        "mechanisms": (
            f"{charges}\n\nNoise: {about.privacy.noise}, on whole numbers by exact samplers, so that no low bits of "
            f"floating-point numbers leak. Pointillist, with {versions}."
        ),
        "composition": (
            "Charges are added up exactly and booked before the data are read; adaptive composition under "
            f"{'zCDP' if about.privacy.accounting == 'zCDP' else 'an account for Gaussian noise alone'}."
        ),
        "post_processing": (
            f"A model was fitted to the noisy results by the method {about.method.name}, and {about.rows:,} rows were "
            "drawn from it."
        ),
        **justified,
    }


def unfilled(record: Any, path: str = "") -> list[str]:
    """The fields of a record that the holder must still fill in.

    Args:
        record: the record, or a part of it.
        path: where the part is.
    """
    if isinstance(record, dict):
        return [one for key, value in record.items() for one in unfilled(value, f"{path}.{key}" if path else key)]
    if isinstance(record, list):
        return [one for value in record for one in unfilled(value, path)]
    return [path] if isinstance(record, str) and record.startswith(TODO) else []


def to_yaml(record: Any, indent: int = 0) -> str:
    """Plain data as YAML: every text is quoted or a block of lines, so that none is read as anything else.

    Args:
        record: dictionaries, lists, texts, numbers.
        indent: the number of spaces before each line.
    """
    space = " " * indent
    if isinstance(record, dict):
        return "".join(f"{space}{key}:{_value(value, indent)}" for key, value in record.items())
    return "".join(f"{space}-{_value(value, indent)}" for value in record)


def _value(value: Any, indent: int) -> str:
    if isinstance(value, dict | list):
        return "\n" + to_yaml(value, indent + 2) if value else " {}\n" if isinstance(value, dict) else " []\n"
    if isinstance(value, str) and _is_block(value):
        space = " " * (indent + 2)
        return " |-\n" + "".join(f"{space}{line}\n" if line else "\n" for line in value.split("\n"))
    return f" {_scalar(value)}\n"


def _is_block(text: str) -> bool:
    """Whether a text can be written line by line: printable, no space at the ends of lines, no empty line at an end."""
    lines = text.split("\n")
    plain = all(line.isprintable() and line == line.rstrip() for line in lines) and "\ufeff" not in text
    return len(lines) > 1 and plain and lines[0] == lines[0].lstrip() and bool(lines[0]) and bool(lines[-1])


def _scalar(value: Any) -> str:
    if isinstance(value, str):
        return _quoted(value)
    if isinstance(value, float) and math.isfinite(value):
        text = repr(value)
        return text if "e" not in text or "." in text else text.replace("e", ".0e")  # 1e-09 would be a text
    return str(value)


ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t"}


def _quoted(text: str) -> str:
    """A text in double quotes, with everything escaped that is not printable."""

    def one(letter: str) -> str:
        if letter in ESCAPES:
            return ESCAPES[letter]
        if letter.isprintable() and letter != "\ufeff":
            return letter
        code = ord(letter)
        return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"

    return '"' + "".join(map(one, text)) + '"'
