"""The table of ACS-2024 that is nearest to the paper's reduced ACS table.

The files of ACS-2024 that the experiments use do not have all of its columns. These stand in for them:

| the paper's column | here |
|---|---|
| SEX | SEX |
| FOODSTMP, food stamps | POVPIP below 125: an income up to about the limit for food stamps |
| RACAMIND, RACASIAN, RACBLK, RACOTHER, RACPACIS, RACWHT | RAC1P; who has two or more races has none of the six |
| DIFFEYE, DIFFHEAR | DEYE, DEAR |
| HCOVPRIV | PRIVCOV |
| HINSCAID, Medicaid | PUBCOV, below 65 years of age |
| HINSCARE, Medicare | PUBCOV, from 65 years of age on |
| OWNERSHP | TEN |
| EMPSTAT | ESR |

The schema is that of :mod:`pointillist.data.ipums`, so the domain is the paper's.
"""

from __future__ import annotations

import numpy as np

from pointillist import Numeric, Schema, Table
from pointillist.data.acs import ATTRIBUTES
from pointillist.data.ipums import REDUCED

__all__ = ["nearest_to_the_paper"]

RACES = {
    "RACAMIND": (2, 3, 4), "RACASIAN": (5,), "RACBLK": (1,), "RACOTHER": (7,), "RACPACIS": (6,), "RACWHT": (0,),
}  # fmt: skip
"""The codes of RAC1P, from 0."""
TENURE = (1, 1, 2, 2, 0)
EMPLOYMENT = (1, 1, 2, 1, 1, 3, 0)
"""The code of OWNERSHP or EMPSTAT for each value of TEN or ESR; the last one is the empty cell."""


def nearest_to_the_paper(table: Table) -> Table:
    """The 15 columns of the paper's reduced table, from those of ``acs-pa`` or of another state."""
    codes = dict(zip(table.domain.names, table.codes, strict=True))
    public, old = codes["PUBCOV"] == 0, codes["AGEP"] >= _first_bin("AGEP", 65)
    found = {
        "SEX": codes["SEX"],
        "FOODSTMP": codes["POVPIP"] < _first_bin("POVPIP", 125),
        **{name: np.isin(codes["RAC1P"], values) for name, values in RACES.items()},
        "DIFFEYE": codes["DEYE"] == 0,
        "DIFFHEAR": codes["DEAR"] == 0,
        "HCOVPRIV": codes["PRIVCOV"] == 0,
        "HINSCAID": public & ~old,
        "HINSCARE": public & old,
        "OWNERSHP": np.array(TENURE)[codes["TEN"]],
        "EMPSTAT": np.array(EMPLOYMENT)[codes["ESR"]],
    }
    columns = Schema(tuple(one.column for one in REDUCED.values()))
    return Table(columns, tuple(found[name].astype(codes["SEX"].dtype) for name in REDUCED))


def _first_bin(name: str, value: int) -> int:
    """The code of the bin that begins at a value."""
    column = ATTRIBUTES[name].column
    assert isinstance(column, Numeric)
    return column.edges.index(value)
