"""ACS-2024: the public-use microdata of the American Community Survey, one-year files of 2024.

A person file is joined with its household file. Identifiers, weights and geography are dropped. Every value
list and bin edge is given below: the survey's codes, or round numbers. None is taken from the data, so every
state has the same domain. An empty cell means "not applicable" (too young for the question, or not in a
housing unit) and is a value of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pointillist.checks import check
from pointillist.data.messages import column_called, fragment
from pointillist.data.schema import Categorical, Column, Numeric, Schema
from pointillist.data.table import Table
from pointillist.errors import InputError, Shown

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["ATTRIBUTES", "HOUSEHOLD", "NAMES", "PERSON", "SHARED", "Attribute", "acs_schema", "acs_table"]

Codes = int | tuple[int, int] | list[int | tuple[int, int]]
"""Codes of the code book: a code, an inclusive range of codes, or a list of these."""


@dataclass(frozen=True)
class Attribute:
    """A column of the survey.

    Args:
        meaning: What the column means.
        column: The column of the schema.
        codes: The survey's codes for each value of a categorical column.
    """

    meaning: str
    column: Column
    codes: tuple[Codes, ...] = ()

    def encode(self, array: pa.Array) -> np.ndarray:
        """Return the code ``0 .. size - 1`` of each cell; refuse survey codes that are not in the code book."""
        if not self.codes:
            return self.column.encode(array)
        nulls = array.is_null().to_numpy(zero_copy_only=False)
        raw = array.fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
        lookup = self._lookup()
        place = np.where((raw >= 0) & (raw < len(lookup)), lookup[np.clip(raw, 0, len(lookup) - 1)], -1)
        place[nulls] = self.column.size - 1 if self.column.missing else -1
        strange = np.flatnonzero(place < 0)
        if strange.size:
            value = Shown("an empty cell") if nulls[strange[0]] else int(raw[strange[0]])
            rule, hint = "must only hold codes of the code book", "check the survey and the year of the file"
            raise InputError(column_called(self.column.name), fragment(value), rule, hint)
        return place

    def _lookup(self) -> np.ndarray:
        """Return the position of the value for each survey code, -1 if there is none."""
        spans = [
            (position, *(span if isinstance(span, tuple) else (span, span)))
            for position, codes in enumerate(self.codes)
            for span in (codes if isinstance(codes, list) else [codes])
        ]
        lookup = np.full(max(last for _, _, last in spans) + 1, -1)
        for position, first, last in spans:
            lookup[first : last + 1] = position
        return lookup


def _listed(name: str, meaning: str, *values: str, **options: Any) -> Attribute:
    """Return a categorical column whose values have the survey's codes 1, 2, 3, ..."""
    return Attribute(meaning, Categorical(name, values, **options), tuple(range(1, len(values) + 1)))


def _grouped(name: str, meaning: str, groups: dict[str, Codes], **options: Any) -> Attribute:
    """Return a categorical column whose values stand for one or more of the survey's codes."""
    return Attribute(meaning, Categorical(name, tuple(groups), **options), tuple(groups.values()))


def _binned(name: str, meaning: str, edges: tuple[int, ...], **options: Any) -> Attribute:
    return Attribute(meaning, Numeric(name, edges, integer=True, **options))


def _yes_no(name: str, meaning: str, **options: Any) -> Attribute:
    return _listed(name, meaning, "yes", "no", **options)


# fmt: off
PERSON_INCOME = (-20_000, 0, 1, 5_000, 10_000, 15_000, 20_000, 30_000, 40_000, 50_000, 65_000, 80_000,
                 100_000, 150_000, 250_000, 500_000)
WAGES = (0, 1, 5_000, 10_000, 20_000, 30_000, 40_000, 50_000, 65_000, 80_000, 100_000, 150_000, 250_000,
         500_000)
INCOME = (-60_000, 0, 1, 15_000, 25_000, 35_000, 50_000, 65_000, 80_000, 100_000, 125_000, 150_000, 200_000,
          250_000, 350_000, 500_000, 1_000_000)
HOME_VALUE = (0, 10_000, 50_000, 100_000, 150_000, 200_000, 250_000, 300_000, 400_000, 500_000, 650_000,
              800_000, 1_000_000, 1_500_000, 2_500_000, 5_000_000)
