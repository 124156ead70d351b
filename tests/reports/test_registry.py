"""The record for the registry: its fields, and YAML that is read back as it was written."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from tests.reports.made import hostile_release

from pointillist import InputError, Release
from pointillist.data.neighbours import Unit
from pointillist.release import WithSchema
from pointillist.reports import Statements, registry_record, to_yaml, unfilled

FIELDS = {
    "basic": {"name", "data_curators", "description", "intended_use", "data_product_type", "data_product_region",
              "data_product_sector", "publication_date"},
    "dp_variant": {"variant_name", "data_domain", "unprotected_quantities"},
    "privacy_loss": {"privacy_unit", "privacy_unit_details", "number_of_privacy_units", "privacy_parameters",
                     "privacy_parameters_details"},
    "deployment_model": {"model_name", "model_name_details", "trust_assumptions", "actors", "release_type",
                         "release_type_details", "data_source_type", "data_source_type_details", "access_type",
                         "access_type_details"},
    "implementation": {"preprocessing_and_hyperparameter_tuning", "mechanisms", "composition", "post_processing",
                       "justification", "utility", "additional_information"},
    "administrative": {"evidence_sources", "status", "registry_authors", "tier"},
}  # fmt: skip
"""The fields of the registry's schema."""

STATED = Statements(
    title="Births: 2014 #1",
    description="Live births.",
    holder="Ministry - of Health",
    holder_type="Government",
    purpose="yes",
    region="null",
    sector="Healthcare",
    published="2026-01-31",
    access="Everybody.",
    tuning="None.\nReally none.",
    justification="As others do.",
    further_releases="None.",
    threats="Anybody.",
    authors=("A. Author",),
)


def test_the_record_has_only_fields_of_the_registry(release: Release) -> None:
    for about in (None, STATED):
        record = registry_record(release, about)
        assert record.keys() == {"url_slug", "deployment"}
        assert record["deployment"].keys() == FIELDS.keys()
        for part, fields in FIELDS.items():
            assert record["deployment"][part].keys() <= fields


def test_it_says_what_is_left_to_fill_in(release: Release) -> None:
    assert unfilled(registry_record(release, STATED)) == []
    missing = unfilled(registry_record(release))
    assert "deployment.basic.name" in missing
    assert "deployment.basic.data_curators.data_curator_type" in missing
    assert "deployment.administrative.registry_authors" in missing
    assert "url_slug" not in missing


def test_the_parameters_are_those_of_the_release(release: Release) -> None:
    found = yaml.safe_load(to_yaml(registry_record(release, STATED)))
    assert found == registry_record(release, STATED)
    loss, privacy = found["deployment"]["privacy_loss"], release.description.privacy
    assert loss["privacy_parameters"] == {"epsilon": 1.0, "delta": privacy.delta, "rho": privacy.rho}
    assert loss["number_of_privacy_units"] == 400
    assert found["deployment"]["dp_variant"]["variant_name"] == "Zero-concentrated DP"
    assert found["deployment"]["basic"]["publication_date"] == "2026-01-31"
    assert found["url_slug"] == "births-2014-1"


def test_a_paid_schema_counts_and_units_are_named(release: Release) -> None:
    both = WithSchema(0.5, 1e-7, 1.4, 7e-6)
    privacy = replace(release.description.privacy, relation="add-remove", unit=Unit("person", 3), with_schema=both)
    about = replace(release.description, privacy=privacy)
    found = registry_record(replace(release, description=about))["deployment"]
    assert found["privacy_loss"]["privacy_parameters"] == {"epsilon": 1.4, "delta": 7e-6}
    assert found["privacy_loss"]["privacy_unit"] == "person-level"
    assert "number_of_privacy_units" not in found["privacy_loss"]
    assert found["dp_variant"] == found["dp_variant"] | {
        "variant_name": "Approximate DP",
        "unprotected_quantities": "None.",
    }


def test_a_release_that_is_not_private_is_not_registered() -> None:
    with pytest.raises(InputError, match="release must be private to be registered"):
        registry_record(hostile_release(insecure_noise_seed=1))


plain = st.one_of(
    st.text(max_size=30),
    st.lists(st.text(alphabet="ab: #-'\"\\|>&*!%@`?{}[],", max_size=8), max_size=4).map("\n".join),
    st.floats(allow_nan=False, allow_infinity=False),
    st.integers(-(10**12), 10**12),
)
keys = st.from_regex(r"[a-z_]{1,8}", fullmatch=True).filter(
    lambda key: key not in ("y", "n", "yes", "no", "on", "off", "true", "false", "null")
)


@given(
    st.dictionaries(
        keys,
        st.recursive(
            plain, lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(keys, inner, max_size=3))
        ),
        min_size=1,
        max_size=4,
    )
)
def test_yaml_is_read_back_as_it_was_written(record: dict[str, Any]) -> None:
    assert yaml.safe_load(to_yaml(record)) == record
