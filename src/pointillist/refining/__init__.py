"""Fine columns: a stage before the run that merges their codes from noisy counts."""

from pointillist.refining.stage import Refining, most_groups

__all__ = ["Refining", "most_groups"]
