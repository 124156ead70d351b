"""Releases: what is safe to publish, what it says about itself, and how it is saved and loaded."""

from pointillist.release.description import (
    FORMAT,
    Description,
    MethodUsed,
    Privacy,
    PublicUsed,
    WithSchema,
    read,
    versions,
)
from pointillist.release.drawing import Drawn, Rows, draw_rows, drawn_rows
from pointillist.release.folder import Listed, Refined, Release, add_replicates
from pointillist.release.matching import Matched
from pointillist.release.place import Place, check_target

__all__ = [
    "FORMAT",
    "Description",
    "Drawn",
    "Listed",
    "Matched",
    "MethodUsed",
    "Place",
    "Privacy",
    "PublicUsed",
    "Refined",
    "Release",
    "Rows",
    "WithSchema",
    "add_replicates",
    "check_target",
    "draw_rows",
    "drawn_rows",
    "read",
    "versions",
]
