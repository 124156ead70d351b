"""Releases: what is safe to publish, what it says about itself, and how it is saved and loaded."""

from pointillist.release.description import FORMAT, Description, MethodUsed, Privacy, PublicUsed, read, versions
from pointillist.release.folder import Release, check_target, draw_rows, save_stopped

__all__ = [
    "FORMAT",
    "Description",
    "MethodUsed",
    "Privacy",
    "PublicUsed",
    "Release",
    "check_target",
    "draw_rows",
    "read",
    "save_stopped",
    "versions",
]
