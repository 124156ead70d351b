"""A planted cell, and whether a message shows more than a fragment of it."""

from __future__ import annotations

from pointillist.data.messages import MOST_SHOWN

SECRET = "".join(f"<{i:03d}>" for i in range(200))
"""A cell of 1,000 characters, no part of which comes twice."""


def shows_too_much(message: str) -> bool:
    """Whether a message has more than 60 characters of the secret in one piece."""
    size = MOST_SHOWN + 1
    return any(SECRET[at : at + size] in message for at in range(len(SECRET) - size + 1))
