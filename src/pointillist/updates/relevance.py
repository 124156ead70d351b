"""How much parts of marginals matter for the total variation of a workload, to judge fits by.

In units of the noise, what was measured precisely counts most: a few strong ties and one-way marginals. Total variation
adds up absolute errors of all marginals, of the weakly tied ones, too. So fits are judged by

    sum_A r_A |C_A q_A - y_A|^2,    r_A ~ n_A prod_{i in A} (sum_v sqrt(m_iv))^2,

where n_A is the number of wanted queries that have the attributes A, whatever their weights, and m_iv the share of the
value v of the attribute i. The product is the square of the sum of absolute errors over their squared length if the
errors of cells are as the roots of the products of these shares; errors that are spread more evenly have a larger sum.
The factor of all r_A is such that pure noise counts as much as in units of the noise.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from pointillist.data.domain import Attributes
from pointillist.updates.parts import PartEstimates, subsets

__all__ = ["relevance"]

LEAST_SHARE = 1e-4
"""No share of a value is taken to be smaller."""

FEW = 8
"""All subsets of a scope of at most this many attributes are listed."""


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
    having = _having(parts.scopes, wanted)
    found = {scope: count * math.prod(roots[i] for i in scope) for scope, count in having.items()}
    noise = sum(found[scope] * parts.freedom_of(scope) / parts.precision[scope] for scope in found)
    if noise == 0:
        return parts.precision
    return {scope: value * parts.freedom / noise for scope, value in found.items()}


def _having(scopes: Sequence[Attributes], wanted: Sequence[Attributes]) -> dict[Attributes, int]:
    """How many wanted scopes have all attributes of each scope. Their subsets are counted, if these are few, so that
    the time grows with the number of scopes and not with its square."""
    times = Counter(wanted)
    inside: Counter[Attributes] = Counter()
    for one, count in times.items():
        if len(one) <= FEW:
            inside.update(dict.fromkeys(subsets(one), count))
    wide = [(frozenset(one), count) for one, count in times.items() if len(one) > FEW]
    return {scope: inside[scope] + sum(n for one, n in wide if one.issuperset(scope)) for scope in scopes}
