"""The one call that users make: which method it takes when none is named."""

from __future__ import annotations

import pytest

from pointillist.data.domain import Domain
from pointillist.synthesis import default_method

SMALL = Domain(("a", "b", "c"), (3, 4, 5))
LARGE = Domain(tuple(f"x{i}" for i in range(12)), (10,) * 12)


@pytest.mark.parametrize(
    ("domain", "group", "settings", "name"),
    [
        (SMALL, None, {}, "one-shot"),
        (LARGE, None, {}, "one-shot"),
        (LARGE, "marginal", {"rows": 100}, "one-shot"),
        (SMALL, None, {"rounds": 5}, "mwem"),
        (SMALL, "query", {}, "mwem"),
        (SMALL, None, {"round": 5}, "mwem"),
        (SMALL, None, {"spreed": 5}, "one-shot"),
        (LARGE, None, {"rounds": 5}, "gem"),
        (LARGE, "query", {}, "gem"),
    ],
)
def test_the_default_method(domain: Domain, group: str | None, settings: dict[str, int], name: str) -> None:
    assert default_method(domain, group, settings).name == name
