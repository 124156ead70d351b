"""A fictional town, drawn by code: the table of the examples, small enough for a full histogram.

Nobody lives in Merrow Bay. Its 20,000 adults are drawn from a small dependency graph::

    district -> age -> education -> occupation -> income -> tenure
    sex -> occupation            age -> household -> tenure
    district, occupation -> commute            education, age -> smoker

so a synthetic copy visibly keeps or loses something: nobody without work commutes, and only people from Gull
Island take the ferry.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pointillist.data.schema import Categorical, Numeric, Schema
from pointillist.data.table import Table

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["demo_frame", "demo_schema", "demo_table"]

PEOPLE = 20_000
SEED = 1886

DISTRICTS = ("Harbour", "Old Town", "Mill Lane", "Highfield", "Gull Island")
SEXES = ("female", "male")
AGE_EDGES = (18, 25, 35, 45, 55, 65, 75, 95)
EDUCATIONS = ("basic", "vocational", "college", "university")
OCCUPATIONS = (
    "none",
    "sea and harbour",
    "crafts and industry",
    "shops and services",
    "office",
    "health and teaching",
)
INCOME_EDGES = (0.0, 1000.0, 1750.0, 2500.0, 3500.0, 12000.0)
TENURES = ("tenant", "owner")
COMMUTES = ("none", "foot", "bicycle", "car", "ferry")

# fmt: off
DISTRICT_WEIGHTS = (22, 26, 24, 19, 9)
AGE_WEIGHTS = (  # district x age group
    (20, 26, 18, 14, 11, 7, 4), (10, 17, 17, 16, 15, 14, 11), (9, 20, 24, 19, 14, 9, 5),
    (5, 9, 16, 21, 20, 17, 12), (6, 9, 12, 16, 20, 21, 16),
)
EDUCATION_WEIGHTS = (  # age group x education
    (22, 30, 34, 14), (8, 28, 30, 34), (9, 31, 28, 32), (13, 36, 26, 25), (20, 40, 22, 18),
    (32, 40, 16, 12), (46, 36, 10, 8),
)
EDUCATION_FACTORS = (  # district x education
    (1.0, 1.2, 1.0, 0.7), (0.9, 0.9, 1.1, 1.3), (1.2, 1.3, 0.9, 0.6), (0.5, 0.7, 1.2, 2.0),
    (1.4, 1.3, 0.7, 0.5),
)
WITHOUT_WORK = (0.34, 0.13, 0.10, 0.11, 0.24, 0.86, 0.98)  # by age group
OCCUPATION_WEIGHTS = (  # education x occupation, the first being for those without work
    (0, 22, 34, 40, 3, 1), (0, 16, 38, 28, 11, 7), (0, 7, 12, 26, 37, 18), (0, 3, 4, 8, 45, 40),
)
OCCUPATION_SEX_FACTORS = ((1, 0.4, 0.5, 1.3, 1.0, 1.7), (1, 1.6, 1.5, 0.7, 1.0, 0.4))
OCCUPATION_DISTRICT_FACTORS = (
    (1, 2.4, 0.9, 1.1, 0.8, 0.8), (1, 0.6, 0.7, 1.3, 1.2, 1.0), (1, 0.4, 2.0, 0.9, 0.8, 0.9),
    (1, 0.3, 0.6, 0.7, 1.4, 1.4), (1, 4.0, 0.9, 0.8, 0.4, 0.7),
)
PAY_BY_OCCUPATION = (1150.0, 1900.0, 2100.0, 1650.0, 2550.0, 2500.0)
PAY_BY_EDUCATION = (0.80, 0.95, 1.10, 1.50)
PAY_BY_AGE = (0.62, 0.88, 1.08, 1.20, 1.15, 1.00, 0.90)
HOUSEHOLD_WEIGHTS = (  # age group x persons
    (30, 24, 20, 16, 10), (24, 33, 21, 15, 7), (13, 19, 23, 30, 15), (15, 25, 24, 25, 11), (22, 45, 20, 9, 4),
    (30, 57, 9, 3, 1), (52, 42, 4, 1, 1),
)
COMMUTE_WEIGHTS = (  # district x commute, for those with work
    (0, 50, 26, 24, 0), (0, 42, 28, 30, 0), (0, 14, 36, 50, 0), (0, 4, 12, 84, 0), (0, 20, 6, 2, 72),
)
SMOKER_ODDS = (-0.45, -0.75, -1.45, -2.25)  # by education, log odds
# fmt: on


def demo_schema() -> Schema:
    """Return the schema of the town: ten columns, 1,008,000 possible records."""
    return Schema(
        (
            Categorical("district", DISTRICTS),
            Categorical("sex", SEXES),
            Numeric("age", AGE_EDGES, integer=True),
            Categorical("education", EDUCATIONS, ordered=True),
            Categorical("occupation", OCCUPATIONS),
            Numeric("income", INCOME_EDGES, missing=True),
            Categorical("household", (1, 2, 3, 4, 5), ordered=True),
            Categorical("tenure", TENURES),
            Categorical("commute", COMMUTES),
            Categorical("smoker", (False, True)),
        )
    )


def demo_table() -> Table:
    """Return the town as a table of codes. It is always the same."""
    return Table.encode(demo_frame(), demo_schema())


def demo_frame() -> pa.Table:
    """Return the town as it would be in a file: strings, numbers, booleans, and some incomes missing."""
    import pyarrow as pa

    # Draws only uniform numbers, because their stream is the same in every version of NumPy.
    rng = np.random.Generator(np.random.PCG64(SEED))

    def draw() -> np.ndarray:
        return rng.random(PEOPLE)

    district = _pick(draw(), np.tile(DISTRICT_WEIGHTS, (PEOPLE, 1)))
    sex = (draw() < 0.49).astype(np.intp)
    group = _pick(draw(), np.array(AGE_WEIGHTS)[district])
    low, high = np.array(AGE_EDGES)[group], np.array(AGE_EDGES)[group + 1]
    age = low + np.floor(draw() * (high - low)).astype(np.int64)
    education = _pick(draw(), np.array(EDUCATION_WEIGHTS)[group] * np.array(EDUCATION_FACTORS)[district])
    weights = np.array(OCCUPATION_WEIGHTS)[education] * np.array(OCCUPATION_SEX_FACTORS)[sex]
    occupation = _pick(draw(), weights * np.array(OCCUPATION_DISTRICT_FACTORS)[district])
    occupation[draw() < np.array(WITHOUT_WORK)[group]] = 0

    pay = np.array(PAY_BY_OCCUPATION)[occupation] * np.array(PAY_BY_EDUCATION)[education]
    pay = pay * np.array(PAY_BY_AGE)[group] * np.exp(0.16 * _logit(draw()))
    income = np.round(np.clip(pay, 0, INCOME_EDGES[-1]), 2)
    not_given = draw() < np.where(income > 3500, 0.14, 0.05)
    household = 1 + _pick(draw(), np.array(HOUSEHOLD_WEIGHTS)[group])
    owner_odds = -2.6 + 0.55 * group + 0.0006 * (income - 2000) + 0.35 * (household - 2)
    owner_odds += np.array((-1.2, -0.3, 0.2, 1.2, 1.0))[district]
    tenure = (_logit(draw()) < owner_odds).astype(np.intp)
    commute = np.where(occupation == 0, 0, _pick(draw(), np.array(COMMUTE_WEIGHTS)[district]))
    smoker = _logit(draw()) < np.array(SMOKER_ODDS)[education] - 0.25 * np.maximum(group - 4, 0)

    return pa.table(
        {
            "district": pa.array(np.array(DISTRICTS)[district]),
            "sex": pa.array(np.array(SEXES)[sex]),
            "age": pa.array(age),
            "education": pa.array(np.array(EDUCATIONS)[education]),
            "occupation": pa.array(np.array(OCCUPATIONS)[occupation]),
            "income": pa.array(income, mask=not_given),
            "household": pa.array(household.astype(np.int64)),
            "tenure": pa.array(np.array(TENURES)[tenure]),
            "commute": pa.array(np.array(COMMUTES)[commute]),
            "smoker": pa.array(smoker),
        }
    )


def _pick(u: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Draw one position per row in proportion to the row's weights, with the uniform numbers ``u``."""
    ends = np.cumsum(weights, axis=1)
    return np.asarray((u[:, None] * ends[:, -1:] >= ends).sum(axis=1))


def _logit(u: np.ndarray) -> np.ndarray:
    """Turn uniform numbers into logistic ones. Numbers close to 0 are raised so that the logarithm is finite."""
    return np.asarray(np.log(np.maximum(u, 1e-12) / (1 - u)))
