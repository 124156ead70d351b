"""What a run is expected to give, before anything is spent: from schema, number of rows and budget alone."""

from pointillist.planning.features import Features, features_of
from pointillist.planning.law import METRICS, Estimate, Law, Laws, laws
from pointillist.planning.made_up import Wanted
from pointillist.planning.plan import Advice, Expected, Peak, Plan, Point, Target, expected, make_plan
from pointillist.planning.situation import Situation

__all__ = [
    "METRICS",
    "Advice",
    "Estimate",
    "Expected",
    "Features",
    "Law",
    "Laws",
    "Peak",
    "Plan",
    "Point",
    "Situation",
    "Target",
    "Wanted",
    "expected",
    "features_of",
    "laws",
    "make_plan",
]
