"""Pointillist: differentially private synthetic tables that keep the answers to a declared set of queries.

A pointillist picture is true from a distance, and no dot is a person.
"""

from pointillist.data.draft import draft_schema
from pointillist.data.neighbours import Relation
from pointillist.data.schema import Categorical, Numeric, Schema
from pointillist.data.table import Table
from pointillist.errors import BudgetError, InputError, PointillistError, RunStopped
from pointillist.queries.marginals import all_kway, random_kway
from pointillist.queries.workload import Grouping, Workload
from pointillist.release import Release
from pointillist.synthesis import synthesize

__version__ = "0.1.0"

__all__ = [
    "BudgetError",
    "Categorical",
    "Grouping",
    "InputError",
    "Numeric",
    "PointillistError",
    "Relation",
    "Release",
    "RunStopped",
    "Schema",
    "Table",
    "Workload",
    "all_kway",
    "draft_schema",
    "random_kway",
    "synthesize",
]
