"""Pointillist: differentially private synthetic tables that keep the answers to a declared set of queries."""

from pointillist.accounts import Account
from pointillist.algorithms import Method
from pointillist.data.datasets import load
from pointillist.data.draft import draft_schema
from pointillist.data.neighbours import Relation
from pointillist.data.rules import Rule
from pointillist.data.schema import (
    About,
    Categorical,
    Constant,
    Discovered,
    Grid,
    Identifier,
    Numeric,
    Schema,
    Temporal,
)
from pointillist.data.sources import Source
from pointillist.data.table import Table
from pointillist.discovering import private_schema
from pointillist.errors import BudgetError, InputError, PointillistError, RunStopped
from pointillist.evaluation.judgement import Evaluation
from pointillist.evaluation.report import evaluate
from pointillist.job import Job, prepare
from pointillist.planning import Plan
from pointillist.queries.candidates import Grouping
from pointillist.queries.files import load_workload
from pointillist.queries.halfspaces import Halfspaces
from pointillist.queries.intervals import Intervals
from pointillist.queries.kway import all_kway, random_kway
from pointillist.queries.marginal import Marginal
from pointillist.queries.predicates import Predicates
from pointillist.queries.product import Product
from pointillist.queries.texts import parse_workload
from pointillist.queries.workload import Workload
from pointillist.release import Release
from pointillist.runs import resume, synthesize
from pointillist.synthesizer import Synthesizer

__version__ = "0.1.0"

__all__ = [
    "About",
    "Account",
    "BudgetError",
    "Categorical",
    "Constant",
    "Discovered",
    "Evaluation",
    "Grid",
    "Grouping",
    "Halfspaces",
    "Identifier",
    "InputError",
    "Intervals",
    "Job",
    "Marginal",
    "Method",
    "Numeric",
    "Plan",
    "PointillistError",
    "Predicates",
    "Product",
    "Relation",
    "Release",
    "Rule",
    "RunStopped",
    "Schema",
    "Source",
    "Synthesizer",
    "Table",
    "Temporal",
    "Workload",
    "all_kway",
    "draft_schema",
    "evaluate",
    "load",
    "load_workload",
    "parse_workload",
    "prepare",
    "private_schema",
    "random_kway",
    "resume",
    "synthesize",
]
