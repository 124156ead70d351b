"""How much parts of marginals matter for the total variation of a workload, to judge fits by.

In units of the noise, what was measured precisely counts most: a few strong ties and one-way marginals. Total variation
adds up absolute errors of all marginals, of the weakly tied ones, too. So fits are judged by

    sum_A r_A |C_A q_A - y_A|^2,    r_A ~ n_A prod_{i in A} (sum_v sqrt(m_iv))^2,

where n_A is the number of wanted marginals that have the attributes A, and m_iv the share of the value v of the
attribute i. If the errors of cells are as the roots of the products of these shares, the square of their absolute sum
is the product of the squares of the sums times their squared length: by Cauchy and Schwarz it is no larger otherwise,
up to where the errors are. The factor of all r_A is such that pure noise counts as much as in units of the noise.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from pointillist.data.domain import Attributes
from pointillist.updates.parts import PartEstimates

__all__ = ["relevance"]

LEAST_SHARE = 1e-4
"""No share of a value is taken to be smaller."""


def relevance(
    parts: PartEstimates, wanted: Sequence[Attributes], shares: Sequence[np.ndarray]
) -> Mapping[Attributes, float]:
    """r_A of every part that was measured; the precisions where no wanted query has any of them.

    Args:
        parts: what was measured.
        wanted: the attributes of each wanted query.
        shares: estimated one-way marginals.
    """
    roots = [float(np.sqrt(np.maximum(share, LEAST_SHARE)).sum()) ** 2 for share in shares]
    sets = [frozenset(scope) for scope in wanted]
    found = {
        scope: sum(1 for one in sets if one.issuperset(scope)) * math.prod(roots[i] for i in scope)
        for scope in parts.scopes
    }
    noise = sum(found[scope] * parts.freedom_of(scope) / parts.precision[scope] for scope in found)
    if noise == 0:
        return parts.precision
    return {scope: value * parts.freedom / noise for scope, value in found.items()}
