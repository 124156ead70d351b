"""Fine columns: a stage before the run that merges their codes from noisy counts."""

from pointillist.refining.stage import MOST_GROUPS, Refining

__all__ = ["MOST_GROUPS", "Refining"]