RENT = (0, 250, 500, 750, 1_000, 1_250, 1_500, 1_750, 2_000, 2_500, 3_000, 4_000, 10_000)
SHARE_OF_INCOME = (1, 10, 15, 20, 25, 30, 35, 40, 50, 75, 100, 101)

PERSON: tuple[Attribute, ...] = (
    # At 3, 5, 15, 16 and 17 years the questions on school, language, income, work and service begin.
    _binned("AGEP", "age in years",
            (0, 3, 5, 10, 15, 16, 17, 20, 25, 30, 35, 40, 45, 50, 55, 60, 65, 70, 75, 80, 85, 99)),
    _listed("SEX", "sex", "male", "female"),
    _listed("RAC1P", "race", "White", "Black", "American Indian", "Alaska Native",
            "American Indian or Alaska Native, other", "Asian", "Pacific Islander", "some other race",
            "two or more races"),
    _grouped("HISP", "Hispanic origin", {
        "not Hispanic": 1, "Mexican": 2, "Puerto Rican": 3, "Cuban": 4, "Dominican": 5,
        "Central American": (6, 12), "South American": (13, 22), "Spaniard": 23, "other Hispanic": 24}),
    _listed("CIT", "citizenship", "born in a state", "born in an island area", "born abroad of Americans",
            "naturalized", "not a citizen"),
    _listed("NATIVITY", "native or foreign born", "native", "foreign born"),
    _yes_no("LANX", "speaks another language than English at home", missing=True),
    _listed("ENG", "speaks English", "very well", "well", "not well", "not at all",
            ordered=True, missing=True),
    _grouped("SCHL", "education completed", {
        "none": 1, "nursery school": 2, "kindergarten": 3, "grade 1 to 4": (4, 7), "grade 5 to 8": (8, 11),
        "grade 9": 12, "grade 10": 13, "grade 11": 14, "grade 12, no diploma": 15, "high school diploma": 16,
        "GED": 17, "some college, under 1 year": 18, "some college, 1 year or more": 19,
        "associate's degree": 20, "bachelor's degree": 21, "master's degree": 22, "professional degree": 23,
        "doctorate": 24}, ordered=True, missing=True),
    _grouped("FOD1P", "field of the bachelor's degree", {
        "agriculture, environment and biology": [(1100, 1399), (3600, 3699)],
        "computers and mathematics": [(2100, 2199), (3700, 3799)], "physical sciences": (5000, 5199),
        "psychology": (5200, 5299), "social sciences": [(1500, 1599), (5500, 5599)],
        "engineering and architecture": [(1400, 1499), (2400, 2599)],
        "interdisciplinary studies": (4000, 4099), "health": (6100, 6199), "business": (6200, 6299),
        "education": [(2300, 2399), (3500, 3599)],
        "languages and literature": [(2600, 2699), (3300, 3399)],
        "liberal arts, history, philosophy and theology": [(3400, 3499), (4800, 4999), (6400, 6499)],
        "arts": (6000, 6099), "communications": (1900, 2099), "law, public affairs and safety": [
            (3200, 3299), (3800, 3899), (5300, 5499)],
        "other services and trades": [(2200, 2299), (2900, 2999), (4100, 4199), (5600, 5999)]}, missing=True),
    _listed("MAR", "marital status", "married", "widowed", "divorced", "separated", "never married"),
    _yes_no("FER", "gave birth in the past year", missing=True),
    _listed("ESR", "employment status", "employed, at work", "employed, not at work", "unemployed",
            "armed forces, at work", "armed forces, not at work", "not in the labor force", missing=True),
    _grouped("INDP", "industry", {
        "agriculture": (170, 290), "mining": (370, 490), "utilities": (570, 690), "construction": 770,
        "manufacturing": (1070, 3990), "wholesale trade": (4070, 4590), "retail trade": (4670, 5791),
        "transportation and warehousing": (6070, 6390), "information": (6470, 6781),
        "finance and insurance": (6870, 6992), "real estate and rental": (7071, 7190),
        "professional services": (7270, 7490), "management of companies": 7570,
        "administrative and waste services": (7580, 7790), "education": (7860, 7890),
        "health care and social assistance": (7970, 8470), "arts and recreation": (8560, 8590),
        "accommodation and food": (8660, 8690), "other services": (8770, 9290),
        "public administration": (9370, 9590), "armed forces": (9670, 9870),
        "unemployed, no recent work": 9920}, missing=True),
    _grouped("OCCP", "occupation", {
        "management": (10, 440), "business and finance": (500, 960),
        "computers and mathematics": (1005, 1240), "architecture and engineering": (1305, 1560),
        "science": (1600, 1980), "community and social service": (2001, 2060), "law": (2100, 2180),
        "education and library": (2205, 2555), "arts, sports and media": (2600, 2920),
        "health practitioner": (3000, 3550), "health support": (3601, 3655),
        "protective service": (3700, 3960), "food preparation": (4000, 4160),
        "cleaning and grounds": (4200, 4255), "personal care": (4330, 4655), "sales": (4700, 4965),
        "office support": (5000, 5940), "farming, fishing and forestry": (6005, 6130),
        "construction and extraction": (6200, 6950), "installation and repair": (7000, 7640),
        "production": (7700, 8990), "transportation and moving": (9005, 9760), "armed forces": (9800, 9830),
        "unemployed, no recent work": 9920}, missing=True),
    _listed("COW", "class of worker", "private, for profit", "private, not for profit", "local government",
            "state government", "federal government", "self-employed, not incorporated",
            "self-employed, incorporated", "family worker without pay", "unemployed, no recent work",
            missing=True),
    _binned("WKHP", "usual hours of work a week",
            (1, 10, 20, 30, 35, 40, 41, 45, 50, 55, 60, 70, 99), missing=True),
    _binned("WKWN", "weeks worked in the past year", (1, 14, 27, 40, 48, 50, 52), missing=True),
    _binned("JWMNP", "minutes to work", (1, 5, 10, 15, 20, 25, 30, 35, 40, 45, 60, 90, 200), missing=True),
    _listed("JWTRNS", "way to work", "car, truck or van", "bus", "subway or elevated rail", "train",
            "light rail or streetcar", "ferry", "taxi", "motorcycle", "bicycle", "walked", "worked from home",
            "other", missing=True),
    _binned("PINCP", "income of the person", PERSON_INCOME, clip=True, missing=True),
    _binned("WAGP", "wages of the person", WAGES, clip=True, missing=True),
    _binned("POVPIP", "income as % of the poverty line",
            (0, 50, 100, 125, 150, 185, 200, 250, 300, 400, 500, 501), missing=True),
    _grouped("MIGSP", "where they lived a year ago, if elsewhere", {
        "New England": [9, 23, 25, 33, 44, 50], "Middle Atlantic": [34, 36, 42],
        "East North Central": [17, 18, 26, 39, 55], "West North Central": [19, 20, 27, 29, 31, 38, 46],
        "South Atlantic": [10, 11, 12, 13, 24, 37, 45, 51, 54], "East South Central": [1, 21, 28, 47],
        "West South Central": [5, 22, 40, 48], "Mountain": [4, 8, 16, 30, 32, 35, 49, 56],
        "Pacific": [2, 6, 15, 41, 53], "Puerto Rico and island areas": (60, 99), "Europe": (100, 199),
        "Asia": (200, 299), "Canada": (300, 302), "Latin America": (303, 399), "Africa": (400, 499),
        "elsewhere": (500, 555)}, missing=True),
    _yes_no("HICOV", "health insurance"),
    _yes_no("PRIVCOV", "private health insurance"),
    _yes_no("PUBCOV", "public health insurance"),
    _yes_no("DIS", "disability"),
    _yes_no("DEAR", "difficulty hearing"),
    _yes_no("DEYE", "difficulty seeing"),
    _yes_no("DREM", "difficulty remembering", missing=True),
    _yes_no("DPHY", "difficulty walking", missing=True),
    _listed("MIL", "military service", "on active duty now", "on active duty in the past", "training only",
            "never served", missing=True),
)
"""Columns of the person file."""

HOUSEHOLD: tuple[Attribute, ...] = (
    _listed("TEN", "tenure", "owned with a mortgage", "owned free and clear", "rented",
            "occupied without rent", missing=True),
    _binned("VALP", "value of the home", HOME_VALUE, clip=True, missing=True),
    _binned("RNTP", "monthly rent", RENT, clip=True, missing=True),
    _binned("GRPIP", "gross rent as % of income", SHARE_OF_INCOME, missing=True),
    _binned("OCPIP", "owner's costs as % of income", SHARE_OF_INCOME, missing=True),
    _binned("HINCP", "income of the household", INCOME, clip=True, missing=True),
    _binned("FINCP", "income of the family", INCOME, clip=True, missing=True),
    _listed("MV", "when the householder moved in", "12 months or less", "13 to 23 months", "2 to 4 years",
            "5 to 9 years", "10 to 19 years", "20 to 29 years", "30 years or more",
            ordered=True, missing=True),
    _grouped("BDSP", "bedrooms", {"0": 0, "1": 1, "2": 2, "3": 3, "4": 4, "5 or more": (5, 99)},
             ordered=True, missing=True),
    _grouped("RMSP", "rooms", {"1": 1, "2": 2, "3": 3, "4": 4, "5": 5, "6": 6, "7": 7, "8": 8,
             "9 or more": (9, 99)}, ordered=True, missing=True),
    _grouped("YRBLT", "when the building was built", {
        "1939 or earlier": 1939, "1940s": 1940, "1950s": 1950, "1960s": 1960, "1970s": 1970, "1980s": 1980,
        "1990s": 1990, "2000s": 2000, "2010s": 2010, "2020 or later": (2020, 2024)},
        ordered=True, missing=True),
    _listed("BLD", "building", "mobile home", "one-family house, detached", "one-family house, attached",
            "2 apartments", "3 or 4 apartments", "5 to 9 apartments", "10 to 19 apartments",
            "20 to 49 apartments", "50 or more apartments", "boat, RV or van", missing=True),
    _listed("HHT", "household type", "married couple", "male householder, family",
            "female householder, family", "man living alone", "male householder, not a family",
            "woman living alone", "female householder, not a family", missing=True),
    _listed("HHL", "household language", "English only", "Spanish", "other Indo-European", "Asian or Pacific",
            "other", missing=True),
    _listed("MULTG", "three or more generations", "no", "yes", missing=True),
    _grouped("NP", "persons in the household", {"1": 1, "2": 2, "3": 3, "4": 4, "5": 5, "6": 6, "7": 7,
             "8 or more": (8, 20)}, ordered=True),
    _grouped("NPF", "persons in the family", {"2": 2, "3": 3, "4": 4, "5": 5, "6": 6, "7": 7,
             "8 or more": (8, 20)}, ordered=True, missing=True),
    _listed("TYPEHUGQ", "kind of unit", "housing unit", "institution", "other group quarters"),
)
"""Columns of the household file. All except NP and TYPEHUGQ are empty for people in group quarters."""
# fmt: on

ATTRIBUTES = {attribute.column.name: attribute for attribute in (*PERSON, *HOUSEHOLD)}
NAMES = tuple(ATTRIBUTES)
SHARED = ("AGEP", "SEX", "RAC1P", "HISP", "CIT", "SCHL", "DIS", *(h.column.name for h in HOUSEHOLD))
"""The columns that the files of every state have, including the short person file of California."""


def acs_schema(names: Sequence[str] = NAMES) -> Schema:
    """Return the schema of the columns ``names``. It is the same for every state."""
    return Schema(tuple(ATTRIBUTES[name].column for name in names))


def acs_table(person: pa.Table, household: pa.Table, names: Sequence[str] = NAMES) -> Table:
    """Return every person with the columns of their household, in the order of the person file."""
    import pyarrow.compute as pc

    own = {attribute.column.name for attribute in PERSON}
    of_person = [name for name in ("SERIALNO", *names) if name in own or name == "SERIALNO"]
    of_household = [name for name in ("SERIALNO", *names) if name not in own]
    absent = [name for name in of_person if name not in person.column_names]
    absent += [name for name in of_household if name not in household.column_names]
    rule, hint = "must have every column of the schema (these are absent)", "use the one-year files of 2024"
    check(not absent, "ACS files", absent, rule, hint)
    person, household = person.combine_chunks(), household.combine_chunks()
    home = pc.index_in(person.column("SERIALNO"), value_set=household.column("SERIALNO"))
    rule, hint = "must have a household for every person", "use the files of one state and year"
    check(home.null_count == 0, "ACS files", Shown(f"{home.null_count:,} without one"), rule, hint)
    homes = household.take(home)
    columns = ((person if name in own else homes).column(name).combine_chunks() for name in names)
    codes = (ATTRIBUTES[name].encode(column) for name, column in zip(names, columns, strict=True))
    return Table(acs_schema(names), tuple(codes))
